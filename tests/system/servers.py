# SPDX-License-Identifier: MIT
"""Servers for servers.t, and their load.

    servers.py load URL CLIENTS STOP    ask until the file STOP exists, then print how many answers there
                                        were, and how many were wrong
"""
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


def ask(url, stop, counts):
    while not os.path.exists(stop):
        try:
            with urllib.request.urlopen(url, timeout=30) as response:
                counts.append(response.read() == b'answer')
        except OSError as error:
            counts.append(False)
            print(error, file=sys.stderr)


def load(url, clients, stop):
    counts = []
    threads = [threading.Thread(target=ask, args=(url, stop, counts)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print('answers', len(counts), 'wrong', counts.count(False))


if __name__ == '__main__' and sys.argv[1:2] == ['load']:
    load(sys.argv[2], int(sys.argv[3]), sys.argv[4])
