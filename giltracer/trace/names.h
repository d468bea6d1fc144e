/* SPDX-License-Identifier: MIT */
/* Interned strings: equal text, equal id. Id 0 is the empty string. */
#ifndef GILTRACER_TRACE_NAMES_H
#define GILTRACER_TRACE_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct names;
struct privacy;

struct names *names_new(void);

/* For the names of a recording, each of which is hidden as far as it must be (session/privacy.h) before it
 * gets an id. privacy: borrowed until names_free; NULL: nothing must be hidden. */
struct names *names_new_private(const struct privacy *privacy);

void names_free(struct names *names);

/* The id of len bytes of text (any bytes; a NUL ends it). Never fails. */
uint32_t names_id(struct names *names, const char *text, size_t len);

/* The text of an id from names_id; borrowed until names_free (texts do not move). */
const char *names_get(const struct names *names, uint32_t id);

/* Ids are 0 … names_count - 1. */
uint32_t names_count(const struct names *names);

#endif
