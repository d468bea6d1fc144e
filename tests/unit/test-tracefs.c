/* SPDX-License-Identifier: MIT */
/* Why the kernel refused a probe: what error_log says of that command, not of another one. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "system/tracefs.h"
#include "tap.h"

#define COMMAND "p:giltracer_ours/take_gil /usr/bin/python3:0x10"

/* A folder without uprobe_events: any command is refused. */
static char dir[] = "/tmp/test-tracefs.XXXXXX";

static const char *refused(const char *command, const char *log)
{
	static struct error err;
	CLEANUP(free) char *path = xasprintf("%s/error_log", dir);
	FILE *out = fopen(path, "w");

	if (out) {
		fputs(log, out);
		fclose(out);
	}
	err = (struct error){ .code = 0 };
	tracefs_command(dir, command, &err);
	return err.text;
}

static void test_long(void)
{
	char command[400] = "p:giltracer_ours/take_gil /";
	CLEANUP(free) char *log = NULL;

	memset(command + strlen(command), 'x', sizeof(command) - 1 - strlen(command));
	log = xasprintf("[ 1.0] trace_uprobe: error: Too long\n  Command: %.255s\n  ^\n", command);
	ok(strstr(refused(command, log), "Too long"), "a command that the kernel has cut");
	command[254] = '\0';
	ok(!strstr(refused(command, log), "Too long"), "not one that is shorter than that");
}

int main(void)
{
	struct error ignored;

	if (!mkdtemp(dir))
		return 99;
	ok(strstr(refused(COMMAND, "[ 1.0] trace_uprobe: error: Its reason\n"
	                           "  Command: " COMMAND "\n"
	                           "           ^\n"
	                           "[ 2.0] trace_uprobe: error: Of another\n"
	                           "  Command: p:other/one /x:0x1\n"
	                           "           ^\n"),
	          "(the kernel says: Its reason)"),
	   "the reason is that of our command, not the last one");
	ok(strstr(refused(COMMAND, "[ 1.0] trace_uprobe: error: Before\n"
	                           "  Command: " COMMAND "\n"
	                           "[ 2.0] trace_uprobe: error: Now\n"
	                           "  Command: " COMMAND "\n"),
	          "(the kernel says: Now)"),
	   "the last one of several");
	ok(!strstr(refused(COMMAND, "[ 1.0] trace_uprobe: error: Of another\n"
	                            "  Command: " COMMAND "0\n"
	                            "[ 2.0] trace_uprobe: error: Of another\n"
	                            "  Command: p:giltracer_ours/take_gil\n"
	                            "[ 3.0] trace_uprobe: error: Cut"),
	           "kernel says"),
	   "no reason if there is none of it");
	test_long();
	file_remove_tree(dir, &ignored);
	return done_testing();
}
