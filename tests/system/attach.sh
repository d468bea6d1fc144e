# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154 # of lib.sh
# For tests of running programs: attach.py, one of whose threads keeps the GIL for 30 ms at a time in a call
# of C, while another one spins for it.

# start COMMAND…: of the interpreter; the program's number in $pid.
start() {
	begun "$@" "$top_srcdir/tests/system/attach.py" ready go
}

# finish NAME
finish() {
	over
	status=0
	wait "$pid" || status=$?
	is $status 0 "$1: the program ends as without giltracer"
}
