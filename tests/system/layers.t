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

may base
may binary base
may locate base binary
may system base binary locate
may session base
may preload
may record base binary live locate preload system session
may perfdata base binary
may trace base binary perfdata preload session
may metrics base live
may model base trace
may live base binary locate preload trace
may analysis base session trace model
may report base session trace model analysis
may export base trace model analysis report proto

folders='analysis base binary export live locate metrics model perfdata preload record report session system trace'
is "$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sort | tr -d './\n')" \
	"$(echo "$folders" | tr -d ' ')" 'there is no other folder'

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
	binary | locate | system) ;;
	*) is "$(calls _exit "$folder")" '' "$folder does not _exit" ;;
	esac
	is "$(sources "$folder" | grep '\.c$' | xargs grep -HnEw 'stdout|stderr' |
		grep -vE "^$spokesmen|^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)")" '' \
		"$folder leaves stdout and stderr alone"
done

# The phrases of a report: each one is used.
unsaid() {
	sed -n 's/^PHRASE[0-9](\([a-z0-9_]*\),.*/\1/p' report/phrases.def | while read -r phrase; do
		grep -qrE --include='*.c' "(say|PHRASE)_$phrase\>" report export || echo "$phrase"
	done
}
is "$(unsaid)" '' 'each phrase is said somewhere'

# The checks themselves detect violations.
mkdir "$scratch/model" && cd "$scratch" || exit 99
printf '#include "report/html/text.h"\n' >model/x.c
is "$(includes model)" 'model/x.c report' 'an include of another folder is seen'
printf '#include "x.h"\n#include "cmd.h"\n' >model/x.c && : >model/x.h
is "$(above model)" 'model/x.c:2:#include "cmd.h"' 'an include from above is seen'
printf '\t%s;\n' 'printf("x")' 'exit(1)' 'fprintf(f, "x")' 'snprintf(b, 1, "x")' 'w->exit(1)' \
	>model/x.c
is "$(calls "$loud" model 2>/dev/null | wc -l)" 2 'printf and exit are seen, fprintf is not'

done_testing
