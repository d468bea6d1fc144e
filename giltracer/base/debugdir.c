/* SPDX-License-Identifier: MIT */
#include "base/debugdir.h"

#include <stdlib.h>

const char *debugdir(void)
{
	const char *dir = getenv("GILTRACER_DEBUGDIR");

	if (!dir)
		return "/usr/lib/debug";
	return *dir ? dir : NULL;
}
