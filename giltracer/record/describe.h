/* SPDX-License-Identifier: MIT */
/* What every session says of its interpreter and of the host. */
#ifndef GILTRACER_RECORD_DESCRIBE_H
#define GILTRACER_RECORD_DESCRIBE_H

#include "locate/python.h"
#include "session/session.h"

/* The rest is the caller's to fill in; session_free. */
struct session *describe_session(const struct python *python);

#endif
