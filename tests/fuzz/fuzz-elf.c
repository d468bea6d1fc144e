/* SPDX-License-Identifier: MIT */
/* Any bytes are read as an interpreter: symbols, debug information, unwind tables, machine code. */
#include "binary/module.h"
#include "binary/symbolize.h"
#include "binary/symbols.h"
#include "python/gil_scan.h"

#include "budget.h"
#include "file-bytes.h"

#define ADDRESSES 64
#define INLINED   16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search(const char *path)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(gil_scan_free) struct gil_scan *gil = NULL;
	struct symbol_list list = { 0 };
	struct error err = { 0 };

	if (symbols_open(&symbols, path, &err) < 0) {
		if (!err.text[0])
			abort();
		return;
	}
	symbols_find(symbols, "take_gil", &list);
	symbol_list_done(&list);
	gil = gil_scan_new(symbols);
	for (size_t i = 0; i < gil->releases.n; i++)
		free(symbols_describe(symbols, gil->releases.v[i].signal));
}

/* Look up addresses all over the file, as a report does. */
static void name(const char *path, size_t size)
{
	struct modules *modules = modules_new(false);
	struct module *module = modules_get(modules, path, NULL);
	const char *inlined[INLINED];

	if (!module_open(module) && !module->why[0])
		abort();
	for (size_t i = 0; i < ADDRESSES; i++) {
		const struct function_symbol *function;
		uint64_t vaddr, start;

		if (!module_vaddr(module, i * size / ADDRESSES, &vaddr))
			continue;
		function = symbolize(module, vaddr);
		if (function && (vaddr < function->start || vaddr >= function->end))
			abort();
		symbolize_start(module, vaddr, &start);
		symbolize_inlined(module, vaddr, inlined, INLINED);
	}
	modules_free(modules);
}

static void read_file(const uint8_t *data, size_t size)
{
	struct file_bytes f = file_bytes_make(data, size);

	search(f.path);
	name(f.path, size);
	close(f.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	setenv("GILTRACER_DEBUGDIR", "", 1);
	unsetenv("DEBUGINFOD_URLS");
	budget_run(read_file, data, size);
	return 0;
}
