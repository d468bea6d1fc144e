# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# What takes long to get is made once and kept outside the clone, in ~/.cache/giltracer, for other
# builds and later runs: see tests/README.md.

# cached NAME FOLDER [RECIPE...] -- COMMAND...: put into FOLDER what COMMAND... made in the folder that is
# its last argument, now or earlier. It is made again where the command, a file RECIPE, the system or
# the month is another one. Others may do the same at the same time, and end at any time: what is in
# the cache is whole. If $cached_linked is set, files in this folder of FOLDER are hard links where possible,
# which is for many files that nobody changes in place.
cached() (
	cached_name=$1
	cached_folder=$2
	shift 2
	cached_key=$(
		cat /etc/os-release
		uname -m
		date +%Y-%m
		while [ "$1" != -- ]; do
			cat "$1"
			shift
		done
		printf '%s\n' "$@"
	) || exit
	cached_key=$(printf '%s\n' "$cached_key" | sha256sum | cut -c -16)
	while [ "$1" != -- ]; do
		shift
	done
	shift
	mkdir -p "$cached_folder" || exit
	cached_all=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/giltracer
	if ! mkdir -p "$cached_all" 2>/dev/null || [ ! -w "$cached_all" ]; then
		"$@" "$cached_folder"
		exit
	fi
	cached_store=$cached_all/$cached_name-$cached_key
	exec 9>"$cached_all/.$cached_name.lock"
	flock 9 || exit
	if [ ! -d "$cached_store" ]; then
		rm -rf "$cached_all/.$cached_name.new"
		find "$cached_all" -mindepth 1 -maxdepth 1 -name "$cached_name-*" -mtime +30 \
			-exec rm -rf {} +
		mkdir "$cached_all/.$cached_name.new" &&
			"$@" "$cached_all/.$cached_name.new" 9>&- &&
			mv "$cached_all/.$cached_name.new" "$cached_store" || exit
	fi
	touch "$cached_store"
	if [ -n "${cached_linked:-}" ] && mkdir -p "$cached_folder/$cached_linked" &&
		cp -al "$cached_store/$cached_linked/." "$cached_folder/$cached_linked/" 2>/dev/null; then
		tar -C "$cached_store" --exclude="./$cached_linked/*" -cf - . |
			tar -C "$cached_folder" --numeric-owner -xpf -
	else # another file system
		cp -a "$cached_store/." "$cached_folder/"
	fi
)
