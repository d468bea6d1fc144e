#!/bin/sh
# SPDX-License-Identifier: MIT
# Pythons that this Debian does not have, for versions.t: packages of newer suites, unpacked beside
# each other with the C library that they need, and started through its dynamic linker. Nothing is
# installed.
#
#	newer-pythons.sh FOLDER [VERSION...]      (3.13 3.14)
set -eu
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
folder=$1
shift
[ $# -gt 0 ] || set -- 3.13 3.14

mkdir -p "$folder/apt/state/lists/partial" "$folder/apt/cache/archives/partial" "$folder/debian"
folder=$(cd "$folder" && pwd)
printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" trixie "$keyring" "$mirror" sid \
	>"$folder/apt/sources.list"
: >"$folder/apt/status"

apt() {
	apt-get -q -o Dir::Etc::sourcelist="$folder/apt/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o Dir::State="$folder/apt/state" \
		-o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt/cache" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none "$@"
}

packages='libc6 libexpat1 zlib1g libssl3t64 libffi8 libzstd1'
for version in "$@"; do
	packages="$packages python$version-minimal libpython$version-minimal \
		libpython$version-stdlib"
done
apt update
# shellcheck disable=SC2086 # words
cd "$folder/apt/cache" && apt download $packages
for package in "$folder"/apt/cache/*.deb; do
	dpkg -x "$package" "$folder/debian"
done

for version in "$@"; do
	python=$folder/debian/usr/bin/python$version
	[ -f "$python.real" ] || mv "$python" "$python.real"
	cat >"$python" <<'EOF'
#!/bin/sh
lib=$(dirname "$(readlink -f "$0")")/../lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$lib" "$0.real" "$@"
EOF
	chmod +x "$python"
	"$python" -c 'import sys; print(sys.executable, sys.version)'
done
rm -r "$folder/apt"
