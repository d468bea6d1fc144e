/* SPDX-License-Identifier: MIT */
/* Prints records as text. */
#include "print.h"

#include <inttypes.h>

#include "base/utf8.h"
#include "perfdata/features.h"

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Writes runs, not single characters, because stacks contain a lot of text. */
void print_quoted(FILE *out, const char *text, size_t len)
{
	size_t i = 0, run;

	fputc('"', out);
	while (i < len && text[i]) {
		for (run = i; run < len && is_plain((unsigned char)text[run]);)
			run++;
		fwrite(text + i, 1, run - i, out);
		i = run;
		if (i < len && text[i])
			fprintf(out, "\\x%02x", (unsigned char)text[i++]);
	}
	fputc('"', out);
}

static void print_bytes(FILE *out, const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", p[i]);
}

static void print_identity(FILE *out, const struct sample *s)
{
	fprintf(out, " %" PRIu64 ".%09" PRIu64 " %" PRIu32 "/%" PRIu32 " cpu=%" PRId32,
	        s->time_ns / 1000000000, s->time_ns % 1000000000, s->pid, s->tid, s->cpu);
}

static void print_field(FILE *out, const struct tracefmt_field *field, const struct cursor *raw)
{
	struct cursor at = *raw;
	const uint8_t *p;
	const char *text;
	size_t len;
	uint64_t v;

	utf8_fprintf(out, " %s=", field->name);
	text = tracefmt_text(field, raw, &len);
	cursor_skip(&at, field->offset);
	if (text && (field->kind == TRACEFMT_CHARS || field->text))
		print_quoted(out, text, len);
	else if (field->kind == TRACEFMT_NUMBER &&
	         cursor_number_at(raw, field->offset, field->size, field->sign, &v))
		fprintf(out, field->sign ? "%" PRId64 : "%" PRIu64, v);
	else if ((p = cursor_bytes(&at, field->size)))
		print_bytes(out, p, field->size);
	else
		fputc('?', out);
}

static void print_raw(FILE *out, const struct tracefmt *format, const struct cursor *raw)
{
	for (size_t i = 0; format && i < format->fields.n; i++)
		if (strncmp(format->fields.v[i].name, "common_", 7) != 0)
			print_field(out, &format->fields.v[i], raw);
	if (!format && cursor_left(raw))
		fprintf(out, " raw=%zu", cursor_left(raw));
}

static void print_sample(FILE *out, const struct perf_header *h, const struct perfdata_record *rec)
{
	uint32_t index = header_event_of(h, true, &rec->body);
	const struct header_event *e;
	struct sample s;

	if (index == UINT32_MAX) {
		fputs(" of no known event", out);
		return;
	}
	e = &h->events.v[index];
	if (!sample_decode(&s, &e->layout, rec->body)) {
		utf8_fprintf(out, " %s cut", e->name);
		return;
	}
	print_identity(out, &s);
	utf8_fprintf(out, " %s", e->name);
	print_raw(out, e->format, &s.raw);
	if (e->attr.type != PERF_TYPE_TRACEPOINT)
		fprintf(out, " ip=%#" PRIx64 " period=%" PRIu64, s.ip, s.period);
	if (cursor_left(&s.callchain))
		fprintf(out, " callchain=%zu", cursor_left(&s.callchain) / 8);
	if (cursor_left(&s.regs))
		fprintf(out, " regs=%zu", cursor_left(&s.regs) / 8);
	if (cursor_left(&s.stack))
		fprintf(out, " stack=%zu", cursor_left(&s.stack));
}

static void print_text(FILE *out, const char *key, struct cursor *c)
{
	size_t len;
	const char *text = cursor_text_field(c, cursor_left(c), &len);

	fprintf(out, " %s=", key);
	print_quoted(out, text, len);
}

static void print_task(FILE *out, struct cursor *c)
{
	uint32_t pid = cursor_u32(c), ppid = cursor_u32(c), tid = cursor_u32(c),
		 ptid = cursor_u32(c);

	fprintf(out, " of %" PRIu32 "/%" PRIu32 " parent=%" PRIu32 "/%" PRIu32, pid, tid, ppid,
	        ptid);
	cursor_skip(c, 8);
}

static void print_mmap(FILE *out, const struct perfdata_record *rec, struct cursor *c)
{
	uint32_t pid = cursor_u32(c), tid = cursor_u32(c);
	uint64_t addr = cursor_u64(c), len = cursor_u64(c), pgoff = cursor_u64(c);

	fprintf(out, " of %" PRIu32 "/%" PRIu32 " %#" PRIx64 "+%#" PRIx64 " pgoff=%#" PRIx64, pid,
	        tid, addr, len, pgoff);
	if (rec->type == PERF_RECORD_MMAP2) {
		struct cursor id = cursor_sub(c, 24);
		uint8_t size = cursor_u8(&id);

		cursor_skip(&id, 3);
		if (rec->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && size <= 20 && !id.bad) {
			fputs(" build-id=", out);
			print_bytes(out, id.p, size);
		}
		fprintf(out, " prot=%#" PRIx32, cursor_u32(c));
		fprintf(out, " flags=%#" PRIx32, cursor_u32(c));
	}
	print_text(out, "file", c);
}

