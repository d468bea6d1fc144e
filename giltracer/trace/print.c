/* SPDX-License-Identifier: MIT */
/* Events as text. */
#include "print.h"

#include <inttypes.h>

#include "base/utf8.h"
#include "perfdata/print.h"
#include "trace/names.h"
#include "trace/stacks.h"

const char *event_type_name(unsigned type)
{
	static const char *const names[] = {
		[EV_REQUEST] = "request",
		[EV_ACQUIRE] = "acquire",
		[EV_RELEASE] = "release",
		[EV_RELEASED] = "released",
		[EV_SAVE] = "save",
		[EV_ASKED] = "asked",
		[EV_PARK] = "park",
		[EV_HOLDER] = "holder",
		[EV_OUTER] = "outer",
		[EV_INNER] = "inner",
		[EV_GONE] = "gone",
		[EV_PARKED] = "parked",
		[EV_UNPARK] = "unpark",
		[EV_SPIN] = "spin",
		[EV_SPUN] = "spun",
		[EV_STOP_WORLD] = "stop-world",
		[EV_LATE] = "late",
		[EV_STOPPED_WORLD] = "stopped-world",
		[EV_START_WORLD] = "start-world",
		[EV_STARTED_WORLD] = "started-world",
		[EV_NEEDS_GIL] = "needs-gil",
		[EV_SWITCH_IN] = "switch-in",
		[EV_SWITCH_OUT] = "switch-out",
		[EV_SCHED_OUT] = "sched-out",
		[EV_WAKING] = "waking",
		[EV_FORK] = "fork",
		[EV_EXIT] = "exit",
		[EV_COMM] = "comm",
		[EV_PYTHON] = "python",
		[EV_LOST] = "lost",
		[EV_COUNT] = "count",
		[EV_STACK] = "stack",
		[EV_PICK] = "pick",
		[EV_MOVE] = "move",
	};

	return type < sizeof(names) / sizeof(names[0]) ? names[type] : "?";
}

static void print_park(FILE *out, const struct source *source, const struct event *ev)
{
	static const char *const kinds[] = { "event", "lock", "world" };

	fprintf(out, " address=%#" PRIx64, ev->park.address);
	if (ev->type == EV_PARK)
		fprintf(out, " for=%s", kinds[ev->park.kind]);
	if (ev->type == EV_PARK && ev->park.of) {
		fputs(" of=", out);
		print_quoted(out, names_get(source->names, ev->park.of), SIZE_MAX);
	}
	if (ev->type == EV_PARK && ev->park.name) {
		fputs(" name=", out);
		print_quoted(out, names_get(source->names, ev->park.name), SIZE_MAX);
	}
}

static void print_detail(FILE *out, const struct source *source, const struct event *ev)
{
	switch (ev->type) {
	case EV_REQUEST:
	case EV_RELEASE:
	case EV_SAVE:
	case EV_ASKED:
		fprintf(out, " gil=%#" PRIx64, ev->gil.address);
		if (ev->gil.frame)
			fprintf(out, " frame=%" PRIu32, ev->gil.frame);
		break;
	case EV_PARK:
	case EV_UNPARK:
	case EV_OUTER:
	case EV_INNER:
	case EV_GONE:
	case EV_SPIN:
	case EV_LATE:
		print_park(out, source, ev);
		break;
	case EV_HOLDER:
		fprintf(out, " holder=%" PRIu32, ev->holder.tid);
		break;
	case EV_START_WORLD:
		if (ev->gil.frame)
			fprintf(out, " frame=%" PRIu32, ev->gil.frame);
		break;
	case EV_SCHED_OUT:
		fprintf(out, " state=%#" PRIx32 " next=%" PRIu32 " stack=%" PRIu32,
		        ev->sched.prev_state, ev->sched.next_tid, ev->sched.stack);
		break;
	case EV_PICK:
		fprintf(out, " state=%#" PRIx32 " next=%" PRIu32, ev->sched.prev_state,
		        ev->sched.next_tid);
		break;
	case EV_MOVE:
		fprintf(out, " moved=%" PRIu32 " from=%" PRId32 " to=%" PRId32, ev->move.tid,
		        ev->move.from, ev->move.to);
		break;
	case EV_WAKING:
		fprintf(out, " woken=%" PRIu32 " on=%" PRId32, ev->waking.tid, ev->waking.cpu);
		break;
	case EV_FORK:
		fprintf(out, " parent=%" PRIu32 "/%" PRIu32, ev->fork.parent_pid,
		        ev->fork.parent_tid);
		break;
	case EV_COMM:
		fputs(" name=", out);
		print_quoted(out, names_get(source->names, ev->comm.name), SIZE_MAX);
		break;
	case EV_NEEDS_GIL:
		fputs(" name=", out);
		print_quoted(out, names_get(source->names, ev->import.name), SIZE_MAX);
		break;
	case EV_LOST:
		fprintf(out, " count=%" PRIu32 " since=%" PRIu64, ev->lost.count,
		        ev->lost.since_ns);
		break;
	case EV_COUNT:
		utf8_fprintf(out, " counter=%s value=%" PRIu64, source->counters[ev->count.counter],
		             ev->count.value);
		break;
	case EV_STACK:
		fprintf(out, " stack=%" PRIu32, ev->stack.stack);
		break;
	default:
		break;
	}
}

