/* SPDX-License-Identifier: MIT */
/*
 * The stack part of from_perf.c: records that say what is mapped where, and samples, go in; ids in
 * a struct stacks come out. Fed in time order.
 */
#ifndef GILTRACER_TRACE_PERF_STACKS_H
#define GILTRACER_TRACE_PERF_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "trace/from_perf_unwind.h"

struct names;
struct perf_header;
struct stacks;

/**
 * A function of the interpreter that has no symbol (a stripped build).
 * @name: "take_gil", …
 * @build_id: of the file it is in, in hexadecimal
 * @offset: where it starts in that file, or what is behind its endbr64
 */
struct perf_stacks_function {
	const char *name;
	const char *build_id;
	uint64_t offset;
};

/*
 * Callbacks for from_perf.c that unwind into stacks; ->close frees their ctx. names, stacks and
 * header are borrowed until then (in the pipe layout the header grows while records are read);
 * functions (n of them) only until this returns. *other_pythons counts the interpreters that are
 * not that of functions, each time that a process maps one; borrowed likewise, may be NULL.
 */
void perf_stacks_open(struct from_perf_unwind *ret, const struct perf_header *header,
                      struct names *names, struct stacks *stacks,
                      const struct perf_stacks_function *functions, size_t n,
                      uint64_t *other_pythons);

#endif
