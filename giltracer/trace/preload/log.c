/* SPDX-License-Identifier: MIT */
/* Reads the logs of a preload recording. */
#include "trace/preload/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/filemap.h"
#include "base/cursor.h"
#include "preload/format.h"

/* More than any recording has: some work grows with the product of processes and threads. */
#define PROCESSES_MAX 65536

#define OBJECTS_MAX 65536
#define IMPORTS_MAX 4096

/* ---- entries */

static char *copy_text(const struct cursor *text)
{
	size_t len = cursor_left(text);
	char *copy = xcalloc(len + 1, 1);

	if (len)
		memcpy(copy, text->p, len);
	return copy;
}

/* A flight recorder's process may have two logs. */
static size_t find_process(const struct preload_log *log, const struct preload_entry *e)
{
	uint32_t at = idmap_get(&log->process_ids, e->stamp);

	return at != IDMAP_NONE && log->processes.v[at].pid == (uint32_t)e->number ? at + 1 : 0;
}

static void add_process(struct preload_log *log, const struct preload_entry *e,
                        const struct cursor *text)
{
	idmap_set(&log->process_ids, e->stamp, (uint32_t)log->processes.n);
	*vec_push(&log->processes) = (struct preload_process){
		.pid = (uint32_t)e->number,
		.parent = (uint32_t)(e->number >> 32),
		.stamp = e->stamp,
		.exe = copy_text(text),
	};
}

static void add_gil(struct preload_process *p, const struct preload_entry *e)
{
	if (e->number >= PRELOAD_GILS_MAX)
		return;
	idmap_set(&p->gil_ids, e->number, (uint32_t)p->gils.n);
	*vec_push(&p->gils) = e->value;
}

static bool read_code(struct preload_code *ret, const struct preload_entry *e, struct cursor *text)
{
	*ret = (struct preload_code){
		.minor = (unsigned)e->value,
		.coroutine = e->value & PRELOAD_COROUTINE,
		.native = e->value & PRELOAD_NATIVE,
		.first_line = cursor_u32(text),
		.name_len = cursor_u32(text),
		.file_len = cursor_u32(text),
		.table_len = cursor_u32(text),
	};

	ret->name = (const char *)cursor_bytes(text, ret->name_len);
	ret->file = (const char *)cursor_bytes(text, ret->file_len);
	ret->table = cursor_bytes(text, ret->table_len);
	return !text->bad;
}

static void add_code(struct preload_process *p, const struct preload_entry *e, struct cursor *text)
{
	struct preload_code code;

	if (!read_code(&code, e, text) || e->number > UINT32_MAX)
		return;
	idmap_set(&p->code_ids, (uint32_t)e->number, (uint32_t)p->codes.n);
	*vec_push(&p->codes) = code;
}

static void add_called(struct preload_process *p, const struct preload_entry *e,
                       struct cursor *text)
{
	struct preload_code code;

	if (!read_code(&code, e, text) || e->number >= PRELOAD_CALL_CODES_MAX)
		return;
	idmap_set(&p->called_ids, (uint32_t)e->number, (uint32_t)p->called.n);
	*vec_push(&p->called) = code;
}

static void add_task_name(struct preload_process *p, const struct preload_entry *e,
                          const struct cursor *text)
{
	const char *end;

	if (e->number > PRELOAD_TASK_NAMES_MAX || !cursor_left(text) ||
	    !(end = memchr(text->p, '\0', cursor_left(text))))
		return;
	idmap_set(&p->task_name_ids, e->number, (uint32_t)p->task_names.n);
	*vec_push(&p->task_names) = (struct preload_name){
		.text = (const char *)text->p,
		.len = (size_t)(end - (const char *)text->p),
	};
}

static void add_list(struct preload_process *p, const struct preload_entry *e,
                     const struct cursor *text)
{
	if (e->number > UINT32_MAX)
		return;
	idmap_set(&p->list_ids, (uint32_t)e->number, (uint32_t)p->lists.n);
	*vec_push(&p->lists) = (struct preload_list){
		.frames = text->p,
		.count = (uint32_t)(cursor_left(text) / sizeof(struct preload_frame)),
	};
}

