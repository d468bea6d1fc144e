/* SPDX-License-Identifier: MIT */
/*
 * What the preload library writes into its folder and trace/preload/from_preload.c reads. Both run on the
 * same kind of machine: numbers are in its byte order.
 *
 * Per process that made a GIL, PID.STAMP.log: entries (struct preload_entry and its text), appended
 * as things happen. Per thread at a time, PID.STAMP.N.gil: a struct preload_header, zeros up to
 * PRELOAD_RECORDS_AT, and records of 8 bytes up to the first that is zero. A thread that ends
 * leaves its file to the next one that starts, so a PRELOAD_THREAD record says whose records
 * follow.
 *
 * A stamp is a time of the header's clock, 60 bits. PRELOAD_PAIR entries say which nanosecond of
 * CLOCK_MONOTONIC a stamp is.
 */
#ifndef GILTRACER_PRELOAD_FORMAT_H
#define GILTRACER_PRELOAD_FORMAT_H

#include <stdint.h>

/* The variable that names the folder to write to: absolute, at most PRELOAD_DIR_MAX bytes. */
#define PRELOAD_ENV     "GILTRACER_PRELOAD"
#define PRELOAD_DIR_MAX 3800

/* The same, where only the calls of the program itself are recorded. The library removes both this
 * variable and itself from the environment. */
#define PRELOAD_CALLS_ENV "GILTRACER_CALLS"

#define PRELOAD_LOG_SUFFIX   ".log"
#define PRELOAD_GIL_SUFFIX   ".gil"
#define PRELOAD_CALLS_SUFFIX ".calls"
#define PRELOAD_CONTROL      "control"
#define PRELOAD_OFFSETS      "offsets"

#define PRELOAD_MAGIC      0x316c696772746c67 /* "gltrgil1" */
#define PRELOAD_RECORDS_AT 64
#define PRELOAD_TYPE_BITS  4
#define PRELOAD_GILS_MAX   65536

enum preload_clock {
	PRELOAD_CLOCK_MONOTONIC, /* stamps are nanoseconds */
	PRELOAD_CLOCK_TSC,
};

/**
 * At the start of each file of records.
 * @process: the STAMP of the file's name
 * @unwritten: records for which there was no room: all of them later than @unwritten_stamp
 * Of Python calls only:
 * @first: where records begin, if those before were given up for later ones; 0: none were
 * @written: bytes behind the window
 */
struct preload_header {
	uint64_t magic;
	uint64_t process;
	uint32_t pid;
	uint32_t clock; /* enum preload_clock */
	uint64_t unwritten;
	uint64_t unwritten_stamp;
	uint64_t first, written;
	uint64_t reserved;
};

/*
 * A record is a number, shifted by PRELOAD_TYPE_BITS, and a type. That of what happens is a stamp;
 * the other ones say of which GIL or thread it is from now on, and where in the program.
 */
enum preload_type {
	PRELOAD_END, /* nothing was written here */

	PRELOAD_REQUEST,  /* the thread wants a GIL that another thread has */
	PRELOAD_ACQUIRE,  /* without a REQUEST before it: it wanted it and got it at once */
	PRELOAD_RELEASE,  /* in the frame that was named last */
	PRELOAD_SWITCHED, /* it is out of drop_gil, if nothing of the kind follows */
	PRELOAD_ASKED,    /* it has waited for the interval: the holder was asked to release */
	PRELOAD_LEFT,     /* it asked, and will not get it: the interpreter ends */
	PRELOAD_THREAD,   /* a thread, said just before, has its first record */
	PRELOAD_EXIT,     /* it has ended */

	PRELOAD_OF_GIL,    /* its number; at first 0 */
	PRELOAD_OF_THREAD, /* tid */
	PRELOAD_OF_FRAME,  /* number of PRELOAD_FRAMES, 0: unknown */
	PRELOAD_OF_ASKED,  /* stamp at which the next RELEASE was first asked for */
	PRELOAD_OF_DELAY, /* of the time since then, ns in which it is not known to have computed or slept */
};

