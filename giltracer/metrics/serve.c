/* SPDX-License-Identifier: MIT */
/* HTTP by libmicrohttpd: one thread, with few and short connections. */
#include "metrics/serve.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"

#ifdef HAVE_MICROHTTPD

#include <libdeflate.h>
#include <microhttpd.h>

#include "base/clock.h"
#include "metrics/deadline.h"
#include "metrics/exposition.h"

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
	response = find_answer(server, exposition_accepted(accept), exposition_may_gzip(encoding));
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
