/* SPDX-License-Identifier: MIT */
#include "report/summary.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/facts.h"

const struct fact_kind fact_kinds[FACTS] = {
	[FACT_GIL_WAIT] = { "gil_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_GIL_HOLD] = { "gil_hold", UNIT_PERCENT | UNIT_TIME },
	[FACT_THREAD_WAIT] = { "thread_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_HOG_WAIT] = { "hog_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_LOCK_WAIT] = { "lock_wait", UNIT_PERCENT | UNIT_TIME },
	[FACT_STOPPED] = { "stopped", UNIT_PERCENT | UNIT_TIME },
	[FACT_LONGEST_WAIT] = { "longest_wait", UNIT_TIME },
	[FACT_LONGEST_HOLD] = { "longest_hold", UNIT_TIME },
	[FACT_HOGS] = { "hogs", UNIT_COUNT },
	[FACT_LOST] = { "lost", UNIT_COUNT },
	[FACT_UNKNOWN] = { "unknown", UNIT_PERCENT | UNIT_TIME },
};

/* What is no number, or less than nothing, is 0. */
static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *text_of(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}

static struct summary_row *find_row(struct summary_rows *rows, const char *name, const char *file)
{
	struct summary_row *row;

	for (size_t i = 0; i < rows->v.n; i++)
		if (!strcmp(rows->v.v[i].name, name) && !strcmp(rows->v.v[i].file, file))
			return &rows->v.v[i];
	row = vec_push(&rows->v);
	*row = (struct summary_row){ .name = xstrdup(name), .file = xstrdup(file) };
	return row;
}

static void set_max(uint64_t *max, uint64_t value)
{
	if (value > *max)
		*max = value;
}

static void add_thread(struct summary *s, const json_t *thread)
{
	struct summary_row *row = find_row(&s->threads, text_of(thread, "name", "?"), "");
	uint64_t total_ns = number(thread, "total_ns"), wait_ns = number(thread, "wait_ns");
	uint64_t hold_ns = number(thread, "hold_ns"), unknown_ns = number(thread, "unknown_ns");
	uint64_t known_ns = total_ns > unknown_ns ? total_ns - unknown_ns : 0;
	double share = facts_percent(wait_ns, known_ns);

	row->count++;
	row->wait_ns += wait_ns;
	row->hold_ns += hold_ns;
	set_max(&s->recording_ns, total_ns);
	s->known_ns += known_ns;
	s->value[FACT_GIL_WAIT] += wait_ns;
	s->value[FACT_GIL_HOLD] += hold_ns;
	s->value[FACT_LOCK_WAIT] += number(thread, "lock_wait_ns");
	s->value[FACT_STOPPED] += number(thread, "stopped_ns");
	s->value[FACT_UNKNOWN] += unknown_ns;
	set_max(&s->value[FACT_THREAD_WAIT], wait_ns);
	if (share > s->percent[FACT_THREAD_WAIT])
		s->percent[FACT_THREAD_WAIT] = share;
	set_max(&s->value[FACT_LONGEST_WAIT], number(thread, "longest_wait_ns"));
	set_max(&s->value[FACT_LONGEST_HOLD], number(thread, "longest_hold_ns"));
}

/* Without folders: the same program may stand elsewhere. */
static struct summary_row *function_row(struct summary *s, const json_t *function)
{
	const char *file = text_of(function, "file", "");
	const char *base = strrchr(file, '/');

	return find_row(&s->functions, text_of(function, "function", "(unknown)"),
	                base ? base + 1 : file);
}

static void add_function(struct summary *s, const json_t *function)
{
	struct summary_row *row = function_row(s, function);

	if (!row->line)
		row->line = (uint32_t)number(function, "line");
	row->wait_ns += number(function, "wait_caused_ns");
	row->hold_ns += number(function, "hold_ns");
}

static void add_hog(struct summary *s, const json_t *hog)
{
	function_row(s, hog)->late_wait_ns += number(hog, "wait_caused_ns");
	s->value[FACT_HOG_WAIT] += number(hog, "wait_caused_ns");
	s->value[FACT_HOGS] += number(hog, "holds");
}

static void add_pass(struct summary *s, const json_t *pass)
{
	s->value[FACT_LOST] += number(pass, "lost");
}

static void each(struct summary *s, const json_t *root, const char *key,
                 void (*add)(struct summary *, const json_t *))
{
	const json_t *array = json_object_get(root, key), *element;
	size_t i;

	json_array_foreach(array, i, element) add(s, element);
}

static int check_schema(const json_t *root, struct error *err)
{
	const json_t *schema = json_object_get(root, "schema");

	if (json_object_get(root, "diff"))
		return error_set(err, EINVAL, "a comparison, not a report");
	if (!json_is_integer(schema) || !json_is_array(json_object_get(root, "threads")))
		return error_set(err, EINVAL, "not a JSON document of giltracer");
	if (json_integer_value(schema) != 1)
		return error_set(err, EINVAL,
		                 "schema %" JSON_INTEGER_FORMAT ", this giltracer reads schema 1",
		                 json_integer_value(schema));
	return 0;
}

int summary_read(struct summary *ret, const char *text, size_t len, struct error *err)
{
	static const enum fact waits[] = { FACT_GIL_WAIT, FACT_HOG_WAIT, FACT_LOCK_WAIT,
		                           FACT_STOPPED };
	json_error_t bad;
	json_auto_t *root = json_loadb(text, len, JSON_ALLOW_NUL, &bad);

	*ret = (struct summary){ 0 };
	if (!root)
		return error_set(err, EINVAL, "neither a session folder nor JSON: line %d: %s",
		                 bad.line, bad.text);
	if (check_schema(root, err) < 0)
		return -1;
	each(ret, root, "passes", add_pass);
	each(ret, root, "threads", add_thread);
	each(ret, root, "functions", add_function);
	each(ret, root, "hogs", add_hog);
	for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		ret->percent[waits[i]] = facts_percent(ret->value[waits[i]], ret->known_ns);
	ret->percent[FACT_GIL_HOLD] = facts_percent(ret->value[FACT_GIL_HOLD], ret->recording_ns);
	ret->percent[FACT_UNKNOWN] = facts_percent(ret->value[FACT_UNKNOWN],
	                                           ret->known_ns + ret->value[FACT_UNKNOWN]);
	return 0;
}

static void rows_done(struct summary_rows *rows)
{
	for (size_t i = 0; i < rows->v.n; i++) {
		free(rows->v.v[i].name);
		free(rows->v.v[i].file);
	}
	vec_done(&rows->v);
}

void summary_done(struct summary *summary)
{
	rows_done(&summary->threads);
	rows_done(&summary->functions);
}
