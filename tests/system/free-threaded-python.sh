#!/bin/sh
# SPDX-License-Identifier: MIT
# A CPython without a GIL, which no package has, for nogil.t: Debian's source of python3.13, built
# with what the test needs, in about two minutes. Nothing is installed.
#
#	free-threaded-python.sh FOLDER		FOLDER/free-threaded/bin/python3
set -eu
# shellcheck source=tests/system/apt-private.sh
. "$(dirname "$0")/apt-private.sh"
mkdir -p "$1"
folder=$(cd "$1" && pwd)/free-threaded
prefix=$folder.new
work=$folder.work

rm -rf "$prefix" "$work"
trap 'rm -rf "$work" "$prefix"' EXIT
mkdir -p "$work/build/Modules" "$prefix/bin" "$prefix/lib" "$prefix/include"
apt_private "$work/apt" deb-src trixie
(cd "$work" && thrice apt source --download-only --tar-only python3.13)
mkdir "$work/source"
tar -xf "$work"/python3.13_*.orig.tar.xz -C "$work/source" --strip-components=1

# These modules are all there is: the others would take longer than the interpreter.
cat >"$work/build/Modules/Setup.local" <<-EOS
	*static*
	_asyncio _asynciomodule.c
	_bisect _bisectmodule.c
	_contextvars _contextvarsmodule.c
	_datetime _datetimemodule.c
	_heapq _heapqmodule.c
	_json _json.c
	_lsprof _lsprof.c rotatingtree.c
	_opcode _opcode.c
	_pickle _pickle.c
	_posixsubprocess _posixsubprocess.c
	_queue _queuemodule.c
	_random _randommodule.c
	_sha2 sha2module.c -I\$(srcdir)/Modules/_hacl/include Modules/_hacl/libHacl_Hash_SHA2.a
	_socket socketmodule.c
	_struct _struct.c
	array arraymodule.c
	fcntl fcntlmodule.c
	math mathmodule.c
	resource resource.c
	select selectmodule.c
	unicodedata unicodedata.c
EOS
cd "$work/build"
../source/configure -q --disable-gil --disable-test-modules --without-ensurepip \
	--without-doc-strings OPT='-O2 -DNDEBUG -g0 -w'
make -s -j"$(nproc)" python pybuilddir.txt

cp python "$prefix/bin/python3"
cp -R ../source/Include "$prefix/include/python3.13t"
cp pyconfig.h "$prefix/include/python3.13t"
rm -rf ../source/Lib/test ../source/Lib/idlelib ../source/Lib/ensurepip
cp -R ../source/Lib "$prefix/lib/python3.13t"
cp "$(cat pybuilddir.txt)"/_sysconfigdata* "$prefix/lib/python3.13t"
mkdir "$prefix/lib/python3.13t/lib-dynload"
rm -rf "$folder"
mv "$prefix" "$folder"
"$folder/bin/python3" -c 'import sys
assert not sys._is_gil_enabled()
print(sys.executable, sys.version)'
