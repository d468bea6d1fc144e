/* SPDX-License-Identifier: MIT */
/*
 * Which stack waited for the GIL while which stack held it. Each wait is divided among the stacks that
 * the holders executed meanwhile: the Python calls of a trace or, if none is known then, the frames that
 * the probes fetched for the wait and for the hold.
 */
#ifndef GILTRACER_ANALYSIS_MEETING_H
#define GILTRACER_ANALYSIS_MEETING_H

#include <stdint.h>

#include "analysis/groups.h"
#include "base/vec.h"
#include "trace/stacks.h"

/* What a frame is: the flags of struct stack_frame. */
enum meeting_frame {
	MEETING_CALL = STACK_PYTHON, /* name: id in the names of the trace's calls */
	MEETING_PROBED = 1 << 20,    /* name and module: ids in the source's names */
	MEETING_GROUP = 1 << 21,     /* name: index of the group of threads; outermost */
	MEETING_NOBODY = 1 << 22,    /* nobody held the GIL; outermost */
	MEETING_UNKNOWN = 1 << 23,   /* it is not known which thread did; outermost */
};

/* More pairs of stacks are not told apart. Then the rest of the holds is charged to the holders without
 * their stacks, and waits that begin then have none either. */
#define MEETING_WORK (UINT64_C(64) << 20)

/* @waits, @holds: stacks, ids in stacks */
struct meeting_pair {
	uint32_t waits, holds;
	uint64_t ns;
};

/**
 * @pairs: most time first
 * @ns: their sum, which is that of the model's blame; @undivided_ns: the part without stacks of holders
 */
struct meeting {
	struct stacks *stacks;
	VEC(struct meeting_pair) pairs;
	uint64_t ns, undivided_ns;
};

/* work: MEETING_WORK. Borrows from the pass; free with meeting_done. */
void meeting_find(struct meeting *ret, const struct recording_pass *pass,
                  const struct thread_groups *groups, uint64_t work);
void meeting_done(struct meeting *meeting);

#endif
