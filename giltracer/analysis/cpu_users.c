/* SPDX-License-Identifier: MIT */
/* Adds up, by program, the CPU time that threads waited for. */
#include "analysis/cpu_users.h"

#include <stdlib.h>

#include "analysis/facts.h"
#include "base/idmap.h"
#include "trace/names.h"
#include "trace/source.h"

const char *cpu_users_program(const struct recording_pass *pass, uint32_t by, uint32_t name)
{
	const struct names *names = pass->source ? pass->source->cpu_names : NULL;

	return by == MODEL_NONE && name && names ? names_get(names, name) : NULL;
}

/* index: position of each program, by the id of its name; 0: threads of the traced program. */
static void add_user(struct cpu_users *users, struct idmap *index, uint32_t id, const char *name,
                     uint64_t ns)
{
	uint32_t at;

	if (idmap_add(index, id, (uint32_t)users->list.n, &at))
		*vec_push(&users->list) = (struct cpu_user){ .name = name };
	users->list.v[at].ns += ns;
}

static int compare_users(const void *a, const void *b)
{
	const struct cpu_user *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

struct cpu_users cpu_users_find(const struct recording_pass *pass)
{
	struct cpu_users users = { 0 };
	struct idmap index = { 0 };

	for (size_t i = 0; i < pass->model->cpu_blame.n; i++) {
		const struct model_cpu_blame *row = &pass->model->cpu_blame.v[i];
		const char *program = cpu_users_program(pass, row->by, row->name);

		users.all_ns += row->runnable_ns;
		if (program || row->by < MODEL_UNKNOWN)
			add_user(&users, &index, program ? row->name : 0, program,
			         row->runnable_ns);
	}
	idmap_done(&index);
	if (users.list.n)
		qsort(users.list.v, users.list.n, sizeof(*users.list.v), compare_users);
	return users;
}

double cpu_users_own_percent(const struct recording_pass *pass)
{
	struct cpu_users users = cpu_users_find(pass);
	uint64_t own_ns = 0, told_ns = 0;

	for (size_t i = 0; i < users.list.n; i++) {
		told_ns += users.list.v[i].ns;
		if (!users.list.v[i].name)
			own_ns = users.list.v[i].ns;
	}
	vec_done(&users.list);
	return told_ns ? facts_percent(own_ns, told_ns) : -1;
}
