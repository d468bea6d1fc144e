#!/bin/sh
# SPDX-License-Identifier: MIT
# The sources of the report's page are formatted and linted, and are assembled without Node.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
sources=$top_srcdir/share/report

# assemble: make page.html from page.in.html and the modules in this folder.
assemble() {
	LC_ALL=C awk -v dir=. -f "$sources/assemble.awk" page.in.html
}
# refused NAME TEXT: the page is not assembled, and the error contains this text.
refused() {
	if assemble >out 2>err; then
		fail "$1: assembled"
	else
		like "$(cat err)" "$2" "$1"
	fi
}
echo '@module a.js@' >page.in.html
printf 'import {c} from "./c.js";\nimport {b} from "./b.js";\n\nb(c);\n' >a.js
printf '// What b does.\n\nimport {c} from "./c.js";\n\nexport function b(x) {\n\treturn x + c;\n}\n' >b.js
printf 'export const c = 1;\n' >c.js
is "$(assemble | tr '\n' ' ')" 'let c=1; function b(x){return x+c} b(c); ' \
	'each module is there once, after what it imports'
cat >a.js <<'END'
// Statements that go on in the next line, that end with it, and that have nothing in them.
const one = 1;
const two =
	one +
	[1].map(x => x + 1)
		.length;
let three = "a;const b"; // ends here
const four = three ? /const x/ : 'b';
for (three of [one]);
function e() {
	for (; three > 1; three--);
}
function f() {
	const x = two;
	const y = e;
	if (x)
		return y;
	while (three)
		three--;
	return [
		x,
		"const a",
	];
}
f(four);
END
assemble >page.js
ok 'what is assembled is JavaScript' sh -c '! command -v node >/dev/null || node --check page.js'
is "$(tr ';' '\n' <page.js)" 'let one=1,two=one+[1].map(x=>x+1).length,three="a
const b"
const four = three ? /const x/ : '"'b'"'
for(three of [one])
function e(){for(
three>1
three--)
}function f(){let x=two,y=e
if(x)return y
while(three)three--
return [x,"const a"]}f(four)' \
	'declarations in a row are one, and lines join where the language does not care'
printf 'import {b} from "./b.js";\n\nexport const c = b;\n' >c.js
printf 'import {c} from "./c.js";\nimport {b} from "./b.js";\n\nb(c);\n' >a.js
refused 'a circle of imports is refused' 'imports itself'
printf 'export const d = 1;\n' >c.js
refused 'so is a name that is not exported' 'c.js does not export c'
printf 'export const c = 1;\n\nfunction b() {}\n' >c.js
refused 'and a name that two modules declare' 'c.js has a b, too'
printf 'import {b} from "b";\n' >a.js
refused 'and an import of another form' 'an import should be like'
printf 'const a = `x`;\n' >a.js
refused 'and a template literal, whose blanks would matter' 'no template literals'
printf 'const a = "</script>";\n' >a.js
refused 'and what would end the script' 'would end or change'
printf 'import {x} from "./nothing.js";\n' >a.js
refused 'and a module that is not there' 'nothing.js: cannot be read'

size=$(wc -c <"$top_builddir/share/report/page.html")
ok "the template has at most 220 KB: $size" test "$size" -le 225280
# Columns are counted as the formatter does, which leaves long strings and comments unchanged.
is "$(cd "$sources" && LC_ALL=C.UTF-8 python3 -c '
import sys
for name in sys.argv[1:]:
    for n, line in enumerate(open(name, encoding="utf-8"), 1):
        if len(line.rstrip("\n").expandtabs(4)) > 100:
            print(name, n)
' ./*.js ./*.css)" '' 'no line of the page has more than 100 columns'
if want biome 'the formatter and the linter find nothing'; then
	biome=$(biome_path)
	(cd "$top_srcdir" && "$biome" check --error-on-warnings --colors=off \
		biome.json share/report tests/browser tests/bench) >biome.out 2>&1
	is "$?" 0 'the formatter and the linter find nothing'
	grep -vE '^$' biome.out | head -n 40 | sed 's/^/# /'
fi
done_testing
