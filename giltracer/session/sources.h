/* SPDX-License-Identifier: MIT */
/*
 * sources.json of a session folder: lines of the program's source files as they were when it was
 * recorded, since a report may be made later and elsewhere. An array of objects with file, line and
 * text, which has neither the blanks around it nor more than SOURCES_TEXT_MAX bytes; and, if known, of,
 * lock, made and kind.
 */
#ifndef GILTRACER_SESSION_SOURCES_H
#define GILTRACER_SESSION_SOURCES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define SOURCES_FILE     "sources.json"
#define SOURCES_MAX      4096
#define SOURCES_TEXT_MAX 160

/**
 * @of: the class whose code it is; NULL: none
 * @lock: the expression of the lock or queue that it waits for; NULL: none, or several
 * @made: the only line of the file that assigns to this; 0: unknown
 * @kind: what is assigned there: Lock, RLock, Queue, ...; NULL: unknown
 */
struct source_line {
	char *file, *text;
	uint32_t line, made;
	char *of, *lock, *kind;
};

struct sources {
	struct source_line *v;
	size_t n, alloc;
};

/* Reads DIR/sources.json. A session may have none: ret is empty then. Free with sources_done. */
int sources_read(struct sources *ret, const char *dir, struct error *err);
int sources_write(const struct sources *sources, const char *dir, struct error *err);
void sources_done(struct sources *sources);

/* NULL: it was not recorded. */
const struct source_line *sources_line(const struct sources *sources, const char *file,
                                       uint32_t line);

/* Its text; NULL: it was not recorded. */
const char *sources_find(const struct sources *sources, const char *file, uint32_t line);

static inline void cleanup_sources_done(struct sources *sources)
{
	sources_done(sources);
}

#endif
