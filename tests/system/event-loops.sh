#!/bin/sh
# SPDX-License-Identifier: MIT
# trio, uvloop, greenlet and gevent for each CPython, for the tests: into FOLDER/event-loops/VERSION, which is
# for PYTHONPATH.
# Always the same versions, the newest that this CPython can have. PYTHON has pip, and may be another version.
# What is there already is left alone.
#
#	event-loops.sh PYTHON FOLDER
set -eu
python=$1
folder=$2/event-loops
mkdir -p "$folder"

# packages VERSION: what this CPython needs.
packages() {
	common='sortedcontainers==2.4.0 idna==3.10'
	newer="$common outcome==1.3.0.post0 sniffio==1.3.1"
	case $1 in
	3.6) echo "$common trio==0.19.0 outcome==1.1.0 sniffio==1.2.0 attrs==22.2.0 async-generator==1.10
		immutables==0.19 typing-extensions==4.1.1 greenlet==2.0.2" ;;
	3.7) echo "$newer trio==0.22.2 attrs==24.2.0 exceptiongroup==1.3.0 importlib-metadata==6.7.0
		zipp==3.15.0 typing-extensions==4.7.1 uvloop==0.18.0 greenlet==3.1.1" ;;
	3.8) echo "$newer trio==0.27.0 attrs==25.3.0 exceptiongroup==1.3.0 typing-extensions==4.13.2
		uvloop==0.21.0 greenlet==3.1.1" ;;
	3.9) echo "$newer trio==0.31.0 attrs==25.3.0 exceptiongroup==1.3.0 typing-extensions==4.13.2
		uvloop==0.22.1 greenlet==3.2.4" ;;
	*)
		echo "$newer trio==0.35.0 attrs==26.1.0 exceptiongroup==1.3.0 typing-extensions==4.13.2
		uvloop==0.23.0 greenlet==3.5.6 gevent==26.9.0 zope.event==6.2"
		[ "$1" = 3.10 ] && echo zope.interface==8.6 || echo zope.interface==8.7
		;;
	esac
}

# get FOLDER VERSION PIP-ARGUMENT...
get() {
	target=$1
	version=$2
	shift 2
	"$python" -m pip install -q --disable-pip-version-check --no-deps --no-compile --target "$target" \
		--python-version "$version" --platform manylinux_2_28_x86_64 --platform manylinux_2_24_x86_64 \
		--platform manylinux2014_x86_64 --platform manylinux2010_x86_64 "$@"
}

for version in 3.6 3.7 3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do
	[ ! -d "$folder/$version" ] || continue
	new=$folder/.new
	rm -rf "$new"
	# shellcheck disable=SC2046 # a list
	get "$new" "$version" --only-binary=:all: $(packages "$version")
	[ "$version" != 3.6 ] || get "$new" 3.6 --upgrade contextvars==2.4
	find "$new" -type f \( -name '*.c' -o -name '*.pyx' -o -name '*.pxd' -o -path '*/tests/*' \) -delete
	mv "$new" "$folder/$version"
done
