# SPDX-License-Identifier: MIT
"""Describe the code objects of this process, so that an address becomes a function and a line.

Runs in the traced interpreter (CPython 3.6 and later) when tracing has ended; the format is that of
giltracer/python/pycode.h. No module with a file is imported: the program may have a file of the same name, or have
lost the right to read it.
"""
import gc
import sys

CODE = type((lambda: 0).__code__)
FUNCTION = type(lambda: 0)
MODULE = type(sys)


def members():
    """Yield the members of all modules and of their classes. A free-threaded interpreter with a second
    thread no longer counts the references of functions, so gc does not list them."""
    pending = [module.__dict__ for module in list(sys.modules.values()) if type(module) is MODULE]
    known = set(map(id, pending))
    for names in pending:
        for one in list(names.values()):
            if type(one) in (classmethod, staticmethod):
                one = one.__func__
            yield one
            if type(one) is property:
                for part in (one.fget, one.fset, one.fdel):
                    yield part
            if isinstance(one, type):
                inner = type.__dict__['__dict__'].__get__(one)
                if id(one) not in known:
                    known.add(id(one))
                    pending.append(inner)


def reachable_codes(frames, more=()):
    """All code objects of living functions and of frames, more, and those among their constants."""
    codes = {}
    objects = gc.get_objects()
    if 't' in getattr(sys, 'abiflags', ''):
        objects += members()
    pending = [one.__code__ for one in objects if type(one) is FUNCTION]
    pending += more
    for frame in frames:
        while frame is not None:
            pending.append(frame.f_code)
            frame = frame.f_back
    while pending:
        code = pending.pop()
        if id(code) not in codes:
            codes[id(code)] = code
            pending += [one for one in code.co_consts if type(one) is CODE]
    return codes.values()


def number(value, size):
    return value.to_bytes(size, 'little')


def text(string):
    data = string.encode('utf-8', 'surrogatepass')
    return number(len(data), 4) + data


def describe(code, ours):
    start = number(id(code), 8) + number(max(code.co_firstlineno, 0), 4)
    if code.co_filename in ours:
        return start + bytes(12)
    table = code.co_linetable if sys.version_info >= (3, 10) else code.co_lnotab
    return b''.join((start, text(getattr(code, 'co_qualname', code.co_name)), text(code.co_filename),
                     number(len(table), 4), table))


def listed(more=(), ours=()):
    """The list of all code objects, without names if their file is one of ours. more: code objects that
    do not belong to a function."""
    codes = reachable_codes(sys._current_frames().values(), more)
    base = CODE.__basicsize__ if sys.version_info >= (3, 11) else 0
    head = b'GTCODES1' + bytes((sys.version_info[0], sys.version_info[1], 0, 0)) + number(base, 4)
    return head + number(len(codes), 8) + b''.join(describe(code, ours) for code in codes)
