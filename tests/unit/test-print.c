/* SPDX-License-Identifier: MIT */
/* Events as text: every type, every flag, and the stack of a release. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "trace/names.h"
#include "trace/print.h"
#include "trace/stacks.h"

#include "tap.h"

static struct source source;

/* The event, and its stack; the caller frees it. */
static char *printed(struct event ev)
{
	char *text = NULL;
	size_t size;
	FILE *out = xmemstream(&text, &size);

	print_event(out, &source, &ev);
	print_event_stack(out, &source, &ev);
	fclose(out);
	return text;
}

static void test_flags(void)
{
	CLEANUP(free) char *plain = printed((struct event){ .type = EV_LOST });
	CLEANUP(free)
	char *part = printed((struct event){ .type = EV_LOST, .flags = EVF_NO_GIL });
	CLEANUP(free)
	char *gil = printed((struct event){ .type = EV_LOST, .flags = EVF_GIL_ONLY });

	ok(strstr(part, " no-gil\n"), "a loss of no events of the GIL: %s", part);
	ok(strstr(gil, " gil-only\n"), "a loss of those alone: %s", gil);
	for (uint16_t flag = 1; flag <= EVF_UNWRITTEN; flag = (uint16_t)(flag << 1)) {
		CLEANUP(free)
		char *text = printed((struct event){ .type = EV_LOST, .flags = flag });

		ok(strlen(text) > strlen(plain), "flag %#x has a word", flag);
	}
}

static void test_types(void)
{
	for (unsigned type = 0; type <= EV_MOVE; type++)
		ok(event_type_name(type) && strcmp(event_type_name(type), "?") != 0,
		   "type %u has a name", type);
}

static void test_release(void)
{
	const struct stack_frame frame = { .flags = STACK_PYTHON,
		                           .name = names_id(source.names, "work", 4),
		                           .module = names_id(source.names, "/x.py", 5),
		                           .line = 7 };
	struct event ev = { .type = EV_RELEASE,
		            .gil = { .address = 0x5000,
		                     .frame = stacks_id(source.frames, &frame) } };
	CLEANUP(free) char *text = printed(ev);

	ok(strstr(text, " gil=0x5000 "), "a release of a GIL");
	ok(strstr(text, "\n\t\"work\":7 \"/x.py\" python\n"), "and in which function");
}

int main(void)
{
	source.names = names_new();
	source.frames = stacks_new(source.names);
	test_types();
	test_flags();
	test_release();
	stacks_free(source.frames);
	names_free(source.names);
	return done_testing();
}
