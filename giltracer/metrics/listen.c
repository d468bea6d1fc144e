/* SPDX-License-Identifier: MIT */
/* Parses and opens the address to listen on. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "metrics/serve.h"

#define BACKLOG 1024

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int parse_port(const char *text, in_port_t *ret)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || port > 65535)
		return -1;
	*ret = htons((uint16_t)port);
	return 0;
}

static int parse_host(const char *host, in_port_t port, union address *ret)
{
	*ret = (union address){ .v4 = { .sin_family = AF_INET, .sin_port = port } };
	if (!*host || !strcmp(host, "localhost"))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1)
		return 0;
	*ret = (union address){ .v6 = { .sin6_family = AF_INET6, .sin6_port = port } };
	return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1 ? 0 : -1;
}

static int parse(const char *text, union address *ret, struct error *err)
{
	CLEANUP(free) char *copy = xstrdup(text);
	char *colon = strrchr(copy, ':'), *host = copy;
	in_port_t port;

	if (colon) {
		*colon = '\0';
		if (*host == '[' && colon > copy && colon[-1] == ']') {
			colon[-1] = '\0';
			host++;
		}
	}
	if (!colon || parse_port(colon + 1, &port) < 0 || parse_host(host, port, ret) < 0)
		return error_set(err, EINVAL,
		                 "'%s' is not an address to listen on: give ADDRESS:PORT, as in "
		                 "127.0.0.1:9464 or [::1]:9464, or :PORT for localhost",
		                 text);
	return 0;
}

static bool is_everywhere(const union address *a)
{
	static const uint8_t v4_any[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0 };

	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
	return IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr) ||
	       !memcmp(&a->v6.sin6_addr, v4_any, sizeof(v4_any));
}

static char *url_of(int fd)
{
	union address a;
	socklen_t len = sizeof(a);
	char host[INET6_ADDRSTRLEN] = "?";

	if (getsockname(fd, &a.any, &len) < 0)
		return xstrdup("?");
	if (a.any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
		return xasprintf("http://%s:%u/metrics", host, ntohs(a.v4.sin_port));
	}
	inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
	return xasprintf("http://[%s]:%u/metrics", host, ntohs(a.v6.sin6_port));
}

static bool is_loopback(const union address *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr) && a->v6.sin6_addr.s6_addr[12] == 127);
}

bool listener_accepts(bool loopback, const char *host)
{
	char name[INET6_ADDRSTRLEN];
	union address a;
	bool bracket;
	size_t len;

	if (!loopback || !host)
		return true;
	bracket = *host == '[';
	host += bracket;
	len = strcspn(host, bracket ? "]" : ":");
	if (len >= sizeof(name))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	host += len + (bracket && host[len]);
	return (!*host || *host == ':') &&
	       (!strcasecmp(name, "localhost") || parse_host(name, 0, &a) == 0);
}

int listener_open(struct listener *ret, const char *address, bool anywhere, struct error *err)
{
	union address a;
	CLEANUP(close) int fd = -1;
	int on = 1;

#ifndef HAVE_MICROHTTPD
	return error_set(err, ENOTSUP,
	                 "%s: giltracer was built without libmicrohttpd, which serves metrics (on "
	                 "Debian: apt-get install libmicrohttpd-dev, then build again)",
	                 address);
#endif
	if (parse(address, &a, err) < 0)
		return -1;
	if (is_everywhere(&a) && !anywhere)
		return error_set(err, EPERM,
		                 "%s would let every host in the network read the metrics; "
		                 "--listen-anywhere permits it",
		                 address);
	fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, &a.any, a.any.sa_family == AF_INET ? sizeof(a.v4) : sizeof(a.v6)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return error_errno(err, "cannot listen on %s", address);
	ret->url = url_of(fd);
	ret->loopback = is_loopback(&a);
	ret->fd = take_fd(&fd);
	return 0;
}

void listener_done(struct listener *listener)
{
	if (listener->fd >= 0)
		close(take_fd(&listener->fd));
	free(take(listener->url));
}
