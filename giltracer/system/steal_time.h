/* SPDX-License-Identifier: MIT */
/* The time for which the hypervisor ran something else on this virtual machine's CPUs; threads
 * that appear to run did not run then. /proc/stat counts it in whole ticks (proc(5), "steal"). */
#ifndef GILTRACER_SYSTEM_STEAL_TIME_H
#define GILTRACER_SYSTEM_STEAL_TIME_H

#include <stdint.h>

/* Of all CPUs since the start of the system, in ns; 0 if the kernel does not report it. */
uint64_t steal_time_ns(void);

/* Since it was before_ns; 0 if it has decreased, which it may in a container. */
uint64_t steal_time_since(uint64_t before_ns);

/* The same from the text of /proc/stat, with this number of ticks a second. */
uint64_t steal_time_parse(const char *text, uint64_t ticks);

/* The most that may have been stolen if the kernel, which counts in ticks, reports stolen_ns; 0
 * on a host that never steals. */
uint64_t steal_time_most(uint64_t stolen_ns);

/* stolen_ns in percent of the time of all CPUs during wall_ns. */
double steal_time_percent(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus);

#endif
