# SPDX-License-Identifier: MIT
"""metrics-load.py URL: many and slow clients of a metrics server; prints what each lot got.

 parallel: answers to 1,000 scrapes that were asked for before any of them was read
 crowd: the answer while 600 clients send a byte now and then, and come again when they are dropped
 idle: an answer while 400 connections say nothing
 slow: a client that sends a byte now and then is dropped before its request is complete
 deaf: one that never reads what it asks for, again and again, is dropped
 large: what becomes of a request with headers of 1 MiB
"""
import concurrent.futures
import resource
import select
import socket
import sys
import threading
import time
import urllib.parse

resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
url = urllib.parse.urlsplit(sys.argv[1])
address = (url.hostname, url.port)
REQUEST = b'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'


def read_all(connection):
    parts = []
    while True:
        part = connection.recv(65536)
        if not part:
            return b''.join(parts)
        parts.append(part)


def scrape():
    with socket.create_connection(address) as connection:
        connection.sendall(REQUEST)
        return read_all(connection)


def whole(answer):
    return answer.startswith(b'HTTP/1.1 200') and b'giltracer_processes_left_out 0' in answer


def parallel():
    connections = [socket.create_connection(address) for _ in range(500)]
    for connection in connections:
        connection.sendall(REQUEST)
    more = [socket.create_connection(address) for _ in range(500)]
    for connection in more:
        connection.sendall(REQUEST)
    return sum(whole(read_all(connection)) for connection in connections + more)


def idle():
    connections = [socket.create_connection(address) for _ in range(400)]
    answer = whole(scrape())
    for connection in connections:
        connection.close()
    return answer


def crowd():
    connections = []
    answered = threading.Event()

    def attack():
        while True:
            while len(connections) < 600:
                connections.append(socket.create_connection(address))
                connections[-1].sendall(b'GET /metrics HTTP/1.1\r\nX: ')
            crowded.set()
            if answered.wait(0.2):
                return
            for connection in connections[:]:
                try:
                    connection.sendall(b'x')
                except OSError:
                    connections.remove(connection)
                    connection.close()

    crowded = threading.Event()
    attacker = threading.Thread(target=attack)
    attacker.start()
    crowded.wait()
    start = time.monotonic()
    answer = whole(scrape())
    seconds = time.monotonic() - start
    answered.set()
    attacker.join()
    for connection in connections:
        connection.close()
    return 'in time' if answer and seconds < 5 else '%s after %.1f s' % (answer, seconds)


def slow():
    with socket.create_connection(address) as connection:
        connection.sendall(b'GET /metrics HTTP/1.1\r\nX: ')
        start = time.monotonic()
        while time.monotonic() < start + 30:
            readable, _, _ = select.select([connection], [], [], 0.3)
            try:
                if readable and not connection.recv(1):
                    return 'dropped'
                connection.sendall(b'x')
            except OSError:
                return 'dropped'
    return 'kept'


def deaf():
    with socket.create_connection(address) as connection:
        connection.settimeout(30)
        try:
            while True:
                connection.sendall(REQUEST.replace(b'close', b'keep-alive') * 100)
        except socket.timeout:
            return 'kept'
        except OSError:
            return 'dropped'


def large():
    with socket.create_connection(address) as connection:
        try:
            connection.sendall(b'GET /metrics HTTP/1.1\r\nX: ' + b'x' * (1 << 20))
            answer = connection.recv(100)
        except OSError:
            return 'refused'
    return 'refused' if answer == b'' or answer.startswith(b'HTTP/1.1 4') else answer


print('parallel: %s' % parallel())
print('crowd: %s' % crowd())
print('idle: %s' % idle())
with concurrent.futures.ThreadPoolExecutor() as together:
    running = {test.__name__: together.submit(test) for test in (slow, deaf, large)}
    for name, result in running.items():
        print('%s: %s' % (name, result.result()))
print('after all: %s' % whole(scrape()))
