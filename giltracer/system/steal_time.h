/* SPDX-License-Identifier: MIT */
/*
 * The time for which the hypervisor ran something else on this virtual machine's CPUs: threads that
 * appear to run did not run then. /proc/stat has it in whole ticks (proc(5), "steal").
 */
#ifndef GILTRACER_SYSTEM_STEAL_TIME_H
#define GILTRACER_SYSTEM_STEAL_TIME_H

#include <stdint.h>

/* Of all CPUs since the start of the system, in ns; 0 where the kernel does not say. */
uint64_t steal_time_ns(void);

/* The same from the text of /proc/stat, with so many ticks a second. */
uint64_t steal_time_parse(const char *text, uint64_t ticks);

/* What may have been stolen at most, where the kernel, which counts in ticks, says stolen_ns; 0 on a
 * host that never steals. */
uint64_t steal_time_most(uint64_t stolen_ns);

/* The share of stolen_ns in the time that the CPUs had in wall_ns. */
double steal_time_percent(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus);

#endif
