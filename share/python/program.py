# SPDX-License-Identifier: MIT
"""Run a program exactly as plain python would, and tell giltracer when to switch tracing on and off.

Runs in the traced interpreter, CPython 3.6 and later, before the program does. Only modules that
the interpreter itself has loaded are imported: any other module in sys.modules would hide the
program's own module of the same name.

    python bootstrap.py FD KIND ENTRY IMPORTS TRACE ENTRIES CODES CHILDREN STACK TARGET [ARG...]

FD       socket (SOCK_SEQPACKET) to giltracer
KIND     the kind of TARGET: "script", "module", "command" (the text after -c) or "stdin" ("-")
ENTRY    "main" (the guard's body, else the call of main(), else the first line), "first" (the first
         line), or "=NAME": when function NAME, or MODULE:NAME, is first called
IMPORTS  modules to import before tracing, separated by commas
TRACE    file for VizTracer's trace, "=" if the library records calls, or "-"
ENTRIES  the number of entries that VizTracer keeps
CODES    file for the program's code objects (codes.py), or "-"
CHILDREN file to which each process appends the names of its threads as they start
STACK    "VERSION CURRENT CURRENT2 LIBRARY": where that version has its frames (probes/README.md), and
         the path of our library; or "-"

Messages, one packet each; > is sent by this file:

    > begin TID          before anything of the program   < go         it can be recorded
    > start TID          tracing should begin     < go         perf records
    > started NS         tracing began at this time (CLOCK_MONOTONIC)
    > gil STATE          the GIL of a free-threaded interpreter is off, on or forced
    > stop NS            tracing should end       < ok         perf has stopped
    > trace VERSION      VizTracer's trace is complete in its file
    > code BYTES         the next part of the list of code objects
    > codes              that was all
    > thread TID NAME    the program's name of a thread
    > note TEXT          why the Python-side trace is not complete
    > unloaded           the program's main module could not be compiled or found: it did not run
    > entry TEXT         why tracing will not start
    > fail TEXT          why the program was not started
"""
import _ast
import _thread
import atexit
import os
import sys
import time

HERE = os.path.dirname(__file__ if '__file__' in globals() else sys.argv[0])
CODES = os.path.join(HERE, 'codes.py')
OURS = (os.path.join(HERE, 'bootstrap.py'), os.path.join(HERE, 'program.py'), CODES)
HOOK = '__giltracer_start__'


def file_identity(fd):
    st = os.fstat(fd)
    return st.st_dev, st.st_ino


# ---- the channel

class Channel:
    """The socket to giltracer. Only the process that giltracer started uses it, not its children."""

    def __init__(self, fd):
        self.fd = fd
        self.pid = os.getpid()
        self.inode = self.identity()
        os.set_inheritable(fd, False)
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_child=self.close)

    def identity(self):
        return file_identity(self.fd)

    def is_ours(self):
        """False in a forked child."""
        return os.getpid() == self.pid

    def usable(self):
        """False in a forked child, and if the program closed the descriptor."""
        try:
            return self.is_ours() and self.identity() == self.inode
        except OSError:
            return False

    def send(self, text):
        return self.send_bytes(text.encode('utf-8', 'replace')[:4096])

    def send_bytes(self, data):
        try:
            return self.usable() and os.write(self.fd, data) > 0
        except OSError:
            return False

    def ask(self, text):
        """Send, and wait for the answer. If giltracer has ended, the program must still not fail."""
        try:
            return self.send(text) and os.read(self.fd, 64)
        except OSError:
            return b''

    def close(self):
        if self.fd >= 0:
            try:
                if self.identity() == self.inode:
                    os.close(self.fd)
            except OSError:
                pass
        self.fd = -1


def native_id():
    try:
        return int(os.readlink('/proc/thread-self').rsplit('/', 1)[1])
    except OSError:
        return os.getpid()


def now_ns():
    if hasattr(time, 'clock_gettime_ns'):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    return int(time.clock_gettime(time.CLOCK_MONOTONIC) * 1e9)


# ---- the Python-side trace

