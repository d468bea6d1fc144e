/* SPDX-License-Identifier: MIT */
/*
 * Errors as values. The caller owns a flat struct error; a function that can fail takes it as its
 * last argument, and either fills it in and returns a negative value, or does neither. Each level
 * adds only what it knows.
 */
#ifndef GILTRACER_BASE_ERROR_H
#define GILTRACER_BASE_ERROR_H

/**
 * @code: an errno value, the kind of error
 * @text: one line for a person, without the program's name and without a newline
 */
struct error {
	int code;
	char text[512];
};

/* Set code and text. Returns -1, so that callers can `return error_set(...)`. */
int error_set(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(1, 3)));

/* Like error_set, with errno as the code and ": <strerror>" appended to the text. Returns -1. */
int error_errno(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(1, 2)));

/* Put "<text>: " before the text. Returns -1. */
int error_prefix(struct error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(1, 2)));

/* ---- Our own exit statuses, the same as those of env(1), nohup(1) and timeout(1). */

#define EXIT_GILTRACER  125 /* giltracer itself failed */
#define EXIT_CANNOT_RUN 126 /* the program cannot be executed */
#define EXIT_NOT_FOUND  127 /* the program was not found */

#endif
