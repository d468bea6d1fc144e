/* SPDX-License-Identifier: MIT */
/* Matches name, or name followed by a dot and any suffix. */
#include "binary/clone.h"

#include <string.h>

bool clone_of(const char *symbol, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(symbol, name, len) && (!symbol[len] || symbol[len] == '.');
}

static bool is_whole_word(const char *word, size_t len)
{
	static const char *const words[] = { "constprop", "isra", "part", "lto_priv", "llvm" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i]) == len && !memcmp(word, words[i], len))
			return true;
	return len && strspn(word, "0123456789") == len;
}

bool clone_is_whole(const char *symbol, const char *name)
{
	const char *p;

	if (!clone_of(symbol, name))
		return false;
	for (p = symbol + strlen(name); *p;) {
		size_t len = strcspn(++p, ".");

		if (!is_whole_word(p, len))
			return false;
		p += len;
	}
	return true;
}
