/* SPDX-License-Identifier: MIT */
/*
 * Any bytes are the memory of a Python process, which is read from outside: this process is that
 * one. The first byte chooses the version, from 128 on one that publishes its offsets at the root; the
 * others are the memory, beginning with the root of the interpreter. In a word whose highest byte is
 * 0xaa, the lowest 16 bits are an offset in this memory, so that inputs can contain addresses.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "live/snapshot.h"
#include "python/stack_reader.h"

#define SIZE  65536
#define LOOKS 3

/* The first byte from which on the memory begins with a table of offsets. */
#define PUBLISHED 128

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(16) uint8_t memory[SIZE + 8];

static void fill(const uint8_t *data, size_t size)
{
	memset(memory, 0, sizeof(memory));
	memcpy(memory, data, size < SIZE ? size : SIZE);
	for (size_t at = 0; at < SIZE; at += 8) {
		uint64_t word;

		memcpy(&word, memory + at, sizeof(word));
		if (word >> 56 != 0xaa)
			continue;
		word = (uint64_t)(uintptr_t)memory + (word & 0xffff);
		memcpy(memory + at, &word, sizeof(word));
	}
}

/* The offsets are those at the root, whatever they are. NULL: they are refused. */
static struct probedef *publish(struct probedef *def, unsigned minor)
{
	const uint64_t head[] = { 0, (uint64_t)3 << 24 | (uint64_t)minor << 16, 0 };

	memcpy(memory, head, sizeof(head));
	memcpy(memory, "xdebugpy", 8);
	python_layout_init(&def->layout, 3, minor, false);
	def->has_frame = def->is_published = true;
	def->root = xstrdup("_PyRuntime");
	if (python_layout_from_table(&def->layout, memory, PYTHON_TABLE_SIZE))
		return def;
	probedef_free(def);
	return NULL;
}

static struct probedef *definition(uint8_t version)
{
	static const unsigned minors[] = { 6, 8, 10, 11, 12, 13, 14, 15 };
	const char *top = getenv("top_srcdir");
	CLEANUP(free)
	char *file = version < PUBLISHED
	                     ? xasprintf("3.%u",
	                                 minors[version % (sizeof(minors) / sizeof(*minors))])
	                     : xstrdup("newer");
	CLEANUP(free) char *path = xasprintf("%s/probes/%s.yaml", top ? top : ".", file);
	struct probedef *def;
	struct error err;

	if (probedef_load(&def, path, &err) < 0) {
		fprintf(stderr, "%s: set top_srcdir\n", err.text);
		exit(99);
	}
	return version < PUBLISHED ? def : publish(def, PYTHON_TABLE_FIRST + version % 4);
}

static void check(const struct snapshot *snapshot)
{
	size_t frames = 0;

	for (size_t i = 0; i < snapshot->threads.n; i++) {
		const struct snapshot_thread *t = &snapshot->threads.v[i];

		if (t->torn && t->frames.n)
			abort();
		for (size_t j = 0; j < t->frames.n; j++)
			frames += strlen(t->frames.v[j].code->name) > 0;
	}
	if (frames > STACK_READER_FRAMES)
		abort();
}

static void look(const uint8_t *data, size_t size)
{
	uint64_t base = (uint64_t)(uintptr_t)memory;
	struct probedef *def;
	struct snapshots *s;
	struct target *target;
	struct error err;

	fill(data + 1, size - 1);
	def = definition(*data);
	if (!def || target_open_at(&target, getpid(), def, base, base + 0x400, &err) < 0)
		return;
	s = snapshots_new(target);
	for (unsigned i = 0; i < LOOKS; i++) {
		struct snapshot snapshot;

		if (snapshot_take(&snapshot, s, &err) == 0)
			check(&snapshot);
		snapshot_done(&snapshot);
		/* The process goes on meanwhile. */
		for (size_t at = 0; at + 8 <= size && at + 8 <= SIZE; at += 8 * (i + 3))
			memory[at] ^= 8;
	}
	snapshots_free(s);
	target_close(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size)
		look(data, size);
	return 0;
}
