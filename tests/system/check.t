#!/bin/sh
# SPDX-License-Identifier: MIT
# check prints what is missing and how to get it, and succeeds if the GIL can be recorded at all. guards.t tests
# refusals by kernels and containers.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"

check() {
	"$GILTRACER" check "$@"
}
python=$(cpythons | sed -n '1s/^[^ ]* //p')

# For each missing item there is a line "missing WHAT …", and below it the remedy.
missing() {
	like "$(cat out)" "^missing +$1" "$2"
	like "$(sed -n "/^missing *$(echo "$1" | sed 's/ .*//')/{n;p;}" out)" "^ +-> $3" 'with what to do'
}

mkdir bin
for tool in sh env; do
	ln -s "$(command -v $tool)" bin/
done
PATH=$scratch/bin ok 'without perf' check --python "$python"
missing 'perf +perf is not installed' 'says so' 'apt-get install linux-perf'
like "$(cat out)" '^ok +VizTracer +(not installed: only --python-trace viztracer needs it|[0-9])' \
	'VizTracer is not missed, because Python calls are recorded without it'
printf '#!/bin/sh\necho perf version 4.19.1\n' >bin/perf && chmod +x bin/perf
PATH=$scratch/bin ok 'with an old perf' check --python "$python"
like "$(cat out)" '^missing +perf +perf 4\.19\.1 is too old' 'says so'
printf '#!/bin/sh\necho WARNING: perf not found for kernel 6.8.0-31 >&2; exit 2\n' >bin/perf
PATH=$scratch/bin ok "with Ubuntu's perf of another kernel" check --python "$python"
like "$(cat out)" "^missing +perf .*apt-get install linux-tools-$(uname -r)" 'says which it wants'
printf '#!/bin/sh\necho >&2; echo no library >&2; exit 1\n' >bin/perf
PATH=$scratch/bin ok 'with a perf that fails' check --python "$python"
like "$(cat out)" '^missing +perf +perf does not work: no library$' 'says why'
printf '#!/bin/sh\nexit 9\n' >bin/perf
PATH=$scratch/bin ok 'with one that says nothing' check --python "$python"
like "$(cat out)" '^missing +perf +perf does not work: .* prints nothing, .* status 9$' 'says so'
printf '#!/bin/sh\nkill -KILL $$\n' >bin/perf
PATH=$scratch/bin ok 'with one that is killed' check --python "$python"
like "$(cat out)" '^missing +perf +perf does not work: .* killed by signal 9 \(Killed\)$' 'says so'
cat >bin/perf <<'EOF'
#!/bin/sh
[ "$1" = --version ] && echo perf version 4.18.0-553.el8_10.x86_64 || echo --event --control
EOF
(PATH=$scratch/bin && check --python "$python") >out
like "$(cat out)" '^ok +perf +4\.18\.0-553' 'a number that is old, and options that are not'
exits 1 'without an interpreter' check --python ./nosuch
like "$(cat out)" '^missing +python .*nosuch: No such file' 'says so'
exits 1 'with another program' check --python /bin/ls
like "$(cat out)" '^missing +python .*is not a Python interpreter' 'says so'
exits 125 'a word too many' check x
is "$(cat err)" "giltracer: error: check: unexpected argument 'x'" 'is refused'

if has root && has uprobes && has perf; then
	ok 'as root, where recording works' check --python "$python"
	like "$(cat out)" '^ok +uprobes +' 'check is content'
	is "$(grep -c '^missing' out)" 0 'and misses nothing'
	ok 'what it says holds' "$GILTRACER" -q --python "$python" --python-trace none \
		-o x.html -m this
else
	skip 'run as root, with perf and tracefs' 'where recording works'
fi

leaves_nothing
done_testing
