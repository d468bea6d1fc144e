# SPDX-License-Identifier: MIT
"""Two threads that want the GIL and one that sleeps; the names of all are hostile to folded stacks:
separators, line ends, escapes, markup and what is no UTF-8."""
import threading
import time


def spin():
    end = time.monotonic() + 0.3
    total = 0
    while time.monotonic() < end:
        for i in range(500):
            total += i * i


def nap():
    for _ in range(50):
        time.sleep(0.002)


# What is no UTF-8 is in the kernel's name only: VizTracer 1.1.1 crashes on such a name of Python's.
NAMES = ["a;b 1\n c 2", "</script>\x1b[31m", " \x9b\u202e 7 "]


def main():
    def thread(function, name):
        with open("/proc/thread-self/comm", "wb", buffering=0) as f:
            f.write(b"\xff;" + name.encode())
        code = function.__code__
        evil = {k: "x;y 3\n\x1b]0;z\x07" for k in ("co_name", "co_qualname") if hasattr(code, k)}
        function.__code__ = code.replace(**evil)
        function()

    threads = [threading.Thread(target=thread, args=(function, name), name=name)
               for function, name in zip((spin, spin, nap), NAMES)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


if __name__ == "__main__":
    main()
