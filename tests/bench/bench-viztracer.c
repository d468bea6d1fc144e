/* SPDX-License-Identifier: MIT */
/* Reads a VizTracer JSON once, and prints "NAME VALUE UNIT" lines about this process. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "trace/slices.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
	struct slices *slices = NULL;
	struct error err = { 0 };
	struct rusage usage;
	struct stat st;
	double start = now();

	if (argc != 2 || stat(argv[1], &st) < 0) {
		fprintf(stderr, "usage: viztracer-read FILE\n");
		return 1;
	}
	if (from_viztracer_read(&slices, argv[1], 0, NULL, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("viztracer-read %.3f s\n", now() - start);
	getrusage(RUSAGE_SELF, &usage);
	printf("viztracer-calls %llu calls\n", (unsigned long long)slices->total);
	printf("viztracer-file %.1f MB\n", (double)st.st_size / 1e6);
	printf("viztracer-peak %.1f MB\n", (double)usage.ru_maxrss / 1e3);
	slices_free(slices);
	return 0;
}
