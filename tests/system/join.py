# SPDX-License-Identifier: MIT
"""Programs for join.t, and what looks at them.

    work READY GO [UID]    one thread's calls keep the GIL for 20 ms each, another one wants it; the main
                           thread does little, forks a child for each byte that it finds in the FIFO GO, and
                           ends when GO is closed. The FIFO READY gets a line when all are at work, and
                           when a child has ended
    prefork READY GO       two children do that, and the main thread waits for an item of a queue, by a lock that
                           it has taken before
    asleep READY GO        one thread computes, and the main thread waits for GO in C code
    waits HOW LIMIT READY GO   one thread takes the GIL now and then, and the main thread waits until GO is
                           closed, or the limit in seconds has passed; fails if it waits less or much longer
    serve                  a server with a thread for each connection; prints its port, ends with its stdin
    load PORT COUNT        ask it in 4 connections at once, COUNT times each, and check the answers
    slots PID              the addresses of libc's functions that CPython's code in PID has, and whether
                           they may be written
    restored PID FILE      wait until they are what FILE says
    registers LIBRARY READY GO   the main thread is in code of registers.c until GO is closed
    poll LIBRARY READY GO  it waits there with a time-out
    left PID               its descriptors, threads, and memory without a file that can be executed
    trace PID              be its tracer until stdin ends; prints a line when it is
    kill GILTRACER PID LIBRARY [MOST]   kill giltracer before each of its calls of ptrace while it joins PID,
                           which goes on; print how many these were. LIBRARY is made of killed.c
    relro FROM TO          copy an interpreter whose dynamic linker then makes these read-only
"""
import ctypes
import fcntl
import hashlib
import multiprocessing
import os
import queue
import re
import select
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time

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
    ended = os.waitpid(pid, 0)[1] >> 8 == 7
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


def serve_in_child(go):
    stop, there = [], threading.Barrier(3)
    for f in (hog, victim):
        threading.Thread(target=f, args=(stop, there), name='my ' + f.__name__, daemon=True).start()
    there.wait()
    select.select([go], [], [])
    os._exit(7)


def prefork(ready, go):
    ready, go = begin(ready, go)
    children = []
    for _ in range(2):
        children.append(os.fork())
        if not children[-1]:
            serve_in_child(go)
    items = queue.SimpleQueue()
    threading.Thread(target=lambda: (os.read(go, 1), items.put(None)), name='my closer').start()
    print('ready', file=ready, flush=True)
    while True:
        try:
            items.get(timeout=PATIENCE_S)
            break
        except queue.Empty:
            pass
    for pid in children:
        if os.waitpid(pid, 0)[1] >> 8 != 7:
            sys.exit('a child failed')


def poll_in_c(file):
    """Which the library's text cannot interrupt: it would have to end with an error, or wait for too long."""
    pollfd = struct.pack('ihh', file, select.POLLIN, 0)
    if ctypes.CDLL(None).poll(ctypes.create_string_buffer(pollfd, len(pollfd)), 1, -1) != 1:
        sys.exit('poll ended')


def asleep(ready, go):
    stop, there = [], threading.Barrier(2)
    thread = threading.Thread(target=victim, args=(stop, there))
    thread.start()
    there.wait()
    ready, go = begin(ready, go)
    print('ready', file=ready, flush=True)
    poll_in_c(go)
    stop.append(True)
    thread.join()


# More than the 5 s after which giltracer gives up, so that it has joined during the wait.
TIMEOUT_S = 7
LATE_S = 5


def wait_in_lock(lock, end, limit):
    return lock.acquire(timeout=limit)


def wait_in_sleep(lock, end, limit):
    time.sleep(limit)


def wait_in_select(lock, end, limit):
    return select.select([end], [], [], limit)[0]


def wait_in_poll(lock, end, limit):
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return poll.poll(limit * 1000)


