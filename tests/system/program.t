#!/bin/sh
# SPDX-License-Identifier: MIT
# The program behaves as without giltracer: output, input, exit status, death by a signal. giltracer reports
# clearly if there is nothing to run or nowhere to write.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

# trace ARGUMENT...
trace() {
	"$GILTRACER" --python-trace none -o report.html "$@"
}

cat >program.py <<'END'
import os, signal, sys
if __name__ == "__main__":
    word = sys.argv[1]
    if word == "echo":
        print("heard", sys.stdin.read().strip(), sys.argv[2:])
    elif word == "exit":
        sys.exit(int(sys.argv[2]))
    elif word == "die":
        os.kill(os.getpid(), int(sys.argv[2]))
    elif word == "raise":
        raise KeyError("of the program")
    elif word == "once":
        with open("runs", "a") as runs:
            runs.write("x")
        print("output")
END

# Both engines have each way to end; what else giltracer does is not the engine's.
# shellcheck disable=SC2086 # words
for how in '--no-state-detect --probes uprobes' '--state-detect --probes preload'; do
	echo something >input
	ok "$how: a program is traced" sh -c "'$GILTRACER' --python-trace none $how \
		-o report.html program.py echo a 'b c' -o <input"
	is "$(cat out)" "heard something ['a', 'b c', '-o']" 'stdin, arguments and stdout are its own'
	exits 7 "$how: the exit status is the program's" trace $how program.py exit 7
	exits 143 "$how: death by SIGTERM passes on" trace $how program.py die 15
	exits 137 "$how: death by SIGKILL too" trace $how program.py die 9
	ok 'and there is a report' test -s report.html
	exits 1 "$how: an exception is the program's" trace $how program.py raise
	like "$(cat err)" "^KeyError: 'of the program'" 'with its traceback'
	is "$(grep -c 'File ' err)" 1 \
		'without frames of ours, and once'
done

rm -f runs
ok 'two passes' trace --probes preload --state-detect program.py once
is "$(cat runs)" xx '--state-detect runs the program twice'
is "$(cat out)" output 'but only the output of one run is seen'
rm -f runs
ok 'one run' trace --state-detect --one-run program.py once
is "$(cat runs)" x '--one-run runs it once'

ok 'a module' by_library --python-trace none -o report.html -m timeit -n 1 pass
like "$(cat out)" 'loop' 'runs as under python -m'

rm -f report.html
exits 127 'a script that is not there' trace no-such-script.py
like "$(cat err)" '^giltracer: error: .*no-such-script\.py' 'is named'
exits 127 'an interpreter that is not there' trace --python /no/such/python program.py exit 0
like "$(cat err)" '^giltracer: error: .*/no/such/python' 'is named'
exits 125 'a report that cannot be written' "$GILTRACER" --python-trace none \
	-o /no/such/folder/report.html program.py exit 0
like "$(cat err)" '^giltracer: error: .*/no/such/folder' 'is named'
exits 125 'a full disk' by_library --python-trace none -o /dev/full program.py exit 0
like "$(cat err)" '^giltracer: error: .*No space left' 'is said'
exits 125 'nothing to run' "$GILTRACER"
like "$(cat err)" '^giltracer: error: ' 'is an error'

# As if Ctrl-C came while the program reports its end to giltracer, in os.read, which waits for the answer:
# before the answer has come, or after it, with a giltracer that continues when the program has ended.
cat >late.py <<'END'
import os, select, signal, socket, sys, threading  # which knows the name
read = os.read
def hold(tracer):
    ended, ends = os.pipe()
    if os.fork() == 0:
        os.close(ends)
        read(ended, 1)
        os.kill(tracer, signal.SIGCONT)
        os._exit(0)
    os.kill(tracer, signal.SIGSTOP)
def interrupted(fd, size):
    os.read = read
    if sys.argv[1] == "after":
        # Room for all messages that follow, which are not read before the program has ended.
        channel = socket.socket(fileno=os.dup(fd))
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        poll = select.poll()  # select() refuses the channel's number
        poll.register(channel, select.POLLIN)
        poll.poll()
        channel.close()
        hold(os.getppid())
    raise KeyboardInterrupt
if __name__ == "__main__":
    sum(range(100000))
    os.read = interrupted
END
for when in before after; do
	ok "Ctrl-C when the program has ended, $when the answer" trace -q --json late.json late.py $when
	is "$(cat err)" '' 'is no traceback of ours'
	is "$(json late.json '[t["name"] for t in d["threads"] if t["main"]]')" "['MainThread']" \
		'and the report knows what it would have known'
done

exits 0 'more words' trace -v program.py exit 0
like "$(cat err)" '^giltracer: debug: started: perf record -o .* -e .*take_gil' 'have the command, to be copied'

echo 'x = (' >wrong.py
exits 1 'a syntax error' trace wrong.py
like "$(cat err)" 'SyntaxError' 'is said'
like "$(cat err)" 'note: the program did not run: Python could not load it' 'with what that means'
unlike "$(cat err)" 'gil wait%|no probe fired|warning|trace-imports' \
	'and without a table of nothing, or advice'
exits 1 'a module that there is not' by_library --python-trace none -o report.html -m nosuchmodule
like "$(cat err)" 'No module named nosuchmodule' 'is said'
unlike "$(cat err)" 'warning|trace-imports' 'without advice'

ok 'a report on standard output' by_library -q --python-trace none -o - program.py exit 0
like "$(head -c 15 out)" '^<!DOCTYPE html>' 'is the page, and nothing else'

mkdir gone
echo 'import os, shutil; shutil.rmtree(os.environ["TMPDIR"])' >remove.py
exits 125 'a program that removes its TMPDIR' env TMPDIR="$PWD/gone" "$GILTRACER" -q \
	--python-trace none -o gone.html remove.py
like "$(cat err)" 'the program removed this folder, and the recording with it .*TMPDIR or --keep' \
	'is told what became of the recording'

leaves_nothing
done_testing
