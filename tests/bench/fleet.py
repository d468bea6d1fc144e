# SPDX-License-Identifier: MIT
"""fleet.py URL: simulates hosts like the one whose metrics are at URL, for the Prometheus on PATH, and prints
the memory, disk and CPU time that it needs for 10,000 of them."""
import gzip
import http.server
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HOSTS, INTERVAL = 10000, 15  # what is asked for
FEW, MANY, SCRAPES = 25, 100, 130  # what is tried: a chunk of Prometheus has 120 samples
PROCESSES = 5  # of the real host


def fetch(url, data=None, **headers):
    request = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def real_host(url):
    """Its metrics once all of its processes are there, and how many bytes they are when sent."""
    while True:
        packed = fetch(url, **{'Accept-Encoding': 'gzip',
                               'Accept': 'application/openmetrics-text;version=1.0.0'})
        text = gzip.decompress(packed).decode()
        threads = re.findall(r'^giltracer_threads\{.*\} (\d+)$', text, re.M)
        if sum(map(int, threads)) >= PROCESSES * 11:
            return text, len(packed)
        time.sleep(0.1)


class Fleet:
    """Answers like so many real hosts, all of whose counters grow all the time: the most that they cost."""

    def __init__(self, text):
        self.parts = []  # text, then a counter's value and its growth a second
        self.began = time.monotonic()
        pending = ''
        for line in text.splitlines(True):
            match = re.match(r'(\S*_(?:total|bucket|sum|count)(?:\{.*?\})? )([0-9.]+)(.*\n)$', line)
            if match and not line.startswith('#'):
                self.parts.append((pending + match[1], float(match[2]), random.random()))
                pending = match[3] if not match[3].startswith(' #') else '\n'
            else:
                pending += line
        self.end = pending
        self.lock = threading.Lock()
        self.at, self.body = -1.0, b''

    def answer(self):
        with self.lock:
            passed = time.monotonic() - self.began
            if passed > self.at + 0.2:
                self.at, self.body = passed, self.text(passed).encode()
            return self.body

    def text(self, passed):
        return ''.join('%s%.9f' % (text, value + passed * growth)
                       for text, value, growth in self.parts) + self.end


def serve(fleet):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = fleet.answer()
            self.send_response(200)
            self.send_header('Content-Type',
                             'application/openmetrics-text; version=1.0.0; charset=utf-8')
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request, client_address):
            pass  # a scrape that took too long, on a busy machine

    server = Server(('127.0.0.1', 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def own_metric(server, name):
    text = fetch(server + '/metrics').decode()
    match = re.search(r'^%s (\S+)$' % name, text, re.M)
    return float(match[1]) if match else 0.0


def bytes_on_disk(server, data):
    """Of a block: chunks for each sample, and all else for each series."""
    name = json.loads(fetch(server + '/api/v1/admin/tsdb/snapshot', data=b''))['data']['name']
    chunks = rest = samples = series = 0
    for folder, _, files in os.walk(os.path.join(data, 'snapshots', name)):
        for file in files:
            path = os.path.join(folder, file)
            if os.path.basename(folder) == 'chunks':
                chunks += os.path.getsize(path)
            else:
                rest += os.path.getsize(path)
            if file == 'meta.json':
                with open(path) as meta:
                    stats = json.load(meta)['stats']
                samples += stats['numSamples']
                series += stats['numSeries']
    return chunks / samples, rest / series


def measure(fleet_port, hosts):
    """Series, resident bytes, and bytes on disk of a Prometheus that has scraped them for long enough."""
    with tempfile.TemporaryDirectory(dir='.') as folder:
        config = os.path.join(folder, 'prometheus.yaml')
        with open(config, 'w') as file:
            json.dump({'global': {'scrape_interval': '1s'}, 'scrape_configs': [{
                'job_name': 'fleet', 'static_configs': [
                    {'targets': ['127.0.0.1:%d' % fleet_port],
                     'labels': {'instance': 'host-%d' % i}} for i in range(hosts)]}]}, file)
        data = os.path.join(folder, 'data')
        program = subprocess.Popen(
            ['prometheus', '--config.file=' + config, '--storage.tsdb.path=' + data,
             '--web.listen-address=127.0.0.1:0', '--web.enable-admin-api'],
            stderr=subprocess.PIPE, text=True)
        try:
            for line in program.stderr:
                match = re.search(r'Listening on" address=(\S+)|msg="Listening on" address=(\S+)', line)
                if match:
                    break
            server = 'http://' + (match[1] or match[2])
            threading.Thread(target=program.stderr.read, daemon=True).start()
            series = 0
            while True:
                series = own_metric(server, 'prometheus_tsdb_head_series')
                samples = own_metric(server, r'prometheus_tsdb_head_samples_appended_total')
                if not samples:
                    samples = own_metric(
                        server, r'prometheus_tsdb_head_samples_appended_total\{type="float"\}')
                if series and samples / series > SCRAPES:
                    break
                time.sleep(0.5)
            return (series, own_metric(server, 'process_resident_memory_bytes'),
                    bytes_on_disk(server, data))
        finally:
            program.terminate()
            program.wait()


def main():
    text, sent = real_host(sys.argv[1])
    server = serve(Fleet(text))
    per_host = sum(1 for line in text.splitlines() if not line.startswith('#'))
    print('    fleet: one host, %d processes: %d series, %.1f KB a scrape' %
          (PROCESSES, per_host, sent / 1e3), flush=True)
    few = measure(server.server_port, FEW)
    many = measure(server.server_port, MANY)
    memory = (many[1] - few[1]) / (many[0] - few[0])
    sample, index = many[2]
    print('    fleet: a Prometheus with %d and %d hosts: %.0f and %.0f MB; %.1f KB a series; on disk %.1f bytes '
          'a sample and %.0f a series' % (FEW, MANY, few[1] / 1e6, many[1] / 1e6, memory / 1e3, sample, index))
    rate = HOSTS * per_host / INTERVAL
    # A block of two hours has its own index; later on, larger ones.
    disk = rate * 86400 * sample + HOSTS * per_host * index * 12
    print('    fleet: %d hosts every %d s: %.1f M series, %.0f k samples/s, %.1f MB/s of network, '
          '%.0f GB of memory, at most %.0f GB a day on disk' %
          (HOSTS, INTERVAL, HOSTS * per_host / 1e6, rate / 1e3, HOSTS * sent / INTERVAL / 1e6,
           HOSTS * per_host * memory / 1e9, disk / 1e9))


main()
