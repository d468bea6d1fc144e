# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# For tests that install probes: an interpreter of their own, so that the probes are in a file that
# nobody else uses.

# private_python FOLDER [PYTHON]: prints the path of a copy of an interpreter, as a virtual
# environment of copies with, where it has one, its own libpython.
private_python() {
	tap_from=${2:-$(cpythons | sed -n '1s/^[^ ]* //p')}
	tap_lib=$("$GILTRACER" probes --python "$tap_from" --json |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["file"])') || return 1
	"$tap_from" -m venv --without-pip --copies "$1" || return 1
	case $(basename "$tap_lib") in
	libpython*)
		mkdir "$1/own" && cp -L "$tap_lib" "$1/own/" || return 1
		mv "$1/bin/python3" "$1/bin/python-own" || return 1
		printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/own exec %s/bin/python-own "$@"\n' "$1" "$1" \
			>"$1/bin/python-start"
		chmod +x "$1/bin/python-start"
		echo "$1/bin/python-start"
		;;
	*) echo "$1/bin/python3" ;;
	esac
}

# group_of PYTHON: print the tracefs group of its probes.
group_of() {
	"$GILTRACER" probes --python "$1" --json |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["group"])'
}

# probes_in GROUP: print the number of its probes in the kernel.
probes_in() {
	grep -c ":$1/" "${tracefs:?}/uprobe_events"
}

# nobody COMMAND…: run it as an ordinary user. The shell in between has no capabilities left that would
# help it find the command.
nobody() {
	# shellcheck disable=SC2016
	setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \
		sh -c 'exec "$0" "$@"' "$@"
}

# Only one test at a time changes the kernel's settings.
lock_system() {
	exec 8>/run/lock/giltracer-test-setup && flock 8
}

# default_settings: set the kernel's settings that decide what ordinary users may record to the kernel's
# defaults, from now to as_found, or to the end of the test; no other test changes them meanwhile.
tap_sysctl=/proc/sys/kernel
default_settings() {
	lock_system
	tap_paranoid=$(cat $tap_sysctl/perf_event_paranoid)
	tap_mlock=$(cat $tap_sysctl/perf_event_mlock_kb)
	at_exit as_found
	echo 2 >$tap_sysctl/perf_event_paranoid
	echo 516 >$tap_sysctl/perf_event_mlock_kb
}
as_found() {
	[ -z "$tap_paranoid" ] || echo "$tap_paranoid" >$tap_sysctl/perf_event_paranoid
	[ -z "$tap_paranoid" ] || echo "$tap_mlock" >$tap_sysctl/perf_event_mlock_kb
	tap_paranoid=
	exec 8>&-
}
