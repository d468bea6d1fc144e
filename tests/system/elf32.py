# SPDX-License-Identifier: MIT
"""Becomes a 32-bit x86 program that writes a line and then sleeps until a signal ends it. Fails where
the machine runs none."""
import os
import struct

BASE = 0x8048000
HEADERS = 52 + 32
CODE = bytes.fromhex('b804000000 bb01000000 b9') + struct.pack('<I', BASE + HEADERS + 31) + bytes.fromhex(
    'ba01000000 cd80'  # write(1, line, 1)
    'b81d000000 cd80'  # pause()
    'eb') + b'\xf7' + b'\n'
HEADER = struct.pack('<4s3B9xHHIIIIIHHHHHH', b'\x7fELF', 1, 1, 1, 2, 3, 1, BASE + HEADERS, 52, 0, 0, 52,
                     32, 1, 0, 0, 0)
SEGMENT = struct.pack('<8I', 1, 0, BASE, BASE, HEADERS + len(CODE), HEADERS + len(CODE), 5, 4096)

with open('elf32', 'wb') as f:
    f.write(HEADER + SEGMENT + CODE)
os.chmod('elf32', 0o755)
os.execv('./elf32', ['elf32'])
