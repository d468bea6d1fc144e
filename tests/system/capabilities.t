#!/bin/sh
# SPDX-License-Identifier: MIT
# perf starts without CAP_SYSLOG where it does not need the kernel's symbols; the program has what it has
# without giltracer.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/attach.sh"
need root perf uprobes

# A perf that writes down whether it could have CAP_SYSLOG, by its file's name, and goes on.
perf=$(command -v perf)
mkdir bin
cat >bin/perf <<END
#!/bin/sh
while read -r name value; do
	[ "\$name" != CapBnd: ] || bounding=0x\$value
done </proc/self/status
previous=
for argument; do
	[ "\$previous" != -o ] || echo "\${argument##*/} \$((bounding >> 34 & 1))" >>"$scratch/started"
	previous=\$argument
done
exec "$perf" "\$@"
END
chmod +x bin/perf
cat >capabilities.py <<'END'
if __name__ == "__main__":
    print(*[line for line in open("/proc/self/status") if line.startswith(("Cap", "NoNewPrivs"))])
END

# bit SET NUMBER: of this shell
bit() {
	echo $((0x$(sed -n "s/^$1:[^0-9a-f]*//p" /proc/self/status) >> $2 & 1))
}
ours=$(bit CapBnd 34)
without=$ours
[ "$(bit CapEff 8)" = 0 ] || without=0 # CAP_SETPCAP

record() {
	rm -rf session started
	PATH="$scratch/bin:$PATH" "$GILTRACER" record -q -o session --python-trace none "$@"
}
started() {
	sort started | tr '\n' ' '
}

plain=$(python3 capabilities.py)
ok 'a recording' record capabilities.py
is "$(cat out)" "$plain" '  leaves the program its capabilities'
# gil.switches.perf.data is recorded in case the library takes over.
is "$(started)" "gil.perf.data $without gil.switches.perf.data $without " \
	'  and takes CAP_SYSLOG from perf'

ok 'thread states' record --state-detect --one-run capabilities.py
is "$(cat out)" "$plain" '  leave the program its capabilities'
is "$(started)" "gil.perf.data $without gil.switches.perf.data $without gil.wakeups.perf.data $without \
stacks.perf.data $ours " \
	'  and CAP_SYSLOG to the perf that records stacks of the kernel'

ok 'events of the user' record --event page-faults capabilities.py
is "$(started)" "gil.perf.data $ours gil.switches.perf.data $ours " '  leave it to their perf'

start "$(cpythons | sed -n "1s/.* //p")"
ok 'a running program' record --duration 1 -p "$pid"
is "$(started)" "gil.perf.data $without " '  is recorded without it, too'
is "$(sed -n '/^Cap/p' "/proc/$pid/status")" "$(sed -n '/^Cap/p' /proc/self/status)" '  and keeps its own'
finish '  and'

# The kernel executes such a file with all of them, or not at all.
cp "$perf" bin/perf
if python3 -c 'import os, struct; os.setxattr("bin/perf", "security.capability",
	struct.pack("<5I", 0x02000001, 1 << 19 | 1 << 21, 0, 1 << 34 - 32 | 1 << 38 - 32, 0))' 2>err; then
	ok 'a perf with file capabilities' record --probes uprobes capabilities.py
	ok '  records' test -s session/gil.perf.data
else
	skip "no file capabilities here: $(tail -n 1 err)" 'a perf with file capabilities'
	skip 'no file capabilities here' '  records'
fi

leaves_nothing
done_testing
