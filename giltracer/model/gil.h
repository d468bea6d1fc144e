/* SPDX-License-Identifier: MIT */
/* GIL lanes: the events of one thread and its GIL. */
#ifndef GILTRACER_MODEL_GIL_H
#define GILTRACER_MODEL_GIL_H

#include "model/model.h"

void gil_start_hold(struct model *m, uint32_t thread, uint64_t t);
void gil_request(struct model *m, uint32_t thread, uint64_t t, uint64_t address, uint32_t frame);
void gil_acquire(struct model *m, uint32_t thread, uint64_t t);
/* The frame that ran at the end of the open hold, if there is one; 0: unknown. */
void gil_held_in(struct model *m, uint32_t thread, uint64_t t, uint32_t frame);
/* Another thread asked this one to release the GIL, while it ran in frame; 0: unknown. */
void gil_asked(struct model *m, uint32_t thread, uint64_t t, uint32_t frame);
void gil_release(struct model *m, uint32_t thread, uint64_t t, uint64_t address, bool save);
void gil_released(struct model *m, uint32_t thread, uint64_t t);
void gil_inherit(struct model *m, uint32_t child, uint32_t parent, uint64_t t);
void gil_exec(struct model *m, uint32_t thread, uint64_t t);
void gil_lost(struct model *m, uint32_t thread, uint64_t since_ns, uint64_t t);
void gil_exit(struct model *m, uint32_t thread, uint64_t t, bool died);

/* Call it after owners_finish(). */
void gil_finish(struct model *m);
/* The thread's next event happens without the GIL, so it has not had the GIL since the last loss of
 * records. */
void gil_prove_without(struct model *m, uint32_t thread, uint64_t t);
/* The thread is without the GIL from now on; locks_span() gives its state. */
void gil_without(struct model *m, uint32_t thread, uint64_t t);

#endif
