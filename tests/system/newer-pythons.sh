#!/bin/sh
# SPDX-License-Identifier: MIT
# Pythons that this Debian does not have, for the tests: packages of newer suites, unpacked beside
# each other with the C library that they need, and started through its dynamic linker. Nothing is
# installed, and root is not needed. What is there already is left alone.
#
#	newer-pythons.sh FOLDER [VERSION...]      (3.13 3.14 3.15)
set -eu
# shellcheck source=tests/system/apt-private.sh
. "$(dirname "$0")/apt-private.sh"
folder=$1
shift
[ $# -gt 0 ] || set -- 3.13 3.14 3.15

# Moved into place when it is whole.
new=$folder/.new
there() {
	"$folder/debian/usr/bin/python$1" -c 'import ssl, ctypes, asyncio' 2>/dev/null &&
		[ -r "$folder/debian/usr/include/python$1/Python.h" ]
}

missing=
for version in "$@"; do
	there "$version" || missing=yes
done
[ -n "$missing" ] || exit 0

rm -rf "$new"
mkdir -p "$new/debian"
folder=$(cd "$folder" && pwd)
new=$folder/.new

packages='libc6 libexpat1 zlib1g libssl3t64 libffi8 libzstd1'
for version in "$@"; do
	packages="$packages python$version-minimal libpython$version-minimal \
		libpython$version-stdlib libpython$version-dev"
done
apt_private "$new/apt" deb trixie sid
# shellcheck disable=SC2086 # words
(cd "$new/apt/cache" && thrice apt download $packages)
for package in "$new"/apt/cache/*.deb; do
	dpkg-deb --fsys-tarfile "$package" |
		tar -x -C "$new/debian" --exclude='*.a' --exclude='./usr/share/doc'
done

for version in "$@"; do
	python=$new/debian/usr/bin/python$version
	mv "$python" "$python.real"
	cat >"$python" <<'EOF'
#!/bin/sh
lib=$(dirname "$(readlink -f "$0")")/../lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$lib" "$0.real" "$@"
EOF
	chmod +x "$python"
done
rm -rf "$folder/debian"
mv "$new/debian" "$folder/debian"
rm -r "$new"
for version in "$@"; do
	"$folder/debian/usr/bin/python$version" -c 'import sys; print(sys.executable, sys.version)'
	there "$version"
done
