#!/bin/sh
# SPDX-License-Identifier: MIT
# Tracing starts where it should: at the guard's body, at main(), at a function, or at once.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

# The programs write the time at each place; every place after the start is traced.
cat >marks.py <<'EOF'
import time
def mark(name):
    with open("marks", "a") as f:
        f.write("%s %d\n" % (name, time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9))
EOF
cat >guard.py <<'EOF'
from marks import mark
mark("import")
def main():
    mark("main")
class A:
    def method(self):
        """Documented."""
        mark("method")
if __name__ == "__main__":
    mark("guard")
    main()
    A().method()
EOF
cat >nested.py <<'EOF'
from marks import mark
mark("import")
try:
    if "__main__" == __name__ and True:
        mark("guard")
finally:
    mark("end")
EOF
cat >call.py <<'EOF'
from marks import mark
import sys
def main():
    mark("main")
mark("import")
if True:
    sys.exit(main())
EOF
cat >imported.py <<'EOF'
from marks import mark
mark("import")
from helper import main
mark("imported")
main()
EOF
cat >helper.py <<'EOF'
from marks import mark
mark("helper")
def main():
    mark("main")
EOF
cat >plain.py <<'EOF'
from marks import mark
mark("import")
EOF
cat >never.py <<'EOF'
from marks import mark
mark("import")
if __name__ == "__main__" and False:
    mark("guard")
EOF
mkdir package && echo >package/__init__.py && cp guard.py package/__main__.py

# starts BEFORE AFTER NAME ARG…: BEFORE is the last mark that is not traced, AFTER is the first one that
# is; - means none.
starts() {
	before=$1 after=$2 name=$3
	shift 3
	rm -f marks
	case $engine in
	preload) run by_library record -o session --python "$python" --python-trace none "$@" ;;
	*) run "$GILTRACER" record -o session --python "$python" --python-trace none "$@" ;;
	esac
	is "$status $(json session/session.json '(lambda start, marks:
		" ".join(([n for n, t in marks if t < start] or ["-"])[-1:] +
			([n for n, t in marks if t > start and start] or ["-"])[:1]))(
		d["passes"][0]["start_ns"],
		[(l.split()[0], int(l.split()[1])) for l in open("marks")])')" \
		"0 $before $after" "$version $name" || show_output
}

# Where it should start is the same for every engine: by uprobes, one of each kind on the newest.
check() {
	starts import guard 'the guard of a module' -m package
	starts import main 'no guard: the call of main()' call.py
	starts - import 'neither: the first line' plain.py
	starts guard main '--entry' --entry main guard.py
}
more() {
	starts import guard 'the body of the guard' guard.py
	starts import guard 'a guard inside something, the other way round' nested.py
	starts imported main 'no guard: the call of a main() from elsewhere' imported.py
	starts - import '--trace-imports' --trace-imports guard.py
	starts main method '--entry, a method' --entry A.method guard.py
	starts imported main '--entry, of a module' --entry helper:main imported.py
	starts helper import '--import' --import helper plain.py
}

cpythons | sort -V | sed -n '1p;$p' >ends
newest=$(tail -n 1 ends)
while read -r version python; do
	engine=preload
	more
	[ "$newest" != "$version $python" ] || engine=uprobes
	check
done <ends
python=${newest#* }
engine=preload

starts - - 'a guard that is never reached' never.py
like "$(cat err)" 'ended before tracing started' '  is told of'
starts - - '--entry of a function that there is not' --entry nosuch plain.py
like "$(cat err)" 'no function nosuch in .*plain.py: nothing was traced' '  is told of'
starts - - '--entry of a function that a module has not' --entry helper:nosuch imported.py
like "$(cat err)" 'no function nosuch in the source of module helper' '  is told of'

# Line numbers do not change when statements are inserted into the tree.
cat >lines.py <<'EOF'
import sys
def main():
    return sys._getframe().f_lineno, sys._getframe(1).f_lineno
if __name__ == "__main__": print(main())
EOF
ok 'lines' by_library record -q -o session --python-trace none lines.py
is "$(cat out)" '(3, 4)' '  are those of the file'

leaves_nothing
done_testing
