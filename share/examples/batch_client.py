# SPDX-License-Identifier: MIT
"""A batch job that waits for the network, although it could as well be the GIL or the disk: four threads
fetch records from a slow server.

    batch_client.py [SECONDS]

Run it, and look at it from another terminal:

    giltracer -p PID --sample 200 --duration 3
"""
import os
import signal
import socket
import sys
import threading
import time

DELAY = 0.05


def answer(connection):
    with connection:
        while connection.recv(64):
            time.sleep(DELAY)
            connection.sendall(b'record\n')


def serve(listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def fetch(connection):
    connection.sendall(b'next\n')
    return connection.recv(64)


def store(record):
    return sum(record) % 251


def work(port, end):
    with socket.create_connection(('127.0.0.1', port)) as connection:
        while time.monotonic() < end:
            store(fetch(connection))


def main(seconds):
    listener = socket.create_server(('127.0.0.1', 0))
    port = listener.getsockname()[1]
    server = os.fork()
    if server == 0:  # in reality another program, perhaps on another machine
        try:
            serve(listener)
        finally:
            os._exit(0)
    listener.close()
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=work, args=(port, end)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.kill(server, signal.SIGTERM)
    os.waitpid(server, 0)


if __name__ == '__main__':
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60)
