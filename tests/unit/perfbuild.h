/* SPDX-License-Identifier: MIT */
/* Bytes of a perf.data, put together in memory for the tests of perfdata/ and from_perf. */
#ifndef GILTRACER_TESTS_PERFBUILD_H
#define GILTRACER_TESTS_PERFBUILD_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

#define BUILD_UNUSED __attribute__((unused))

BUILD_UNUSED static void put8(struct str *b, uint8_t v)
{
	str_addn(b, &v, sizeof(v));
}

BUILD_UNUSED static void put16(struct str *b, uint16_t v)
{
	str_addn(b, &v, sizeof(v));
}

BUILD_UNUSED static void put32(struct str *b, uint32_t v)
{
	str_addn(b, &v, sizeof(v));
}

BUILD_UNUSED static void put64(struct str *b, uint64_t v)
{
	str_addn(b, &v, sizeof(v));
}

/* text and zeros, size bytes in all. */
BUILD_UNUSED static void put_text(struct str *b, const char *text, size_t size)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < size; i++)
		put8(b, i < len ? (uint8_t)text[i] : 0);
}

/* A record begins; its size is filled in by put_end. Returns where. */
BUILD_UNUSED static size_t put_begin(struct str *b, uint32_t type, uint16_t misc)
{
	size_t at = b->len;

	put32(b, type);
	put16(b, misc);
	put16(b, 0);
	return at;
}

BUILD_UNUSED static void put_end(struct str *b, size_t at)
{
	uint16_t size = (uint16_t)(b->len - at);

	memcpy(b->s + at + 6, &size, sizeof(size));
}

BUILD_UNUSED static void put_record(struct str *b, uint32_t type, const struct str *body)
{
	size_t at = put_begin(b, type, 0);

	if (body)
		str_addn(b, body->s, body->len);
	put_end(b, at);
}

/* The header of the pipe layout. */
BUILD_UNUSED static void put_pipe_header(struct str *b)
{
	str_addn(b, "PERFILE2", 8);
	put64(b, 16);
}

/* A HEADER_ATTR record with one id. */
BUILD_UNUSED static void put_attr(struct str *b, struct perf_event_attr attr, uint64_t id)
{
	size_t at = put_begin(b, 64, 0);

	attr.size = sizeof(attr);
	str_addn(b, &attr, sizeof(attr));
	put64(b, id);
	put_end(b, at);
}

/* A HEADER_TRACING_DATA record with one format. */
BUILD_UNUSED static void put_format(struct str *b, const char *group, const char *text)
{
	CLEANUP(str_done) struct str data = { 0 };
	size_t at;

	str_addn(&data, "\x17\x08\x44tracing", 10);
	str_addn(&data, "0.6", 4);
	put8(&data, 0);
	put8(&data, 8);
	put32(&data, 4096);
	str_addn(&data, "header_page", 12);
	put64(&data, 0);
	str_addn(&data, "header_event", 13);
	put64(&data, 0);
	put32(&data, 0);
	put32(&data, 1);
	str_addn(&data, group, strlen(group) + 1);
	put32(&data, 1);
	put64(&data, strlen(text));
	str_adds(&data, text);
	at = put_begin(b, 66, 0);
	put32(b, (uint32_t)data.len);
	put_end(b, at);
	str_addn(b, data.s, data.len);
	while (data.len++ % 8)
		put8(b, 0);
}

BUILD_UNUSED static void put_round(struct str *b)
{
	put_record(b, 68, NULL);
}

#endif
