/* SPDX-License-Identifier: MIT */
/* Runs the interpreter to identify it, then looks for the GIL in the files that it has mapped. */
#include "python/python.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/path_owner.h"
#include "base/str.h"
#include "binary/symbols.h"

#define MARK           "giltracer-answer:"
#define MARK_VIZTRACER "giltracer-viztracer:"
#define ANSWER_MAX     (1u << 20)
#define TIMEOUT_MS     30000
#define VERSION_SIZE   16

/* Every CPython, stripped or not, exports this from the file that contains the GIL. */
#define LANDMARK "PyEval_SaveThread"

/* Runs on any Python since 2.6, so that other interpreters can be refused by name. CPython 3 imports nothing
 * but os, because json and platform take as long as its own start. */
static const char ask_identity[] =
	"import sys\n"
	"sys.path[:] = [p for p in sys.path if p]\n"
	"import os\n"
	"if getattr(getattr(sys, 'implementation', None), 'name', '') == 'cpython':\n"
	" name = 'CPython'\n"
	" def text(of):\n"
	"  units = []\n"
	"  for c in map(ord, of):\n"
	"   units += [c] if c < 65536 else [0xd7c0 + (c >> 10), 0xdc00 + (c & 1023)]\n"
	"  return '\"' + ''.join(['\\\\u%04x' % u for u in units]) + '\"'\n"
	"else:\n"
	" import platform\n"
	" name = platform.python_implementation()\n"
	" from json import dumps as text\n"
	"try:\n"
	" maps = [l.rstrip('\\n').split(None, 5) for l in open('/proc/self/maps')]\n"
	"except Exception:\n"
	" maps = []\n"
	"files = []\n"
	"for m in maps:\n"
	" if len(m) == 6 and 'x' in m[1] and m[5].startswith('/') and m[5] not in files:\n"
	"  files.append(m[5])\n"
	"free_threaded = 't' in getattr(sys, 'abiflags', '')\n"
	"os.write(1, ('" MARK "{'\n"
	" '\"executable\":' + text(sys.executable or '') + ',"
	"\"image\":' + text(os.readlink('/proc/self/exe')) + ',"
	"\"files\":[' + ','.join(map(text, files)) + '],"
	"\"implementation\":' + text(name) + ',"
	"\"version\":' + str(list(sys.version_info[:3])) + ',"
	"\"free_threaded\":' + str(free_threaded).lower() + ',"
	"\"debug\":' + str(hasattr(sys, 'gettotalrefcount')).lower() + '}\\n').encode())\n";

/* Prints the version of VizTracer or, if there is none, whether pip would refuse to install it here
 * (PEP 668). */
static const char ask_viztracer[] =
	"import os, sys\n"
	"sys.path[:] = [p for p in sys.path if p]\n"
	"try:\n"
	" import viztracer\n"
	" answer = '\"' + viztracer.__version__ + '\"'\n"
	"except Exception:\n"
	" mark = os.path.join(os.path.dirname(os.__file__), 'EXTERNALLY-MANAGED')\n"
	" managed = sys.prefix == sys.base_prefix and os.path.exists(mark)\n"
	" answer = 'true' if managed else 'false'\n"
	"print('" MARK_VIZTRACER "' + answer)\n";

static char *find_in_path(const char *name)
{
	const char *path = getenv("PATH");
	CLEANUP(free) char *copy = xstrdup(path ? path : "/usr/bin:/bin");
	char *rest = copy, *dir;
	struct stat st;

	while ((dir = strsep(&rest, ":"))) {
		CLEANUP(free) char *full = xasprintf("%s/%s", *dir ? dir : ".", name);

		if (access(full, X_OK) == 0 && stat(full, &st) == 0 && S_ISREG(st.st_mode))
			return take(full);
	}
	return NULL;
}

