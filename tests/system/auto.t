#!/bin/sh
# SPDX-License-Identifier: MIT
# Without --probes, a failing engine is replaced by another one: uprobes that cannot be found, placed or
# inserted by the library, and a library that cannot be loaded by samples. One line says why, and the
# program runs once.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes unshare gcc setpriv
. "$top_srcdir/tests/system/prefix.sh"

python=$(cpythons | sed -n '1s/^[^ ]* //p')
cat >spin.py <<'EOS'
import threading
print("imported")

def spin():
    x = 0
    for i in range(2000000):
        x += i

if __name__ == "__main__":
    threads = [threading.Thread(target=spin, name="spinner") for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    raise SystemExit(7)
EOS

# told: the lines of ours that name an engine.
told() {
	grep -E '^giltracer: (GIL events|samples) ' err
}
# by_the_library WHAT WHY COMMAND...: what it records is by the library, for this reason.
by_the_library() {
	what=$1 why=$2
	shift 2
	rm -f got.json
	exits 7 "$what" "$@" --python-trace none --json got.json -o got.html spin.py
	is "$(cat out)" imported '  the program runs once'
	like "$(told)" "^giltracer: GIL events by a preloaded library .*because uprobes cannot be used: .*$why" \
		'  the library records, and one line says why'
	is "$(told | wc -l)" 1 '  only one'
	is "$(json got.json '[t["holds"] > 0 for t in d["threads"] if t["name"] == "spinner"]')" '[True, True]' \
		'  the GIL is recorded'
}
# by_samples WHAT WHY COMMAND...: or by samples.
by_samples() {
	what=$1 why=$2
	shift 2
	rm -f got.json
	exits 7 "$what" "$@" --sample 500 --json got.json -o got.html spin.py
	is "$(cat out)" imported '  the program runs once'
	like "$(told | tail -n 1)" "^giltracer: samples of the stacks instead of GIL events: .*$why" \
		'  samples are taken, and one line says why'
	is "$(json got.json 'd["samples"]["count"] > 0')" True '  the report has them'
}

# with_events FILE COMMAND...: with this file in place of the kernel's.
cat >with-events <<'EOS'
mount --bind "$1" "$2/uprobe_events" || exit 99
shift 2
exec "$@"
EOS
with_events() {
	file=$1
	shift
	unshare -m sh with-events "$file" "$tracefs" "$GILTRACER" --python "$python" "$@"
}
by_the_library 'probes that cannot be placed' 'uprobe_events' with_events /dev/full
exits 125 '  --probes uprobes insists' with_events /dev/full --probes uprobes spin.py
by_the_library 'probes that are accepted, and are not there' '.' with_events /dev/null
exits 125 '  --probes uprobes insists' with_events /dev/null --probes uprobes spin.py

# An interpreter whose probes are not known.
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
mkdir -p data/probes
echo 'schema: 99' >"data/probes/$version.yaml"
by_the_library 'probes that cannot be found' 'unknown schema' \
	env GILTRACER_DATADIR="$scratch/data" "$GILTRACER" --python "$python"
exits 125 '  --probes uprobes insists' env GILTRACER_DATADIR="$scratch/data" "$GILTRACER" \
	--python "$python" --probes uprobes spin.py

# A perf that gives up.
cat >perf <<'EOS'
#!/bin/sh
for word; do
	case $word in *take_gil*) echo 'strange event' >&2; exit 3 ;; esac
done
exec "$real" "$@"
EOS
chmod +x perf
with_perf() {
	env real="$(command -v perf)" PATH="$scratch:$PATH" "$GILTRACER" --python "$python" "$@"
}
by_the_library 'a perf that gives up' 'perf record .*strange event' with_perf
exits 125 '  --probes uprobes insists' with_perf --probes uprobes spin.py

# Without permission for uprobes, where the library cannot be loaded either.
denied() {
	setpriv --bounding-set=-sys_admin,-perfmon "$GILTRACER" "$@"
}
printf '#!/bin/sh\nexec env -i %s "$@"\n' "$python" >cleared
chmod +x cleared
by_samples 'a wrapper that clears the environment' 'the library was not loaded into the program' \
	denied --python "$scratch/cleared"
is "$(told | wc -l)" 2 '  after the attempt to load the library'

if static=$(static_python "$scratch/static" "$python" -static 2>/dev/null); then
	by_samples 'a static interpreter' 'is linked statically' denied --python "$static"
	is "$(told | wc -l)" 1 '  in one line'
	exits 125 '  --probes preload insists' "$GILTRACER" --probes preload --python "$static" spin.py
	ok '  with permission, uprobes record it' sh -c '"$@"; [ $? -eq 7 ]' sh "$GILTRACER" --python "$static" \
		--json got.json -o got.html spin.py
	is "$(told)" '' '  without a change'
fi

# A program that runs already.
cat >waits.py <<'EOS'
import sys, threading, time
def wait():
    while not stop:
        time.sleep(0.001)
stop = []
thread = threading.Thread(target=wait, name="waiter")
thread.start()
print(file=open(sys.argv[1], "w"))
end = threading.Thread(target=lambda: (open(sys.argv[2]).read(), stop.append(1)))
end.start()
while not stop:
    time.sleep(0.001)
EOS
attach() {
	begun "$1" waits.py ready go
	unshare -m sh with-events /dev/full "$tracefs" "$GILTRACER" -p "$pid" --duration 1 --json got.json -o got.html
	status=$?
	over
	wait "$pid"
	return "$status"
}
ok 'a program that runs already' attach "$python"
like "$(told)" '^giltracer: (samples|GIL events) .*uprobe_events' '  is recorded in another way'

leaves_nothing
done_testing
