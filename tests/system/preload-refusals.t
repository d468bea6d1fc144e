#!/bin/sh
# SPDX-License-Identifier: MIT
# If the library cannot be preloaded, one sentence says why; together with other libraries, it works.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3 gcc

cat >spin.py <<'END'
import sys
import threading
import time

if len(sys.argv) > 1:
    # Extensions see their own libraries first: RTLD_NOW, RTLD_DEEPBIND.
    sys.setdlopenflags(0x2 | 0x8)
    import _bz2
    import _decimal


def spin():
    end = time.time() + 0.2
    while time.time() < end:
        pass


if __name__ == '__main__':
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('ended')
END

# preload PYTHON [ARG]…: spin.py
preload() {
	preload_python=$1
	shift
	no_perf env ${home:+PYTHONHOME="$home"} ASAN_OPTIONS=detect_leaks=0 "$GILTRACER" -q --probes preload \
		--python "$preload_python" --python-trace none \
		--json spin.json -o spin.html spin.py "$@"
}

# recorded NAME COMMAND…: the command runs, and the GIL is recorded.
recorded() {
	recorded_name=$1
	shift
	ok "$recorded_name" "$@"
	like "$(cat out)" ended '  the program ends as ever'
	is "$(json spin.json 'sum(t["hold_ns"] for t in workers()) > 50e6')" True '  the GIL is recorded'
	consistent spin.json "$recorded_name"
}

# refused PYTHON WHAT WHY: preloading is refused in one line, before anything has run.
refused() {
	exits 125 "$2" preload "$1"
	like "$(cat err)" "$3" '  the message says why'
	is "$(grep -c . err)$(cat out)" 1 '  in one line, before the program runs'
}

# ---- CPython embedded in a program

cat >main.c <<'END'
#include <Python.h>
int main(int argc, char **argv)
{
	return Py_BytesMain(argc, argv);
}
END
home=
cpythons | grep -v ' /usr/' | sort -V | tail -n 1 >newest
python=$(cut -d' ' -f2 newest)

# embed NAME FOLDER FLAG…: compile the program with a libpython from FOLDER, a variable of sysconfig.
embed() {
	embed_name=$1
	embed_flags=$("$python" -c 'import sys, sysconfig
v = sysconfig.get_config_var
print("-L" + v(sys.argv[1]), "-lpython" + v("LDVERSION"), v("LIBS"), v("SYSLIBS"),
      "-Wl,--export-dynamic,-rpath," + v(sys.argv[1]))' "$2")
	shift 2
	# shellcheck disable=SC2046,SC2086 # words
	gcc "$@" -o "$embed_name" main.c $(include_flags "$python") $embed_flags 2>gcc.err &&
		[ "$(PYTHONHOME=$home ASAN_OPTIONS=detect_leaks=0 "./$embed_name" \
			-c 'print(1)' 2>/dev/null)" = 1 ]
}

if [ -n "$python" ]; then
	home=$("$python" -c 'import sys; print(sys.prefix)')
	if embed embedded LIBDIR; then
		recorded 'a program that links libpython' preload "$scratch/embedded"
	else
		skip 'there is no libpython to link with' 'a program that links libpython'
	fi
	if embed sanitized LIBDIR -fsanitize=address; then
		refused "$scratch/sanitized" 'AddressSanitizer' 'sanitized.*AddressSanitizer'
	else
		skip 'there is no AddressSanitizer' 'AddressSanitizer'
	fi
	if embed static LIBPL -static; then
		refused "$scratch/static" 'a static interpreter' 'static.*linked statically'
	else
		skip 'nothing to link statically with' 'a static interpreter'
	fi
	home=
fi

# ---- other libraries

python=$(cpythons | sed -n '1s/.* //p')
jemalloc=$(/sbin/ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)
if [ -n "$jemalloc" ]; then
	recorded 'jemalloc' no_perf env LD_PRELOAD="$jemalloc" "$GILTRACER" -q --probes preload \
		--python "$python" --python-trace none --json spin.json -o spin.html spin.py
else
	skip 'libjemalloc2 is not installed' 'jemalloc'
fi
recorded 'extensions with RTLD_DEEPBIND' preload "$python" deep

# The library exports libc's names and those of the call recorder's module, and no other.
library=$top_builddir/giltracer/preload/libgiltracer-preload.so
exported=$(nm -D --defined-only "$library" | sed 's/.* //; /^pthread_/d; /^sem_/d; /^set.*uid$/d')
exported=$(echo "$exported" | sed '/^PyInit_/d; /^_[Ee]xit$/d; /^chroot$/d; /^prctl$/d; /^syscall$/d')
is "$(echo "$exported" | sed '/^sched_yield$/d')" '' \
	'the library exports what it replaces, and nothing else'
is "$(nm -D "$library" | grep -c ' [TW] pthread_cond_signal$')" 1 '  of any version'

# ---- folders with blanks

ok 'a session in a folder with blanks' by_library record -q --python "$python" \
	--python-trace none -o "in a folder" spin.py
ok '  has a report' "$GILTRACER" report -q --json spin.json -o spin.html "in a folder"
is "$(json spin.json 'sum(t["hold_ns"] for t in workers()) > 50e6')" True '  of the GIL'
mkdir -p 'of blanks/bin' 'of blanks/lib/giltracer'
cp "$GILTRACER" 'of blanks/bin/'
cp "$library" 'of blanks/lib/giltracer/'
exits 125 'giltracer itself in such a folder' env GILTRACER_DATADIR="$(cd "$top_srcdir/share" && pwd)" \
	'of blanks/bin/giltracer' --probes preload --python "$python" --python-trace none spin.py
like "$(cat err)" 'of blanks.* with a space or a colon in its name cannot be preloaded' \
	'  says which folder'

# ---- children without the library

cat >child.py <<'END'
import subprocess
import sys

if __name__ == '__main__':
    code = 'import threading; t = threading.Thread(target=int); t.start(); t.join()'
    subprocess.check_call([sys.executable, '-c', code], env={})
    for program in sys.argv[1:]:
        subprocess.check_call([program, '-c', code])
    print('ended')
END
set --
if [ "$(id -u)" = 0 ] && cp /usr/bin/python3 su && chown 65534 su; then
	chmod 755 .
	chmod 4755 su
	set -- "$scratch/su"
else
	skip 'needs root and a system Python' 'a set-user-ID program'
fi
ok 'children without the environment, and set-user-ID' by_library -q --python "$python" --python-trace none \
	--json spin.json -o spin.html --keep kept child.py "$@"
like "$(cat out)" ended '  run as ever'
is "$(find kept/gil.preload -name '[0-9]*.log' | wc -l)" 1 '  and are not recorded'

leaves_nothing
done_testing
