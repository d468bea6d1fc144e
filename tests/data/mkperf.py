#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Build a perf.data from readable text, so that every odd record, cut and lie can be tested.

    mkperf.py FILE.perf.txt OUTPUT          (- is stdin, stdout)

One statement a line; words are split as a shell does, # begins a comment. Numbers may be 0x….

    layout file|pipe                        first; file is the default
    attr_size N                             size of struct perf_event_attr in the file (128)
    event NAME type=N config=N sample_type=WORD,… [ids=N,…] [flags=WORD,…] [period=N]
          [read_format=N] [regs=MASK] [stack=N] [nameless]
    format GROUP NAME ID FIELD…             a tracepoint's format; FIELD is TYPE:NAME with TYPE one
                                            of u8 … u64, s8 … s64, char[N], dyn (a __data_loc char[])
    hostname|osrelease|version|arch TEXT    features
    cmdline WORD…
    nrcpus AVAILABLE ONLINE
    buildid PID HEX PATH
    feature BIT HEX                         any other

    sample EVENT KEY=VALUE…                 fields of sample_type by their names (tid=PID/TID cpu=N
                                            time=N ip=N period=N …), those of the format by theirs,
                                            callchain=N,… regs=N,… stack=HEX read=HEX raw=HEX
    switch in|out|out-preempt ID…           ID… are the words of a trailer: time=N tid=PID/TID cpu=N
                                            id=N; what is not given is 0
    switch-cpu in|out PID/TID ID…           PERF_RECORD_SWITCH_CPU_WIDE
    comm PID/TID NAME [exec] ID…
    fork|exit PID/TID PARENT-PID/PARENT-TID ID…
    mmap2 PID/TID ADDR LEN PGOFF PATH [buildid=HEX] ID…
    lost ID COUNT ID…        lost-samples COUNT ID…
    round                                   FINISHED_ROUND
    id-index ID/CPU/TID…
    record TYPE MISC HEX [ID…]              any record; a trailer only if there are words for it
    bytes HEX                               between records, as they are

    size N                                  the next record's header lies about its size
    cut N                                   the file ends after N bytes (-N: without its last N)
    patch OFFSET HEX                        written over the file at the end
    data_size N                             what the file header says (0: perf was killed)
    no-features                             as if perf had been killed
