# SPDX-License-Identifier: MIT
"""Whether what a command prints fits on a terminal of 90 columns, in the words of the file `table`, which
has wider lines.

    narrow.py COMMAND ARGUMENT...
"""
import fcntl
import os
import pty
import struct
import sys
import termios

import terminal

pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 50, 90, 0, 0))
    os.dup2(os.open('/dev/null', os.O_WRONLY), 2)
    os.execvp(sys.argv[1], sys.argv[1:])
text = b''
while data := terminal.read(fd):
    text += data
os.waitpid(pid, 0)
lines = text.decode().replace('\r', '').splitlines()
wide = open('table', encoding='utf-8').read()
print('widest', max(map(len, lines)) <= 90, 'other', max(map(len, wide.splitlines())) > 90)
print('same', sorted(wide.split()) == sorted(' '.join(lines).split()))
