#!/bin/sh
# SPDX-License-Identifier: MIT
# Who may include whom: data flows one way. And nothing but base and the commands prints or exits.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
cd "$top_srcdir/giltracer" || exit 99

# includes FOLDER: "FILE INCLUDED-FOLDER" for each #include of one of our own folders. A header
# without a folder is one of the file's own.
includes() {
	grep -H '^#include "' "$1"/*.[ch] | sed -n 's,^\([^:]*\):#include "\([^/"]*\)/.*,\1 \2,p'
}

# above FOLDER: includes of the commands' own headers, which stand in no folder.
above() {
	sed -n 's,^#include "\([^/"]*\)".*,\1,p' "$1"/*.[ch] | sort -u | while read -r header; do
		[ -e "$1/$header" ] || grep -Hn "#include \"$header\"" "$1"/*.[ch]
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
may launch base
may perfdata base
may trace base perfdata
may model base trace
may report base trace model

is "$(find . -mindepth 1 -maxdepth 1 -type d ! -name '.*' | sort | tr -d './\n')" \
	"$(for folder in base launch model perfdata report trace; do
		[ ! -d $folder ] || printf %s $folder
	done)" 'there is no other folder'

# Printing is for commands; so is ending the process, but for _exit in a forked child (launch/).
loud='(printf|vprintf|puts|putchar|perror|exit|_Exit|abort|errx?|warnx?|die'
loud="$loud|log_error|log_warn|log_info|log_progress)"
calls() {
	grep -nE "(^|[^[:alnum:]_.>\"])$1 *\(" "$2"/*.c "$2"/*.h |
		grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)'
}
for folder in launch perfdata trace model report; do
	[ -d $folder ] || continue
	is "$(calls "$loud" $folder 2>/dev/null)" '' "$folder neither prints nor exits"
	[ $folder = launch ] || is "$(calls _exit $folder 2>/dev/null)" '' "$folder does not _exit"
	is "$(grep -nEw 'stdout|stderr' $folder/*.c 2>/dev/null |
		grep -vE '^[^:]*:[0-9]+:[[:space:]]*(/\*|\*)')" '' "$folder leaves stdout and stderr alone"
done

# The checks themselves see what they are there for.
mkdir "$scratch/model" && cd "$scratch" || exit 99
printf '#include "report/html.h"\n' >model/x.c
is "$(includes model)" 'model/x.c report' 'an include of another folder is seen'
printf '#include "x.h"\n#include "cmd.h"\n' >model/x.c && : >model/x.h
is "$(above model)" 'model/x.c:2:#include "cmd.h"' 'an include from above is seen'
printf '\t%s;\n' 'printf("x")' 'exit(1)' 'fprintf(f, "x")' 'snprintf(b, 1, "x")' 'w->exit(1)' \
	>model/x.c
is "$(calls "$loud" model 2>/dev/null | wc -l)" 2 'printf and exit are seen, fprintf is not'

done_testing
