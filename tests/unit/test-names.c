/* SPDX-License-Identifier: MIT */
#include "trace/names.h"

#include <stdlib.h>

#include "tap.h"

int main(void)
{
	struct names *names = names_new();
	uint32_t a = names_id(names, "abc", 3), long_id;
	const char *text = names_get(names, a);
	char *big = calloc(1, 100001);
	unsigned wrong = 0;

	is_str(names_get(names, 0), "", "id 0 is the empty text");
	is_u64(names_id(names, NULL, 0), 0, "also where there is no text");
	is_u64(names_id(names, "\0x", 2), 0, "a NUL ends it");
	is_u64(names_id(names, "abcd", 3), a, "equal text, equal id");
	ok(names_id(names, "abcd", 4) != a, "other text, other id");
	for (int i = 0; i < 10000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		names_id(names, name, strlen(name));
	}
	is_u64(names_count(names), 10003, "ids are counted up");
	for (int i = 0; i < 10000; i++) {
		char name[16];

		snprintf(name, sizeof(name), "n%d", i);
		wrong += strcmp(names_get(names, names_id(names, name, sizeof(name))), name) != 0;
	}
	is_u64(wrong, 0, "and found again");
	ok(names_get(names, a) == text && !strcmp(text, "abc"), "texts do not move");
	memset(big, 'x', 100000);
	long_id = names_id(names, big, 100000);
	is_u64(strlen(names_get(names, long_id)), 100000, "a very long one");
	free(big);
	names_free(names);
	names_free(NULL);
	return done_testing();
}
