#!/bin/sh
# SPDX-License-Identifier: MIT
# A free-threaded interpreter, recorded by the library without any privilege: waits for locks by releasing thread,
# stops of the world, and a GIL that is turned on.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need free-threaded cc setpriv
python=$(free_threaded_python)

# Without any privilege, and without perf. An ordinary user may not read everything here.
unprivileged() {
	undisturbed setpriv --inh-caps=-all --bounding-set=-all \
		env PATH="$top_srcdir/tests/fake/none:$PATH" "$@"
}

# recorded DIR ARG...: record a session of nogil.py; the program's output is in DIR.said.
recorded() {
	tap_dir=$1
	shift
	rm -rf "$tap_dir"
	unprivileged "$GILTRACER" record -q --probes preload --python "$python" \
		-o "$tap_dir" "$top_srcdir/tests/system/nogil.py" "$@" >"$tap_dir.said" 2>err &&
		"$GILTRACER" report "$tap_dir" -o "$tap_dir.html" --json "$tap_dir.json" \
			>"$tap_dir.txt" 2>>err
}

# of DIR EXPRESSION: evaluate it over the document d and the program's output w; t(NAME) is a thread,
# by(WAITER, RELEASER) the wait for locks that is charged, stops(WAITER, RELEASER) that for the world.
of() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1] + ".json"))
w = json.loads(open(sys.argv[1] + ".said").read().splitlines()[-1])
def t(name):
    return [t for t in d["threads"] if t["name"] == name][0]
def by(waiter, who, stop=False):
    ids = t(waiter)["tid"], t(who)["tid"] if who else None
    return sum(b["wait_ns"] for b in d["lock_blame"]
               if (b["waiter_tid"], b["released_by_tid"], b["kind"] == "stop") == (*ids, stop))
def stops(waiter, who):
    return by(waiter, who, stop=True)
def blocked(what, function):
    return [b for b in d["blocked"] if b["what"] == what and b["function"] == function]
def known():
    return all(t["hold_ns"] + t["wait_ns"] + t["free_wait_ns"] + t["no_gil_ns"] + t["unknown_ns"] == t["total_ns"]
               for t in d["threads"])
def waits(of):
    return sum(l["wait_ns"] + l["spin_ns"] for l in d["locks"] if l["of"] == of)
def held(*names):
    waits = [(t(n)["lock_wait_ns"], t(n)["spinning_ns"], w[n]) for n in names]
    return all(60e6 <= wait <= measured for wait, _, measured in waits) or waits
def start():
    return json.load(open(sys.argv[1] + "/session.json"))["passes"][0]["start_ns"]
def near(a, b):
    return abs(a - b) <= max(0.02 * b, 2e6) or "%d, not %d" % (a, b)
print(eval("(%s)" % sys.argv[2]))' "$@" 2>&1
}

# Results that depend on timing are measured again if they are wrong, since the host may be busy.
tried() {
	for _ in 1 2 3; do
		recorded "$1" "$1" || break
		[ "$(of "$1" "$2")" != True ] || break
		retried "$3" "$(of "$1" "$2")"
	done
	is "$(of "$1" "$2")" True "$3"
}

tried locks 'near(t("second")["lock_wait_ns"], w["second"]) is True and
	(t("MainThread")["lock_wait_ns"] < 20e6 or "who waits for a notice waits for a lock") and
	(t("second")["lock_waits"] == 1 or "it is not one wait") and
	(by("second", "MainThread") >= 80e6 and by("second", "first") >= 45e6 or
		"it is not charged first to the one that had the lock, then to the other")' \
	'a wait for a lock is as long as the program measures it'
is "$(of locks 'd["python"]["free_threaded"], d["python"]["gil"], d["gils"], d["blame"]')" \
	"(True, 'off', [], [])" 'there is no GIL'
is "$(of locks 'known()')" True 'hold + wait + no GIL + unknown = total'
is "$(of locks '[c["code"] for c in d["caveats"] if c["code"] in ("no-gil-events", "broken-identity")]')" \
	'[]' 'and no caveat about one'
