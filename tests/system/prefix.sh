# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# For tests that want interpreters laid out otherwise: made of one that is here, in the scratch
# folder, so that nobody else's probes are in their files.

cat >"${scratch:?}/launcher.c" <<'EOF'
#include <locale.h>
#include <stdlib.h>
#include <wchar.h>
int Py_Main(int argc, wchar_t **argv);
int main(int argc, char **argv)
{
	wchar_t **wide = calloc(argc + 1, sizeof(*wide));

	setlocale(LC_ALL, "C.UTF-8");
	for (int i = 0; i < argc; i++) {
		size_t size = mbstowcs(NULL, argv[i], 0) + 1;

		wide[i] = calloc(size, sizeof(**wide));
		mbstowcs(wide[i], argv[i], size);
	}
	return Py_Main(argc, wide);
}
EOF

# about PYTHON EXPRESSION: of sys, os and v = sysconfig.get_config_var.
about() {
	"$1" -c "import os, sys, sysconfig
v = sysconfig.get_config_var
print($2)"
}

# start_prefix FOLDER PYTHON: bin/ and the standard library, by links.
start_prefix() {
	mkdir -p "$1/bin" "$1/lib" &&
		ln -s "$(about "$2" 'os.path.dirname(os.__file__)')" "$1/lib/"
}

# strip_for_good STRIP-OPTION FILE: and with another build-id, so that no debug file is found for it.
strip_for_good() {
	strip "$1" --remove-section=.gnu_debuglink "$2" &&
		objcopy --dump-section .note.gnu.build-id="$scratch/build-id" "$2" &&
		printf GT | dd of="$scratch/build-id" bs=1 seek=20 conv=notrunc status=none &&
		objcopy --update-section .note.gnu.build-id="$scratch/build-id" "$2"
}

# own_libpython FOLDER PYTHON [STRIP-OPTION]: as conda has it: a prefix with a libpython of
# its own, which bin/python3 finds by its RPATH. Prints the interpreter's path; fails if this one
# has no libpython.
own_libpython() {
	prefix_lib=$(about "$2" 'os.path.join(v("LIBDIR"), v("INSTSONAME") or v("LDLIBRARY"))')
	case $prefix_lib in
	*.so*) [ -f "$prefix_lib" ] || return 1 ;;
	*) return 1 ;;
	esac
	start_prefix "$1" "$2" && cp -L "$prefix_lib" "$1/lib/" || return 1
	prefix_copy=$1/lib/$(basename "$prefix_lib")
	chmod u+w "$prefix_copy"
	[ -z "${3:-}" ] || strip_for_good "$3" "$prefix_copy" || return 1
	# shellcheck disable=SC2016 # $ORIGIN is the dynamic linker's
	gcc -o "$1/bin/python3" "$scratch/launcher.c" "$prefix_copy" \
		-Wl,-rpath,'$ORIGIN/../lib' >&2 && echo "$1/bin/python3"
}

# static_python FOLDER PYTHON [FLAG]: with everything in bin/python3, if the libpython.a is here. -static: with
# the C library, too, so that there is no dynamic linker.
static_python() {
	prefix_lib=$(about "$2" 'os.path.join(v("LIBPL"), v("LIBRARY"))')
	[ -f "$prefix_lib" ] && start_prefix "$1" "$2" || return 1
	# shellcheck disable=SC2046 # words
	gcc -no-pie -rdynamic ${3:+"$3"} -o "$1/bin/python3" "$scratch/launcher.c" \
		-Wl,--whole-archive "$prefix_lib" -Wl,--no-whole-archive \
		$(about "$2" 'v("LIBS") + " " + v("SYSLIBS")') -lpthread -ldl -lutil -lm \
		>&2 && echo "$1/bin/python3"
}

# copied_python FOLDER PYTHON: the file itself.
copied_python() {
	start_prefix "$1" "$2" && cp "$(readlink -f "$2")" "$1/bin/python3" && echo "$1/bin/python3"
}
