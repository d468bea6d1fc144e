# SPDX-License-Identifier: MIT
"""Gives the GIL up in every kind of code there is, and prints where: one JSON list for each time, of
the function and its caller, if there is one, each as [name, line, file]. The last line has the names
of all functions.

    frames.py           run
    frames.py compare TRUTH DUMP    whether what giltracer dump -s shows is that
"""
import asyncio
import functools
import gc
import json
import os
import re
import signal
import sys
import threading

ZERO = os.open('/dev/zero', os.O_RDONLY)
read = os.read
seen = []
kept = []  # what was made by exec, so that it is listed at the end


def name_of(code):
    return getattr(code, 'co_qualname', code.co_name)


def note(level=1):
    frame = sys._getframe(level)
    frames = [frame, frame.f_back]
    if frame.f_globals is globals() and frame.f_code.co_name == '<module>':
        frames.pop()  # giltracer's, if any, which is not to be seen
    seen.append([[name_of(f.f_code), f.f_lineno, f.f_code.co_filename] for f in frames])


# Each gives the GIL up on the line where it is noted.

def plain():
    note(), read(ZERO, 1)


def nested():
    def inner():
        return (lambda: (note(), read(ZERO, 1)))()
    inner()


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        note(), read(ZERO, 1)
        return function(*args)
    return wrapper


@decorated
def wrapped():
    note(), read(ZERO, 1)


def handled():
    try:
        raise ValueError
    except ValueError:
        note(), read(ZERO, 1)
    finally:
        note(), read(ZERO, 1)


def naïve():
    note(), read(ZERO, 1)


def 名前():
    note(), read(ZERO, 1)


def not_ascii():
    naïve()
    名前()


def long_name():
    name = 'f' + 'x' * 2000
    space = {'note': note, 'read': read, 'ZERO': ZERO}
    exec('def %s():\n    note(), read(ZERO, 1)\n' % name, space)
    kept.append(space[name])
    space[name]()


def executed():
    space = {'note': note, 'read': read, 'ZERO': ZERO}
    exec('\n\ndef made():\n    note(), read(ZERO, 1)\nmade()\nnote(), read(ZERO, 1)\n', space)
    eval('(note(), read(ZERO, 1))', space)


def class_body():
    class Body:
        note(), read(ZERO, 1)


def comprehensions():
    [(note(), read(ZERO, 1)) for _ in range(2)]
    {(note(), read(ZERO, 1)) for _ in range(2)}
    {i: (note(), read(ZERO, 1)) for i in range(2)}
    list((note(), read(ZERO, 1)) for _ in range(2))


def generator():
    try:
        for _ in range(2):
            note(), read(ZERO, 1)
            yield 1
    finally:
        note(), read(ZERO, 1)


def delegating():
    yield from generator()


def generators():
    list(generator())
    for _ in delegating():
        pass
    one = generator()
    next(one)
    one.close()


async def coroutine():
    note(), read(ZERO, 1)
    await asyncio.sleep(0)
    note(), read(ZERO, 1)


async def awaiting():
    await coroutine()


async def asynchronous():
    note(), read(ZERO, 1)
    yield 1


async def iterating():
    async for _ in asynchronous():
        note(), read(ZERO, 1)
    await asyncio.gather(coroutine(), awaiting())


def event_loop():
    loop = asyncio.new_event_loop()
    loop.run_until_complete(awaiting())
    loop.run_until_complete(iterating())
    loop.call_soon(plain)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()


class Meta(type):
    def __new__(cls, name, bases, space):
        note(), read(ZERO, 1)
        return super().__new__(cls, name, bases, space)


class Thing:
    def __init__(self):
        note(), read(ZERO, 1)

    def __del__(self):
        note(), read(ZERO, 1)

    def __getattr__(self, name):
        note(), read(ZERO, 1)
        return name

    def __eq__(self, other):
        note(), read(ZERO, 1)
        return True

    def __enter__(self):
        note(), read(ZERO, 1)

    def __exit__(self, *args):
        note(), read(ZERO, 1)

    def __call__(self):
        note(), read(ZERO, 1)

    @property
    def property(self):
        note(), read(ZERO, 1)

    @staticmethod
    def static():
        note(), read(ZERO, 1)

    @classmethod
    def of_class(cls):
        note(), read(ZERO, 1)


