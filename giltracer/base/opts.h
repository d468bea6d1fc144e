/* SPDX-License-Identifier: MIT */
/*
 * Option tables: one line per option, used by both parsing and --help. Parsing stops at the first
 * word that is not an option (the program to run) or after "--".
 *
 *	const struct opt opts[] = {
 *		OPT_STR('o', "output", "FILE", &output, "write the report to FILE"),
 *		OPT_FLAG('v', "verbose", &verbose, "print more messages"),
 *		OPT_END,
 *	};
 */
#ifndef GILTRACER_BASE_OPTS_H
#define GILTRACER_BASE_OPTS_H

#include <stdbool.h>
#include <stdio.h>

#include "error.h"

enum opt_type {
	OPT_TYPE_END,
	OPT_TYPE_FLAG,   /* bool, set to true, or with .negate to false */
	OPT_TYPE_UINT,   /* unsigned, decimal, within [min, max] */
	OPT_TYPE_STR,    /* const char *, borrowed from argv */
	OPT_TYPE_LIST,   /* struct opt_list, each use appends */
	OPT_TYPE_CHOICE, /* unsigned: index into choices[], NULL-terminated */
	OPT_TYPE_REST,   /* const char *; parsing stops after its value (-m MODULE) */
};

/* Values of an option that may be given several times; borrowed from argv. */
struct opt_list {
	const char **v;
	unsigned n;
};

struct opt {
	enum opt_type type;
	char letter;      /* 0: none */
	const char *name; /* NULL: none */
	const char *arg;  /* name of the argument in --help */
	void *value;
	const char *help; /* NULL: not shown */
	unsigned min, max;
	const char *const *choices;
	bool negate;
};

#define OPT_FLAG(l, n, p, h)                                                         \
	{                                                                            \
		.type = OPT_TYPE_FLAG, .letter = l, .name = n, .value = p, .help = h \
	}
#define OPT_UNFLAG(l, n, p, h)                                                        \
	{                                                                             \
		.type = OPT_TYPE_FLAG, .letter = l, .name = n, .value = p, .help = h, \
		.negate = true                                                        \
	}
#define OPT_UINT(l, n, a, p, lo, hi, h)                                                         \
	{                                                                                       \
		.type = OPT_TYPE_UINT, .letter = l, .name = n, .arg = a, .value = p, .help = h, \
		.min = lo, .max = hi                                                            \
	}
#define OPT_STR(l, n, a, p, h)                                                                \
	{                                                                                     \
		.type = OPT_TYPE_STR, .letter = l, .name = n, .arg = a, .value = p, .help = h \
	}
#define OPT_LIST(l, n, a, p, h)                                                                \
	{                                                                                      \
		.type = OPT_TYPE_LIST, .letter = l, .name = n, .arg = a, .value = p, .help = h \
	}
#define OPT_CHOICE(l, n, a, p, c, h)                                                   \
	{                                                                              \
		.type = OPT_TYPE_CHOICE, .letter = l, .name = n, .arg = a, .value = p, \
		.choices = c, .help = h                                                \
	}
#define OPT_REST(l, n, a, p, h)                                                                \
	{                                                                                      \
		.type = OPT_TYPE_REST, .letter = l, .name = n, .arg = a, .value = p, .help = h \
	}
#define OPT_END                      \
	{                            \
		.type = OPT_TYPE_END \
	}

/*
 * Parse argv[1..]. Returns the index of the first word that is not ours. An unknown option, a
 * missing value or an invalid value is an error that names the option.
 */
int opts_parse(const struct opt *opts, int argc, char **argv, struct error *err);

/* One line per option that has a help text, aligned, indented by two. */
void opts_help(const struct opt *opts, FILE *out);

/* Free the array of a list (the strings belong to argv). */
void opt_list_done(struct opt_list *list);

#endif
