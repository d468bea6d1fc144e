/* SPDX-License-Identifier: MIT */
/*
 * The files that the preload library writes into its folder, and that trace/preload/from_preload.c
 * reads. Both run on the same kind of machine, so numbers are in its byte order.
 *
 * Each process that has created a GIL has a log PID.STAMP.log: entries (struct preload_entry and
 * its text), appended as things happen. Each running thread has a file PID.STAMP.N.gil: a struct
 * preload_header, zeros up to PRELOAD_RECORDS_AT, and records of 8 bytes up to the first zero. A
 * thread that ends leaves its file to the next one that starts, so a PRELOAD_THREAD record
 * identifies the thread of the records that follow.
 *
 * A flight recorder (preload_control.kept_stamps) drops the oldest parts of the files, which become
 * holes. So each part of a file repeats the thread, the GIL and the frame of its first records, and
 * readings of the clocks are in a log of their own, PID.STAMP.pairs.log, whose oldest entries are
 * overwritten. When its tables of functions and frames are full, it begins a new log, with higher numbers; the
 * present one becomes PID.STAMP.old.log, which the next one replaces.
 *
 * A stamp is a time of the header's clock, 59 bits. PRELOAD_PAIR entries give the nanosecond of
 * CLOCK_MONOTONIC for a stamp.
 */
#ifndef GILTRACER_PRELOAD_FORMAT_H
#define GILTRACER_PRELOAD_FORMAT_H

#include <stdint.h>

/* The variable with the folder to write to: absolute, at most PRELOAD_DIR_MAX bytes. */
#define PRELOAD_ENV     "GILTRACER_PRELOAD"
#define PRELOAD_DIR_MAX 3800

/* The same, if only the calls of the program itself are recorded. The library removes both this
 * variable and itself from the environment. */
#define PRELOAD_CALLS_ENV "GILTRACER_CALLS"

#define PRELOAD_LIBRARY "libgiltracer-preload.so"

#define PRELOAD_LOG_SUFFIX   ".log"
#define PRELOAD_OLD_SUFFIX   ".old" PRELOAD_LOG_SUFFIX
#define PRELOAD_NEW_SUFFIX   ".new" /* a log that is being made */
#define PRELOAD_PAIRS_SUFFIX ".pairs" PRELOAD_LOG_SUFFIX
#define PRELOAD_GIL_SUFFIX   ".gil"
#define PRELOAD_CALLS_SUFFIX ".calls"
#define PRELOAD_CONTROL      "control"
#define PRELOAD_LAUNCHER     "launcher" PRELOAD_LOG_SUFFIX
/* An array of struct python_layout. */
#define PRELOAD_OFFSETS "offsets"
#define PRELOAD_NAMES   "names" /* of threads: lines "PID TID NAME" */

/* Its last byte is the format's version. */
#define PRELOAD_VERSION_SHIFT 56
#define PRELOAD_MAGIC         0x366c696772746c67 /* "gltrgil6" */
#define PRELOAD_RECORDS_AT    64
#define PRELOAD_TYPE_BITS     5
#define PRELOAD_GILS_MAX      65536

enum preload_clock {
	PRELOAD_CLOCK_MONOTONIC, /* stamps are nanoseconds */
	PRELOAD_CLOCK_TSC,
};

/**
 * At the start of each file of records.
 * @process: the STAMP of the file's name
 * @unwritten: records for which there was no room, all later than @unwritten_stamp
 * @first: offset of the first record if earlier ones were dropped; 0: none were. Of GIL events, in the
 * file; of Python calls, in the data
 * @written: of Python calls: bytes after the window
 * @dropped_stamp: of GIL events: all records that were dropped are of earlier times
 */
struct preload_header {
	uint64_t magic;
	uint64_t process;
	uint32_t pid;
	uint32_t clock; /* enum preload_clock */
	uint64_t unwritten;
	uint64_t unwritten_stamp;
	uint64_t first, written;
	uint64_t dropped_stamp;
};

/*
 * A record consists of a number, shifted by PRELOAD_TYPE_BITS, and a type. The number of an event
 * is its stamp; other records give the GIL, the thread or the location of the events that follow.
 */
enum preload_type {
	PRELOAD_END, /* zero: nothing was written here */

