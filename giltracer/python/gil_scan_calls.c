/* SPDX-License-Identifier: MIT */
/* Runs the functions that call pthread functions, to know the registers at these calls. */
#include "python/gil_scan_internal.h"

#include <string.h>

#include "binary/x86.h"

/* Whether the function around the call begins with a jump out of it. */
static bool is_left_behind(const struct gil_scanner *scanner, uint64_t address)
{
	uint64_t start, end;
	struct x86_branch b;
	size_t len = 0;
	const uint8_t *code;

	if (!codemap_function(scanner->map, address, &start, &end))
		return false;
	code = codemap_bytes(scanner->map, start, end - start, &len);
	return code && x86_wide_branch(code, len, start, &b) && b.kind == X86_JUMP && !b.slot &&
	       address > start && (b.target < start || b.target >= end);
}

void gil_scan_find_calls(const struct gil_scanner *scanner, const char *import,
                         struct addresses *ret)
{
	struct addresses all;

	*ret = (struct addresses){ 0 };
	codemap_find_calls(scanner->map, import, &all);
	for (size_t i = 0; i < all.v.n; i++)
		if (!is_left_behind(scanner, all.v.v[i]))
			*vec_push(&ret->v) = all.v.v[i];
	vec_done(&all.v);
}

/* A symbolic run from entry that reaches the call at address; NULL if it does not reach it. known:
 * entry is the entry of a function. */
static struct symexec *run_from(struct gil_scanner *scanner, uint64_t entry, bool known,
                                uint64_t address)
{
	struct symexec *run = symexec_run(scanner->map, scanner->noreturn, entry, known);

	if (symexec_at(run, address) && (!known || !run->unbalanced))
		return run;
	symexec_free(run);
	return NULL;
}

/* The compiler moves unlikely parts of a function elsewhere. They are not called; the function
 * jumps to them. */
static struct symexec *run_from_owner(struct gil_scanner *scanner, uint64_t start, uint64_t end,
                                      uint64_t address, uint64_t *ret_function)
{
	struct symexec *run = NULL;
	struct addresses owners;

	codemap_find_owners(scanner->map, start, end, &owners);
	for (size_t i = 0; i < owners.v.n && !run; i++) {
		run = run_from(scanner, owners.v.v[i], true, address);
		if (run)
			*ret_function = owners.v.v[i];
	}
	vec_done(&owners.v);
	return run;
}

/*
 * Finds a run that reaches the call: from the entry of its function, or of the function that this
 * is a part of. If there is none (because the path uses a jump table), the run starts at the
 * instruction after the last unconditional jump or return before the call.
 */
struct symexec *gil_scan_run_to(struct gil_scanner *scanner, uint64_t address,
                                uint64_t *ret_function)
{
	uint64_t start, end;
	struct symexec *run;

	if (!codemap_function(scanner->map, address, &start, &end))
		return NULL;
	*ret_function = start;
	run = run_from(scanner, start, true, address);
	if (!run && !codemap_count_calls(scanner->map, start))
		run = run_from_owner(scanner, start, end, address, ret_function);
	if (!run)
		run = run_from(scanner, symexec_chunk(scanner->map, start, address), false,
		               address);
	return run;
}

bool gil_scan_is_call_of(const struct symexec_call *call, const char *import,
                         struct symexec_value argument)
{
	return call->import && !strcmp(call->import, import) &&
	       symexec_same(call->reg[SYMEXEC_DI], argument);
}

/* Whether the call is a timed wait of the GIL's form: on a condition variable and the mutex that
 * follows it. In 3.6 the two are separate variables. */
bool gil_scan_waits_for_gil(const struct symexec_call *call)
{
	if (call->reg[SYMEXEC_DI].node == 0 && call->reg[SYMEXEC_SI].node == 0)
		return true;
	return symexec_same(call->reg[SYMEXEC_SI],
	                    symexec_plus(call->reg[SYMEXEC_DI], GIL_MUTEX - GIL_COND));
}