static char *find_default(void)
{
	const char *venv = getenv("VIRTUAL_ENV");
	char *found;

	if (venv && *venv) {
		CLEANUP(free) char *path = xasprintf("%s/bin/python", venv);

		if (access(path, X_OK) == 0)
			return take(path);
	}
	found = find_in_path("python3");
	return found ? found : find_in_path("python");
}

/* Makes path absolute, but keeps links: a virtual environment is a link. */
static char *make_absolute(char *path)
{
	CLEANUP(free) char *relative = path;
	char cwd[PATH_MAX];

	if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
		return take(relative);
	return xasprintf("%s/%s", cwd, path);
}

/* Reports errno, or the cause if errno alone would mislead. */
static void cannot_execute(const char *path, struct error *err)
{
	int code = errno;
	struct statvfs fs;

	if (code == EACCES && statvfs(path, &fs) == 0 && fs.f_flag & ST_NOEXEC)
		error_set(err, code,
		          "%s: its file system is mounted noexec, so nothing can be executed "
		          "there",
		          path);
	else
		error_set(err, code, "%s: %s", path, strerror(code));
}

int python_command(char **ret, const char *wanted, struct error *err)
{
	struct stat st;
	char *path;

	if (!wanted)
		path = find_default();
	else if (strchr(wanted, '/'))
		path = xstrdup(wanted);
	else
		path = find_in_path(wanted);
	if (!path)
		return error_set(err, ENOENT, "%s: not found in PATH",
		                 wanted ? wanted : "python3, python");
	if (stat(path, &st) < 0 || access(path, X_OK) < 0) {
		cannot_execute(path, err);
		free(path);
		return -1;
	}
	if (S_ISDIR(st.st_mode)) {
		error_set(err, EACCES, "%s: is a directory", path);
		free(path);
		return -1;
	}
	*ret = make_absolute(path);
	return 0;
}

/* The user who became root by sudo, pkexec or doas; 0: no other user. su does not record it. */
static uid_t asking_user(void)
{
	const char *sudo = getenv("SUDO_UID"), *pkexec = getenv("PKEXEC_UID");
	const char *uid = sudo && *sudo ? sudo : pkexec;
	const char *doas = getenv("DOAS_USER");
	const struct passwd *pw = doas && *doas ? getpwnam(doas) : NULL;

	if (uid && *uid)
		return (uid_t)strtoul(uid, NULL, 10);
	return pw ? pw->pw_uid : 0;
}

/* The user who runs the interpreter. Root must not run a file that a user may have made, so the
 * user who controls the file runs it. A file that only root controls is run by the user who became
 * root. */
static uid_t who_runs(const char *command)
{
	uid_t owner;

	if (geteuid() != 0)
		return 0;
	owner = path_owner(command);
	return owner ? owner : asking_user();
}

/* The folder in which root asks; NULL: the current one. pyenv's shims look there and above for the
 * version to start. Those of root must not take it from a file of others, unless root starts the
 * program there anyway. */
static const char *start_dir(bool to_run)
{
	char cwd[PATH_MAX];

	if (to_run || geteuid() != 0 || (getcwd(cwd, sizeof(cwd)) && path_is_roots(cwd)))
		return NULL;
	return "/";
}

/* argv[0] must be the command's path, because a virtual environment is found by it. */
static int run_python(struct captured *ret, const char *const *argv, bool no_errors,
                      const char *dir, struct error *err)
{
	return capture_run(ret,
	                   &(struct capture){
				   .argv = argv,
				   .no_input = true,
				   .no_errors = no_errors,
				   .max = ANSWER_MAX,
				   .timeout_ms = TIMEOUT_MS,
				   .as = who_runs(argv[0]),
				   .dir = dir,
			   },
	                   err);
}

/* The JSON after the last mark, because a wrapper may print other text first. */
static json_t *parse_answer(const char *text, const char *mark)
{
	const char *at = NULL, *next = text;

	while ((next = strstr(next, mark))) {
		next += strlen(mark);
		at = next;
	}
	return at ? json_loads(at, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY, NULL) : NULL;
}

