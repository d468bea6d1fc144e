#!/bin/sh
# SPDX-License-Identifier: MIT
# Standard input reaches the program unchanged, in both runs if there are two.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

# Each run appends its input to a file.
cat >reads.py <<'EOF'
import hashlib, sys
if __name__ == "__main__":
    data = sys.stdin.buffer.read()
    with open("seen", "a") as f:
        f.write("%d %s\n" % (len(data), hashlib.md5(data).hexdigest()))
EOF
cat >first.py <<'EOF'
import sys
if __name__ == "__main__":
    with open("seen", "a") as f:
        f.write(sys.stdin.readline())
EOF
head -c 3000000 /dev/urandom >input
sum="3000000 $(md5sum <input | cut -d' ' -f1)"

# Without uprobes, which take a second to remove; this test does not depend on how the GIL is recorded.
record() {
	case $* in
	*--state-detect*) "$GILTRACER" record -q -o session --python-trace none --probes preload "$@" ;;
	*) by_library record -q -o session --python-trace none "$@" ;;
	esac
}
from_pipe() {
	cat <input | record "$@"
}
from_file() {
	record "$@" <input
}
# A file of which a part has already been read.
from_middle() {
	(dd bs=1000000 count=1 of=/dev/null 2>/dev/null && record "$@") <input
}
from_null() {
	record "$@" </dev/null
}
closed() {
	record "$@" <&-
}

# reads WANT NAME COMMAND…: every run of the program has seen WANT.
reads() {
	want=$1
	shift
	: >seen
	ok "$@"
	is "$(cat seen)" "$want" '  and reads it all'
}

twice="$sum
$sum"
rest="2000000 $(tail -c 2000000 input | md5sum | cut -d' ' -f1)"
none='0 d41d8cd98f00b204e9800998ecf8427e'
reads "$sum" 'one run, a pipe' from_pipe reads.py
reads "$sum" 'one run, a file' from_file reads.py
reads "$twice" 'two runs, a pipe' from_pipe --state-detect reads.py
reads "$twice" 'two runs, a file' from_file --state-detect reads.py
reads "$sum" 'one run for both, a pipe' from_pipe --state-detect --one-run reads.py
reads "$rest
$rest" 'two runs, a file from where it stands' from_middle --state-detect reads.py
reads "$none
$none" 'two runs, nothing' from_null --state-detect reads.py

# A writer that never ends, and one that waits for an answer before it continues.
endless() {
	yes line 2>/dev/null | record --state-detect first.py
}
reads 'line
line' 'two runs, an endless pipe of which only some is read' endless
mkfifo dialogue
cat >asks.py <<'EOF'
import sys
if __name__ == "__main__":
    print(sys.stdin.readline().strip(), flush=True)
    print(sys.stdin.readline().strip(), flush=True)
EOF
dialogue() {
	exec 3<>dialogue
	(
		echo first
		read -r answer <&3
		echo "$answer again"
	) | record --state-detect asks.py | while read -r line; do
		echo "$line"
		[ "$line" != first ] || echo "$line" >&3
	done
}
ok 'a dialogue' dialogue
is "$(cat out)" 'first
first again' '  comes and goes line by line'

leaves_nothing
done_testing
