/* SPDX-License-Identifier: MIT */
/* An untrusted session.json is read or refused. */
#include <stdint.h>
#include <stdlib.h>

#include "session/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session *session = NULL;
	struct error err = { 0 };

	if (session_parse(&session, (const char *)data, size, &err) == 0 && !session)
		abort();
	session_free(session);
	return 0;
}
