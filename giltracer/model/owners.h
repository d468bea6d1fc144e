/* SPDX-License-Identifier: MIT */
/* The holder of a GIL and its number of waiters, change by change. */
#ifndef GILTRACER_MODEL_OWNERS_H
#define GILTRACER_MODEL_OWNERS_H

#include "model/model.h"

void owners_mark(struct model *m, uint32_t gil, uint64_t t);
/* The GIL was assumed to be free since since_ns, but thread held it all that time. Returns false if
 * the GIL was not free. */
bool owners_claim(struct model *m, uint32_t gil, uint32_t thread, uint64_t since_ns);
/* It is not known whether a thread held the GIL until now. */
void owners_forget(struct model *m, uint32_t gil);
/* Derives the owners of one GIL again, after owners_finish: for tests. */
void owners_rebuild(struct model *m, uint32_t gil);
/* Index of the owner at time_ns: the last one that does not start later. The search begins at hint,
 * an index for an earlier time. */
size_t owners_at(const struct model_gil *g, size_t hint, uint64_t time_ns);

/* How long threads waited for the GIL in a time, summed over them. *hint: as for owners_at, which it
 * moves on. */
uint64_t owners_waited(const struct model_gil *g, size_t *hint, uint64_t from_ns, uint64_t to_ns);

/* Mark of a hold or wait that begins now: the low 16 bits of its owner's index. */
static inline int16_t owners_mark_of(const struct model_gil *g)
{
	return (int16_t)(uint16_t)(g->owners.n - 1);
}

/* owners_at() the start of a hold or wait. The mark is right unless the past was changed or hint is
 * more than 65535 changes away. */
static inline size_t owners_of(const struct model_gil *g, size_t hint, const struct span *span)
{
	size_t at = hint + (uint16_t)((uint16_t)span->gil.owner_hint - (uint16_t)hint);

	if (at < g->owners.n && g->owners.v[at].start_ns <= span->start_ns &&
	    (at + 1 == g->owners.n || g->owners.v[at + 1].start_ns > span->start_ns))
		return at;
	return owners_at(g, hint, span->start_ns);
}
void owners_finish(struct model *m);

#endif