void print_event(FILE *out, const struct source *source, const struct event *ev)
{
	fprintf(out, "%" PRIu64 ".%09" PRIu64 " %" PRIu32 "/%" PRIu32 " cpu=%" PRId32 " %s",
	        ev->time_ns / 1000000000, ev->time_ns % 1000000000, ev->pid, ev->tid, ev->cpu,
	        event_type_name(ev->type));
	print_detail(out, source, ev);
	if (ev->flags & EVF_PREEMPT)
		fputs(" preempt", out);
	if (ev->flags & EVF_EXEC)
		fputs(" exec", out);
	if (ev->flags & EVF_WAKEUPS)
		fputs(" wakeups", out);
	if (ev->flags & EVF_NO_GIL)
		fputs(" no-gil", out);
	if (ev->flags & EVF_GIL_ONLY)
		fputs(" gil-only", out);
	if (ev->flags & EVF_RECORDED)
		fputs(" recorded", out);
	if (ev->flags & EVF_UNWRITTEN)
		fputs(" unwritten", out);
	if (ev->flags & EVF_MISSED)
		fputs(" missed", out);
	if (ev->flags & EVF_COLLECTS)
		fputs(" collects", out);
	if (ev->flags & EVF_RUNTIME)
		fputs(" runtime", out);
	if (ev->flags & EVF_LOOKS)
		fputs(" looks", out);
	fputc('\n', out);
}

static void print_frame(FILE *out, const struct source *source, const struct stack_frame *frame)
{
	static const char *const words[] = { "kernel",  "python",   "inlined",
		                             "eval",    "take_gil", "truncated",
		                             "unknown", "broken",   "mismatch" };

	fputc('\t', out);
	print_quoted(out, names_get(source->names, frame->name), SIZE_MAX);
	if (frame->line)
		fprintf(out, ":%" PRIu32, frame->line);
	fputc(' ', out);
	print_quoted(out, names_get(source->names, frame->module), SIZE_MAX);
	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!(frame->flags >> i & 1))
			continue;
		fputc(' ', out);
		fputs(words[i], out);
	}
	fputc('\n', out);
}

static bool has_frame(const struct event *ev)
{
	return ev->type == EV_REQUEST || ev->type == EV_RELEASE || ev->type == EV_START_WORLD;
}

void print_event_stack(FILE *out, const struct source *source, const struct event *ev)
{
	const struct stacks *stacks = has_frame(ev) ? source->frames : source->stacks;
	uint32_t id = has_frame(ev)              ? ev->gil.frame
	              : ev->type == EV_SCHED_OUT ? ev->sched.stack
	              : ev->type == EV_STACK     ? ev->stack.stack
	                                         : 0;

	while (id) {
		const struct stack_frame *frame = stacks_get(stacks, id);

		print_frame(out, source, frame);
		id = frame->parent;
	}
}

void print_source_stats(FILE *out, const struct source *source)
{
	const struct source_stats *s = &source->stats;

	fprintf(out,
	        "# records %" PRIu64 "\n# samples %" PRIu64 "\n# events %" PRIu64
	        "\n# lost %" PRIu64 "\n# unknown_records %" PRIu64 "\n# unordered %" PRIu64
	        "\n# leftover_bytes %" PRIu64 "\n# bytes %" PRIu64 "\n",
	        s->records, s->samples, s->events, s->lost, s->unknown_records, s->unordered,
	        s->leftover_bytes, s->bytes);
	if (s->unfinished)
		fprintf(out, "# unfinished %" PRIu64 "\n", s->unfinished);
	if (s->truncated_at)
		utf8_fprintf(out, "# truncated at %#" PRIx64 ": %s\n", s->truncated_at,
		             s->truncated_text);
}

void print_calls(FILE *out, const struct slices *slices, const struct slice_thread *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct slice *s = &t->v[i];

		fprintf(out, "%" PRIu32 "/%" PRIu32 " %" PRIu64 ".%09" PRIu64 " %" PRIu64 " %u%s ",
		        t->pid, t->tid, s->start_ns / 1000000000, s->start_ns % 1000000000,
		        s->dur_ns, s->depth, s->flags & SLICE_OPEN ? " open" : "");
		print_quoted(out, names_get(slices->names, s->name), SIZE_MAX);
		putc('\n', out);
	}
}
