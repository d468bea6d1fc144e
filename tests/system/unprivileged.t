#!/bin/sh
# SPDX-License-Identifier: MIT
# Without any privilege, with perf absent, the report is the same as root's.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes setpriv python3
program=$top_srcdir/tests/system/unprivileged.py

mkdir bare user
for tool in sh env python3 cat; do
	ln -s "$(command -v "$tool")" bare/
done
chmod 755 .
chmod 777 user

# Another user or, if that user may not read the interpreter, root without root's capabilities.
as_user() {
	if setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$python" -a -r "$program"; then
		undisturbed setpriv --reuid=65534 --regid=65534 --clear-groups \
			env PATH="$scratch/bare" HOME=/nonexistent TMPDIR="$scratch/user" "$@"
	else
		undisturbed setpriv --inh-caps=-all --bounding-set=-all env PATH="$scratch/bare" "$@"
	fi
}

cpythons >pythons
while read -r version python <&3; do
	# A busy machine makes two executions differ. Only root's recording says for how long threads
	# were runnable, and the verdict may be about that.
	for _ in 1 2 3; do
		rm -f root.json root.html user.json user.html
		ok "$version: root" undisturbed "$GILTRACER" -q --python "$python" --python-trace none \
			--json root.json -o root.html "$program" run
		ok "$version: a user" as_user "$GILTRACER" --python "$python" --python-trace none \
			--json user/user.json -o user/user.html "$program" run
		like "$(cat err)" 'GIL events by a preloaded library' "$version: it is said how"
		mv user/user.json user/user.html .
		differ=$(python3 "$program")
		[ -n "$differ" ] || break
		retried "$version: the same report" "$differ"
	done
	is "$differ" '' "$version: the same report"
	is "$(json user.json '[h["function"] for h in d["hogs"][:1]]')" "['crunch']" \
		"$version: which names the culprit"
done 3<pythons

leaves_nothing
done_testing
