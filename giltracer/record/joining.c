/* SPDX-License-Identifier: MIT */
#include "record/joining.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "live/remote_exec.h"
#include "live/target.h"
#include "preload/format.h"
#include "record/preloading.h"
#include "session/temp_session.h"

#define LOOK_EVERY_MS 5

/* For a script that has begun: it imports a library, and needs the GIL for that. */
#define BEGUN_TIMEOUT_MS 10000

#define WHY_MAX 4096

/* The layout of struct _gil_runtime_state in 3.14, as in preload/join.c: interval, last_holder,
 * locked, switch_number, and two pairs of condition and mutex. */
#define GIL_HOLDER 8
#define GIL_LOCKED 16
#define GIL_SIZE   (32 + 2 * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t)))

/*
 * What the program executes. The library is not an extension module, so its import fails; the
 * exception carries the function to call. The script prints nothing and leaves no name in the
 * program.
 */
static const char script[] =
	"def giltracer(library, folder):\n"
	"    import sys\n"
	"    class Spec:\n"
	"        name = 'giltracer_join'\n"
	"        origin = library.decode('utf-8', 'surrogateescape')\n"
	"    try:\n"
	"        sys.modules['_imp'].create_dynamic(Spec)\n"
	"    except ImportError as e:\n"
	"        why = str(e) if e.args and isinstance(e.args[0], str) else e.args[0](folder)\n"
	"    if why:\n"
	"        with open(folder + b'/refused', 'w') as file:\n"
	"            file.write(why)\n"
	"try:\n"
	"    giltracer(b'%s', b'%s')\n"
	"except KeyboardInterrupt:\n"
	"    __import__('_thread').interrupt_main()\n"
	"except Exception:\n"
	"    pass\n";

static int find(struct remote_exec *ret, const struct target *target, struct error *err)
{
	const uint32_t *at = target->def->memory;

	if (remote_exec_find(ret, target, err) < 0)
		return -1;
	if (at[MEMORY_GIL_SIZE] != GIL_SIZE || at[MEMORY_HOLDER] != GIL_HOLDER ||
	    at[MEMORY_LOCKED] != GIL_LOCKED)
		return error_set(err, ENOTSUP, "the library does not support the GIL of Python %s",
		                 target->process.python->version);
	return 0;
}

int joining_check(const struct target *target, struct error *err)
{
	struct remote_exec ignored;

	return find(&ignored, target, err);
}

/* Quoted as in a bytes literal. */
static char *quoted(const char *path)
{
	struct str out = { 0 };

	for (; *path; path++)
		str_addf(&out, "\\x%02x", (unsigned char)*path);
	return str_take(&out);
}

static int write_script(const struct preloading *p, const char *path, struct error *err)
{
	CLEANUP(free) char *library = quoted(p->library);
	CLEANUP(free) char *folder = quoted(p->folder);
	CLEANUP(fclose) FILE *out = fopen(path, "we");

	if (!out || fprintf(out, script, library, folder) < 0 || fflush(out) != 0)
		return error_errno(err, "%s", path);
	return 0;
}

/* Returns 1 if the library records, 0 if it does not yet, -1 if it refused. */
static int look(const struct preloading *p, const struct target *target, struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/refused", p->folder);
	CLEANUP(free) char *why = NULL;
	struct error ignored;

	if (__atomic_load_n(&p->control->joined_ns, __ATOMIC_ACQUIRE))
		return 1;
	if (file_read_member(&why, NULL, path, WHY_MAX, &ignored) < 0 || !*why)
		return 0;
	return error_set(err, ENOTSUP, "process %d: the library cannot be used: %s",
	                 (int)target->pid, why);
}

static int wait_for(const struct preloading *p, const struct target *target, unsigned ms,
                    struct error *err)
{
	const uint64_t until_ns = clock_now_ns() + ms * NS_PER_MS;
	int ret;

	while ((ret = look(p, target, err)) == 0 && clock_now_ns() < until_ns)
		poll(NULL, 0, LOOK_EVERY_MS);
	return ret;
}

/* Returns as look(). A script that has begun gets more time. */
static int wait_until_joined(const struct preloading *p, const struct remote_exec *remote,
                             struct error *err)
{
	int ret = wait_for(p, remote->target, JOINING_TIMEOUT_MS, err);

	return ret || remote_exec_withdraw(remote)
	               ? ret
	               : wait_for(p, remote->target, BEGUN_TIMEOUT_MS, err);
}

/* dir: of the script. */
static int join(const struct preloading *p, const struct remote_exec *remote, const char *dir,
                struct error *err)
{
	CLEANUP(free) char *path = xasprintf("%s/join.py", dir);
	int ret;

	if (write_script(p, path, err) < 0 || remote_exec_ask(remote, path, err) < 0)
		return -1;
	ret = wait_until_joined(p, remote, err);
	if (ret > 0)
		return 0;
	__atomic_store_n(&p->control->stopped, 1, __ATOMIC_RELAXED);
	return ret < 0 ? ret
	               : error_set(err, ETIMEDOUT,
	                           "process %d: its main thread, which would have to load the "
	                           "library, executed no Python for %d s",
	                           (int)remote->target->pid, JOINING_TIMEOUT_MS / 1000);
}

int joining_begin(const struct preloading *p, const struct target *target, bool alone,
                  struct error *err)
{
	/* The program executes the script with its own rights. The folder of --keep may be in one
	 * of another user, who could give its name to another folder. */
	struct temp_session own = SCRATCH_NONE;
	struct remote_exec remote;
	struct error ignored;
	int ret;

	if (find(&remote, target, err) < 0 || temp_session_make(&own, err) < 0)
		return -1;
	p->control->gil = remote.gil;
	p->control->alone = alone;
	ret = join(p, &remote, own.path, err);
	temp_session_remove(&own, &ignored);
	return ret;
}
