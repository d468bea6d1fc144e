/* SPDX-License-Identifier: MIT */
#include "record/execution.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#include "tap.h"

/* "PID/TID NAME; …" */
static const char *text_of(const struct thread_names *named)
{
	static struct str text;

	text.len = 0;
	str_adds(&text, "");
	for (size_t i = 0; i < named->n; i++)
		str_addf(&text, "%" PRIu32 "/%" PRIu32 " %s; ", named->v[i].pid, named->v[i].tid,
		         named->v[i].name);
	return text.s;
}

static void test_add(void)
{
	struct thread_names named = { 0 };

	thread_names_add(&named, 0, "12 Thread-1 (work)");
	thread_names_add(&named, 3, "13 ");
	thread_names_add(&named, 0, "no number");
	thread_names_add(&named, 0, "0 nobody");
	thread_names_add(&named, 0, "99999999999 nobody");
	thread_names_add(&named, 0, "14");
	is_str(text_of(&named), "0/12 Thread-1 (work); 3/13 ; ", "a thread and its name");
	session_threads_free(named.v, named.n);
}

static void test_read(void)
{
	char path[] = "/tmp/test-thread-names.XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	struct thread_names named = { 0 };

	fputs("7 7 MainThread\n7 8 one two\n\nnonsense\n-1 5 x\n9 9\n9 10 \xc3\xa4\n9 11 cut",
	      file);
	fclose(file);
	thread_names_read(&named, path);
	is_str(text_of(&named), "7/7 MainThread; 7/8 one two; 9/10 \xc3\xa4; ",
	       "what children wrote, but for a line that was cut");
	ok(access(path, F_OK) < 0, "is read once");
	thread_names_read(&named, path);
	is_u64(named.n, 3, "no file is no child");
	session_threads_free(named.v, named.n);
}

static void test_most(void)
{
	char path[] = "/tmp/test-thread-names.XXXXXX";
	FILE *file = fdopen(mkstemp(path), "w");
	struct thread_names named = { 0 };

	for (int i = 1; i <= 20000; i++)
		fprintf(file, "%d %d x\n", i, i);
	fclose(file);
	thread_names_read(&named, path);
	is_u64(named.n, 10000, "a program that forks all the time");
	session_threads_free(named.v, named.n);
}

int main(void)
{
	test_add();
	test_read();
	test_most();
	return done_testing();
}
