/* SPDX-License-Identifier: MIT */
#include "live/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "live/sample_file.h"
#include "live/snapshot.h"

#define PARTS 8 /* the time that is kept has this many parts; one more is being filled */

/**
 * @start_ns: of the sample before its first one
 * @out: writes to bytes; NULL: the part is complete, and file is closed, too
 */
struct part {
	uint64_t start_ns, last_ns;
	char *bytes;
	size_t size;
	FILE *out;
	struct sample_file *file;
};

struct keep {
	struct keep_plan plan;
	struct part parts[PARTS + 2];
	size_t n;
	bool dropped_early;
};

static struct part *last_part(struct keep *k)
{
	return &k->parts[k->n - 1];
}

static void add_part(struct keep *k, uint64_t start_ns)
{
	struct part *part = &k->parts[k->n++];

	*part = (struct part){ .start_ns = start_ns, .last_ns = start_ns };
	part->out = xmemstream(&part->bytes, &part->size);
	part->file = sample_file_part(part->out, start_ns);
}

static void close_part(struct part *part)
{
	sample_file_close(take(part->file));
	if (part->out)
		fclose(take(part->out));
}

/* All parts must be closed, because an open one's stream contains the address of its part. */
static void drop_first(struct keep *k)
{
	free(k->parts[0].bytes);
	k->n--;
	memmove(k->parts, k->parts + 1, k->n * sizeof(*k->parts));
}

struct keep *keep_new(const struct keep_plan *plan, uint64_t now_ns)
{
	struct keep *k = xcalloc(1, sizeof(*k));

	k->plan = *plan;
	add_part(k, now_ns);
	return k;
}

void keep_free(struct keep *k)
{
	if (!k)
		return;
	close_part(last_part(k));
	while (k->n)
		drop_first(k);
	free(k);
}

/* Begins another part if the last one is long enough or has reached its maximum size. */
static void rotate(struct keep *k)
{
	struct part *last = last_part(k);
	uint64_t full_ns = k->plan.seconds * NS_PER_SECOND;
	bool large = sample_file_bytes(last->file) >= k->plan.max_bytes / (PARTS + 1);

	if (!large && (last->last_ns - last->start_ns) * PARTS < full_ns)
		return;
	close_part(last);
	while (k->n > 1 && last_part(k)->last_ns - k->parts[1].start_ns >= full_ns)
		drop_first(k);
	if (k->n > PARTS) {
		k->dropped_early = true;
		drop_first(k);
	}
	add_part(k, last_part(k)->last_ns);
}

void keep_add(struct keep *k, pid_t pid, const struct snapshot *snapshot)
{
	struct sample_file *file = last_part(k)->file;

	sample_file_begin(file, snapshot->time_ns);
	for (size_t i = 0; i < snapshot->threads.n; i++)
		if (snapshot->threads.v[i].tid)
			sample_file_thread(file, pid, &snapshot->threads.v[i]);
	sample_file_end(file);
	last_part(k)->last_ns = sample_file_last_ns(file);
	rotate(k);
}

void keep_forget_codes(struct keep *k)
{
	sample_file_forget_codes(last_part(k)->file);
}

void keep_missed(struct keep *k, uint64_t count)
{
	sample_file_missed(last_part(k)->file, count);
}

uint64_t keep_start_ns(const struct keep *k)
{
	return k->parts[0].start_ns;
}

bool keep_is_short(const struct keep *k)
{
	uint64_t kept_ns = k->parts[k->n - 1].last_ns - k->parts[0].start_ns;

	return k->dropped_early && kept_ns < k->plan.seconds * NS_PER_SECOND;
}

static void write_parts(struct keep *k, FILE *out, uint64_t end_ns)
{
	const struct sample_file_plan plan = {
		.hz = k->plan.hz,
		.start_ns = k->parts[0].start_ns,
	};
	CLEANUP(sample_file_close) struct sample_file *end = NULL;

	sample_file_header(out, &plan);
	fflush(last_part(k)->out);
	for (size_t i = 0; i < k->n; i++) {
		if (i)
			putc('R', out);
		fwrite(k->parts[i].bytes, 1, k->parts[i].size, out);
	}
	end = sample_file_part(out, last_part(k)->last_ns);
	sample_file_put_end(end, end_ns);
}

int keep_write(struct keep *k, const char *path, uint64_t end_ns, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };

	if (filewriter_open(&w, path, err) < 0)
		return -1;
	write_parts(k, w.out, end_ns);
	return filewriter_commit(&w, err);
}