is "$(of locks 'by("second", "MainThread") + by("second", "first") + by("second", None) ==
	t("second")["lock_wait_ns"]')" True 'all of it is charged to who released the lock'
is "$(of locks '[(b["of"], b["file"][-8:]) for b in blocked("lock", "wait")]')" \
	"[('_thread.lock', 'nogil.py')]" 'in which function, and for what'
like "$(cat locks.txt)" 'it has no GIL' 'the verdict: no GIL'
like "$(cat locks.txt)" '2 threads waited .* of their time .* for one _thread.lock' 'but locks'
unlike "$(cat locks.txt)" 'has gil%' 'no table of a GIL'
like "$(cat locks.txt)" 'lock wait%' 'but one of locks'
like "$(cat locks.html)" '"locks":true' 'and so on the page'

tried objects '50e6 < t("append")["lock_wait_ns"] <= w["append"]' 'an object has a lock, too'
line=$(grep -n 'the line that waits' "$top_srcdir/tests/system/nogil.py" | cut -d: -f1)
is "$(of objects '[(b["of"], b["line"]) for b in blocked("lock", "append")]')" \
	"[('list', $line)]" 'whose, and in which line it is waited for'
is "$(of objects '[b["name"] for b in blocked("lock", "append")]')" \
	"['shared']" 'and which variable refers to it'
is "$(of objects 'by("append", "sort") > 0.9 * t("append")["lock_wait_ns"]')" True \
	'until the other let go'

# The lock is held for 60 ms more when all sleep.
line=$(grep -n '# the one that waits' "$top_srcdir/tests/system/nogil.py" | cut -d: -f1)
tried dicts 'held("set")' 'a dict has one'
is "$(of dicts '[(b["of"], b["line"]) for b in blocked("lock", "Held.asleep.<locals>.wait") if b["of"] == "dict"]')" \
	"[('dict', $line)]" '  whose, and in which line it is waited for'
is "$(of dicts 'by("set", "update") >= 60e6')" True '  until the other let go'
tried nested 'held("extend", "append")' \
	'a call has the lock of one object and waits for that of another'
is "$(of nested 'by("extend", "sort") >= 60e6, by("append", "extend") >= 60e6, by("append", "sort")')" \
	'(True, True, 0)' '  each wait ends by the thread that had the lock'
is "$(of nested '[c["tid"] == t("sort")["tid"] for c in d["lock_chains"]
	if c["through"] and c["wait_ns"] >= 60e6]')" \
	'[True]' '  and the chain leads to the one that did not wait'

tried counter 'held("first", "second")' \
	'a lock of an object of the program'
line=$(grep -n '# the lock$' "$top_srcdir/tests/system/nogil.py" | cut -d: -f1)
like "$(cat counter.txt)" "for one _thread.lock \(.self.lock. of Counter \(nogil.py:$line\)\), mostly in Counter.add" \
	'  the verdict has its name, and where it is made'

# Between two stops, and after them, a collection does other work.
tried world '"%d of %d" % (blocked("stops others", "world")[0]["total_ns"], w["collect"])
	if not 0.3 * w["collect"] < blocked("stops others", "world")[0]["total_ns"] <= w["collect"]
	else t("idle")["stopped_ns"] == 0 and t("idle")["lock_wait_ns"] < 20e6 or "who sleeps anyway stands"' \
	'gc.collect stops the world for nearly all that it takes'
is "$(of world 't("compute-1")["stops"] >= 5 and t("compute-2")["stops"] >= 5')" True \
	'each time, others stand'
is "$(of world 'all(0 < stops(n, "MainThread") <= t("MainThread")["stopping_ns"]
	for n in ("compute-1", "compute-2"))')" \
	True 'until who stopped them lets them go on'
is "$(of world 'all(stops(n, "MainThread") + stops(n, None) == t(n)["stopped_ns"]
	for n in ("compute-1", "compute-2"))')" \
	True 'and has let them'
is "$(of world 'len(blocked("stopped", "compute")), len(blocked("stops others", "world"))')" \
	'(1, 1)' 'in which functions'
