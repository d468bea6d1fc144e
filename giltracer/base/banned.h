/* SPDX-License-Identifier: MIT */
/* Functions that we do not use. The configuration includes this file by -include, so that a use
 * does not compile. */
#ifndef GILTRACER_BASE_BANNED_H
#define GILTRACER_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With clang, glibc's fortified headers define sprintf as a macro. */
#undef sprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets atoi atol atoll system popen

#endif