/*
 * Python calls: per thread at a time, PID.STAMP.N.calls. Its header is the same but for the magic.
 * At PRELOAD_CALLS_WINDOW_AT follows a window of at most PRELOAD_CALLS_WINDOW_MAX bytes, to which
 * records are written; when it is full, it is copied behind what stands at PRELOAD_CALLS_DATA_AT.
 * The window begins with a PRELOAD_SAY_WINDOW, whose value is the number of bytes before it; if
 * that is another one than the header's, it was copied already. It ends at its first zero.
 *
 * A record has a type, the number of a function (PRELOAD_CALLED) and the lower bits of a stamp; the
 * upper ones are those of the PRELOAD_SAY_TIME before it. Each thread's records are balanced: what
 * ends and has not begun was running when they began.
 */
#define PRELOAD_CALLS_WINDOW_AT  4096
#define PRELOAD_CALLS_WINDOW_MIN ((size_t)16 << 10)
#define PRELOAD_CALLS_WINDOW_MAX ((size_t)256 << 10)
#define PRELOAD_CALLS_DATA_AT    (PRELOAD_CALLS_WINDOW_AT + PRELOAD_CALLS_WINDOW_MAX)

/* Its last byte is the format's version. */
#define PRELOAD_CALLS_MAGIC   0x326c616372746c67 /* "gltrcal2" */
#define PRELOAD_VERSION_SHIFT 56

#define PRELOAD_CALL_TYPE_BITS  3
#define PRELOAD_CALL_CODE_BITS  21
#define PRELOAD_CALL_STAMP_BITS 40
#define PRELOAD_CALL_WORD(type, number, value)                                    \
	((uint64_t)(value) << (PRELOAD_CALL_TYPE_BITS + PRELOAD_CALL_CODE_BITS) | \
	 (uint64_t)(number) << PRELOAD_CALL_TYPE_BITS | (type))

/* Functions from this number on are not numbered: they are all 0, which is unknown. */
#define PRELOAD_CALL_CODES_MAX ((1u << PRELOAD_CALL_CODE_BITS) - 1)

enum preload_call_type {
	PRELOAD_CALL_END, /* nothing was written here */
	PRELOAD_CALL_START,
	PRELOAD_CALL_RESUME, /* of a generator or coroutine */
	PRELOAD_CALL_THROW,  /* the same, with an exception */
	PRELOAD_CALL_RETURN,
	PRELOAD_CALL_YIELD,
	PRELOAD_CALL_UNWIND, /* it ends by an exception */
	PRELOAD_CALL_SAY,    /* the function's number is an enum preload_say */
};

enum preload_say {
	PRELOAD_SAY_TIME,   /* upper bits of the stamps that follow */
	PRELOAD_SAY_THREAD, /* tid whose records follow */
	PRELOAD_SAY_BEGIN,  /* the same: it had none before */
	PRELOAD_SAY_ASIDE,  /* from this stamp's lower bits on, the program has the profile function
	                     */
	PRELOAD_SAY_WINDOW, /* bytes that were written before this window, lower bits */
	/* Of asyncio. The next READY, DUE or RUNS is of that object: its address / 16, lower bits */
	PRELOAD_SAY_TASK,
	PRELOAD_SAY_HANDLE, /* of a callback that is no task's */
	PRELOAD_SAY_NAME,   /* the name of the object: number of a PRELOAD_TASK_NAME */
	PRELOAD_SAY_AFTER,  /* the next DUE is so many µs before the object's time */
	PRELOAD_SAY_LINE,   /* of the coroutine that the next YIELD suspends */
	/* with a stamp's lower bits */
	PRELOAD_SAY_READY, /* the thread or another one put it into its event loop's queue */
	PRELOAD_SAY_DUE,   /* it will be there at a time */
	PRELOAD_SAY_RUNS,  /* the loop of this thread takes it from the queue and runs it */
	PRELOAD_SAY_RAN,   /* until here */
};