like "$(cat world.txt)" 'stopped all other threads for' 'the verdict says so'
tried crowd '(lambda all, delay: 0.95 * (all - delay) <= waits("list") <= all or
	"%d, not %d, of which %d without a CPU" % (waits("list"), all, delay))(
	*(sum(w[of + "sort-%d" % i] for i in range(4)) for of in ("", "delay of ")))' \
	'threads that wait for one object, asleep or spinning'
is "$(of crowd 'known()')" True 'all states add up'
is "$(of crowd '[(l["of"], l["name"], l["spins"] >= 1) for l in d["locks"] if l["of"] == "list"]')" \
	"[('list', 'shared', True)]" 'the first one to wait tries without sleeping'
is "$(of crowd 'sum(t["spinning_ns"] for t in d["threads"]) == sum(l["spin_ns"] for l in d["locks"]) > 0')" \
	True 'for which time is known'
like "$(cat crowd.txt)" '[234] threads waited [0-9.]+ % of their time \(.*\) for the lock of one list \(shared\)' \
	'the verdict says for what'
like "$(cat crowd.txt)" 'mostly in sort_in_crowd \(nogil.py:[0-9]+\)' 'and where'

# The world cannot stop before the call has ended in which the straggler is when the stop is requested, and it
# has stopped before the collection is over, however late each thread gets a CPU. The straggler says that it has stopped
# before it sleeps; if it gets no CPU in between, it is unknown which thread was the last.
line=$(grep -n '  # the call' "$top_srcdir/tests/system/nogil.py" | cut -d: -f1)
tried stop 'any(s["last"] for s in d["stops"]["latest"]) and (lambda at, stopped:
	[1 for call in w["calls"] if call[0] <= at < call[1] <= stopped] and
	[1 for began, ended in w["collections"] if began <= at and stopped <= ended] and True or
	(at, stopped, w))(*[start() + d["stops"]["latest"][0]["at_ns"] + n
	for n in (0, d["stops"]["latest"][0]["waiting_ns"])])' \
	'how long a stop waits for the last thread'
is "$(of stop '{(s["last"]["tid"] == t("straggler")["tid"], s["last"]["function"], s["last"]["line"], s["collection"])
	for s in d["stops"]["latest"] if s["last"]}')" "{(True, 'straggle', $line, True)}" \
	'which thread that is, what it runs, and why the world is stopped'
is "$(of stop 'sum(l["waiting_ns"] for l in d["stops"]["last_to_stop"]) == d["stops"]["waiting_ns"],
	[(l["tid"] == t("straggler")["tid"], l["function"], l["line"]) for l in d["stops"]["last_to_stop"] if l["tid"]]')" \
	"(True, [(True, 'straggle', $line)])" '  and all stops, by that'
