/* SPDX-License-Identifier: MIT */
/* Turns perf's records into events: the source, and the parts that all its events share. */
#include "trace/perf/from_perf.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "trace/perf/private.h"
#include "trace/names.h"
#include "trace/perf/stacks.h"
#include "trace/stacks.h"

/* Events are yielded in the order of time, whatever the order in the file; those that had to be
 * moved are counted. */
static void stamp(struct from_perf *fp, struct event *ev, uint64_t time_ns)
{
	if (time_ns < fp->last_ns) {
		fp->source.stats.unordered++;
		time_ns = fp->last_ns;
	}
	fp->last_ns = time_ns;
	ev->time_ns = time_ns;
	if (ev->type == EV_LOST && ev->lost.since_ns > time_ns)
		ev->lost.since_ns = time_ns;
	from_perf_cpu(fp, ev->cpu)->last_ns = time_ns;
	fp->source.stats.events++;
}

__attribute__((noinline)) static void update_stats(struct from_perf *fp)
{
	const struct perf_header_note *cut = perfdata_cut(fp->pd);
	struct source_stats *stats = &fp->source.stats;

	stats->records = event_sort_records(fp->order);
	stats->unknown_records = fp->unknown + event_sort_unknown(fp->order);
	if (cut) {
		stats->truncated_at = cut->offset;
		memcpy(stats->truncated_text, cut->text, sizeof(stats->truncated_text));
	}
}

static int from_perf_next(struct source *source, struct event *ret, struct error *err)
{
	struct from_perf *fp = (struct from_perf *)source;
	struct perfdata_record rec;
	uint64_t time_ns;

	while (event_sort_next(fp->order, &rec, &time_ns)) {
		bool is_sample = rec.type == PERF_RECORD_SAMPLE;

		if (!fp->first_ns)
			fp->first_ns = time_ns;
		if (!(is_sample ? from_perf_sample(fp, &rec, ret) : from_perf_other(fp, &rec, ret)))
			continue;
		stamp(fp, ret, time_ns);
		/* Not for each event, because only a progress line needs it. */
		if (!(fp->source.stats.events % 4096))
			update_stats(fp);
		return 1;
	}
	update_stats(fp);
	return perfdata_check(fp->pd, err);
}

static void from_perf_close(struct source *source)
{
	struct from_perf *fp = (struct from_perf *)source;

	if (fp->unwind.close)
		fp->unwind.close(fp->unwind.ctx);
	vec_done(&fp->handlers);
	vec_done(&fp->counters);
	vec_done(&fp->cpus);
	idmap_done(&fp->tids);
	event_sort_free(fp->order);
	perfdata_close(fp->pd);
	perf_frames_free(fp->frames);
	if (!fp->borrows) {
		stacks_free(source->frames);
		stacks_free(source->stacks);
		names_free(source->names);
	}
	free(fp);
}

static uint32_t from_perf_stack_at(struct source *source, uint64_t record)
{
	struct from_perf *fp = (struct from_perf *)source;
	struct perfdata_record rec;
	uint32_t index;
	struct sample s;

	perfdata_at(perfdata_data(fp->pd), record, perfdata_window(fp->pd)->end, &rec);
	index = header_event_of(fp->header, true, &rec.body);
	if (index == UINT32_MAX ||
	    !sample_decode(&s, &fp->header->events.v[index].layout, rec.body))
		return 0;
	return fp->unwind.stack(fp->unwind.ctx, &fp->header->events.v[index], &s);
}

static void open_stacks(struct from_perf *fp, const struct from_perf_options *options)
{
	const struct source *with = options ? options->with : NULL;
	struct source *source = &fp->source;

	source->stacks = with ? with->stacks : stacks_new(source->names);
	perf_stacks_open(&fp->unwind, perfdata_header(fp->pd), source, options);
}

static int start(struct source **ret, struct perfdata *pd, const struct from_perf_options *options,
                 struct error *err)
{
	static const struct source_ops ops = {
		.next = from_perf_next,
		.close = from_perf_close,
		.stack_at = from_perf_stack_at,
	};
	const struct source *with = options ? options->with : NULL;
	struct from_perf *fp = xcalloc(1, sizeof(*fp));

	(void)err;
	fp->source.ops = &ops;
	fp->source.by_perf = true;
	fp->borrows = with;
	fp->source.names = with ? with->names
	                        : names_new_private(options ? options->privacy : NULL);
	fp->source.stats.bytes = perfdata_size(pd);
	fp->source.frames = with ? with->frames : stacks_new(fp->source.names);
	fp->frames = perf_frames_new(fp->source.names, fp->source.frames,
	                             options ? options->code : NULL);
	fp->pd = pd;
	fp->machine = options && options->machine;
	fp->header = perfdata_header(pd);
	fp->order = event_sort_new(pd);
	from_perf_update_handlers(fp);
	fp->unwind_now = options && options->unwind;
	open_stacks(fp, options);
	*ret = &fp->source;
	return 0;
}

int from_perf_open(struct source **ret, const char *path, const struct from_perf_options *options,
                   struct error *err)
{
	struct perfdata *pd;

	if (perfdata_open(&pd, path, err) < 0)
		return -1;
	return start(ret, pd, options, err);
}

int from_perf_open_memory(struct source **ret, const void *data, size_t size,
                          const struct from_perf_options *options, struct error *err)
{
	struct perfdata *pd;

	if (perfdata_open_memory(&pd, data, size, err) < 0)
		return -1;
	return start(ret, pd, options, err);
}
