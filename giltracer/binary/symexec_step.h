/* SPDX-License-Identifier: MIT */
/* One x86-64 instruction, run on values. */
#ifndef GILTRACER_BINARY_SYMEXEC_STEP_H
#define GILTRACER_BINARY_SYMEXEC_STEP_H

#include <capstone.h>
#include <stdbool.h>
#include <stdint.h>

struct codemap;
struct symexec_state;
struct symexec_values;

/* insn is the instruction at hand. map and values are borrowed. */
struct symexec_machine {
	const struct codemap *map;
	struct symexec_values *values;
	csh handle;
	cs_insn *insn;
};

/* Whether there is a disassembler; symexec_machine_close is due either way. */
bool symexec_machine_open(struct symexec_machine *m, const struct codemap *map,
                          struct symexec_values *values);
void symexec_machine_close(struct symexec_machine *m);

/* Do the instruction, which is no branch. */
void symexec_step(struct symexec_machine *m, struct symexec_state *s);

/* The registers that a callee may change. */
void symexec_after_call(struct symexec_machine *m, struct symexec_state *s);

/* The target of a direct branch, else 0; *ret_import: the import that a branch goes to, or NULL. */
uint64_t symexec_branch_target(const struct symexec_machine *m, const char **ret_import);

/* Whether it is a jump or a call; and whether nothing follows it that is reached from it. */
bool symexec_is_branch(const struct symexec_machine *m);
bool symexec_is_end(const struct symexec_machine *m);

#endif
