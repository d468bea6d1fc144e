#!/bin/sh
# SPDX-License-Identifier: MIT
# The shells complete the contents of the option tables: commands, options, values, files.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
mkdir bin && ln -s "$GILTRACER" bin/giltracer
PATH=$scratch/bin:$PATH
touch afile.py

for shell in bash zsh fish; do
	ok "a script for $shell" "$GILTRACER" --completion $shell
	cp out complete.$shell
done
exits 125 'another shell' "$GILTRACER" --completion csh
like "$(cat err)" "'csh' is not one of bash, zsh, fish" 'is refused'

# what SHELL WORD...: print the completions of the last word, sorted, on one line.
what() {
	what_shell=$1
	shift
	"what_$what_shell" "$@" | LC_ALL=C sort -u | tr '\n' ' ' | sed 's/ *$//'
}

what_bash() {
	bash -c '
		. ./complete.bash
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_giltracer
		printf "%s\n" "${COMPREPLY[@]}"
	' bash "$@"
}

what_fish() {
	fish --no-config -c 'source complete.fish; complete -C "$argv"' -- "$*" | cut -f 1
}

# A shell on a pseudo-terminal, in which the tab key is pressed.
cat >zpty.zsh <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
zpty -w z 'PS1= PROMPT_EOL_MARK=; fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D;
	zstyle ":completion:*" list-prompt ""; LISTMAX=0
	bindkey "^I" complete-word; source ./complete.zsh 2>/dev/null; compdef _giltracer giltracer
	finish() { print -r -- "<<$BUFFER>>"; BUFFER=; zle accept-line }; zle -N finish; bindkey "^X" finish
	print -r -- RE""ADY'
while zpty -r z line && [[ $line != *READY* ]]; do :; done
zpty -n -w z "$1"$'\t\x18'
while zpty -r z line; do
	[[ $line == *'<<'*'>>'* ]] && print -r -- "${${line##*<<}%%>>*}" && break
done
END
what_zsh() {
	timeout 30 zsh -f zpty.zsh "$*"
}

if want bash 'bash'; then
	is "$(what bash giltracer rep)" report 'bash: a command'
	is "$(what bash giltracer --pro)" --probes 'bash: an option of the default command'
	like "$(what bash giltracer --probes '')" '^auto .*none preload uprobes$' 'bash: its values'
	is "$(what bash giltracer --probes = pre)" preload 'bash: behind an equals sign'
	is "$(what bash giltracer report --j)" --json 'bash: an option of a command'
	is "$(what bash giltracer export -f s)" speedscope 'bash: a format'
	is "$(what bash giltracer -q afile.py --p)" '' "bash: a program's options are its own"
	is "$(what bash giltracer -o a)" '' 'bash: files are left to the shell'
fi
if want fish 'fish'; then
	is "$(what fish giltracer rep)" report 'fish: a command'
	like "$(what fish giltracer --prob)" '^--probes' 'fish: an option of the default command'
	like "$(what fish giltracer --probes '')" '^auto .*none preload uprobes$' 'fish: its values'
	like "$(what fish giltracer report --js)" '^--json' 'fish: an option of a command'
	is "$(what fish giltracer export -f s)" speedscope 'fish: a format'
	is "$(what fish giltracer -o af)" afile.py 'fish: a file'
fi
if want zsh 'zsh'; then
	is "$(what zsh giltracer repo)" 'giltracer report' 'zsh: a command'
	is "$(what zsh giltracer --prob)" 'giltracer --probes=' 'zsh: an option of the default command'
	is "$(what zsh giltracer --probes=pre)" 'giltracer --probes=preload' 'zsh: its value'
	is "$(what zsh giltracer report --js)" 'giltracer report --json=' 'zsh: an option of a command'
	is "$(what zsh giltracer export -f sp)" 'giltracer export -f speedscope' 'zsh: a format'
	is "$(what zsh giltracer -o af)" 'giltracer -o afile.py' 'zsh: a file'
fi

leaves_nothing
done_testing