/* Whether it is a Python without -I, which came with 3.4. -V imports nothing. */
static bool is_before_isolation(char version[VERSION_SIZE], const char *command)
{
	const char *const argv[] = { command, "-V", NULL };
	struct captured out;
	struct error ignored;
	unsigned major = 0, minor = 0;

	if (run_python(&out, argv, false, "/", &ignored) < 0)
		return false;
	if (sscanf(out.text, "Python %15[0-9.]", version) == 1)
		sscanf(version, "%u.%u", &major, &minor);
	free(out.text);
	return major == 2 || (major == 3 && minor < 4);
}

static int no_answer(const char *command, const struct captured *out, struct error *err)
{
	char version[VERSION_SIZE];

	if (out->late)
		return error_set(err, ETIMEDOUT, "%s: no answer in %u s", command,
		                 TIMEOUT_MS / 1000);
	if (out->endless)
		return error_set(err, EFBIG, "%s: endless output when asked its version", command);
	if (WIFSIGNALED(out->status))
		return error_set(err, ENOTSUP, "%s: died of signal %d when asked its version",
		                 command, WTERMSIG(out->status));
	if (is_before_isolation(version, command))
		return error_set(err, ENOTSUP,
		                 "%s is Python %s: giltracer needs CPython 3.6 or newer", command,
		                 version);
	return error_set(err, ENOTSUP, "%s: is not a Python interpreter", command);
}

static int cannot_run(const char *command, struct error *err)
{
	CLEANUP(free) char *part = NULL;
	uid_t uid = who_runs(command);
	struct stat st;

	if (!uid)
		return error_set(err, EACCES, "%s: cannot be executed", command);
	/* Whoever opened it while it had a name may be able to write to it. */
	if (stat(command, &st) == 0 && st.st_nlink == 0)
		return error_set(
			err, EACCES,
			"%s: an interpreter that exists in memory only, or was removed, is "
			"not executed by root, since other users may be able to change it: "
			"start it from its file",
			command);
	part = path_replaceable(command);
	if (part)
		return error_set(
			err, EACCES,
			"%s: other users can write to %s, so root executes the interpreter "
			"as user %u only, who may not execute it: chmod go-w %s",
			command, part, uid, part);
	return error_set(err, EACCES,
	                 "%s: cannot be executed as user %u, its owner or the caller of sudo",
	                 command, uid);
}

static int ask(json_t **ret, struct python *py, bool to_run, struct error *err)
{
	/* -I -S: the environment, the current folder and site-packages must not interfere. */
	const char *const argv[] = { py->command, "-IS", "-c", ask_identity, NULL };
	struct captured out;
	int failed = 0;

	if (run_python(&out, argv, true, start_dir(to_run), err) < 0)
		return err->code == EACCES || err->code == ENOEXEC ? cannot_run(py->command, err)
		                                                   : -1;
	*ret = parse_answer(out.text, MARK);
	if (!json_is_object(*ret)) {
		json_decref(*ret);
		*ret = NULL;
		failed = no_answer(py->command, &out, err);
	}
	free(out.text);
	return failed;
}

static char *json_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return xstrdup(text ? text : "");
}

static unsigned json_number(const json_t *array, size_t i)
{
	return (unsigned)json_integer_value(json_array_get(array, i));
}

static void read_identity(struct python *py, const json_t *answer)
{
	const json_t *version = json_object_get(answer, "version");

	py->executable = json_text(answer, "executable");
	py->image = json_text(answer, "image");
	py->implementation = json_text(answer, "implementation");
	py->major = json_number(version, 0);
	py->minor = json_number(version, 1);
	py->micro = json_number(version, 2);
	py->version = xasprintf("%u.%u.%u", py->major, py->minor, py->micro);
	py->free_threaded = json_is_true(json_object_get(answer, "free_threaded"));
	py->debug = json_is_true(json_object_get(answer, "debug"));
}

