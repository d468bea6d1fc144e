/* SPDX-License-Identifier: MIT */
/* For join.py: code that would notice if a tracer changed registers, the stack below the stack pointer,
 * or the result of a system call. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#define EACH(op)                                                                                \
	op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11) op(12) op(13) \
		op(14) op(15)
#define LOAD(i)       "vmovdqu " #i "*32(%1), %%ymm" #i "\n"
#define STORE(i)      "vmovdqu %%ymm" #i ", " #i "*32(%2)\n"
#define LOAD_HALF(i)  "movdqu " #i "*16(%1), %%xmm" #i "\n"
#define STORE_HALF(i) "movdqu %%xmm" #i ", " #i "*16(%2)\n"

/* Waits with all registers in use; the loop also uses the red zone. */
#define WAIT(load, store)                                                                          \
	__asm__ volatile(                                                                          \
		EACH(load) "fldpi\n"                                                               \
			   "mov $0x5117, %%r8\n mov %%r8, %%r9\n mov %%r8, %%r12\n"                \
			   "mov %%r8, -8(%%rsp)\n mov %%r8, -128(%%rsp)\n"                         \
			   "1: cmp %%r8, %%r9\n jne 2f\n"                                          \
			   "cmp %%r8, %%r12\n jne 2f\n"                                            \
			   "cmp %%r8, -8(%%rsp)\n jne 2f\n"                                        \
			   "cmp %%r8, -128(%%rsp)\n jne 2f\n"                                      \
			   "cmpl $0, (%3)\n je 1b\n"                                               \
			   "xor %%r9, %%r9\n"                                                      \
			   "2: fldpi\n fcomip %%st(1), %%st\n jne 3f\n jp 3f\n"                    \
			   "jmp 4f\n3: mov $1, %%r9\n4: fstp %%st(0)\n" EACH(store) "mov %%r9, %0" \
		: "=m"(wrong)                                                                      \
		: "r"(before), "r"(after), "r"(stop)                                               \
		: "memory", "cc", "r8", "r9", "r12")

/* Returns 0 if all is as before when *stop is set. */
int keep(const volatile int *stop)
{
	unsigned char before[512], after[512] = { 0 };
	unsigned long wrong = 1;
	size_t size = __builtin_cpu_supports("avx") ? 512 : 256;

	for (size_t i = 0; i < sizeof(before); i++)
		before[i] = (unsigned char)(i * 7 + 1);
	if (size == 512)
		WAIT(LOAD, STORE);
	else
		WAIT(LOAD_HALF, STORE_HALF);
	return wrong || memcmp(before, after, size) != 0;
}

/* A wait that is not CPython's: its caller does not expect EINTR. Returns errno, or 0 after ms. */
int wait_ms(int ms)
{
	return poll(NULL, 0, ms) == 0 ? 0 : errno;
}