uint64_t preload_log_gil(const struct preload_process *p, uint64_t number)
{
	uint32_t at = idmap_get(&p->gil_ids, number);

	return at == IDMAP_NONE ? 0 : p->gils.v[at];
}

const struct preload_name *preload_log_task_name(const struct preload_process *p, uint64_t number)
{
	uint32_t at = idmap_get(&p->task_name_ids, number);

	return at == IDMAP_NONE ? NULL : &p->task_names.v[at];
}

uint32_t preload_log_code(const struct preload_process *p, uint64_t number)
{
	return number > UINT32_MAX ? IDMAP_NONE : idmap_get(&p->code_ids, (uint32_t)number);
}

uint32_t preload_log_list(const struct preload_process *p, uint64_t number)
{
	return number > UINT32_MAX ? IDMAP_NONE : idmap_get(&p->list_ids, (uint32_t)number);
}

static void add_object(struct preload_process *p, const struct preload_entry *e,
                       struct cursor *text)
{
	uint32_t before = idmap_get(&p->object_ids, e->number);
	size_t len = cursor_left(text);

	if (p->objects.n == OBJECTS_MAX)
		return;
	idmap_set(&p->object_ids, e->number, (uint32_t)p->objects.n);
	*vec_push(&p->objects) = (struct preload_object){
		.stamp = e->stamp,
		.before = before == IDMAP_NONE ? 0 : before + (size_t)1,
		.text = (const char *)cursor_bytes(text, len),
		.len = len,
		.runtime = e->value == PRELOAD_OF_RUNTIME,
	};
}

static void add_import(struct preload_process *p, const struct preload_entry *e,
                       struct cursor *text)
{
	size_t len = cursor_left(text);
	const char *name = (const char *)cursor_bytes(text, len);

	if (p->imports.n == IMPORTS_MAX)
		return;
	*vec_push(&p->imports) = (struct preload_import){ .text = name,
		                                          .len = name ? strnlen(name, len) : 0,
		                                          .frames = (uint32_t)e->number };
}

/* The first object is described after the first thread has begun to wait for it. */
const struct preload_object *preload_log_object(const struct preload_process *p, uint64_t address,
                                                uint64_t stamp)
{
	uint32_t at = idmap_get(&p->object_ids, address);
	const struct preload_object *object;

	if (at == IDMAP_NONE)
		return NULL;
	object = &p->objects.v[at];
	while (object->before && object->stamp > stamp)
		object = &p->objects.v[object->before - 1];
	return object;
}

static void add_of_process(struct preload_process *p, const struct preload_entry *e,
                           struct cursor *text)
{
	switch (e->type) {
	case PRELOAD_GIL:
		add_gil(p, e);
		break;
	case PRELOAD_FORKED:
		p->forked = true;
		p->forked_by = (uint32_t)e->value;
		break;
	case PRELOAD_ENDED:
		p->ended_stamp = e->stamp;
		break;
	case PRELOAD_FUNCTION:
		add_code(p, e, text);
		break;
	case PRELOAD_FRAMES:
		add_list(p, e, text);
		break;
	case PRELOAD_CALLED:
		add_called(p, e, text);
		break;
	case PRELOAD_TASK_NAME:
		add_task_name(p, e, text);
		break;
	case PRELOAD_OBJECT:
		add_object(p, e, text);
		break;
	case PRELOAD_NEEDS_GIL:
		add_import(p, e, text);
		break;
	default:
		break;
	}
}

