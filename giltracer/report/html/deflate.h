/* SPDX-License-Identifier: MIT */
/* Raw deflate (RFC 1951) at high speed: by ISA-L's igzip if giltracer was built with it, else by
 * libdeflate. For lanes of GIL events, igzip takes a third of the time, for 3 % more bytes. */
#ifndef GILTRACER_REPORT_HTML_DEFLATE_H
#define GILTRACER_REPORT_HTML_DEFLATE_H

#include <stddef.h>

struct deflater;

/* For use by one thread at a time. NULL: out of memory. */
struct deflater *deflater_new(void);
void deflater_free(struct deflater *deflater);

/* The maximum size of len bytes (less than 4 GiB) when deflated. */
size_t deflater_bound(const struct deflater *deflater, size_t len);

/* Deflate len bytes into out, which has room for bound bytes, at least deflater_bound(len). Returns
 * the deflated size. */
size_t deflater_pack(struct deflater *deflater, void *out, size_t bound, const void *data,
                     size_t len);

#endif
