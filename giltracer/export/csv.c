/* SPDX-License-Identifier: MIT */
/* RFC 4180: one line per state of a thread, of the GIL and of the CPU. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/walk.h"
#include "trace/stacks.h"

/* @thread: the thread of the cells in prefix; @functions: cells by frame, NULL: not made yet */
struct csv {
	FILE *out;
	const struct analysis *a;
	uint32_t thread;
	struct str prefix;
	char **functions;
};

/* Whether a spreadsheet would interpret the cell as a formula. In Japanese, it takes the full-width
 * forms of the signs for the signs. */
static bool is_formula(uint32_t first)
{
	if (first >= 0xff01 && first <= 0xff5e)
		first -= 0xff01 - '!';
	return first == '=' || first == '+' || first == '-' || first == '@';
}

/* Quoted; unsafe characters, including newlines and tabs, become '?'. */
static void add_text(struct str *line, const char *text)
{
	const char *first = text;
	uint32_t cp;

	str_addc(line, '"');
	if (is_formula(utf8_next(&first)))
		str_addc(line, '\'');
	while ((cp = utf8_next(&text))) {
		if (cp == '"')
			str_addc(line, '"');
		utf8_add(line, utf8_is_unsafe(cp) ? '?' : cp);
	}
	str_addc(line, '"');
}

/* Unknown numbers are empty cells. */
static char *make_function(const struct csv *c, uint32_t frame)
{
	struct function f = function_at(c->a->pass, frame);
	struct str cells = { 0 };

	add_text(&cells, f.name ? f.name : "");
	str_addc(&cells, ',');
	add_text(&cells, f.file);
	str_addc(&cells, ',');
	if (f.line)
		str_addf(&cells, "%" PRIu32, f.line);
	return str_take(&cells);
}

static const char *function_cells(struct csv *c, uint32_t frame)
{
	if (!c->functions[frame])
		c->functions[frame] = make_function(c, frame);
	return c->functions[frame];
}

static const char *thread_cells(struct csv *c, uint32_t thread)
{
	const struct model_thread *t = &c->a->model->threads.v[thread];

	if (c->thread == thread)
		return str_get(&c->prefix);
	c->thread = thread;
	str_done(&c->prefix);
	str_addf(&c->prefix, "%" PRIu32 ",%" PRIu32 ",", t->pid, t->tid);
	add_text(&c->prefix, facts_thread_name(c->a->pass, thread));
	return str_get(&c->prefix);
}

static void put_number(FILE *out, uint64_t value)
{
	char digits[21], *end = digits + sizeof(digits), *at = end;

	*--at = ',';
	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	fwrite_unlocked(at, 1, (size_t)(end - at), out);
}

static void put_span(void *data, const struct walk_span *span)
{
	struct csv *c = data;
	const struct model *model = c->a->model;
	bool gil = span->lane == WALK_GIL;

	fputs_unlocked(thread_cells(c, span->thread), c->out);
	fputs_unlocked(gil ? ",gil,\"" : ",cpu,\"", c->out);
	fputs_unlocked(walk_state_name(span->lane, span->state), c->out);
	fputs_unlocked("\",", c->out);
	put_number(c->out, span->start_ns);
	put_number(c->out, span->end_ns - span->start_ns);
	if (span->holder != MODEL_NONE)
		put_number(c->out, model->threads.v[span->holder].tid);
	else
		putc_unlocked(',', c->out);
	fputs_unlocked(function_cells(c, gil ? span->span->gil.frame : 0), c->out);
	if (!gil && span->state == CPU_RUNNING && span->span->cpu.number >= 0)
		fprintf(c->out, ",%d\r\n", span->span->cpu.number);
	else
		fputs_unlocked(",\r\n", c->out);
}

int export_csv(const struct analysis *a, FILE *out, struct error *err)
{
	static const struct walk_ops ops = { .span = put_span };
	const struct stacks *frames = functions_frames(a->pass);
	uint32_t n = frames ? stacks_count(frames) : 1;
	struct csv c = { .out = out, .a = a, .thread = MODEL_NONE };

	(void)err;
	c.functions = xcalloc(n, sizeof(*c.functions));
	fputs("pid,tid,thread,lane,state,start_ns,duration_ns,holder_tid,function,file,line,"
	      "cpu\r\n",
	      out);
	walk(a, &ops, &c);
	for (uint32_t i = 0; i < n; i++)
		free(c.functions[i]);
	free(c.functions);
	str_done(&c.prefix);
	return 0;
}
