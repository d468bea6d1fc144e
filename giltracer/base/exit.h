/* SPDX-License-Identifier: MIT */
/* Exit statuses of our own, as env(1), nohup(1) and timeout(1) have them. */
#ifndef GILTRACER_BASE_EXIT_H
#define GILTRACER_BASE_EXIT_H

#define EXIT_GILTRACER  125 /* giltracer itself failed */
#define EXIT_CANNOT_RUN 126 /* the program cannot be executed */
#define EXIT_NOT_FOUND  127 /* the program was not found */

#endif
