/* SPDX-License-Identifier: MIT */
/*
 * Messages for a person, on stderr. Only commands log above debug level; an error is logged once,
 * by main. Control characters in the text become '?', so that a traced name cannot drive a
 * terminal. stdout is for data.
 */
#ifndef GILTRACER_BASE_LOG_H
#define GILTRACER_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* The log level, our only global state, decides which messages are shown: LOG_INFO by default,
 * LOG_ERROR with -q. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A progress line that is rewritten in place, only if stderr is a terminal and the level is at
 * least LOG_INFO. NULL clears it. Every other message clears it first.
 */
void log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
