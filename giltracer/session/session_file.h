/* SPDX-License-Identifier: MIT */
/* The session folder's document: definitions that its reader and its writer share. */
#ifndef GILTRACER_SESSION_SESSION_FILE_H
#define GILTRACER_SESSION_SESSION_FILE_H

#define SESSION_FILE    "session.json"
#define SESSION_VERSION 1

#endif
