/* SPDX-License-Identifier: MIT */
/*
 * libdebuginfod is loaded only when it is needed, because it loads an HTTP client. The interface is
 * that of debuginfod_find_debuginfo(3), stable since elfutils 0.178.
 */
#include "binary/debuginfod.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/child.h"

#define LIBRARY      "libdebuginfod.so.1"
#define PATIENCE_MAX 15 /* seconds */

struct client;

struct library {
	void *handle;
	struct client *(*begin)(void);
	void (*end)(struct client *client);
	int (*find)(struct client *client, const unsigned char *build_id, int length, char **path);
	void (*set_progress)(struct client *client,
	                     int (*fn)(struct client *client, long done, long all));
	void (*set_data)(struct client *client, void *data);
	void *(*get_data)(struct client *client);
};

/* Progress of the download, and the time since which there was none. */
struct waiting {
	long done, all;
	uint64_t since_ns, patience_ns;
};

static void library_close(struct library *library)
{
	if (library->handle)
		dlclose(library->handle);
}

DEFINE_CLEANUP_IN(struct library, library_close);

static bool load(struct library *library, void *function, const char *name)
{
	void *found = dlsym(library->handle, name);

	/* POSIX recommends this, because C has no conversion from data pointers to function
	 * pointers. */
	memcpy(function, &found, sizeof(found));
	return found;
}

static bool library_open(struct library *ret)
{
	ret->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!ret->handle) {
		log_debug("no debuginfod: %s", dlerror());
		return false;
	}
	return load(ret, &ret->begin, "debuginfod_begin") &&
	       load(ret, &ret->end, "debuginfod_end") &&
	       load(ret, &ret->find, "debuginfod_find_debuginfo") &&
	       load(ret, &ret->set_progress, "debuginfod_set_progressfn") &&
	       load(ret, &ret->set_data, "debuginfod_set_user_data") &&
	       load(ret, &ret->get_data, "debuginfod_get_user_data");
}

/* libdebuginfod applies the variable to a minimal speed, with 90 seconds by default, which is too
 * long to wait before a run. */
static uint64_t patience(void)
{
	const char *given = getenv("DEBUGINFOD_TIMEOUT");
	long seconds = given ? strtol(given, NULL, 10) : 0;

	return (uint64_t)(seconds > 0 && seconds < PATIENCE_MAX ? seconds : PATIENCE_MAX) *
	       NS_PER_SECOND;
}

/* The library passes only the client to the callback; the client stores our data. */
static struct waiting *waiting_of(struct client *client)
{
	CLEANUP(library_close)
	struct library again = { .handle = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD) };

	if (!again.handle || !load(&again, &again.get_data, "debuginfod_get_user_data"))
		return NULL;
	return again.get_data(client);
}

/* Called by the library from time to time while it waits; a result other than 0 cancels the
 * download. */
static int progress(struct client *client, long done, long all)
{
	struct waiting *waiting = waiting_of(client);
	uint64_t now = clock_now_ns();

	if (!waiting || signals_ending())
		return 1;
	if (waiting->done != done || waiting->all != all)
		*waiting = (struct waiting){ done, all, now, waiting->patience_ns };
	return now - waiting->since_ns > waiting->patience_ns;
}

/* The file's path, or NULL. */
static char *find(const struct library *library, const char *build_id)
{
	struct waiting waiting = { .since_ns = clock_now_ns(), .patience_ns = patience() };
	struct client *client = library->begin();
	char *path = NULL;
	int fd;

	if (!client)
		return NULL;
	library->set_data(client, &waiting);
	library->set_progress(client, progress);
	/* With length 0 the build-id is text. */
	fd = library->find(client, (const unsigned char *)build_id, 0, &path);
	if (fd < 0)
		log_debug("debuginfod has no file for %s: %s", build_id, strerror(-fd));
	else
		close(fd);
	library->end(client);
	return fd < 0 ? NULL : path;
}

bool debuginfod_is_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

char *debuginfod_get(const char *build_id)
{
	CLEANUP(library_close) struct library library = { .handle = NULL };

	if (!debuginfod_is_wanted() || !library_open(&library))
		return NULL;
	return find(&library, build_id);
}
