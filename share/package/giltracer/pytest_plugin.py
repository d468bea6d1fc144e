# SPDX-License-Identifier: MIT
"""pytest --giltracer, and @pytest.mark.gil_wait(max=SECONDS)."""
import bisect
import csv
import os
import tempfile
import time
from xml.etree import ElementTree

import pytest

from . import Error, Recording

WAITS = ("waits for the GIL", "released on request, awaits the switch")
SHOWN = 10
TESTS_SHOWN = 3  # of a finding
SHORT_NS = 1000000  # shorter waits for locks, in all, are not shown


class Spans:
    """The GIL states of this process's threads."""

    def __init__(self, recording):
        self.waits, self.holds = [], []  # (start, end, tid, function at the end), by start
        self.locks = []  # the same of waits for locks of the program, if those were recorded
        self.locks_known = all(t["lock_wait_ns"] is not None for t in recording.threads)
        self.names = {}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "spans.csv")
            recording.export("csv", path)
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    self._add(row)
        self.waits.sort()
        self.holds.sort()
        self.starts = [h[0] for h in self.holds]

    def _add(self, row):
        if row["lane"] != "gil" or int(row["pid"]) != os.getpid():
            return
        start, tid = int(row["start_ns"]), int(row["tid"])
        self.names[tid] = row["thread"]
        function = row["function"]
        if function and row["file"]:
            function += " (%s:%s)" % (os.path.basename(row["file"]), row["line"])
        span = (start, start + int(row["duration_ns"]), tid, function)
        if row["state"] in WAITS:
            self.waits.append(span)
        elif row["state"] == "holds the GIL":
            self.holds.append(span)
        elif row["state"] == "waits for a lock":
            self.locks.append(span)

    def of(self, window):
        """Return how long threads waited in the window, in ns, and which thread and which function
        held the GIL longest meanwhile, as text; "" if that is not known."""
        waited, held, ran = 0, {}, {}
        for start, end, tid, _ in self.waits:
            start, end = max(start, window[0]), min(end, window[1])
            if start >= end:
                continue
            waited += end - start
            at = max(0, bisect.bisect_right(self.starts, start) - 1)
            while at < len(self.holds) and self.holds[at][0] < end:
                overlap = min(end, self.holds[at][1]) - max(start, self.holds[at][0])
                _, _, holder, function = self.holds[at]
                if overlap > 0 and holder != tid:
                    held[holder] = held.get(holder, 0) + overlap
                    ran[function] = ran.get(function, 0) + overlap
                at += 1
        if not held:
            return waited, "", ""
        return waited, self.names.get(max(held, key=held.get), ""), max(ran, key=ran.get)

    def locks_of(self, window):
        """Return how long threads waited for locks in the window, in ns, and in which function longest; "" if that
        is not known."""
        if not self.locks_known:
            return "", ""
        waited = {}
        for start, end, _, function in self.locks:
            overlap = min(end, window[1]) - max(start, window[0])
            if overlap > 0:
                waited[function] = waited.get(function, 0) + overlap
        return sum(waited.values()), max(waited, key=waited.get) if waited else ""


def junit_file(config):
    """The file of --junitxml, None if this process writes none."""
    path = config.getoption("--junitxml", None)
    if not path or hasattr(config, "workerinput"):  # pytest-xdist's controller writes it
        return None
    return os.path.abspath(os.path.expanduser(os.path.expandvars(path)))


def properties_of(result):
    properties = zip(("gil_wait_ns", "gil_holder", "gil_function", "lock_wait_ns", "lock_function"), map(str, result))
    return [(name, value) for name, value in properties if value]


class Findings:
    """What the reports of all recordings found, each with the tests during which it was found."""

    def __init__(self):
        self.found = []  # (finding, nodeids, most cost first)
        self.failed = set()  # nodeids

    def add(self, document, pending):
        began = document["passes"][0]["start_ns"]
        for finding in document["findings"]:
            if finding["tracing"]:
                continue
            costs = {}
            for place in finding["places"]:
                start, end = began + (place["from_ns"] or 0), began + (place["to_ns"] or 0)
                for item, window in pending:
                    overlap = min(end, window[1]) - max(start, window[0])
                    if overlap > 0:
                        cost = place["cost_ns"] * overlap // max(1, end - start)
                        costs[item.nodeid] = costs.get(item.nodeid, 0) + cost
            self.found.append((finding, sorted(costs, key=lambda nodeid: -costs[nodeid])))

    def print(self, terminal):
        """Those of tests that failed first, then the others, most time first."""
        def order(entry):
            return self.failed.isdisjoint(entry[1]), -(entry[0]["cost_ns"] or 0)
        if not self.found:
            return
        terminal.section("what costs time")
        for finding, nodeids in sorted(self.found, key=order)[:SHOWN]:
            cost = "%.3f s" % (finding["cost_ns"] / 1e9) if finding["cost_ns"] else ""
            terminal.line("%11s  %s" % (cost, finding["title"]))
            for text in finding["text"], finding["advice"]:
                if text:
                    terminal.line("             " + text)
            nodeids = sorted(nodeids, key=lambda nodeid: nodeid not in self.failed)
            for nodeid in nodeids[:TESTS_SHOWN]:
                terminal.line("             in %s%s" % (nodeid, " (failed)" if nodeid in self.failed else ""))
            if len(nodeids) > TESTS_SHOWN:
                terminal.line("             and %d more" % (len(nodeids) - TESTS_SHOWN))
        if len(self.found) > SHOWN:
            terminal.line("             %d more are not shown" % (len(self.found) - SHOWN))


