#!/bin/sh
# SPDX-License-Identifier: MIT
# Debian's Prometheus, for the tests: its two programs, which need nothing else, out of the package. It is
# not installed, so that no server is started on this machine.
#
#	prometheus.sh FOLDER
set -eu
folder=$1
[ -x "$folder/promtool" ] && [ -x "$folder/prometheus" ] && exit
mkdir -p "$folder"
new=$(mktemp -d "$folder/.new.XXXXXX")
trap 'rm -rf "$new"' EXIT
cd "$new"
apt-get download -q prometheus
dpkg-deb --fsys-tarfile prometheus_*.deb |
	tar -x ./usr/bin/prometheus ./usr/bin/promtool
mv usr/bin/prometheus usr/bin/promtool ..
