/* SPDX-License-Identifier: MIT */
/* Executes one x86-64 instruction on symbolic values. */
#ifndef GILTRACER_BINARY_SYMEXEC_STEP_H
#define GILTRACER_BINARY_SYMEXEC_STEP_H

#include <capstone.h>
#include <stdbool.h>
#include <stdint.h>

struct codemap;
struct symexec_state;
struct symexec_values;

/* insn is the current instruction. map and values are borrowed. */
struct symexec_machine {
	const struct codemap *map;
	struct symexec_values *values;
	csh handle;
	cs_insn *insn;
};

/* Returns whether there is a disassembler; symexec_machine_close must be called either way. */
bool symexec_machine_open(struct symexec_machine *m, const struct codemap *map,
                          struct symexec_values *values);
void symexec_machine_close(struct symexec_machine *m);

/* Executes the instruction, which is not a branch. */
void symexec_step(struct symexec_machine *m, struct symexec_state *s);

/* Forgets the registers that a callee may change. */
void symexec_after_call(struct symexec_machine *m, struct symexec_state *s);

/* The target of a direct branch, otherwise 0; *ret_import: the import that a branch leads to, or
 * NULL. */
uint64_t symexec_branch_target(const struct symexec_machine *m, const char **ret_import);

/* Whether the instruction is a jump or a call; and whether it ends the path. */
bool symexec_is_branch(const struct symexec_machine *m);
bool symexec_is_end(const struct symexec_machine *m);

#endif
