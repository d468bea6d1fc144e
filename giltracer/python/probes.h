/* SPDX-License-Identifier: MIT */
/*
 * Probe sets: the probes of a definition (probes/X.Y.yaml, schema in probes/README.md) in one
 * interpreter, each with its place in the file.
 */
#ifndef GILTRACER_PYTHON_PROBES_H
#define GILTRACER_PYTHON_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/vec.h"
#include "binary/image.h"
#include "python/probe_site.h"
#include "binary/symbols.h"

/* The function and its caller: this shows who made a library call, and which loop runs the event. A
 * loop that only releases and takes the GIL gets 18 % slower with one frame, 34 % with two
 * (tests/bench/bench-frames.sh). */
#define FRAMEFETCH_DEFAULT 2
/* The expressions of a seventh frame would be longer than the kernel accepts. */
#define FRAMEFETCH_MAX 6

struct python;

/**
 * All strings are owned.
 * @event: tracefs name of the event, as in trace/perf/from_perf.h: "take_gil", "drop_gil_1"
 * @function: the function's name as found, "take_gil.constprop.0"
 * @how: how it was found, one phrase
 * @instruction: the instruction under the probe, as text
 * @why_costly: the reason why no instruction nearby can be probed cheaply, a constant; NULL if one
 * can
 * @fetch: tracefs fetch arguments, "gil=+0x10(%di):u64"; NULL for none
 */
struct probe {
	char *event;
	char *function;
	char *how;
	char *instruction;
	char *fetch;
	const char *why_costly;
	uint64_t address, offset;
	enum symbol_kind kind;
	enum probe_cost cost;
	bool ret;
	bool sure; /* confirmed by a second method, or by a symbol */
};

/**
 * @path: the file that contains them
 * @python: the command of the interpreter
 * @group: tracefs group, "giltracer_<build-id prefix>_<hash of path and probes>" and lease_suffix()
 * @identity: of that file when the places were determined
 * @frames: number of Python frames that its probes fetch
 * @releases_known: every release of the GIL has a probe; otherwise some are inferred
 * @note: one sentence on what is missing, or NULL
 */
struct probe_set {
	char *path;
	char *python;
	char *build_id;
	char *group;
	char *note;
	struct image_identity identity;
	unsigned frames;
	bool releases_known;
	VEC(struct probe) probes;
};

/*
 * The probe set of an interpreter. take_gil fetches frames Python frames, 0 to FRAMEFETCH_MAX (see
 * python/probes.h). The group's name ends in group_suffix. Errors, which contain what was found
 * instead: ENOTSUP no definition for this version, ENOENT take_gil was not found. Free with
 * probe_set_free.
 */
int probe_set_resolve(struct probe_set **ret, const struct python *python, unsigned frames,
                      const char *group_suffix, struct error *err);
void probe_set_free(struct probe_set *set);

/* Whether the file is still the one in which the places were determined. */
bool probe_set_is_current(const struct probe_set *set);

DEFINE_CLEANUP(struct probe_set *, probe_set_free);

#endif
