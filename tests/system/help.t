#!/bin/sh
# SPDX-License-Identifier: MIT
# Help and manual agree: every option of every --help is in the manual, and conversely; so is every
# command. Every package that configure requires is in README.md and quickstart.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
manual=$top_srcdir/share/giltracer.1

# help_options COMMAND: print the options of its --help, one per line.
help_options() {
	"$GILTRACER" ${1:+"$1"} --help | sed -n '/^Options:/,/^$/p' |
		grep -oE '^ +(-[A-Za-z], )?(--[a-z-]+|-[A-Za-z])' | tr -s ', ' '\n' | grep . | sort
}

# manual_options COMMAND: print the options that have an entry in its section of the manual.
manual_options() {
	awk -v heading="${1:+.Ss giltracer $1}" '
		/^\.S[hs] / { there = heading ? $0 == heading : $0 == ".Sh OPTIONS" }
		there && /^\.It Fl/ {
			for (i = 3; i <= NF; i++)
				if ($i == "Ar" || $i == "Cm" || $i == "Ns")
					break
				else if ($i != "," && $i != "Fl")
					print "-" $i
		}' "$manual" | sort
}

# shared_options COMMAND: the same, with those of OPTIONS if the section says that the command takes them.
shared_options() {
	manual_options "$1"
	if sed -n "/^\.Ss giltracer $1\$/,/^\.S[hs] /p" "$manual" | grep -q 'the options above'; then
		manual_options ''
	fi
}

ok '--help' "$GILTRACER" --help
commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' out)
like "$commands" '^report$' 'lists the commands'
is "$(printf '%s\n' "$commands" | sort)" \
	"$(sed -n 's/^\.Ss giltracer //p' "$manual" | sort)" 'the same as the manual'

for command in '' $commands; do
	ok "giltracer $command --help" "$GILTRACER" ${command:+"$command"} --help
	like "$(cat out)" "^Usage: giltracer ${command:-\[}" 'has a usage line'
	help_options "$command" >help-options
	manual_options "$command" >manual-options
	ok "giltracer $command: has options" test -s help-options
	is "$(shared_options "$command" | sort -u | comm -23 help-options -)" '' \
		"giltracer $command: all are in the manual"
	# main handles these itself, so they are in no option table.
	is "$(comm -13 help-options manual-options | grep -vE '^--(version|completion)$')" '' \
		"giltracer $command: all in the manual are real"
	exits 125 "giltracer $command --no-such-option is refused" \
		"$GILTRACER" ${command:+"$command"} --no-such-option
	like "$(cat err)" '^giltracer: error: .*--no-such-option' 'by its name'
done

# The numbers of a thread in the document, and the columns of the tables, are in the manual.
report=$top_srcdir/giltracer/report
threads_keys() {
	sed -n 's/.*\] = { "\([a-z_]*\)",.*/\1/p' "$report/threads.c"
}
threads_headings() {
	sed -n 's/.*COLUMN([A-Z]*, [A-Z_]*, [A-Z_]*, \(h_[a-z_]*\),.*/\1/p' "$report/threads.c" | sort -u |
		while read -r name; do sed -n "s/^PHRASE0($name, \"\(.*\)\")/\1/p" "$report/phrases.def"; done
}
# absent: print the lines that are not in the manual.
absent() {
	while IFS= read -r text; do
		tr -s ' \n' '  ' <"$manual" | grep -qF "$text" || printf '%s\n' "$text"
	done
}
ok 'numbers of threads are found' test "$(threads_keys | wc -l)" -ge 33
ok 'and columns' test "$(threads_headings | wc -l)" -ge 21
is "$(threads_keys | absent)" '' '  the manual has each number'
is "$(threads_headings | absent)" '' '  and each column'
is "$(echo 'no such%' | absent)" 'no such%' '  and a missing one is seen'

formats=$("$GILTRACER" export --help | sed -n '1,/^Formats:/d; s/^  \([a-z-]*\) .*/\1/p')
like "$formats" '^speedscope$' 'export formats are found'
for format in $formats; do
	ok "the manual has the export format $format" grep -qx "\.It Cm $format" "$manual"
done

packages=$(sed -n 's/^GT_LIB(.*\[\([a-z -]*\)\])$/\1/p' "$top_srcdir/configure.ac")
for package in $packages; do
	for file in README.md quickstart; do
		like "$(cat "$top_srcdir/$file")" "(^|[[:space:]])$package([[:space:]]|\$)" \
			"$file names $package"
	done
done

done_testing
