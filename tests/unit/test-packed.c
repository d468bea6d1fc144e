/* SPDX-License-Identifier: MIT */
/* Files that need a thousand times their size of memory when they are unpacked. */
#include <lzma.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "binary/image.h"
#include "binary/module.h"
#include "binary/packed.h"

#include "built.h"
#include "tap.h"

/* Writes a file of size zeros, or of noise, compressed by xz. */
static bool write_xz(const char *path, size_t size, bool noise)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	CLEANUP(free) uint8_t *in = xcalloc(size, 1);
	size_t max = lzma_stream_buffer_bound(size), len = 0;
	CLEANUP(free) uint8_t *out = xcalloc(max, 1);
	struct error err = { 0 };

	for (size_t i = 0; noise && i < size; i++)
		in[i] = (uint8_t)(i * i >> 8);
	if (filewriter_open(&w, path, &err) < 0 ||
	    lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, in, size, out, &len, max) != LZMA_OK)
		return false;
	fwrite(out, 1, len, w.out);
	return filewriter_commit(&w, &err) == 0;
}

static void not_opened(const char *file, const char *why)
{
	CLEANUP(free) char *path = realpath(file, NULL);
	struct modules *modules = modules_new(false);
	struct module *module = modules_get(modules, path, NULL);

	ok(!module_open(module), "%s: a report does not use it", file);
	is_str(module->why, why, "the reason is given");
	modules_free(modules);
}

static void refused(const char *file, const char *what)
{
	struct error err = { 0 };
	struct image image;

	ok(image_open(&image, file, &err) < 0 && strstr(err.text, PACKED_WHY),
	   "%s: a search for probes refuses it", what);
	not_opened(file, PACKED_WHY);
}

static void accepted(const char *file, const char *what)
{
	CLEANUP(free) char *path = realpath(file, NULL);
	struct modules *modules = modules_new(false);
	struct error err = { 0 };
	struct image image = { 0 };

	ok(image_open(&image, file, &err) == 0, "%s: it is opened", what);
	ok(module_open(modules_get(modules, path, NULL)), "%s: it is opened for a report", what);
	image_close(&image);
	modules_free(modules);
}

static void test_minidebug(void)
{
	if (!ok(write_xz("zeros", 40 << 20, false) && write_xz("some", 1 << 20, true) &&
	                RUN("objcopy", "--add-section", ".gnu_debugdata=zeros", "x", "bomb") &&
	                RUN("objcopy", "--add-section", ".gnu_debugdata=some", "x", "honest"),
	        "files with .gnu_debugdata are made"))
		return;
	refused("bomb", ".gnu_debugdata of zeros");
	accepted("honest", ".gnu_debugdata of noise");
}

static void test_sections(void)
{
	const char *big =
		"char zeros[40 << 20] __attribute__((section(\".debug_zeros\"))) = { 1 };\n";

	if (!ok(built_write("z.c", big) && RUN("cc", "-c", "-o", "z.o", "z.c") &&
	                RUN("objcopy", "--set-section-flags",
	                    ".debug_zeros=readonly,debug,contents", "z.o") &&
	                RUN("objcopy", "--compress-debug-sections=zlib-gabi", "z.o", "gabi.o") &&
	                RUN("objcopy", "--compress-debug-sections=zlib-gnu", "z.o", "gnu.o") &&
	                RUN("cc", "-g", "-gz=zlib", "-nostdlib", "-Wl,-e,named", "-o", "debug",
	                    "x.c"),
	        "files with compressed sections are made"))
		return;
	refused("gabi.o", "a compressed section of zeros");
	refused("gnu.o", "the same in the old form");
	accepted("debug", "compressed debug information");
}

static void test_all(void)
{
	if (!ok(built_write("x.c", "void named(void) { for (;;); }\n") &&
	                RUN("cc", "-nostdlib", "-Wl,-e,named", "-o", "x", "x.c"),
	        "a program is compiled"))
		return;
	test_minidebug();
	test_sections();
	ok(RUN("gzip", "-k", "x"), "a program is compressed as a whole");
	not_opened("x.gz", "not an ELF file");
}

int main(void)
{
	return built_main(test_all);
}