class VizTracerTrace:
    """VizTracer, in the traced interpreter. If it fails, a note is sent, and the program runs on."""

    def __init__(self, channel, path, entries):
        self.channel = channel
        self.path = path
        self.entries = entries
        self.tracer = None
        self.forked = False

    def load(self):
        try:
            import viztracer
            # With dump_raw, VizTracer's C code writes its entries unchanged, with CLOCK_MONOTONIC times.
            self.tracer = viztracer.VizTracer(tracer_entries=self.entries, verbose=0,
                                              output_file=self.path, register_global=False,
                                              dump_raw=True)
            self.version = viztracer.__version__
        except Exception as e:
            self.note('could not be loaded: %s: %s' % (type(e).__name__, e))
            return
        # Runs before Tracing.stop, so that the trace does not show that.
        atexit.register(self.tracer.stop)
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_parent=self.see_fork, after_in_child=self.stop_in_child)

    def see_fork(self):
        self.forked = True

    def note(self, text):
        self.channel.send('note VizTracer ' + text)

    def measure(self):
        pass

    def start(self):
        if self.tracer:
            self.tracer.start()

    def stop_in_child(self):
        """A forked child does not save its trace, so tracing would only slow it down."""
        if self.tracer:
            self.tracer.stop()
            self.tracer.clear()

    def save(self):
        if not self.tracer:
            return
        try:
            self.tracer.stop()
            self.tracer.save()
            with open(self.path, 'rb') as f:
                f.seek(-min(64, f.seek(0, 2)), 2)
                full = b'"overflow":true' in f.read()
        except (Exception, KeyboardInterrupt) as e:
            self.note('could not save its trace: %s: %s' % (type(e).__name__, e))
            return
        self.channel.send('trace ' + self.version)
        if full:
            self.note('kept the last %d Python calls, earlier ones are missing '
                      '(--python-trace-entries keeps more)' % self.entries)
        elif 'gevent' in sys.modules or 'eventlet' in sys.modules:
            self.note('stops at the first switch between greenlets (gevent, eventlet): later '
                      'calls are missing')
        elif self.forked:
            self.note('traced the first process only, not those that it forked')


class NoTrace:
    def load(self):
        pass

    start = save = measure = load


class Library:
    """giltracer's own library: its functions, or why there are none."""

    def __init__(self, stack):
        self.functions = None
        self.why = 'is not available'
        self.frames = None
        self.name = 'giltracer_calls'  # _imp needs only name and origin of a module's spec
        if stack == '-':
            return
        version, current, current2, self.origin = stack.split(' ', 3)
        try:
            sys.modules['_imp'].create_dynamic(self)
        except ImportError as e:
            # The library is not a module: it hands over its functions as the arguments of this error.
            if len(e.args) == 7:
                self.functions = e.args
            else:
                self.why = 'could not be loaded: %s' % e
        except SystemError:
            self.why = 'does not know this interpreter'
        if self.functions and version == '%d.%d' % sys.version_info[:2]:
            self.frames = int(current), int(current2)

    def unseen(self, caller, function, *args):
        """Call the function as if this frame did, or, if it is None, the interpreter."""
        if not self.frames:
            return function(*args)
        return self.functions[6](*self.frames, caller, function, args)


class NativeTrace:
    """The library records from start to stop."""

    def __init__(self, channel, library):
        self.channel = channel
        self.library = library
        self.begin = None
        self.callbacks = None  # of the garbage collector
        self.measure = do_nothing

    def load(self):
        if not self.library.functions:
            self.note(self.library.why)
            return
        self.begin, stop, self.say_cost, watch, self.measure, self.collected, _ = self.library.functions
        atexit.register(self.forget_collections)
        # Runs before Tracing.stop, so that the trace does not show that.
        atexit.register(stop)
        if sys.version_info >= (3, 8):
            watch_interpreters(watch)

    def note(self, text):
        self.channel.send('note the recorder of Python calls ' + text)

    def start(self):
        if not self.begin:
            return
        before = call_ps()
        why = self.begin()
        if why:
            self.note('could not start: ' + why)
        else:
            self.say_cost(call_ps() - before)
            self.watch_collections()

    def watch_collections(self):
        """The library notes when the garbage collector runs. gc is not imported for the program."""
        imported = 'gc' in sys.modules
        import gc
        if not imported:
            del sys.modules['gc']
        self.callbacks = gc.callbacks
        self.callbacks.append(self.collected)

    def forget_collections(self):
        if self.callbacks and self.collected in self.callbacks:
            self.callbacks.remove(self.collected)

    def save(self):
        pass


