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

int codes_write(const struct target *target, const char *path, struct error *err)
{
	CLEANUP(filewriter_done) struct filewriter w = { 0 };
	const struct live_code *code;
	uint64_t count = 0;

	if (filewriter_open(&w, path, err) < 0)
		return -1;
	while (target_code_at(target, count))
		count++;
	fwrite("GTCODES1", 1, 8, w.out);
	fputc((int)target->def->major, w.out);
	fputc((int)target->def->minor, w.out);
	fputc(0, w.out);
	fputc(0, w.out);
	put_u32(w.out, target->def->memory[MEMORY_INSTRUCTIONS]);
	put_u64(w.out, count);
	for (size_t i = 0; (code = target_code_at(target, i)); i++) {
		put_u64(w.out, code->address);
		put_u32(w.out, code->first_line);
		put_bytes(w.out, code->name, strlen(code->name));
		put_bytes(w.out, code->file, strlen(code->file));
		put_bytes(w.out, code->table, code->table_len);
	}
	return filewriter_commit(&w, err);
}
