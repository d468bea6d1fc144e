# SPDX-License-Identifier: MIT
"""Programs for join.t, and what looks at them.

    work READY GO [UID]    one thread's calls keep the GIL for 20 ms each, another one wants it; the main
                           thread does little, forks a child for each byte that it finds in the FIFO GO, and
                           ends when GO is closed. The FIFO READY gets a line when all are at work, and
                           when a child has ended
    asleep READY GO        one thread computes, and the main thread waits for GO in C code
    serve                  a server with a thread for each connection; prints its port, ends with its stdin
    load PORT COUNT        ask it in 4 connections at once, COUNT times each, and check the answers
    slots PID              the addresses of libc's functions that CPython's code in PID has, and whether
                           they may be written
    restored PID FILE      wait until they are what FILE says
    relro FROM TO          copy an interpreter whose dynamic linker then makes these read-only
"""
import ctypes
import hashlib
import os
import re
import select
import socket
import socketserver
import struct
import subprocess
import sys
import threading

PATIENCE_S = 60


def hog(stop, there):
    keep = ctypes.PyDLL(None).usleep  # its calls keep the GIL
    there.wait()
    while not stop:
        keep(20000)


def victim(stop, there):
    there.wait()
    while not stop:
        pass


def child():
    """The threads of this program take the GIL in turns."""
    threads = [threading.Thread(target=sum, args=(range(100000),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os._exit(7)


def look_at(go, ready):
    """False if GO was closed."""
    if not select.select([go], [], [], 0.01)[0]:
        return True
    if not os.read(go, 1):
        return False
    pid = os.fork()
    if not pid:
        child()
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    print('child', file=ready, flush=True)
    return ended


def begin(ready, go):
    ready = open(ready, 'w')
    go = os.open(go, os.O_RDONLY)
    return ready, go


def work(ready, go, uid=None):
    stop, there = [], threading.Barrier(3)
    threads = [threading.Thread(target=f, args=(stop, there), name='my ' + f.__name__)
               for f in (hog, victim)]
    for thread in threads:
        thread.start()
    there.wait()
    ready, go = begin(ready, go)
    if uid:
        os.setuid(int(uid))
    print('ready', file=ready, flush=True)
    while look_at(go, ready):
        pass
    stop.append(True)
    for thread in threads:
        thread.join()


def asleep(ready, go):
    stop, there = [], threading.Barrier(2)
    thread = threading.Thread(target=victim, args=(stop, there))
    thread.start()
    there.wait()
    ready, go = begin(ready, go)
    print('ready', file=ready, flush=True)
    os.read(go, 1)
    stop.append(True)
    thread.join()


def answer(question):
    return hashlib.sha256(question * 1000).hexdigest().encode() + b' %d\n' % sum(question * 100)


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(answer(line))


def serve():
    with socketserver.ThreadingTCPServer(('127.0.0.1', 0), Answers) as server:
        print(server.server_address[1], flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
        server.serve_forever(0.02)


def ask(port, count, wrong):
    with socket.create_connection(('127.0.0.1', int(port)), PATIENCE_S) as connection:
        stream = connection.makefile('rwb')
        for i in range(int(count)):
            question = b'%d\n' % i
            stream.write(question)
            stream.flush()
            if stream.readline() != answer(question):
                wrong.append(i)


def load(port, count):
    wrong = []
    threads = [threading.Thread(target=ask, args=(port, count, wrong)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(bool(wrong))


def find_maps(pid):
    """Yield start, end, permissions and path of each mapping."""
    with open('/proc/%s/maps' % pid) as maps:
        for line in maps:
            fields = line.rstrip('\n').split(None, 5)
            start, end = (int(x, 16) for x in fields[0].split('-'))
            yield start, end, fields[1], ''.join(fields[5:])


def find_slots(pid):
    maps = list(find_maps(pid))
    base, exe = next((m[0], m[3]) for m in maps if re.search(r'/(lib)?python3[^/]*$', m[3]))
    if 'EXEC' in subprocess.check_output(['readelf', '-hW', exe], text=True):
        base = 0
    slots = []
    with open('/proc/%s/mem' % pid, 'rb', 0) as memory:
        for line in subprocess.check_output(['readelf', '-rW', exe], text=True).splitlines():
            found = re.match(r'([0-9a-f]+) .* (pthread_(?:mutex|cond)_(?:init|lock|unlock|.*wait|signal))@',
                             line)
            if found:
                at = base + int(found[1], 16)
                memory.seek(at)
                slots.append('%s %s %s\n' % (found[2], memory.read(8).hex(),
                                             next(m[2] for m in maps if m[0] <= at < m[1])))
    return ''.join(slots)


def slots(pid):
    print(find_slots(pid), end='')


def restored(pid, file):
    with open(file) as f:
        wanted = f.read()
    for _ in range(PATIENCE_S * 20):
        if find_slots(pid) == wanted:
            return
        select.select([], [], [], 0.05)
    sys.exit('%s is not %s' % (find_slots(pid), wanted))


def relro(source, target):
    """As if it were linked with -z now: the pages that are full of addresses belong to PT_GNU_RELRO."""
    sections = subprocess.check_output(['readelf', '-SW', source], text=True)
    found = re.search(r' \.got\.plt +PROGBITS +(\w+) \w+ (\w+)', sections)
    end = int(found[1], 16) + int(found[2], 16) & -4096
    with open(source, 'rb') as f:
        data = bytearray(f.read())
    offset, = struct.unpack_from('<Q', data, 32)
    size, count = struct.unpack_from('<HH', data, 54)
    for at in range(offset, offset + size * count, size):
        if struct.unpack_from('<I', data, at)[0] == 0x6474e552:
            start, = struct.unpack_from('<Q', data, at + 16)
            struct.pack_into('<QQ', data, at + 32, end - start, end - start)
    with open(target, 'wb') as f:
        f.write(data)
    os.chmod(target, 0o755)


globals()[sys.argv[1]](*sys.argv[2:])
