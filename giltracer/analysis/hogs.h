/* SPDX-License-Identifier: MIT */
/*
 * Which functions held the GIL while others waited for it, and which of them did not let go when
 * they were asked to.
 *
 * A thread that waits asks the holder to let go after the switch interval (sys.getswitchinterval(),
 * 5 ms): its wait is cut into intervals, and at the end of one in which no other thread got the
 * GIL it sets gil_drop_request (take_gil in CPython's Python/ceval_gil.h, 3.2 and later). Python
 * code obeys at once. A hold that is known to have been asked (overdue_holds.h) and lasted
 * HOGS_SLACK_NS longer than that, time without a CPU not counted, is overdue: what ran did not
 * let go, a call of C code that keeps the GIL. Without proof that anybody asked, no hold is.
 *
 * A hypervisor may stop the CPU of a holder, which then seems to run; and a holder whose wake-up was not
 * recorded seems to sleep while it is runnable. So the overdue holds of a function count only if they
 * are more than that could make of obedient ones: together they lasted longer than all time that
 * was stolen, plus, for each that slept so, the longest time for which any thread was runnable. Or
 * there are HOGS_PROOF_HOLDS of them, and they are HOGS_PROOF_PERCENT of the holds of the function
 * that were long enough to be asked.
 *
 * A hold belongs to the function in which it ended. For an overdue one that is exact: what kept the
 * GIL had been going on since before it was asked. For the others it is a sample.
 */
#ifndef GILTRACER_ANALYSIS_HOGS_H
#define GILTRACER_ANALYSIS_HOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/model.h"

struct source;
struct stacks;

#define HOGS_INTERVAL_NS    5000000
#define HOGS_SLACK_NS       1000000
#define HOGS_SAMPLES_MAX    200
#define HOGS_NATIVE_PERCENT 60
#define HOGS_PROOF_HOLDS    5
#define HOGS_PROOF_PERCENT  75
#define HOGS_NO_GAIN        UINT64_MAX /* not estimated */

/**
 * Holds of one thread that ended in one function.
 * @thread: index in the model
 * @frame: in the source's frames, the one of most wait among those of this function (they differ in
 *         line and callers); 0: the function is not known
 * @holds, @hold_ns: all holds; @longest_ns at @longest_at_ns: the longest
 * @hold_off_cpu_ns: of hold_ns, when the holder was known not to be on a CPU; @hold_asleep_ns:
 *                   because it slept, or waited for a disk
 * @wait_ns: how long others waited meanwhile, summed over waiters
 * @overdue_holds, @overdue_ns, @overdue_wait_ns: the same of the overdue ones
 * @overdue_longest_ns, @overdue_longest_at_ns: the longest overdue one
 * @off_cpu_ns: of overdue_ns, when the holder was known not to be on a CPU; @asleep_ns: because it
 *              slept, or waited for a disk
 * @native: the C function that was at work since the hold was asked to let go, as a stack id in the
 *          source's stacks: of the samples, HOGS_NATIVE_PERCENT are of holds of which all found
 *          it; 0: there is none. @native_samples of @samples agreed
 * @row: for struct hogs_sample
 * @gain_ns: what others would have gained had the overdue ones let go; whatif.h fills it in
 */
struct hog {
	uint32_t thread, frame;
	uint32_t native, native_samples, samples, row;
	uint64_t holds, hold_ns, longest_ns, longest_at_ns, wait_ns;
	uint64_t hold_off_cpu_ns, hold_asleep_ns;
	uint64_t overdue_holds, overdue_ns, overdue_wait_ns, overdue_longest_ns,
		overdue_longest_at_ns;
	uint64_t off_cpu_ns, asleep_ns;
	uint64_t gain_ns;
};

/* A sample of an overdue hold since it was asked to let go, see struct model_sample. @row: of the
 * hog; @hold: index of the hold */
struct hogs_sample {
	uint64_t record;
	uint32_t row, hold;
};

/* An overdue hold: which span of the GIL lane of the thread, and its frame. */
struct hog_overdue {
	uint32_t thread, frame;
	size_t span;
};

/* @overdue: by thread, then span
 * @bounded: of so many holds not all waits were looked at */
struct hogs {
	VEC(struct hog) v;
	VEC(struct hog_overdue) overdue;
	uint64_t bounded;
	VEC(struct hogs_sample) samples; /* at most HOGS_SAMPLES_MAX of each row */
};

/*
 * The rows of a finished model, most overdue_wait_ns first, then most wait_ns. Every hold of every
 * thread is in one row, so that wait_ns adds up to what blame charges to holders. frames may be
 * NULL: no function is known. Free with hogs_done.
 */
void hogs_find(struct hogs *ret, const struct model *model, const struct stacks *frames,
               uint64_t interval_ns);
void hogs_done(struct hogs *hogs);

/* Look at the samples, and set the native function of each hog. To be called after the source's
 * last event. */
void hogs_find_native(struct hogs *hogs, struct source *source);

/* Whether two frames belong to one function, by name and file; frame 0 is only the same as
 * itself. */
bool hogs_same_function(const struct stacks *frames, uint32_t a, uint32_t b);

#endif