def call_ps():
    """The duration of a function call: the minimum of several tries, as other threads may interfere."""
    def called():
        pass
    best = None
    for _ in range(40):
        start = now_ns()
        for _ in range(25):
            called()
        took = now_ns() - start
        best = took if best is None else min(best, took)
    return best * 1000 // 25


def make_trace(channel, trace, entries, library):
    if trace == '-':
        return NoTrace()
    if trace == '=':
        return NativeTrace(channel, library)
    return VizTracerTrace(channel, trace, entries)


class ImportHook:
    """Comes first in sys.meta_path until the module is imported. The other finders find the module, and
    its own loader loads it."""

    def __init__(self, module):
        self.module = module
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if hasattr(finder, 'find_spec') else None
            if spec is not None:
                self.hook(spec)
                return spec
        return None


class InterpretersHook(ImportHook):
    def __init__(self, name, watch):
        self.watch = watch
        super().__init__(name)

    def hook(self, spec):
        self.watch()


def watch_interpreters(watch):
    """Before the program makes its first interpreter, which needs this module."""
    name = '_interpreters' if sys.version_info >= (3, 13) else '_xxsubinterpreters'
    if name in sys.modules:
        watch()
    else:
        InterpretersHook(name, watch)


# ---- the threads' names

# A single function that calls only built-in functions and the real method, because from 3.12 on a
# tracer sees a thread's very first call. The name is written at once, since a signal may end the
# program at any time. The descriptor is closed again, since a program may rely on the numbers of its
# own descriptors.
WATCH = """
def watching(real, names, most, dummy, native_id, path, main, getpid, open, write, close):
    def %s(self):
        real(self)
        try:
            if len(names) < most and not isinstance(self, dummy):
                tid = getattr(self, '_native_id', None) or native_id()
                names[tid] = self._name
                fd = open(path, %d, 0o600)
                try:
                    write(fd, main[0] + b'%%d %%d %%s\\n' %% (getpid(), tid, self._name.encode(
                        'utf-8', 'replace')[:200].replace(b'\\n', b' ')))
                finally:
                    close(fd)
                main[0] = b''
        except Exception:
            pass
    return %s
"""


APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC


