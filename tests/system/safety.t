#!/bin/sh
# SPDX-License-Identifier: MIT
# No probe is placed at an instruction that was not examined, or in a file other than the one that runs:
# an interpreter that is replaced, changed or copied meanwhile; if none can be placed, the error says why.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root perf uprobes

python=$(private_python "$scratch/venv")
lib=$("$GILTRACER" probes --python "$python" --json |
	python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])')
group=$(group_of "$python")
cat >program.py <<'EOF'
import threading
if __name__ == "__main__":
    open("ran", "w").close()
    t = threading.Thread(target=lambda: None)
    t.start()
    t.join()
EOF

want=125
# refuses NAME ERE COMMAND…: giltracer fails before the program's own work, and says why.
refuses() {
	refusal=$1 why=$2
	shift 2
	rm -f ran
	exits "$want" "$refusal" "$@"
	like "$(tail -n 1 err)" "^giltracer: error: .*$why" '  it says so'
	ok '  the program is not run' test ! -e ran
}
record() {
	"$GILTRACER" -q --probes uprobes --python-trace none --python "$1" -o page.html program.py
}

# A perf that lets the test change files after the probes are placed and before the program starts.
mkdir early
cat >early/perf <<EOF
#!/bin/sh
[ "\$1" != record ] || sh -e "$scratch/meanwhile"
exec $(command -v perf) "\$@"
EOF
chmod +x early/perf
meanwhile() {
	echo "$1" >meanwhile
	(PATH=$scratch/early:$PATH && record "$python")
}
refuses 'replaced by the same build' 'was replaced or changed after its probes were placed' \
	meanwhile "cp -p $lib new && mv new $lib"
refuses 'replaced by another file' 'was replaced or changed after its probes were placed' \
	meanwhile "cp -p $lib whole && cp /bin/true new && mv new $lib"
mv whole "$lib"
refuses 'written to in place' 'was replaced or changed after its probes were placed' \
	meanwhile "cp -p $lib whole && printf x >>$lib"
mv whole "$lib"
refuses 'removed' 'was replaced or changed after its probes were placed' \
	meanwhile "mv $lib whole"
mv whole "$lib"
is "$(probes_in "$group")" 0 'no probe is left'
ok 'not touched, it is recorded' meanwhile true
ok '  and the program runs' test -e ran

# One file answers giltracer's first question, and another file runs afterwards.
cat >moody <<EOF
#!/bin/sh
case \$* in
*program.py*) exec "$scratch/other/bin/python3" "\$@" ;;
*) exec "$python" "\$@" ;;
esac
EOF
chmod +x moody
"$(cpythons | sed -n '$s/^[^ ]* //p')" -m venv --without-pip other
refuses 'another interpreter than the one that answered' 'the program does not run .*, which contains' \
	record ./moody

mkdir 'has#comment'
python_with_comment=$(private_python "$scratch/has#comment/venv")
ok 'a path that tracefs takes for a comment' record "$python_with_comment"

# On an overlay, a file is another one as soon as it is written to, under the same number.
cat >on-overlay <<'EOF'
python=$1 lib=$2 venv=$3
mkdir -p upper && mount -t tmpfs none upper && mkdir upper/changes upper/work || exit 77
mount -t overlay -o "lowerdir=$venv,upperdir=upper/changes,workdir=upper/work" none "$venv" ||
	exit 77
trace() {
	"$GILTRACER" --python-trace none --python "$python" -o page.html "$@"
}
trace waits.py 9>ready 8<go & # as begun does
exec 6<ready 5>go
read -r _ <&6 || exit 99
[ "$4" != touched ] || touch "$lib"
rm -f ran
status=0
trace --probes "$5" program.py || status=$?
[ ! -e ran ] || cp ran ran-meanwhile
exec 5>&-
wait
# The old probes are no longer used.
trace program.py && exit $status
EOF
cat >waits.py <<'EOF'
if __name__ == "__main__":
    print(file=open("ready", "w"))
    open("go").read()
EOF
mkfifo ready go
rm -f ran
if unshare -m true 2>/dev/null; then
	exits 0 'on an overlay' unshare -m sh on-overlay "$python" "$lib" "$scratch/venv" plain uprobes
	ok '  two programs are recorded at once' test -e ran-meanwhile
	rm -f ran-meanwhile
	removed
	exits 125 'copied up by the overlay while another records' \
		unshare -m sh on-overlay "$python" "$lib" "$scratch/venv" touched uprobes
	like "$(cat err)" 'has not inserted the probes of .* an overlay copied the file' \
		'  it says so'
	ok '  the program is not run' test ! -e ran-meanwhile
	ok '  and the next one is recorded' test -e ran
	rm -f ran
	removed
	exits 0 '  by the library, if it may' \
		unshare -m sh on-overlay "$python" "$lib" "$scratch/venv" touched auto
	like "$(cat err)" 'by a preloaded library .* has not inserted the probes' '  it says so'
	ok '  the program is run' test -e ran-meanwhile
	cat >on-noexec <<'EOF'
mkdir noexec && mount -t tmpfs -o noexec none noexec && cp "$1" noexec/python3 &&
	exec "$GILTRACER" --python noexec/python3 program.py
EOF
	want=126
	refuses 'mounted noexec' 'mounted noexec, so nothing can be executed there' \
		unshare -m sh on-noexec "$(readlink -f "$lib")"
	want=125
else
	skip 'unshare -m is not permitted' 'overlays and noexec'
fi

# Files without a name.
cat >nameless.py <<'EOF'
import os, subprocess, sys
giltracer, python, how, by = sys.argv[1:]
with open(python, "rb") as f:
    data = f.read()
if how == "memory":
    fd = os.memfd_create("python", 0)
else:
    fd = os.open("gone", os.O_RDWR | os.O_CREAT, 0o755)
os.write(fd, data)
os.close(os.open("/proc/self/fd/%d" % fd, os.O_RDONLY))
path = "/proc/%d/fd/%d" % (os.getpid(), fd)
if how != "memory":
    reader = os.open("gone", os.O_RDONLY)
    os.unlink("gone")
    os.close(fd)
    path = "/proc/%d/fd/%d" % (os.getpid(), reader)
if by == "wrapper":
    with open("wrapper", "w") as f:
        f.write('#!/bin/sh\nexec %s "$@"\n' % path)
    os.chmod("wrapper", 0o755)
    path = "./wrapper"
sys.exit(subprocess.call([giltracer, "-q", "--probes", "uprobes", "--python", path, "program.py"]))
EOF
bare=
for candidate in $(cpythons | sed 's/^[^ ]* //'); do
	# An interpreter that is a single file.
	case $("$GILTRACER" probes --python "$candidate" --json |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])') in
	*.so*) ;;
	*) bare=$candidate ;;
	esac
done
for how in memory disk; do
	if [ -n "$bare" ]; then
		refuses "an interpreter without a name, in $how" \
			'\(deleted\): an interpreter that exists in memory only, .* --no-gil-detect' \
			python3 nameless.py "$GILTRACER" "$bare" $how wrapper
		# Others may be able to change it, so root does not execute it to ask its version.
		want=126
		refuses "the same without a wrapper, in $how" \
			'exists in memory only, or was removed, is not executed by root' \
			python3 nameless.py "$GILTRACER" "$bare" $how itself
		want=125
	else
		skip 'no interpreter here is a single file' "an interpreter without a name, in $how"
	fi
done

rm -rf "$scratch/venv" "$scratch/has#comment"
leaves_nothing
done_testing
