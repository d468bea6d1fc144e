#!/bin/sh
# SPDX-License-Identifier: MIT
# Samples: the stacks of a running program over time, without any permission but ptrace's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/attach.sh"

every_cpython interpreters
while read -r version python <&3; do
	case $version in *t | 3.6*) continue ;; esac
	start "$python"
	exits 0 "$version: samples alone" "$GILTRACER" -p $pid --probes none --sample 200 --duration 1 \
		--json out.json -o out.html
	is "$(json out.json 'd["verdict"]["kind"]')" sampled '  and the verdict says so'
	is "$(json out.json 'max((t["holds"], t["name"] != "") for t in d["samples"]["threads"])[0]
		== max(p["samples"] for p in d["samples"]["places"] if p["what"] == "holds")')" True \
		'  the place where the GIL was held is that of its holder'
	is "$(json out.json '[(p["function"].split(".")[-1], p["file"].rsplit("/")[-1], p["line"])
		for p in d["samples"]["places"] if p["what"] == "holds" and p["function"] == "hog"]')" \
		"[('hog', 'attach.py', 17)]" '  the call that keeps it is among them, with file and line'
	is "$(json out.json 'all(sum(t[k] for k in ("holds", "waits", "running", "lock", "network",
		"poll", "file", "sleep", "child", "other", "unknown")) == t["samples"]
		for t in d["samples"]["threads"])')" True '  each thread is found doing one thing at a time'
	is "$(json out.json 'd["samples"]["held"] <= d["samples"]["count"]')" True \
		'  and one thread has the GIL at a time'
	is "$(json out.json 'sorted(t["name"] for t in d["samples"]["threads"])')" \
		"['MainThread', 'my hog', 'my victim']" '  threads as the program calls them'
	finish "$version"
done 3<interpreters

# A program that giltracer starts is its child, so no permission is needed.
cat >busy.py <<'END'
import threading, time
def spin(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
def main():
    threads = [threading.Thread(target=spin, args=(0.5,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
if __name__ == "__main__":
    main()
END
bare() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --inh-caps=-all --bounding-set=-all "$@"
	else
		"$@"
	fi
}
exits 0 'a program that giltracer starts, without a capability' bare "$GILTRACER" \
	--probes none --sample 500 --python "$(command -v python3)" --json run.json -o run.html \
	--export folded-samples=run.folded --keep run busy.py
is "$(json run.json '[p["function"] for p in d["samples"]["places"] if p["what"] == "holds"][:1]')" \
	"['spin']" '  is sampled where it spins'
ok '  and its samples are folded stacks, with the same counts' python3 - run.folded run.json <<'END'
import collections, json, re, sys
folded, found = collections.Counter(), collections.Counter()
for line in open(sys.argv[1], encoding="utf-8"):
    thread, what, n = re.fullmatch(r"[^;]* (\d+);.*;\[(\w+)\] (\d+)\n", line).groups()
    folded[int(thread), what] += int(n)
for t in json.load(open(sys.argv[2]))["samples"]["threads"]:
    for what in ("holds", "waits", "running", "lock", "network", "poll", "file", "sleep", "child",
                 "other", "unknown"):
        if t[what]:
            found[t["tid"], what] += t[what]
assert folded == found, (folded, found)
END
like "$(cat run.folded)" ';Thread\.run;spin;\[holds\] [1-9]' '  from the outermost'
exits 0 'and with exact events at once' bare "$GILTRACER" --probes preload --sample 500 \
	--python "$(command -v python3)" --json both.json -o both.html --keep both busy.py
is "$(json both.json 'd["verdict"]["kind"] != "sampled" and d["samples"]["count"] > 0')" True \
	'  which the verdict is made of'
is "$(json both.json 'sorted(t["tid"] for t in d["samples"]["threads"])')" \
	"$(json both.json 'sorted(t["tid"] for t in d["threads"])')" '  and both have the same threads'

# The formats of other tools, with samples only, and with samples and exact events.
sampled_exports() { # SESSION DOCUMENT
	for format in speedscope firefox; do
		ok "$1: $format is written" "$GILTRACER" export -q -f $format "$1" -o "$1.$format"
		ok "$1: $format has the document's counts" python3 "$reader" $format "$1.$format" "$2"
	done
	if want firefox-profiler "$1: the Firefox profiler"; then
		ok "$1: the Firefox profiler has the document's counts" \
			env PROFILER_CLI="$(profiler_cli_path)" \
			python3 "$reader" firefox_profiler "$1.firefox" "$2"
	fi
	grep -q '^#define HAVE_PROTOBUF_C 1' "$top_builddir/config.h" || return 0
	ok "$1: pprof is written" "$GILTRACER" export -q -f pprof "$1" -o "$1.pprof"
	if want go "$1: go tool pprof"; then
		ok "$1: go tool pprof reads it" go tool pprof -raw "$1.pprof"
		cp out raw
		ok "$1: and has the document's counts" python3 "$reader" pprof raw "$2"
	fi
}
reader=$top_srcdir/tests/system/exports.py
sampled_exports run run.json
sampled_exports both both.json

# Samples of the holder only.
start python3
exits 0 'with --gil-only' "$GILTRACER" -p $pid --probes none --sample 200 --gil-only --duration 1 \
	--json only.json -o only.html --keep kept
is "$(json only.json 'd["samples"]["gil_only"] and sum(t["samples"] for t in d["samples"]["threads"])
	< len(d["samples"]["threads"]) * d["samples"]["count"]')" True '  others are not read'
exits 0 '  and the session is reported again' "$GILTRACER" report --json again.json -o again.html kept
is "$(json again.json 'd["samples"]')" "$(json only.json 'd["samples"]')" '  as before'
finish 'after all that'

# A process that executes Python once more.
cat >again.py <<'END'
import os, sys, threading, time

def spin():
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass

if __name__ == '__main__':
    thread = threading.Thread(target=spin)
    thread.start()
    thread.join()
    if len(sys.argv) == 1:
        os.execv(sys.executable, [sys.executable, __file__, 'again'])
END
exits 0 'a program that executes Python again' "$GILTRACER" -q --probes none --sample 100 --json exec.json \
	-o exec.html again.py
is "$(json exec.json 'len({t["tid"] for t in d["samples"]["threads"]
	if t["samples"] >= 5 and t["tid"] != t["pid"]})')" 2 '  is sampled before and after'

# A file of samples that is invalid.
printf x >kept/stacks.samples
exits 125 'samples that cannot be read' "$GILTRACER" report -o again.html kept
like "$(cat err)" 'stacks.samples: not a file of samples' '  are named'

done_testing