class ThreadNames:
    """The names of threads in threading. The kernel does not know them, and most threads have ended
    when the program ends.

    The name of a thread is recorded when it starts, in a private method of Thread that runs before
    the thread's own code, so that neither tracebacks nor profilers of the program see our function.
    threading is not imported for this, but watched once the program imports it.
    """
    MOST = 10000

    def __init__(self, path):
        self.names = {}
        self.threading = None
        self.path = path
        self.main = [b'']  # the line for the main thread, until it is written

    def prepare_main(self):
        """Prepare the line of the main thread; of a child, that is the thread that forked. The line is
        written when the first thread starts, since a child may still execute another program."""
        try:
            name = sys.modules['threading']._main_thread._name.encode('utf-8', 'replace')[:200]
            self.main[0] = b'%d %d %s\n' % (os.getpid(), os.getpid(), name.replace(b'\n', b' '))
        except Exception:
            pass

    def note(self, thread):
        try:
            if len(self.names) < self.MOST and not isinstance(thread, self.threading._DummyThread):
                self.names[getattr(thread, '_native_id', None) or native_id()] = thread._name
        except Exception:
            pass

    def note_living(self):
        """Note the threads that exist already. Before Python 3.8, a thread cannot get the kernel's ids
        of other threads, so only the main thread is noted."""
        self.threading = sys.modules.get('threading')
        try:
            for thread in list(self.threading._active.values()):
                if hasattr(thread, '_native_id'):
                    self.note(thread)
            self.names[os.getpid()] = self.threading._main_thread._name
        except Exception:
            pass

    def watch(self):
        if 'threading' not in sys.modules:
            ThreadingHook(self)
            return
        self.note_living()
        thread = getattr(self.threading, 'Thread', None)
        method = '_set_native_id' if hasattr(thread, '_set_native_id') else '_set_ident'
        real = getattr(thread, method, None)
        if type(real) is not type(native_id):
            return
        # In a trace, the function must have the name and file of the real one. From 3.8 on, the file
        # of its code can be replaced, and the function around it keeps our file, which traces omit.
        # Before 3.8, both are compiled with threading's file.
        code = real.__code__
        replaced = hasattr(code, 'replace')
        space = {'__name__': 'threading', '__builtins__': __builtins__}
        exec(compile(WATCH % (method, APPEND, method), OURS[1] if replaced else code.co_filename, 'exec', 0, True),
             space)
        dummy = getattr(self.threading, '_DummyThread', ())
        watching = space['watching'](real, self.names, self.MOST, dummy, native_id, self.path,
                                     self.main, os.getpid, os.open, os.write, os.close)
        watching.__qualname__ = real.__qualname__
        if replaced:
            shown = {'co_filename': code.co_filename, 'co_firstlineno': code.co_firstlineno}
            if hasattr(code, 'co_qualname'):
                shown['co_qualname'] = code.co_qualname
            watching.__code__ = watching.__code__.replace(**shown)
        setattr(thread, method, watching)
        self.prepare_main()
        if hasattr(os, 'register_at_fork'):
            os.register_at_fork(after_in_child=self.prepare_main)

    def send(self, channel):
        self.note_living()
        for tid, name in list(self.names.items()):
            channel.send('thread %d %.200s' % (tid, name))


# The interpreter leaves frames of importlib out of tracebacks, and therefore also this one.
LOADING = """
def loading(hook):
    def exec_module(module):
        hook.restore()
        hook.load(module)
        hook.names.watch()
    return exec_module
"""


class ThreadingHook(ImportHook):
    def __init__(self, names):
        self.names = names
        self.loader = self.load = None
        space = {'__name__': 'importlib._bootstrap_external', '__builtins__': __builtins__}
        exec(compile(LOADING, '<frozen importlib._bootstrap_external>', 'exec', 0, True), space)
        self.exec_module = space['loading'](self)
        super().__init__('threading')

    def hook(self, spec):
        self.loader = spec.loader
        self.load = getattr(self.loader, 'exec_module', None)
        if self.load:
            self.loader.exec_module = self.exec_module

    def restore(self):
        del self.loader.exec_module


# ---- when tracing starts and stops

class Codes:
    """The list of code objects, which gives the addresses that the probes recorded their meaning.
    Without it, functions have names, but no lines."""

    def __init__(self, path):
        self.path = path
        # Read before the program can change its root folder or become another user.
        with open(CODES, 'rb') as f:
            self.source = f.read()

    def write(self, program, channel):
        space = {'__name__': 'giltracer.codes', '__builtins__': __builtins__}
        try:
            exec(compile(self.source, CODES, 'exec', 0, True), space)
            data = space['listed'](program, OURS)
            # By the channel, since the program may have lost the right to open files.
            for at in range(0, len(data), 4000):
                if not channel.send_bytes(b'code ' + data[at:at + 4000]):
                    break
            else:
                channel.send('codes')
                return
            with open(self.path + '.part', 'wb') as f:
                f.write(data)
            os.rename(self.path + '.part', self.path)
        except Exception:
            pass


def gil_state():
    """'off', 'on', or 'forced' (on by an option) in a free-threaded interpreter, None in any other."""
    if not hasattr(sys, '_is_gil_enabled') or 't' not in getattr(sys, 'abiflags', ''):
        return None
    if not sys._is_gil_enabled():
        return 'off'
    by = sys._xoptions.get('gil')
    if by is None and not sys.flags.ignore_environment:
        by = os.environ.get('PYTHON_GIL')
    return 'forced' if by == '1' else 'on'


