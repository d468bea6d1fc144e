# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: MIT
# Real reports for tests in a browser, of programs that differ: real_reports writes NAME.html into
# this folder, and prints their paths. Without perf or root.
real_reports() {
	python=$(cpythons | awk 'NR == 1 { print $2 }')
	for program in "hog $top_srcdir/share/examples/hog.py 0.2" \
		"loop $top_srcdir/tests/system/loops.py beside" \
		"processes $top_srcdir/tests/system/children.py fork"; do
		name=${program%% *}
		# shellcheck disable=SC2086 # words
		by_library -q --python "$python" -o "$name.html" \
			${program#* } >said 2>&1 || {
			sed 's/^/# /' said >&2
			continue
		}
		echo "$PWD/$name.html"
	done
}
