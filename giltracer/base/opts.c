/* SPDX-License-Identifier: MIT */
/* Option tables: parsing and help. */
#include "opts.h"

#include <bsd/stdlib.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "str.h"

struct parse {
	const struct opt *opts;
	int argc;
	char **argv;
	int at; /* index of the current word */
	bool stop;
};

static const struct opt *find_long(const struct opt *opts, const char *name, size_t len)
{
	for (; opts->type != OPT_TYPE_END; opts++)
		if (opts->name && strlen(opts->name) == len && !memcmp(opts->name, name, len))
			return opts;
	return NULL;
}

static const struct opt *find_short(const struct opt *opts, char letter)
{
	for (; opts->type != OPT_TYPE_END; opts++)
		if (opts->letter == letter)
			return opts;
	return NULL;
}

static int set_uint(const struct opt *opt, const char *shown, const char *value, struct error *err)
{
	const char *wrong;
	unsigned n = (unsigned)strtonum(value, opt->min, opt->max, &wrong);

	if (wrong)
		return error_set(err, EINVAL, "option %s: '%s' is %s, expected %u to %u", shown,
		                 value, wrong, opt->min, opt->max);
	*(unsigned *)opt->value = n;
	return 0;
}

static int set_choice(const struct opt *opt, const char *shown, const char *value,
                      struct error *err)
{
	CLEANUP(str_done) struct str all = { 0 };

	for (unsigned i = 0; opt->choices[i]; i++) {
		if (!strcmp(opt->choices[i], value)) {
			*(unsigned *)opt->value = i;
			return 0;
		}
		str_addf(&all, "%s%s", i ? ", " : "", opt->choices[i]);
	}
	return error_set(err, EINVAL, "option %s: '%s' is not one of %s", shown, value,
	                 str_get(&all));
}

static void add_to_list(struct opt_list *list, const char *value)
{
	list->v = xreallocarray(list->v, list->n + 1, sizeof(*list->v));
	list->v[list->n++] = value;
}

static int set_value(struct parse *p, const struct opt *opt, const char *shown, const char *value,
                     struct error *err)
{
	switch (opt->type) {
	case OPT_TYPE_UINT:
		return set_uint(opt, shown, value, err);
	case OPT_TYPE_CHOICE:
		return set_choice(opt, shown, value, err);
	case OPT_TYPE_LIST:
		add_to_list(opt->value, value);
		return 0;
	case OPT_TYPE_REST:
		p->stop = true;
		*(const char **)opt->value = value;
		return 0;
	case OPT_TYPE_STR:
		*(const char **)opt->value = value;
		return 0;
	case OPT_TYPE_FLAG:
		*(bool *)opt->value = !opt->negate;
		return 0;
	case OPT_TYPE_END:
		break;
	}
	return 0;
}

/* inline_value: the text after '=' or after the letter; NULL if the value is the next word. */
static int parse_one(struct parse *p, const struct opt *opt, const char *shown,
                     const char *inline_value, struct error *err)
{
	if (!opt)
		return error_set(err, EINVAL, "unknown option %s (see --help)", shown);
	if (opt->type == OPT_TYPE_FLAG) {
		if (inline_value)
			return error_set(err, EINVAL, "option %s takes no value", shown);
		return set_value(p, opt, shown, NULL, err);
	}
	if (!inline_value) {
		if (p->at + 1 >= p->argc)
			return error_set(err, EINVAL, "option %s needs %s", shown, opt->arg);
		inline_value = p->argv[++p->at];
	}
	return set_value(p, opt, shown, inline_value, err);
}

static int parse_long(struct parse *p, const char *word, struct error *err)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	CLEANUP(free) char *shown = xstrndup(word, len);
	const struct opt *opt = find_long(p->opts, word + 2, len - 2);

	return parse_one(p, opt, shown, equals ? equals + 1 : NULL, err);
}

static int parse_letters(struct parse *p, const char *word, struct error *err)
{
	for (const char *c = word + 1; *c; c++) {
		const char shown[] = { '-', *c, '\0' };
		const struct opt *opt = find_short(p->opts, *c);
		bool is_flag = opt && opt->type == OPT_TYPE_FLAG;

		if (is_flag || !opt || !c[1]) {
			if (parse_one(p, opt, shown, NULL, err) < 0)
				return -1;
			if (!is_flag)
				break;
			continue;
		}
		return parse_one(p, opt, shown, c + 1, err);
	}
	return 0;
}

int opts_parse(const struct opt *opts, int argc, char **argv, struct error *err)
{
	struct parse p = { .opts = opts, .argc = argc, .argv = argv, .at = 1 };

	for (; p.at < argc && !p.stop; p.at++) {
		const char *word = argv[p.at];
		int ret;

		if (word[0] != '-' || !word[1])
			break;
		if (!strcmp(word, "--"))
			return p.at + 1;
		ret = word[1] == '-' ? parse_long(&p, word, err) : parse_letters(&p, word, err);
		if (ret < 0)
			return -1;
	}
	return p.at;
}

static void help_left(const struct opt *opt, struct str *left)
{
	if (opt->letter)
		str_addf(left, "-%c%s", opt->letter, opt->name ? ", " : "");
	else
		str_adds(left, "    ");
	if (opt->name)
		str_addf(left, "--%s", opt->name);
	if (opt->arg)
		str_addf(left, " %s", opt->arg);
}

void opts_help(const struct opt *opts, FILE *out)
{
	for (; opts->type != OPT_TYPE_END; opts++) {
		CLEANUP(str_done) struct str left = { 0 };

		if (!opts->help)
			continue;
		help_left(opts, &left);
		if (left.len > 25)
			fprintf(out, "  %s\n  %-25s %s\n", left.s, "", opts->help);
		else
			fprintf(out, "  %-25s %s\n", left.s, opts->help);
	}
}

void opt_list_done(struct opt_list *list)
{
	free(list->v);
	*list = (struct opt_list){ 0 };
}
