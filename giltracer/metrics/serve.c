/* SPDX-License-Identifier: MIT */
/* HTTP by libmicrohttpd: one thread, with few and short connections. */
#include "metrics/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

/* ---- the address to listen on */

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

/* Whether a request with this header Host, NULL if it has none, is answered. On loopback it must be
 * an address or localhost: the name of a website that a browser was made to look up as 127.0.0.1
 * would let the scripts of that website read the metrics. */
static bool listener_accepts(bool loopback, const char *host)
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

/* ---- content negotiation: RFC 9110, 12.5 */

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

/* The quality of one list element, from its parameters: q in thousandths, 1000 by default. */
static unsigned quality(const char *parameters, const char *end)
{
	while (parameters < end) {
		const char *p = skip_space(parameters + 1);
		const char *next = memchr(p, ';', (size_t)(end - p));

		if (p + 2 <= end && (*p == 'q' || *p == 'Q') && p[1] == '=') {
			double q = strtod(p + 2, NULL);

			return q >= 1 ? 1000 : q > 0 ? (unsigned)(q * 1000) : 0;
		}
		if (!next)
			break;
		parameters = next;
	}
	return 1000;
}

/* The quality that a list gives to name; -1: the list does not contain name. */
static int quality_of(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		const char *item = skip_space(list);
		const char *end = item + strcspn(item, ",");
		size_t word = strcspn(item, ",; \t");

		if (word == len && !strncasecmp(item, name, len))
			return (int)quality(item + strcspn(item, ",;"), end);
		list = *end ? end + 1 : end;
	}
	return -1;
}

/* A client that accepts anything may not understand OpenMetrics, so it gets Prometheus' format. */
enum exposition serve_accepted(const char *accept)
{
	int open, plain;

	if (!accept)
		return EXPOSITION_PROMETHEUS;
	open = quality_of(accept, "application/openmetrics-text");
	plain = quality_of(accept, "text/plain");
	if (plain < 0)
		plain = quality_of(accept, "text/*");
	return open > 0 && open >= plain ? EXPOSITION_OPENMETRICS : EXPOSITION_PROMETHEUS;
}

bool serve_may_gzip(const char *accept_encoding)
{
	int gzip;

	if (!accept_encoding)
		return false;
	gzip = quality_of(accept_encoding, "gzip");
	return gzip < 0 ? quality_of(accept_encoding, "*") > 0 : gzip > 0;
}

#ifdef HAVE_MICROHTTPD

#include <libdeflate.h>
#include <microhttpd.h>

/* ---- overdue connections */

/* A thread that shuts down overdue connections: the timeout of the HTTP server only applies to
 * connections without any traffic. */

/**
 * @after_ns: a connection is shut down after this time, unless it is renewed or removed before
 * @most: so many connections keep others waiting,
 * @full_ns: so those that are older than this are shut down then
 */
struct deadlines_limits {
	uint64_t after_ns;
	unsigned most;
	uint64_t full_ns;
};

struct deadline {
	int socket;
	uint64_t at_ns;
	struct deadline *before, *next;
};

/**
 * @first: sorted by time, because all have the same timeout and renewed ones move to the end
 * @changed: the list is no longer empty, or the thread is to end
 */
struct deadlines {
	struct deadlines_limits limits;
	unsigned n;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool ending;
	struct deadline *first, *last;
};

static void put_last(struct deadlines *d, struct deadline *one)
{
	one->at_ns = clock_now_ns() + d->limits.after_ns;
	one->next = NULL;
	one->before = d->last;
	if (d->last)
		d->last->next = one;
	else
		d->first = one;
	d->last = one;
	d->n++;
}

static void take_out(struct deadlines *d, struct deadline *one)
{
	if (one->before)
		one->before->next = one->next;
	else
		d->first = one->next;
	if (one->next)
		one->next->before = one->before;
	else
		d->last = one->before;
	d->n--;
}

static uint64_t due_ns(const struct deadlines *d)
{
	bool full = d->n >= d->limits.most;

	return full ? d->first->at_ns - d->limits.after_ns + d->limits.full_ns : d->first->at_ns;
}

