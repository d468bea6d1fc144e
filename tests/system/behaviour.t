#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs with processes, signals, descriptors and ends of all kinds print and end exactly as under
# plain python; semantics.t has what they see of their start.
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
for program in *.py; do
	behaves "$python" "$program"
done

# Closed descriptors are closed to the program, and nothing of ours takes their place.
cat >std.py <<'END'
import os, sys
def main():
    fds = set(os.listdir("/proc/self/fd")) - {"1000"}
    with open("std.out", "w") as out:
        print(sys.stdin is None, sys.stdout is None, sys.stderr is None, sorted(fds), file=out)
main()
END
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
	sh -c "\"\$0\" std.py $closed" "$python"
	mv std.out plain.out
	sh -c "\"\$0\" record -q -o session --python \"\$1\" --python-trace none std.py $closed" \
		"$GILTRACER" "$python"
	is "$(cat std.out)" "$(cat plain.out)" "$closed"
done

leaves_nothing
done_testing
