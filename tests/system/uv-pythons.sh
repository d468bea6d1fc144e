#!/bin/sh
# SPDX-License-Identifier: MIT
# CPythons as uv installs them (python-build-standalone), for the tests, out of a Go module that
# contains them: 3.10 and 3.11 have a libpython with symbols, 3.14 is static and stripped, and BOLT has
# moved its functions. Each is about 65 MB. Nothing is installed, and root is not needed. What is there
# already is left alone.
#
#	uv-pythons.sh FOLDER [BUILD...]		FOLDER/uv/VERSION/bin/python3
set -eu
module=github.com/kluctl/go-embed-python
mkdir -p "$1"
folder=$(cd "$1" && pwd)/uv
shift
[ $# -gt 0 ] || set -- 3.10.16-20241219-1 3.11.11-20241219-1 3.14.6-20260610-1

# extract MODULE FOLDER: its files are listed with their modes, as Go has them, and some are compressed.
extract() {
	python3 - "$1/python/internal/data/linux-$(go env GOARCH)" "$2" <<-'END'
		import gzip, json, os, sys

		module, folder = sys.argv[1:]
		is_folder, is_link = 1 << 31, 1 << 27
		with open(module + "/files.json") as listing:
		    files = json.load(listing)["files"]
		for entry in files:
		    path = os.path.join(folder, entry["name"])
		    os.makedirs(path if entry["perm"] & is_folder else os.path.dirname(path), exist_ok=True)
		    if entry["perm"] & is_folder:
		        continue
		    if entry["perm"] & is_link:
		        os.symlink(entry["symlink"], path)
		        continue
		    source = os.path.join(module, entry["name"])
		    with gzip.open(source + ".gz") if entry.get("compressed") else open(source, "rb") as data:
		        content = data.read()
		    with open(path, "wb") as copy:
		        copy.write(content)
		    os.chmod(path, entry["perm"] & 0o755)
	END
}

# Go makes its folders read-only.
new=$folder/.new
clean() {
	[ ! -d "$new" ] || chmod -R u+w "$new"
	rm -rf "$new"
}
trap clean EXIT
for build in "$@"; do
	version=${build%%-*}
	there=$folder/$version/bin/python3
	if ! "$there" -c 'import ssl, ctypes, asyncio' 2>/dev/null; then
		mkdir -p "$new/module"
		(cd "$new/module" && GOFLAGS=-mod=mod GOMODCACHE="$new/cache" \
			go mod download "$module@v0.0.0-$build")
		extract "$new/cache/$module@v0.0.0-$build" "$new/$version"
		rm -rf "${folder:?}/$version"
		mv "$new/$version" "$folder/$version"
		clean
	fi
	"$there" -c 'import ssl, ctypes, asyncio, sys; print(sys.executable, sys.version)'
done
