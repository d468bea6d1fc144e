#!/bin/sh
# SPDX-License-Identifier: MIT
# The Python package: record(), the pytest plugin in a real pytest, the magic in a real kernel.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes package-tools
python=$tap_venv/bin/python
PYTHONPATH=$top_srcdir/share/package PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE

cat >work.py <<'END'
import threading, time
def spin(together, seconds):
    together.wait()
    until = time.time() + seconds
    while time.time() < until:
        pass
def compete(seconds, n=3):
    together = threading.Barrier(n)
    workers = [threading.Thread(target=spin, args=(together, seconds)) for _ in range(n)]
    [w.start() for w in workers]
    [w.join() for w in workers]
END

cat >own.py <<'END'
import os, giltracer, work
with giltracer.record("--python-trace", "none") as r:
    work.compete(0.3)
assert "GIL" in r.verdict or "CPU" in r.verdict, r.verdict # the latter on a busy machine
assert r.wait_ns > 1e8 and len(r.threads) >= 3, (r.wait_ns, r.threads)
assert "gil wait%" in r.report("page.html")
r.export("csv", "spans.csv")
assert os.path.getsize("page.html") > 50000 and os.path.getsize("spans.csv") > 1000
folder = os.path.dirname(r.session)
r.close()
assert not os.path.exists(folder)
try:
    giltracer.record("--no-such-option").start()
except giltracer.Error as error:
    assert "unknown option --no-such-option" in str(error)
else:
    raise AssertionError("a wrong option is an error")
END
ok 'with giltracer.record()' "$python" own.py

cat >test_it.py <<'END'
import pytest, threading, work
def test_alone():
    work.spin(threading.Barrier(1), 0.1)
def test_together():
    work.compete(0.3)