	PRELOAD_REQUEST,  /* the thread wants a GIL that another thread holds */
	PRELOAD_ACQUIRE,  /* without a REQUEST before it: it requested the GIL and got it at once */
	PRELOAD_RELEASE,  /* in the last frame given */
	PRELOAD_SWITCHED, /* it has returned from drop_gil, if no other record tells that */
	PRELOAD_ASKED,    /* it has waited for the interval, and asked the holder to release */
	PRELOAD_LEFT,     /* it asked, and will not get the GIL, because the interpreter ends */
	PRELOAD_THREAD,   /* first record of the thread given just before */
	PRELOAD_EXIT,     /* the thread has ended */

	PRELOAD_OF_GIL,    /* number of the GIL; initially 0 */
	PRELOAD_OF_THREAD, /* tid */
	PRELOAD_OF_FRAME,  /* number of PRELOAD_FRAMES, 0: unknown */
	PRELOAD_HELD,      /* event of a holder: the first request that the next RELEASE answers was
	                    * made, in the last frame given; it may follow events that came later */
	PRELOAD_OF_DELAY,  /* ns since then in which it is not known to have computed or slept */

	PRELOAD_OF_LOCK, /* address of the lock << PRELOAD_LOCK_BITS | enum preload_lock_event */
	PRELOAD_LOCK,    /* that event happens to the lock; always follows a PRELOAD_OF_LOCK */

	PRELOAD_OF_CREATOR, /* tid of the thread that created the one of the last PRELOAD_OF_THREAD;
	                     * none: unknown */

	PRELOAD_OF_HOLDER, /* tid of the thread that took the lock of the next PRELOAD_LOCK last, and has
	                    * not released it, or that holds the GIL of the next PRELOAD_HOLDER_ASKED;
	                    * none: unknown */
	PRELOAD_HOLDER_ASKED, /* what PRELOAD_HELD says, by a thread that waits for long: the holder may
	                       * never release the GIL */

	PRELOAD_TURN, /* a PRELOAD_RELEASE and the PRELOAD_ACQUIRE after it: the time between them, and above
	               * PRELOAD_TURN_BITS the lower bits of the release's stamp */
	PRELOAD_OF_TIME, /* a stamp, whose upper bits are those of the turns that follow */
};

/* The upper bits of a turn's stamp are those that bring it closest to the last stamp before it, of an event or
 * a PRELOAD_OF_TIME, from which it is less than PRELOAD_TURN_NEAR away. */
#define PRELOAD_TURN_BITS  20
#define PRELOAD_TURN_MAX   (UINT64_C(1) << PRELOAD_TURN_BITS)
#define PRELOAD_TURN_SHIFT (PRELOAD_TYPE_BITS + PRELOAD_TURN_BITS)
#define PRELOAD_TURN_NEAR  (UINT64_C(1) << (63 - PRELOAD_TURN_SHIFT))
#define PRELOAD_TURN_WORD(release, since)                                                     \
	((uint64_t)(release) << PRELOAD_TURN_SHIFT | (uint64_t)(since) << PRELOAD_TYPE_BITS | \
	 PRELOAD_TURN)

/* The events of a lock of the program. A wait is recorded in a thread that has had a GIL. */
enum preload_lock_event {
	PRELOAD_LOCK_WAITS =
		1,          /* the thread begins to wait for a lock that another thread has taken */
	PRELOAD_LOCK_IDLES, /* it waits for a lock that it took itself, or for an event: for a signal */
	PRELOAD_LOCK_PARKS, /* it waits for a PyMutex; which thread took it is known of an RLock only */
	PRELOAD_LOCK_GOT,  /* the end of a wait */
	PRELOAD_LOCK_LEFT, /* the end of a wait by a time-out or a signal handler */
	PRELOAD_LOCK_POSTS, /* the thread releases the lock, in the last frame given, while others wait
	                     * for it */
	PRELOAD_LOCK_MISSED, /* the end of a wait; the release that ended it may not be recorded */
	PRELOAD_LOCK_DOUBTS, /* it waits for a lock, of which is not known which thread took it, before
	                       * the library was loaded: it may be a signal */
	PRELOAD_LOCK_SIGNALS, /* as POSTS, of a lock that another thread has taken: a signal */
	/* Of a free-threaded interpreter; each wait ends like that for a lock. */
	PRELOAD_LOCK_STOPPED, /* the thread begins to wait for the one that has stopped the world */
	PRELOAD_LOCK_STOPS, /* it is stopping the world, and begins to wait for all others to stop */
	PRELOAD_LOCK_COLLECTS, /* the same for a garbage collection */
	PRELOAD_LOCK_SPINS, /* the thread tries again and again to take a lock that another thread has */
	PRELOAD_LOCK_SPUN, /* it does not any more: it has the lock, or waits for it */
	PRELOAD_LOCK_LATE, /* it still waits for others to stop; instead of an address: the only thread that has
	                    * not; in the last frame given, that thread's own */
	PRELOAD_LOCK_STARTS, /* the thread begins to start the others again, in the last frame given */
	/* Two events: the thread has taken the lock of INNER, in the last frame given, while it has
	 * that of OUTER. Not every time, and only of semaphores. */
	PRELOAD_LOCK_OUTER,
	PRELOAD_LOCK_INNER,
	PRELOAD_LOCK_GONE, /* it is destroyed; another one may be made at its address */
	PRELOAD_LOCK_EVENTS,
};

