#!/bin/sh
# SPDX-License-Identifier: MIT
# --confidential: a program whose folder, user, arguments, environment, names and source have marker words.
# None of them is in any output; without the option, each is in some.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need python3

folder=$scratch/home/zquser/zqfolder
other=$scratch/zqother
mkdir -p "$folder/shop" "$other" plain hidden
cat >"$folder/app.py" <<'END'
import asyncio, hashlib, os, sys, threading
sys.path.append(os.environ["ZQENV"])
import tools
from shop import cart

def hold(lock, data):
    password = "zqsecret"; hashlib.pbkdf2_hmac("sha1", data, b"salt", 60000)
    with lock: cart.count(data)

async def main(name):
    async def step():
        for _ in range(3):
            await asyncio.sleep(0.001)
            cart.count(b"y")
    loop = asyncio.get_event_loop()
    tasks = [loop.create_task(step()) for _ in range(4)]
    if hasattr(tasks[0], "set_name"):
        tasks[0].set_name(name)
    await asyncio.gather(*tasks)

if __name__ == "__main__":
    lock = threading.Lock()
    names = ["/srv/zqpath/list of zqlist.csv", "mail to zquser", "https://zqurl.example/", sys.argv[1]]
    threads = [threading.Thread(target=hold, args=(lock, b"x"), name=n) for n in names]
    threads += [threading.Thread(target=tools.spin, args=(0.2,)) for _ in range(2)]
    for t in threads: t.start()
    asyncio.new_event_loop().run_until_complete(main(names[0]))
    for t in threads: t.join()
END
cat >"$folder/shop/cart.py" <<'END'
def count(data):
    n = 0  # as in /srv/zqpath/notes
    for i in range(40000):
        n += i ^ len(data)
    return n
END
cat >"$other/tools.py" <<'END'
import time
def spin(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
END
: >"$folder/shop/__init__.py"

# outputs FOLDER OPTION…: all of them, into the folder; the formats are those that there are.
outputs() {
	to=$1
	shift
	"$GILTRACER" report "$@" -o "$to/page.html" --json "$to/json" --markdown "$to/markdown" \
		--annotate github session >"$to/text" || return
	for format in $formats; do
		"$GILTRACER" export "$@" -q --format "$format" -o "$to/$format" session || return
	done
	"$GILTRACER" diff "$@" -o "$to/diff.html" --json "$to/diff.json" zqsession session >"$to/diff"
}
formats=$("$GILTRACER" export --help | sed -n '/^Formats:/,$s/^  \([a-z0-9-]*\) .*/\1/p')
like "$formats" '^pprof$' 'the formats are known'
formats=$(printf '%s\n' "$formats" | grep -vx folded-off-cpu) # needs perf; its names are those of folded-waits

found() {
	python3 "$top_srcdir/tests/system/confidential.py" \
		'zquser zqfolder zqother zqarg1 zqarg2 zqpath zqlist zqurl zqsecret zqsession' "$@"
}

cd "$folder/.." || exit 99
ZQENV=$other
export ZQENV
ok 'a program is recorded' by_library record --sample 50 -o "$scratch/session" zqfolder/app.py token=zqarg1 zqarg2
cd "$scratch" || exit 99
mkdir zqsession
cp -r session/. zqsession # a folder whose name is hidden, too
ok 'all outputs' outputs plain
found plain/* >with
for marker in zquser zqfolder zqother zqarg1 zqarg2 zqpath zqlist zqurl zqsecret zqsession; do
	like "$(cat with)" "$marker" "$marker is in some of them"
done
ok 'all outputs, confidential' outputs hidden --confidential
found hidden/* >without
is "$(grep -v ': $' without)" '' 'none of the words is in any of these'
exits 125 'a comparison of documents cannot hide what they say' "$GILTRACER" diff --confidential plain/json session
is "$(wc -l <without)" "$(wc -l <with)" '  and all were looked at'

leaves_nothing
done_testing
