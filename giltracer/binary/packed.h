/* SPDX-License-Identifier: MIT */
/* Checks compressed contents of ELF files before libelf and libdw unpack them into memory. */
#ifndef GILTRACER_BINARY_PACKED_H
#define GILTRACER_BINARY_PACKED_H

#include <libelf.h>
#include <stdbool.h>

/* The reason why a file must not be unpacked: its contents are larger than those of any genuine
 * file. */
#define PACKED_WHY "its compressed sections unpack to more than 32 times its size"

/* Whether the contents of the file's compressed sections, including .gnu_debugdata, have a size
 * that compilers and packagers produce. */
bool packed_fits(Elf *elf);

#endif
