#!/bin/sh
# SPDX-License-Identifier: MIT
# A free-threaded interpreter that runs: its stacks, whether its GIL is off or on, and what its threads do.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need free-threaded
python=$(free_threaded_python)
program=$top_srcdir/tests/system/nogil-live.py

# start COMMAND…: start the program with this interpreter, and $works; sets $pid, and $tids to what it writes.
works=
start() {
	# shellcheck disable=SC2086 # a word or none
	begun "$@" "$program" ready go $works
	tids=$(cat told)
}

# looks COUNT GILS: print what is wrong with that many looks at the stacks.
looks() {
	# shellcheck disable=SC2086 # three ids
	python3 - "$GILTRACER" "$program" $pid "$1" "$2" $tids <<-'EOF_PY'
		import json, subprocess, sys
		giltracer, program = sys.argv[1:3]
		pid, count, gils, computer, waiter, sleeper = map(int, sys.argv[3:])
		lines = {text: n for n, line in enumerate(open(program), 1)
		         for text in ('# the call', '# the wait') if line.rstrip().endswith(text)}
		wrong, torn, relations = [], 0, set()
		for i in range(count):
		    d = json.loads(subprocess.run([giltracer, 'stacks', '-p', str(pid), '--json'],
		                                  stdout=subprocess.PIPE, check=True).stdout.decode())
		    if (d['gil_known'], d['gils']) != (True, gils):
		        wrong.append('its GIL: %r' % [d['gil_known'], d['gils']])
		    t = {t['tid']: t for t in d['threads']}
		    relations |= {t[tid]['gil'] for tid in t}
		    torn += sum(t['torn'] for t in d['threads'])
		    frames = {tid: [(f['function'], f['line']) for f in t[tid]['frames']] for tid in t}
		    names = [t[tid]['name'] for tid in (pid, computer, waiter, sleeper)]
		    if names != ['MainThread', 'computer', 'waiter', 'sleeper']:
		        wrong.append('names: %r' % names)
		    if not t[computer]['torn'] and frames[computer][1:4] != [('compute', lines['# the call'])] * 3:
		        wrong.append('computer: %r' % frames[computer])
		    if frames[waiter][0] != ('wait', lines['# the wait']):
		        wrong.append('waiter: %r' % frames[waiter])
		    if [f for f, line in frames[sleeper]][:3] != ['Condition.wait', 'Event.wait', 'sleep']:
		        wrong.append('sleeper: %r' % frames[sleeper])
		    if not any(f == 'churn' for tid in frames for f, line in frames[tid]):
		        wrong.append('the thread that starts others is not seen')
		if gils and 'holds' not in relations or not gils and relations != {None}:
		    wrong.append('the GIL: %r' % relations)
		if torn > count:
		    wrong.append('%d stacks changed' % torn)
		print('\n'.join(wrong[:5]), end='')
	EOF_PY
}

start "$python"
is "$(looks 20 0)" '' 'stacks: functions, lines and names, and no GIL'
ok 'as text' "$GILTRACER" stacks -p $pid
like "$(cat out)" 'Its GIL is off: this is a free-threaded build' '  which says so'
ok 'top' "$GILTRACER" top -p $pid -n 1
like "$(cat out)" "the GIL is off; runs: .*computer ${tids%% *} ~[0-9]+% in compute \\(" '  shows what runs'
ok 'samples' "$GILTRACER" record -q -p $pid --sample 200 --duration 1 -o sampled
"$GILTRACER" report sampled -o sampled.html --json sampled.json >text
is "$(json sampled.json '[p["what"] for p in d["samples"]["places"] if p["function"] == "wait"]')" "['lock']" \
	'  know who waits for a lock'
is "$(json sampled.json '[t["running"] > 0.9 * t["samples"] for t in d["samples"]["threads"]
	if t["tid"] == '"${tids%% *}"']')" '[True]' '  and who runs'
like "$(cat text)" '~runnable%' '  in a table'
unlike "$(cat text)" 'gil wait%|has gil%|the GIL  ' '  without a GIL'
unharmed 'off'

start env PYTHON_GIL=1 "$python"
is "$(looks 20 1)" '' 'a GIL that an option turns on has a holder'
ok 'top' "$GILTRACER" top -p $pid -n 1
like "$(cat out)" 'has the GIL: .*~[0-9]+%' '  shows it'
unharmed 'on'

# The library, loaded while the program runs, by a user without any privilege.
unprivileged='setpriv --inh-caps=-all --bounding-set=-all'
joined() {
	# shellcheck disable=SC2086 # words
	$unprivileged env PATH="$top_srcdir/tests/fake/none:$PATH" \
		"$GILTRACER" record -q -p $pid --probes preload --duration 1 -o "$1" 2>err &&
		"$GILTRACER" report "$1" -o "$1.html" --json "$1.json" >"$1.txt" 2>>err
}

line=$(grep -n '# the line' "${program%live.py}join.py" | cut -d: -f1)
program=${program%live.py}join.py
for session in first again works; do
	if [ $session != again ]; then
		[ $session = first ] || unharmed 'joined'
		[ $session = first ] || works=works
		# shellcheck disable=SC2086 # words
		start $unprivileged "$python"
	fi
	ok "the library joins, $session" joined $session
	is "$(json $session.json 'd["python"]["gil"], d["gils"], [c["code"] for c in d["caveats"]]')" \
		"('off', [], ['joined', 'limit'])" '  and there is no GIL'
	is "$(json $session.json 'sorted(t["name"] for t in d["threads"])')" \
		"['MainThread', 'collector', 'reader', 'worker-0', 'worker-1', 'worker-2', 'worker-3']" '  all threads'
	is "$(json $session.json 'sum(t["unknown_ns"] for t in d["threads"])')" 0 '  of which nothing is unknown'
	# A thread may wait already when the library joins: it is not known where that wait began.
	is "$(json $session.json '{(b["of"], b["name"], b["line"]) for b in d["blocked"]
		if b["of"] == "dict" and b["line"]}')" \
		"{('dict', 'cache', $line)}" '  the dict for whose lock they wait, and where'
	is "$(json $session.json 'd["stops"]["collections"] > 0,
		{s["function"] for s in d["stops"]["latest"]}')" "(True, {'collect'})" '  and who stops them'
done
is "$(json works.json '[t["lock_wait_ns"] + t["spinning_ns"] > 0 for t in d["threads"]
	if t["name"] == "MainThread"]')" '[True]' 'a main thread that works waits, too'
unharmed 'joined'

leaves_nothing
done_testing
