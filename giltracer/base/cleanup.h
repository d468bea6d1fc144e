/* SPDX-License-Identifier: MIT */
/*
 * Variables that clean up after themselves: CLEANUP(perfdata_close) struct perfdata *pd = NULL;
 * calls perfdata_close(pd) when pd goes out of scope, unless take(pd) handed it over.
 *
 * DEFINE_CLEANUP(type, fn), once per destructor, in the header that declares fn. Destructors take
 * NULL (and close takes -1). DEFINE_CLEANUP_IN(type, fn), if fn takes the address of the variable.
 */
#ifndef GILTRACER_BASE_CLEANUP_H
#define GILTRACER_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFINE_CLEANUP(type, fn)                 \
	static inline void cleanup_##fn(type *p) \
	{                                        \
		fn(*p);                          \
	}                                        \
	struct cleanup_##fn##_needs_semicolon

#define DEFINE_CLEANUP_IN(type, fn)              \
	static inline void cleanup_##fn(type *p) \
	{                                        \
		fn(p);                           \
	}                                        \
	struct cleanup_##fn##_needs_semicolon

/* "unused", because clang warns of a variable that is used by its cleanup only. */
#define CLEANUP(fn) __attribute__((cleanup(cleanup_##fn), unused))

/* The value of the pointer p, which is NULL afterwards. */
#define take(p)                           \
	({                                \
		__auto_type take_p = (p); \
		(p) = NULL;               \
		take_p;                   \
	})

/* The descriptor fd, which is -1 afterwards. */
static inline int take_fd(int *fd)
{
	int ret = *fd;

	*fd = -1;
	return ret;
}

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void cleanup_closedir(DIR **d)
{
	if (*d)
		closedir(*d);
}

#endif
