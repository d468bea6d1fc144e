/* SPDX-License-Identifier: MIT */
/* Reads what json.c and functions.c write. */
#include "report/json/summary_read.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"

/* A value that is not a number, or is negative, becomes 0. */
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

static void add_thread(struct summary *s, const json_t *thread)
{
	if (json_is_null(json_object_get(thread, "lock_wait_ns")))
		s->locks_unknown = true;
	summary_add_thread(s, &(struct summary_thread){
				      .name = text_of(thread, "name", "?"),
				      .total_ns = number(thread, "total_ns"),
				      .hold_ns = number(thread, "hold_ns"),
				      .wait_ns = number(thread, "wait_ns"),
				      .unknown_ns = number(thread, "unknown_ns"),
				      .lock_wait_ns = number(thread, "lock_wait_ns"),
				      .stopped_ns = number(thread, "stopped_ns"),
				      .longest_hold_ns = number(thread, "longest_hold_ns"),
				      .longest_wait_ns = number(thread, "longest_wait_ns"),
			      });
}

static struct summary_function named(const json_t *function)
{
	return (struct summary_function){
		.name = text_of(function, "function", SUMMARY_UNKNOWN),
		.file = text_of(function, "file", ""),
		.line = (uint32_t)number(function, "line"),
	};
}

static void add_function(struct summary *s, const json_t *function)
{
	struct summary_function f = named(function);

	f.wait_ns = number(function, "wait_caused_ns");
	f.hold_ns = number(function, "hold_ns");
	summary_add_function(s, &f);
}

static void add_hog(struct summary *s, const json_t *hog)
{
	struct summary_function f = named(hog);

	f.overdue = number(hog, "holds");
	f.overdue_wait_ns = number(hog, "wait_caused_ns");
	summary_add_function(s, &f);
}

static void add_pass(struct summary *s, const json_t *pass)
{
	summary_add_lost(s, number(pass, "lost"));
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
	summary_finish(ret);
	return 0;
}
