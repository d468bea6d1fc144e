/* SPDX-License-Identifier: MIT */
/* Reads and writes the text files of tracefs; for their format see the kernel's
 * Documentation/trace/uprobetracer.rst. */
#include "system/tracefs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

#define PREFIX     "giltracer_"
#define EVENTS_MAX (16u << 20)

/* Five seconds in total: the kernel closes the events of one perf after another. */
#define BUSY_TRIES   500
#define BUSY_WAIT_NS 10000000

/* Lines of error_log. Before 5.17, the kernel truncates longer commands. */
#define LOG_ERROR       "trace_uprobe: error: "
#define LOG_COMMAND     "  Command: "
#define LOG_COMMAND_MAX 255

/* With AT_EACCESS, because plain access() ignores capabilities that were given to an ordinary
 * user. */
static int may_access(const char *path, int how)
{
	return faccessat(AT_FDCWD, path, how, AT_EACCESS);
}

static bool has_uprobes(const char *root)
{
	CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);

	return may_access(path, F_OK) == 0;
}

/* Sets *ret and returns true if the mount table has a tracefs with uprobes. */
static bool find_mounted(char **ret)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	bool found = false;

	if (!mounts)
		return false;
	while (!found && (entry = getmntent(mounts))) {
		if (strcmp(entry->mnt_type, "tracefs") != 0 || !has_uprobes(entry->mnt_dir))
			continue;
		*ret = xstrdup(entry->mnt_dir);
		found = true;
	}
	endmntent(mounts);
	return found;
}

int tracefs_find(char **ret, struct error *err)
{
	static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

	const char *other = secure_getenv("GILTRACER_TRACEFS");

	if (other && *other) {
		*ret = xstrdup(other);
		return 0;
	}
	/* These are tried first, because a folder that we may not search looks empty even if it
	 * is not. */
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		if (has_uprobes(places[i])) {
			*ret = xstrdup(places[i]);
			return 0;
		}
	if (find_mounted(ret))
		return 0;
	if (may_access("/sys/kernel/tracing/.", X_OK) < 0 && errno == EACCES)
		return error_set(err, EACCES, "/sys/kernel/tracing: cannot be read by this user");
	return error_set(err, ENOENT, "tracefs with uprobe_events is not mounted");
}

/* Matches exactly our own pattern: other tools may start a group with "giltracer_", too. */
static bool tracefs_is_our_group(const char *group)
{
	const char *build = group + strlen(PREFIX), *hash;

	if (!str_has_prefix(group, PREFIX))
		return false;
	hash = strchr(build, '_');
	if (!hash || hash == build || (size_t)(hash - build) > 12)
		return false;
	for (const char *s = build; s < hash; s++)
		if (!isdigit((unsigned char)*s) && !islower((unsigned char)*s))
			return false;
	if (strspn(++hash, "0123456789abcdef") != 6)
		return false;
	/* The suffix of a container, see uprobes.h. */
	return !hash[6] || (str_has_prefix(hash + 6, "_c") && strlen(hash + 8) == 6 &&
	                    strspn(hash + 8, "0123456789abcdef") == 6);
}

/* "p:GROUP/EVENT PATH:0xOFFSET ARGS" */
static bool parse_line(struct tracefs_probe *ret, const char *line)
{
	const char *group = line + 2, *slash, *space, *colon;

	if ((line[0] != 'p' && line[0] != 'r') || line[1] != ':')
		return false;
	slash = strchr(group, '/');
	space = slash ? strchr(slash, ' ') : NULL;
	colon = space ? strstr(space, ":0x") : NULL;
	if (!colon)
		return false;
	ret->group = xstrndup(group, (size_t)(slash - group));
	if (!tracefs_is_our_group(ret->group)) {
		free(ret->group);
		return false;
	}
	ret->line = xstrdup(line);
	ret->event = xstrndup(slash + 1, (size_t)(space - slash - 1));
	ret->path = xstrndup(space + 1, (size_t)(colon - space - 1));
	return true;
}

int tracefs_read_probes(struct tracefs_probes *ret, const char *root, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);
	CLEANUP(free) char *text = NULL;
	char *rest, *line;

	*ret = (struct tracefs_probes){ 0 };
	if (file_read(&text, NULL, path, EVENTS_MAX, err) < 0)
		return -1;
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		struct tracefs_probe probe;

		if (parse_line(&probe, line))
			*vec_push(&ret->v) = probe;
	}
	return 0;
}

void tracefs_probes_done(struct tracefs_probes *probes)
{
	for (size_t i = 0; i < probes->v.n; i++) {
		free(probes->v.v[i].line);
		free(probes->v.v[i].group);
		free(probes->v.v[i].event);
		free(probes->v.v[i].path);
	}
	vec_done(&probes->v);
}

/* Whether a line of error_log names this command. */
static bool is_about(const char *line, const char *command)
{
	size_t len;

	if (!str_has_prefix(line, LOG_COMMAND))
		return false;
	line += strlen(LOG_COMMAND);
	len = strcspn(line, "\n");
	return !strncmp(line, command, len) && (!command[len] || len == LOG_COMMAND_MAX);
}

/* Adds the kernel's explanation: the last "error: …" about our command in error_log, which exists
 * since 5.2 and also contains commands of other programs. */
static void explain(const char *root, const char *command, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/error_log", root);
	CLEANUP(free) char *text = NULL;
	char *at = NULL, *next;
	struct error ignored;

	if (file_read(&text, NULL, path, EVENTS_MAX, &ignored) < 0)
		return;
	for (next = text; (next = strstr(next, LOG_ERROR));) {
		char *end;

		next += strlen(LOG_ERROR);
		end = strchr(next, '\n');
		if (end && is_about(end + 1, command))
			at = next;
	}
	if (!at)
		return;
	at[strcspn(at, "\n")] = '\0';
	error_set(err, err->code, "%s (the kernel says: %s)", strerror(err->code), at);
}

int tracefs_command(const char *root, const char *command, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);
	struct error why;

	if (file_write_control(path, command, 1, &why) == 0)
		return 0;
	if (why.code == EINVAL || why.code == ENOENT)
		explain(root, command, &why);
	return error_set(err, why.code, "probe '%s': %s", command, why.text);
}

int tracefs_remove(const char *root, const char *group, const char *event, bool wait,
                   struct error *err)
{
	CLEANUP(free) char *command = xasprintf("-:%s/%s", group, event);
	const struct timespec pause = { .tv_nsec = BUSY_WAIT_NS };

	for (unsigned i = 0; i < BUSY_TRIES; i++) {
		CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);

		if (file_write_control(path, command, 1, err) == 0 || err->code == ENOENT)
			return 0;
		if (err->code != EBUSY || !wait)
			break;
		nanosleep(&pause, NULL);
	}
	return error_prefix(err, "cannot remove probe %s/%s", group, event);
}

bool tracefs_can_install(const char *root)
{
	CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);

	return may_access(path, W_OK) == 0;
}

bool tracefs_is_read_only(const char *root)
{
	CLEANUP(free) char *path = xasprintf("%s/uprobe_events", root);

	return may_access(path, W_OK) < 0 && errno == EROFS;
}

bool tracefs_has_event(const char *root, const char *group, const char *event)
{
	CLEANUP(free) char *path = xasprintf("%s/events/%s/%s/id", root, group, event);

	return may_access(path, R_OK) == 0;
}