"""
import re
import shlex
import struct
import sys

SAMPLE = [  # in the order of the ABI: name, bit
    ("identifier", 16), ("ip", 0), ("tid", 1), ("time", 2), ("addr", 3), ("id", 6),
    ("stream_id", 9), ("cpu", 7), ("period", 8), ("read", 4), ("callchain", 5), ("raw", 10),
    ("branch", 11), ("regs", 12), ("stack", 13), ("weight", 14), ("data_src", 15),
    ("transaction", 17), ("phys_addr", 19), ("cgroup", 21),
]
TRAILER = ["tid", "time", "id", "stream_id", "cpu", "identifier"]
FLAGS = {
    "disabled": 0, "inherit": 1, "freq": 10, "sample_id_all": 18, "mmap2": 23, "comm_exec": 24,
    "use_clockid": 25, "context_switch": 26,
}
SIZES = {"u8": 1, "s8": 1, "u16": 2, "s16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8}
CTYPES = {
    "u8": "unsigned char", "s8": "signed char", "u16": "unsigned short", "s16": "short",
    "u32": "unsigned int", "s32": "int", "u64": "unsigned long", "s64": "long",
}
COMMON = [("u16", "common_type"), ("u8", "common_flags"), ("u8", "common_preempt_count"),
          ("s32", "common_pid")]


# Not for us, but perf script insists on it.
HEADER_PAGE = (
    b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    b"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    b"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)


def number(text):
    return int(text, 0)


def pack(size, value):
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, sys.byteorder)


def u32(value):
    return pack(4, value)


def u64(value):
    return pack(8, value)


def pair(text):
    pid, tid = text.split("/")
    return u32(number(pid)) + u32(number(tid))


def padded(data, to=8):
    return data + bytes(-len(data) % to)


def text_z(text):
    return text.encode("utf-8").decode("unicode_escape").encode("latin-1") + b"\0"


def string(text):
    data = padded(text.encode() + b"\0", 64)
    return u32(len(data)) + data


class Format:
    def __init__(self, group, name, ident, fields):
        self.group, self.name, self.ident = group, name, ident
        self.fields = []  # type, name, offset, size
        at = 0
        for kind, field in COMMON + [tuple(f.split(":", 1)) for f in fields]:
            chars = re.fullmatch(r"char\[(\d+)\]", kind)
            size = int(chars.group(1)) if chars else 4 if kind == "dyn" else SIZES[kind]
            align = 1 if chars else size
            at += -at % align
            self.fields.append((kind, field, at, size))
            at += size
        self.size = at

    def text(self):
        lines = ["name: " + self.name, "ID: %d" % self.ident, "format:"]
        for kind, field, at, size in self.fields:
            if kind == "dyn":
                decl = "__data_loc char[] " + field
            elif kind.startswith("char["):
                decl = "char " + field + kind[4:]
            else:
                decl = CTYPES[kind] + " " + field
            lines.append("\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;"
                         % (decl, at, size, kind.startswith("s")))
            if field == "common_pid":
                lines.append("")
        lines += ["", 'print fmt: "%d", REC->common_pid', ""]
        return "\n".join(lines).encode()

    def raw(self, values):
        data = bytearray(self.size)
        tail = b""
        values.setdefault("common_type", str(self.ident))
        for kind, field, at, size in self.fields:
            value = values.pop(field, None)
            if value is None:
                continue
            if kind == "dyn":
                content = text_z(value)
                loc = (self.size + len(tail)) | len(content) << 16
                data[at:at + 4] = u32(loc)
                tail += content
            elif kind.startswith("char["):
                data[at:at + size] = text_z(value)[:size].ljust(size, b"\0")
            else:
                data[at:at + size] = pack(size, number(value))
        return bytes(data) + tail


class Event:
    def __init__(self, name, options, attr_size):
        words = dict(o.split("=", 1) for o in options if "=" in o)
        self.name = name
        self.nameless = "nameless" in options
        self.fields = set(words.get("sample_type", "").split(",")) - {""}
        self.ids = [number(i) for i in words.get("ids", "").split(",") if i]
        self.config = number(words.get("config", "0"))
        sample_type = sum(1 << bit for key, bit in SAMPLE if key in self.fields)
        flags = sum(1 << FLAGS[f] for f in words.get("flags", "sample_id_all").split(",") if f)
        attr = struct.pack("=IIQQQQQIIQQQQIIQ", number(words.get("type", "2")), attr_size,
                           self.config, number(words.get("period", "1")), sample_type,
                           number(words.get("read_format", "0")), flags, 0, 0, 0, 0, 0,
                           number(words.get("regs", "0")), number(words.get("stack", "0")), 1, 0)
        self.attr = attr.ljust(attr_size, b"\0")[:attr_size]
        self.trailer = "sample_id_all" in words.get("flags", "sample_id_all")

    def identity(self, key, values):
        if key == "tid":
            return pair(values.pop("tid", "0/0"))
        if key == "cpu":
            return u32(number(values.pop("cpu", "0"))) + u32(0)
        if key in ("id", "identifier"):
            default = self.ids[0] if self.ids else 0
            return u64(number(values.get("id", str(default))))
        return u64(number(values.pop(key, "0")))


class Builder:
    def __init__(self):
        self.pipe = False
        self.attr_size = 128
        self.events, self.formats, self.build_ids = [], [], b""
        self.features = {}
        self.data = b""
        self.next_size = None
        self.cut = self.data_size = None
        self.patches = []
        self.no_features = False

    def record(self, kind, misc, body):
        size = 8 + len(body) if self.next_size is None else self.next_size
        self.next_size = None
        self.data += struct.pack("=IHH", kind, misc, size) + body

    def trailer(self, words):
        values = dict(w.split("=", 1) for w in words)
        event = self.events[0]
        for candidate in self.events:
            if "id" in values and number(values["id"]) in candidate.ids:
                event = candidate
        if not event.trailer:
            return b""
        return b"".join(event.identity(k, values) for k in TRAILER if k in event.fields)

    def sample(self, name, words):
        event = next(e for e in self.events if e.name == name)
        fmt = next((f for f in self.formats if f.ident == event.config), None)
        values = dict(w.split("=", 1) for w in words)
        raw = bytes.fromhex(values.pop("raw")) if "raw" in values else None
        parts = []
        rest = {k: values.pop(k) for k in ("callchain", "regs", "stack", "read") if k in values}
        identity = {k: event.identity(k, values) for k, _ in SAMPLE[:9] if k in event.fields}
        values.pop("id", None)
        for key, _ in SAMPLE:
            if key not in event.fields:
                continue
            if key in identity:
                parts.append(identity[key])
            elif key == "raw":
                if raw is None:
                    raw = fmt.raw(values) if fmt else b""
                padding = -(len(raw) + 4) % 8
                parts.append(u32(len(raw) + padding) + raw + bytes(padding))
            elif key == "callchain":
                ips = [number(i) for i in rest.get("callchain", "").split(",") if i]
                parts.append(u64(len(ips)) + b"".join(u64(i) for i in ips))
            elif key == "regs":
                regs = [number(i) for i in rest.get("regs", "").split(",") if i]
                parts.append(u64(2 if regs else 0) + b"".join(u64(i) for i in regs))
            elif key == "stack":
                stack = bytes.fromhex(rest.get("stack", ""))
                parts.append(u64(len(stack)) + stack + (u64(len(stack)) if stack else b""))
            elif key == "read":
                parts.append(bytes.fromhex(rest.get("read", "")))
            else:
                parts.append(u64(number(values.pop(key, "0"))))
        if values:
            raise SystemExit("mkperf: sample %s has no %s" % (name, ", ".join(values)))
        self.record(9, 2, b"".join(parts))

    def tracing_data(self):
        out = b"\x17\x08\x44tracing" + b"0.6\0" + bytes([0, 8]) + u32(4096)
        for name in (b"header_page", b"header_event"):
            out += name + b"\0" + u64(len(HEADER_PAGE)) + HEADER_PAGE
        out += u32(0)
        groups = {}
        for fmt in self.formats:
            groups.setdefault(fmt.group, []).append(fmt)
        out += u32(len(groups))
        for group, formats in groups.items():
            out += group.encode() + b"\0" + u32(len(formats))
            for fmt in formats:
                out += u64(len(fmt.text())) + fmt.text()
        return out + u32(0) + u32(0) + u64(0)

    def event_desc(self):
        out = u32(len(self.events)) + u32(self.attr_size)
        for event in self.events:
            out += event.attr + u32(len(event.ids)) + string(event.name)
            out += b"".join(u64(i) for i in event.ids)
        return out

    def all_features(self):
        features = dict(self.features)
        if self.formats:
            features[1] = self.tracing_data()
        if self.build_ids:
            features[2] = self.build_ids
        if not any(e.nameless for e in self.events):
            features[12] = self.event_desc()
        return {} if self.no_features else features

    def pipe_file(self):
        data, self.data = self.data, b""
        for event in self.events:
            self.record(64, 0, event.attr + b"".join(u64(i) for i in event.ids))
        for bit, content in sorted(self.all_features().items()):
            if bit not in (1, 2):
                self.record(80, 0, u64(bit) + padded(content))
        if self.formats and not self.no_features:
            content = padded(self.tracing_data())
            self.record(66, 0, u32(len(content)) + u32(0))
            self.data += content
        at = 0
        while at < len(self.build_ids):  # the same records, with their type
            misc, size = struct.unpack_from("=HH", self.build_ids, at + 4)
            self.record(67, misc, self.build_ids[at + 8:at + size])
            at += size
        return b"PERFILE2" + u64(16) + self.data + data

    def regular_file(self):
        ids_at = 104
        ids = b"".join(u64(i) for e in self.events for i in e.ids)
        attrs_at = ids_at + len(ids)
        attrs, at = b"", ids_at
        for event in self.events:
            attrs += event.attr + u64(at) + u64(8 * len(event.ids))
            at += 8 * len(event.ids)
        data_at = attrs_at + len(attrs)
        features = self.all_features()
        bits = sum(1 << bit for bit in features)
        size = len(self.data) if self.data_size is None else self.data_size
        head = b"PERFILE2" + u64(104) + u64(self.attr_size + 16) + u64(attrs_at) + u64(len(attrs))
        head += u64(data_at) + u64(size) + u64(0) + u64(0)
        head += b"".join(u64(bits >> (64 * i) & (1 << 64) - 1) for i in range(4))
        out = head + ids + attrs + self.data
        at = len(out) + 16 * len(features)
        table = content = b""
        for bit in sorted(features):
            table += u64(at + len(content)) + u64(len(features[bit]))
            content += features[bit]
        return out + table + content

    def build(self):
        out = self.pipe_file() if self.pipe else self.regular_file()
        for at, content in self.patches:
            out = out[:at] + content + out[at + len(content):]
        return out if self.cut is None else out[:self.cut]

    def header_line(self, word, args):
        if word == "layout":
            self.pipe = args[0] == "pipe"
        elif word == "attr_size":
            self.attr_size = number(args[0])
        elif word == "event":
            self.events.append(Event(args[0], args[1:], self.attr_size))
        elif word == "format":
            self.formats.append(Format(args[0], args[1], number(args[2]), args[3:]))
        elif word in ("hostname", "osrelease", "version", "arch"):
            bit = {"hostname": 3, "osrelease": 4, "version": 5, "arch": 6}[word]
            self.features[bit] = string(args[0])
        elif word == "cmdline":
            self.features[11] = u32(len(args)) + b"".join(string(a) for a in args)
        elif word == "nrcpus":
            self.features[7] = u32(number(args[0])) + u32(number(args[1]))
        elif word == "buildid":
            ident = bytes.fromhex(args[1])
            body = u32(number(args[0])) + ident.ljust(20, b"\0") + bytes([len(ident), 0, 0, 0])
            body += padded(text_z(args[2]), 64)
            self.build_ids += struct.pack("=IHH", 0, 1 << 15 | 2, 8 + len(body)) + body
        elif word == "feature":
            self.features[number(args[0])] = bytes.fromhex(args[1] if len(args) > 1 else "")
        else:
            return False
        return True

    def lie_line(self, word, args):
        if word == "size":
            self.next_size = number(args[0])
        elif word == "cut":
            self.cut = number(args[0])
        elif word == "patch":
            self.patches.append((number(args[0]), bytes.fromhex(args[1])))
        elif word == "data_size":
            self.data_size = number(args[0])
        elif word == "no-features":
            self.no_features = True
        elif word == "bytes":
            self.data += bytes.fromhex(args[0])
        else:
            return False
        return True

    def record_line(self, word, args):
        if word == "sample":
            self.sample(args[0], args[1:])
        elif word == "switch":
            misc = {"in": 0, "out": 1 << 13, "out-preempt": 1 << 13 | 1 << 14}[args[0]]
            self.record(14, misc, self.trailer(args[1:]))
        elif word == "switch-cpu":
            misc = {"in": 0, "out": 1 << 13, "out-preempt": 1 << 13 | 1 << 14}[args[0]]
            self.record(15, misc, pair(args[1]) + self.trailer(args[2:]))
        elif word == "comm":
            executed = "exec" in args
            rest = [a for a in args[2:] if a != "exec"]
            body = pair(args[0]) + padded(text_z(args[1]))
            self.record(3, executed << 13, body + self.trailer(rest))
        elif word in ("fork", "exit"):
            pid, tid = args[0].split("/")
            ppid, ptid = args[1].split("/")
            body = b"".join(u32(number(n)) for n in (pid, ppid, tid, ptid)) + u64(0)
            self.record(7 if word == "fork" else 4, 0, body + self.trailer(args[2:]))
        elif word == "mmap2":
            rest = [a for a in args[5:] if not a.startswith("buildid=")]
            ident = b"".join(bytes.fromhex(a[8:]) for a in args[5:] if a.startswith("buildid="))
            body = pair(args[0]) + b"".join(u64(number(a)) for a in args[1:4])
            body += (bytes([len(ident), 0, 0, 0]) + ident.ljust(20, b"\0")) + u32(5) + u32(2)
            body += padded(text_z(args[4]))
            self.record(10, 2 | (1 << 14 if ident else 0), body + self.trailer(rest))
        elif word == "lost":
            body = u64(number(args[0])) + u64(number(args[1]))
            self.record(2, 0, body + self.trailer(args[2:]))
        elif word == "lost-samples":
            self.record(13, 0, u64(number(args[0])) + self.trailer(args[1:]))
        elif word == "round":
            self.record(68, 0, b"")
        elif word == "id-index":
            body = u64(len(args))
            for arg in args:
                ident, cpu, tid = (number(n) for n in arg.split("/"))
                body += u64(ident) + u64(0) + u64(cpu) + u64(tid)
            self.record(69, 0, body)
        elif word == "record":
            body = bytes.fromhex(args[2] if len(args) > 2 else "")
            self.record(number(args[0]), number(args[1]), body +
                        (self.trailer(args[3:]) if len(args) > 3 else b""))
        else:
            return False
        return True

    def line(self, words):
        if not (self.header_line(words[0], words[1:]) or self.lie_line(words[0], words[1:])
                or self.record_line(words[0], words[1:])):
            raise SystemExit("mkperf: unknown statement: " + words[0])


def main(argv):
    if len(argv) != 3:
        raise SystemExit(__doc__)
    builder = Builder()
    with sys.stdin if argv[1] == "-" else open(argv[1], encoding="utf-8") as source:
        for text in source:
            words = shlex.split(text, comments=True)
            if words:
                builder.line(words)
    out = builder.build()
    if argv[2] == "-":
        sys.stdout.buffer.write(out)
    else:
        with open(argv[2], "wb") as file:
            file.write(out)


if __name__ == "__main__":
    main(sys.argv)
