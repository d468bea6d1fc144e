/* SPDX-License-Identifier: MIT */
/*
 * What a probe fetches of the Python frames that run, in tracefs' words. For each frame K, from 0,
 * the running one, outwards:
 *
 * - tK text: the bytes of its code's type pointer, up to a zero byte: code if it is
 *   __probe_ip + ct
 * - cK u64: the code object's address
 * - lK u32: co_firstlineno
 * - iK u64: the instruction (u32: f_lasti)
 * - sK u32: PyASCIIObject.state of its name
 * - qK text: the name's characters, if sK says compact ASCII
 *
 * and once, ct u64: where PyCode_Type lies, seen from the probe, and, if there is more than one
 * frame, from 3.13 on cn u64: the same of None, which is the code of frames that are no function's.
 * tK leaves out a first byte that is zero.
 *
 * tK is text because a number whose address cannot be read keeps what an earlier event left in the
 * kernel's buffer (store_trace_args in kernel/trace/trace_probe_tmpl.h), while a text becomes
 * empty: a tK that fits proves that its frame and code were read for this event.
 */
#ifndef GILTRACER_LOCATE_FRAMEFETCH_H
#define GILTRACER_LOCATE_FRAMEFETCH_H

#include <stdint.h>

#include "base/str.h"
#include "locate/probedef.h"

/* The function and its caller: whose library call it was, and which loop runs the event. A loop
 * that does nothing but release and take the GIL gets 18 % slower with one frame, 34 % with two
 * (tests/bench/bench-frames.sh). */
#define FRAMEFETCH_DEFAULT 2
/* The expressions of the seventh would be longer than the kernel takes. */
#define FRAMEFETCH_MAX 6

/*
 * Append " NAME=…" for count frames. tstate is the expression for the PyThreadState in tracefs'
 * words ("%di"); probe and those in at are link-time addresses, none 0 if it is not known.
 */
struct framefetch_at {
	uint64_t code_type, none; /* PyCode_Type, _Py_NoneStruct */
};
void framefetch_add(struct str *out, const struct probedef *def, const char *tstate, uint64_t probe,
                    const struct framefetch_at *at, unsigned count);

#endif
