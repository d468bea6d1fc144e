#!/bin/sh
# SPDX-License-Identifier: MIT
# A request that cannot work fails with one clear message and the documented exit status, and leaves
# nothing behind.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

echo 'print("ran")' >script.py
fake=$top_srcdir/tests/fake

# refuses STATUS ERE NAME COMMAND…: the last line of stderr is the message, and there is no other error.
refuses() {
	want=$1 message=$2
	shift 2
	exits "$want" "$@"
	is "$(grep -c 'giltracer: error: ' err)" 1 '  in one message'
	like "$(tail -n 1 err)" "$message" '  that is clear'
}

# ran, ran_not: the last command ran the program, or did not.
ran() {
	like "$(cat out)" '^ran$' '  after the program ran'
}
ran_not() {
	is "$(cat out)" '' '  before the program ran'
}

record() {
	"$GILTRACER" record -o session --python-trace none "$@"
}

# with NAME=VALUE… -- COMMAND…: run a command with this environment, in a subshell.
with() {
	while [ "$1" != -- ]; do
		export "${1?}"
		shift
	done
	shift
	"$@"
}

refuses 127 'error: record: nosuch.py: No such file' 'a script that is not there' \
	record nosuch.py
refuses 127 'error: record: nosuch: there is no such script or command' 'a word that is no command' \
	record nosuch
refuses 127 'put the command before the options: giltracer report' 'a command behind options' \
	"$GILTRACER" -q report session
refuses 127 'python3: name a script' 'the word python, by habit' record python3 script.py
refuses 126 "$(command -v python3): name a script" 'the same with its folder' \
	record "$(command -v python3)" script.py
refuses 126 '/bin/sh: is not a Python script; .* use -p PID' 'a program in machine code' record /bin/sh script.py
refuses 127 'nosuch/python: No such file' 'an interpreter that is not there' \
	record --python nosuch/python script.py
echo 'not a program' >python && chmod 644 python
refuses 126 'python: Permission denied' 'an interpreter that is not executable' \
	record --python ./python script.py
refuses 125 'a script, -m MODULE or -c CODE is expected' 'no program' record
terminal() {
	python3 -c 'import pty, subprocess, sys
sys.exit(subprocess.call(sys.argv[1:], stdin=pty.openpty()[1]))' "$GILTRACER" record -q -o session "$@"
}
refuses 125 'on standard input, which is a terminal' 'a program that would have to be typed' terminal -
refuses 125 'option -c: needs a program that giltracer starts' 'a text for a program that runs' \
	record -p 1 -c 'print(1)'
refuses 125 'unknown option --nosuch' 'an unknown option' record --nosuch script.py
refuses 125 '--entry and --trace-imports' 'options that exclude each other' \
	record --entry f --trace-imports script.py
refuses 125 'not one of auto, native, viztracer, none' 'a kind of trace that there is not' \
	"$GILTRACER" record -o session --python-trace x script.py
refuses 125 '-o DIR' 'no folder' "$GILTRACER" record script.py
refuses 125 '--import nosuch: No module' 'an import that fails' record --import nosuch script.py
ran_not

# The files for the results.
mkdir full && touch full/mine
refuses 125 'full: exists and contains files that are not part of a session' 'a folder with something in it' \
	"$GILTRACER" record -o full script.py
is "$(ls full)" mine '  is left as it is'
refuses 125 'nosuch/session: No such file' 'a folder that cannot be made' \
	"$GILTRACER" record -o nosuch/session script.py
refuses 125 'nosuch/report.html: No such file' 'a report that cannot be written' \
	"$GILTRACER" -o nosuch/report.html script.py
ran_not
refuses 125 'nosuch/report.json: No such file' 'a document that cannot be written' \
	"$GILTRACER" --json nosuch/report.json script.py
ran_not

refuses 125 'standard output .-.: cannot take two documents' 'two documents to one place' \
	"$GILTRACER" -o - --json - script.py
