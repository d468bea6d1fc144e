/* SPDX-License-Identifier: MIT */
/* giltracer check: what this host permits, what is missing, and the command that provides it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/opts.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cmd.h"
#include "system/host.h"
#include "system/perf_access.h"
#include "system/setup.h"
#include "python/probes.h"
#include "python/python.h"
#include "system/uprobes.h"
#include "record/library.h"
#include "record/record.h"
#include "session/temp_session.h"

enum verdict { OK, NOTE, MISSING };

/* Shared by the checks: each value is set by one of them and used by later ones. traceable: at least
 * one way to record GIL events works. */
struct host {
	const char *wanted;
	struct python *python;
	struct probe_set *set;
	struct perf_limits perf;
	bool traceable, library;
};

/* Prints one line, and below it how to get what is missing. */
static void say(enum verdict verdict, const char *what, const char *text, const char *fix)
{
	static const char *const words[] = { "ok", "note", "missing" };

	utf8_fprintf(stdout, "%-8s %-14s %s\n", words[verdict], what, text);
	if (fix)
		utf8_fprintf(stdout, "%-23s -> %s\n", "", fix);
}

static void check_surroundings(void)
{
	CLEANUP(free) char *text = sandbox_text();
	const char *name, *what_for;

	if (text)
		say(NOTE, "surroundings", text, NULL);
	for (size_t i = 0; geteuid() == 0 && sandbox_lacks(i, &name, &what_for); i++) {
		CLEANUP(free) char *lack = xasprintf("missing %s, which %s", name, what_for);

		say(NOTE, "capabilities", lack, NULL);
	}
}

static void check_perf(struct host *host)
{
	struct error err;

	if (perf_limits_find(&host->perf, &err) < 0) {
		say(MISSING, "perf", err.text, "apt-get install linux-perf");
		return;
	}
	say(OK, "perf", host->perf.version, NULL);
}

/* Optional permissions of perf: recording works without them, but shows less. */
static void check_tracepoints(const struct host *host)
{
	CLEANUP(free) char *fix = sandbox_remedy(true);

	if (!host->perf.version)
		return;
	if (host->perf.everybody)
		say(OK, "tracepoints", "of the whole machine: states, stacks and wake-ups", NULL);
	else if (host->perf.tracepoints)
		say(NOTE, "tracepoints",
		    "own programs only: which other programs used the CPUs is unknown", fix);
	else
		say(NOTE, "tracepoints",
		    "not permitted: why threads sleep and what wakes them is unknown", fix);
}

static void check_buffers(const struct host *host)
{
	bool short_of = host->perf.buffer_limited && host->perf.pool_bytes / 1024 < SETUP_MLOCK_KB;
	CLEANUP(free)
	char *fix = sandbox_container() ? xstrdup("outside of this container: docker or podman "
	                                          "run --cap-add IPC_LOCK (Kubernetes: "
	                                          "capabilities.add: IPC_LOCK)")
	                                : sandbox_remedy(false);
	CLEANUP(free)
	char *text = xasprintf("%" PRIu64 " KiB for each CPU%s", host->perf.buffer_bytes / 1024,
	                       host->perf.buffer_limited
	                               ? ", by kernel.perf_event_mlock_kb and ulimit -l, without "
	                                 "CAP_IPC_LOCK"
	                               : "");

	if (host->perf.version)
		say(short_of ? NOTE : OK, "ring buffers", text, short_of ? fix : NULL);
}

static void check_perf_open(void)
{
	CLEANUP(free) char *fix = sandbox_remedy(false);
	struct error err;

	if (perf_try_self(&err) < 0)
		say(MISSING, "perf events", err.text, fix);
	else
		say(OK, "perf events", "permitted for this user", NULL);
}

static void check_tracefs(void)
{
	CLEANUP(free) char *root = NULL;
	CLEANUP(free) char *fix = sandbox_remedy(true);
	CLEANUP(free) char *text = NULL;
	struct error err;

	if (tracefs_find(&root, &err) < 0) {
		say(geteuid() == 0 ? MISSING : NOTE, "tracefs", err.text, fix);
		return;
	}
	if (geteuid() == 0 && tracefs_is_read_only(root))
		text = xasprintf("%s: mounted read-only, probes cannot be installed here", root);
	else
		text = xstrdup(root);
	say(text[strlen(root)] ? NOTE : OK, "tracefs", text, NULL);
}

static void check_python(struct host *host)
{
	CLEANUP(free) char *text = NULL;
	struct error err;

	if (python_find(&host->python, host->wanted, false, &err) < 0) {
		say(MISSING, "python", err.text, "giltracer check --python PATH");
		return;
	}
	text = xasprintf("%s, CPython %s%s", host->python->command, host->python->version,
	                 host->python->free_threaded ? ", free-threaded: it has no GIL" : "");
	say(OK, "python", text, NULL);
}

