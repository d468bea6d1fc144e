/* SPDX-License-Identifier: MIT */
/* Prints the line of every code unit of every code object of a list. pycode.t compares them with
 * the interpreter's own lines. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "python/pycode.h"

/* stdin: lines of ADDRESS FIRST-LINE BASE UNITS STEP, as pycode.py writes them. */
int main(int argc, char **argv)
{
	CLEANUP(pycode_close) struct pycode *codes = NULL;
	uint64_t address, base, step;
	unsigned first, units;
	struct error err = { 0 };

	if (argc != 2 || pycode_open(&codes, argv[1], &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while (scanf("%" SCNu64 " %u %" SCNu64 " %u %" SCNu64, &address, &first, &base, &units,
	             &step) == 5) {
		const struct pycode_entry *e = pycode_find(codes, address, first);

		if (!e)
			return 1;
		printf("%.*s", (int)e->name_len, e->name);
		for (unsigned i = 0; i < units; i++)
			printf(" %u", pycode_line(codes, e, base + i * step));
		putchar('\n');
	}
	return 0;
}
