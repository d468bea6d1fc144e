/* SPDX-License-Identifier: MIT */
/* RFC 4180: one line per state of a thread, of the GIL and of the CPU. */
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/utf8.h"
#include "export/export.h"
#include "export/walk.h"

struct csv {
	FILE *out;
	const struct analysis *a;
};

/* A spreadsheet takes a cell that begins like this for a formula. */
static bool is_formula(char first)
{
	return first && strchr("=+-@", first);
}

/* Quoted; unsafe characters, lines and tabs among them, are '?'. */
static void put_text(FILE *out, const char *text)
{
	CLEANUP(str_done) struct str cell = { 0 };
	uint32_t cp;

	if (is_formula(*text))
		str_addc(&cell, '\'');
	while ((cp = utf8_next(&text))) {
		if (cp == '"')
			str_addc(&cell, '"');
		utf8_add(&cell, utf8_is_unsafe(cp) ? '?' : cp);
	}
	fprintf(out, "\"%s\"", str_get(&cell));
}

static void put_function(struct csv *c, uint32_t frame)
{
	struct function f = function_at(c->a->pass, frame);

	put_text(c->out, f.name ? f.name : "");
	putc_unlocked(',', c->out);
	put_text(c->out, f.file);
	if (f.line)
		fprintf(c->out, ",%" PRIu32, f.line);
	else
		putc_unlocked(',', c->out);
}

/* Numbers of what is not known are empty. */
static void put_cpu(struct csv *c, const struct walk_span *span)
{
	if (span->lane == WALK_CPU && span->state == CPU_RUNNING && span->span->cpu.number >= 0)
		fprintf(c->out, ",%d", span->span->cpu.number);
	else
		putc_unlocked(',', c->out);
}

static void put_span(void *data, const struct walk_span *span)
{
	struct csv *c = data;
	const struct model *model = c->a->model;
	const struct model_thread *t = &model->threads.v[span->thread];

	fprintf(c->out, "%" PRIu32 ",%" PRIu32 ",", t->pid, t->tid);
	put_text(c->out, facts_thread_name(c->a->pass, span->thread));
	fprintf(c->out, ",%s,\"%s\",%" PRIu64 ",%" PRIu64 ",",
	        span->lane == WALK_GIL ? "gil" : "cpu", walk_state_name(span->lane, span->state),
	        span->start_ns, span->end_ns - span->start_ns);
	if (span->holder != MODEL_NONE)
		fprintf(c->out, "%" PRIu32, model->threads.v[span->holder].tid);
	putc_unlocked(',', c->out);
	put_function(c, span->lane == WALK_GIL ? span->span->gil.frame : 0);
	put_cpu(c, span);
	fputs("\r\n", c->out);
}

int export_csv(const struct analysis *a, FILE *out, struct error *err)
{
	static const struct walk_ops ops = { .span = put_span };
	struct csv c = { .out = out, .a = a };

	(void)err;
	fputs("pid,tid,thread,lane,state,start_ns,duration_ns,holder_tid,function,file,line,"
	      "cpu\r\n",
	      out);
	walk(a, &ops, &c);
	return 0;
}
