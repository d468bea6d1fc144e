# SPDX-License-Identifier: MIT
# Assemble page.html: copy page.in.html, and replace each line "@file NAME@" by that style sheet of
# share/report, and each line "@module NAME@" by that module and all modules that it imports, in one
# scope: each file once, after those that it imports. A circle of imports is an error, and so are a
# name that is imported but not exported, and a name that two files of a scope declare. Comments,
# indentation, empty lines and unnecessary spaces are removed; const becomes let; names do not
# change. Usage: awk -v dir=share/report -f assemble.awk page.in.html
function fail(text) {
	print "assemble.awk: " text > "/dev/stderr"
	failed = 1
	exit 1
}

# Remove the spaces around operators and brackets in code between strings. If the code has two signs
# with a space between them, as in "a - -b", spaces around signs are kept.
function tight(code,    out, token, ops) {
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

# A line is left unchanged if it may contain more than code and plain "strings". const becomes let:
# the linter has checked that constants are not assigned to.
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
	for (i = 1; i <= n; i += 2) {
		gsub(/const /, "let ", parts[i])
		parts[i] = tight(parts[i])
	}
	line = parts[1]
	for (i = 2; i <= n; i++)
		line = line "\"" parts[i]
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

# A line is joined to the one before if that does not end in a comment and the language permits it:
# before closing brackets, and wherever an expression or statement continues or has ended. A comma
# before a closing bracket is removed, and so is a semicolon, unless it may be the whole body of a
# loop. Consecutive declarations of the same depth are merged.
function put(line, depth,    joins, closes, declares) {
	joins = held != "" && last !~ /\/\// && length(held) < 400
	closes = line ~ /^[]})]/
	if (joins && closes) {
		sub(/,$/, "", held)
		if (line ~ /^}/ && last !~ /^(for|while)[(]/)
			sub(/;$/, "", held)
	}
	if (!closes) {
		while (deepest > depth)
			declaring[deepest--] = 0
		deepest = depth
		declares = line ~ /^let /
		if (joins && declares && declaring[depth] && held ~ /;$/) {
			sub(/;$/, ",", held)
			sub(/^let /, "", line)
		}
		declaring[depth] = declares
	}
	if (!joins || (line !~ /^([]})?:.]|[&|+] )/ && held !~ /[[({,;})=>&|?:+]$/))
		flush()
	held = held line
	last = line
}

function flush() {
	if (held != "")
		print held
	held = last = ""
}

function safe(path, line,    lower) {
	lower = tolower(line)
	if (lower ~ /<\/(script|style)/ || lower ~ /<script/ || line ~ /<!--/)
		fail(path ": a line would end or change the element around it: " line)
}

function include(name,    path, line, got, comment) {
	path = dir "/" name
	while ((got = (getline line < path)) > 0) {
		safe(path, line)
		sub(/^[ \t]+/, "", line)
		if (!comment && line ~ /^\/\*/)
			comment = 1
		if (!comment && line != "")
			put(style(line))
		if (comment && line ~ /\*\/$/)
			comment = 0
	}
	if (got < 0)
		fail(path ": cannot be read")
	close(path)
	flush()
}

# Add the text of a module, after the modules that it imports.
function module(name,    path, line, got, n, i, import, text, depths, depth, comment) {
	if (state[name] == "done")
		return
	if (state[name] == "begun")
		fail(name ": it imports itself, by way of others")
	state[name] = "begun"
	path = dir "/" name
	while ((got = (getline line < path)) > 0) {
		safe(path, line)
		if (import != "" || line ~ /^import /) {
			import = import line
			if (line ~ /;$/) {
				imports(name, import)
				import = ""
			}
			continue
		}
		declare(name, line)
		sub(/^export /, "", line)
		match(line, /^[ \t]*/)
		depth = RLENGTH
		line = substr(line, RLENGTH + 1)
		if (!comment && line ~ /^\/\*/)
			comment = 1
		if (!comment && line != "" && line !~ /^\/\//) {
			text[++n] = script(line)
			depths[n] = depth
		}
		if (comment && line ~ /\*\/$/)
			comment = 0
	}
	if (got < 0)
		fail(path ": cannot be read")
	close(path)
	for (i = 1; i <= n; i++)
		put(text[i], depths[i])
	flush()
	state[name] = "done"
}

# import {a, b} from "./x.js";
function imports(name, line,    from, names, n, i) {
	if (line !~ /^import [{][^}]*[}] from "\.\/[a-z_]+\.js";$/)
		fail(name ": an import should be like import {a, b} from \"./c.js\": " line)
	from = names = line
	sub(/.*"\.\//, "", from)
	sub(/".*/, "", from)
	sub(/.*[{]/, "", names)
	sub(/[}].*/, "", names)
	gsub(/[ \t]/, "", names)
	module(from)
	n = split(names, list, ",")
	for (i = 1; i <= n; i++)
		if (list[i] != "" && !((from, list[i]) in exported))
			fail(name ": " from " does not export " list[i])
}

# Register the name that a line at the left edge declares.
function declare(name, line,    exports, word) {
	if (line !~ /^(export )?(async )?(function[*]?|const|let|class) /)
		return
	if (line ~ /,$/)
		fail(name ": one declaration a line, please: " line)
	exports = line ~ /^export /
	sub(/^(export )?(async )?(function[*]?|const|let|class) /, "", line)
	match(line, /^[A-Za-z0-9_$]+/)
	word = substr(line, 1, RLENGTH)
	if (word in declared)
		fail(name ": " declared[word] " has a " word ", too")
	declared[word] = name
	if (exports)
		exported[name, word] = 1
}

/^@module .*@$/ {
	split("", state)
	split("", declared)
	split("", exported)
	module(substr($0, 9, length($0) - 9))
	next
}
/^@file .*@$/ {
	include(substr($0, 7, length($0) - 7))
	next
}
{ print }
END { if (failed) exit 1 }
