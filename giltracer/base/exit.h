/* SPDX-License-Identifier: MIT */
/* Our own exit statuses, the same as those of env(1), nohup(1) and timeout(1). */
#ifndef GILTRACER_BASE_EXIT_H
#define GILTRACER_BASE_EXIT_H

#define EXIT_GILTRACER  125 /* giltracer itself failed */
#define EXIT_CANNOT_RUN 126 /* the program cannot be executed */
#define EXIT_NOT_FOUND  127 /* the program was not found */

#endif
