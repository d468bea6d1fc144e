# SPDX-License-Identifier: MIT
"""Servers for servers.t, and their load.

    servers.py load URL CLIENTS READY STOP
                                    wait for the first answer, write to the FIFO READY, ask until the file
                                    STOP exists, then print how many answers there were, and how many were
                                    wrong
    servers.py dask READY STOP      the same of a Dask worker, whose process id is written to READY when it
                                    is at work
    servers.py pool READY STOP      the same of a multiprocessing pool, with the id of its parent
"""
import multiprocessing
import os
import sys
import threading
import urllib.request


async def asgi(scope, receive, send):
    """For uvicorn."""
    assert scope['type'] == 'http'
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'answer'})


def flask():
    """For Flask's own server, and for gunicorn."""
    import flask as module

    app = module.Flask(__name__)
    app.add_url_rule('/', 'answer', lambda: 'answer')
    return app


def pause():
    """Leave the CPUs to others."""
    threading.Event().wait(0.04)


def goes_on(stop):
    pause()
    return not os.path.exists(stop)


def ask(url, stop, counts):
    while goes_on(stop):
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                counts.append(response.read() == b'answer')
        except OSError as error:
            counts.append(False)
            print(error, file=sys.stderr)


def print_counts(counts):
    print('answers', len(counts), 'wrong', counts.count(False))


def wait_for(url):
    for _ in range(1500):
        try:
            return urllib.request.urlopen(url, timeout=30).close()
        except OSError:
            pause()


def load(url, clients, ready, stop):
    wait_for(url)
    tell(ready, os.getpid())
    counts = []
    threads = [threading.Thread(target=ask, args=(url, stop, counts)) for _ in range(int(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print_counts(counts)


def work(n):
    return sum(range(n))


def tell(ready, pid):
    with open(ready, 'w') as f:
        print(pid, file=f)


def dask(ready, stop):
    from distributed import Client, LocalCluster

    counts = []
    with LocalCluster(n_workers=1, threads_per_worker=4, dashboard_address=None) as cluster:
        with Client(cluster) as client:
            tell(ready, *client.run(os.getpid).values())
            while goes_on(stop):
                numbers = range(1000, 1020)
                results = client.gather(client.map(work, numbers, pure=False))
                counts += [r == work(n) for r, n in zip(results, numbers)]
    print_counts(counts)


def pool(ready, stop):
    counts = []
    with multiprocessing.Pool(2) as workers:
        tell(ready, os.getpid())
        while goes_on(stop):
            numbers = range(1000, 1100)
            counts += [r == work(n) for r, n in zip(workers.map(work, numbers), numbers)]
    print_counts(counts)


if __name__ == '__main__' and sys.argv[1:]:
    {'load': load, 'dask': dask, 'pool': pool}[sys.argv[1]](*sys.argv[2:])