static void add_entry(struct preload_log *log, size_t *process, const struct preload_entry *e,
                      struct cursor *text)
{
	if (e->type == PRELOAD_PAIR) {
		*vec_push(&log->pairs) = (struct preload_pair){ e->stamp, e->value };
	} else if (e->type == PRELOAD_OWN) {
		free(log->own);
		log->own = copy_text(text);
	} else if (e->type == PRELOAD_STOP) {
		log->stop_stamp = e->stamp;
	} else if (e->type == PRELOAD_ALIVE) {
		idmap_set(&log->alive, e->number, 0);
	} else if (e->type == PRELOAD_IDLE) {
		*vec_push(&log->idle) = (struct preload_idle){ (uint32_t)e->value,
			                                       (uint32_t)e->number };
	} else if (e->type == PRELOAD_UNWRITTEN) {
		if (!log->unwritten_stamp || e->stamp < log->unwritten_stamp)
			log->unwritten_stamp = e->stamp;
	} else if (e->type == PRELOAD_ASIDE) {
		log->aside++;
	} else if (e->type == PRELOAD_UNRECORDED) {
		log->unrecorded++;
	} else if (e->type == PRELOAD_CALL_COST) {
		if (e->value)
			log->call_cost_ps = e->value;
		if (*process)
			log->processes.v[*process - 1].calls = true;
	} else if (e->type == PRELOAD_PROCESS && find_process(log, e)) {
		*process = find_process(log, e);
	} else if (e->type == PRELOAD_PROCESS && log->processes.n == PROCESSES_MAX) {
		log->too_many = true;
		*process = 0;
	} else if (e->type == PRELOAD_PROCESS) {
		add_process(log, e, text);
		*process = log->processes.n;
	} else if (*process && e->type == PRELOAD_COLLECTED) {
		*vec_push(&log->collections) = (struct preload_collection){
			log->processes.v[*process - 1].pid, (uint32_t)e->number, e->value, e->stamp
		};
	} else if (*process) {
		add_of_process(&log->processes.v[*process - 1], e, text);
	}
}

static bool read_entry(struct cursor *c, struct preload_entry *ret, struct cursor *ret_text)
{
	const uint32_t head = sizeof(*ret);

	*ret = (struct preload_entry){
		.size = cursor_u32(c),
		.type = cursor_u32(c),
		.stamp = cursor_u64(c),
		.number = cursor_u64(c),
		.value = cursor_u64(c),
	};
	if (c->bad || ret->size < head || ret->size > PRELOAD_ENTRY_MAX)
		return false;
	*ret_text = cursor_sub(c, ret->size - head);
	return !c->bad;
}

void preload_log_parse(struct preload_log *log, const void *data, size_t size)
{
	struct cursor c = cursor_make(data, size), text;
	struct preload_entry entry = { 0 };
	size_t process = 0; /* index + 1 */
	uint64_t stamp = 0;

	log->bytes += size;
	while (cursor_left(&c)) {
		if (!read_entry(&c, &entry, &text)) {
			stamp = entry.stamp ? entry.stamp : stamp;
			log->cut_stamp = !log->cut || stamp < log->cut_stamp ? stamp
			                                                     : log->cut_stamp;
			log->cut++;
			return;
		}
		stamp = entry.stamp;
		add_entry(log, &process, &entry, &text);
	}
}

int preload_log_read(struct preload_log *log, const char *path, struct error *err)
{
	struct filemap map = { 0 };

	if (filemap_open(&map, path, err) < 0)
		return -1;
	*vec_push(&log->maps) = map;
	preload_log_parse(log, map.data, map.size);
	if (log->too_many)
		return error_set(err, EFBIG, "%s: with it, the logs have more than %d processes",
		                 path, PROCESSES_MAX);
	return 0;
}

int preload_log_check(const struct preload_log *log, struct error *err)
{
	for (size_t i = 0; i < log->maps.n; i++)
		if (filemap_check(&log->maps.v[i], err) < 0)
			return -1;
	return 0;
}

/* ---- all logs */

static int compare_pairs(const void *va, const void *vb)
{
	const struct preload_pair *a = va, *b = vb;

	return a->stamp < b->stamp ? -1 : a->stamp > b->stamp;
}

static int compare_processes(const void *va, const void *vb)
{
	const struct preload_process *a = va, *b = vb;

	return a->stamp < b->stamp ? -1 : a->stamp > b->stamp;
}

/* Drops pairs that go backwards, which must be wrong, because both clocks only go forward. */
static void drop_backward(struct preload_log *log)
{
	size_t n = 0;

	for (size_t i = 0; i < log->pairs.n; i++) {
		const struct preload_pair *p = &log->pairs.v[i];

		if (n && (p->stamp == log->pairs.v[n - 1].stamp || p->ns <= log->pairs.v[n - 1].ns))
			continue;
		log->pairs.v[n++] = *p;
	}
	log->pairs.n = n;
}