#define PRELOAD_LOCK_BITS 5

_Static_assert(PRELOAD_LOCK_EVENTS <= 1 << PRELOAD_LOCK_BITS, "events have room");

/*
 * Python calls: each running thread has a file PID.STAMP.N.calls, with the same header except for
 * the magic. At PRELOAD_CALLS_WINDOW_AT is a window of at most PRELOAD_CALLS_WINDOW_MAX bytes, to
 * which records are written; when it is full, it is appended to the data at PRELOAD_CALLS_DATA_AT.
 * The window begins with a PRELOAD_SAY_WINDOW, whose value is the number of bytes before it; if
 * that differs from the header's, the window has been copied already. It ends at its first zero.
 *
 * A record has a type, the number of a function (PRELOAD_CALLED) and the lower bits of a stamp; the
 * upper bits are those of the previous PRELOAD_SAY_TIME. The records of each thread are balanced:
 * an end without a beginning is of a call that was running before the first record.
 */
#define PRELOAD_CALLS_WINDOW_AT  4096
#define PRELOAD_CALLS_WINDOW_MIN ((size_t)16 << 10)
#define PRELOAD_CALLS_WINDOW_MAX ((size_t)256 << 10)
#define PRELOAD_CALLS_DATA_AT    (PRELOAD_CALLS_WINDOW_AT + PRELOAD_CALLS_WINDOW_MAX)

/* Its last byte is the format's version, too. */
#define PRELOAD_CALLS_MAGIC 0x336c616372746c67 /* "gltrcal3" */

#define PRELOAD_CALL_TYPE_BITS  3
#define PRELOAD_CALL_CODE_BITS  21
#define PRELOAD_CALL_STAMP_BITS 40
#define PRELOAD_CALL_WORD(type, number, value)                                    \
	((uint64_t)(value) << (PRELOAD_CALL_TYPE_BITS + PRELOAD_CALL_CODE_BITS) | \
	 (uint64_t)(number) << PRELOAD_CALL_TYPE_BITS | (type))

/* Functions from this number on all have the number 0, which means unknown. */
#define PRELOAD_CALL_CODES_MAX ((1u << PRELOAD_CALL_CODE_BITS) - 1)

enum preload_call_type {
	PRELOAD_CALL_END, /* zero: nothing was written here */
	PRELOAD_CALL_START,
	PRELOAD_CALL_RESUME, /* of a generator or coroutine */
	PRELOAD_CALL_THROW,  /* the same, with an exception */
	PRELOAD_CALL_RETURN,
	PRELOAD_CALL_YIELD,
	PRELOAD_CALL_UNWIND, /* the call ends by an exception */
	PRELOAD_CALL_SAY,    /* the function's number is an enum preload_say */
};

enum preload_say {
	PRELOAD_SAY_TIME,   /* upper bits of the stamps that follow */
	PRELOAD_SAY_THREAD, /* tid of the records that follow */
	PRELOAD_SAY_BEGIN,  /* the same, for a thread's first records */
	PRELOAD_SAY_ASIDE,  /* from this stamp's lower bits on, the program has the profile function
	                     */
	PRELOAD_SAY_WINDOW, /* number of bytes written before this window, lower bits */
	/* Of event loops. The next READY, DUE or RUNS is about this object: the lower bits of a
	 * number that identifies it, for a task its address / 16 */
	PRELOAD_SAY_TASK,        /* a task of asyncio on one of its own loops */
	PRELOAD_SAY_TRIO_TASK,   /* a task of trio */
	PRELOAD_SAY_UVLOOP_TASK, /* a task of asyncio on uvloop: not every READY is recorded */
	PRELOAD_SAY_HANDLE,      /* a callback that does not belong to a task */
	PRELOAD_SAY_NAME,        /* name of the object: number of a PRELOAD_TASK_NAME */
	PRELOAD_SAY_AFTER,       /* the next DUE is this many µs before the object's time */
	PRELOAD_SAY_SINCE,       /* the next DUE is this many µs after the object's time */
	PRELOAD_SAY_LINE,        /* line of the coroutine that the next YIELD suspends */
	/* With the lower bits of a stamp: */
	PRELOAD_SAY_READY, /* a thread has put the object into its event loop's queue */
	PRELOAD_SAY_DUE,   /* the object will be put there at a time */
	PRELOAD_SAY_RUNS,  /* this thread's event loop takes the object from its queue */
	PRELOAD_SAY_RAN,   /* the end of that run */
	/* The next RUNS or RAN is about a greenlet. Only those say which object ended its run: the
	 * calls that are open then belong to it, and go on with its next RUNS */
	PRELOAD_SAY_GREENLET,
};

