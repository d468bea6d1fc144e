/* SPDX-License-Identifier: MIT */
/* Chooses the place of a probe in a prologue: an instruction that the kernel emulates and that
 * every call executes. */
#include "python/probe_site.h"

#include "tap.h"

#ifdef __x86_64__
static void check(const char *what, const uint8_t *code, size_t len, bool with_return, size_t skip,
                  enum probe_cost cost)
{
	struct probe_site point;

	probe_site_find(&point, 0x1000, code, len, with_return);
	ok(point.skip == skip && point.cost == cost, "%s", what);
	if (point.skip != skip)
		printf("# at +%zu, %s\n", point.skip, point.text);
}

#define CHECK(what, with_return, skip, cost, ...)                         \
	do {                                                              \
		static const uint8_t code[] = { __VA_ARGS__ };            \
		check(what, code, sizeof(code), with_return, skip, cost); \
	} while (0)

#define ENDBR 0xf3, 0x0f, 0x1e, 0xfa
#define RET   0xc3

static void test_points(void)
{
	CHECK("push: the probe is on it", true, 0, PROBE_EMULATED, 0x55, RET);
	CHECK("push %r15: the probe is on it", true, 0, PROBE_EMULATED, 0x41, 0x57, RET);
	CHECK("endbr64, push: the probe is after endbr64", true, 4, PROBE_EMULATED, ENDBR, 0x55,
	      RET);
	CHECK("endbr64, ret: the probe is on endbr64", true, 0, PROBE_SINGLE_STEPPED, ENDBR, RET);
	CHECK("sub from rsp, push: a return probe is on sub", true, 0, PROBE_SINGLE_STEPPED, 0x48,
	      0x83, 0xec, 0x08, 0x55, RET);
	CHECK("sub from rsp, push: an entry probe is on push", false, 4, PROBE_EMULATED, 0x48, 0x83,
	      0xec, 0x08, 0x55, RET);
	CHECK("mov from rdi, push: the probe is on push", true, 3, PROBE_EMULATED, 0x48, 0x89, 0xfb,
	      0x53, RET);
	CHECK("mov to rdi, push: the probe is on mov", true, 0, PROBE_SINGLE_STEPPED, 0x48, 0x89,
	      0xdf, 0x53, RET);
	CHECK("test, jne: the probe is on the branch", true, 2, PROBE_EMULATED, 0x85, 0xc0, 0x75,
	      0x10, RET);
	CHECK("call: the probe is on it", true, 0, PROBE_EMULATED, 0xe8, 0, 0, 0, 0, RET);
	CHECK("a jump back behind the entry: the probe is at the entry", false, 0,
	      PROBE_SINGLE_STEPPED, 0x48, 0x83, 0xec, 0x08, 0x85, 0xc0, 0x75, 0xfc, RET);
	CHECK("an invalid instruction: the probe is on it", true, 0, PROBE_SINGLE_STEPPED, 0x06);
}
#endif

int main(void)
{
	struct probe_site point;

	probe_site_find(&point, 0, NULL, 0, true);
	ok(point.skip == 0 && point.cost == PROBE_SINGLE_STEPPED,
	   "a function without code is single-stepped");
#ifdef __x86_64__
	test_points();
#endif
	return done_testing();
}
