/* SPDX-License-Identifier: MIT */
/* What --confidential hides of names, sentences, source lines and the session's document. */
#include "session/privacy.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/vec.h"
#include "tap.h"
#include "trace/names.h"

/* As a recording of "/srv/acme/shop/app.py --key hunter2000 /srv/data.csv" by jane. */
static struct session *make_session(void)
{
	static const char *const command[] = { "shop/app.py", "--key", "hunter2000",
		                               "/srv/data.csv", NULL };
	struct session *s = session_new();

	s->cwd = xstrdup("/home/jane/acme");
	s->executable = xstrdup("/home/jane/.venv/bin/python3.12");
	s->kernel = xstrdup("6.18.0-built-by-acme");
	s->command = xcalloc(5, sizeof(*s->command));
	for (size_t i = 0; command[i]; i++)
		s->command[i] = xstrdup(command[i]);
	session_add_note(
		s, "probes", 1,
		"/home/jane/.venv/bin/python3.12 has no symbols: no probes, and jane waits");
	return s;
}

/* The name as a report has it; a number of a folder is replaced by N. */
static char *hidden(const struct privacy *p, const char *text)
{
	struct names *names = names_new_private(p);
	char *ret = xstrdup(names_get(names, names_id(names, text, strlen(text)))), *at = ret;

	while ((at = strstr(at, "hidden-"))) {
		at += strlen("hidden-");
		*at = 'N';
		memmove(at + 1, at + 8, strlen(at + 8) + 1);
	}
	names_free(names);
	return ret;
}

static void test_names(const struct privacy *p)
{
	static const struct {
		const char *text, *want;
	} names[] = {
		{ "work", "work" },
		{ "MainThread", "MainThread" },
		{ "Cache.get.<locals>.<lambda>", "Cache.get.<locals>.<lambda>" },
		{ "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>" },
		{ "[libfoo.so+0x12]", "[libfoo.so+0x12]" },
		{ "ns::operator/(A const&, B)", "ns::operator/(A const&, B)" },
		{ "kworker/u8:1-events", "kworker/u8:1-events" },
		{ "sum (C)", "sum (C)" },
		{ "/home/jane/acme/shop/app.py", "app.py" },
		{ "shop/app.py", "app.py" },
		{ "/home/jane/acme/shop/cart/tax.py", "cart/tax.py" },
		{ "work (/home/jane/acme/shop/cart/tax.py:12)", "work (cart/tax.py:12)" },
		{ "work (/home/jane/acme/tools/x.py:12)", "work (hidden-N/x.py:12)" },
		{ "f (/home/jane/My Files (old)/x.py:3)", "f (hidden-N/x.py:3)" },
		{ "/usr/lib/python3.11/threading.py", ".../lib/python3.11/threading.py" },
		{ "dump (/home/jane/.venv/lib/python3.12/site-packages/yaml/nodes.py:9)",
		  "dump (.../site-packages/yaml/nodes.py:9)" },
		{ "/home/jane/lib/python3.11/../x.py", "hidden-N/x.py" },
		{ "/srv/customers.csv", "hidden-N" },
		{ "reads /srv/My Customers/list of acme", "reads hidden-N" },
		{ "worker-/srv/x", "worker-hidden-N" },
		{ "reads 'customers/acme.csv'", "reads 'hidden-N'" },
		{ "~/acme", "hidden-N" },
		{ "pool /srv/acme_12", "pool hidden-N-12" },
		{ "/srv/customer-4711", "hidden-N" },
		{ "https://me:pw@acme.example/x?y=z", "https://hidden-N" },
		{ "jane-worker", "user-worker" },
		{ "janet", "janet" },
		{ "key hunter2000", "key argument" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *once = hidden(p, names[i].text);

		is_str(once, names[i].want, "%s", names[i].text);
		free(once);
	}
}

/* Equal paths stay equal and different ones different, and what is hidden needs no more hiding. */
static void test_ids(const struct privacy *p)
{
	struct names *names = names_new_private(p);
	uint32_t a = names_id(names, "/srv/a/x.py", 11), b = names_id(names, "/srv/b/x.py", 11);
	char *text = xstrdup(names_get(names, a));

	ok(a != b, "two files of different folders are different");
	ok(!strpbrk(names_get(names, a), "0123456789"), "not only in digits, which groups ignore");
	is_u64(names_id(names, "/srv/a/x.py", 11), a, "one is equal to itself");
	is_u64(names_id(names, text, strlen(text)), a, "also if it was hidden before");
	free(text);
	names_free(names);
}

/* Of any text, no part of a path in it is left, and what is hidden needs no more hiding. */
static void test_random(const struct privacy *p)
{
	static const char *const parts[] = { "/",  "/zq",      "/zq/x.csv", "/zq/x.py", "zq/zq/",
		                             " ",  " (",       ":12)",      "'",        "\"",
		                             "-",  "=",        "a",         "://zq",    "~/zq",
		                             "..", "\xc3\xa9", "+" };
	unsigned left = 0, again = 0;

	for (uint64_t i = 0, seed = 1; i < 50000; i++) {
		CLEANUP(str_done) struct str text = { 0 }, once = { 0 }, twice = { 0 };

		for (uint64_t n = i % 9 + 1; n--;) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			str_adds(&text, parts[(seed >> 33) % (sizeof(parts) / sizeof(*parts))]);
		}
		if (!privacy_of_name(p, str_get(&text), text.len, &once))
			str_adds(&once, str_get(&text));
		if ((strstr(str_get(&once), "/zq/x.csv") && !strstr(str_get(&text), ".py")) ||
		    strstr(str_get(&once), " /zq") || strstr(str_get(&once), "://zq")) {
			if (!left++)
				printf("# %s -> %s\n", str_get(&text), str_get(&once));
		}
		if (privacy_of_name(p, str_get(&once), once.len, &twice) && !again++)
			printf("# %s -> %s -> %s\n", str_get(&text), str_get(&once),
			       str_get(&twice));
	}
	is_u64(left, 0, "of random texts, no path is left");
	is_u64(again, 0, "and none changes when it is hidden again");
}

