/* SPDX-License-Identifier: MIT */
/* The fetch arguments of Python frames. */
#include "python/framefetch.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"

/* The value at offset from the address inner. Decimal is shorter: an expression may have 62
 * characters (MAX_ARGSTR_LEN in kernel/trace/trace_probe.h). */
static char *deref(const char *inner, uint32_t offset)
{
	return xasprintf("+%u(%s)", offset, inner);
}

static char *current_frame(const struct probedef *def, const char *tstate)
{
	char *first = deref(tstate, def->frame[FRAME_CURRENT]);
	char *second;

	if (def->frame[FRAME_CURRENT2] == PROBEDEF_NO_OFFSET)
		return first;
	second = deref(first, def->frame[FRAME_CURRENT2]);
	free(first);
	return second;
}

static void add_frame(struct str *out, const uint32_t *at, const char *frame, uint32_t type,
                      unsigned k)
{
	CLEANUP(free) char *code = deref(frame, at[FRAME_CODE]);
	CLEANUP(free) char *name = deref(code, at[FRAME_NAME]);

	str_addf(out, " t%u=+%u(%s):ustring", k, type, code);
	str_addf(out, " c%u=%s:u64", k, code);
	str_addf(out, " i%u=+%u(%s):u%u", k, at[FRAME_INSTRUCTION], frame,
	         at[FRAME_INSTRUCTION_SIZE] * 8);
	str_addf(out, " l%u=+%u(%s):u32", k, at[FRAME_LINE], code);
	str_addf(out, " s%u=+%u(%s):u32", k, at[FRAME_STATE], name);
	str_addf(out, " q%u=+%u(%s):ustring", k, at[FRAME_TEXT], name);
}

void framefetch_add(struct str *out, const struct probedef *def, const char *tstate, uint64_t probe,
                    const struct framefetch_at *at, unsigned count)
{
	CLEANUP(free) char *frame = current_frame(def, tstate);
	/* Loading a file moves it by whole pages, so the lowest byte of an address does not
	 * change. */
	uint32_t type = def->frame[FRAME_TYPE] + !(at->code_type & 0xff);

	str_addf(out, "%sct=\\0x%" PRIx64 ":u64", out->len ? " " : "", at->code_type - probe);
	if (at->none && def->minor >= 13 && count > 1)
		str_addf(out, " cn=\\0x%" PRIx64 ":u64", at->none - probe);
	for (unsigned k = 0; k < count; k++) {
		char *caller;

		add_frame(out, def->frame, frame, type, k);
		caller = deref(frame, def->frame[FRAME_PREVIOUS]);
		free(frame);
		frame = caller;
	}
}