static int check_identity(const struct python *py, struct error *err)
{
	if (strcmp(py->implementation, "CPython") != 0)
		return error_set(err, ENOTSUP,
		                 "%s is %s %s: only CPython has the GIL that giltracer records",
		                 py->command, py->implementation, py->version);
	if (py->major != 3 || py->minor < 6)
		return error_set(err, ENOTSUP,
		                 "%s is Python %s: giltracer needs CPython 3.6 or newer",
		                 py->command, py->version);
	return 0;
}

static int find_library(struct python *py, const json_t *files, struct error *err)
{
	json_t *file;
	size_t i;

	json_array_foreach(files, i, file)
	{
		const char *path = json_string_value(file);
		CLEANUP(symbols_free) struct symbols *symbols = NULL;
		struct error ignored;

		if (!path || symbols_open_bare(&symbols, path, &ignored) < 0)
			continue;
		if (symbols_defines(symbols, LANDMARK)) {
			py->library = xstrdup(path);
			return 0;
		}
		if (symbols_check(symbols, err) < 0)
			return -1;
	}
	if (str_has_suffix(py->image, " (deleted)"))
		return error_set(err, ENOTSUP,
		                 "%s: %s: an interpreter that exists in memory only, or was "
		                 "replaced after its start, cannot be probed: start it from its "
		                 "file, or use --no-gil-detect",
		                 py->command, py->image);
	return error_set(err, ENOTSUP,
	                 "%s: neither %s nor a library it loads exports " LANDMARK
	                 ", so its GIL cannot be found",
	                 py->command, py->image);
}

int python_find(struct python **ret, const char *wanted, bool to_run, struct error *err)
{
	CLEANUP(python_free) struct python *py = xcalloc(1, sizeof(*py));
	json_auto_t *answer = NULL;

	/* The interpreter reads its mapped files there, and so does the kernel's list of probes. */
	if (access("/proc/self/maps", F_OK) < 0)
		return error_set(err, ENOTSUP,
		                 "/proc is not mounted, and nothing can be recorded without it: "
		                 "mount -t proc proc /proc");
	if (python_command(&py->command, wanted, err) < 0)
		return -1;
	if (ask(&answer, py, to_run, err) < 0)
		return -1;
	read_identity(py, answer);
	if (check_identity(py, err) < 0)
		return -1;
	if (find_library(py, json_object_get(answer, "files"), err) < 0)
		return -1;
	*ret = take(py);
	return 0;
}

/* The command may be a slow script, so the interpreter that it has started is asked. -P, since without it,
 * CPython 3.13 imports linecache from the current folder before it executes any text of -c. */
void python_find_viztracer(struct python *py, bool to_run)
{
	const bool safe = py->minor >= 11;
	const char *const argv[] = { py->executable, safe ? "-P" : "-c",
		                     safe ? "-c" : ask_viztracer, safe ? ask_viztracer : NULL,
		                     NULL };
	json_auto_t *answer = NULL;
	struct captured out;
	struct error ignored;

	if (py->viztracer || !*py->executable ||
	    run_python(&out, argv, true, start_dir(to_run), &ignored) < 0)
		return;
	answer = parse_answer(out.text, MARK_VIZTRACER);
	free(out.text);
	if (json_is_string(answer))
		py->viztracer = xstrdup(json_string_value(answer));
	py->managed = json_is_true(answer);
}

char *python_viztracer_advice(const struct python *python)
{
	if (python->minor < 10)
		return xstrdup("it needs Python 3.10 or newer");
	if (python->managed)
		return xasprintf("%s -m venv venv && venv/bin/pip install viztracer, and then "
		                 "--python venv/bin/python",
		                 python->command);
	return xasprintf("%s -m pip install viztracer", python->command);
}

void python_free(struct python *python)
{
	if (!python)
		return;
	free(python->command);
	free(python->executable);
	free(python->image);
	free(python->library);
	free(python->implementation);
	free(python->version);
	free(python->viztracer);
	free(python);
}
