/* SPDX-License-Identifier: MIT */
/* What the text of a Python file says about the lock that a thread waits for in one of its lines. */
#ifndef GILTRACER_REPORT_LOCK_SOURCE_H
#define GILTRACER_REPORT_LOCK_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "session/session.h"

/* The lines of a file, without their ends; they point into its text. */
struct file_lines {
	VEC(const char *) v;
	const char *end;
};

/* Free with vec_done(&lines.v). */
struct file_lines file_lines_of(const char *text, size_t len);

/**
 * Sets the members of ret about a lock, see session/session.h; they are NULL or 0 where the text does
 * not tell, for instance because a line names two locks, or a name is assigned twice.
 */
void lock_source_find(struct source_line *ret, const struct file_lines *lines, uint32_t line);

#endif
