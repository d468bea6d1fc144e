/* SPDX-License-Identifier: MIT */
/* Where a probe goes in a prologue: on what the kernel emulates, if every call comes there. */
#include "locate/probe_site.h"

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
	CHECK("push: there", true, 0, PROBE_EMULATED, 0x55, RET);
	CHECK("push %r15: there", true, 0, PROBE_EMULATED, 0x41, 0x57, RET);
	CHECK("endbr64, push: behind endbr64", true, 4, PROBE_EMULATED, ENDBR, 0x55, RET);
	CHECK("endbr64, ret: nothing better", true, 0, PROBE_SINGLE_STEPPED, ENDBR, RET);
	CHECK("sub from rsp, push: a return probe cannot wait", true, 0, PROBE_SINGLE_STEPPED, 0x48,
	      0x83, 0xec, 0x08, 0x55, RET);
	CHECK("sub from rsp, push: an entry probe can", false, 4, PROBE_EMULATED, 0x48, 0x83, 0xec,
	      0x08, 0x55, RET);
	CHECK("mov rdi away, push: behind it", true, 3, PROBE_EMULATED, 0x48, 0x89, 0xfb, 0x53,
	      RET);
	CHECK("mov into rdi, push: the argument would be lost", true, 0, PROBE_SINGLE_STEPPED, 0x48,
	      0x89, 0xdf, 0x53, RET);
	CHECK("test, jne: on the branch", true, 2, PROBE_EMULATED, 0x85, 0xc0, 0x75, 0x10, RET);
	CHECK("call: emulated", true, 0, PROBE_EMULATED, 0xe8, 0, 0, 0, 0, RET);
	CHECK("sub from rsp, test, jne that comes back to test: nowhere", false, 0,
	      PROBE_SINGLE_STEPPED, 0x48, 0x83, 0xec, 0x08, 0x85, 0xc0, 0x75, 0xfc, RET);
	CHECK("not an instruction", true, 0, PROBE_SINGLE_STEPPED, 0x06);
}
#endif

int main(void)
{
	struct probe_site point;

	probe_site_find(&point, 0, NULL, 0, true);
	ok(point.skip == 0 && point.cost == PROBE_SINGLE_STEPPED, "no code is no reason to crash");
#ifdef __x86_64__
	test_points();
#endif
	return done_testing();
}
