/* SPDX-License-Identifier: MIT */
/* One x86-64 instruction, run on values. */
#ifndef GILTRACER_LAUNCH_FLOW_STEP_H
#define GILTRACER_LAUNCH_FLOW_STEP_H

#include <capstone.h>
#include <stdbool.h>
#include <stdint.h>

struct codemap;
struct flow_state;
struct flow_values;

/* insn is the instruction at hand. map and values are borrowed. */
struct flow_machine {
	const struct codemap *map;
	struct flow_values *values;
	csh handle;
	cs_insn *insn;
};

/* Whether there is a disassembler; flow_machine_close is due either way. */
bool flow_machine_open(struct flow_machine *m, const struct codemap *map,
                       struct flow_values *values);
void flow_machine_close(struct flow_machine *m);

/* Do the instruction, which is no branch. */
void flow_step(struct flow_machine *m, struct flow_state *s);

/* The registers that a callee may change. */
void flow_after_call(struct flow_machine *m, struct flow_state *s);

/* The target of a direct branch, else 0; *ret_import: the import that a branch goes to, or NULL. */
uint64_t flow_branch_target(const struct flow_machine *m, const char **ret_import);

/* Whether it is a jump or a call; and whether nothing follows it that is reached from it. */
bool flow_is_branch(const struct flow_machine *m);
bool flow_is_end(const struct flow_machine *m);

#endif
