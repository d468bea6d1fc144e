# SPDX-License-Identifier: MIT
# Assemble page.html: copy page.in.html, with each line "@file NAME@" replaced by that file of
# share/report, and "@file app@" by the files that -v app="..." lists, in that order. Comments on
# lines of their own, indentation and empty lines stay behind.
# Usage: awk -v dir=share/report -v app="a.js b.js" -f assemble.awk page.in.html
function fail(text) {
	print "assemble.awk: " text > "/dev/stderr"
	failed = 1
	exit 1
}
function include(name,    path, line, lower, got, comment) {
	path = dir "/" name
	while ((got = (getline line < path)) > 0) {
		lower = tolower(line)
		if (lower ~ /<\/(script|style)/ || lower ~ /<script/ || line ~ /<!--/)
			fail(path ": a line would end or change the element around it: " line)
		sub(/^[ \t]+/, "", line)
		if (!comment && line ~ /^\/\*/)
			comment = 1
		if (!comment && line != "" && line !~ /^\/\//)
			print line
		if (comment && line ~ /\*\/$/)
			comment = 0
	}
	if (got < 0)
		fail(path ": cannot be read")
	close(path)
}
/^@file app@$/ {
	n = split(app, files, " ")
	for (i = 1; i <= n; i++) {
		sub(/.*\//, "", files[i])
		include(files[i])
	}
	next
}
/^@file .*@$/ {
	include(substr($0, 7, length($0) - 7))
	next
}
{ print }
END { if (failed) exit 1 }
