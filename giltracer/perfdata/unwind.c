/* SPDX-License-Identifier: MIT */
/* Unwinding: the registers and memory of one sample, the rules of each module, and locations that
 * all samples share. */
#include "perfdata/unwind.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/idmap.h"
#include "base/vec.h"
#include "binary/module.h"

#define NO_REG 255

/* perf[i]: DWARF number of perf's register i; pc: perf's number of the program counter. */
struct arch {
	const char *name;
	struct cfi_machine cfi;
	uint8_t pc, perf_n;
	uint8_t perf[CFI_REGS];
};

/* asm/perf_regs.h and the psABI's DWARF numbers. */
static const struct arch arches[] = {
	{ .name = "x86_64",
	  .cfi = { .elf = EM_X86_64, .regs = 17, .sp = 7, .ret = 16, .leaf_on_stack = true },
	  .pc = 8,
	  .perf_n = 24,
	  .perf = { 0,      3,      2,      1,      4, 5, 6,  7,  16, NO_REG, NO_REG, NO_REG,
	            NO_REG, NO_REG, NO_REG, NO_REG, 8, 9, 10, 11, 12, 13,     14,     15 } },
	{ .name = "aarch64",
	  .cfi = { .elf = EM_AARCH64, .regs = 32, .sp = 31, .ret = 30, .leaf_on_stack = false },
	  .pc = 32,
	  .perf_n = 33,
	  .perf = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,    16,
	            17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, NO_REG } },
};

/* The location of an address in the address space with this generation. location: its id plus 1; 0:
 * the slot is free. */
struct pc_slot {
	uint64_t pc;
	uint32_t location, generation;
};

/* One direct-mapped cache for all processes, because programs may start thousands of them. */
#define PC_SLOTS 16384

struct unwinder {
	const struct arch *arch;
	struct hash_seed seed;
	struct maps *maps;
	struct address_space *space; /* the last sample's */
	VEC(struct location) locations;
	struct idmap kernel;         /* address -> location */
	struct idmap unknown;        /* address outside any mapping -> location */
	VEC(struct idmap) by_module; /* file offset -> location */
	VEC(uint32_t) stack;
	struct pc_slot cache[PC_SLOTS];
};

uint16_t unwind_machine(const char *arch)
{
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++)
		if (!strcmp(arch, arches[i].name))
			return arches[i].cfi.elf;
	return 0;
}

struct unwinder *unwinder_new(uint16_t machine, struct maps *maps)
{
	struct unwinder *u = xcalloc(1, sizeof(*u));

	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++)
		if (arches[i].cfi.elf == machine)
			u->arch = &arches[i];
	u->seed = hash_seed();
	u->maps = maps;
	return u;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->by_module.n; i++)
		idmap_done(&u->by_module.v[i]);
	vec_done(&u->by_module);
	vec_done(&u->locations);
	vec_done(&u->stack);
	idmap_done(&u->kernel);
	idmap_done(&u->unknown);
	free(u);
}

const struct location *unwinder_location(const struct unwinder *u, uint32_t id)
{
	return &u->locations.v[id];
}

static uint32_t add_location(struct unwinder *u, struct idmap *map, uint64_t key,
                             const struct location *location)
{
	uint32_t id = u->locations.n;

	idmap_set(map, key, id);
	*vec_push(&u->locations) = *location;
	return id;
}

static uint32_t kernel_location(struct unwinder *u, uint64_t address)
{
	uint32_t id = idmap_get(&u->kernel, address);

	if (id != IDMAP_NONE)
		return id;
	return add_location(u, &u->kernel, address,
	                    &(struct location){ .address = address, .kernel = true });
}

static struct idmap *module_map(struct unwinder *u, const struct module *module)
{
	while (u->by_module.n <= module->id)
		*vec_push(&u->by_module) = (struct idmap){ 0 };
	return &u->by_module.v[module->id];
}

