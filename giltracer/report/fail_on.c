/* SPDX-License-Identifier: MIT */
#include "report/fail_on.h"

#include "base/cleanup.h"
#include "base/log.h"

int fail_on_parse(struct fail_on *ret, const struct opt_list *list, bool change, struct error *err)
{
	*ret = (struct fail_on){ 0 };
	for (unsigned i = 0; i < list->n; i++) {
		struct condition condition;

		if (condition_parse(&condition, list->v[i], change, err) < 0)
			return error_prefix(err, "--fail-on");
		*vec_push(&ret->conditions) = condition;
		*vec_push(&ret->texts) = list->v[i];
	}
	return 0;
}

void fail_on_done(struct fail_on *fail_on)
{
	vec_done(&fail_on->conditions);
	vec_done(&fail_on->texts);
}

int fail_on_check(const struct fail_on *fail_on, const struct summary *a, const struct summary *b)
{
	int status = 0;

	for (size_t i = 0; i < fail_on->conditions.n; i++) {
		CLEANUP(str_done) struct str why = { 0 };

		if (!condition_holds(&fail_on->conditions.v[i], a, b, &why))
			continue;
		log_error("--fail-on '%s': %s", fail_on->texts.v[i], str_get(&why));
		status = EXIT_FAIL_ON;
	}
	return status;
}

int fail_on_report(const struct fail_on *fail_on, const char *dir,
                   const struct report_outputs *outputs, struct error *err)
{
	struct report_outputs with_summary = *outputs;
	struct summary summary = { 0 };
	int status;

	if (fail_on->conditions.n)
		with_summary.summary = &summary;
	status = report_session(dir, &with_summary, err);
	if (status == 0)
		status = fail_on_check(fail_on, NULL, &summary);
	summary_done(&summary);
	return status;
}
