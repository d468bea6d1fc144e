/* SPDX-License-Identifier: MIT */
/* What blocks the threads of a free-threaded interpreter, in sentences of the verdict. */
#ifndef GILTRACER_REPORT_LOCKS_SAY_H
#define GILTRACER_REPORT_LOCKS_SAY_H

#include "base/str.h"
#include "report/evidence.h"

/* What they wait for where there is no GIL: append to because and advice. */
void locks_say(struct verdict *verdict, const struct evidence *e);

/* That the GIL of such an interpreter is on, and why; nothing if it is not. */
void locks_say_turned_on(struct str *out, const struct evidence *e);

#endif