static void check_functions(struct host *host)
{
	CLEANUP(free) char *text = NULL;
	struct error err;

	if (!host->python)
		return;
	if (resolve_probes(&host->set, host->python, FRAMEFETCH_DEFAULT, &err) < 0) {
		say(MISSING, "GIL functions", err.text, NULL);
		return;
	}
	text = xasprintf("%zu probes in %s%s%s", host->set->probes.n, host->set->path,
	                 host->set->note ? ": " : "", host->set->note ? host->set->note : "");
	say(host->set->note ? NOTE : OK, "GIL functions", text, NULL);
}

/* Installs the probes if needed, opens one, and removes them, as recording does. */
static void check_uprobes(struct host *host)
{
	CLEANUP(uprobes_release) struct uprobes *uprobes = NULL;
	CLEANUP(free) char *fix = sandbox_remedy(true);
	struct error err;

	if (!host->set)
		return;
	if (uprobes_prepare(host->set, &uprobes, &err) < 0 || uprobes_try(uprobes, &err) < 0) {
		say(geteuid() == 0 ? MISSING : NOTE, "uprobes", err.text, fix);
		return;
	}
	say(OK, "uprobes", "this user can install and record them", NULL);
	host->traceable |= host->perf.version != NULL;
}

/* Without the library, only uprobes remain; with it, the GIL can be recorded without them. */
static void check_preload(struct host *host)
{
	struct preloading preloading = { 0 };
	struct error err;

	if (!host->python)
		return;
	if (preloading_check(&preloading, host->python, &err) < 0)
		say(NOTE, "preload", err.text, NULL);
	else
		say(OK, "preload",
		    "GIL events by a preloaded library, without perf (--probes preload)", NULL);
	host->library = preloading.library != NULL;
	host->traceable |= host->library;
	preloading_done(&preloading);
}

static void check_viztracer(const struct host *host)
{
	CLEANUP(free) char *fix = NULL;

	if (!host->python)
		return;
	python_find_viztracer(host->python, false);
	if (host->python->viztracer) {
		say(OK, "VizTracer", host->python->viztracer, NULL);
		return;
	}
	if (host->library) {
		say(OK, "VizTracer", "not installed: only --python-trace viztracer needs it", NULL);
		return;
	}
	fix = python_viztracer_advice(host->python);
	say(NOTE, "VizTracer", "not installed: reports have no Python calls", fix);
}

static void check_strays(void)
{
	CLEANUP(uprobe_groups_done) struct uprobe_groups groups = { 0 };
	struct error ignored;

	if (uprobes_list(&groups, &ignored) < 0)
		return;
	for (size_t i = 0; i < groups.groups.n; i++) {
		const struct uprobe_group *group = &groups.groups.v[i];
		CLEANUP(free)
		char *text = xasprintf("%s: %zu in %s", group->name, group->probes, group->path);

		if (group->foreign)
			say(NOTE, "others' probes", text,
			    "installed by giltracer in another container; if that has ended, the "
			    "next run as root removes them");
		else if (uprobe_group_is_stray(group))
			say(NOTE, "stray probes", text,
			    "sudo giltracer setup --undo; the next run as root removes them too");
	}
}

static void check_sessions(void)
{
	CLEANUP(temp_session_dead_done) struct temp_session_dead dead = { 0 };

	temp_session_find_dead(&dead);
	for (size_t i = 0; i < dead.paths.n; i++)
		say(NOTE, "stray session", dead.paths.v[i], "the next run removes it");
}

static int check_run(int argc, char **argv, struct error *err)
{
	struct host host = { 0 };
	bool help = false;
	const struct opt opts[] = {
		OPT_STR(0, "python", "PATH", &host.wanted, "the interpreter to check for"),
		OPT_FLAG('h', "help", &help, "show this help"),
		OPT_END,
	};
	int go_on = cmd_options(&cmd_check, opts, &help, argc, argv, err);

	if (go_on <= 0)
		return go_on;
	check_strays();
	check_sessions();
	check_surroundings();
	check_perf(&host);
	check_python(&host);
	check_functions(&host);
	check_perf_open();
	check_tracefs();
	check_uprobes(&host);
	check_tracepoints(&host);
	check_buffers(&host);
	check_preload(&host);
	check_viztracer(&host);
	perf_limits_done(&host.perf);
	probe_set_free(host.set);
	python_free(host.python);
	return !host.traceable;
}

const struct cmd cmd_check = {
	.name = "check",
	.usage = "[OPTION]...",
	.summary = "show what this host permits, what is missing and how to get it",
	.run = check_run,
};
