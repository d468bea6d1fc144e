/* SPDX-License-Identifier: MIT */
/*
 * Random registers and stacks, unwound by this program's own call frame information, and random
 * DWARF expressions: no crash, no endless walk. The input is a row of words of 9 bytes: a kind and
 * a number. First the registers, then the stack. Kinds: 0 the number itself, 1 an address in code,
 * 2 an address in the dump.
 */
#include <dwarf.h>
#include <string.h>

#include "binary/symbolize.h"
#include "perfdata/unwind.h"

#include "../self-maps.h"

#define REGS_MASK   0xff01ff /* x86-64: ax … ip, r8 … r15 */
#define REG_N       17
#define REG_SP      7
#define STACK_WORDS 1024
#define STACK_BASE  UINT64_C(0x7fff00000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct modules *modules;
static struct maps *maps;
static struct unwinder *unwinder;
static const struct map *code[64];
static size_t code_n;

static void setup(void)
{
	if (unwinder)
		return;
	modules = modules_new(true);
	maps = maps_new();
	map_self(maps, modules, 1, NULL);
	for (uint64_t at = 0; code_n < 64; at = code[code_n++]->end)
		if (!(code[code_n] = space_from(maps_space(maps, 1), at)))
			break;
	unwinder = unwinder_new(unwind_machine("x86_64"), maps);
}

static uint64_t code_address(uint64_t v)
{
	const struct map *map = code[(v >> 32) % code_n];

	return map->start + (uint32_t)v % (map->end - map->start);
}

static uint64_t next_word(struct cursor *c)
{
	uint8_t kind = cursor_u8(c);
	uint64_t v = cursor_u64(c);

	switch (kind % 4) {
	case 1:
		return code_address(v);
	case 2:
		return STACK_BASE + v % (STACK_WORDS * 8);
	default:
		return v;
	}
}

static void fuzz_stack(struct cursor *c)
{
	uint64_t regs[REG_N], stack[STACK_WORDS];
	struct unwind_sample s = { .pid = 1, .abi = UNWIND_ABI_64, .regs_mask = REGS_MASK };
	struct unwind_stack ret;
	size_t n = 0;

	for (size_t i = 0; i < REG_N; i++)
		regs[i] = next_word(c);
	regs[REG_SP] = STACK_BASE;
	while (n < STACK_WORDS && cursor_left(c) >= 9)
		stack[n++] = next_word(c);
	s.regs = cursor_make(regs, sizeof(regs));
	s.stack = cursor_make(stack, n * sizeof(*stack));
	unwind_stack(unwinder, &s, &ret);
	if (ret.n > UNWIND_MAX_FRAMES)
		abort();
	for (size_t i = 0; i < ret.n; i++) {
		const struct location *l = unwinder_location(unwinder, ret.locations[i]);

		if (l->usable)
			symbolize(l->module, l->address);
	}
}

static void fuzz_expression(struct cursor *c)
{
	Dwarf_Op ops[64];
	struct cfi_regs regs = { .valid = 0xf0f0f };
	uint8_t bytes[256] = { 1, 2, 3 };
	struct cfi_memory memory = { bytes, STACK_BASE, sizeof(bytes) };
	uint64_t result;
	struct cfi_frame frame = { &regs, &memory, STACK_BASE, false };
	bool value;
	size_t n = 0;

	for (size_t i = 0; i < CFI_REGS; i++)
		regs.regs[i] = STACK_BASE + i * 8;
	for (; n < 64 && cursor_left(c) >= 9; n++) {
		uint8_t atom = cursor_u8(c);
		uint64_t number = cursor_u64(c);

		ops[n] = (Dwarf_Op){
			.atom = atom, .number = number, .number2 = number >> 8, .offset = n * 3
		};
	}
	dwarf_expr_evaluate(ops, n, &frame, &result, &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_make(data, size);

	setup();
	if (cursor_u8(&c) % 4 == 0)
		fuzz_expression(&c);
	else
		fuzz_stack(&c);
	return 0;
}