def test_lock():
    import time
    lock = threading.Lock()
    def hold():
        with lock:
            time.sleep(0.05)
    threads = [threading.Thread(target=hold) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
@pytest.mark.gil_wait(max=0.05)
def test_too_much():
    work.compete(0.3)
@pytest.mark.gil_wait(max=30)
def test_enough():
    work.compete(0.1)
@pytest.mark.gil_wait(max=0.0)
def test_fails_itself():
    assert False, "its own reason"
@pytest.mark.parametrize("odd", ["a.b::c[<\x1b&\"é]"])
def test_last(odd, record_property):
    record_property("own", "pending 0")
    work.compete(0.2)
END
pytest() {
	"$python" -m pytest -p giltracer.pytest_plugin -p no:cacheprovider -q "$@"
}
exits 1 'pytest --giltracer' pytest --giltracer --junitxml junit.xml test_it.py
cp out printed
like "$(cat printed)" '^2 failed, 5 passed' 'the two that have to fail do'
like "$(cat printed)" '^its threads waited [0-9.]+ s for the GIL, more than 0.05 s; most' 'one for its waiting'
like "$(cat printed)" 'its own reason' 'one for its own reason'
like "$(cat printed)" '=== waiting for the GIL ===' 'there is a summary'
like "$(cat printed)" ' s  test_it.py::test_together  \(held by .* in spin \(work.py:[0-9]*\)\)' \
	'with the thread and the function that held it'
sed -n '/=== what costs time/,$p' printed >findings
# The findings of all recordings, those of the test that failed for its waiting first.
like "$(cat printed)" '=== what costs time ===' 'there are findings'
is "$(grep -o 'in test_it.py::.*' findings | head -n 1)" \
	'in test_it.py::test_too_much (failed)' 'the first is of the test that failed for its waiting'
like "$(cat findings)" '^  +[0-9.]+ s  .*spin.*work.py' 'it names the function and its file'
like "$(cat findings)" '^  +in test_it.py::test_together$' 'those of others follow'
cat >junit.py <<'END'
import xml.etree.ElementTree as tree
found = {c.get("name"): {p.get("name"): p.get("value") for p in c.iter("property")}
         for c in tree.parse("junit.xml").iter("testcase")}
waits = {name: int(p["gil_wait_ns"]) for name, p in found.items()}
assert len(waits) == 7, waits
(last,) = (p for name, p in found.items() if name.startswith("test_last["))
assert last["own"] == "pending 0" and int(last["gil_wait_ns"]) > 5e7, last
assert waits["test_together"] > 1e8 > waits["test_alone"], waits
assert waits["test_too_much"] > 5e7, waits
assert "gil_holder" in found["test_together"], found
assert found["test_together"]["gil_function"].startswith("spin (work.py:"), found
END
ok 'and properties' "$python" junit.py
# Waits for locks are recorded by the library.
ok 'pytest --giltracer without perf' no_perf "$python" -m pytest -p giltracer.pytest_plugin -p no:cacheprovider -q \
	--giltracer --junitxml locks.xml -k 'test_lock or test_alone' test_it.py
like "$(cat out)" '=== waiting for locks ===' 'there is a summary of waits for locks'
like "$(cat out)" ' 0\.[1-9][0-9]* s  test_it.py::test_lock  \(in .*hold \(test_it.py:[0-9]*\)\)' \
	'with the function that waits for one'
cat >locks.py <<'END'
import xml.etree.ElementTree as tree
found = {c.get("name"): {p.get("name"): p.get("value") for p in c.iter("property")}
         for c in tree.parse("locks.xml").iter("testcase")}
# One of the three waits 50 ms, one 100 ms; each at first for a CPU, perhaps.
assert int(found["test_lock"]["lock_wait_ns"]) > 9e7 > int(found["test_alone"]["lock_wait_ns"]), found
assert "hold (test_it.py:" in found["test_lock"]["lock_function"], found
END
ok 'and properties of it' "$python" locks.py
unlike "$(cat "$top_srcdir/share/package/giltracer/pytest_plugin.py")" '_pytest' 'by public means'
ok 'without the option and the mark nothing is recorded' pytest -k test_alone test_it.py
unlike "$(cat out)" 'waiting for the GIL' '  and nothing shown'

# A giltracer that fails the first time it is called.
cat >fails-once <<END
#!/bin/sh
[ -e tried ] && exec $GILTRACER "\$@"
touch tried
echo 'no luck' >&2
exit 1
END
chmod +x fails-once
cat >test_two.py <<'END'
import pytest, work
def test_unrecorded():
    pass
@pytest.mark.gil_wait(max=30)
def test_marked():
    pass
END
ok 'a recording that could not begin' \
	env GILTRACER="$PWD/fails-once" "$python" -m pytest -p giltracer.pytest_plugin \
	-p no:cacheprovider -q --giltracer --junitxml two.xml test_two.py
like "$(cat out)" '^giltracer: no luck' '  is in the summary'
like "$(cat out)" ' s  test_two.py::test_marked' '  a later test has a result'
unlike "$(cat out)" 'test_unrecorded' '  but not the one that was not recorded'
cat >two.py <<'END'
import xml.etree.ElementTree as tree
for case in tree.parse("two.xml").iter("testcase"):
    names = [p.get("name") for p in case.iter("property")]
    assert ("gil_wait_ns" in names) == (case.get("name") == "test_marked"), (case.get("name"), names)
END
ok '  nor has it a property' "$python" two.py

# One that says more than fits into a pipe, and then goes on.
mkfifo went-on
cat >talks <<'END'
#!/bin/sh
trap '' INT
echo 'giltracer: recording process' >&2
head -c 300000 /dev/zero | tr '\0' x >&2
echo >went-on
echo 'that was all' >&2
exit 3
END
chmod +x talks
cat >listens.py <<'END'
import giltracer
r = giltracer.record().start()
open("went-on").read()
try:
    r.stop()
except giltracer.Error as error:
    assert str(error).endswith("that was all") and len(str(error)) > 300000, len(str(error))
else:
    raise AssertionError("its exit status is an error")
END
ok 'messages do not stop it, however many' env GILTRACER="$PWD/talks" "$python" listens.py

# A private Jupyter kernel, with its user's folders in the scratch folder.
HOME=$scratch IPYTHONDIR=$scratch/ipython JUPYTER_PLATFORM_DIRS=0
export HOME IPYTHONDIR JUPYTER_PLATFORM_DIRS
ok '%%giltracer and %giltracer in a notebook' "$python" "$top_srcdir/tests/system/notebook.py"

# The folder that pip installs from is as it was. This Python has setuptools, so nothing is downloaded.
if want wheel 'pip install'; then
	cp -R "$top_srcdir/share/package" source
	find source -name __pycache__ -prune -exec rm -rf {} +
	find source | sort >before
	ok 'pip install' "$python" -m pip install -q --no-build-isolation --no-deps --no-index --target target ./source
	is "$(find source | sort | diff before -)" '' '  leaves nothing in the source folder'
	ok '  installs the package' test -r target/giltracer/pytest_plugin.py
	like "$(cat target/*.dist-info/entry_points.txt)" 'giltracer = giltracer.pytest_plugin' '  and the plugin'
fi

leaves_nothing
done_testing