def wait_in_epoll(lock, end, limit):
    with select.epoll() as poll:
        poll.register(end, select.EPOLLIN)
        return poll.poll(limit)


def wait_in_accept(lock, end, limit):
    return [end.accept()[0].close()]


def wait_in_child(lock, end, limit):
    return [os.waitpid(CHILD.pid, 0)]


# What ends these waits, and the wait. A result is false if it ended before.

def wait_in_read(lock, end, limit):
    return os.read(PIPE[0], 1) == b'x'


def wait_in_c_read(lock, end, limit):
    return ctypes.CDLL(None).read(PIPE[0], ctypes.create_string_buffer(1), 1) == 1


def wait_in_input(lock, end, limit):
    os.dup2(PIPE[0], 0)
    return input() == 'x'


def wait_in_write(lock, end, limit):
    return os.write(FULL[1], b'x') == 1


def wait_in_recv(lock, end, limit):
    return PAIR[0].recv(1) == b'x'


def wait_in_open(lock, end, limit):
    with open(WAITED_FOR) as fifo:
        return fifo.read() == ''


def wait_in_pause(lock, end, limit):
    signal.pause()
    return SIGNALS


def wait_in_sigwait(lock, end, limit):
    return signal.sigwait({signal.SIGUSR2}) == signal.SIGUSR2


def wait_in_semaphore(lock, end, limit):
    return SEMAPHORE.acquire()


def wait_in_flock(lock, end, limit):
    with open(LOCK) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
    os.unlink(LOCK)
    return True


WAITED_FOR, LOCK = (os.path.join(os.environ.get('TMPDIR', '.'), name) for name in ('waited-for', 'locked'))
PIPE, FULL, PAIR, SIGNALS, SEMAPHORE = os.pipe(), os.pipe(), socket.socketpair(), [], None


def begin_write():
    os.set_blocking(FULL[1], False)
    try:
        while os.write(FULL[1], b'x' * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(FULL[1], True)


def begin_open():
    os.mkfifo(WAITED_FOR)


def begin_pause():
    signal.signal(signal.SIGUSR1, lambda *_: SIGNALS.append(1))


def begin_sigwait():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


def begin_semaphore():
    globals()['SEMAPHORE'] = multiprocessing.Semaphore(0)


def begin_flock():
    globals()['LOCKED'] = open(LOCK, 'w')
    fcntl.flock(LOCKED, fcntl.LOCK_EX)


def end_pause():
    while not SIGNALS:
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.1)


def end_open():
    open(WAITED_FOR, 'w').close()
    os.unlink(WAITED_FOR)


ENDS = {
    'read': lambda: os.write(PIPE[1], b'x'),
    'c_read': lambda: os.write(PIPE[1], b'x'),
    'input': lambda: os.write(PIPE[1], b'x\n'),
    'write': lambda: os.read(FULL[0], 8192),
    'recv': lambda: PAIR[1].send(b'x'),
    'open': end_open,
    'pause': end_pause,
    'sigwait': lambda: os.kill(os.getpid(), signal.SIGUSR2),
    'semaphore': lambda: SEMAPHORE.release(),
    'flock': lambda: LOCKED.close(),
}


def turn(done):
    while not done:
        time.sleep(0.001)
        sum(range(100))


