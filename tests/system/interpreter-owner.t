#!/bin/sh
# SPDX-License-Identifier: MIT
# Root's probes and check run an interpreter with the rights of the user who controls it, also after su, doas
# and pkexec.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/system/lib.sh"
need root

unset SUDO_USER SUDO_UID SUDO_GID
python=$(cpythons | sed -n '$s/^[^ ]* //p')
nobody=$(id -u nobody)
chmod 755 .
mkdir theirs && cat >theirs/python3 <<END
#!/bin/sh
id -u >>$scratch/theirs/ran-as
exec "$python" "\$@"
END
chmod 755 theirs/python3 && : >theirs/ran-as && chown -R nobody theirs
for command in probes check; do
	: >theirs/ran-as
	run "$GILTRACER" $command --python "$scratch/theirs/python3"
	is "$(sort -u theirs/ran-as)" "$nobody" "an interpreter of nobody: root's $command runs it as nobody"
done
if command -v su >/dev/null; then
	: >theirs/ran-as
	run su root -c "'$GILTRACER' probes --python '$scratch/theirs/python3'" </dev/null
	is "$(sort -u theirs/ran-as)" "$nobody" 'as does one who became root by su'
else
	skip 'su is not installed' 'as does one who became root by su'
fi
mkdir ours && sed 's,/theirs/,/log/,' theirs/python3 >ours/python3 && chmod 755 ours/python3
mkdir log && chmod 777 log
for who in "SUDO_UID=$nobody" "PKEXEC_UID=$nobody" DOAS_USER=nobody; do
	rm -f log/ran-as
	run env "$who" "$GILTRACER" probes --python "$scratch/ours/python3"
	is "$(sort -u log/ran-as)" "$nobody" "$who: root's interpreter runs for who asked"
done
rm -f log/ran-as
run "$GILTRACER" probes --python "$scratch/ours/python3"
is "$(sort -u log/ran-as)" 0 'else as root'

# Everybody can replace it, so root executes it as nobody, who may not: the folder is named.
mkdir -p open/closed && cp ours/python3 open/closed/ && chmod 700 open/closed && chmod 777 open
exits 125 'an interpreter in a folder that all users can write to' \
	"$GILTRACER" probes --python "$scratch/open/closed/python3"
like "$(cat err)" "/open/closed/python3: other users can write to $scratch/open, .* chmod go-w $scratch/open\$" \
	'  is told which one'

leaves_nothing
done_testing