def things():
    for _ in range(20):  # often enough to be specialised
        thing = Thing()
    thing(), thing.property, thing.other, thing == 1, thing.static(), thing.of_class()
    with thing:
        pass
    del thing
    thing = Thing()
    thing.itself = thing
    del thing
    gc.collect()
    Meta('Made', (), {})


def key(x):
    note(), read(ZERO, 1)
    return x


def replacement(match):
    note(), read(ZERO, 1)
    return ''


def called_by_c():
    sorted([3, 1, 2], key=key)
    list(map(lambda x: (note(), read(ZERO, 1)), [1, 2]))
    re.sub('a', replacement, 'aaa')
    functools.partial(key, 1)()
    functools.reduce(lambda x, y: (note(), read(ZERO, 1)), [1, 2, 3])
    json.loads('{"a": 1}', object_hook=key)


def freeing(x):
    """A function whose file is closed when it has returned."""
    note(2)
    file = os.fdopen(os.dup(ZERO), 'rb', buffering=0)
    file.__class__


def frees():
    freeing(1)
    sorted([1], key=freeing)


def handler(number, frame):
    note(), read(ZERO, 1)


def signalled():
    signal.signal(signal.SIGUSR1, handler)
    os.kill(os.getpid(), signal.SIGUSR1)


def foreign():
    try:
        import ctypes
    except ImportError:
        return
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    two = (ctypes.c_char * 2)()
    ctypes.CDLL(None).qsort(two, 2, 1, kind(lambda x, y: (note(), read(ZERO, 1)) and 0))


def in_thread():
    thread = threading.Thread(target=plain)
    thread.start()
    thread.join()


KINDS = [plain, nested, wrapped, handled, not_ascii, long_name, executed, class_body, comprehensions,
         generators, event_loop, things, called_by_c, frees, signalled, foreign, in_thread]


def run():
    for kind in KINDS:
        kind()


# ---- what giltracer saw

def quoted(text):
    """As giltracer dump prints it."""
    return ''.join(chr(c) if 32 <= c < 127 else '\\x%02x' % c for c in text.encode())


def dumped(path):
    """The frames of each request: [name, line or None, file or '']."""
    requests, frames = [], None
    frame = re.compile(r'\t"([^"]*)"(?::(\d+))? "([^"]*)" python$')
    for line in open(path, encoding='ascii', errors='replace'):
        if line[0].isdigit():
            frames = []
            if ' request gil=' in line:
                requests.append(frames)
        elif frame.match(line):
            name, number, file = frame.match(line).groups()
            frames.append([name, int(number) if number else None, file])
    return requests


def is_frame(want, got):
    """A function that is not listed has no line and no file, but its name is known."""
    name, line, file = want
    return got[0] == quoted(name) and (got[1:] == [line, quoted(file)] or got[1:] == [None, ''])


def compare(truth, requests):
    at, wrong = 0, []
    for one in truth:
        for i in range(at, len(requests)):
            got = requests[i]
            if (len(got) > 1) == (len(one) > 1) and got and all(map(is_frame, one, got)):
                at = i + 1
                break
        else:
            wrong.append('not seen behind request %d: %s' % (at, one))
    return wrong


def main():
    if len(sys.argv) == 1:
        run()
        codes = [f.__code__ for f in gc.get_objects() if type(f) is type(main)]
        for code in codes:
            codes += [one for one in code.co_consts if type(one) is type(code)]
        names = sorted({name_of(code) for code in codes} | {'<module>', 'made'})
        print('\n'.join(json.dumps(one) for one in seen + [names]))
        return
    truth = [json.loads(line) for line in open(sys.argv[2])]
    names = {quoted(name) for name in truth.pop()}
    requests = dumped(sys.argv[3])
    wrong = compare(truth, requests)
    wrong += ['no function has this name: ' + frame[0][:99] for frames in requests
              for frame in frames if frame[0] not in names]
    print('\n'.join(wrong[:20]))
    sys.exit(1 if wrong or not truth else 0)


if __name__ == '__main__':
    note(), read(ZERO, 1)
    main()
