/* SPDX-License-Identifier: MIT */
/* Reading ahead: the same events, names that can be read when they are needed. */
#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "trace/readahead.h"
#include "trace/names.h"

#include "tap.h"

#define COMM_EVERY 7919

/* A source of count events, then an error if fail is set. */
struct counting {
	struct source source;
	uint64_t count, at;
	bool fail;
	bool *closed;
};

static int counting_next(struct source *source, struct event *ret, struct error *err)
{
	struct counting *c = (struct counting *)source;
	char text[32];

	if (c->at == c->count)
		return c->fail ? error_set(err, EIO, "broken") : 0;
	*ret = (struct event){ .time_ns = c->at, .type = EV_REQUEST };
	snprintf(text, sizeof(text), "name %" PRIu64, c->at);
	if (c->at % COMM_EVERY == 0) {
		ret->type = EV_COMM;
		ret->comm.name = names_id(c->source.names, text, strlen(text));
	}
	c->at++;
	c->source.stats.events++;
	return 1;
}

static void counting_close(struct source *source)
{
	struct counting *c = (struct counting *)source;

	*c->closed = true;
	names_free(c->source.names);
	free(c);
}

static struct source *counting_new(uint64_t count, bool fail, bool *closed)
{
	static const struct source_ops ops = { .next = counting_next, .close = counting_close };
	struct counting *c = xcalloc(1, sizeof(*c));

	*closed = false;
	c->source = (struct source){ .ops = &ops, .names = names_new() };
	c->count = count;
	c->fail = fail;
	c->closed = closed;
	return &c->source;
}

static void test_count(uint64_t count, bool fail)
{
	bool closed;
	struct source *source = source_ahead(counting_new(count, fail, &closed));
	struct error err = { 0 };
	struct event ev;
	uint64_t n = 0, wrong = 0;
	char text[32];
	int more;

	while ((more = source_next(source, &ev, &err)) > 0) {
		wrong += ev.time_ns != n;
		snprintf(text, sizeof(text), "name %" PRIu64, n);
		if (ev.type == EV_COMM)
			wrong += strcmp(names_get(source->names, ev.comm.name), text) != 0;
		n++;
	}
	is_u64(n, count, "all %" PRIu64 " events", count);
	is_u64(wrong, 0, "each in its place, with its name");
	ok(more == (fail ? -1 : 0), "then the %s", fail ? "error" : "end");
	is_str(err.text, fail ? "broken" : "", "and its text");
	is_u64(source->stats.events, count, "and the numbers");
	ok(source_next(source, &ev, &err) == 0, "nothing follows");
	source_close(source);
	ok(closed, "it is closed");
}

static void test_early(void)
{
	bool closed;
	struct source *source = source_ahead(counting_new(1000000, false, &closed));
	struct error err;
	struct event ev;

	ok(source_next(source, &ev, &err) == 1, "one event");
	source_close(source);
	ok(closed, "closed before the end");
}

int main(void)
{
	test_count(0, false);
	test_count(0, true);
	test_count(1, false);
	test_count(8191, false);
	test_count(8192, false);
	test_count(8193, true);
	test_count(500000, false);
	test_count(500000, true);
	test_early();
	return done_testing();
}
