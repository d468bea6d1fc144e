#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that use processes, signals and descriptors, and end in all possible ways, print and end
# exactly as under plain python. semantics.t tests what programs can see of their start.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes
. "$top_srcdir/tests/system/behaves.sh"

python3 "$top_srcdir/tests/system/behaviour.py" || exit 99
read -r version python <<END
$(cpythons | sort -V | grep -v ' /usr/bin' | tail -n 1)
END
[ -n "$python" ] || read -r version python <<END
$(cpythons | tail -n 1)
END
# All are recorded by the library, which is inside the program. Uprobes can disturb what forks, executes, gets
# signals or becomes another user: that is recorded by both.
engine=preload
for program in *.py; do
	behaves "$python" "$program"
done
engine=uprobes
for program in another-user children fork-exit futures handlers segfault stopped thread-os-exit; do
	behaves "$python" $program.py
done

# Descriptors that are closed stay closed for the program; giltracer opens nothing in their place.
cat >std.py <<'END'
import os, sys
def main():
    fds = set(os.listdir("/proc/self/fd")) - {"5000"}
    with open("std.out", "w") as out:
        print(sys.stdin is None, sys.stdout is None, sys.stderr is None, sorted(fds), file=out)
main()
END
# closed ENGINE REDIRECTION
closed() {
	sh -c "\"\$0\" std.py $2" "$python"
	mv std.out plain.out
	sh -c "\"\$0\" record -q -o session --python \"\$1\" --python-trace none --probes $1 std.py $2" \
		"$GILTRACER" "$python"
	is "$(cat std.out)" "$(cat plain.out)" "$1: $2"
}
for which in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
	closed preload "$which"
done
closed uprobes '<&- >&- 2>&-'

leaves_nothing
done_testing
