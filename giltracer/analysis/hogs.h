/* SPDX-License-Identifier: MIT */
/*
 * Which functions held the GIL while others waited for it, and which of them did not release it on
 * request.
 *
 * A waiting thread requests a release after the switch interval (sys.getswitchinterval(), 5 ms):
 * its wait is cut into intervals, and at the end of one in which no other thread got the GIL it
 * sets gil_drop_request (take_gil in CPython's Python/ceval_gil.h, 3.2 and later). Python code
 * complies at once. A hold is overdue if it is known to have got a request and
 * then lasted another HOGS_SLACK_NS, not counting time without a CPU: a call of C code kept the
 * GIL. Without proof of a request, no hold is overdue.
 *
 * A hypervisor may stop the CPU of a holder, which then seems to run; and a holder whose wake-up
 * was not recorded seems to sleep while it is runnable. So the overdue holds of a function count
 * only if these two effects cannot explain them: together they lasted longer than all stolen time
 * plus, for each hold with such a sleep, the longest time for which any thread was runnable. Or
 * there are at least HOGS_PROOF_HOLDS of them, and they are HOGS_PROOF_PERCENT of the function's
 * holds that were long enough for a request.
 *
 * A hold belongs to the function that ran when its release was requested: for an overdue hold that
 * is exact, because the call that kept the GIL had begun before. If that was not recorded, it
 * belongs to the function in which it ended. For an overdue hold that is the same function up to
 * CPython 3.9; later versions check for requests so rarely (model_options.checks_late) that another
 * one may have been called since, so the function is inferred, or unknown if it had just begun. For
 * other holds it is a sample.
 */
#ifndef GILTRACER_ANALYSIS_HOGS_H
#define GILTRACER_ANALYSIS_HOGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/model.h"

struct slices;
struct source;
struct stacks;

#define HOGS_INTERVAL_NS    5000000
#define HOGS_SLACK_NS       1000000
#define HOGS_SAMPLES_MAX    200
#define HOGS_NATIVE_PERCENT 60
#define HOGS_PROOF_HOLDS    5
#define HOGS_PROOF_PERCENT  75

/* Why it is not known what avoiding a function's overdue holds would save. The first ones are set by
 * whatif_find(), the others depend on what the function did (functions.h). */
enum no_gain {
	GAIN_KNOWN,
	NO_GAIN_UNKNOWN,    /* too much of the threads' time is unknown */
	NO_GAIN_LITTLE,     /* it caused too little waiting to be examined */
	NO_GAIN_DIFFERENT,  /* a replay without a change differs from the recording */
	NO_GAIN_TOO_LONG,   /* the replay takes too long */
	NO_GAIN_SLOW_START, /* the start of a thread, which is slow only under perf */
	NO_GAIN_NOT_A_CALL, /* no call of the program can release the GIL there */
};

/**
 * Holds of one thread that ended in one function.
 * @thread: index in the model
 * @frame: id in the source's frames; among those of this function, which differ in line and
 *         callers, the one that caused most waiting; 0: the function is not known
 * @holds, @hold_ns: all holds; @longest_ns at @longest_at_ns: the longest
 * @hold_off_cpu_ns: the part of hold_ns in which the holder is known to have been off CPU;
 *                   @hold_asleep_ns: asleep or uninterruptible
 * @wait_ns: how long others waited meanwhile, summed over waiters
 * @overdue_holds, @overdue_ns, @overdue_wait_ns: the same for the overdue holds
 * @overdue_longest_ns, @overdue_longest_at_ns: the longest overdue hold
 * @off_cpu_ns: the part of overdue_ns in which the holder is known to have been off CPU;
 *              @asleep_ns: asleep or uninterruptible
 * @native: the C function that was at work after the release request, as an id in the source's
 *          stacks, or a frame that stands for its file (trace/native.h): at least
 *          HOGS_NATIVE_PERCENT of the samples show it, in holds in which none shows another one; 0:
 *          none. That is @native_samples of @samples
 * @collected_ns: the part of overdue_ns in which a garbage collection is recorded
 * @row: number of the row in struct hogs_sample
 * @inferred: of some overdue holds, only the function in which they ended is known
 * @gain_ns: time that the threads would have gained if the overdue holds had released the GIL,
 * unless @no_gain; set by whatif_find()
 */
struct hog {
	uint32_t thread, frame;
	uint32_t native, native_samples, samples, row;
	uint64_t holds, hold_ns, longest_ns, longest_at_ns, wait_ns;
	uint64_t hold_off_cpu_ns, hold_asleep_ns;
	uint64_t overdue_holds, overdue_ns, overdue_wait_ns, overdue_longest_ns,
		overdue_longest_at_ns;
	uint64_t off_cpu_ns, asleep_ns, collected_ns;
	uint64_t gain_ns;
	bool inferred;
	enum no_gain no_gain;
};

/* A sample of an overdue hold after its release request, see struct model_sample. @row: of the hog;
 * @hold: index of the hold */
struct hogs_sample {
	uint64_t record;
	uint32_t row, hold;
};

/* A hold. @thread: the holder; @gil: the index of the GIL */
struct gil_hold {
	uint32_t thread, gil;
	uint64_t start_ns, end_ns;
};

/* An overdue hold. @frame: its frame; @span: its index in the thread's GIL lane */
struct hog_overdue {
	uint32_t thread, frame;
	size_t span;
};

/*
 * @overdue: by thread, then span
 * @bounded: number of holds for which not all waits were examined
 * @waited_ns, @replayed_ns: all waiting, in the recording and in a replay without a change; 0: none
 */
struct hogs {
	VEC(struct hog) v;
	VEC(struct hog_overdue) overdue;
	uint64_t bounded, waited_ns, replayed_ns;
	VEC(struct hogs_sample) samples; /* at most HOGS_SAMPLES_MAX per row */
};

/*
 * The rows of a finished model, most overdue_wait_ns first, then most wait_ns. Every hold of every
 * thread is in one row, so that wait_ns adds up to what blame charges to holders. frames may be
 * NULL; then no function is known. Free with hogs_done.
 */
void hogs_find(struct hogs *ret, const struct model *model, const struct stacks *frames,
               uint64_t interval_ns);
void hogs_done(struct hogs *hogs);

/* Reads the samples' stacks and sets the native function of each hog. Call it after the source's
 * last event. */
void hogs_find_native(struct hogs *hogs, struct source *source);

/* Sets the time of garbage collections in overdue holds. frames as for hogs_find. */
void hogs_add_collections(struct hogs *hogs, const struct model *model, const struct stacks *frames,
                          const struct slices *slices);

/* Whether two frames belong to the same function, by name and file; frame 0 equals only itself. */
bool hogs_same_function(const struct stacks *frames, uint32_t a, uint32_t b);

/* How long a thread was runnable, and how long asleep, in [from_ns, to_ns). */
void hogs_off_cpu(const struct model_thread *thread, uint64_t from_ns, uint64_t to_ns,
                  uint64_t *ret_runnable_ns, uint64_t *ret_asleep_ns);

#endif
