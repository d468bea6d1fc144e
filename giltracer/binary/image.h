/* SPDX-License-Identifier: MIT */
/* An open ELF file: a program, a library, or a file that was extracted from one. */
#ifndef GILTRACER_BINARY_IMAGE_H
#define GILTRACER_BINARY_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/filemap.h"

struct Dwfl;
struct Elf;

/* Identifies a file and its state. All 0: none. */
struct image_identity {
	uint64_t dev, ino, size;
	int64_t changed_ns; /* time of the last status change, wall clock */
};

/* Identifies the file that is at a path now. Returns false if there is none. */
bool image_identify(struct image_identity *ret, const char *path);
bool image_identity_equal(const struct image_identity *a, const struct image_identity *b);

/* { 0 } is closed. If dwfl is set, elf belongs to it, and there is no map. */
struct image {
	char *path;
	struct filemap map;
	struct Elf *elf;
	struct Dwfl *dwfl;
	struct image_identity identity;
};

/* Close with image_close, which resets it; ret is written only on success. */
int image_open(struct image *ret, const char *path, struct error *err);
void image_close(struct image *image);

/* An error if the file became shorter while it was read, so that what was found in it is wrong. */
int image_check(const struct image *image, struct error *err);

/* Whether it is for this machine's architecture. */
bool image_is_ours(const struct image *image);

/* The build-id in lower-case hex; without one, "sum" and a hash of the code. Caller frees. */
char *image_build_id(const struct image *image);

/* Whether there is a section of this name with contents. */
bool image_has_section(const struct image *image, const char *name);

DEFINE_CLEANUP_IN(struct image, image_close);

#endif
