/* SPDX-License-Identifier: MIT */
#include "record/kept.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/vec.h"
#include "record/describe.h"
#include "record/notes.h"
#include "record/record.h"

static char **copy_command(char *const *command)
{
	struct {
		char **v;
		size_t n, alloc;
	} args = { 0 };

	for (; *command; command++)
		*vec_push(&args) = xstrdup(*command);
	*vec_push(&args) = NULL;
	return args.v;
}

static void add_note(struct session *session, const struct kept *kept, uint64_t kept_ns)
{
	CLEANUP(free)
	char *text = xasprintf(keep_is_short(kept->keep) ? NOTE_KEPT_SHORT : NOTE_KEPT,
	                       (double)kept_ns / (double)NS_PER_SECOND);

	session_add_note(session, "kept", 1, text);
}

int kept_session(const struct kept *kept, const char *dir, struct error *err)
{
	CLEANUP(session_free) struct session *session = describe_session(kept->python);
	CLEANUP(free) char *path = xasprintf("%s/stacks.samples", dir);
	char name[] = "stacks.samples";
	struct session_pass pass = {
		.kind = PASS_STACKS,
		.samples = name,
		.start_ns = keep_start_ns(kept->keep),
		.stop_ns = clock_now_ns(),
		.pid = (uint32_t)kept->pid,
	};

	pass.wall_ns = pass.stop_ns - pass.start_ns;
	session->command = copy_command(kept->command);
	session->no_children = true;
	session->releases_known = true;
	session->python_trace = xstrdup(python_trace_names[PYTHON_TRACE_NONE]);
	session_add_pass(session, &pass);
	add_note(session, kept, pass.wall_ns);
	if (keep_write(kept->keep, path, pass.stop_ns, err) < 0)
		return -1;
	return session_write(session, dir, err);
}