class Tracing:
    def __init__(self, channel, trace, codes, children):
        self.channel = channel
        self.trace = trace
        self.codes = None if codes == '-' else Codes(codes)
        self.program = []  # the code of the program's own module
        self.lock = _thread.allocate_lock()
        self.begun = False
        self.names = ThreadNames(children)
        # Registered first, so it runs last: after the program's own exit functions, and after the
        # remaining threads were joined.
        atexit.register(self.stop)

    def start(self):
        with self.lock:
            if self.begun:
                return
            self.begun = True
        self.forget_hook()
        if not self.channel.is_ours():
            return
        self.names.watch()
        if self.channel.ask('start %d' % native_id()):
            self.trace.measure()
            # The time is read after the answer: waiting for it belongs to us, not to the program.
            self.channel.send('started %d' % now_ns())
            state = gil_state()
            if state:
                self.channel.send('gil ' + state)
        self.trace.start()

    def stop(self):
        if not self.begun or not self.channel.is_ours():
            return
        for step in (self.say_stop, self.trace.save, self.say_names, self.say_codes):
            try:
                step()
            except KeyboardInterrupt:
                # The program has already ended: Ctrl-C skips a step that takes long, without a
                # traceback of ours.
                pass
        self.channel.close()

    def say_stop(self):
        self.channel.ask('stop %d' % now_ns())

    def say_names(self):
        self.names.send(self.channel)

    def say_codes(self):
        if self.codes:
            self.codes.write(self.program, self.channel)

    def install_hook(self):
        import builtins
        setattr(builtins, HOOK, self.start)

    def forget_hook(self):
        import builtins
        # A second guard, or a thread that has already loaded the name, may still call it.
        if hasattr(builtins, HOOK):
            setattr(builtins, HOOK, do_nothing)


def do_nothing():
    pass


# ---- where tracing starts: the syntax tree

def hook_call(at):
    """A statement that calls the hook, on the line of the statement at: no line number changes."""
    name = _ast.Name(id=HOOK, ctx=_ast.Load())
    call = _ast.Call(func=name, args=[], keywords=[])
    statement = _ast.Expr(value=call)
    for node in (name, call, statement):
        node.lineno = at.lineno
        node.col_offset = at.col_offset
        node.end_lineno = at.lineno
        node.end_col_offset = at.col_offset
    return statement


def children(node):
    for field in node._fields:
        value = getattr(node, field, None)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, _ast.AST):
                yield one


FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)


def module_level(tree):
    """Yield every statement list that runs as part of the module's body."""
    pending = [tree]
    while pending:
        node = pending.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list) and value and isinstance(value[0], _ast.stmt):
                yield value
        pending.extend(one for one in children(node)
                       if not isinstance(one, FUNCTIONS + (_ast.ClassDef, _ast.Lambda)))


def text_of(node):
    """The text of a string literal: Constant, or Str before Python 3.8."""
    return getattr(node, 'value', None) if type(node).__name__ == 'Constant' else \
        getattr(node, 's', None) if type(node).__name__ == 'Str' else None


def is_guard(test):
    """Whether test is __name__ == "__main__", in either order, alone or as part of an "and"."""
    if isinstance(test, _ast.BoolOp) and isinstance(test.op, _ast.And):
        return any(is_guard(one) for one in test.values)
    if not isinstance(test, _ast.Compare) or len(test.ops) != 1:
        return False
    if not isinstance(test.ops[0], _ast.Eq):
        return False
    sides = [test.left, test.comparators[0]]
    return (any(isinstance(one, _ast.Name) and one.id == '__name__' for one in sides)
            and any(text_of(one) == '__main__' for one in sides))


def hook_guards(tree):
    found = False
    for body in module_level(tree):
        for statement in body:
            if isinstance(statement, _ast.If) and is_guard(statement.test):
                statement.body.insert(0, hook_call(statement.body[0]))
                found = True
    return found


