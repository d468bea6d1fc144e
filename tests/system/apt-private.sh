# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# apt with lists, cache and sources of its own, for scripts that get other suites' packages: nothing
# of the system's is touched, and root is not needed. The archive's signature covers the indexes,
# and those the packages. The mirror is the system's, or DEBIAN_MIRROR.
#
#	apt_private FOLDER TYPE SUITE...	TYPE deb or deb-src; then apt COMMAND...
#	thrice COMMAND...			up to three times, each with new indexes: the archive may
#						change between an index and what it names

apt_mirror() {
	apt-get update --print-uris | sed -n "/security/d; s,^'\([^']*\)/dists/.*,\1,p" | sed q
}

apt_private() {
	apt_folder=$1
	apt_type=$2
	shift 2
	mkdir -p "$apt_folder/state/lists/partial" "$apt_folder/cache/archives/partial"
	for suite in "$@"; do
		printf '%s [signed-by=%s] %s %s main\n' "$apt_type" \
			/usr/share/keyrings/debian-archive-keyring.gpg \
			"${DEBIAN_MIRROR:-$(apt_mirror)}" "$suite"
	done >"$apt_folder/sources.list"
	: >"$apt_folder/status"
}

thrice() {
	for _ in 1 2 3; do
		! apt update || ! "$@" || return 0
	done
	return 1
}

apt() {
	apt-get -q -o Dir::Etc::sourcelist="$apt_folder/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null -o Dir::State="$apt_folder/state" \
		-o Dir::State::status="$apt_folder/status" -o Dir::Cache="$apt_folder/cache" \
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false "$@"
}
