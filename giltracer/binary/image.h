/* SPDX-License-Identifier: MIT */
/* One ELF file that is open: a program, a library, or what was taken out of one. */
#ifndef GILTRACER_BINARY_IMAGE_H
#define GILTRACER_BINARY_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct Dwfl;
struct Elf;

/* Which file, in which state. All 0: none. */
struct image_identity {
	uint64_t dev, ino, size;
	int64_t changed_ns; /* its contents or what is known of it, wall clock */
};

/* Of what is at a path now. False if nothing is. */
bool image_identify(struct image_identity *ret, const char *path);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/* { .fd = -1 } is closed. Where dwfl is set, elf belongs to it, and there is no file. */
struct image {
	char *path;
	int fd;
	struct Elf *elf;
	struct Dwfl *dwfl;
	struct image_identity identity;
};

/* Closed by image_close, which leaves it closed; ret is written only on success. */
int image_open(struct image *ret, const char *path, struct error *err);
void image_close(struct image *image);

/* Whether it is of this machine's architecture. */
bool image_is_ours(const struct image *image);

/* Lower-case hex; without one, "sum" and a hash of the code. Caller frees. */
char *image_build_id(const struct image *image);

/* Whether there is a section of this name with contents. */
bool image_has_section(const struct image *image, const char *name);

#endif
