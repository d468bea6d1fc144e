# SPDX-License-Identifier: MIT
"""change-files.py READY FILE...: changes files at random, also their sizes, until it is killed; then
and when READY exists, they are as before from time to time."""

import os
import random
import sys

random.seed(1)
ready, paths = sys.argv[1], sys.argv[2:]
contents = []
for path in paths:
    with open(path, "rb") as file:
        contents.append(file.read())
files = [os.open(path, os.O_RDWR) for path in paths]
with open(ready, "w", encoding="utf-8") as file:
    file.write("ready\n")
while True:
    i = random.randrange(len(files))
    for _ in range(random.randrange(20)):
        at = random.randrange(len(contents[i]))
        os.pwrite(files[i], bytes([random.randrange(256)]), at)
    if random.random() < 0.1:
        os.ftruncate(files[i], random.randrange(len(contents[i])))
    os.pwrite(files[i], contents[i], 0)
