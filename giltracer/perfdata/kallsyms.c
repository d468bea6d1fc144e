/* SPDX-License-Identifier: MIT */
/* /proc/kallsyms, sorted by address. */
#include "perfdata/kallsyms.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/vec.h"

#define MAX_BYTES   (256U << 20)
#define KERNEL_NAME "[kernel.kallsyms]"

/* Names point into text. */
struct ksym {
	uint64_t start;
	const char *name, *module;
	uint32_t order; /* position in the file */
};

struct kallsyms {
	char *text;
	VEC(struct ksym) all;
};

static int by_start(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Splits one line into its words in place. Data symbols are left out. */
static void parse_line(struct kallsyms *k, char *line)
{
	char *at, *name, *module, type;
	uint64_t start = strtoull(line, &at, 16);

	if (at == line || at[0] != ' ' || !at[1] || at[2] != ' ')
		return;
	type = at[1];
	name = at + 3;
	module = strchr(name, '\t');
	if (module)
		*module++ = '\0';
	if (!strchr("tTwW", type) || !name[0])
		return;
	*vec_push(&k->all) = (struct ksym){ start, name, module ? module : KERNEL_NAME, k->all.n };
}

struct kallsyms *kallsyms_read(const char *path)
{
	CLEANUP(kallsyms_free) struct kallsyms *k = xcalloc(1, sizeof(*k));
	struct error err;
	char *next;

	if (file_read(&k->text, NULL, path, MAX_BYTES, &err) < 0)
		return NULL;
	for (char *line = k->text; line && line[0]; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		parse_line(k, line);
	}
	if (!k->all.n)
		return NULL;
	vec_sort(&k->all, by_start);
	if (!k->all.v[k->all.n - 1].start) /* kptr_restrict: all addresses are zero */
		return NULL;
	return take(k);
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->text);
	vec_done(&k->all);
	free(k);
}

static bool is_global_like(const char *name)
{
	return name[0] != '_' || !strncmp(name, "__x64_", 6);
}

const char *kallsyms_find(const struct kallsyms *k, uint64_t address, const char **ret_module,
                          uint64_t *ret_start)
{
	size_t at = SEARCH(k->all.n, i, k->all.v[i].start <= address), best;

	if (at == 0)
		return NULL;
	best = --at;
	while (at > 0 && k->all.v[at - 1].start == k->all.v[best].start)
		if (is_global_like(k->all.v[--at].name))
			best = at;
	*ret_module = k->all.v[best].module;
	*ret_start = k->all.v[best].start;
	return k->all.v[best].name;
}

uint64_t kallsyms_address(const struct kallsyms *k, const char *name)
{
	for (size_t i = 0; i < k->all.n; i++)
		if (!strcmp(k->all.v[i].name, name))
			return k->all.v[i].start;
	return 0;
}
