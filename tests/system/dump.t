#!/bin/sh
# SPDX-License-Identifier: MIT
# A perf.data is read natively: every record, both layouts, truncated and false data, real recordings.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

data=$top_srcdir/tests/data

# mkperf OUTPUT NAME [STATEMENT]…: build tests/data/NAME.perf.txt, preceded by the statements.
mkperf() {
	mkperf_out=$1
	mkperf_in=$data/$2.perf.txt
	shift 2
	{
		[ $# -eq 0 ] || printf '%s\n' "$@"
		cat "$mkperf_in"
	} | python3 "$data/mkperf.py" - "$mkperf_out"
}

events_of() {
	"$GILTRACER" dump --events "$1" | grep -v '^#'
}

stat_of() {
	"$GILTRACER" dump --events "$1" | sed -n "s/^# $2 //p"
}

ok 'every record, file layout' mkperf every.data every-record
ok 'is shown raw' "$GILTRACER" dump every.data
cp out raw
if [ -n "${GILTRACER_TEST_REGEN:-}" ]; then
	cp raw "$data/every-record.raw"
	events_of every.data >"$data/every-record.events"
	mkperf probes.pipe probes
	"$GILTRACER" dump --stacks probes.pipe | grep -v '^#' >"$data/probes.events"
fi
ok 'as it always was' diff "$data/every-record.raw" raw
events_of every.data >events
ok 'and as events, in the order of time' diff "$data/every-record.events" events
is "$(stat_of every.data unknown_records)" 2 'unknown records are counted'
is "$(stat_of every.data lost)" 21 'so are lost ones'
ok 'every record, pipe layout' mkperf every.pipe every-record 'layout pipe'
events_of every.pipe >events
ok 'gives the same events' diff "$data/every-record.events" events
"$GILTRACER" dump --header every.data | sed 1d >header
"$GILTRACER" dump --header every.pipe | sed 1d >header.pipe
ok 'and the same header' diff header header.pipe
ok 'Python frames, stacks' mkperf probes.pipe probes
"$GILTRACER" dump --stacks probes.pipe | grep -v '^#' >events
ok 'as they always were' diff "$data/probes.events" events
ok 'a limit' "$GILTRACER" dump -n 3 every.data
is "$(wc -l <out)" 3 'is kept'

ok 'SWITCH records of a dummy event' mkperf dummy.data dummy-event
is "$(events_of dummy.data | grep -c 'cpu=-1')" 0 'have the CPU of their id'
like "$(events_of dummy.data)" 'cpu=1 lost count=3 since=107' 'lost records know since when'

ok 'killed: no size, no features' mkperf killed.data every-record 'data_size 0' no-features
exits 0 'what there is of it is read' "$GILTRACER" dump --events killed.data
like "$(cat out)" '^# truncated at .*: perf did not finish' 'and the rest is said'
like "$(cat out)" 'switch-out preempt' 'scheduling needs no formats'

mkfifo fifo
exits 125 'a FIFO is not waited for' "$GILTRACER" dump fifo
like "$(cat err)" 'fifo: not a regular file' 'which is said'
ok 'a size that lies' mkperf lie.data every-record
printf '\377\377' | dd of=lie.data bs=1 seek=$((0x736 + 8)) conv=notrunc 2>/dev/null
exits 0 'ends the reading' "$GILTRACER" dump --events lie.data
like "$(cat out)" '^# truncated at 0x738: record of type 3 and 65535 bytes: only [0-9]* are left' \
	'and is named'

# Files of both layouts that are truncated at any byte: there is an answer, never a crash.
cuts() {
	for cuts_at in $(seq 0 173 "$(stat -c %s "$1")"); do
		head -c "$cuts_at" "$1" >cut.data
		cuts_status=0
		"$GILTRACER" dump -e cut.data >cut.out 2>cut.err || cuts_status=$?
		case $cuts_status in
		0 | 125) ;;
		*)
			echo "cut after $cuts_at bytes: status $cuts_status"
			return 1
			;;
		esac
	done
}
ok 'a file cut anywhere is survived' cuts every.data
ok 'so is a pipe' cuts every.pipe

# refused TEXT NAME: the file is refused with one clear message.
refused() {
	exits 125 "$2" "$GILTRACER" dump odd.data
	like "$(cat err)" "$1" 'is one clear message'
	is "$(wc -l <err)" 1 'of one line'
}
: >odd.data
refused 'odd\.data: the file is empty' 'an empty file'
echo 'int main(void) { return 0; }' >odd.data
refused 'odd\.data: not a perf\.data file' 'another file'
printf '2ELIFREP\0\0\0\0\0\0\0\150' >odd.data
refused 'odd\.data: .*other byte order' 'the other byte order'
mkperf odd.data every-record 'feature 27 00'
refused 'odd\.data: .*HEADER_COMPRESSED.*perf record -z' 'a compressed recording'
exits 125 'a file that is not there' "$GILTRACER" dump nosuch.data
exits 125 'no file at all' "$GILTRACER" dump
mkdir empty
exits 125 'a folder with nothing in it' "$GILTRACER" dump empty
like "$(cat err)" 'empty: not a recording of the preload library' 'is not a recording'

# kinds FILE: print the number of events of each type.
kinds() {
	events_of "$1" | awk '{ n[$4]++ } END { for (i in n) print i, n[i] }' | sort | tr '\n' ' '
}
is "$(kinds "$data/tiny-gil.perf.data")" 'acquire 15 comm 2 exit 2 fork 2 release 15 released 15 '`
	`'request 15 switch-in 39 switch-out 38 waking 10 ' 'a real recording'
is "$(kinds "$data/tiny-gil.pipe")" 'acquire 15 comm 2 exit 2 fork 2 release 15 released 15 '`
	`'request 15 switch-in 30 switch-out 29 waking 7 ' 'a real recording, pipe layout'
is "$(kinds "$data/tiny-stacks.perf.data")" 'comm 2 exit 2 fork 2 sched-out 20 switch-in 29 '`
	`'switch-out 28 waking 9 ' 'a real recording with stacks'
for name in tiny-gil.perf.data tiny-gil.pipe tiny-stacks.perf.data; do
	is "$(stat_of "$data/$name" unknown_records) $(stat_of "$data/$name" leftover_bytes)" \
		'0 0' "$name: every byte is understood"
	is "$(events_of "$data/$name" | grep -c ' cpu=-1 ')" 0 "$name: every CPU is known"
done

# as_perf FILE: print samples in the order of perf script, with the same times. perf requires that the
# caller owns the file.
as_perf() {
	cp "$data/$1" mine.data
	perf script -F tid,time,event --ns -i mine.data 2>/dev/null |
		awk '{ sub(":", "", $2); print $1, $2 }' >theirs
	events_of mine.data | awk '$4 ~ /^(request|acquire|release|released|waking|sched-out)$/ {
		split($2, id, "/"); print id[2], $1 }' >ours
	diff theirs ours
}
for name in tiny-gil.perf.data tiny-gil.pipe tiny-stacks.perf.data; do
	if command -v perf >/dev/null; then
		ok "$name: perf script agrees" as_perf "$name"
	else
		skip 'perf is not installed: apt-get install linux-perf' "$name: perf script agrees"
	fi
done

leaves_nothing
done_testing
