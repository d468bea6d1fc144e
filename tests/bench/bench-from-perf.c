/* SPDX-License-Identifier: MIT */
/* Measures the reading of a perf.data: bench-from-perf FILE prints "NAME VALUE UNIT" lines. With
 * -1, it only reads all events once. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "perfdata/event_sort.h"
#include "perfdata/reader.h"
#include "trace/perf/from_perf.h"

#define RUNS 7

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Each step includes the one before. Returns the number of records or events. */
static uint64_t run_read(const char *path, struct error *err)
{
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	struct perfdata_record rec;
	uint64_t n = 0;

	if (perfdata_open(&pd, path, err) < 0)
		return 0;
	while (perfdata_next(pd, &rec))
		n++;
	return n;
}

static uint64_t run_order(const char *path, struct error *err)
{
	CLEANUP(perfdata_close) struct perfdata *pd = NULL;
	CLEANUP(event_sort_free) struct event_sort *order = NULL;
	struct perfdata_record rec;
	uint64_t ns;

	if (perfdata_open(&pd, path, err) < 0)
		return 0;
	order = event_sort_new(pd);
	while (event_sort_next(order, &rec, &ns))
		;
	return event_sort_records(order);
}

static uint64_t run_events(const char *path, struct error *err)
{
	struct source *source;
	struct event ev;
	uint64_t n;

	if (from_perf_open(&source, path, NULL, err) < 0)
		return 0;
	while (source_next(source, &ev, err) > 0)
		;
	n = source->stats.records;
	source_close(source);
	return n;
}

static int bench(const char *name, uint64_t (*run)(const char *, struct error *), const char *path)
{
	struct error err = { .text = "no records" };
	double best = 0;
	uint64_t n = 0;

	for (int i = 0; i < RUNS; i++) {
		double start = now_ns(), took;

		n = run(path, &err);
		took = now_ns() - start;
		if (!n) {
			fprintf(stderr, "%s\n", err.text);
			return -1;
		}
		if (!best || took < best)
			best = took;
	}
	printf("%s %.1f ns/record\n", name, best / (double)n);
	printf("%s_total %.2f ms\n", name, best / 1e6);
	return 0;
}

/* The memory of the process without the pages of the file. */
static long anonymous_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kib = -1;

	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (status)
		fclose(status);
	return kib;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	struct error err;

	if (argc == 3 && !strcmp(argv[1], "-1"))
		return run_events(argv[2], &err) ? 0 : 1;
	if (argc != 2) {
		fprintf(stderr, "usage: bench-from-perf [-1] FILE\n");
		return 2;
	}
	if (bench("perfdata_read", run_read, argv[1]) < 0 ||
	    bench("perfdata_order", run_order, argv[1]) < 0 ||
	    bench("perfdata_events", run_events, argv[1]) < 0)
		return 1;
	getrusage(RUSAGE_SELF, &usage);
	printf("perfdata_rss_anon %ld KiB\n", anonymous_kib());
	printf("perfdata_rss_peak %ld KiB\n", usage.ru_maxrss);
	return 0;
}
