/* SPDX-License-Identifier: MIT */
#include "report/sampled_text.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/wording.h"
#include "trace/names.h"

#define NAME_COLUMNS 48

const char *sampled_what_text(enum sampled_what what)
{
	static const enum phrase texts[SAMPLED_WHATS] = {
		[SAMPLED_HOLDS] = PHRASE_what_holds,     [SAMPLED_WAITS] = PHRASE_what_waits,
		[SAMPLED_RUNNING] = PHRASE_what_running, [SAMPLED_LOCK] = PHRASE_what_lock,
		[SAMPLED_NETWORK] = PHRASE_what_network, [SAMPLED_POLL] = PHRASE_what_poll,
		[SAMPLED_FILE] = PHRASE_what_file,       [SAMPLED_SLEEP] = PHRASE_what_sleep,
		[SAMPLED_CHILD] = PHRASE_what_child,     [SAMPLED_OTHER] = PHRASE_what_other,
		[SAMPLED_UNKNOWN] = PHRASE_what_unknown,
	};

	return phrase(texts[what]);
}

unsigned sampled_add_place(struct str *out, const struct recording_pass *pass,
                           const struct sampled_place *place, unsigned columns)
{
	const struct names *names = pass->samples->names;
	const struct function callee = { names_get(names, place->name),
		                         names_get(names, place->file), place->line };
	const struct function caller = { names_get(names, place->caller),
		                         names_get(names, place->caller_file), place->caller_line };
	CLEANUP(str_done) struct str callee_text = { 0 }, caller_text = { 0 };
	size_t len = out->len;

	wording_add_function(&callee_text, &callee, columns);
	if (place->caller) {
		wording_add_function(&caller_text, &caller, columns);
		say_called_by(out, str_get(&callee_text), str_get(&caller_text));
	} else {
		str_adds(out, str_get(&callee_text));
	}
	return utf8_columns(str_get(out) + len);
}

void sampled_add_reason(struct str *out, const struct analysis *a, const struct reason *r)
{
	CLEANUP(str_done) struct str name = { 0 };

	if (r->place)
		sampled_add_place(&name, a->pass, r->place, NAME_COLUMNS);
	else if (r->thread != MODEL_NONE)
		wording_add_thread(&name, a->pass, r->thread);
	switch (r->code) {
	case REASON_SAMPLED:
		say_sampled(out, r->count, r->number);
		return;
	case REASON_SAMPLED_NO_GIL:
		say_sampled_no_gil(out, r->count);
		return;
	case REASON_SAMPLED_HOLDER:
		say_sampled_holder(out, str_get(&name), r->percent);
		return;
	case REASON_SAMPLED_HELD:
		say_sampled_held(out, r->percent, str_get(&name));
		return;
	case REASON_SAMPLED_PLACE:
		say_sampled_place(out, r->percent, str_get(&name),
		                  sampled_what_text(r->place->what));
		return;
	case QUALITY_SAMPLED:
		say_quality_sampled(out, r->count);
		return;
	default:
		return;
	}
}
