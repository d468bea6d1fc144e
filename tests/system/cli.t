#!/bin/sh
# SPDX-License-Identifier: MIT
# main's own work: --version, --help, exit statuses, a full disk.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

ok '--version' "$GILTRACER" --version
like "$(cat out)" '^giltracer [0-9]+\.[0-9]+\.[0-9]+$' 'prints name and version'

to_full_disk() {
	"$GILTRACER" --version >/dev/full
}
exits 125 'a full disk is not success' to_full_disk
like "$(cat err)" '^giltracer: error: standard output: .*No space left' 'and is said'

leaves_nothing
done_testing
