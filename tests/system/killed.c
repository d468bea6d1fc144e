/* SPDX-License-Identifier: MIT */
/* Preloaded into giltracer, kills it right before its call number $KILLED_AT of ptrace(2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...)
{
	static int calls;
	long (*next)(enum __ptrace_request, ...);
	void *args[3];
	va_list list;

	va_start(list, request);
	for (int i = 0; i < 3; i++)
		args[i] = va_arg(list, void *);
	va_end(list);
	*(void **)&next = dlsym(RTLD_NEXT, "ptrace");
	if (++calls == atoi(getenv("KILLED_AT")))
		kill(getpid(), SIGKILL);
	return next(request, args[0], args[1], args[2]);
}
