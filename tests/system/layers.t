#!/bin/sh
# SPDX-License-Identifier: MIT
# Which folder may include which: data flows one way. Only base and the commands print or exit.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
cd "$top_srcdir/giltracer" || exit 99

# sources FOLDER: print all C files in it, at any depth.
sources() {
	find "$1" -name '*.[ch]' | sort
}

# includes FOLDER: print "FILE INCLUDED-FOLDER" for each #include of one of our own folders. A header
# without a folder is in the same folder as the file.
includes() {
	sources "$1" | xargs grep -H '^#include "' | sed -n 's,^\([^:]*\):#include "\([^/"]*\)/.*,\1 \2,p'
}

# above FOLDER: print includes of the commands' own headers, which are in no folder.
above() {
	sources "$1" | while read -r file; do
		grep -Hn '^#include "[^/"]*"' "$file" | while IFS='"' read -r place header _; do
			[ -e "${file%/*}/$header" ] || echo "$place\"$header\""
		done
	done
}

# may FOLDER ALLOWED…
may() {
	folder=$1
	shift
	[ -d "$folder" ] || return 0
	allowed=" $folder $* "
	bad=$(includes "$folder" | while read -r file included; do
		case $allowed in
		*" $included "*) ;;
		*) echo "$file includes $included/" ;;
		esac
	done)
	is "$bad" '' "$folder includes only itself${*:+, }$*"
	is "$(above "$folder")" '' "$folder knows nothing of commands"
}

# The table in README.md: "FOLDER ALLOWED…", one a line.
table() {
	sed -n 's,^| `\([a-z]*\)/` |\([a-z ]*\)|.*,\1\2,p' README.md
}
table >"$scratch/table"
while read -r folder allowed; do
	# shellcheck disable=SC2086 # a list of names
	may "$folder" $allowed
done <"$scratch/table"

folders=$(cut -d' ' -f1 "$scratch/table" | sort | tr '\n' ' ')
is "$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sed 's,^./,,' | sort | tr '\n' ' ')" \
	"$folders" 'the table has all folders, and no other'

# The documents for contributors name files by their path or the end of it, in backticks or as links.
(cd .. && find ./*.* giltracer probes share tests -type d -printf '/%p/:\n' -o -printf '/%p:\n') >"$scratch/files"
# absent DOCUMENT: print the names for which there is no file or folder.
absent() {
	grep -oE '(`|\]\()[A-Za-z0-9_./-]+(`|\))' "$1" | tr -d '`()]' | sed 's,^\(\.\./\)*,,' |
		grep -E '^[^.].*\.([cht1]|def|md|js|py|sh|yaml|proto)$|/$' | grep -vE 'NAME|3\.N' | sort -u | while read -r name; do
		grep -qF "/$name:" "$scratch/files" || echo "$name"
	done
}
for document in README.md ../CONTRIBUTING.md ../share/doc/*.md; do
	is "$(absent "$document")" '' "${document#../} names only files that exist"
done

# terms: print what the manual's "Terms" defines and the glossary does not.
terms() {
	sed -n '/^\.Ss Terms/,/^\.El/s/^\.It //p' ../share/giltracer.1 | while read -r term; do
		grep -q "^| $term |" ../share/doc/GLOSSARY.md || echo "$term"
	done
}
is "$(terms)" '' 'the glossary has all terms of the manual'
is "$(cut -d'|' -f2 ../share/doc/GLOSSARY.md | grep -E '[a-z]' | sort | uniq -d)" ' word ' '  and each word once'

# Only commands may print or end the process, except by _exit in a forked child. Code that several commands
# share may print for them: record/, and these files of report/.
spokesmen='report/(session_report|fail_on)'
loud='(printf|vprintf|puts|putchar|perror|exit|_Exit|abort|errx?|warnx?|die'
loud="$loud|log_error|log_warn|log_info|log_progress)"
calls() {
	sources "$2" | xargs grep -HnE "(^|[^[:alnum:]_.>\"])$1 *\(" |
		grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)'
}
for folder in $folders; do
	case $folder in base | record) continue ;; esac
	is "$(calls "$loud" "$folder" | grep -vE "^$spokesmen")" '' "$folder neither prints nor exits"
	case $folder in
	binary | python | system) ;;
	*) is "$(calls _exit "$folder")" '' "$folder does not _exit" ;;
	esac
	is "$(sources "$folder" | grep '\.c$' | xargs grep -HnEw 'stdout|stderr' |
		grep -vE "^$spokesmen|^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)")" '' \
		"$folder leaves stdout and stderr alone"
done

# CPython's versions are compared in python/ only. system/ compares the kernel's.
versions() {
	sources "$1" | xargs grep -HnE '(^|[^[:alnum:]_])minor *(\)|[<>!=]=|[<>]) *[0-9A-Z]|(PY_VERSION|minor) *(<|>|==)'
}
for folder in $folders; do
	case $folder in python | system) continue ;; esac
	is "$(versions "$folder")" '' "$folder does not compare versions of CPython"
done

# The phrases of a report: each one is used.
unsaid() {
	sed -n 's/^PHRASE[0-9](\([a-z0-9_]*\),.*/\1/p' report/phrases.def | while read -r phrase; do
		grep -qrE --include='*.c' "(say|PHRASE)_$phrase\>|COLUMN\(.* $phrase\>" report export || echo "$phrase"
	done
}
is "$(unsaid)" '' 'each phrase is said somewhere'

# unworded HEADER: print the codes of reasons, advice and quality that words.c does not put into words.
unworded() {
	grep -oE '^[[:space:]](REASON|ADVICE|QUALITY)_[A-Z_]+' "$1" | while read -r code; do
		grep -qw "$code" report/words.c || echo "$code"
	done
}
is "$(unworded analysis/verdict.h)" '' 'each reason of a verdict has a sentence'
printf '\tREASON_NONE_SUCH,\n\tREASON_GIL_BOUND,\n' >"$scratch/verdict.h"
is "$(unworded "$scratch/verdict.h")" 'REASON_NONE_SUCH' '  and one without is seen'

# The checks themselves detect violations.
printf 'See `model/model.h`, `model/none.h`, `share/doc/`, [it](share/none.md) and `--none`.\n' >"$scratch/x.md"
is "$(absent "$scratch/x.md" | tr '\n' ' ')" 'model/none.h share/none.md ' \
	'a file that does not exist is seen'
mkdir "$scratch/model" && cd "$scratch" || exit 99
printf '#include "report/html/text.h"\n' >model/x.c
is "$(includes model)" 'model/x.c report' 'an include of another folder is seen'
printf '#include "x.h"\n#include "cmd.h"\n' >model/x.c && : >model/x.h
is "$(above model)" 'model/x.c:2:#include "cmd.h"' 'an include from above is seen'
printf 'if (python->minor < 12)\nminor = 3;\nif (at.minor == PYTHON_X)\n' >model/x.c
is "$(versions model | wc -l)" 2 'a comparison of versions is seen'
printf '\t%s;\n' 'printf("x")' 'exit(1)' 'fprintf(f, "x")' 'snprintf(b, 1, "x")' 'w->exit(1)' \
	>model/x.c
is "$(calls "$loud" model 2>/dev/null | wc -l)" 2 'printf and exit are seen, fprintf is not'

done_testing
