# SPDX-License-Identifier: MIT
"""giltracer top on a terminal: prints what it drew after keys were typed, and its exit status.

    top-screen.py GILTRACER 'PID [OPTION]...' KEYS [TEXT]    KEYS are typed once TEXT has been drawn

If TEXT does not appear in 60 updates of the screen, q is typed.
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
    # Before it draws: ncurses draws only what changes, and a TEXT in two parts is not found.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 132, 0, 0))
    os.environ['TERM'] = 'xterm'
    os.execv(giltracer, [giltracer, 'top', '-p', *pid.split()])
drawn = b''
updates = 0
while data := terminal.read(fd):
    drawn += data
    updates += 1
    if keys and (text.encode() in drawn or updates == 60):
        os.write(fd, (keys if text.encode() in drawn else 'q').encode())
        keys = ''
sys.stdout.buffer.write(drawn)
print('\nexit status', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
