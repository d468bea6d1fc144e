# SPDX-License-Identifier: MIT
"""Record which threads of this process hold the GIL while others wait for it.

    with giltracer.record() as r:
        work()
    print(r.verdict, r.wait_ns)
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time

__all__ = ["Error", "Recording", "command", "record", "snapshot"]


class Error(RuntimeError):
    """giltracer could not record or report; the text is its message."""


def command():
    """The path of giltracer: in this environment, otherwise on PATH; GILTRACER overrides both."""
    for path in (os.environ.get("GILTRACER"),
                 os.path.join(sysconfig.get_path("scripts"), "giltracer"),
                 shutil.which("giltracer")):
        if path and os.access(path, os.X_OK):
            return path
    raise Error("giltracer is not installed: it is neither in this environment nor on PATH")


def _run(*arguments):
    """Run giltracer and return its standard output; raise Error if it fails."""
    done = subprocess.run([command(), *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise Error(done.stderr.decode(errors="replace").strip())
    return done.stdout.decode(errors="replace")


class Recording:
    """The object that record() yields. Its results exist when the with statement has ended; the
    session folder is removed with this object, or by close()."""

    def __init__(self, *options):
        self._folder = tempfile.TemporaryDirectory(prefix="giltracer-")
        self.session = os.path.join(self._folder.name, "session")
        self._messages = os.path.join(self._folder.name, "messages")
        self._options = options
        self._process = None
        self._document = None

    def start(self):
        """Attach; returns when the recording has begun."""
        # A file, because a pipe could fill while this program runs. A thread that reads the pipe
        # would be one more in the recording.
        with open(self._messages, "wb") as messages:
            self._process = subprocess.Popen(
                [command(), "record", "-o", self.session, "-p", str(os.getpid()), *self._options],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=messages,
                start_new_session=True)  # so that Ctrl-C reaches this program only
        while True:
            ended = self._process.poll() is not None
            if "recording process" in self._said():
                return self
            if ended:
                raise self._failure()
            time.sleep(0.01)

    def _said(self):
        with open(self._messages, encoding="utf-8", errors="replace") as messages:
            return messages.read()

    def _failure(self):
        return Error(self._said().strip() or "giltracer ended with %d" % self._process.returncode)

    def stop(self):
        """Detach; returns when the session is complete."""
        self._process.send_signal(signal.SIGINT)
        if self._process.wait():
            raise self._failure()

    @property
    def document(self):
        """The document of giltracer report --json."""
        if self._document is None:
            self._document = json.loads(_run("report", "-q", "-o", os.devnull, "--json", "-",
                                             self.session))
        return self._document

    @property
    def verdict(self):
        return self.document["verdict"]["headline"]

    @property
    def threads(self):
        """The threads of this process, as in the document: name, wait_ns, hold_ns and so on."""
        return [t for t in self.document["threads"] if t["pid"] == os.getpid()]

    @property
    def wait_ns(self):
        """How long threads of this process waited for the GIL, summed over threads."""
        return sum(t["wait_ns"] for t in self.threads)

    def report(self, path):
        """Write the page; returns the table that giltracer prints."""
        return _run("report", "-o", path, self.session)

    def export(self, form, path):
        """Write the recording in a format of giltracer export."""
        _run("export", "-q", "--format", form, "-o", path, self.session)

    def close(self):
        self._folder.cleanup()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exception):
        self.stop()


def record(*options):
    """A context manager that records this process; options are those of giltracer record."""
    return Recording(*options)


def snapshot(path):
    """Write the page of the last seconds of this process, which runs with giltracer --flight or in
    record("--flight", "30s"); returns the table that giltracer prints."""
    return _run("snapshot", "-p", str(os.getpid()), "-o", path)


def load_ipython_extension(shell):
    from . import jupyter

    jupyter.load(shell)
