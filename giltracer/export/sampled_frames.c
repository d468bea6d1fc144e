/* SPDX-License-Identifier: MIT */
/* Numbers the functions and lines of samples. */
#include "export/sampled_frames.h"

#include <stdlib.h>

#include "analysis/facts.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "report/phrases.h"
#include "trace/names.h"
#include "trace/stacks.h"

enum { NO_FRAME = SAMPLED_WHATS, NO_STACK, FUNCTIONS };

static uint32_t add_frame(struct sampled_frames *f, const struct stack_frame *frame)
{
	uint32_t next = (uint32_t)f->v.n, first, at;

	idmap_add(&f->functions, idmap_pair(frame->name, frame->module), next, &first);
	if (idmap_add(&f->lines, idmap_pair(first, frame->line), next, &at))
		*vec_push(&f->v) = (struct sampled_frame){ frame->name, frame->module, frame->line,
			                                   first };
	return at;
}

void sampled_frames_init(struct sampled_frames *f, const struct samples *samples)
{
	uint32_t stacks = samples ? stacks_count(samples->stacks) : 0;

	*f = (struct sampled_frames){ .samples = samples };
	if (!samples)
		return;
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		*vec_push(&f->v) = (struct sampled_frame){ .function = i };
	f->of_stack = xcalloc(stacks, sizeof(*f->of_stack));
	for (uint32_t i = 1; i < stacks; i++)
		f->of_stack[i] = add_frame(f, stacks_get(samples->stacks, i));
}

void sampled_frames_done(struct sampled_frames *f)
{
	vec_done(&f->v);
	free(f->of_stack);
	idmap_done(&f->functions);
	idmap_done(&f->lines);
}

void sampled_frames_place(struct place *ret, const struct sampled_frames *f, uint32_t frame)
{
	if (frame < NO_FRAME)
		place_of(ret, sampled_what_name((enum sampled_what)frame), NULL, 0);
	else if (frame < FUNCTIONS)
		place_of(ret, phrase(frame == NO_STACK ? PHRASE_no_stack : PHRASE_no_python_frame),
		         NULL, 0);
	else
		place_of(ret, names_get(f->samples->names, f->v.v[frame].name),
		         names_get(f->samples->names, f->v.v[frame].file), f->v.v[frame].line);
}

uint32_t sampled_frames_chain(uint32_t ret[SAMPLED_CHAIN_MAX], const struct sampled_frames *f,
                              const struct sample_run *run)
{
	const struct stacks *stacks = f->samples->stacks;
	uint32_t depth = 0, n;

	for (uint32_t id = run->stack; id; id = stacks_get(stacks, id)->parent)
		depth++;
	n = depth > PYSTACK_DEPTH_MAX ? PYSTACK_DEPTH_MAX : depth;
	for (uint32_t id = run->stack; id; id = stacks_get(stacks, id)->parent)
		if (--depth < n)
			ret[depth] = f->of_stack[id];
	if (!n)
		ret[n++] = run->flags & SAMPLE_TORN ? NO_STACK : NO_FRAME;
	ret[n++] = sampled_what_of(run);
	return n;
}

char *sampled_frames_thread(const struct recording_pass *pass, const struct sample_thread *thread)
{
	uint32_t of = sampled_model_thread(pass, thread);

	return place_text(of == MODEL_NONE ? names_get(pass->samples->names, thread->name)
	                                   : facts_thread_name(pass, of));
}
