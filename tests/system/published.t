#!/bin/sh
# SPDX-License-Identifier: MIT
# From 3.13 on, CPython publishes its offsets: a version without a file in probes/ is recorded and read as one
# that has it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

# A giltracer without the definitions of these versions.
mkdir bin tree
cp -r "$top_srcdir/probes" tree/probes
rm tree/probes/3.1[3-9]*.yaml
ln -s "$top_srcdir/share" tree/share
cp "$GILTRACER" bin/giltracer
printf '%s\n' "$top_builddir" "$PWD/tree" >bin/build-tree
without=$PWD/bin/giltracer

cat >work.py <<'END'
import threading

def work():
    for i in range(20):
        spin()

def spin():
    for i in range(200000):
        pass

if __name__ == "__main__":
    threads = [threading.Thread(target=work, name="worker") for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
END

# of FILE EXPRESSION: print an expression over the document d and its workers.
of() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
workers = [t for t in d["threads"] if t["name"].startswith("worker")]
print(eval(sys.argv[2]))' "$1" "$2"
}

every_cpython interpreters
while read -r version python <&3; do
	case $version in 3.1[3-9]) ;; *) continue ;; esac
	rm -rf session
	ok "$version, $python: recorded without a definition" "$without" record -q --probes preload \
		--python "$python" --python-trace native -o session work.py
	"$without" report -q --json new.json -o new.html session
	is "$(of new.json 'len(workers), all(t["hold_ns"] > 0 for t in workers)')" '(2, True)' \
		'  its threads hold the GIL'
	like "$(cat new.json)" '"spin"' '  in functions that are named'
	"$without" dump --calls session/gil.preload >calls
	is "$(grep -c 'spin' calls)" 40 '  with all their calls'
	ok '  probes are placed' "$without" probes --python "$python"
	cp out new
	ok '  as with a definition' "$GILTRACER" probes --python "$python"
	is "$(sed 's/^group .*//' new)" "$(sed 's/^group .*//' out)" '  at the same places'

	begun "$python" "$top_srcdir/tests/system/live.py" ready go
	# shellcheck disable=SC2046 # three ids
	is "$(python3 "$top_srcdir/tests/system/stacks-live.py" "$without" $pid $(cat told) 5)" '' \
		'  and it is read while it runs: holder, waiter and sleeper, with function, file and line'
	unharmed "$version"
done 3<interpreters
done_testing
