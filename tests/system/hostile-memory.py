# SPDX-License-Identifier: MIT
"""The interpreter's list of interpreters leads to memory of this program's own making.

hostile-memory.py PROBES KIND READY: PROBES has the offsets of this version, probes/3.N.yaml. KIND is
states (many, without frames), states-cycle, stacks (many states share a stack of 20,000 frames),
frames-cycle, or codes (each frame has a function of its own, with a line table of a megabyte). Writes
to READY, and waits to be killed, because an interpreter without its list cannot end.
"""

import ctypes
import os
import re
import signal
import sys

PLACE = 1024
FRAMES = 20000

with open(sys.argv[1], encoding="utf-8") as file:
    offsets, section = {}, ""
    for line in file:
        head = re.match(r"(\w+):", line)
        section = head[1] if head else section
        member = re.match(r"  ([\w-]+): (0x[0-9a-f]+|\d+)", line)
        if member:
            offsets[section, member[1]] = int(member[2], 0)
memory = ctypes.create_string_buffer((FRAMES + 2100) * PLACE + (1 << 20))
base = ctypes.addressof(memory)
code_type = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "PyCode_Type"))
root = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))


def put(place, offset, value):
    """Store a number in the object at that place."""
    memory[place + offset : place + offset + 8] = value.to_bytes(8, "little")


def put_code(place):
    """A function; its name and file are a str of four characters."""
    put(place, offsets["frame", "type"], code_type)
    put(place, offsets["frame", "name"], base + NAME)
    put(place, offsets["memory", "file"], base + NAME)
    put(place, offsets["memory", "table"], base + TABLE)


INTERPRETER, NAME, CODE, STATES = range(0, 4 * PLACE, PLACE)
FIRST = STATES + 2000 * PLACE
TABLE = FIRST + FRAMES * PLACE
kind = sys.argv[2]
count = {"states": 2000, "states-cycle": 900, "stacks": 900, "frames-cycle": 900, "codes": 10}[kind]
put(NAME, offsets["memory", "length"], 4)
put(NAME, offsets["frame", "state"], 0x60)
put(NAME, offsets["frame", "text"], int.from_bytes(b"work", "little"))
put(TABLE, offsets["memory", "size"], 1000000)
put_code(CODE)
put(INTERPRETER, offsets["memory", "threads"], base + STATES)
current = base + FIRST
if ("frame", "current2") in offsets:
    put(NAME, PLACE - 8, current)
    current = base + NAME + PLACE - 8 - offsets["frame", "current2"]
for i in range(count):
    state = STATES + i * PLACE
    last = base + STATES if kind == "states-cycle" else 0
    put(state, offsets["memory", "next-thread"], base + state + PLACE if i + 1 < count else last)
    put(state, offsets["memory", "thread-id"], 1000 + i)
    if not kind.startswith("states"):
        put(state, offsets["frame", "current"], current)
for i in range(FRAMES):
    frame = FIRST + i * PLACE
    code = frame + 512 if kind == "codes" else CODE
    caller = base + frame + PLACE if i + 1 < FRAMES else 0
    if kind == "frames-cycle" and i == 99:
        caller = base + FIRST
    put(frame, offsets["frame", "previous"], caller)
    put(frame, offsets["frame", "code"], base + code)
    if kind == "codes":
        put_code(code)
ctypes.c_uint64.from_address(root + offsets["memory", "interpreters"]).value = base
with open(sys.argv[3], "w", encoding="utf-8") as ready:
    ready.write("ready\n")
signal.pause()
