#!/bin/sh
# SPDX-License-Identifier: MIT
# make deb and make wheel: the packages are clean, and an unpacked or installed one can record.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need make
unset MAKEFLAGS MAKELEVEL MFLAGS

# records PROGRAM NAME: the program records without privilege.
records() {
	ok "$2 records" "$1" -q --probes preload --python-trace none -o page.html --json doc.json \
		"$top_srcdir/share/examples/spinners.py" 0.2
	is "$(json doc.json '[t["hold_ns"] > 0 for t in d["threads"]]')" '[True, True, True]' \
		"$2 reports three threads that held the GIL"
	rm -f page.html doc.json
}

# own_settings COMMAND…: run it with settings of the kernel that are ordinary files in the scratch folder.
mkdir kernel
own_settings() {
	# shellcheck disable=SC2016 # the inner shell's
	env GILTRACER_STATEDIR="$scratch/state" unshare -m sh -ec 'for name in perf_event_paranoid perf_event_mlock_kb; do
		mount --bind "$0/kernel/$name" "/proc/sys/kernel/$name"
	done
	exec "$@"' "$scratch" "$@"
}

# sets_up PROGRAM NAME COMMAND…: setup works with the program, and the command undoes it.
sets_up() {
	if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
		skip 'run as root, where there are mount namespaces' "$2 sets up"
		return
	fi
	echo 4 >kernel/perf_event_paranoid
	echo 00516 >kernel/perf_event_mlock_kb
	ok "$2 sets up" own_settings "$1" setup
	is "$(cat kernel/*)" "$(printf '16896\n2')" "$2: what ordinary users need"
	name=$2
	shift 2
	ok "$name: undone" own_settings "$@"
	is "$(cat kernel/*)" "$(printf '00516\n4')" "$name: as it was"
	ok "$name: no state is left" test ! -e state
}

if want dh_gencontrol 'make deb' && want dpkg-deb 'make deb'; then
	at_exit "rm -f '$top_builddir'/giltracer_*.deb"
	ok 'make deb' make -s -C "$top_builddir" deb
	deb=$(ls "$top_builddir"/giltracer_*.deb)
	if want lintian 'lintian'; then
		ok 'lintian' env TMPDIR="$scratch" lintian --allow-root --fail-on error,warning "$deb"
		is "$(cat out)" '' 'finds nothing'
	fi
	ok 'it unpacks' dpkg-deb -x "$deb" unpacked
	like "$(dpkg-deb -f "$deb" Depends)" 'libjansson4.*libyaml' 'it depends on its libraries'
	ok 'the manual is compressed' test -s unpacked/usr/share/man/man1/giltracer.1.gz
	records unpacked/usr/bin/giltracer 'the Debian package'
	ok 'its scripts' dpkg-deb -e "$deb" control
	sets_up unpacked/usr/bin/giltracer 'the Debian package' \
		env PATH="$scratch/unpacked/usr/bin:$PATH" sh control/prerm remove
	is "$(find unpacked -type f -perm /6000)" '' 'no file has privileges'
fi

if want patchelf 'make wheel' && want wheel 'make wheel'; then
	at_exit "rm -f '$top_builddir'/giltracer-*.whl"
	ok 'make wheel' make -s -C "$top_builddir" wheel PYTHON="$tap_venv/bin/python"
	if want auditwheel 'the tag of the wheel'; then
		ok 'auditwheel reads it' "$tap_venv/bin/python" -m auditwheel show --json \
			"$top_builddir"/giltracer-*.whl
		is "$(ls "$top_builddir"/giltracer-*.whl)" "$top_builddir/giltracer-$(json out 'd["wheel"]' |
			cut -d- -f2)-py3-none-$(json out 'd["overall_tag"]').whl" \
			'its tag is the oldest glibc that will do'
		like "$(json out 'd["overall_tag"]')" '^manylinux_2_[0-9]+_' 'nothing but glibc is missing'
	fi
	ok 'a new environment' "$tap_venv/bin/python" -m venv fresh
	ok 'takes the wheel' fresh/bin/python -m pip install -q --no-index --no-deps \
		--disable-pip-version-check "$top_builddir"/giltracer-*.whl
	is "$(ldd fresh/bin/giltracer | awk '$2 == "=>" { print $3 }' |
		grep -vE "^$scratch/fresh/bin/\.\./lib/giltracer/|/(libc|libm|libdl|libpthread)\.so")" '' \
		'all libraries but glibc are its own'
	ok 'the module is there and finds its program' env -u GILTRACER fresh/bin/python -c '
import sys, giltracer
assert giltracer.command() == sys.prefix + "/bin/giltracer", giltracer.command()'
	records fresh/bin/giltracer 'the wheel'
	sets_up fresh/bin/giltracer 'the wheel' fresh/bin/giltracer setup --undo
fi

leaves_nothing
done_testing
