/* SPDX-License-Identifier: MIT */
/* Serves /metrics by HTTP. */
#ifndef GILTRACER_METRICS_SERVE_H
#define GILTRACER_METRICS_SERVE_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "metrics/exposition.h"
#include "metrics/watch.h"

struct server;

/**
 * @fd: the listening socket
 * @loopback: only this host can connect
 * @url: of the metrics; owned
 */
struct listener {
	int fd;
	bool loopback;
	char *url;
};

#define LISTENER_NONE     \
	{                 \
		.fd = -1, \
	}

/*
 * Listen at ADDRESS:PORT, [ADDRESS]:PORT or :PORT, which is localhost; port 0 means any free one.
 * Errors: EINVAL: no such address; EPERM: it includes all network interfaces, and anywhere is
 * false; ENOTSUP: built without libmicrohttpd; those of bind(2).
 */
int listener_open(struct listener *ret, const char *address, bool anywhere, struct error *err);
void listener_done(struct listener *listener);

/* The format that an Accept header asks for; NULL: no such header. */
enum exposition serve_accepted(const char *accept);

/* Whether an Accept-Encoding header permits gzip. */
bool serve_may_gzip(const char *accept_encoding);

/* Serve the processes of watch in a thread. Until server_stop, only the server may use watch;
 * the listener's descriptor belongs to the server from now on. */
int server_start(struct server **ret, struct listener *listener, struct watch *watch,
                 struct error *err);
void server_stop(struct server *server);

DEFINE_CLEANUP(struct server *, server_stop);

DEFINE_CLEANUP_IN(struct listener, listener_done);

#endif