static void *watch(void *data)
{
	struct deadlines *d = data;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		struct deadline *one = d->first;
		uint64_t until_ns = one ? due_ns(d) : 0;
		struct timespec until;

		if (!one) {
			pthread_cond_wait(&d->changed, &d->lock);
		} else if (until_ns > clock_now_ns()) {
			until = (struct timespec){ (time_t)(until_ns / NS_PER_SECOND),
				                   (long)(until_ns % NS_PER_SECOND) };
			pthread_cond_timedwait(&d->changed, &d->lock, &until);
		} else {
			shutdown(one->socket, SHUT_RDWR);
			take_out(d, one);
			put_last(d, one); /* until it is removed */
		}
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* Starts a thread that watches. NULL: no more threads can be created. */
static struct deadlines *deadlines_new(const struct deadlines_limits *limits)
{
	struct deadlines *d = xcalloc(1, sizeof(*d));
	pthread_condattr_t monotonic;

	d->limits = *limits;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&d->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (thread_start(&d->thread, watch, d) == 0)
		return d;
	free(d);
	return NULL;
}

static void deadlines_free(struct deadlines *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

/* A connected socket; renewed when a request was answered. */
static struct deadline *deadline_add(struct deadlines *d, int socket)
{
	struct deadline *one = xcalloc(1, sizeof(*one));

	one->socket = socket;
	pthread_mutex_lock(&d->lock);
	put_last(d, one);
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	return one;
}

static void deadline_renew(struct deadlines *d, struct deadline *one)
{
	pthread_mutex_lock(&d->lock);
	take_out(d, one);
	put_last(d, one);
	pthread_mutex_unlock(&d->lock);
}

static void deadline_remove(struct deadlines *d, struct deadline *one)
{
	pthread_mutex_lock(&d->lock);
	take_out(d, one);
	pthread_mutex_unlock(&d->lock);
	free(one);
}

/* ---- HTTP by libmicrohttpd: one thread, with few and short connections */

/* Further connections wait in the backlog until others are done, which takes at most SECONDS, or
 * FULL_NS while others wait. */
#define CONNECTIONS 200
#define SECONDS     5
#define FULL_NS     (250 * NS_PER_MS)
#define HEADERS_MAX 16384

/* A request this soon after another one gets the same answer. */
#define FRESH_NS (2 * NS_PER_MS)

#define LEVEL 1

/* One answer in one format, compressed or not. */
struct answer {
	uint64_t made_ns;
	struct MHD_Response *response;
};

struct server {
	struct MHD_Daemon *daemon;
	struct watch *watch;
	bool loopback;
	struct deadlines *deadlines;
	struct libdeflate_compressor *compressor;
	struct answer answers[2][2]; /* by enum exposition, by gzip */
};

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

/* Frees text; NULL if it cannot be compressed. */
static struct MHD_Response *packed(struct server *server, struct str *text)
{
	size_t bound = libdeflate_gzip_compress_bound(server->compressor, text->len);
	void *data = malloc(bound);
	size_t len = data ? libdeflate_gzip_compress(server->compressor, text->s, text->len, data,
	                                             bound)
	                  : 0;
	struct MHD_Response *response;

	str_done(text);
	response = len ? MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE) : NULL;
	if (!response)
		free(data);
	else
		add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return response;
}

static struct MHD_Response *make_answer(struct server *server, enum exposition format, bool gzip)
{
	struct str text = { 0 };
	struct MHD_Response *response;
	size_t len;

	watch_update(server->watch);
	exposition_write(&text, server->watch, format);
	len = text.len;
	response = gzip ? packed(server, &text)
	                : MHD_create_response_from_buffer(len, str_take(&text),
	                                                  MHD_RESPMEM_MUST_FREE);
	if (!response)
		return NULL;
	add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, exposition_type(format));
	add_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	return response;
}

static struct MHD_Response *find_answer(struct server *server, enum exposition format, bool gzip)
{
	struct answer *answer = &server->answers[format][gzip];

