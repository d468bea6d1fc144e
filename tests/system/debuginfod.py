# SPDX-License-Identifier: MIT
"""A debuginfod server for one file, and what a user does while it is asked; see debuginfod.t.

    debuginfod.py serve MODE FILE PORT LOG   MODE: gives, lacks or hangs; PORT is a FIFO or file that
                                             gets the port; LOG gets a line for each request
    debuginfod.py interrupt LOG COMMAND...   send SIGINT when LOG, a FIFO, says that it was asked;
                                             print how the command ended
"""
import http.server
import signal
import subprocess
import sys
import threading


def serve(mode, file, port, log):
    done = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with open(log, "a") as out:
                out.write(self.path + "\n")
            if mode == "hangs":
                done.wait()
            if mode != "gives" or not self.path.endswith("/debuginfo"):
                self.send_error(404)
                return
            with open(file, "rb") as f:
                data = f.read()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with open(port, "w") as out:
        out.write("%d\n" % server.server_port)
    server.serve_forever()


def interrupt(log, *command):
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    with open(log) as asked:
        asked.readline()
    started.send_signal(signal.SIGINT)
    err = started.communicate()[1].decode()
    print(started.returncode, err.strip().splitlines()[-1:])


if __name__ == "__main__":
    {"serve": serve, "interrupt": interrupt}[sys.argv[1]](*sys.argv[2:])
