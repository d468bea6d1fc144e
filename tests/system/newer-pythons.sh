#!/bin/sh
# SPDX-License-Identifier: MIT
# Pythons that this Debian does not have, for the tests: packages of newer suites, whose checksums apt verifies,
# unpacked beside each other with the C library that they need, and started through its dynamic
# linker. Nothing is installed, and root is not needed. What is there already is left alone.
#
#	newer-pythons.sh FOLDER [VERSION...]      (3.13 3.14 3.15)
set -eu
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
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
mkdir -p "$new/apt/state/lists/partial" "$new/apt/cache/archives/partial" "$new/debian"
folder=$(cd "$folder" && pwd)
new=$folder/.new
printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" trixie "$keyring" "$mirror" sid \
	>"$new/apt/sources.list"
: >"$new/apt/status"

apt() {
	apt-get -q -o Dir::Etc::sourcelist="$new/apt/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o Dir::State="$new/apt/state" \
		-o Dir::State::status="$new/apt/status" -o Dir::Cache="$new/apt/cache" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false "$@"
}

packages='libc6 libexpat1 zlib1g libssl3t64 libffi8 libzstd1'
for version in "$@"; do
	packages="$packages python$version-minimal libpython$version-minimal \
		libpython$version-stdlib libpython$version-dev"
done
apt update
# shellcheck disable=SC2086 # words
(cd "$new/apt/cache" && apt download $packages)
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
