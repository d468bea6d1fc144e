#!/bin/sh
# SPDX-License-Identifier: MIT
# Root executes interpreters of other users with their rights, and they inherit nothing of root's; and no
# interpreter executes files of a folder that others can write.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
. "$top_srcdir/tests/system/private-python.sh"
need root setpriv

unset SUDO_USER SUDO_UID SUDO_GID
python=$(all_cpythons | sed 's/^[^ ]* //' | while read -r py; do
	! nobody "$py" -c '' 2>/dev/null || { echo "$py" && break; }
done)
if [ -z "$python" ]; then
	echo '1..0 # SKIP no interpreter that an ordinary user can run: apt-get install python3'
	exit 0
fi
chmod 755 "$scratch"
cp "$top_srcdir/tests/system/foreign-python.py" .
mkdir theirs && cat >theirs/python3 <<END
#!/bin/sh
exec $python $scratch/foreign-python.py $scratch/theirs/log $python "\$@"
END
chmod 755 theirs/python3 && chown -R 65534 theirs

# In a terminal, with a key of the session and an open file.
cat >terminal.py <<'END'
import ctypes, os, pty, sys
libc = ctypes.CDLL(None)
number = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
libc.syscall(ctypes.c_long(number[1]), ctypes.c_long(1), None)  # KEYCTL_JOIN_SESSION_KEYRING
libc.syscall(ctypes.c_long(number[0]), b"user", b"giltracer-test", b"x", ctypes.c_long(1), ctypes.c_long(-3))
os.dup2(os.open("/etc/shadow", os.O_RDONLY), 9)
os.environ.update(ROOT_SECRET="x", LANG="C.UTF-8")
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) and 0)
END
# seen EXPRESSION: of the line that the last interpreter wrote
seen() {
	tail -n 1 theirs/log >seen.json && json seen.json "$1"
}
for command in probes check; do
	rm -f theirs/log
	python3 terminal.py "$GILTRACER" "$command" --python "$scratch/theirs/python3" >terminal 2>&1 </dev/null
	is "$(wc -l <theirs/log)" 1 "$command asks the interpreter"
	is "$(seen 'd["uid"], d["groups"]')" '(65534, [])' 'as its owner, in no other group'
	is "$(seen 'd["typed"]')" 0 'which cannot type into the terminal'
	is "$(seen 'd["environment"]')" "['LANG', 'PATH']" 'and sees of the environment PATH and LANG'
	is "$(seen '[f for f in d["open"] if f not in ("pipe", "/dev/null") and
		not f.startswith("/proc/") and not f.endswith("/theirs/log")]')" '[]' 'no open file'
	is "$(seen 'd["folder"]')" / 'not the folder'
	is "$(seen 'd["key"]')" False 'and no key'
done

# A link of the user's in the middle: both ends are root's.
mkdir first last && cat >last/python3 <<END
#!/bin/sh
id -u >>$scratch/theirs/ran-as
exec $python "\$@"
END
chmod 755 last/python3
ln -s ../last/python3 theirs/link && chown -h 65534 theirs theirs/link
ln -s ../theirs/link first/python3
# The folder theirs itself is root's here, so that the link alone decides.
chown 0 theirs && chmod 1777 theirs
for command in probes check; do
	rm -f theirs/ran-as
	run "$GILTRACER" "$command" --python "$scratch/first/python3"
	is "$(sort -u theirs/ran-as)" 65534 "$command: a link in the middle of links decides"
done

# An interpreter that only root controls executes no files of the current folder.
mkdir shared && chmod 1777 shared && cat >shared/linecache.py <<'END'
import os
open("ran", "a").write("linecache")
END
for name in sitecustomize usercustomize json os encodings viztracer platform; do
	cp shared/linecache.py shared/$name.py
done
every_cpython every
while read -r _ py; do
	for command in probes check 'setup --dry-run'; do
		# shellcheck disable=SC2086 # words
		(cd shared && "$GILTRACER" $command --python "$py" >"$scratch/said" 2>&1)
		is "$(cat shared/ran 2>/dev/null)" '' "$py: $command runs nothing of the folder"
		unlike "$(cat said)" 'is not a Python interpreter' '  and takes it for an interpreter'
		rm -f shared/ran
	done
done <every
# A wrapper of root's that looks into the current folder, as pyenv's shims do.
cat >last/shim <<END
#!/bin/sh
pwd >>$scratch/theirs/ran-in
exec $python "\$@"
END
chmod 755 last/shim
(cd shared && "$GILTRACER" probes --python "$scratch/last/shim" >/dev/null)
is "$(cat theirs/ran-in)" / 'nor does a wrapper see a folder that others can write'
rm theirs/ran-in
echo pass >shared/empty.py
(cd shared && by_library -q --python "$scratch/last/shim" -o "$scratch/empty.html" empty.py)
is "$(sort -u theirs/ran-in)" "$scratch/shared" 'unless the program runs there'
rm theirs/ran-in
if unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016
	unshare -m sh -c 'mount -t tmpfs -o mode=755 none /mnt && cd /mnt && exec "$@"' - \
		"$GILTRACER" probes --python "$scratch/last/shim" >/dev/null
	is "$(cat theirs/ran-in)" /mnt 'but one of root'
else
	skip 'unshare -m' 'but one of root'
fi

# Without a terminal, no Ctrl-C reaches it: it ends with the process that asked.
mkfifo theirs/started theirs/go
cat >theirs/slow <<END
#!/bin/sh
echo \$\$ >$scratch/theirs/started
exec cat $scratch/theirs/go
END
chmod 755 theirs/slow && chown 65534 theirs/slow theirs/started theirs/go
"$GILTRACER" probes --python "$scratch/theirs/slow" >/dev/null 2>&1 &
asking=$!
read -r asked <theirs/started
kill -KILL $asking
wait $asking 2>/dev/null
is "$(tap_remaining)" '' 'an interpreter ends with the process that asked it'
kill -KILL "$asked" 2>/dev/null || :

# Before -I came, there was Python 2.
cat >last/old <<'END'
#!/bin/sh
case $1 in
-V) echo 'Python 2.7.18' >&2 ;;
*) echo "Unknown option: ${1%?}" >&2 && exit 2 ;;
esac
END
chmod 755 last/old
exits 125 'Python 2' "$GILTRACER" probes --python last/old
like "$(cat err)" 'last/old is Python 2\.7\.18: giltracer needs CPython 3\.6 or newer$' 'is recognized'

leaves_nothing
done_testing
