#!/bin/sh
# SPDX-License-Identifier: MIT
# A traced program prints, reads and ends exactly as under plain python.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
. "$top_srcdir/tests/system/behaves.sh"

python3 "$top_srcdir/tests/system/semantics.py" || exit 99

# by ENGINE PYTHON ARG…
by() {
	engine=$1
	shift
	behaves "$@"
}

# What is run without a file: -c and standard input.
cat >text.py <<'END'
import os, sys, threading
print(sys.argv, sys.path[:1], sys.flags, getattr(sys, "orig_argv", [])[1:])
print(sorted((k, str(v)) for k, v in globals().items() if k != "__builtins__"))
print(sorted(set(sys.modules) - set(sys.builtin_module_names)), __name__, repr(sys.stdin.read()))
def fails(n):
    return 1 // n
class Kept:
    def __del__(self):
        print("deleted")
kept = Kept()
thread = threading.Thread(target=print, args=("a thread",))
thread.start()
thread.join()
if __name__ == "__main__":
    fails(0)
END
texts() {
	by preload "$1" -c "$(cat text.py)" a -b -- -c
	by preload "$1" -c 'import sys; sys.exit(7)' -m
	by preload "$1" -c 'x = ='
	by preload "$1" -c '
  if True:

	print(1)'
	by preload "$1" -c '
    def f():
        """ä
        b"""
        raise KeyError(f.__doc__)

    f()'
	by preload "$1" -c ''
	cp text.py input
	by preload "$1" - a -b -- -c
	printf '# coding: latin-1\nprint("\344")\nraise SystemExit("ended")\n' >input
	by preload "$1" -
	printf 'x = =\n' >input
	by preload "$1" - x
	: >input
	by preload "$1" -
	printf 'one\ntwo\n' >input
}

# On every interpreter; its start by uprobes, which the kernel takes most of a second to remove.
few() {
	by uprobes "$1" basic.py a -b -- --state-detect
	by uprobes "$1" -m package
	for name in traceback sees sigterm atexit-order; do
		by preload "$1" $name.py
	done
	by preload "$1" -m sees.other
	by preload "$1" folder q
	texts "$1"
}

many() {
	by preload "$1" ./basic.py
	by preload "$1" "$scratch/basic.py"
	by preload "$1" shadow/link.py
	by preload "$1" shadow/script.py
	for name in exit7 exit-message exit-none exit-list exit-raise exit-os traceback-guard \
		traceback-first syntax indent keyboard stdin excepthook threads warns latin future; do
		by preload "$1" $name.py
	done
	# What uprobes could disturb: signals, forks, other programs.
	for name in sigkill sigusr2 processes surroundings fork exec close-all; do
		by "$2" "$1" $name.py
	done
	by "$2" "$1" sees.py
	by none "$1" sees.py
	by "$2" "$1" -m sees
	by preload "$1" sees
	by preload "$1" -c "$(cat sees.py)"
	by preload "$1" -m module x
	by preload "$1" -m package.other
	by preload "$1" -m nosuch
	by preload "$1" -m package.nosuch
	by preload "$1" app.zip q
}

cpythons >pythons
oldest=$(sort -V pythons | head -n 1)
newest=$(sort -V pythons | tail -n 1)
while read -r version python; do
	few "$python"
	case "$version $python" in
	"$oldest") many "$python" preload ;;
	"$newest") many "$python" uprobes ;;
	esac
done <pythons

is "$(cat written)" mine 'a file of a program that closed everything has nothing of ours in it'
leaves_nothing
done_testing
