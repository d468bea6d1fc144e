/* SPDX-License-Identifier: MIT */
/* Messages for a person, on stderr. */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc.h"
#include "cleanup.h"
#include "utf8.h"

static enum log_level log_level = LOG_INFO;
static bool progress_shown;

void log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level log_get_level(void)
{
	return log_level;
}

static void wipe_progress(void)
{
	if (progress_shown)
		fputs("\r\033[K", stderr);
	progress_shown = false;
}

static void log_line(enum log_level level, const char *label, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void log_line(enum log_level level, const char *label, const char *fmt, va_list ap)
{
	CLEANUP(free) char *text = NULL;

	if (level > log_level)
		return;
	text = xvasprintf(fmt, ap);
	wipe_progress();
	utf8_fprintf(stderr, "giltracer: %s%s\n", label, text);
}

#define LOG_FUNCTION(name, level, label)         \
	void name(const char *fmt, ...)          \
	{                                        \
		va_list ap;                      \
                                                 \
		va_start(ap, fmt);               \
		log_line(level, label, fmt, ap); \
		va_end(ap);                      \
	}

LOG_FUNCTION(log_error, LOG_ERROR, "error: ")
LOG_FUNCTION(log_warn, LOG_WARN, "warning: ")
LOG_FUNCTION(log_info, LOG_INFO, "")
LOG_FUNCTION(log_debug, LOG_DEBUG, "debug: ")

void log_progress(const char *fmt, ...)
{
	CLEANUP(free) char *text = NULL;
	va_list ap;

	if (!fmt) {
		wipe_progress();
		return;
	}
	if (log_level < LOG_INFO || !isatty(STDERR_FILENO))
		return;
	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	wipe_progress();
	utf8_fprintf(stderr, "giltracer: %s", text);
	fflush(stderr);
	progress_shown = true;
}