def waits(how, limit, ready, go):
    """A connection to the socket, the release of the lock, or the end of the child's input ends waits that the
    limit does not."""
    done, lock, limit = [], threading.Lock(), int(limit)
    end = socket.socket()
    end.bind(('127.0.0.1', 0))
    end.listen()
    lock.acquire()
    worker = threading.Thread(target=turn, args=(done,), name='my worker')
    worker.start()
    ready, go = begin(ready, go)

    def close():
        os.read(go, 1)
        done.append(True)
        lock.release()
        socket.create_connection(end.getsockname()).close()
        if how == 'child':
            CHILD.stdin.close()
        if how in ENDS:
            ENDS[how]()

    globals().get('begin_' + how, lambda: None)()
    if how == 'child':
        globals()['CHILD'] = subprocess.Popen(['cat'], stdin=subprocess.PIPE)
    closer = threading.Thread(target=close, name='my closer')
    closer.start()
    print('ready', file=ready, flush=True)
    start = time.monotonic()
    if how == 'join':
        closer.join()
    else:
        result = globals()['wait_in_' + how](lock, end, limit)
        took = time.monotonic() - start
        if not (result or limit == TIMEOUT_S and limit - 0.01 < took < limit + LATE_S):
            sys.exit('%s: %s after %.3f s' % (how, result, took))
    closer.join()
    worker.join()
    if 'giltracer' in globals():
        sys.exit('a name is left')


def registers(library, ready, go):
    keep, stop = ctypes.CDLL(library).keep, ctypes.c_int()
    ready, go = begin(ready, go)
    closer = threading.Thread(target=lambda: (os.read(go, 1), setattr(stop, 'value', 1)))
    closer.start()
    print('ready', file=ready, flush=True)
    wrong = keep(ctypes.byref(stop))
    closer.join()
    sys.exit(wrong)


def poll(library, ready, go):
    wait_ms = ctypes.CDLL(library).wait_ms
    ready, go = begin(ready, go)
    print('ready', file=ready, flush=True)
    start = time.monotonic()
    error = wait_ms(3000)
    took = time.monotonic() - start
    os.read(go, 1)
    if error or not 3 <= took < 3 + LATE_S:
        sys.exit('error %d after %.3f s' % (error, took))


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
    slots = []
    for exe in sorted({m[3] for m in maps if re.search(r'/(lib)?python3[^/]*$', m[3])}):
        base = next(m[0] for m in maps if m[3] == exe)
        if 'EXEC' in subprocess.check_output(['readelf', '-hW', exe], text=True):
            base = 0
        slots += find_slots_of(pid, exe, base, maps)
    return ''.join(slots)


def find_slots_of(pid, exe, base, maps):
    with open('/proc/%s/mem' % pid, 'rb', 0) as memory:
        for line in subprocess.check_output(['readelf', '-rW', exe], text=True).splitlines():
            found = re.match(r'([0-9a-f]+) .* (pthread_(?:mutex|cond)_(?:init|lock|unlock|.*wait|signal))@',
                             line)
            if found:
                at = base + int(found[1], 16)
                memory.seek(at)
                yield '%s %s %s\n' % (found[2], memory.read(8).hex(),
                                      next(m[2] for m in maps if m[0] <= at < m[1]))


def left(pid):
    executable = [m for m in find_maps(pid) if 'x' in m[2] and not m[3]]
    print(len(os.listdir('/proc/%s/fd' % pid)), 'descriptors,', len(os.listdir('/proc/%s/task' % pid)),
          'threads,', len(executable), 'mappings')


def trace(pid):
    seize = 0x4206
    if ctypes.CDLL(None).ptrace(seize, int(pid), None, None):
        sys.exit('ptrace')
    print('traced', flush=True)
    sys.stdin.read()


def kill(giltracer, pid, library, most=PATIENCE_S):
    """Before its first call of ptrace, then before its second one, and so on, until it has no more."""
    env = dict(os.environ, TMPDIR='killed', LD_PRELOAD=library)
    os.makedirs('killed', exist_ok=True)  # where the sessions stay
    calls, ends = 1, 0
    # One that comes too soon after another one's end is told that the program is being recorded.
    while ends < PATIENCE_S and calls <= int(most):
        env['KILLED_AT'] = str(calls)
        ended = subprocess.run([giltracer, '-q', '-p', pid, '--probes', 'preload', '--duration', '1', '-o',
                                'killed.html'], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not ended.returncode:
            break
        killed = ended.returncode == -signal.SIGKILL
        calls, ends = calls + killed, 0 if killed else ends + 1
    print(calls - 1)


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
