/* SPDX-License-Identifier: MIT */
/* Holds that went on although they were asked to end; hogs.h says what that means. */
#ifndef GILTRACER_MODEL_LATE_H
#define GILTRACER_MODEL_LATE_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"

/**
 * @thread: who held; @gil: which one
 * @due_ns: when it was asked at the latest, if those who waited had CPUs to ask
 */
struct late_hold {
	uint32_t thread, gil;
	uint64_t start_ns, end_ns, due_ns;
};

/* Whether it lasted slack_ns longer than it was asked to, without the time in line for a CPU. Who
 * waits asks once it has waited for interval_ns and has a CPU. */
bool late_is(const struct model *model, const struct late_hold *hold, uint64_t interval_ns,
             uint64_t slack_ns);

/* How long a thread was in [from_ns, to_ns) in line for a CPU, and asleep. */
void late_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                  uint64_t *ret_line_ns, uint64_t *ret_asleep_ns);

#endif
