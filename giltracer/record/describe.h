/* SPDX-License-Identifier: MIT */
/* What every session document contains about the interpreter and the host. */
#ifndef GILTRACER_RECORD_DESCRIBE_H
#define GILTRACER_RECORD_DESCRIBE_H

#include "locate/python.h"
#include "session/session.h"

/* A session with these; the caller fills in the rest, and frees it with session_free. */
struct session *describe_session(const struct python *python);

#endif
