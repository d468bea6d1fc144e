/* SPDX-License-Identifier: MIT */
/*
 * Starvation: who had the CPU that a thread waited for. A thread that wants to run stands in line
 * for one CPU; for which, the kernel does not say, and it may be moved to another line. We know the
 * CPU that it got in the end, and charge the time in line to whoever had that one meanwhile.
 */
#include "model/internal.h"

#define MAX_CPUS 8192

/* Rows of one thread: by thread index, by name with the top bit set. */
#define PROGRAM 0x80000000u

struct tally {
	struct idmap rows; /* -> index in m->starved */
	uint32_t thread;
};

static struct cpu_book *book_of(struct model *m, int32_t cpu)
{
	while ((size_t)cpu >= m->priv->cpus.n)
		*vec_push(&m->priv->cpus) = (struct cpu_book){ 0 };
	return &m->priv->cpus.v[cpu];
}

void starve_pick(struct model *m, const struct event *ev, uint32_t next, uint64_t t)
{
	if (ev->cpu < 0 || ev->cpu >= MAX_CPUS)
		return;
	*vec_push(&book_of(m, ev->cpu)->owners) = (struct cpu_owner){ t, next,
		                                                      ev->sched.next_name };
}

void starve_in(struct model *m, uint32_t thread, uint64_t t, int32_t cpu)
{
	struct cpu_book *book;

	if (cpu < 0 || (size_t)cpu >= m->priv->cpus.n)
		return;
	book = &m->priv->cpus.v[cpu];
	if (!book->owners.n || book->owners.v[book->owners.n - 1].by != thread)
		*vec_push(&book->owners) = (struct cpu_owner){ t, thread, 0 };
}

/* Whoever got a CPU meanwhile may have lost it again. */
static void forget(struct cpu_book *book, uint64_t since_ns)
{
	while (book->owners.n && book->owners.v[book->owners.n - 1].start_ns >= since_ns)
		book->owners.n--;
	*vec_push(&book->owners) = (struct cpu_owner){ since_ns, MODEL_UNKNOWN, 0 };
}

void starve_lost(struct model *m, int32_t cpu, uint64_t since_ns)
{
	for (size_t i = 0; i < m->priv->cpus.n; i++)
		if (cpu < 0 || i == (size_t)cpu)
			forget(&m->priv->cpus.v[i], since_ns);
}

static void charge(struct model *m, struct tally *tally, uint32_t by, uint32_t name, uint64_t ns)
{
	uint32_t key = by == MODEL_NONE ? PROGRAM | name : by;
	uint32_t row = idmap_get(&tally->rows, key);

	if (!ns)
		return;
	if (row == IDMAP_NONE) {
		row = (uint32_t)m->starved.n;
		*vec_push(&m->starved) = (struct model_starved){ tally->thread, by, name, 0 };
		idmap_set(&tally->rows, key, row);
	}
	m->starved.v[row].runnable_ns += ns;
}

/* The last owner that starts no later; book->owners.n if there is none. */
static size_t owner_at(const struct cpu_book *book, uint64_t time_ns)
{
	size_t low = 0, high = book->owners.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (book->owners.v[middle].start_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : book->owners.n;
}

/* A thread that had the CPU before itself was moved there by nobody we know. */
static void divide(struct model *m, struct tally *tally, const struct cpu_book *book, uint64_t from,
                   uint64_t to)
{
	size_t i = owner_at(book, from);

	if (i == book->owners.n) {
		charge(m, tally, MODEL_UNKNOWN, 0, to - from);
		return;
	}
	while (from < to) {
		const struct cpu_owner *owner = &book->owners.v[i++];
		uint64_t end = i < book->owners.n ? book->owners.v[i].start_ns : to;
		uint32_t by = owner->by == tally->thread ? MODEL_UNKNOWN : owner->by;

		if (end > to)
			end = to;
		charge(m, tally, by, owner->name, end - from);
		from = end;
	}
}

static void tally_thread(struct model *m, struct tally *tally)
{
	const struct lane *lane = &m->threads.v[tally->thread].cpu;

	for (size_t i = 0; i < lane->spans.n; i++) {
		const struct span *s = &lane->spans.v[i];
		uint64_t end = lane_span_end(lane, i);
		int cpu = i + 1 < lane->spans.n ? s[1].cpu : -1;

		if (s->state != CPU_RUNNABLE)
			continue;
		if (cpu < 0 || (size_t)cpu >= m->priv->cpus.n)
			charge(m, tally, MODEL_UNKNOWN, 0, end - s->start_ns);
		else
			divide(m, tally, &m->priv->cpus.v[cpu], s->start_ns, end);
	}
}

void starve_finish(struct model *m)
{
	if (!m->priv->cpus.n)
		return;
	for (uint32_t i = 0; i < m->threads.n; i++) {
		struct tally tally = { .thread = i };

		tally_thread(m, &tally);
		idmap_done(&tally.rows);
	}
}

void starve_done(struct model *m)
{
	for (size_t i = 0; i < m->priv->cpus.n; i++)
		vec_done(&m->priv->cpus.v[i].owners);
	vec_done(&m->priv->cpus);
}