/* A long name takes no longer than its length. */
static void test_long(const struct privacy *p)
{
	enum { LONG = 1 << 22 };
	CLEANUP(free) char *text = xcalloc(LONG, 1);
	CLEANUP(str_done) struct str out = { 0 };

	for (size_t i = 0; i < LONG; i++)
		text[i] = "+a"[i & 1];
	text[LONG - 1] = '/';
	ok(!privacy_of_name(p, text, LONG, &out), "4 MiB of parts of a token");
}

static void add_line(struct sources *to, const char *file, uint32_t line, uint32_t indent,
                     const char *text)
{
	*vec_push(to) = (struct source_line){
		.file = xstrdup(file), .text = xstrdup(text), .line = line, .indent = indent
	};
}

static void test_sources(const struct privacy *p)
{
	static const struct {
		const char *text;
		bool hidden;
		uint32_t indent;
	} lines[] = {
		{ "def work(items):", false, 0 },
		{ "total = sum(x / 2 for x in items)", false, 4 },
		{ "password = \"hunter2\"", true, 4 },
		{ "connect(user, passwd='x')", true, 4 },
		{ "config[\"api_key\"] = 'x'", true, 4 },
		{ "key = 'x'", true, 4 },
		{ "keys = sorted(items)", false, 4 },
		{ "if key == 'x':", false, 4 },
		{ "PIN: int = 123456", true, 4 },
		{ "token = next(tokens)", false, 4 },
		{ "headers = {'Authorization': 'Bearer x'}", true, 4 },
		{ "x = 'AKIAIOSFODNN7EXAMPLEabc'", true, 4 },
		{ "x = '0123456789abcdef0123456789abcdef'", true, 4 },
		{ "test_of_a_long_name_without_digits_12()", false, 4 },
		{ "SECRET = (", false, 4 },
		{ "join('a', x)", true, 8 },
		{ ")", false, 4 },
		{ "'the second line of something',", true, 4 },
	};
	CLEANUP(sources_done) struct sources s = { 0 };
	unsigned n = sizeof(lines) / sizeof(*lines);

	for (uint32_t i = 0; i < n; i++)
		add_line(&s, "/home/jane/acme/shop/app.py", i + 1, lines[i].indent, lines[i].text);
	add_line(&s, "/srv/x.py", 1, 0, "open('/srv/customers.csv')  # see /srv/acme list");
	add_line(&s, "/srv/x.py", 2, 0, "self.total/self.count");
	add_line(&s, "/srv/x.py", 3, 0, "requests.get('https://me:pw@acme.example/')");
	privacy_of_sources(p, &s);
	for (uint32_t i = 0; i < n; i++)
		ok(!strncmp(s.v[i].text, "(hidden", 7) == lines[i].hidden, "%s: %s", lines[i].text,
		   lines[i].hidden ? "hidden" : "shown");
	is_str(s.v[0].file, "app.py", "the file has the name that functions have");
	ok(!strstr(s.v[n].text, "srv") && !strncmp(s.v[n].text, "open('hidden-", 13),
	   "paths in lines are hidden: %s", s.v[n].text);
	is_str(s.v[n + 1].text, "self.total/self.count", "a division is none");
	ok(!strstr(s.v[n + 2].text, "acme"), "a URL is hidden: %s", s.v[n + 2].text);
}