static void print_lost(FILE *out, const struct perfdata_record *rec, struct cursor *c)
{
	if (rec->type == PERF_RECORD_LOST)
		fprintf(out, " id=%" PRIu64, cursor_u64(c));
	fprintf(out, " count=%" PRIu64, cursor_u64(c));
}

static void print_switch(FILE *out, const struct perfdata_record *rec, struct cursor *c)
{
	fputs(rec->misc & PERF_RECORD_MISC_SWITCH_OUT ? " out" : " in", out);
	if (rec->misc & PERF_RECORD_MISC_SWITCH_OUT &&
	    rec->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT)
		fputs(" preempt", out);
	if (rec->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		uint32_t pid = cursor_u32(c), tid = cursor_u32(c);

		fprintf(out, " other=%" PRIu32 "/%" PRIu32, pid, tid);
	}
}

static void print_kernel(FILE *out, const struct perf_header *h, const struct perfdata_record *rec)
{
	struct cursor c = rec->body;
	struct sample s;

	if (h->events.n) {
		const struct sample_layout *l = header_trailer_layout(h, &c);

		if (sample_decode_trailer(&s, l, &c)) {
			print_identity(out, &s);
			c.end -= l->trailer;
		}
	}
	switch (rec->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		print_mmap(out, rec, &c);
		break;
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		print_lost(out, rec, &c);
		break;
	case PERF_RECORD_COMM: {
		uint32_t pid = cursor_u32(&c), tid = cursor_u32(&c);

		fprintf(out, " of %" PRIu32 "/%" PRIu32 "%s", pid, tid,
		        rec->misc & PERF_RECORD_MISC_COMM_EXEC ? " exec" : "");
		print_text(out, "name", &c);
		break;
	}
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		print_task(out, &c);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		print_switch(out, rec, &c);
		break;
	default:
		break;
	}
	if (c.bad)
		fputs(" cut", out);
}

void print_record(FILE *out, const struct perf_header *header, const struct perfdata_record *rec)
{
	const char *name = perfdata_type_name(rec->type);

	fprintf(out, "%#" PRIx64, rec->offset);
	if (name)
		fprintf(out, " %s", name);
	else
		fprintf(out, " type-%" PRIu32, rec->type);
	if (rec->type == PERF_RECORD_SAMPLE)
		print_sample(out, header, rec);
	else if (rec->type < PERF_USER_START)
		print_kernel(out, header, rec);
	fprintf(out, " size=%u\n", rec->size);
}

static void print_string(FILE *out, const char *key, const char *text)
{
	if (!text)
		return;
	fprintf(out, "%s ", key);
	print_quoted(out, text, SIZE_MAX);
	fputc('\n', out);
}

static void print_features(FILE *out, const struct perf_header *h)
{
	fputs("features", out);
	for (unsigned i = 0; i < 256; i++) {
		if (!(h->features[i / 64] >> (i % 64) & 1))
			continue;
		if (header_feature_name(i))
			fprintf(out, " %s", header_feature_name(i));
		else
			fprintf(out, " feature-%u", i);
	}
	fputc('\n', out);
}

static void print_event_attr(FILE *out, const struct header_event *e)
{
	utf8_fprintf(out,
	             "event %s type=%" PRIu32 " config=%#" PRIx64 " sample_type=%#" PRIx64
	             " read_format=%#" PRIx64 " %s=%" PRIu64 " stack=%" PRIu32 "%s%s%s\n",
	             e->name, e->attr.type, (uint64_t)e->attr.config, (uint64_t)e->attr.sample_type,
	             (uint64_t)e->attr.read_format, e->attr.freq ? "freq" : "period",
	             (uint64_t)e->attr.sample_period, e->attr.sample_stack_user,
	             e->attr.sample_id_all ? " sample_id_all" : "",
	             e->attr.context_switch ? " context_switch" : "",
	             e->attr.type == PERF_TYPE_TRACEPOINT && !e->format ? " without a format" : "");
	if (e->attr.use_clockid)
		fprintf(out, "clockid %" PRId32 "\n", e->attr.clockid);
}

void print_header(FILE *out, const struct perf_header *h)
{
	fprintf(out, "layout %s\n", h->pipe ? "pipe" : "file");
	print_features(out, h);
	print_string(out, "hostname", h->hostname);
	print_string(out, "osrelease", h->osrelease);
	print_string(out, "version", h->version);
	print_string(out, "arch", h->arch);
	print_string(out, "cmdline", h->cmdline);
	if (h->cpus_available)
		fprintf(out, "cpus %" PRIu32 " online %" PRIu32 "\n", h->cpus_available,
		        h->cpus_online);
	for (size_t i = 0; i < h->events.n; i++)
		print_event_attr(out, &h->events.v[i]);
	fprintf(out, "ids %zu\n", h->ids.n);
	for (size_t i = 0; i < h->build_ids.n; i++) {
		fputs("build-id ", out);
		print_bytes(out, h->build_ids.v[i].id, h->build_ids.v[i].size);
		fputc(' ', out);
		print_quoted(out, h->build_ids.v[i].path, SIZE_MAX);
		fputc('\n', out);
	}
}
