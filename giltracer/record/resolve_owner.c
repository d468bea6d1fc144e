/* SPDX-License-Identifier: MIT */
/* Two processes in turn, each of which answers with a line of JSON. */
#include "record/resolve_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "locate/python.h"
#include "record/resolve.h"
#include "base/path_owner.h"
#include "system/stored_probes.h"

#define ANSWER_MAX (1u << 20)

/* A question that a process with a user's rights answers. Returns NULL, with err set, on
 * failure. */
struct question {
	json_t *(*answer)(const struct question *question, struct error *err);
	const char *wanted;
	const struct python *python;
	unsigned frames;
};

static void __attribute__((noreturn))
answer_in_child(const struct question *question, uid_t uid, gid_t gid, int fd)
{
	struct error err = { .code = EPERM, .text = "cannot become the owner of a file" };
	json_t *json = path_owner_become(uid, gid) ? question->answer(question, &err) : NULL;
	CLEANUP(free) char *text = NULL;

	if (!json)
		json = json_pack("{si ss}", "error", err.code, "text", err.text);
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	_exit(!text || write(fd, text, strlen(text)) != (ssize_t)strlen(text));
}

static void read_all(struct str *ret, int fd)
{
	char buf[4096];
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0 || (n < 0 && errno == EINTR))
		if (n > 0 && ret->len < ANSWER_MAX)
			str_addn(ret, buf, (size_t)n);
}

static json_t *parse(const struct str *text, struct error *err)
{
	json_t *json = json_loads(str_get(text), 0, NULL);
	const char *why = NULL;
	int code;

	if (!json_is_object(json)) {
		json_decref(json);
		error_set(err, EIO, "no answer from the process that looked for the probes");
		return NULL;
	}
	if (json_unpack(json, "{si ss}", "error", &code, "text", &why) == 0) {
		error_set(err, code, "%s", why);
		json_decref(json);
		return NULL;
	}
	return json;
}

static json_t *ask(const struct question *question, uid_t uid, struct error *err)
{
	CLEANUP(str_done) struct str text = { 0 };
	CLEANUP(close) int from = -1;
	CLEANUP(close) int to = -1;
	int fds[2];
	pid_t pid;
	gid_t gid = path_owner_group(uid);

	if (pipe2(fds, O_CLOEXEC) < 0) {
		error_errno(err, "pipe");
		return NULL;
	}
	from = fds[0];
	to = fds[1];
	pid = fork();
	if (pid < 0) {
		error_errno(err, "fork");
		return NULL;
	}
	if (pid == 0)
		answer_in_child(question, uid, gid, to);
	close(take_fd(&to));
	read_all(&text, from);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return parse(&text, err);
}

static json_t *answer_python(const struct question *question, struct error *err)
{
	CLEANUP(python_free) struct python *py = NULL;
	json_t *json;

	if (python_find(&py, question->wanted, err) < 0)
		return NULL;
	json = json_pack("{ss ss ss ss ss ss si si si sb sb}", "command", py->command, "executable",
	                 py->executable, "image", py->image, "library", py->library,
	                 "implementation", py->implementation, "version", py->version, "major",
	                 (int)py->major, "minor", (int)py->minor, "micro", (int)py->micro,
	                 "free_threaded", py->free_threaded, "debug", py->debug);
	if (!json)
		error_set(err, EILSEQ, "the interpreter has a path that is not UTF-8");
	return json;
}

static struct python *read_python(const json_t *json, struct error *err)
{
	CLEANUP(python_free) struct python *py = xcalloc(1, sizeof(*py));
	const char *text[6] = { "", "", "", "", "", "" };
	int number[3], free_threaded, debug;

	if (json_unpack((json_t *)(uintptr_t)json, "{ss ss ss ss ss ss si si si sb sb}", "command",
	                &text[0], "executable", &text[1], "image", &text[2], "library", &text[3],
	                "implementation", &text[4], "version", &text[5], "major", &number[0],
	                "minor", &number[1], "micro", &number[2], "free_threaded", &free_threaded,
	                "debug", &debug) < 0 ||
	    !str_has_prefix(text[3], "/")) {
		error_set(err, EINVAL, "unexpected answer from the interpreter");
		return NULL;
	}
	py->command = xstrdup(text[0]);
	py->executable = xstrdup(text[1]);
	py->image = xstrdup(text[2]);
	py->library = xstrdup(text[3]);
	py->implementation = xstrdup(text[4]);
	py->version = xstrdup(text[5]);
	py->major = (unsigned)number[0];
	py->minor = (unsigned)number[1];
	py->micro = (unsigned)number[2];
	py->free_threaded = free_threaded;
	py->debug = debug;
	return take(py);
}

static json_t *answer_probes(const struct question *question, struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = NULL;
	json_t *json;

	if (resolve_probes(&set, question->python, question->frames, err) < 0)
		return NULL;
	json = stored_probes_write(set);
	if (!json)
		error_set(err, EILSEQ, "the interpreter has a path that is not UTF-8");
	return json;
}

int resolve_as_owner(struct probe_set **ret, const char *wanted, unsigned frames, struct error *err)
{
	CLEANUP(probe_set_free) struct probe_set *set = NULL;
	CLEANUP(python_free) struct python *py = NULL;
	CLEANUP(free) char *command = NULL;
	struct question question = { .answer = answer_python, .frames = frames };
	json_auto_t *about = NULL;
	json_auto_t *probes = NULL;

	if (python_command(&command, wanted, err) < 0)
		return -1;
	question.wanted = command;
	about = ask(&question, path_owner(command), err);
	if (!about || !(py = read_python(about, err)))
		return -1;
	question.answer = answer_probes;
	question.python = py;
	probes = ask(&question, path_owner(py->library), err);
	if (!probes || stored_probes_read(&set, probes, err) < 0)
		return -1;
	if (strcmp(set->path, py->library) != 0)
		return error_set(err, EINVAL, "%s: the probes found are in another file",
		                 py->library);
	*ret = take(set);
	return 0;
}