static uint32_t user_location(struct unwinder *u, uint64_t address)
{
	const struct map *map = space_find(u->space, address);
	struct location location = { .address = address };
	struct idmap *known = &u->unknown;
	uint64_t key = address;
	uint32_t id;

	if (map) {
		known = module_map(u, map->module);
		key = location.offset = map_offset(map, address);
	}
	id = idmap_get(known, key);
	if (id != IDMAP_NONE)
		return id;
	if (map) {
		location.module = map->module;
		location.usable = module_vaddr(map->module, location.offset, &location.address);
	}
	return add_location(u, known, key, &location);
}

static uint32_t find_location(struct unwinder *u, uint64_t address)
{
	uint32_t generation = u->space->generation;
	uint64_t key = address ^ (uint64_t)generation << 24;
	struct pc_slot *slot = &u->cache[hash_number(u->seed, key) % PC_SLOTS];

	if (slot->pc != address || slot->generation != generation || !slot->location)
		*slot = (struct pc_slot){ address, user_location(u, address) + 1, generation };
	return slot->location - 1;
}

static const struct cfi_rule *rule_of(struct unwinder *u, uint32_t id)
{
	struct location *l = &u->locations.v[id];

	if (!l->ruled) {
		l->ruled = true;
		if (l->usable)
			l->rule = cfi_rule(module_cfi(l->module), l->address, &u->arch->cfi);
	}
	return l->rule;
}

/* Stores perf's registers in DWARF's order. Returns false if some are missing. */
static bool load_regs(const struct arch *arch, const struct unwind_sample *s, struct cfi_regs *regs)
{
	struct cursor c = s->regs;
	bool have_pc = false;

	regs->valid = 0;
	for (unsigned i = 0; i < 64 && s->regs_mask >> i; i++) {
		uint64_t v;

		if (!(s->regs_mask >> i & 1))
			continue;
		v = cursor_u64(&c);
		if (i == arch->pc) {
			regs->pc = v;
			have_pc = true;
		}
		if (i < arch->perf_n && arch->perf[i] != NO_REG) {
			regs->regs[arch->perf[i]] = v;
			regs->valid |= UINT64_C(1) << arch->perf[i];
		}
	}
	return !c.bad && have_pc && regs->valid >> arch->cfi.sp & 1;
}

static enum unwind_end walk(struct unwinder *u, const struct unwind_sample *s)
{
	const struct cfi_machine *machine = &u->arch->cfi;
	struct cfi_memory memory = { .data = s->stack.p, .size = cursor_left(&s->stack) };
	struct cfi_regs regs;
	bool exact = true;

	if (s->abi != UNWIND_ABI_64 || !load_regs(u->arch, s, &regs))
		return UNWIND_NO_USER;
	memory.base = regs.regs[machine->sp];
	if (!u->space || u->space->pid != s->pid)
		u->space = maps_space(u->maps, s->pid);
	for (size_t n = 0; n < UNWIND_MAX_FRAMES; n++) {
		uint32_t id = find_location(u, regs.pc - !exact);

		*vec_push(&u->stack) = id;
		switch (cfi_apply(rule_of(u, id), machine, &memory, &regs, &exact)) {
		case CFI_OK:
			break;
		case CFI_END:
			return UNWIND_COMPLETE;
		case CFI_NONE:
			return UNWIND_BROKEN;
		case CFI_OUTSIDE:
			return UNWIND_TRUNCATED;
		}
	}
	return UNWIND_TRUNCATED;
}

/* Adds the kernel's part of the callchain. */
static void kernel_frames(struct unwinder *u, const struct unwind_sample *s)
{
	struct cursor c = s->chain;
	bool kernel = false;

	while (cursor_left(&c) >= 8 && u->stack.n < UNWIND_MAX_FRAMES) {
		uint64_t address = cursor_u64(&c);

		if (address >= PERF_CONTEXT_MAX)
			kernel = address == PERF_CONTEXT_KERNEL;
		else if (kernel)
			*vec_push(&u->stack) = kernel_location(u, address - (u->stack.n > 0));
	}
}

void unwind_stack(struct unwinder *u, const struct unwind_sample *sample, struct unwind_stack *ret)
{
	u->stack.n = 0;
	kernel_frames(u, sample);
	ret->kernel_n = u->stack.n;
	ret->end = u->arch ? walk(u, sample) : UNWIND_NO_USER;
	ret->locations = u->stack.v;
	ret->n = u->stack.n;
}
