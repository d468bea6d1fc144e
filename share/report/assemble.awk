# SPDX-License-Identifier: MIT
# Assemble page.html: copy page.in.html, with each line "@file NAME@" replaced by that file of
# share/report, and "@file app@" by the files that -v app="..." lists, in that order. Comments,
# indentation, empty lines and spaces without meaning stay behind; names stay names.
# Usage: awk -v dir=share/report -v app="a.js b.js" -f assemble.awk page.in.html
function fail(text) {
	print "assemble.awk: " text > "/dev/stderr"
	failed = 1
	exit 1
}

# Code between strings: no spaces around what cannot grow together with its neighbour.
function tight(code,    out, token) {
	if (code !~ /[-+] [-+]/)
		ops = "[-+=<>&|?:,;{}()*!]"
	else
		ops = "[=<>&|?:,;{}()*!]"
	while (match(code, " ?" ops "+ ?")) {
		token = substr(code, RSTART, RLENGTH)
		gsub(/ /, "", token)
		out = out substr(code, 1, RSTART - 1) token
		code = substr(code, RSTART + RLENGTH)
	}
	return out code
}

# A line is left alone if it might have more in it than code and plain "strings".
function script(line,    at, n, parts, i, quotients) {
	if (line ~ /`/)
		fail("no template literals, please: " line)
	at = match(line, / \/\/ /)
	if (at && substr(line, 1, at) !~ /'/ && split(substr(line, 1, at), parts, "\"") % 2)
		line = substr(line, 1, at - 1)
	n = split(line, parts, "\"")
	for (i = 1; i <= n; i++) {
		quotients = gsub(/ \/ /, " / ", parts[i])
		if (i % 2 ? parts[i] ~ /['\\]/ || gsub(/\//, "/", parts[i]) > quotients : parts[i] ~ /\\$/)
			return line
	}
	line = tight(parts[1])
	for (i = 2; i <= n; i++)
		line = line "\"" (i % 2 ? tight(parts[i]) : parts[i])
	return line
}

function style(line) {
	gsub(/: /, ":", line)
	gsub(/ > /, ">", line)
	gsub(/; ?/, ";", line)
	gsub(/, /, ",", line)
	gsub(/ ?[{] ?/, "{", line)
	gsub(/;? ?}/, "}", line)
	return line
}

# A line of closing brackets joins the one before, unless that might end in a comment.
function put(line) {
	if (line !~ /^[]})]+[;,]?$/ || last ~ /\/\//)
		printf "%s", last == "" ? "" : "\n"
	printf "%s", last = line
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
			put(name ~ /\.css$/ ? style(line) : script(line))
		if (comment && line ~ /\*\/$/)
			comment = 0
	}
	if (got < 0)
		fail(path ": cannot be read")
	close(path)
	print ""
	last = ""
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
