/* SPDX-License-Identifier: MIT */
/* Compressed contents of ELF files, before libelf and libdw unpack them into memory. */
#ifndef GILTRACER_BINARY_PACKED_H
#define GILTRACER_BINARY_PACKED_H

#include <libelf.h>
#include <stdbool.h>

/* Why a file must not be unpacked: its contents are larger than that of any honest one. */
#define PACKED_WHY "its compressed sections unpack to more than 32 times its size"

/* Whether what the file has in compressed sections, .gnu_debugdata included, is of a size that
 * compilers and packagers make. */
bool packed_fits(Elf *elf);

#endif
