# SPDX-License-Identifier: MIT
"""Real programs, which giltracer joins and leaves while they work: joined.py GILTRACER ROUNDS [PROGRAM...]

Run it with a Python that has the programs' packages. For each program, a line: its name, how many answers it gave
meanwhile and how many were wrong or missing, and what is left in its processes after the last round that was not
there after the second: descriptors, threads, mappings. Fails if there is any of that. By the second round, what
a library leaves in a program once, such as itself, is there.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

WSGI = '''
import hashlib, json, time
def app(environ, start_response):
    n = int(environ["QUERY_STRING"] or 1)
    time.sleep(0.001)
    body = json.dumps([n, hashlib.sha256(b"%d" % n * 500).hexdigest()]).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
'''
ASGI = '''
import asyncio, hashlib, json
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    n = int(scope["query_string"] or 1)
    await asyncio.sleep(0.001)
    body = json.dumps([n, hashlib.sha256(b"%d" % n * 500).hexdigest()]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
'''
CELERY = '''
import celery
app = celery.Celery("tasks", broker="filesystem://", backend="file://" + FOLDER + "/results")
app.conf.broker_transport_options = {k: FOLDER + "/queue" for k in ("data_folder_in", "data_folder_out", "control_folder")}
@app.task
def work(n):
    return n, __import__("hashlib").sha256(b"%d" % n * 500).hexdigest()
'''
POOL = '''
import hashlib, multiprocessing, sys, threading
def work(n):
    return n, hashlib.sha256(b"%d" % n * 500).hexdigest()
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print("ready", flush=True)
        for line in sys.stdin:
            print(repr(pool.apply(work, (int(line),))), flush=True)
'''


def right(n):
    import hashlib
    return [n, hashlib.sha256(b'%d' % n * 500).hexdigest()]


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError


class Load:
    """Clients that ask all the time."""

    def __init__(self, ask, clients=4):
        self.ask, self.stop, self.answers, self.wrong = ask, False, 0, []
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        n = i
        while not self.stop:
            n += 7
            try:
                answer = list(self.ask(n))
                if answer != right(n):
                    self.wrong.append(answer)
            except Exception as e:
                self.wrong.append(repr(e))
            self.answers += 1

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()


def descendants(pid):
    found = [pid]
    for p in found:
        for tid in os.listdir('/proc/%d/task' % p):
            with open('/proc/%d/task/%s/children' % (p, tid)) as f:
                found += map(int, f.read().split())
    return found


def look(pid):
    """Of all processes: descriptors, threads, and mappings that giltracer may have made."""
    ret = []
    for p in descendants(pid):
        with open('/proc/%d/maps' % p) as f:
            maps = [line for line in f if 'giltracer' in line or len(line.split()) == 5 and 'x' in line.split()[1]]
        ret.append((p, len(os.listdir('/proc/%d/fd' % p)), len(os.listdir('/proc/%d/task' % p)), len(maps)))
    return ret


def http(port):
    def ask(n):
        with urllib.request.urlopen('http://127.0.0.1:%d/?%d' % (port, n), timeout=60) as answer:
            return json.load(answer)
    return ask


def server(command, port):
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: socket.create_connection(('127.0.0.1', port)).close() or True)
    return program, http(port)


def gunicorn(*options):
    def start():
        port = free_port()
        return server([sys.executable, '-m', 'gunicorn', '-b', '127.0.0.1:%d' % port, '--no-control-socket', *options, 'wsgi:app'], port)
    return start


def uvicorn():
    port = free_port()
    return server([sys.executable, '-m', 'uvicorn', '--loop', 'uvloop', '--port', str(port), 'asgi:app'], port)


def celery():
    program = subprocess.Popen([sys.executable, '-m', 'celery', '-A', 'tasks', 'worker', '-c', '2', '--without-mingle', '--without-gossip'],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sys.path.insert(0, os.getcwd())
    import tasks
    tasks.work.delay(1).get(timeout=60)
    return program, lambda n: tasks.work.delay(n).get(timeout=60)


def dask():
    import distributed
    port = free_port()
    scheduler = subprocess.Popen([sys.executable, '-m', 'distributed.cli.dask_scheduler', '--port', str(port), '--no-dashboard'],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    worker = subprocess.Popen([sys.executable, '-m', 'distributed.cli.dask_worker', 'tcp://127.0.0.1:%d' % port, '--no-nanny', '--no-dashboard',
                               '--nthreads', '4'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = distributed.Client('tcp://127.0.0.1:%d' % port, timeout=60)
    client.wait_for_workers(1, timeout=60)
    worker.also = [client.close, scheduler.kill, scheduler.wait]
    return worker, lambda n: client.submit(right, n, pure=False).result(timeout=60)


def jupyter():
    import jupyter_client
    manager, client = jupyter_client.manager.start_new_kernel()
    client.execute_interactive('def right(n):\n import hashlib, json\n print(json.dumps([n, hashlib.sha256(b"%d" % n * 500).hexdigest()]))')
    lock = threading.Lock()

    def ask(n):
        said = []
        with lock:
            client.execute_interactive('right(%d)' % n, timeout=60,
                                       output_hook=lambda m: said.append(m['content'].get('text', '')))
        return json.loads(''.join(said))

    program = manager.provisioner.process
    program.also = [client.stop_channels, lambda: manager.shutdown_kernel(now=True)]
    return program, ask


def pool():
    program = subprocess.Popen([sys.executable, 'pool.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    lock = threading.Lock()

    def ask(n):
        with lock:
            program.stdin.write('%d\n' % n)
            program.stdin.flush()
            return eval(program.stdout.readline())

    return program, ask


PROGRAMS = {
    'gunicorn sync': gunicorn('-w', '2'),
    'gunicorn gthread': gunicorn('-w', '1', '--threads', '4'),
    'gunicorn gevent': gunicorn('-w', '1', '-k', 'gevent'),
    'uvicorn uvloop': uvicorn,
    'celery': celery,
    'dask worker': dask,
    'jupyter kernel': jupyter,
    'multiprocessing pool': pool,
}


def join(giltracer, pid, n):
    done = subprocess.run([giltracer, '-p', str(pid), '--probes', 'preload', '--duration', '1', '-o', 'out.html', '--json', 'out.json'],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return 'round %d: %s' % (n, done.stderr.strip())
    # In another process: a long call that keeps the GIL between two steps of a client makes Celery's transport read
    # a message that is not written yet.
    holds = not subprocess.call([sys.executable, '-c', 'import json, sys\n'
                                 'sys.exit(not any(t["holds"] for t in json.load(open("out.json"))["threads"]))'])
    left_out = [line for line in done.stderr.splitlines() if 'not recorded' in line]
    return left_out[0] if left_out else '' if holds else 'round %d: no events' % n


def test(name, giltracer, rounds):
    program, ask = PROGRAMS[name]()
    loads, failed, seen = [], [], []
    try:
        for some in range(2), range(2, rounds):
            loads.append(Load(ask))
            try:
                for n in some:
                    failed += filter(None, [join(giltracer, program.pid, n)])
            finally:
                loads[-1].end()
            seen.append(settled(program.pid))
        left = '' if seen[0] == seen[1] else seen
    finally:
        for end in getattr(program, 'also', []):
            end()
        if program.poll() is None:
            program.send_signal(signal.SIGTERM)
        try:
            program.wait(20)
        except subprocess.TimeoutExpired:
            program.kill()
    answers, wrong = sum(load.answers for load in loads), [w for load in loads for w in load.wrong]
    print('%-22s %6d answers, %d wrong, %d of %d rounds failed, left: %s' %
          (name, answers, len(wrong), len(failed), rounds, left or 'nothing'), flush=True)
    for text in (wrong + failed)[:4]:
        print('    ' + str(text), flush=True)
    return not (wrong or failed or left) and answers > rounds


def settled(pid):
    """The least that is seen in some seconds: connections that were closed go."""
    least = look(pid)
    for _ in range(60):
        time.sleep(0.05)
        now = look(pid)
        if [p[0] for p in now] == [p[0] for p in least]:
            least = [tuple(map(min, a, b)) for a, b in zip(now, least)]
        else:
            least = now
    return least


def main():
    giltracer, rounds, names = os.path.abspath(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(PROGRAMS)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.makedirs('queue')
        os.makedirs('results')
        for name, text in (('wsgi', WSGI), ('asgi', ASGI), ('tasks', 'FOLDER = %r\n' % folder + CELERY), ('pool', POOL)):
            with open(name + '.py', 'w') as f:
                f.write(text)
        sys.exit(not all([test(name, giltracer, rounds) for name in names]))


if __name__ == '__main__':
    main()
