# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# shellcheck disable=SC2154 # version is what the test calls the interpreter
# For tests that compare a traced program with itself under plain python.

PYTHONHASHSEED=0
PYTHONDONTWRITEBYTECODE=1
export PYTHONHASHSEED PYTHONDONTWRITEBYTECODE
printf 'one\ntwo\n' >input

# What two executions never have in common, and the variables by which children are recorded.
same() {
	sed -E "s/0x[0-9a-f]+/0x/g; s/\('(GILTRACER_PRELOAD|LD_PRELOAD)', '[^']*'\), //g"
}

# behaves PYTHON ARG…: standard output, standard error and exit status as under plain python; 128
# and the signal's number if it died of one. $engine: --probes; by the library, perf records nothing.
engine=uprobes
behaves() {
	python=$1
	shift
	before=
	[ "$engine" != preload ] || before=no_perf
	$before "$python" "$@" <input >plain.out 2>plain.err
	plain=$?
	$before "$GILTRACER" record -q -o session --python "$python" --python-trace none \
		--probes $engine "$@" <input >ours.out 2>ours.err
	ours=$?
	for file in plain.out plain.err ours.out ours.err; do
		same <$file >$file.same
	done
	if [ $plain = $ours ] && cmp -s plain.out.same ours.out.same &&
		cmp -s plain.err.same ours.err.same; then
		pass "$version, $engine: $* ($plain)"
	else
		fail "$version, $engine: $*"
		diag "exit status: python $plain, traced $ours"
		diag "$(diff plain.out.same ours.out.same)"
		diag "$(diff plain.err.same ours.err.same)"
	fi
}