static void note_ends(struct preload_log *log)
{
	struct idmap later = { 0 };

	for (size_t i = log->processes.n; i-- > 0;) {
		struct preload_process *p = &log->processes.v[i];

		p->lives_on = idmap_get(&log->alive, p->pid) != IDMAP_NONE ||
		              idmap_get(&later, p->pid) != IDMAP_NONE;
		idmap_set(&later, p->pid, 0);
	}
	idmap_done(&later);
}

void preload_log_finish(struct preload_log *log)
{
	vec_sort(&log->pairs, compare_pairs);
	vec_sort(&log->processes, compare_processes);
	drop_backward(log);
	note_ends(log);
}

void preload_log_done(struct preload_log *log)
{
	vec_done(&log->idle);
	for (size_t i = 0; i < log->processes.n; i++) {
		free(log->processes.v[i].exe);
		vec_done(&log->processes.v[i].gils);
		vec_done(&log->processes.v[i].codes);
		vec_done(&log->processes.v[i].lists);
		vec_done(&log->processes.v[i].imports);
		vec_done(&log->processes.v[i].called);
		vec_done(&log->processes.v[i].task_names);
		vec_done(&log->processes.v[i].objects);
		idmap_done(&log->processes.v[i].object_ids);
		idmap_done(&log->processes.v[i].code_ids);
		idmap_done(&log->processes.v[i].list_ids);
		idmap_done(&log->processes.v[i].called_ids);
		idmap_done(&log->processes.v[i].gil_ids);
		idmap_done(&log->processes.v[i].task_name_ids);
	}
	for (size_t i = 0; i < log->maps.n; i++)
		filemap_done(&log->maps.v[i]);
	vec_done(&log->maps);
	free(log->own);
	idmap_done(&log->alive);
	idmap_done(&log->process_ids);
	vec_done(&log->processes);
	vec_done(&log->pairs);
	vec_done(&log->collections);
}

int preload_log_find(const struct preload_log *log, uint32_t pid, uint64_t stamp)
{
	for (size_t i = 0; i < log->processes.n; i++)
		if (log->processes.v[i].pid == pid && log->processes.v[i].stamp == stamp)
			return (int)i;
	return -1;
}

/* Larger than any time of a clock; larger values are reduced to it. */
#define NS_MAX 4e18

static uint64_t to_ns(double ns)
{
	return ns < 0 ? 0 : (uint64_t)(ns < NS_MAX ? ns : NS_MAX);
}

/* Interpolates from a pair: a double as large as a time would lose fractions of a nanosecond. */
static uint64_t time_from(const struct preload_pair *a, const struct preload_pair *b,
                          uint64_t stamp)
{
	double rate = (double)(b->ns - a->ns) / (double)(b->stamp - a->stamp);
	uint64_t since;

	if (stamp >= a->stamp)
		return a->ns % (uint64_t)NS_MAX + to_ns((double)(stamp - a->stamp) * rate);
	since = to_ns((double)(a->stamp - stamp) * rate);
	return since < a->ns ? a->ns - since : 0;
}

uint64_t preload_log_time(const struct preload_log *log, uint64_t stamp, size_t *near)
{
	const struct preload_pair *v = log->pairs.v;
	size_t i = *near, n = log->pairs.n;

	if (n < 2)
		return n ? v[0].ns + stamp - v[0].stamp : stamp;
	if (i > n - 2)
		i = 0;
	while (i && stamp < v[i].stamp)
		i--;
	while (i < n - 2 && stamp >= v[i + 1].stamp)
		i++;
	*near = i;
	return time_from(&v[i], &v[i + 1], stamp);
}

bool preload_log_is_own(const struct preload_log *log, const struct preload_code *code)
{
	size_t len = log->own ? strlen(log->own) : 0;

	return len && code->file_len > len && !memcmp(code->file, log->own, len) &&
	       code->file[len] == '/';
}
