/* SPDX-License-Identifier: MIT */
/* One machine instruction at a time, and where in a function's entry a uprobe is cheap. */
#ifndef GILTRACER_LOCATE_PROBE_SITE_H
#define GILTRACER_LOCATE_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the kernel does with the instruction that a uprobe replaces. */
enum probe_cost {
	PROBE_EMULATED,       /* emulates it: 0.6 µs a hit */
	PROBE_SINGLE_STEPPED, /* single-steps it out of line: up to 10 µs in a virtual machine */
};

/**
 * @skip: bytes from the function's entry to the probe
 * @text: the instruction there, "push %r15"; "?" if it cannot be decoded
 * @why: why there is no cheap place, a phrase; NULL if there is
 */
struct probe_site {
	size_t skip;
	enum probe_cost cost;
	char text[64];
	const char *why;
};

/*
 * Choose the probe's place at the entry of a function at address, whose first len bytes are code;
 * what follows it may be among them. Only instructions that every call executes once, and that
 * leave the argument registers and (for a return probe, which reads the return address) the stack
 * alone are skipped.
 */
void probe_site_find(struct probe_site *ret, uint64_t address, const uint8_t *code, size_t len,
                     bool with_return);

#endif