	if (answer->response && clock_now_ns() - answer->made_ns < FRESH_NS)
		return answer->response;
	if (answer->response)
		MHD_destroy_response(answer->response);
	answer->response = make_answer(server, format, gzip);
	answer->made_ns = clock_now_ns();
	return answer->response;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *text)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain; charset=utf-8");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		add_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result serve(void *data, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_size, void **state)
{
	static int seen;
	struct server *server = data;
	struct MHD_Response *response;
	const char *accept, *encoding, *host;

	(void)version;
	(void)upload;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	/* Called first with the headers, then with uploaded data, then for the answer. */
	if (!*state || *upload_size) {
		*state = &seen;
		*upload_size = 0;
		return MHD_YES;
	}
	host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	if (!listener_accepts(server->loopback, host))
		return say(connection, MHD_HTTP_FORBIDDEN,
		           "refused: use the address, or localhost, instead of another name\n");
	if (!strcmp(url, "/"))
		return say(connection, MHD_HTTP_OK, "giltracer: see /metrics\n");
	if (strcmp(url, "/metrics") != 0)
		return say(connection, MHD_HTTP_NOT_FOUND, "not found: only /metrics exists\n");
	accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	encoding = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
	                                       MHD_HTTP_HEADER_ACCEPT_ENCODING);
	response = find_answer(server, serve_accepted(accept), serve_may_gzip(encoding));
	return response ? MHD_queue_response(connection, MHD_HTTP_OK, response) : MHD_NO;
}

static void connected(void *data, struct MHD_Connection *connection, void **context,
                      enum MHD_ConnectionNotificationCode code)
{
	struct server *server = data;
	const union MHD_ConnectionInfo *info;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (*context)
			deadline_remove(server->deadlines, *context);
		*context = NULL;
		return;
	}
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	*context = info ? deadline_add(server->deadlines, info->connect_fd) : NULL;
}

/* A request was answered: restart the timeout for the next one. */
static void completed(void *data, struct MHD_Connection *connection, void **state,
                      enum MHD_RequestTerminationCode code)
{
	struct server *server = data;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	(void)state;
	if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK && info && info->socket_context)
		deadline_renew(server->deadlines, info->socket_context);
}

static void quiet(void *data, const char *format, va_list args)
{
	(void)data;
	(void)format;
	(void)args;
}

int server_start(struct server **ret, struct listener *listener, struct watch *watch,
                 struct error *err)
{
	const struct deadlines_limits limits = { SECONDS * NS_PER_SECOND, CONNECTIONS, FULL_NS };
	CLEANUP(server_stop) struct server *server = xcalloc(1, sizeof(*server));

	server->watch = watch;
	server->loopback = listener->loopback;
	server->compressor = libdeflate_alloc_compressor(LEVEL);
	server->deadlines = deadlines_new(&limits);
	if (!server->compressor || !server->deadlines)
		return error_set(err, ENOMEM, "no memory to serve metrics");
	/* The first reading is what later ones are compared with. */
	watch_update(watch);
	server->daemon = MHD_start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, NULL, NULL, serve, server,
		MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL, MHD_OPTION_NOTIFY_CONNECTION, connected,
		server, MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_LISTEN_SOCKET,
		listener->fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SECONDS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADERS_MAX, MHD_OPTION_END);
	if (!server->daemon)
		return error_errno(err, "cannot serve metrics at %s", listener->url);
	listener->fd = -1;
	*ret = take(server);
	return 0;
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	for (int i = 0; i < 4; i++)
		if (server->answers[i / 2][i % 2].response)
			MHD_destroy_response(server->answers[i / 2][i % 2].response);
	deadlines_free(server->deadlines);
	libdeflate_free_compressor(server->compressor);
	free(server);
}

#else

int server_start(struct server **ret, struct listener *listener, struct watch *watch,
                 struct error *err)
{
	(void)ret;
	(void)listener;
	(void)watch;
	return error_set(err, ENOTSUP, "giltracer was built without libmicrohttpd");
}

void server_stop(struct server *server)
{
	(void)server;
}

#endif
