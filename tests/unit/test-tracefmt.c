/* SPDX-License-Identifier: MIT */
/* Parsing the format of tracepoints and reading their fields. */
#include "perfdata/tracefmt.h"

#include "base/alloc.h"

#include "tap.h"

/* As in Linux 6.18, except for two fields that it does not have. */
static const char sched_switch[] =
	"name: sched_switch\nID: 372\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
	"\n"
	"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n"
	"\tfield:__data_loc char[] text;\toffset:40;\tsize:4;\tsigned:0;\n"
	"\tfield:__rel_loc char[] near;\toffset:44;\tsize:4;\tsigned:0;\n"
	"\tfield:unsigned long args[2];\toffset:48;\tsize:16;\tsigned:0;\n"
	"\n"
	"print fmt: \"field:bogus\", REC->prev_comm\n";

static struct tracefmt *parse(const char *text)
{
	struct tracefmt *fmt = NULL;
	struct error err;

	return tracefmt_parse(&fmt, "sched", text, strlen(text), &err) < 0 ? NULL : fmt;
}

static void test_fields(void)
{
	CLEANUP(tracefmt_free) struct tracefmt *fmt = parse(sched_switch);
	const struct tracefmt_field *f;

	if (!ok(fmt != NULL, "a real format is parsed"))
		return;
	is_str(fmt->name, "sched_switch", "its name is known");
	is_str(fmt->group, "sched", "its group is known");
	is_u64(fmt->id, 372, "its id is known");
	ok(fmt->fields.n == 10, "all its fields are parsed, and not the code after them");
	f = tracefmt_find(fmt, "prev_pid");
	ok(f && f->offset == 24 && f->size == 4 && f->sign && f->kind == TRACEFMT_NUMBER,
	   "a number is parsed");
	f = tracefmt_find(fmt, "prev_comm");
	ok(f && f->kind == TRACEFMT_CHARS && f->size == 16 && f->text,
	   "a text of fixed size is parsed");
	f = tracefmt_find(fmt, "text");
	ok(f && f->kind == TRACEFMT_DYNAMIC && f->text, "a text of any size is parsed");
	f = tracefmt_find(fmt, "near");
	ok(f && f->kind == TRACEFMT_REL && f->text, "a text relative to its field is parsed");
	f = tracefmt_find(fmt, "args");
	ok(f && f->kind == TRACEFMT_BYTES, "an array of numbers is parsed");
	ok(!tracefmt_find(fmt, "prev") && !tracefmt_find(NULL, "x"),
	   "a missing field is not found");
}

static void test_values(void)
{
	CLEANUP(tracefmt_free) struct tracefmt *fmt = parse(sched_switch);
	uint8_t raw[80] = { 0 };
	const int32_t pid = -5;
	const uint32_t loc = 70 | 4U << 16, rel = 18 | 6U << 16, lie = 78 | 4U << 16;
	struct cursor c = cursor_make(raw, sizeof(raw));
	const char *text;
	size_t len;

	if (!fmt)
		return;
	memcpy(raw + 24, &pid, sizeof(pid));
	memcpy(raw + 8, "sixteen letters!", 16);
	memcpy(raw + 40, &loc, sizeof(loc));
	memcpy(raw + 44, &rel, sizeof(rel));
	memcpy(raw + 66, "near", 5);
	memcpy(raw + 70, "abc", 4);
	ok((int64_t)tracefmt_number(tracefmt_find(fmt, "prev_pid"), &c) == -5,
	   "the sign of a number is kept");
	is_u64(tracefmt_number(tracefmt_find(fmt, "prev_comm"), &c), 0, "a text is not a number");
	text = tracefmt_text(tracefmt_find(fmt, "prev_comm"), &c, &len);
	ok(text && len == 16, "a text can fill its field");
	text = tracefmt_text(tracefmt_find(fmt, "text"), &c, &len);
	ok(text && len == 3 && !memcmp(text, "abc", 3), "__data_loc is followed");
	text = tracefmt_text(tracefmt_find(fmt, "near"), &c, &len);
	ok(text && len == 6 && !memcmp(text, "nearab", 6), "__rel_loc is followed");
	memcpy(raw + 40, &lie, sizeof(lie));
	ok(!tracefmt_text(tracefmt_find(fmt, "text"), &c, &len) && !len,
	   "__data_loc is not followed beyond the data");
	ok(!tracefmt_text(tracefmt_find(fmt, "prev_pid"), &c, &len), "a number is not a text");
	c.end = raw + 26;
	is_u64(tracefmt_number(tracefmt_find(fmt, "prev_pid"), &c), 0, "a truncated number is 0");
}

static void test_nonsense(void)
{
	struct tracefmt *fmt = NULL;
	struct error err;
	const char *bad = "name: x\nformat:\n\tfield:int a;\toffset:z;\tsize:4;\n";

	ok(tracefmt_parse(&fmt, "g", bad, strlen(bad), &err) < 0,
	   "a field without an offset is refused");
	is_str(err.text, "event format of x: line 3 cannot be parsed", "the error names the line");
	ok(!parse("ID: 5\n"), "a format without a name is refused");
	ok(!parse("name: x\n\tfield:;\toffset:0;\tsize:4;\n"), "a field without a name is refused");
	ok(!parse("name: x\n\tfield:int a;\toffset:99999;\tsize:4;\n"),
	   "an offset out of range is refused");
	ok(tracefmt_parse(&fmt, "g", "name: x", 0, &err) < 0, "an empty format is refused");
}

int main(void)
{
	test_fields();
	test_values();
	test_nonsense();
	return done_testing();
}
