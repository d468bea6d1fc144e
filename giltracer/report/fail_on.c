/* SPDX-License-Identifier: MIT */

#include "report/fail_on.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "report/phrases.h"

static const struct {
	const char *name;
	enum fact_units unit;
	double factor;
} units[] = {
	{ "%", UNIT_PERCENT, 1 }, { "ns", UNIT_TIME, 1 },  { "us", UNIT_TIME, 1e3 },
	{ "ms", UNIT_TIME, 1e6 }, { "s", UNIT_TIME, 1e9 }, { "", UNIT_COUNT, 1 },
};

static const char *skip_spaces(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

static int unknown_fact(const char *text, int len, struct error *err)
{
	CLEANUP(str_done) struct str names = { 0 };

	for (unsigned i = 0; i < FACTS; i++)
		str_addf(&names, "%s%s", i ? ", " : "", fact_kinds[i].name);
	return error_set(err, EINVAL, "'%.*s': unknown, expected one of %s", len, text,
	                 str_get(&names));
}

static int parse_fact(struct condition *ret, const char **at, struct error *err)
{
	size_t len = 0;

	while (isalnum((unsigned char)(*at)[len]) || (*at)[len] == '_')
		len++;
	for (unsigned i = 0; i < FACTS; i++) {
		if (strlen(fact_kinds[i].name) == len && !memcmp(fact_kinds[i].name, *at, len)) {
			ret->fact = i;
			*at += len;
			return 0;
		}
	}
	return unknown_fact(*at, len < 40 ? (int)len : 40, err);
}

static int parse_operator(struct condition *ret, const char **at, const char *text,
                          struct error *err)
{
	const char *s = skip_spaces(*at);
	bool equal = *s && s[1] == '=';

	if (*s != '<' && *s != '>')
		return error_set(err, EINVAL,
		                 "'%.60s': expected one of > >= < <= and a number after %s", text,
		                 fact_kinds[ret->fact].name);
	if (*s == '>')
		ret->operator= equal ? OPERATOR_GE : OPERATOR_GT;
	else
		ret->operator= equal ? OPERATOR_LE : OPERATOR_LT;
	*at = s + (equal ? 2 : 1);
	return 0;
}

static int parse_number(struct condition *ret, const char **at, const char *text, bool change,
                        struct error *err)
{
	const char *s = skip_spaces(*at);
	bool sign = *s == '+' || *s == '-';
	bool negative = *s == '-';
	size_t len;
	char *end;

	s += sign;
	len = strspn(s, "0123456789.");
	ret->limit = strtod(s, &end);
	if (!len || end != s + len)
		return error_set(err, EINVAL, "'%.60s': expected a number, as in %s>10%s", text,
		                 fact_kinds[ret->fact].name,
		                 fact_kinds[ret->fact].units & UNIT_PERCENT ? "%"
		                 : fact_kinds[ret->fact].units & UNIT_TIME  ? "ms"
		                                                            : "");
	if (sign && !change)
		return error_set(err, EINVAL,
		                 "'%.60s': only a change has a sign, see giltracer diff", text);
	if (negative)
		ret->limit = -ret->limit;
	*at = end;
	return 0;
}

static int parse_unit(struct condition *ret, const char *at, const char *text, struct error *err)
{
	unsigned allowed = fact_kinds[ret->fact].units;
	size_t len;

	at = skip_spaces(at);
	len = strcspn(at, " \t");
	for (unsigned i = 0; i < sizeof(units) / sizeof(*units) && !*skip_spaces(at + len); i++) {
		if (strlen(units[i].name) != len || memcmp(units[i].name, at, len) ||
		    !(allowed & units[i].unit))
			continue;
		ret->unit = units[i].unit;
		ret->limit *= units[i].factor;
		return 0;
	}
	return error_set(err, EINVAL, "'%.60s': expected %s after the number", text,
	                 allowed & UNIT_COUNT     ? "nothing"
	                 : allowed & UNIT_PERCENT ? "%, ns, us, ms or s"
	                                          : "ns, us, ms or s");
}

int condition_parse(struct condition *ret, const char *text, bool change, struct error *err)
{
	const char *at = skip_spaces(text);

	if (parse_fact(ret, &at, err) < 0 || parse_operator(ret, &at, text, err) < 0 ||
	    parse_number(ret, &at, text, change, err) < 0)
		return -1;
	return parse_unit(ret, at, text, err);
}

static double value_of(const struct condition *c, const struct summary *s)
{
	return c->unit == UNIT_PERCENT ? s->percent[c->fact] : (double)s->value[c->fact];
}

static bool compare(const struct condition *c, double value)
{
	switch (c->operator) {
	case OPERATOR_GT:
		return value > c->limit;
	case OPERATOR_GE:
		return value >= c->limit;
	case OPERATOR_LT:
		return value < c->limit;
	case OPERATOR_LE:
		return value <= c->limit;
	}
	return false;
}

static void add_value(struct str *out, const struct condition *c, double value, bool change)
{
	switch (c->unit) {
	case UNIT_PERCENT:
		str_addf(out, change ? "%+.3g points" : "%.3g %%", value);
		return;
	case UNIT_TIME:
		str_addf(out, change ? "%+.3f ms" : "%.3f ms", value / 1e6);
		return;
	case UNIT_COUNT:
		str_addf(out, change ? "%+.0f" : "%.0f", value);
		return;
	}
}

bool condition_holds(const struct condition *condition, const struct summary *a,
                     const struct summary *b, struct str *why)
{
	double value = value_of(condition, b) - (a ? value_of(condition, a) : 0);
	CLEANUP(str_done) struct str text = { 0 };

	if (condition->fact == FACT_LOCK_WAIT && (b->locks_unknown || (a && a->locks_unknown))) {
		say_fact_unknown(why, fact_kinds[condition->fact].name);
		return true;
	}
	if (!compare(condition, value))
		return false;
	add_value(&text, condition, value, a != NULL);
	(a ? say_fact_changed : say_fact_is)(why, fact_kinds[condition->fact].name, str_get(&text));
	return true;
}

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