enum preload_entry_type {
	PRELOAD_PROCESS = 1, /* number: pid, and its parent's in the high half; value: enum
	                      * preload_clock; text: the program's path */
	PRELOAD_PAIR,        /* value: CLOCK_MONOTONIC in ns at stamp */
	PRELOAD_GIL,         /* number, value: its address */
	PRELOAD_FORKED,      /* the process is a fork; value: the thread that forked */
	PRELOAD_FUNCTION, /* number; value: minor version of CPython; text: struct preload_function
	                   * and its texts */
	PRELOAD_FRAMES,   /* number; text: array of struct preload_frame, innermost first */
	PRELOAD_NAME,     /* number: tid, text: the thread's name */
	PRELOAD_STOP,     /* of the launcher: what is later is not part of the recording */
	PRELOAD_OWN, /* of the launcher: text: the folder of the code that is giltracer's own */
	PRELOAD_UNWRITTEN, /* records from here on could not be written */
	PRELOAD_ASIDE,     /* thread number has a profile function of the program's own: its calls
	                    * are not recorded from here on */
	PRELOAD_CALLED,    /* a function of Python calls; number; text: struct preload_function and
	                    * its texts, of which there is no line table; value: of a coroutine,
	                    * PRELOAD_COROUTINE, too; of a function in C, PRELOAD_NATIVE: it has
	                    * no file */
	PRELOAD_CALL_COST, /* value: ps that a call and its return last longer because they are
	                    * recorded, as measured when that began */
	PRELOAD_TASK_NAME, /* of a task of asyncio: number; text: the name and zeros */
	PRELOAD_ENDED,     /* the process ends now, with all its threads */
	PRELOAD_ALIVE,     /* of the launcher, with PRELOAD_STOP: process number lived on */
};

#define PRELOAD_COROUTINE (1ull << 32)
#define PRELOAD_NATIVE    (1ull << 33)

/* @size: of the entry with its text, a multiple of 8 */
struct preload_entry {
	uint32_t size;
	uint32_t type; /* enum preload_entry_type */
	uint64_t stamp;
	uint64_t number;
	uint64_t value;
};

#define PRELOAD_ENTRY_MAX (1 << 20)

/* Behind it: its qualified name (before CPython 3.11, its name), file and line table
 * (trace/pycode.h), without terminators. */
struct preload_function {
	uint32_t first_line;
	uint32_t name_len, file_len, table_len;
};

/* offset: of the instruction in the function's code, in bytes; -1: before the first one */
struct preload_frame {
	uint32_t function;
	int32_t offset;
};

#define PRELOAD_FRAMES_MAX 6

/* Later tasks have no names, but their functions'. */
#define PRELOAD_TASK_NAMES_MAX 4096

#define PRELOAD_MODULES_MAX 1024

/**
 * The file PRELOAD_CONTROL, shared by the launcher and all processes.
 * @limit, @used: bytes that may be and are used by records
 * @full_stamp, @full_ns: when the limit was reached; 0: it was not
 * @stopped: the launcher wants nothing more
 * @entries: how many of the last calls of a process are kept at least; 0: all
 * @shortest_ns: shorter calls are not wanted
 * @modules: whose functions' calls are, names between commas; "": all are
 * Of a program that ran before:
 * @gil: the address of its GIL
 * @joined_ns: when the library has begun, CLOCK_MONOTONIC; 0: not yet
 * @alone: its children are not recorded
 * The launcher has a lock on the file (F_OFD_SETLK) as long as it lives. Such a program may have the
 * library of an older version: another layout has another PRELOAD_MAGIC.
 */
struct preload_control {
	uint64_t magic;
	uint64_t limit;
	uint64_t used;
	uint64_t full_stamp, full_ns;
	uint32_t frames; /* how many a release has, at most PRELOAD_FRAMES_MAX */
	uint32_t no_gil; /* only calls are recorded */
	uint32_t stopped;
	uint32_t c_calls; /* calls of functions in C are recorded, too */
	uint32_t alone;
	uint32_t reserved;
	uint64_t gil, joined_ns;
	uint64_t entries;
	uint64_t shortest_ns;
	char modules[PRELOAD_MODULES_MAX];
};

/* The file PRELOAD_OFFSETS: an array; what the names mean says probes/README.md. */
struct preload_offsets {
	uint32_t major, minor;
	uint32_t current, current2, previous, code, instruction, instruction_size;
	uint32_t type, line, name, state, text;
};

#define PRELOAD_NO_OFFSET UINT32_MAX

#endif
