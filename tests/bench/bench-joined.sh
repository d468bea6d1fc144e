#!/bin/sh
# SPDX-License-Identifier: MIT
# Real programs that are joined and left 20 times each under load: gunicorn, uvicorn, Celery, a Dask worker, a
# Jupyter kernel, a multiprocessing pool (joined.py). Not a comparison: a row is missed if an answer was wrong, or
# if a descriptor, a thread or a mapping is left. It takes some minutes; GILTRACER_BENCH_PROGRAMS is a Python
# with gunicorn, gevent, uvicorn, uvloop, celery, distributed, ipykernel and jupyter_client.
set -eu
: "${top_srcdir:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${top_builddir:=$top_srcdir}"
: "${GILTRACER:=$top_builddir/giltracer/giltracer}"

if [ -z "${GILTRACER_BENCH_PROGRAMS:-}" ]; then
	echo 'joined: not measured: GILTRACER_BENCH_PROGRAMS is not set'
	exit 0
fi
exec "$GILTRACER_BENCH_PROGRAMS" "$top_srcdir/tests/bench/joined.py" "$GILTRACER" 20
