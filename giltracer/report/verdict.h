/* SPDX-License-Identifier: MIT */
/*
 * Is the GIL the problem, by how much, because of whom, where: in plain words, from the numbers of
 * the main pass. All rules are here, tried in this order; the first that holds is the verdict.
 *
 *	free-threaded    the interpreter has no GIL to wait for
 *	nothing          no event of a GIL and no state of a thread was recorded
 *	too-short        less than VERDICT_SHORT_NS were recorded
 *	cpu-starved      threads stood in line for a CPU for at least VERDICT_STARVED % of the time
 *	                 they wanted one, one that lived for VERDICT_LIFE % of the recording for
 *	                 VERDICT_LINE % of its life, and all for longer than for the GIL, or
 *	                 gil-bound and gil-some do not hold; if one of them is the verdict, this
 *	                 is said beside it, and the other way round
 *	gil-unknown      neither the GIL was recorded nor stacks, but who had the CPUs alone
 *	gil-bound        on average at least VERDICT_WAITERS % of a thread waited for the GIL, or a
 *	                 thread that lived for VERDICT_LIFE % of the recording waited for
 *	                 VERDICT_VICTIM % of its life
 *	gil-some         the same with VERDICT_WAITERS_SOME and VERDICT_VICTIM_SOME
 *	single-threaded  one thread did at least VERDICT_SINGLE % of all that ran, and ran for
 *	                 VERDICT_BUSY % of the recording
 *	native           at least VERDICT_NATIVE % of what ran on the CPUs ran without the GIL
 *	io-bound         threads were asleep for VERDICT_ASLEEP % of their lives
 *	single-threaded  only one thread ever held the GIL
 *	gil-none         none of these: several threads, and they hardly met
 *
 * Shares of lives are of what is known of them. Whose fault it is: nobody's if VERDICT_HANDOVER %
 * of the waiting and more than anybody's share passed while the GIL went from one thread to the
 * next, and holds are shorter than VERDICT_SHORT_HOLD_NS on average; a function's if VERDICT_CALL %
 * passed while it kept the GIL when asked to let go, in whatever threads; else a thread's, or a
 * crowd's (crowds.h), if it held the GIL during VERDICT_CULPRIT % of the waiting in which anybody
 * did; else the first two are named.
 */
#ifndef GILTRACER_REPORT_VERDICT_H
#define GILTRACER_REPORT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "report/report.h"

#define VERDICT_SHORT_NS      10000000
#define VERDICT_STARVED       25
#define VERDICT_LINE          20
#define VERDICT_WAITERS       50
#define VERDICT_VICTIM        30
#define VERDICT_LIFE          20
#define VERDICT_WAITERS_SOME  5
#define VERDICT_VICTIM_SOME   5
#define VERDICT_SINGLE        95
#define VERDICT_BUSY          50
#define VERDICT_NATIVE        50
#define VERDICT_ASLEEP        50
#define VERDICT_HANDOVER      40
#define VERDICT_CULPRIT       60
#define VERDICT_CALL          30
#define VERDICT_OTHERS        33 /* percent of the CPUs' time; more is mostly */
#define VERDICT_SHORT_HOLD_NS 1000000

enum verdict_kind {
	VERDICT_FREE_THREADED,
	VERDICT_NOTHING,
	VERDICT_TOO_SHORT,
	VERDICT_CPU_STARVED,
	VERDICT_GIL_BOUND,
	VERDICT_GIL_SOME,
	VERDICT_NATIVE_WORK,
	VERDICT_IO_BOUND,
	VERDICT_SINGLE_THREADED,
	VERDICT_GIL_NONE,
	VERDICT_GIL_UNKNOWN,
};

enum verdict_quality { QUALITY_GOOD, QUALITY_FAIR, QUALITY_POOR };

/**
 * @headline, @because, @also, @advice: sentences, UTF-8 without controls, with names of others in
 *           them: what is wrong, whose fault it is, what is wrong besides, what to do. All but the
 *           headline may be empty
 * @moment: whether there is a worst wait; in which thread, from when to when (CLOCK_MONOTONIC)
 * @quality, @quality_text: how far the numbers can be trusted, and why
 */
struct verdict {
	enum verdict_kind kind;
	struct str headline, because, also, advice;
	bool moment;
	uint32_t moment_thread;
	uint64_t moment_start_ns, moment_end_ns;
	enum verdict_quality quality;
	struct str quality_text;
};

/* Free with verdict_done. */
void verdict_init(struct verdict *verdict, const struct report *report);
void verdict_done(struct verdict *verdict);

/* "gil-bound" and the like; "good", "fair", "poor". */
const char *verdict_kind_name(enum verdict_kind kind);
const char *verdict_quality_name(enum verdict_quality quality);

#endif
