/* SPDX-License-Identifier: MIT */
/* Any bytes are read as a page of totals and exported: each line is a sample or a comment. */
#include <string.h>
#include <unistd.h>

#include "live/totals.h"
#include "metrics/exposition.h"
#include "metrics/watch.h"

#include "budget.h"
#include "file-bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (text[len] != '\n' ||
		    (strncmp(text, "# ", 2) != 0 && strncmp(text, "giltracer_", 10) != 0))
			abort();
		for (size_t i = 0; i < len; i++)
			if ((unsigned char)text[i] < ' ')
				abort();
		text += len + 1;
	}
}

static void export(struct totals *page)
{
	struct watch watch = { 0 };
	struct metrics_process *process = metrics_process_new(page, getpid());
	CLEANUP(str_done) struct str text = { 0 };

	if (!process)
		return; /* the page claims to be another process's */
	metrics_process_label_arguments(process);
	*vec_push(&watch.processes) = process;
	if (metrics_process_read(process)) {
		exposition_write(&text, &watch, EXPOSITION_OPENMETRICS);
		exposition_write(&text, &watch, EXPOSITION_PROMETHEUS);
		check(str_get(&text));
	}
	watch_done(&watch);
}

static void read_file(const uint8_t *data, size_t size)
{
	struct file_bytes file = file_bytes_make(data, size);
	struct totals *page;
	struct error err = { 0 };

	if (totals_open(&page, file.path, &err) == 0)
		export(page);
	else if (!err.text[0])
		abort();
	close(file.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	budget_run(read_file, data, size);
	return 0;
}
