#!/bin/sh
# SPDX-License-Identifier: MIT
# Every file names its licence in its first lines.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
cd "$top_srcdir" || exit 99

# Source files are in these folders and at the top; documents, recordings and expected outputs have no
# licence line.
files=$(
	find giltracer probes share tests .ci -type f 2>/dev/null |
		grep -vE '\.(md|json|txt|gz|png|log|trs|o|a|out|in|data|perf|pyc)$' |
		grep -vE '/(\.deps|seeds|golden|data|node_modules|__pycache__)/' |
		grep -vE '/(\.dirstamp|build-tree)$|^share/report/(page\.html$|built/)|^tests/chromium-renders\.'
	ls configure.ac Makefile.am quickstart 2>/dev/null
)
# shellcheck disable=SC2086 # lists of names without blanks
text=$(grep -lI '' $files) # neither programs nor empty files
# shellcheck disable=SC2086
grep -n -m 1 'SPDX-License-Identifier: MIT' $text | awk -F: '$2 <= 4 { print $1 }' >"$scratch/good"
bad=$(echo "$text" | grep -vFxf "$scratch/good")
seen=$(echo "$text" | wc -l)
is "$bad" '' 'every source names its licence'
ok "sources were looked at: $seen" test "$seen" -gt 20
like "$(head -n 1 LICENSE)" 'MIT License' 'and the licence is there'

done_testing
