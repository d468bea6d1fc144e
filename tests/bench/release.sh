# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Sets GILTRACER_BENCH_RELEASE to the giltracer of the last release, which benchmarks compare with: it may name
# another program, or a revision to build; otherwise that is the last tag. Empty: there is none.
: "${top_srcdir:?}" "${scratch:?}"
# shellcheck source=tests/cached.sh
. "$top_srcdir/tests/cached.sh"

# Called by cached, with the folder to fill.
make_release() {
	git -C "$top_srcdir" archive --prefix=source/ "$1" | tar -x -C "$2" &&
		(
			cd "$2/source" && autoreconf -fi && ./configure --prefix=/usr && make -j2 &&
				make install DESTDIR="$2"
		) >"$2/log" 2>&1 && rm -rf "$2/source"
}

release_find() {
	: "${GILTRACER_BENCH_RELEASE:=$(git -C "$top_srcdir" describe --tags --abbrev=0 2>/dev/null)}"
	[ -n "$GILTRACER_BENCH_RELEASE" ] && [ ! -x "$GILTRACER_BENCH_RELEASE" ] || return 0
	release_commit=$(git -C "$top_srcdir" rev-parse --verify -q "$GILTRACER_BENCH_RELEASE^{commit}") &&
		cached bench-release "$scratch/release" -- make_release "$release_commit" &&
		GILTRACER_BENCH_RELEASE=$scratch/release/usr/bin/giltracer && return 0
	echo "# release: cannot build $GILTRACER_BENCH_RELEASE"
	GILTRACER_BENCH_RELEASE=
}
GILTRACER_BENCH_RELEASE=${GILTRACER_BENCH_RELEASE:-}
release_find
export GILTRACER_BENCH_RELEASE