def calls_main(statement):
    if isinstance(statement, FUNCTIONS + (_ast.ClassDef,)):
        return False
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, _ast.Call) and isinstance(node.func, _ast.Name) \
                and node.func.id == 'main':
            return True
        pending.extend(one for one in children(node)
                       if not isinstance(one, FUNCTIONS + (_ast.ClassDef, _ast.Lambda)))
    return False


def hook_main_call(tree):
    """Insert the hook before the innermost statement of the module's body that calls main()."""
    found = False
    for body in module_level(tree):
        for i in range(len(body) - 1, -1, -1):
            if calls_main(body[i]) and not any(
                    calls_main(inner) for one in module_level(body[i]) for inner in one):
                body.insert(i, hook_call(body[i]))
                found = True
    return found


def defines_main(tree):
    for body in module_level(tree):
        for one in body:
            if isinstance(one, FUNCTIONS) and one.name == 'main':
                return True
            if isinstance(one, (_ast.Import, _ast.ImportFrom)) and any(
                    (alias.asname or alias.name) == 'main' for alias in one.names):
                return True
    return False


def is_docstring(statement):
    return isinstance(statement, _ast.Expr) and isinstance(text_of(statement.value), str)


def hook_function(tree, wanted):
    """Insert the hook into the functions of this name, "main" or "Class.method", wherever they are
    defined."""
    found = False
    pending = [(tree, '')]
    while pending:
        node, prefix = pending.pop()
        for one in children(node):
            name = prefix
            if isinstance(one, FUNCTIONS + (_ast.ClassDef,)):
                name = prefix + one.name
                if name == wanted and not isinstance(one, _ast.ClassDef):
                    at = 1 if is_docstring(one.body[0]) and len(one.body) > 1 else 0
                    one.body.insert(at, hook_call(one.body[at]))
                    found = True
                name += '.'
            pending.append((one, name))
    return found


def place_hook(tree, entry):
    if entry.startswith('='):
        return hook_function(tree, entry[1:])
    if entry != 'main':
        return False
    return hook_guards(tree) or (defines_main(tree) and hook_main_call(tree))


def compile_hooked(source, filename, entry):
    """Return (code, whether it calls the hook). Errors in the source are raised as plain python does."""
    flags = 0
    try:
        tree = compile(source, filename, 'exec', flags | _ast.PyCF_ONLY_AST, True)
        # Not the source once more, whose warnings would be shown twice.
        found = place_hook(tree, entry)
        return compile(tree, filename, 'exec', flags, True), found
    except (RecursionError, MemoryError):
        pass
    return compile(source, filename, 'exec', flags, True), False


class EntryFinder(ImportHook):
    """For --entry MODULE:NAME: the module is compiled with the hook when the program imports it."""

    def __init__(self, module, function, channel):
        self.function = function
        self.channel = channel
        super().__init__(module)

    def hook(self, spec):
        loader = spec.loader
        source = getattr(loader, 'get_source', lambda _: None)(spec.name)
        code, found = None, False
        if source is not None and hasattr(loader, 'get_code'):
            code, found = compile_hooked(source, spec.origin, '=' + self.function)
        if found:
            loader.get_code = lambda _: code
        else:
            self.channel.send('entry no function %s in the source of module %s: nothing was traced'
                              % (self.function, self.module))


# ---- running the program

def set_argv(target, args, interpreter_args):
    if hasattr(sys, 'orig_argv'):
        # The interpreter and its options come before the arguments in sys.argv.
        before = sys.orig_argv[:len(sys.orig_argv) - len(sys.argv)]
        sys.orig_argv[:] = before + interpreter_args + args
    sys.argv[:] = [target] + args


def main_path(script):
    """__file__ of the main module."""
    if sys.version_info < (3, 9) or script.startswith('/'):
        return script
    return os.getcwd() + '/' + script


def find_importer(path):
    """Find out, as python does, whether a "script" is a folder or a zip file."""
    for hook in sys.path_hooks:
        try:
            importer = hook(path)
        except ImportError:
            continue
        sys.path_importer_cache[path] = importer
        return importer
    return None