enum preload_entry_type {
	PRELOAD_PROCESS = 1, /* number: pid, and its parent's in the high half; value: enum
	                      * preload_clock; text: the program's path */
	PRELOAD_PAIR,        /* value: CLOCK_MONOTONIC in ns at stamp */
	PRELOAD_GIL,         /* number, value: its address */
	PRELOAD_FORKED,      /* the process is a fork; value: the thread that forked */
	PRELOAD_FUNCTION,  /* number; value: minor version of CPython; text: struct preload_function
	                   * and its texts */
	PRELOAD_FRAMES,    /* number; text: array of struct preload_frame, innermost first */
	PRELOAD_NAME,      /* number: tid, text: the thread's name */
	PRELOAD_STOP,      /* by the launcher: later records are not part of the recording */
	PRELOAD_OWN,       /* by the launcher: text: the folder of giltracer's own code */
	PRELOAD_UNWRITTEN, /* by the launcher: later records could not be written */
	PRELOAD_ASIDE,     /* thread number has a profile function of the program's own: its calls
	                    * are not recorded from here on */
	PRELOAD_CALLED,    /* a function of Python calls; number; text: struct preload_function and
	                    * its texts, of which there is no line table; value: of a coroutine,
	                    * PRELOAD_COROUTINE, too; of a function in C, PRELOAD_NATIVE: it has
	                    * no file */
	PRELOAD_CALL_COST, /* the process records its calls; value: ps that a call and its return last
	                    * longer because of that, as measured when it began; 0: it was not measured */
	PRELOAD_TASK_NAME, /* name of a task: number; text: the name and zeros */
	PRELOAD_ENDED,     /* the process ends, with all its threads */
	PRELOAD_ALIVE,     /* by the launcher, with PRELOAD_STOP: process number was still alive */
	PRELOAD_IDLE, /* by the launcher: thread number, of process value, was alive and without the GIL
	                * when the process loaded the library; it may have no records */
	PRELOAD_COLLECTED, /* thread number ran a garbage collection of PRELOAD_COLLECTED_NS or more
	                    * until stamp; value: the stamp at which it began */
	PRELOAD_UNRECORDED, /* interpreter number of the process: its Python calls are not recorded */
	/* value: PRELOAD_OF_RUNTIME: the lock is one of the interpreter itself; text: what it protects, or
	 * none */
	PRELOAD_OBJECT, /* the lock at the address number belongs to an object from now on; text: its type,
	                 * a zero, and the name of a variable that refers to it, or none */
	PRELOAD_NEEDS_GIL, /* an extension module was imported that does not declare that it works without a
	                    * GIL, in a free-threaded build; number: of PRELOAD_FRAMES, 0: unknown; text: its
	                    * name, or none: from now on, all such modules are recorded */
};

#define PRELOAD_OF_RUNTIME 1

#define PRELOAD_COLLECTED_NS 1000000

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

/* Followed by its qualified name (before CPython 3.11, its name), file and line table
 * (python/pycode.h), without terminators. */
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

/* Of a thread that waits for a lock, or releases it: enough to find the program's own code behind that of
 * Python's library. */
#define PRELOAD_WAIT_FRAMES_MAX 8

/* Of a holder that was asked to release the GIL: enough to find a caller in the program's own files.
 */
#define PRELOAD_HELD_FRAMES_MAX 16

/* Later tasks have only the names of their functions. */
#define PRELOAD_TASK_NAMES_MAX 4096

#define PRELOAD_MODULES_MAX 1024

/* Why records could not be written. */
enum preload_why {
	PRELOAD_WHY_ROOM,   /* the disk, or the program's limit for the size of files */
	PRELOAD_WHY_FILES,  /* the program has no descriptor left */
	PRELOAD_WHY_FILTER, /* the program has restricted its system calls (seccomp) */
	PRELOAD_WHY_REACH,  /* the program may not open the files, or they are not there for it */
};

