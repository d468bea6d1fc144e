/* SPDX-License-Identifier: MIT */
/* A program that already runs loads the library, which counts the time of its GIL in a page of totals
 * (preload/totals.h) until the observer is closed or killed. live/totals.h reads the page. */
#ifndef GILTRACER_RECORD_OBSERVER_H
#define GILTRACER_RECORD_OBSERVER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/error.h"

struct observer;

/* If the program has a page already, that one is used as long as it is there. Errors: see
 * engine_join; the program is unchanged. */
int observer_open(struct observer **ret, pid_t pid, struct error *err);

/* To be called once a second: tells the library the names of new threads, and makes the program count again
 * if the page has ended: with another observer, or because the program was recorded meanwhile. */
void observer_look(struct observer *observer);

/* The folder in which the program's page may appear; the name of its file begins with this number. */
const char *observer_folder(const struct observer *observer);
uint32_t observer_number(const struct observer *observer);

void observer_close(struct observer *observer);

DEFINE_CLEANUP(struct observer *, observer_close);

#endif