def read_all(fd):
    """What is left to read, as the interpreter reads a program from standard input."""
    parts = []
    try:
        while not parts or parts[-1]:
            parts.append(os.read(fd, 1 << 16))
    except OSError:
        pass
    return b''.join(parts)


def dedent(source):
    """As the interpreter does with the text after -c, without the modules that textwrap imports."""
    lines = source.split('\n')
    indents = [line[:len(line) - len(line.lstrip(' \t'))] for line in lines if line.strip(' \t')]
    common = os.path.commonprefix(indents)
    return '\n'.join(line[len(common):] if line.strip(' \t') else '' for line in lines)


def safe_path():
    return bool(getattr(sys.flags, 'safe_path', False) or sys.flags.isolated)


class Program:
    def __init__(self, namespace, tracing, library, kind, entry, imports, target, args):
        self.namespace = namespace
        self.unseen = library.unseen
        self.tracing = tracing
        self.kind = kind
        self.entry = entry
        self.imports = imports
        self.target = target
        self.args = args

    def clean_namespace(self, path, name=None):
        """Make __main__ what the interpreter makes it for the script path or, if None, for a module; name
        is its __file__ all the same."""
        loader = self.namespace['__loader__']
        self.namespace['__doc__'] = None
        cached = '__cached__' in self.namespace  # before 3.15
        del self.namespace['__file__']
        self.namespace.pop('__cached__', None)
        if path is None:
            builtin = sys.modules['_imp'].__loader__ if '_imp' in sys.modules else None
            self.namespace['__loader__'] = builtin or loader
            if name is not None:
                self.namespace['__file__'] = name
                if cached:
                    self.namespace['__cached__'] = None
            return
        self.namespace['__file__'] = path
        if cached:
            self.namespace['__cached__'] = None
        self.namespace['__loader__'] = type(loader)('__main__', path)

    def hooked(self, source, filename):
        code, found = compile_hooked(source, filename, self.entry)
        if not found:
            self.start_unless_named(filename)
        return code

    def start_unless_named(self, filename):
        if not self.entry.startswith('='):
            self.tracing.start()
        elif ':' not in self.entry:
            self.tracing.channel.send('entry no function %s in %s: nothing was traced'
                                      % (self.entry[1:], filename))

    def run(self):
        if self.kind == 'module':
            self.run_module()
            return
        if self.kind in ('command', 'stdin'):
            self.run_text(self.kind == 'command')
            return
        path = main_path(self.target)
        if find_importer(path):
            self.run_folder(path)
        else:
            self.run_script(path)

    def add_path(self, path):
        """Make sys.path what the program expects, then import the modules of --import, which may be the
        program's own."""
        if path is not None:
            sys.path.insert(0, path)
        for name in filter(None, self.imports.split(',')):
            try:
                __import__(name)
            except ImportError as e:
                self.tracing.channel.send('fail --import %s: %s' % (name, e))
                os._exit(1)

    def run_script(self, path):
        self.add_path(None if safe_path() else os.path.dirname(os.path.realpath(self.target)))
        set_argv(self.target, self.args, [self.target])
        self.clean_namespace(path)
        with open(path, 'rb') as f:
            source = f.read()
        if path.endswith('.pyc'):
            import marshal
            code = marshal.loads(source[16 if sys.version_info >= (3, 7) else 12:])
            self.start_unless_named(path)
        else:
            code = self.hooked(source, path)
        self.execute(code)

    def execute(self, code):
        self.tracing.program.append(code)
        self.unseen(None, exec, code, self.namespace)

    def run_text(self, command):
        """The text after -c, or on standard input, which is read to its end."""
        self.add_path(None if safe_path() else '')
        if command:
            set_argv('-c', self.args, ['-c', self.target])
            self.clean_namespace(None)
            source, filename = self.target + '\n', '<string>'
            try:
                source.encode()
            except UnicodeEncodeError:
                sys.stderr.write('Unable to decode the command from the command line:\n')
                raise
            if sys.version_info >= (3, 14):
                source = dedent(source)
        else:
            set_argv('-', self.args, ['-'])
            self.clean_namespace(None, '<stdin>')
            source, filename = read_all(0), '<stdin>'
        code = self.hooked(source, filename)
        if command and sys.version_info >= (3, 13):
            # For tracebacks. The interpreter imports this module, too.
            import linecache
            linecache._register_code(code, source, filename)
        self.execute(code)

    def run_folder(self, path):
        self.add_path(path)
        set_argv(self.target, self.args, [self.target])
        self.clean_namespace(None)
        self.run_runpy('__main__', False)

    def run_module(self):
        here = os.getcwd() if sys.version_info >= (3, 7) else ''
        self.add_path(None if safe_path() else here)
        set_argv('-m', self.args, ['-m', self.target])
        self.clean_namespace(None)
        self.run_runpy(self.target, True)

    def run_runpy(self, name, alter_argv):
        import runpy
        details = runpy._get_module_details

        def get_module_details(*args):
            runpy._get_module_details = details
            found = self.unseen(sys._getframe(1), details, *args)
            source, code = None, found[2]
            if hasattr(found[1].loader, 'get_source'):
                source = found[1].loader.get_source(found[0])
            if source is None:
                self.start_unless_named(name)
            else:
                code = self.hooked(source, code.co_filename)
            self.tracing.program.append(code)
            return found[0], found[1], code

        main_details = runpy._get_main_module_details

        def get_main_module_details(*args):
            runpy._get_main_module_details = main_details
            return self.unseen(sys._getframe(1), main_details, *args)

        runpy._get_module_details = get_module_details
        runpy._get_main_module_details = get_main_module_details
        self.unseen(None, runpy._run_module_as_main, name, alter_argv)


