/* SPDX-License-Identifier: MIT */
/*
 * What a hypervisor takes of the CPUs of this virtual machine: threads that seem to run do not
 * meanwhile. /proc/stat has it in whole ticks (proc(5), "steal").
 */
#ifndef GILTRACER_LAUNCH_STOLEN_H
#define GILTRACER_LAUNCH_STOLEN_H

#include <stdint.h>

/* Of all CPUs since the start of the system, in ns; 0 where the kernel does not say. */
uint64_t stolen_ns(void);

/* The same from the text of /proc/stat, with so many ticks a second. */
uint64_t stolen_parse(const char *text, uint64_t ticks);

/* A sentence if stolen_ns of what the CPUs had in wall_ns is worth one (1 %), else NULL. Caller
 * frees. */
char *stolen_note(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus);

#endif
