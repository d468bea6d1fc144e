/* SPDX-License-Identifier: MIT */
/* Checks every text, because each becomes part of a line of uprobe_events. */
#include "system/stored_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "binary/image.h"
#include "base/path_owner.h"
#include "system/tracefs.h"

#define EVENT_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define FETCH_CHARS EVENT_CHARS "=+-%@$():, \\[]"
#define PROBES_MAX  4096
#define FETCH_MAX   4096

json_t *stored_probes_write(const struct probe_set *set)
{
	const struct image_identity *id = &set->identity;
	json_t *probes = json_array();

	for (size_t i = 0; i < set->probes.n; i++) {
		const struct probe *p = &set->probes.v[i];

		json_array_append_new(probes, json_pack("{ss sI sb ss*}", "event", p->event,
		                                        "offset", (json_int_t)p->offset, "return",
		                                        p->ret, "fetch", p->fetch));
	}
	return json_pack("{ss ss ss ss sI sI sI sI si so}", "path", set->path, "python",
	                 set->python, "build_id", set->build_id, "group", set->group, "dev",
	                 (json_int_t)id->dev, "ino", (json_int_t)id->ino, "size",
	                 (json_int_t)id->size, "changed_ns", (json_int_t)id->changed_ns, "frames",
	                 (int)set->frames, "probes", probes);
}

static bool consists_of(const char *text, const char *chars)
{
	return text && *text && text[strspn(text, chars)] == '\0';
}

/* A path may contain any byte but a newline, which would end the line. */
static bool is_path(const char *text)
{
	return text && *text == '/' && !strchr(text, '\n');
}

static int read_probe(struct probe *ret, const json_t *json, struct error *err)
{
	const char *event = NULL, *fetch = NULL;
	json_int_t offset = -1;
	int is_return = 0;

	if (json_unpack((json_t *)(uintptr_t)json, "{ss sI sb s?s}", "event", &event, "offset",
	                &offset, "return", &is_return, "fetch", &fetch) < 0 ||
	    offset < 0 || !consists_of(event, EVENT_CHARS) ||
	    (fetch && (!consists_of(fetch, FETCH_CHARS) || strlen(fetch) > FETCH_MAX)))
		return error_set(err, EINVAL, "invalid probe");
	*ret = (struct probe){ .event = xstrdup(event),
		               .fetch = fetch ? xstrdup(fetch) : NULL,
		               .offset = (uint64_t)offset,
		               .ret = is_return };
	return 0;
}

int stored_probes_read(struct probe_set **ret, const json_t *json, struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = xcalloc(1, sizeof(*set));
	const char *path = NULL, *python = NULL, *build_id = NULL, *group = NULL;
	json_int_t dev, ino, size, changed_ns;
	json_t *probes = NULL, *probe;
	int frames = 0;
	size_t i;

	if (json_unpack((json_t *)(uintptr_t)json, "{ss ss ss ss sI sI sI sI si so}", "path", &path,
	                "python", &python, "build_id", &build_id, "group", &group, "dev", &dev,
	                "ino", &ino, "size", &size, "changed_ns", &changed_ns, "frames", &frames,
	                "probes", &probes) < 0 ||
	    !is_path(path) || !is_path(python) || !tracefs_is_our_group(group) ||
	    !json_is_array(probes) || !json_array_size(probes) ||
	    json_array_size(probes) > PROBES_MAX)
		return error_set(err, EINVAL, "invalid set of probes");
	set->path = xstrdup(path);
	set->python = xstrdup(python);
	set->build_id = xstrdup(build_id);
	set->group = xstrdup(group);
	set->frames = (unsigned)frames;
	set->identity = (struct image_identity){ (uint64_t)dev, (uint64_t)ino, (uint64_t)size,
		                                 (int64_t)changed_ns };
	json_array_foreach(probes, i, probe)
	{
		struct probe found;

		if (read_probe(&found, probe, err) < 0)
			return -1;
		*vec_push(&set->probes) = found;
	}
	*ret = take(set);
	return 0;
}

/* Runs in a child process: whether the file has this build id. */
static bool has_build_id(const char *path, const char *want)
{
	struct image image = { .fd = -1 };
	CLEANUP(free) char *got = NULL;
	struct error ignored;

	if (image_open(&image, path, &ignored) < 0)
		return false;
	got = image_build_id(&image);
	return got && !strcmp(got, want);
}

int stored_probes_verify(struct probe_set *set, struct error *err)
{
	struct image_identity now;
	uid_t owner = path_owner(set->path);
	gid_t group = path_owner_group(owner);
	int status = -1;
	pid_t pid;

	if (!image_identify(&now, set->path))
		return error_errno(err, "%s", set->path);
	/* Device numbers differ after a reboot. */
	set->identity.dev = now.dev;
	if (!image_identity_equal(&set->identity, &now))
		return error_set(err, ESTALE, "%s was replaced or changed: run giltracer setup",
		                 set->path);
	pid = fork();
	if (pid < 0)
		return error_errno(err, "fork");
	if (pid == 0)
		_exit(!path_owner_become(owner, group) || !has_build_id(set->path, set->build_id));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (status)
		return error_set(err, ESTALE, "%s is another build: run giltracer setup",
		                 set->path);
	return 0;
}