like "$(cat stop.txt)" 'last to stop +in +times +waited for ms' '  in a table'
who=$(of stop "d['stops']['latest'][0]['last'] and
	': thread straggler was the last, in straggle [(]nogil.py:${line}[)]' or '[.]'")
like "$(cat stop.txt)" "until all threads had stopped took [0-9.]+ ms$who" 'the verdict says so'

exits 3 'a condition on the waits' "$GILTRACER" report -q locks -o locks.html \
	--fail-on "lock_wait>=$(of locks 'sum(t["lock_wait_ns"] for t in d["threads"])')ns"
like "$(cat err)" "lock_wait is [0-9.]+ ms" 'says what it is'
exits 0 'that is not true' "$GILTRACER" report -q locks -o locks.html \
	--fail-on "lock_wait>$(of locks 'sum(t["lock_wait_ns"] for t in d["threads"])')ns"

ok 'waits are stacks, too' "$GILTRACER" report -q locks -o locks.html --export folded-waits=folded
like "$(cat folded)" '^second .*;wait ' 'of the function that waits'
is "$(awk '/^second / { n += $NF } END { print n }' folded)" "$(of locks 't("second")["lock_wait_ns"]')" \
	'as long as it waits'

export PYTHON_GIL=1
recorded forced gil
unset PYTHON_GIL
is "$(of forced 'd["python"]["gil"], len(d["gils"]), known()')" "('forced', 1, True)" \
	'a GIL that an option turns on'
is "$(of forced 'all(t(n)["wait_ns"] > 10e6 and t(n)["hold_ns"] > 10e6 for n in ("spin-1", "spin-2"))')" \
	True 'is held and waited for'
like "$(cat forced.txt)" 'PYTHON_GIL=1' 'the verdict says why it is on'
like "$(cat forced.txt)" 'No module that was imported needs it: without that option, it would be off' '  and what for'

# compiled OUTPUT SOURCE [FLAG...]: compile with the interpreter's headers.
compiled() {
	tap_out=$1
	tap_source=$2
	shift 2
	# shellcheck disable=SC2046 # flags
	cc -w "$@" $(include_flags "$python") -o "$tap_out" "$tap_source"
}

ok 'the headers have the layout' compiled layout "$top_srcdir/tests/system/nogil-layout.c"
./layout >want
while read -r line; do
	cat "$top_srcdir/giltracer/preload/nogil.c" "$top_srcdir/giltracer/preload/calls.c" |
		grep -F "$line" >found || echo "$line"
done <want >missing
is "$(cat missing)" '' 'that the library has for them'

cat >old.c <<'EOF'
#include <Python.h>
static struct PyModuleDef def = { PyModuleDef_HEAD_INIT, "old_extension", NULL, -1, NULL };
PyMODINIT_FUNC PyInit_old_extension(void) { return PyModule_Create(&def); }
EOF
cat >other.c <<'EOF'
#include <Python.h>
static PyModuleDef_Slot slots[] = {
#ifdef DECLARES
	{ Py_mod_gil, Py_MOD_GIL_NOT_USED },
#endif
	{ 0, NULL }
};
static struct PyModuleDef def = { PyModuleDef_HEAD_INIT, "other", NULL, 0, NULL, slots };
PyMODINIT_FUNC INIT(void) { return PyModuleDef_Init(&def); }
EOF
ok 'an extension that does not declare that it runs without the GIL' \
	compiled old_extension.so old.c -shared -fPIC
ok 'one of another kind' compiled other.so other.c -shared -fPIC -DINIT=PyInit_other
ok 'one that does' compiled modern.so other.c -shared -fPIC -DINIT=PyInit_modern -DDECLARES
export PYTHONPATH="$PWD"
for when in early late; do
	recorded $when gil $when
	line=$(grep -n "# the import, $when" "$top_srcdir/tests/system/nogil.py" | cut -d: -f1)
	is "$(of $when 'd["python"]["gil_module"]')" old_extension \
		"the import that turns the GIL on, $when"
	is "$(of $when '[(m["module"], m["line"] - '"$line"') for m in d["python"]["gil_modules"]]')" \
		"[('old_extension', 0), ('other', 1)]" '  and another one that would, with their lines'
	like "$(cat $when.txt)" \
		"does not declare that it works without one: old_extension, imported by .*nogil.py:$line\)" \
		'  in the verdict'
	like "$(cat $when.txt)" "need it, too: other, imported by .*nogil.py:$((line + 1))\)" '  both'
	is "$(of $when 'len(d["gils"]), known()')" '(1, True)' 'and there is a GIL then'
done
is "$(of early 'd["python"]["gil"]')" on 'which is on when tracing starts'
is "$(of late 'd["python"]["gil"]')" off 'or not yet'
recorded off gil modern
is "$(of off 'd["python"]["gil"], d["gils"], [t["hold_ns"] for t in d["threads"]]')" \
	"('off', [], [0, 0, 0])" 'the import of a module that works without leaves it off'
is "$(of off 'd["python"]["gil_module"], d["python"]["gil_modules"]')" '(None, [])' '  and is not listed'
unset PYTHONPATH

# As in most downloaded builds: only the functions that CPython exports have symbols.
cp -R "$(dirname "$(dirname "$python")")" stripped
strip stripped/bin/python3
python=$PWD/stripped/bin/python3
ok 'an interpreter without symbols' recorded bare world
is "$(of bare 'all(t(n)["stopped_ns"] > 0 and stops(n, "MainThread") > 0 for n in ("compute-1", "compute-2"))')" \
	True '  who stood, and until whom'

leaves_nothing
done_testing
