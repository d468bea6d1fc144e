# SPDX-License-Identifier: MIT
"""What prometheus.t asks of a Prometheus.

    prometheus.py manager FIFO ALERT LABEL=VALUE...   be its Alertmanager: the port goes into the FIFO;
                                                      ends when this alert fires
    prometheus.py query URL EXPRESSION                a line for each result: its labels, its value
    prometheus.py dashboard URL FILE                  each expression of a dashboard is understood, and
                                                      has results
"""
import http.server
import json
import sys
import urllib.parse
import urllib.request


def manager(fifo, alert, *wanted):
    labels = dict(one.split('=', 1) for one in wanted)
    labels['alertname'] = alert
    fired = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            alerts = json.loads(self.rfile.read(int(self.headers['Content-Length'])))
            self.send_response(200)
            self.end_headers()
            fired.extend(one for one in alerts if labels.items() <= one['labels'].items())

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
    with open(fifo, 'w') as out:
        print(server.server_port, file=out)
    while not fired:
        server.handle_request()
    print(json.dumps(fired[0]['labels'], sort_keys=True))


def query(url, expression):
    answer = urllib.request.urlopen(
        url + '/api/v1/query?' + urllib.parse.urlencode({'query': expression}), timeout=30)
    return json.load(answer)['data']['result']


def dashboard(url, path):
    with open(path) as file:
        board = json.load(file)
    for panel in board['panels']:
        for target in panel.get('targets', []):
            expression = target['expr'].replace('$__rate_interval', '3s')
            for variable in board['templating']['list']:
                expression = expression.replace('$' + variable['name'], '.*')
            print('%s: %d' % (panel['title'], len(query(url, expression)) > 0))


if sys.argv[1] == 'manager':
    manager(*sys.argv[2:])
elif sys.argv[1] == 'query':
    for result in query(*sys.argv[2:]):
        labels = {k: v for k, v in result['metric'].items() if k != 'job'}
        print(json.dumps(labels, sort_keys=True), result['value'][1])
else:
    dashboard(*sys.argv[2:])