def held_by(holder, function):
    return holder + (" in " + function if function else "")


class Junit:
    """Properties in the file of --junitxml. If a result is not yet known when its test is reported,
    the test gets a placeholder with a number, which is replaced in the file at the end."""

    def __init__(self, path):
        self.path = path
        self.nodeids = []  # indexed by that number

    def expect(self, item):
        if self.path:
            item.user_properties.append(("gil_wait_ns", "pending %d" % len(self.nodeids)))
            self.nodeids.append(item.nodeid)

    def fill(self, results):
        """Replace the placeholders, after pytest has written the file."""
        if not self.nodeids or not os.path.exists(self.path):
            return
        pending = {"pending %d" % i: nodeid for i, nodeid in enumerate(self.nodeids)}
        tree = ElementTree.parse(self.path)
        for properties in tree.iter("properties"):
            for placeholder in properties.findall("property[@name='gil_wait_ns']"):
                if placeholder.get("value") not in pending:
                    continue
                properties.remove(placeholder)
                nodeid = pending[placeholder.get("value")]
                for name, value in properties_of(results[nodeid]) if nodeid in results else []:
                    ElementTree.SubElement(properties, "property", name=name, value=value)
        tree.write(self.path, encoding="utf-8", xml_declaration=True)


class Plugin:
    """Makes one recording at a time, of all tests up to the next one whose mark must be checked."""

    def __init__(self, every_test, junit):
        self.every_test = every_test
        self.junit = junit
        self.recording = None
        self.pending = []  # (item, window)
        self.results = {}  # nodeid -> (ns, holder's name, function, ns of waits for locks, function)
        self.findings = Findings()
        self.trouble = None

    def wanted(self, item):
        return self.every_test or item.get_closest_marker("gil_wait")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item):
        mark = item.get_closest_marker("gil_wait")
        if not self.wanted(item) or self.trouble and not mark:
            yield
            return
        if self.recording is None:
            self.begin(mark)
        if self.recording is None:  # it has no result, which is not the same as no waiting
            yield
            return
        began = time.monotonic_ns()
        outcome = yield
        self.pending.append((item, (began, time.monotonic_ns())))
        if mark:
            self.judge(item, mark, outcome)
        else:
            self.junit.expect(item)

    def begin(self, mark):
        recording = Recording("--python-trace", "none")
        try:
            recording.start()
        except Error as error:
            recording.close()
            if mark:  # a limit that cannot be checked has not been met
                pytest.fail("gil_wait: %s" % error, pytrace=False)
            self.trouble = str(error)
            return
        self.recording = recording

    def finish(self):
        """End the recording, if there is one, and compute the results of its tests."""
        if self.recording is None:
            return
        recording, self.recording = self.recording, None
        pending, self.pending = self.pending, []
        try:
            recording.stop()
            spans = Spans(recording)
            self.findings.add(recording.document, pending)
        finally:
            recording.close()
        for item, window in pending:
            self.results[item.nodeid] = spans.of(window) + spans.locks_of(window)

    def judge(self, item, mark, outcome):
        self.finish()
        item.user_properties.extend(properties_of(self.results[item.nodeid]))
        ns, holder, function = self.results[item.nodeid][:3]
        most = mark.kwargs["max"] if "max" in mark.kwargs else mark.args[0]
        if ns > most * 1e9 and outcome.excinfo is None:
            outcome.force_exception(pytest.fail.Exception(
                "its threads waited %.3f s for the GIL, more than %g s%s" %
                (ns / 1e9, most, "; most of it while %s held it" % held_by(holder, function) if holder else ""),
                pytrace=False))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_sessionfinish(self):
        try:
            self.finish()
        except Error as error:
            self.trouble = str(error)
        yield
        self.junit.fill(self.results)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.findings.failed.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter):
        if not self.results and not self.trouble:
            return
        terminalreporter.section("waiting for the GIL")
        if self.trouble:
            terminalreporter.line("giltracer: " + self.trouble)
        worst = sorted(self.results.items(), key=lambda r: -r[1][0])[:SHOWN]
        for nodeid, (ns, holder, function, _, _) in worst:
            terminalreporter.line("%9.3f s  %s%s" % (
                ns / 1e9, nodeid, "  (held by %s)" % held_by(holder, function) if holder else ""))
        locked = sorted((r for r in self.results.items() if r[1][3] and r[1][3] >= SHORT_NS),
                        key=lambda r: -r[1][3])[:SHOWN]
        if locked:
            terminalreporter.section("waiting for locks")
        for nodeid, (_, _, _, ns, function) in locked:
            terminalreporter.line("%9.3f s  %s%s" % (ns / 1e9, nodeid, "  (in %s)" % function if function else ""))
        self.findings.print(terminalreporter)


def pytest_addoption(parser):
    parser.getgroup("giltracer").addoption(
        "--giltracer", action="store_true",
        help="report how long each test's threads waited for the GIL, and for whom, and for locks")


def pytest_configure(config):
    config.addinivalue_line("markers", "gil_wait(max): fail if the test's threads waited for the "
                                       "GIL for more than max seconds in all")
    config.pluginmanager.register(Plugin(config.getoption("--giltracer"), Junit(junit_file(config))),
                                  "giltracer-recorder")
