/* SPDX-License-Identifier: MIT */
/*
 * The arguments, in tracefs' syntax, with which a probe fetches the running Python frames. For each
 * frame K, from 0, the running one, outwards:
 *
 * - tK text: the bytes of its code's type pointer, up to a zero byte: it is a code object if this
 *   equals __probe_ip + ct
 * - cK u64: the code object's address
 * - lK u32: co_firstlineno
 * - iK u64: the instruction (u32: f_lasti)
 * - sK u32: PyASCIIObject.state of its name
 * - qK text: the name's characters, if it is compact ASCII according to sK
 *
 * and once, ct u64: the address of PyCode_Type relative to the probe; from 3.13 on, if there is
 * more than one frame, also cn u64: the same for None, which is the code of frames that do not
 * belong to a function. If the first byte of tK is zero, it is left out.
 *
 * tK is text because a number whose address cannot be read keeps the value of an earlier event in
 * the kernel's buffer (store_trace_args in kernel/trace/trace_probe_tmpl.h), while a text becomes
 * empty: a matching tK proves that its frame and code were read for this event.
 */
#ifndef GILTRACER_PYTHON_FRAMEFETCH_H
#define GILTRACER_PYTHON_FRAMEFETCH_H

#include <stdint.h>

#include "base/str.h"
#include "python/probedef.h"

/* The function and its caller: this shows who made a library call, and which loop runs the event. A
 * loop that only releases and takes the GIL gets 18 % slower with one frame, 34 % with two
 * (tests/bench/bench-frames.sh). */
#define FRAMEFETCH_DEFAULT 2
/* The expressions of a seventh frame would be longer than the kernel accepts. */
#define FRAMEFETCH_MAX 6

/*
 * Append " NAME=…" for count frames. tstate is the expression for the PyThreadState in tracefs'
 * syntax ("%di"); probe and the members of at are link-time addresses; none is 0 if it is not
 * known.
 */
struct framefetch_at {
	uint64_t code_type, none; /* PyCode_Type, _Py_NoneStruct */
};
void framefetch_add(struct str *out, const struct probedef *def, const char *tstate, uint64_t probe,
                    const struct framefetch_at *at, unsigned count);

#endif
