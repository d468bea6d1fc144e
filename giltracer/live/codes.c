/* SPDX-License-Identifier: MIT */
#include "live/codes.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

static void put_u32(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_u64(FILE *out, uint64_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_bytes(FILE *out, const void *bytes, size_t len)
{
	put_u32(out, (uint32_t)len);
	fwrite(bytes, 1, len, out);
}

static void put_code(FILE *out, const struct live_code *code)
{
	put_u64(out, code->address);
	put_u32(out, code->first_line);
	put_bytes(out, code->name, strlen(code->name));
	put_bytes(out, code->file, strlen(code->file));
	put_bytes(out, code->table, code->table_len);
}

static bool is_same(const struct target *a, const struct target *b)
{
	return a->def->major == b->def->major && a->def->minor == b->def->minor;
}

int codes_write(struct target *const *targets, size_t n, const char *path, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	const struct target *target = targets[0];
	const struct live_code *code;
	uint64_t count = 0;

	if (filewriter_open(&w, path, err) < 0)
		return -1;
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; is_same(target, targets[t]) && target_code_at(targets[t], i);
		     i++)
			count++;
	fwrite("GTCODES1", 1, 8, w.out);
	fputc((int)target->def->major, w.out);
	fputc((int)target->def->minor, w.out);
	fputc(0, w.out);
	fputc(0, w.out);
	put_u32(w.out, target->def->memory[MEMORY_INSTRUCTIONS]);
	put_u64(w.out, count);
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0;
		     is_same(target, targets[t]) && (code = target_code_at(targets[t], i)); i++)
			put_code(w.out, code);
	return filewriter_commit(&w, err);
}
