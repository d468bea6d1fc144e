/* SPDX-License-Identifier: MIT */
/* Checks every word: the user who starts giltracer-perf chooses them. */
#include "record/perfwords.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/vec.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* Locked memory for each CPU: the most that perf_limits.c asks for. */
#define BUFFER_MAX ((uint64_t)257 << 20)
#define STACK_MAX  65528
#define HZ_MAX     1000

struct words {
	char **v;
	size_t n, alloc;
};

static void add_number(struct words *words, const char *key, unsigned value)
{
	if (value)
		*vec_push(words) = xasprintf("%s=%u", key, value);
}

static void add_texts(struct words *words, const char *key, const char *const *texts)
{
	for (; texts && *texts; texts++)
		*vec_push(words) = xasprintf("%s=%s", key, *texts);
}

char **perfwords_argv(const struct perf_plan *plan)
{
	struct words words = { 0 };

	*vec_push(&words) = xstrdup("giltracer-perf");
	*vec_push(&words) = xstrdup("record");
	*vec_push(&words) = xasprintf("output=%s", plan->output);
	add_number(&words, "pid", (unsigned)plan->pid);
	add_number(&words, "control", (unsigned)plan->control_fd);
	add_number(&words, "ack", (unsigned)plan->ack_fd);
	add_number(&words, "pages", plan->mmap_pages);
	add_number(&words, "aio", plan->aio);
	add_number(&words, "buildid-mmap", plan->buildid_mmap);
	add_number(&words, "unswapped", plan->unswapped);
	add_number(&words, "late-tasks", plan->late_tasks);
	add_number(&words, "waking", plan->waking);
	add_number(&words, "sched", plan->sched);
	add_number(&words, "stops", plan->stops);
	add_number(&words, "stack", plan->stack_size);
	add_number(&words, "native", plan->native);
	add_number(&words, "hz", plan->native_hz);
	add_texts(&words, "probe", plan->probes);
	add_texts(&words, "counter", plan->counters);
	*vec_push(&words) = NULL;
	return words.v;
}

static bool parse_number(unsigned *ret, const char *text, unsigned max)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > max)
		return false;
	*ret = (unsigned)value;
	return true;
}

/* "giltracer_…:EVENT" */
static bool is_probe(const char *text)
{
	size_t group = strspn(text, NAME_CHARS);

	return str_has_prefix(text, "giltracer_") && text[group] == ':' && text[group + 1] &&
	       text[group + 1 + strspn(text + group + 1, NAME_CHARS)] == '\0';
}

/* A plain name without modifiers: neither a tracepoint nor cycles of the kernel. */
static bool is_counter(const char *text)
{
	return *text && *text != '-' && text[strspn(text, NAME_CHARS "-.")] == '\0';
}

/* The kernel's software events happen in the kernel; all others are counted in user space only. */
static char *counter_of_program(const char *text)
{
	static const char *const kernels[] = {
		"page-faults",      "faults", "minor-faults",   "major-faults",
		"context-switches", "cs",     "cpu-migrations", "migrations",
		"alignment-faults", NULL,
	};

	for (const char *const *name = kernels; *name; name++)
		if (!strcmp(*name, text))
			return xstrdup(text);
	return xasprintf("%s:u", text);
}

static void append(const char *const **list, char *text)
{
	size_t n = 0;
	const char **longer;

	while (*list && (*list)[n])
		n++;
	longer = xreallocarray((void *)(uintptr_t)*list, n + 2, sizeof(*longer));
	longer[n] = text;
	longer[n + 1] = NULL;
	*list = longer;
}

static bool parse_pages(unsigned *ret, const char *text)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return parse_number(ret, text, (unsigned)(BUFFER_MAX / page)) && *ret &&
	       !(*ret & (*ret - 1));
}

static bool parse_flag(bool *ret, const char *text)
{
	*ret = true;
	return !strcmp(text, "1");
}

static bool parse_int(int *ret, const char *text)
{
	unsigned value;

	if (!parse_number(&value, text, INT_MAX) || !value)
		return false;
	*ret = (int)value;
	return true;
}

static bool parse_stack(unsigned *ret, const char *text)
{
	return parse_number(ret, text, STACK_MAX) && *ret % 8 == 0;
}

static bool parse_text(struct perf_plan *plan, const char *key, const char *value)
{
	if (!strcmp(key, "output")) {
		plan->output = value;
		return *value == '/';
	}
	if (!strcmp(key, "probe") && is_probe(value)) {
		append(&plan->probes, xstrdup(value));
		return true;
	}
	if (!strcmp(key, "counter") && is_counter(value)) {
		append(&plan->counters, counter_of_program(value));
		return true;
	}
	return false;
}

static bool parse_word(struct perf_plan *plan, const char *key, const char *value)
{
	const struct {
		const char *key;
		bool *flag;
	} flags[] = {
		{ "aio", &plan->aio },
		{ "buildid-mmap", &plan->buildid_mmap },
		{ "unswapped", &plan->unswapped },
		{ "late-tasks", &plan->late_tasks },
		{ "waking", &plan->waking },
		{ "sched", &plan->sched },
		{ "stops", &plan->stops },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (!strcmp(key, flags[i].key))
			return parse_flag(flags[i].flag, value);
	if (!strcmp(key, "pid"))
		return parse_int(&plan->pid, value);
	if (!strcmp(key, "control"))
		return parse_int(&plan->control_fd, value);
	if (!strcmp(key, "ack"))
		return parse_int(&plan->ack_fd, value);
	if (!strcmp(key, "pages"))
		return parse_pages(&plan->mmap_pages, value);
	if (!strcmp(key, "stack"))
		return parse_stack(&plan->stack_size, value);
	if (!strcmp(key, "native"))
		return parse_stack(&plan->native, value);
	if (!strcmp(key, "hz"))
		return parse_number(&plan->native_hz, value, HZ_MAX);
	return parse_text(plan, key, value);
}

int perfwords_parse(struct perf_plan *ret, char *const *words, struct error *err)
{
	struct perf_plan plan = { 0 };

	for (; *words; words++) {
		const char *equals = strchr(*words, '=');
		CLEANUP(free) char *key = xstrndup(*words, equals ? (size_t)(equals - *words) : 0);

		if (!equals || !parse_word(&plan, key, equals + 1)) {
			perfwords_done(&plan);
			return error_set(err, EINVAL, "'%s' is not permitted", *words);
		}
	}
	if (!plan.pid || !plan.output || !plan.control_fd || !plan.ack_fd) {
		perfwords_done(&plan);
		return error_set(err, EINVAL, "output, pid, control and ack are needed");
	}
	*ret = plan;
	return 0;
}

static void free_list(const char *const *list)
{
	for (const char *const *text = list; text && *text; text++)
		free((void *)(uintptr_t)*text);
	free((void *)(uintptr_t)list);
}

void perfwords_done(struct perf_plan *plan)
{
	free_list(plan->probes);
	free_list(plan->counters);
}
