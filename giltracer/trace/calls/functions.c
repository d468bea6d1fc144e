/* SPDX-License-Identifier: MIT */
/* The functions that were called: their names, and whether they belong to the program. */
#include <inttypes.h>
#include <string.h>

#include "trace/calls/reader.h"
#include "trace/names.h"

static uint32_t make_name(struct reader *r, const struct preload_code *code)
{
	r->text.len = 0;
	if (code->native)
		str_addf(&r->text, "%.*s (C)", (int)code->name_len, code->name);
	else
		str_addf(&r->text, "%.*s (%.*s:%" PRIu32 ")", (int)code->name_len, code->name,
		         (int)code->file_len, code->file, code->first_line);
	return names_id(r->ret->names, str_get(&r->text), r->text.len);
}

static uint32_t unknown_name(struct reader *r)
{
	static const char text[] = "unknown function";

	return names_id(r->ret->names, text, sizeof(text) - 1);
}

/* NO_NAME: a function of giltracer itself, which is not shown. */
static uint32_t find_name(struct reader *r, const struct preload_code *code)
{
	if (!code->name)
		return unknown_name(r);
	return preload_log_is_own(&r->log, code) ? NO_NAME : make_name(r, code);
}

#define NOT_ASKED (UINT32_MAX - 1)

uint32_t calls_function_name(struct reader *r, const struct part *part, uint32_t number)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	struct process_names *names = &r->names.v[part->process];
	uint32_t at = idmap_get(&p->called_ids, number);

	if (at == IDMAP_NONE)
		return unknown_name(r);
	while (names->ids.n < p->called.n)
		*vec_push(&names->ids) = NOT_ASKED;
	if (names->ids.v[at] == NOT_ASKED)
		names->ids.v[at] = find_name(r, &p->called.v[at]);
	return names->ids.v[at];
}

const struct preload_code *calls_function(const struct reader *r, const struct part *part,
                                          uint32_t number)
{
	const struct preload_process *p = &r->log.processes.v[part->process];
	uint32_t at = idmap_get(&p->called_ids, number);

	return at == IDMAP_NONE ? NULL : &p->called.v[at];
}

static bool has(const char *text, size_t len, const char *what)
{
	return memmem(text, len, what, strlen(what)) != NULL;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && !memcmp(text + len - n, end, n);
}

void calls_find_trio(struct process_names *names, const struct preload_process *p)
{
	static const char loop[] = "/trio/_core/_run.py", rest[] = "_core/_run.py";

	for (size_t i = 0; !names->trio && i < p->called.n; i++) {
		const struct preload_code *code = &p->called.v[i];

		if (!code->name || !ends_with(code->file, code->file_len, loop))
			continue;
		names->trio = code->file;
		names->trio_len = code->file_len - (sizeof(rest) - 1);
	}
}

static bool is_trio(const struct reader *r, const struct part *part,
                    const struct preload_code *code)
{
	const struct process_names *names = &r->names.v[part->process];

	return names->trio && code->file_len > names->trio_len &&
	       !memcmp(code->file, names->trio, names->trio_len);
}

bool calls_is_library(const struct reader *r, const struct part *part,
                      const struct preload_code *code)
{
	return has(code->file, code->file_len, "<frozen ") ||
	       (has(code->file, code->file_len, "/lib/python3.") &&
	        !has(code->file, code->file_len, "-packages/")) ||
	       is_trio(r, part, code);
}

/* Compares the end of the name only: from 3.11 on, names are qualified. */
static bool is_named(const struct preload_code *code, const char *name)
{
	return ends_with(code->name, code->name_len, name);
}

bool calls_creates_task(const struct preload_code *code)
{
	return is_named(code, "create_task") || is_named(code, "ensure_future") ||
	       is_named(code, "spawn_impl");
}

bool calls_is_caller(const struct reader *r, const struct part *part,
                     const struct preload_code *code)
{
	return !code || !code->name || !calls_is_library(r, part, code) ||
	       (code->coroutine && !is_trio(r, part, code));
}

bool calls_is_trio_loop(const struct reader *r, const struct part *part,
                        const struct preload_code *code)
{
	return is_trio(r, part, code) && is_named(code, "unrolled_run");
}
