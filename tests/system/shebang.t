#!/bin/sh
# SPDX-License-Identifier: MIT
# A script that starts with "#!" and an interpreter runs as if it were executed. If it runs with another
# interpreter than its first line names, a message says so.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root perf uprobes

PYTHONHASHSEED=0
export PYTHONHASHSEED
base=$(cpythons | sed -n '1s/^[^ ]* //p')
"$base" -m venv --without-pip one && "$base" -m venv --without-pip 'two with blanks' || exit 99
one=$scratch/one/bin/python
two="$scratch/two with blanks/bin/python"
PATH=$scratch/path:$PATH
mkdir path && ln -s "$two" path/python3.99 && printf '#!/bin/sh\nexec %s "$@"\n' "$base" >path/python3
chmod +x path/python3

# script LINE…: write an executable script that prints how it was started.
script() {
	printf '%s\n' "$@" >script.py
	cat >>script.py <<'END_PY'
import os, sys
if __name__ == "__main__":
    print(sys.executable, sys.prefix, sys.flags, sys.argv, sys.path[0])
    print(getattr(sys, "orig_argv", [0])[1:])
END_PY
	chmod +x script.py
}
trace() {
	by_library record -o session --python-trace none "$@"
}
# as_executed NAME OPTION…: giltracer's run prints the same as ./script.py.
as_executed() {
	./script.py a 'b c' >want || exit 99
	ok "$1" trace ./script.py a 'b c'
	is "$(cat out)" "$(cat want)" '  runs as if it were executed'
}
told="runs ./script.py, as named in its first line"

script "#!$one"
as_executed 'another interpreter'
like "$(cat err)" "$one $told" '  which is told'
script "#! $one -Esu "
as_executed 'with options'
script "#!/usr/bin/env python3"
as_executed 'the one in PATH'
unlike "$(cat err)" "first line" '  is nothing to tell'
script "#!/usr/bin/env -S $one -s -u"
as_executed 'env -S'
script '#!/bin/sh' "'''exec' \"$two\" \"\$0\" \"\$@\"" "' '''"
as_executed 'what installers write for a path with blanks'
like "$(cat err)" "$two $told" '  which is told'

script "#!$one"
ok '--python' trace --python "$base" ./script.py
like "$(cat out)" "^$base " '  is what runs it'
like "$(cat err)" "the first line of ./script.py, #!$one, is ignored: $base runs it" \
	'  which is told'
VIRTUAL_ENV="$scratch/two with blanks" && export VIRTUAL_ENV
ok 'a virtual environment' trace ./script.py
unset VIRTUAL_ENV
like "$(cat out)" "^$two " '  is what runs it'
like "$(cat err)" 'is ignored' '  which is told'
chmod -x script.py
ok 'a script that is no program' trace script.py
unlike "$(cat out)" "^$one " '  is run as by python'
like "$(cat err)" 'is ignored' '  which is told'

script '#!/bin/sh'
ok 'what is no Python' trace ./script.py
like "$(cat err)" '#!/bin/sh, is ignored' '  is told'
script "#!$one -W ignore"
ok 'an option with a value' trace ./script.py
like "$(cat err)" 'warning: ./script.py: some options of .* are ignored' '  is told'
script '#!/no/such/python'
exits 127 'an interpreter that is not there' trace ./script.py
like "$(cat err)" '/no/such/python' '  is named'
ok 'unless another is asked for' trace --python "$base" ./script.py

# A pipe, as from a shell's <(...), is read only by the interpreter.
mkfifo pipe
echo 'print("from a pipe")' >pipe &
ok 'a script that is a pipe' trace pipe
is "$(cat out)" 'from a pipe' '  runs'
exits 125 'a pipe cannot be read twice' trace --state-detect pipe
like "$(cat err)" 'pipe: a pipe can be read once, .*--one-run' '  which is said'

leaves_nothing
done_testing
