/* SPDX-License-Identifier: MIT */
/* A futex, because the library observes the locks of libc. */
#include "preload/calls_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FREE, LOCKED, WAITED_FOR };

static atomic_int state;

void calls_lock(void)
{
	int expected = FREE, saved = errno;

	if (atomic_compare_exchange_strong(&state, &expected, LOCKED))
		return;
	while (atomic_exchange(&state, WAITED_FOR) != FREE)
		syscall(SYS_futex, &state, FUTEX_WAIT_PRIVATE, WAITED_FOR, NULL);
	errno = saved;
}

void calls_unlock(void)
{
	int saved = errno;

	if (atomic_exchange(&state, FREE) == WAITED_FOR)
		syscall(SYS_futex, &state, FUTEX_WAKE_PRIVATE, 1);
	errno = saved;
}

void calls_lock_in_child(void)
{
	atomic_store(&state, FREE);
}