# ---- the end of the program

def without_ours(tb):
    """The traceback without our frames."""
    while tb is not None and tb.tb_frame.f_code.co_filename in OURS:
        tb = tb.tb_next
    at = tb
    while at is not None and at.tb_next is not None and sys.version_info >= (3, 7):
        if at.tb_next.tb_frame.f_code.co_filename in OURS:
            at.tb_next = at.tb_next.tb_next
        else:
            at = at.tb_next
    return tb


def hide_us(error):
    """Let the interpreter report an uncaught exception itself, without our frames."""
    hook = sys.excepthook
    tb = without_ours(error.__traceback__)

    def excepthook(kind, value, _):
        sys.excepthook = hook
        sys.last_traceback = tb
        hook(kind, value.with_traceback(tb), tb)

    sys.excepthook = excepthook


def thread_count():
    try:
        return len(os.listdir('/proc/self/task'))
    except OSError:
        return 0


def make_gil():
    """Start a thread. Before 3.7, the GIL is only created with the second thread, and the probes see
    nothing before. The thread is not the program's, so it has ended, also for the kernel, before
    tracing starts."""
    threads = thread_count()
    made = _thread.allocate_lock()
    made.acquire()
    _thread.start_new_thread(made.release, ())
    made.acquire()
    for _ in range(1000):
        if thread_count() <= threads:
            break
        time.sleep(0.001)


def main(namespace):
    fd, kind, entry, imports, path, entries, codes, children, stack, target = sys.argv[1:11]
    args = sys.argv[11:]
    channel = Channel(int(fd))
    if not safe_path():
        del sys.path[0]
    if sys.version_info < (3, 7):
        make_gil()
    channel.ask('begin %d' % native_id())
    library = Library(stack)
    trace = make_trace(channel, path, int(entries), library)
    tracing = Tracing(channel, trace, codes, children)
    tracing.install_hook()
    trace.load()
    if ':' in entry:
        EntryFinder(*entry[1:].split(':', 1), channel=channel)
    try:
        Program(namespace, tracing, library, kind, entry, imports, target, args).run()
    except BaseException as e:
        if not tracing.program and isinstance(e, (Exception, SystemExit)):
            channel.send('unloaded')
        hide_us(e)
        raise