/* What the library does about the GIL. The launcher changes COUNT to RECORD. */
enum preload_use {
	PRELOAD_USE_RECORD,
	PRELOAD_USE_COUNT, /* the same as HELD for now: uprobes record it; the library counts turns, and
	                    * keeps each thread's last event, which is its first record once the
	                    * library records */
	PRELOAD_USE_HELD, /* of GILs, only PRELOAD_HELD is recorded */
};

/* What a flight recorder looks for: a time that exceeds preload_control.longest. */
enum preload_moment {
	PRELOAD_MOMENT_WAIT, /* of a thread for a GIL */
	PRELOAD_MOMENT_HOLD, /* of a GIL */
	PRELOAD_MOMENT_KEPT, /* of a GIL, since another thread asked for it */
	PRELOAD_MOMENT_STEP, /* of an event loop, whose other tasks and callbacks wait meanwhile */
	PRELOAD_MOMENTS,
};

/* A process compares its CPU time with the cost of the uprobes after each so many turns: they are too slow
 * when they have cost PRELOAD_SLOW_NS more than PRELOAD_SLOW_PERCENT of it, not counting earlier savings. */
#define PRELOAD_SLOW_TURNS   32
#define PRELOAD_SLOW_PERCENT 10
#define PRELOAD_SLOW_NS      3000000

/**
 * The file PRELOAD_CONTROL, shared by the launcher and all processes.
 * @limit, @used: maximum and present size of all records in bytes
 * @kept_stamps: of a flight recorder: records older than that, in ticks of the clock, are dropped, and
 * at the limit the oldest ones; 0: all records are kept, and recording ends at the limit
 * @longest: of each enum preload_moment: the longest time that passes unnoticed, in ticks; 0: any
 * @moment: 1 + enum preload_moment of the longer time that was noticed, of thread moment_tid of process
 * moment_pid, and how long it was until then, in ticks; 0: none. The launcher then sets it to 0
 * @moment_ended: that time is over
 * @copying: 1: somebody copies the records, and it keeps twice as many; else 0
 * @full_stamp, @full_ns: when the limit was reached; 0: it was not
 * @stopped: the launcher has stopped the recording
 * @entries: minimum number of a process's last calls to keep; 0: all
 * @shortest_ns: shorter calls are left out when the records are read
 * @modules: only calls of their functions are recorded, names separated by commas; "": all
 * For a program that was already running:
 * @gil: the address of its GIL
 * @joined_ns: when the library began to record, CLOCK_MONOTONIC; 0: not yet
 * @alone: its children are not recorded
 * @totals: nothing is recorded: it counts (totals.h); @names: see TOTALS_NAMES
 * For a program whose GIL uprobes record, at least at first:
 * @turn_ns: how long they make a thread take to release the GIL and take it again; 0: not known yet;
 * @is_measured: in this program
 * @slow: a process found that they are too slow
 * For all:
 * @unwritten_stamp: from when on some process could not write; 0: all could
 * @unwritten_why: all reasons, 1 << enum preload_why
 * @shared: processes of other users write, too: the files must permit that
 * The launcher holds a lock on the file (F_OFD_SETLK) as long as it lives. Such a program may have
 * loaded the library of an older version: another layout has another PRELOAD_MAGIC.
 */
struct preload_control {
	uint64_t magic;
	uint64_t limit;
	uint64_t used;
	uint64_t kept_stamps;
	uint64_t longest[PRELOAD_MOMENTS];
	uint32_t moment, moment_ended, moment_pid, moment_tid;
	uint64_t moment_ticks;
	uint64_t copying;
	uint64_t full_stamp, full_ns;
	uint32_t frames; /* recorded with each release, at most PRELOAD_FRAMES_MAX */
	uint32_t use;    /* enum preload_use */
	uint32_t stopped;
	uint32_t calls;   /* of Python are recorded, also in processes that are started afresh */
	uint32_t c_calls; /* calls of C functions are recorded, too */
	uint32_t mutexes; /* waits for mutexes of C code are recorded, too */
	uint32_t began;   /* a process with CPython has begun to run a program */
	uint32_t alone;
	uint32_t slow;
	uint64_t gil, joined_ns;
	uint64_t entries;
	uint64_t shortest_ns;
	char modules[PRELOAD_MODULES_MAX];
	uint64_t unwritten_stamp;
	uint32_t unwritten_why;
	uint32_t shared;
	uint64_t turn_ns;
	uint64_t is_measured;
	uint32_t totals, names;
};

#endif
