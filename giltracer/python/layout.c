/* SPDX-License-Identifier: MIT */
/* Versions of CPython. */
#include "python/layout.h"

bool python_has_monitoring(unsigned minor)
{
	return minor >= 12;
}

void python_layout_init(struct python_layout *ret, unsigned major, unsigned minor,
                        bool free_threaded)
{
	const bool is_3 = major == 3;

	*ret = (struct python_layout){
		.major = major,
		.minor = minor,
		.free_threaded = free_threaded,
		/* The same in all versions. */
		.type = { .name = 24, .size = 32, .vectorcall = 56, .hash = 120, .base = 256 },
		.function = { .definition = 16, .self = 24, .module = 32, .vectorcall = 48 },
		.method_definition = 40,
		.object_type = 8,
		.frame_inside = minor >= 11 ? 24 : PYTHON_NO_OFFSET,
		.unit = minor == 10 ? 2 : 1,
		.is_supported = is_3 && minor >= 6,
		.has_monitoring = python_has_monitoring(minor),
		.has_evaluator = minor <= 10,
		.has_qualname = minor >= 11,
		.has_task_names = minor >= 8,
		.has_c_current_task = minor >= 12,
		.has_eager_tasks = minor >= 12,
		.makes_task_inside = minor == 10 || minor == 11,
		.knows_holder = minor >= 7,
		.holder_is_current = minor >= 9,
		.asks_rarely = minor >= 10,
		.resumes_locks = minor >= 7,
		.states_know_thread = minor >= 13,
	};
	for (unsigned i = 0; i < FRAME_KEYS; i++)
		ret->frame[i] = PYTHON_NO_OFFSET;
	for (unsigned i = 0; i < MEMORY_KEYS; i++)
		ret->memory[i] = PYTHON_NO_OFFSET;
	for (unsigned i = 0; i < CALL_KEYS; i++)
		ret->call[i] = PYTHON_NO_OFFSET;
}

/* The order is co_filename, co_name, co_qualname (from 3.11 on), and the table of lines. The characters of
 * an ASCII str follow its head; other strings have the members for UTF-8 and, up to 3.11, wchar_t in
 * between. */
void python_layout_of_frames(struct python_layout *layout)
{
	const uint32_t name = layout->frame[FRAME_NAME];

	layout->memory[MEMORY_FILE] = name - (layout->minor < 11 ? 8 : 16);
	layout->memory[MEMORY_TABLE] = name + 8;
	layout->memory[MEMORY_WIDE_TEXT] = layout->frame[FRAME_TEXT] +
	                                   (layout->minor < 12 ? 24 : 16);
}
