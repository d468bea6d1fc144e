/* SPDX-License-Identifier: MIT */
/* Adds reasons to a verdict. */
#include "analysis/reasons.h"

#include "model/model.h"

struct reason *reasons_add(struct reasons *reasons, enum reason_code code)
{
	struct reason *r = vec_push(&reasons->v);

	*r = (struct reason){
		.code = code, .thread = MODEL_NONE, .other = MODEL_NONE, .group = MODEL_NONE
	};
	return r;
}
