# SPDX-License-Identifier: MIT
"""giltracer top on a terminal: prints what it drew after keys were typed, and its exit status.

    top-screen.py GILTRACER PID KEYS [TEXT]    TEXT has been drawn when KEYS are typed
"""
import fcntl
import os
import pty
import struct
import sys
import termios

import terminal

giltracer, pid, keys, text = (sys.argv[1:] + ['GIL free'])[:4]
child, fd = pty.fork()
if child == 0:
    os.environ['TERM'] = 'xterm'
    os.execv(giltracer, [giltracer, 'top', '-p', pid])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 132, 0, 0))
drawn = b''
while data := terminal.read(fd):
    drawn += data
    if keys and text.encode() in drawn:
        os.write(fd, keys.encode())
        keys = ''
sys.stdout.buffer.write(drawn)
print('\nexit status', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
