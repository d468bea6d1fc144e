# SPDX-License-Identifier: MIT
"""confidential.py MARKERS FILE...: prints the markers that occur in each file, as it is, or compressed in it: gzip,
or base64 of raw deflate as in a page. Numbers of threads and times cannot be markers."""
import base64
import re
import sys
import zlib


def contents(data):
    yield data
    if data[:2] == b"\x1f\x8b":
        yield zlib.decompress(data, 31)
    for block in re.findall(rb'<script type="text/plain">([^<]*)</script>', data):
        yield zlib.decompress(base64.b64decode(block), -15)


def found(markers, path):
    with open(path, "rb") as file:
        texts = list(contents(file.read()))
    if path.endswith(".html") and len(texts) < 2:
        sys.exit(path + ": no compressed blocks")
    return sorted(m for m in markers if any(m.encode() in t.lower() for t in texts))


print("\n".join("%s: %s" % (path, " ".join(found(sys.argv[1].split(), path))) for path in sys.argv[2:]))
