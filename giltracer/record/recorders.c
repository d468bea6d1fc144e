/* SPDX-License-Identifier: MIT */
#include "record/recorders.h"

#include <stdlib.h>

#include "base/alloc.h"

/* Only the first problem is reported. */
static void set_once(char **where, const char *text)
{
	if (!*where)
		*where = xstrdup(text);
}

int recorders_start(struct recorders *r, const struct signals *signals, struct error *err)
{
	struct perf_plan plans[RECORDERS_MAX];

	for (size_t i = 0; i < r->count; i++) {
		plans[i] = r->plans[i];
		plans[i].pid = r->pid;
		plans[i].others = r->others;
		plans[i].late_tasks = r->late_tasks;
		if (recorder_start(&r->v[i], &plans[i], signals, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < r->count; i++)
		if (recorder_ready(&r->v[i], &plans[i], signals, err) < 0)
			return -1;
	return 0;
}

void recorders_command(struct recorders *r, const char *command, char **note)
{
	bool sent[RECORDERS_MAX] = { false };
	struct error err;

	/* perf ends with the program; recorder_finish() reports whether it succeeded. */
	if (r->ended(r->data))
		return;
	for (size_t i = 0; i < r->count; i++) {
		if (r->v[i].stopped || (r->plans[i].standby && !r->standby_used))
			continue;
		sent[i] = recorder_command(&r->v[i], command, &err) == 0;
		if (!sent[i] && !r->ended(r->data))
			set_once(note, err.text);
	}
	for (size_t i = 0; i < r->count; i++)
		if (sent[i] && recorder_answer(&r->v[i], &err) < 0 && !r->ended(r->data))
			set_once(note, err.text);
}

int recorders_enable_standby(struct recorders *r, struct error *err)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->plans[i].standby && (recorder_command(&r->v[i], "enable", err) < 0 ||
		                            recorder_answer(&r->v[i], err) < 0))
			return -1;
	r->standby_used = true;
	return 0;
}

void recorders_finish(struct recorders *r, char **note)
{
	char *why = NULL;
	struct error err;

	/* Stop all at the same time: the kernel takes a while for each. */
	for (size_t i = 0; i < r->count; i++)
		recorder_stop(&r->v[i]);
	for (size_t i = 0; i < r->count; i++)
		if (recorder_finish(&r->v[i], &err) < 0)
			set_once(&why, err.text);
	if (!why)
		return;
	free(*note);
	*note = why;
}

void recorders_done(struct recorders *r)
{
	for (size_t i = 0; i < RECORDERS_MAX; i++)
		recorder_done(&r->v[i]);
}

void recorders_reset(struct recorders *r)
{
	recorders_done(r);
	for (size_t i = 0; i < RECORDERS_MAX; i++)
		r->v[i] = (struct recorder)RECORDER_NONE;
}
