#!/bin/sh
# SPDX-License-Identifier: MIT
# The GIL functions of each interpreter are found by symbols and by code alone; the interpreter is found
# under any name, and there is a clear message if there is none.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need strip

probes() {
	"$GILTRACER" probes --json --python "$@"
}

# value FILE EXPRESSION: evaluate it over d, the JSON document, and entries(), the offsets of probes by
# event name.
value() {
	"$tap_python" -IS -c 'import json, re, sys
d = json.load(open(sys.argv[1]))
def entries(name):
    return sorted(p["offset"] for p in d["probes"] if re.fullmatch(name + "(_[0-9]+)?", p["event"]))
def events(wrong):
    return [p["event"] for p in d["probes"] if wrong(p)]
print(eval(sys.argv[2]))' "$@" 2>&1
}

# Copy an interpreter's libpython, or the interpreter itself if it has none, without its symbols.
without_symbols() {
	file=$(value symbol.json 'd["file"]')
	rm -rf bare && mkdir bare
	cp -L "$file" "bare/$(basename "$file")" && strip --strip-all "bare/$(basename "$file")"
}

bare_probes() {
	case $(basename "$1") in
	libpython*) LD_LIBRARY_PATH=$scratch/bare "$GILTRACER" probes --json --python "$2" ;;
	*) probes "$scratch/bare/$(basename "$1")" ;;
	esac
}

check_by_code() {
	without_symbols
	export GILTRACER_DEBUGDIR=
	if ! ok "$1: is found without symbols" bare_probes "$file" "$2"; then
		unset GILTRACER_DEBUGDIR
		return
	fi
	unset GILTRACER_DEBUGDIR
	mv out code.json
	is "$(value code.json 'd["file"].startswith("'"$scratch"'")')" True "$1: it is the stripped copy"
	is "$(value code.json 'set(p["kind"] for p in d["probes"])')" "{'code'}" "$1: by code alone"
	is "$(value code.json '"costly_because" in d["probes"][0]')" True "$1: the key of what is costly"
	is "$(value code.json 'entries("take_gil"), entries("take_gil_ret")')" \
		"$(value symbol.json 'entries("take_gil"), entries("take_gil_ret")')" "$1: the same take_gil"
	is "$(value code.json 'len(entries("drop_gil"))')" \
		"$(value symbol.json 'len(entries("drop_gil"))')" "$1: as many releases"
	is "$(value code.json 'd["releases_known"]')" True "$1: and that is all of them"
	is "$(value code.json 'events(lambda p: not p["sure"])')" '[]' "$1: sure of each"
}

cpythons >interpreters
while read -r version python; do
	name="$version, $python"
	ok "$name: resolves" probes "$python" || continue
	mv out symbol.json
	names='"take_gil", "take_gil_ret", "drop_gil"'
	is "$(value symbol.json "[n for n in ($names) if not entries(n)]")" '[]' \
		"$name: has probes for request, acquire and release"
	is "$(value symbol.json 'd["releases_known"]')" True "$name: sees every release"
	is "$(value symbol.json 'events(lambda p: not p["sure"])')" '[]' "$name: is sure"
	is "$(value symbol.json 'events(lambda p: p["cost"] != "emulated")')" '[]' \
		"$name: probes cheap instructions only"
	is "$(value symbol.json 'events(lambda p: re.match("take_gil(_[0-9]+)?$", p["event"]) and
		not (p["fetch"] or "").startswith("gil="))')" '[]' "$name: every request says which GIL"
	# Debian's debug files name the copies of drop_gil in other functions.
	[ "$(value symbol.json 'd["probes"][0]["kind"]')" = debug ] &&
		is "$(value symbol.json 'events(lambda p: re.match("drop_gil(_[0-9]+)?$", p["event"]) and
			not re.search("debug information and code|debug file, and its code", p["how"]))')" '[]' \
			"$name: each release is known by the debug file and by code"
	[ "$(uname -m)" = x86_64 ] && check_by_code "$name" "$python"
done <interpreters
ok 'there were interpreters' test -s interpreters

# The same interpreter under other names.
real=$(head -n 1 interpreters | sed 's/^[^ ]* //')
probes "$real" >real.json
same() {
	if ok "$1" probes "$2"; then
		is "$(value out 'd["build_id"]')" "$(value real.json 'd["build_id"]')" "$1: is the same build"
	fi
}
ln -s "$real" link
same 'a link' ./link
printf '#!/bin/sh\necho noise\nexec "%s" "$@"\n' "$real" >wrapper && chmod +x wrapper
same 'a script that starts it' ./wrapper
mkdir 'with blanks' && ln -s "$real" 'with blanks/python3'
same 'a path with blanks' './with blanks/python3'
if "$real" -m venv --without-pip --symlinks venv 2>/dev/null; then
	same 'a virtual environment of links' venv/bin/python
	VIRTUAL_ENV=$scratch/venv && export VIRTUAL_ENV
	ok 'an active virtual environment' "$GILTRACER" probes --json
	is "$(value out 'd["command"]')" "$scratch/venv/bin/python" 'is the default'
	unset VIRTUAL_ENV
else
	skip "$real has no venv" 'a virtual environment'
fi
if "$real" -m venv --without-pip --copies copies 2>/dev/null; then
	same 'a virtual environment of copies' copies/bin/python
fi
mkdir path && ln -s "$real" path/python3
old_path=$PATH
PATH=$scratch/path:$PATH
ok 'python3 in PATH' "$GILTRACER" probes --json
is "$(value out 'd["command"]')" "$scratch/path/python3" 'is the default'
PATH=$old_path

# Files that are not an interpreter.
refused() {
	exits 125 "$1" "$GILTRACER" probes --python "$2"
	like "$(cat err)" "$3" "$1: says what it is"
	is "$(wc -l <err)" 1 "$1: in one line"
}
refused 'a missing file' ./nosuch 'nosuch: No such file'
refused 'a name that is nowhere' nosuch-python 'not found in PATH'
refused 'a folder' "$scratch" 'is a directory'
refused 'another program' /bin/ls 'is not a Python interpreter'
: >plain && chmod 644 plain
[ "$(id -u)" -eq 0 ] || refused 'a file that may not be executed' ./plain 'Permission denied'
cat >pypy <<END
#!/bin/sh
echo 'giltracer-answer:{"implementation": "PyPy", "version": [3, 10, 1], "files": []}'
END
chmod +x pypy
refused PyPy ./pypy 'is PyPy 3\.10\.1: only CPython has the GIL'
sed 's/PyPy/CPython/; s/3, 10, 1/2, 7, 18/' pypy >old && chmod +x old
refused 'Python 2' ./old 'is Python 2\.7\.18: giltracer needs CPython 3\.6'
sed 's/PyPy/CPython/' pypy >empty && chmod +x empty
refused 'one without a GIL to be found' ./empty 'exports PyEval_SaveThread'

leaves_nothing
done_testing