ran_not
refuses 125 'full: is a folder' 'a report that is a folder' "$GILTRACER" -o full script.py
ran_not
refuses 125 'the report needs a file name' 'a report without a name' "$GILTRACER" -o '' script.py
ran_not
refuses 125 'no room for the recording in .*nosuch .*: No such file' 'a TMPDIR that is not there' \
	with TMPDIR="$scratch/nosuch" -- "$GILTRACER" script.py
ran_not
closed_pipe() {
	(
		"$GILTRACER" -q --python-trace none -o report.html --json - empty.py 2>"$scratch/why"
		echo $? >"$scratch/ended"
	) | :
}
: >empty.py
closed_pipe
is "$(cat ended)" 125 'a document that nobody reads is an error'
like "$(cat why)" 'error: standard output: cannot write: Broken pipe' '  that says so'

# perf.
(
	mkdir bin
	for program in sh cat env; do ln -s "$(command -v $program)" bin/; done
	ln -s "$(cpythons | head -n 1 | cut -d' ' -f2)" bin/python3
)
refuses 125 'perf is not installed .on Debian: apt-get install linux-perf' 'no perf' \
	with PATH="$scratch/bin" -- record --probes uprobes script.py
refuses 125 'perf 5.4.0 is too old: giltracer needs perf 5.10' 'a perf that cannot be controlled' \
	with PATH="$fake:$PATH" FAKE_PERF_VERSION=5.4.0 -- record --probes uprobes script.py
refuses 125 'could not start: No permission to enable.* .giltracer check' 'a perf that may not' \
	with PATH="$fake:$PATH" FAKE_PERF_FAILS=start \
	FAKE_PERF_SAYS='No permission to enable x event.' -- record --probes uprobes script.py
ran_not
refuses 125 'could not start: .*cycles.* is not supported. .this host cannot count it' \
	'a perf that goes on without an event' with PATH="$fake:$PATH" \
	FAKE_PERF_WARNS="Failure to open event 'cycles' on PMU 'cpu' which will be removed.
The cycles event is not supported." -- record -e cycles script.py
ran_not
refuses 125 'could not start: event syntax error' 'an event that there is not' \
	record -e nosuch script.py
ran_not
is "$(ls -d session 2>/dev/null)" '' '  and no folder is left'

# perf ends while the program runs: the program is not disturbed, and the failure is not hidden.
for at in enable end; do
	exits 125 "perf fails at its $at" with PATH="$fake:$PATH" FAKE_PERF_FAILS=$at \
		FAKE_PERF_SAYS='failed to write perf data, error: No space left on device' -- \
		record script.py
	ran
	like "$(cat err)" 'error: perf record .*No space left on device' '  and says why'
done
like "$(json session/session.json 'd["notes"]')" 'No space left' '  in the session too'

# A perf that gets less memory than it asked for.
cat >halves <<EOF
#!/bin/sh
for arg; do
	[ "\${last:-}" != -m ] || [ "\$arg" -le 1024 ] || few=1
	last=\$arg
done
[ -z "\${few:-}" ] || { echo 'Permission error mapping pages.' >&2; exit 255; }
exec "$fake/perf" "\$@"
EOF
mkdir halving && mv halves halving/perf && chmod +x halving/perf
ok 'a perf that may not map so much gets less' with PATH="$scratch/halving:$PATH" \
	FAKE_PERF_LOG="$scratch/log" -- record script.py
ran
like "$(tr '\n' ' ' <log)" ' -m (1024|512|256|128) ' '  by halves'

# A full disk, in a mount namespace of its own.
cat >on-full-disk <<'EOF'
set -e
mkdir disk
mount -t tmpfs -o size=64k tmpfs disk
"$GILTRACER" record --probes uprobes -o disk/session --python-trace none many.py
EOF
printf 'import os\nfor i in range(20000):\n    os.stat("/")\nprint("ran")\n' >many.py
exits 125 'a full disk' unshare -m sh on-full-disk
like "$(cat err)" 'error: .*no room for the recording .*No space left on device' '  is named'
ran
rmdir disk

leaves_nothing
done_testing
