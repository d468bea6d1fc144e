# SPDX-License-Identifier: MIT
"""A program for attach.t whose threads come and go all the time, like those of a server that starts one
for each request.

    attach-threads.py ASK ANSWER    FIFOs: for each line in ASK, the main thread writes one to ANSWER;
                                    at the end of ASK it ends
"""
import os
import random
import sys
import threading
import time

COUNT = 24


def work():
    time.sleep(random.random() / 2)


def one_after_another():
    while True:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()


def main(ask, answer):
    for _ in range(COUNT):
        threading.Thread(target=one_after_another, daemon=True).start()
    with open(ask) as questions, open(answer, 'w') as answers:
        for _ in questions:
            answers.write('here\n')
            answers.flush()
    os._exit(0)


main(*sys.argv[1:])