/* What is left of a command, which is divided at blanks. */
static void test_commands(void)
{
	static const struct {
		const char *command, *want;
	} commands[] = {
		{ "python3 -c pin=4711", "python3 -c (1 argument hidden)" },
		{ "python3 -uc pin=4711 x", "python3 -uc (2 arguments hidden)" },
		{ "python3 -Bcpin=4711 x", "python3 -Bc (1 argument hidden)" },
		{ "python3 -W error -X dev -c pin=4711",
		  "python3 -W error -X dev -c (1 argument hidden)" },
		{ "python3 -uW error app.py 4711", "python3 -uW error app.py (1 argument hidden)" },
		{ "python3 -um shop 4711", "python3 -um shop (1 argument hidden)" },
		{ "python3 -mshop 4711", "python3 -mshop (1 argument hidden)" },
		{ "python3 -u app.py -c 4711", "python3 -u app.py (2 arguments hidden)" },
		{ "-c pin=4711", "-c (1 argument hidden)" },
		{ "-m shop 4711", "-m shop (1 argument hidden)" },
		{ "shop -c 4711", "shop (2 arguments hidden)" },
		{ "- 4711", "- (1 argument hidden)" },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		CLEANUP(privacy_free) struct privacy *p = privacy_new();
		CLEANUP(session_free) struct session *s = session_new();
		CLEANUP(free) char *text = xstrdup(commands[i].command);
		CLEANUP(str_done) struct str got = { 0 };
		char *rest = text, *word;
		size_t n = 0;

		s->command = xcalloc(9, sizeof(*s->command));
		while ((word = strsep(&rest, " ")))
			s->command[n++] = xstrdup(word);
		privacy_of_session(p, s);
		for (char **at = s->command; *at; at++)
			str_addf(&got, "%s%s", at == s->command ? "" : " ", *at);
		is_str(str_get(&got), commands[i].want, "%s", commands[i].command);
	}
}

/* Many arguments take no longer than few; the longest of those that begin alike is hidden. */
static void test_arguments(void)
{
	enum { ARGUMENTS = 50000, NAMES = 50000 };
	CLEANUP(privacy_free) struct privacy *p = privacy_new();
	CLEANUP(session_free) struct session *s = session_new();
	CLEANUP(free) char *long_name = NULL, *short_name = NULL;
	size_t changed = 0;

	s->cwd = xstrdup("/home/jane");
	s->command = xcalloc(ARGUMENTS + 2, sizeof(*s->command));
	s->command[0] = xstrdup("app.py");
	for (unsigned i = 1; i <= ARGUMENTS; i++)
		s->command[i] = xasprintf("jane-%u", 10000 + i);
	privacy_of_session(p, s);
	for (unsigned i = 0; i < NAMES; i++) {
		CLEANUP(free) char *text = xasprintf("name_%u", i);
		CLEANUP(str_done) struct str out = { 0 };

		changed += privacy_of_name(p, text, strlen(text), &out);
	}
	is_u64(changed, 0, "names that are no arguments");
	long_name = hidden(p, "(jane-10007)");
	short_name = hidden(p, "jane-1");
	is_str(long_name, "(argument)", "an argument that begins with the user's name");
	is_str(short_name, "user-1", "the name alone");
}

int main(void)
{
	struct session *s = make_session();
	struct privacy *p = privacy_new();

	privacy_of_session(p, s);
	is_str(s->command[0], "app.py", "the program is named");
	is_str(s->command[1], "(3 arguments hidden)", "its arguments are counted");
	ok(!s->command[2], "and hidden");
	is_str(s->kernel, "6.18.0", "the kernel has its version only");
	ok(str_has_suffix(s->executable, "/python3.12") && !strstr(s->executable, "jane"),
	   "the interpreter has no folder: %s", s->executable);
	ok(!strstr(s->notes[0].text, "jane") && strstr(s->notes[0].text, ": no probes, and user"),
	   "a note stays, without the path: %s", s->notes[0].text);
	test_commands();
	test_arguments();
	test_names(p);
	test_ids(p);
	test_random(p);
	test_long(p);
	test_sources(p);
	session_free(s);
	privacy_free(p);
	return done_testing();
}
