#!/bin/sh
# SPDX-License-Identifier: MIT
# The page of the report is one small file that esbuild makes, and its sources are formatted and linted.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
sources=$top_srcdir/share/report
page=$top_builddir/share/report/page.html
built=$top_builddir/share/report/built
[ -e "$page" ] || page=$sources/page.html # that of a release

size=$(wc -c <"$page")
ok "the template has at most 200 KB: $size" test "$size" -le 204800
is "$(grep -n '^@.*@$' "$page")" '' 'every part is in it'
[ ! -d "$built" ] || is "$(grep -iE '<!--|<script|</script|</style' "$built"/*.js "$built"/*.css)" '' \
	'no string in it ends or changes the element around it'

if [ ! -e "$sources/page.html" ]; then
	mkdir configured
	exits 1 'a clone is not configured without esbuild' \
		sh -c 'cd configured && ESBUILD=nosuch "$0"/configure -q 2>../err' "$(cd "$top_srcdir" && pwd)"
	like "$(cat err)" 'apt-get install.* esbuild' 'and the message names the package'
fi

# The map leads from the page to its sources: the browser's debugger and Node read it.
if [ -d "$built" ] && want node 'the map leads to the source of a string'; then
	cat >places.js <<'END'
const fs = require("fs"), {SourceMap} = require("module"), [built, sources] = process.argv.slice(2);
const text = fs.readFileSync(built + "/main.js", "utf8").split("\n");
const map = new SourceMap(JSON.parse(fs.readFileSync(built + "/main.js.map", "utf8")));
const word = "the worker failed", line = text.findIndex(l => l.includes(word));
const at = map.findEntry(line, text[line].indexOf(word) - 1);
const source = fs.readFileSync(sources + "/" + at.originalSource.split("/").pop(), "utf8").split("\n");
console.log(source[at.originalLine].slice(at.originalColumn, at.originalColumn + word.length + 2));
END
	is "$(node places.js "$built" "$sources")" '"the worker failed"' 'the map leads to the source of a string'
fi

# Columns are counted as the formatter does, which leaves long strings and comments unchanged.
is "$(cd "$sources" && LC_ALL=C.UTF-8 python3 -c '
import sys
for name in sys.argv[1:]:
    for n, line in enumerate(open(name, encoding="utf-8"), 1):
        if len(line.rstrip("\n").expandtabs(4)) > 100:
            print(name, n)
' ./*.js ./*.ts ./*.css)" '' 'no line of the page has more than 100 columns'
# As phrases.def has those of C. Two words in a literal are a text, unless they are a font, a media query, events or
# classes.
cat >texts.py <<'END'
import re, sys

for name in sys.argv[1:]:
    if name == "./words.js":
        continue
    text = open(name, encoding="utf-8").read()
    text = re.sub(r"/\*.*?\*/|^\s*//.*$|\s// .*$", "", text, flags=re.M)
    text = re.sub(r'\bon\(\s*"[^"]*"|\bclass: "[^"]*"', "", text)
    for m in re.finditer(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`', text):
        said = re.sub(r"\$\{[^}]*\}", "x", m[2] if m[1] is None else m[1])
        if re.search(r"[^\W\d_][,;:.)’]*\s+\(?[^\W\d_]", said) and not re.search(r"sans-serif$|^\(prefers-", said):
            print(name, m[0])
    for m in re.finditer(r'\b(head|caption|title|placeholder|"aria-label"): "[^"]+"', text):
        print(name, m[0])
END
is "$(cd "$sources" && python3 "$scratch/texts.py" ./*.js)" '' 'all words of the modules are in words.js'
sed -e 's/words\.reading$/"is being read"/' -e 's/head: words\.[a-zA-Z]*/head: "Asleep"/' "$sources/asleep.js" >said.js
is "$(python3 texts.py said.js)" 'said.js "is being read"
said.js head: "Asleep"' 'and a text in another module is found'
if want biome 'the formatter and the linter find nothing'; then
	biome=$(npm_program biome)
	(cd "$top_srcdir" && "$biome" check --error-on-warnings --colors=off \
		biome.json share/report tests/browser tests/bench) >biome.out 2>&1
	is "$?" 0 'the formatter and the linter find nothing'
	grep -vE '^$' biome.out | head -n 40 | sed 's/^/# /'
fi
if want typescript 'the types are right'; then
	tsc=$(npm_program tsc)
	"$tsc" -p "$sources/jsconfig.json" >tsc.out 2>&1
	is "$?" 0 'the types are right'
	head -n 40 tsc.out | sed 's/^/# /'
	cp "$sources"/*.js "$sources"/*.ts "$sources/jsconfig.json" .
	echo 'export const wrong = () => pass().threads.map(t => t.hold_us);' >>data.js
	"$tsc" -p jsconfig.json >tsc.out 2>&1
	like "$(cat tsc.out)" "^data.js.*'hold_us' does not exist on type 'Thread'" 'and a wrong member is not'
fi
done_testing
