/* SPDX-License-Identifier: MIT */
/* Machine instructions, and where at a function's entry a uprobe is cheap. */
#ifndef GILTRACER_PYTHON_PROBE_SITE_H
#define GILTRACER_PYTHON_PROBE_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the kernel executes the instruction that a uprobe replaces. */
enum probe_cost {
	PROBE_EMULATED,       /* emulated: 0.6 µs per hit */
	PROBE_SINGLE_STEPPED, /* single-stepped out of line: up to 10 µs in a virtual machine */
};

/**
 * @skip: bytes from the function's entry to the probe
 * @text: the instruction there, for instance "push %r15"; "?" if it cannot be decoded
 * @why: the reason why there is no cheap place, a phrase; NULL if there is one
 */
struct probe_site {
	size_t skip;
	enum probe_cost cost;
	char text[64];
	const char *why;
};

/*
 * Chooses the probe's place at the entry of a function at address, whose first len bytes are code;
 * the code may extend beyond the function. Instructions are skipped only if every call executes
 * them once, and if they do not change the argument registers or, for a return probe, which reads
 * the return address, the stack pointer.
 */
void probe_site_find(struct probe_site *ret, uint64_t address, const uint8_t *code, size_t len,
                     bool with_return);

#endif
