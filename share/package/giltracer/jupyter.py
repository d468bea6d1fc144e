# SPDX-License-Identifier: MIT
"""%%giltracer: record a cell, and show the verdict, the table and the page below it."""
import html
import os
import subprocess
import sys
import tempfile

from . import Error, command, record

COLUMNS = (("thread", "name"), ("tid", "tid"), ("total ms", "total_ns"), ("holds the GIL ms", "hold_ns"),
           ("waits for the GIL ms", "wait_ns"), ("longest wait ms", "longest_wait_ns"))


class Result:
    """A recording in a notebook; %%giltracer NAME assigns it to the variable NAME."""

    def __init__(self, document, page):
        self.document = document
        self.page = page

    def _cell(self, thread, key):
        value = thread[key]
        return "%.1f" % (value / 1e6) if key.endswith("_ns") else html.escape(str(value))

    def table(self):
        rows = ["<tr>%s</tr>" % "".join("<th>%s</th>" % title for title, _ in COLUMNS)]
        for thread in self.document["threads"]:
            rows.append("<tr>%s</tr>" % "".join(
                "<td>%s</td>" % self._cell(thread, key) for _, key in COLUMNS))
        return "<table>%s</table>" % "".join(rows)

    def _texts(self):
        verdict = self.document["verdict"]
        findings = ["%s: %s %s" % (f["title"], f["text"], f["advice"] or "")
                    for f in self.document["findings"]]
        return [text for text in [verdict["context"], *findings, verdict["advice"]] if text]

    def _repr_html_(self):
        frame = ('<iframe srcdoc="%s" sandbox="allow-scripts allow-downloads" '
                 'style="width: 100%%; height: 40em; border: 1px solid"></iframe>')
        return "<p><b>%s</b></p>%s%s%s" % (html.escape(self.document["verdict"]["headline"]),
                                           "".join("<p>%s</p>" % html.escape(t) for t in self._texts()),
                                           self.table(), frame % html.escape(self.page))

    def __repr__(self):
        return "\n".join([self.document["verdict"]["headline"], *self._texts()])


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _in_kernel(shell, cell, options):
    recording = record("--python-trace", "none", *options)
    try:
        with recording:
            shell.run_cell(cell)
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            recording.report(page)
            return Result(recording.document, _read(page))
    finally:
        recording.close()


def _fresh(cell, options):
    import json

    with tempfile.TemporaryDirectory() as folder:
        script, page, document = (os.path.join(folder, n) for n in ("cell.py", "page", "json"))
        with open(script, "w", encoding="utf-8") as file:
            file.write(cell)
        done = subprocess.run([command(), "-q", "--python", sys.executable, "-o", page, "--json",
                               document, *options, script], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout.decode(errors="replace"), end="")
        if not os.path.exists(page):
            raise Error("giltracer ended with %d" % done.returncode)
        return Result(json.loads(_read(document)), _read(page))


class Defaults:
    """The options that %giltracer sets for all later cells."""

    def __init__(self):
        self.words = []


def giltracer(shell, line, cell, defaults):
    """%%giltracer [--fresh] [VARIABLE] [OPTION...]: options are those of giltracer record.

    %giltracer [--fresh] [OPTION...], on a line of its own, sets the options of all later cells."""
    from IPython.display import display

    words = line.split()
    if cell is None:
        defaults.words = words
        print("options of each %%giltracer: " + (" ".join(words) or "none"))
        return
    fresh = "--fresh" in words + defaults.words
    words = [w for w in words if w != "--fresh"]
    name = words.pop(0) if words and words[0].isidentifier() else None
    words = [w for w in defaults.words if w != "--fresh"] + words
    result = _fresh(cell, words) if fresh else _in_kernel(shell, cell, words)
    if name:
        shell.user_ns[name] = result
    display(result)


def load(shell):
    defaults = Defaults()
    shell.register_magic_function(
        lambda line, cell=None: giltracer(shell, line, cell, defaults), "line_cell", "giltracer")
