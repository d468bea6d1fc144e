/* SPDX-License-Identifier: MIT */
/*
 * What a report hides that is sent to somebody outside (--confidential). Everything that the program, its
 * user or its host named passes here when a session is read: the session's document, its source lines, and,
 * in struct names, each name of a recording. Analysis, reports and exports never see the original, so
 * that no writer can forget to hide it.
 *
 * Hidden are
 *	paths, up to the part that begins with a package: "app.py" and "shop/cart.py" below the folder of
 *		the program, ".../site-packages/numpy/core.py", ".../lib/python3.11/threading.py"; of other
 *		files of code the folder, "hidden-ibkjdola/util.py"; all of other paths but a number
 *		at the end. Equal paths have equal letters, which nobody can trace back and which differ
 *		from report to report
 *	URLs, after "://"
 *	arguments of the program
 *	the user's and the host's name, where they are words of their own
 *	source lines that may contain a secret
 *
 * Names of functions, modules, threads, tasks and locks stay, apart from these.
 */
#ifndef GILTRACER_SESSION_PRIVACY_H
#define GILTRACER_SESSION_PRIVACY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "session/session.h"

struct privacy;

struct privacy *privacy_new(void);
void privacy_free(struct privacy *privacy);

/* Learns from the session which folders are the program's and who its user is, and hides what the
 * document contains. To be called before any other text of the session is read. */
void privacy_of_session(struct privacy *privacy, struct session *session);

/* Hides what is in the lines. */
void privacy_of_sources(const struct privacy *privacy, struct sources *sources);

/* Appends a name, of len bytes without NUL, to ret, if anything of it must be hidden. Returns whether that
 * is so. Applied to its own result, it changes nothing. */
bool privacy_of_name(const struct privacy *privacy, const char *text, size_t len, struct str *ret);

/* The same for a sentence, in which text may follow a path. Replaces *text; either may be NULL. */
void privacy_of_sentence(const struct privacy *privacy, char **text);

DEFINE_CLEANUP(struct privacy *, privacy_free);

#endif
