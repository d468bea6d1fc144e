/* SPDX-License-Identifier: MIT */
#include "live/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/procfs.h"
#include "base/str.h"
#include "python/memory.h"
#include "preload/format.h"
#include "python/target.h"

/* The part of a file by which it is known: it contains the note with its build-id. */
#define HEAD_SIZE 4096

/* /proc/PID/status of a process, or of this one if pid is 0. Caller frees; NULL: it has ended. */
static char *read_status(pid_t pid)
{
	CLEANUP(free)
	char *path = pid ? xasprintf("/proc/%d/status", (int)pid) : xstrdup("/proc/self/status");
	struct error ignored;
	char *text = NULL;

	return file_read(&text, NULL, path, 65536, &ignored) < 0 ? NULL : text;
}

/* Whether the process belongs to this user. */
static int remote_check_owner(const struct target *target, struct error *err)
{
	CLEANUP(free) char *text = read_status(target->pid);
	pid_t pid = target->pid;
	const char *line;
	unsigned id[4];

	if (!text || !(line = strstr(text, "\nUid:")) ||
	    sscanf(line + 5, "%u %u %u %u", &id[0], &id[1], &id[2], &id[3]) != 4)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	for (int i = 0; i < 4; i++)
		if (id[i] != (unsigned)geteuid())
			return error_set(err, EACCES,
			                 "process %d is another user's: only its user can load the "
			                 "library into it",
			                 (int)pid);
	return 0;
}

/* Our own library, which an earlier recording left loaded: its functions call libc's for CPython. */
static bool is_library(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && str_has_prefix(name + 1, PRELOAD_LIBRARY);
}

#define DELETED " (deleted)"

char *remote_library(pid_t pid, const char *file)
{
	CLEANUP(free) char *maps = procfs_read(pid, 0, "maps", NULL);
	CLEANUP(close) int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t ours[HEAD_SIZE], theirs[HEAD_SIZE];
	struct procfs_mapping m;
	char *rest = maps;

	if (fd < 0 || read(fd, ours, sizeof(ours)) != (ssize_t)sizeof(ours))
		return NULL;
	while (procfs_next_mapping(&m, &rest))
		if (is_library(m.path) && !m.offset &&
		    memory_read(pid, m.start, theirs, sizeof(theirs)) &&
		    !memcmp(ours, theirs, sizeof(ours)))
			return xstrndup(m.path, strlen(m.path) - (str_has_suffix(m.path, DELETED)
			                                                  ? strlen(DELETED)
			                                                  : 0));
	return NULL;
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "base/clock.h"
#include "base/thread.h"
#include "binary/symbols.h"
#include "live/tasks.h"
#include "python/memory.h"
#include "perfdata/unwind.h"
#include "python/process.h"

/* A thread that does not stop in this time is left alone: it sleeps uninterruptibly. */
#define STOP_MAX_NS (20 * NS_PER_MS)

/* For a system call of ours, in which the thread may have to wait for a CPU. */
#define CALL_MAX_NS NS_PER_SECOND

/* How often to yield, before sleeping, while the thread stops. */
#define YIELDS 50

#define MAPS_MAX    4096
#define CODE_MAX    (64u << 20)
#define XSTATE_MAX  16384
#define STACK_COPY  8192
#define STACK_LEAST 512

/* The most frames of libc in a wait for a lock, and in a sleep: nanosleep() calls clock_nanosleep(), and
 * three of each are for the cancellation of threads. A query for a host's name has more. */
#define FRAMES_LOCK  7
#define FRAMES_SLEEP 5

#define STACK_ROOM (1u << 20)
#define STACK_SCAN (8u << 20)
#define STUB_SIZE  128
#define RED_ZONE   128

/* <asm/sigcontext.h>, which conflicts with <ucontext.h>. */
#define XSTATE_MAGIC1   0x46505853u
#define XSTATE_MAGIC2   0x46505845u
#define XSTATE_SOFTWARE 464
#define XSTATE_HEADER   512
#define XSTATE_MIN      576
#define XSTATE_AMX      ((uint64_t)3 << 17)
#define FRAME_FLAGS     7 /* UC_FP_XSTATE, UC_SIGCONTEXT_SS, UC_STRICT_RESTORE_SS */

/* Makes sigreturn keep the alternate stack: it ignores invalid flags. */
#define KEEP_ALTSTACK 0x1234

#define CODE_64BIT 0x33
#define FLAGS      0x202

/* A system call that a signal interrupts returns one of these to the kernel, which repeats it if
 * there is no handler. */
#define RESTART_SYS   (-512)
#define RESTART_INTR  (-513)
#define RESTART_HAND  (-514)
#define RESTART_BLOCK (-516)

#define FUTEX_COMMAND 0x7f

#ifndef PTRACE_GETSIGMASK
#define PTRACE_GETSIGMASK 0x420a
#endif
#define GET_RSEQ 0x420f

enum way {
	WAY_PENDING, /* the next check for pending calls executes the text */
	WAY_WAKE,    /* the same; a wait for a lock ends with EINTR, and CPython checks */
	WAY_DIRECT,  /* the thread executes the text, and then its call ends with EINTR */
	WAY_REPEAT,  /* the same, but then its call is repeated */
};

static bool is_direct(enum way way)
{
	return way == WAY_DIRECT || way == WAY_REPEAT;
}

/* Whose code made a system call, only libc's being in between. */
enum caller {
	CALLER_UNKNOWN, /* or a signal interrupted something that may hold locks */
	CALLER_PYTHON,
	CALLER_SEMAPHORE, /* of multiprocessing */
	CALLER_OTHER,     /* a library that CPython called */
};

/**
 * The main thread, stopped.
 * @memory: /proc/PID/mem
 * @since_ns: when it was asked to stop
 * @regs, @xstate, @mask: when it stopped
 * @resume: registers with which it goes on after a call
 * @frame: the stack pointer with which a call begins
 */
struct stop {
	struct remote_call *call;
	pid_t pid;
	int memory;
	uint64_t since_ns;
	struct user_regs_struct regs, resume;
	uint8_t xstate[XSTATE_MAX];
	size_t xstate_len;
	uint64_t mask, frame;
};

static int not_now(const struct stop *s, struct error *err)
{
	return error_set(err, EAGAIN, "process %d: its main thread cannot be stopped now",
	                 (int)s->pid);
}

/* ---- stop and detach */

/* Waits for the thread's next stop; a signal that arrives is in *ret_signal. Returns its event, or
 * -1 if it does not stop. */
static int wait_for(const struct stop *s, uint64_t max_ns, int *ret_signal)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	int status;

	for (unsigned i = 0;; i++) {
		pid_t got = waitpid(s->pid, &status, __WALL | WNOHANG);

		if (got == s->pid && WIFSTOPPED(status)) {
			*ret_signal = WSTOPSIG(status);
			return status >> 16;
		}
		if (got || clock_now_ns() - s->since_ns > max_ns)
			return -1;
		if (i < YIELDS)
			sched_yield();
		else
			nanosleep(&pause, NULL);
	}
}

static int seize_error(pid_t pid, struct error *err)
{
	if (errno == ESRCH)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	if (errno == EPERM)
		return error_set(err, EPERM,
		                 "process %d may not be stopped: run giltracer as its user, as "
		                 "root, or set kernel.yama.ptrace_scope to 0; a program that "
		                 "another one traces can have no second tracer",
		                 (int)pid);
	return error_errno(err, "process %d: ptrace", (int)pid);
}

static int begin_stop(struct stop *s, struct error *err)
{
	int signal = 0, event;

	s->since_ns = clock_now_ns();
	if (ptrace(PTRACE_SEIZE, s->pid, NULL, PTRACE_O_TRACESYSGOOD) < 0)
		return seize_error(s->pid, err);
	ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL);
	while ((event = wait_for(s, STOP_MAX_NS, &signal)) == 0)
		ptrace(PTRACE_CONT, s->pid, NULL, signal);
	if (event == PTRACE_EVENT_STOP && signal == SIGTRAP)
		return 0;
	if (event < 0)
		return not_now(s, err);
	return error_set(err, EAGAIN, "process %d is stopped by a signal", (int)s->pid);
}

/* If the thread has not stopped, the end of this thread of ours detaches it. */
static void end_stop(const struct stop *s)
{
	ptrace(PTRACE_DETACH, s->pid, NULL, NULL);
	s->call->stopped_ns += clock_now_ns() - s->since_ns;
	s->call->stops++;
}

static bool poke_words(const struct stop *s, uint64_t at, const void *bytes, size_t len)
{
	for (size_t done = 0; done < len; done += sizeof(long)) {
		size_t part = len - done < sizeof(long) ? len - done : sizeof(long);
		void *where = (void *)(uintptr_t)(at + done);
		long word = 0;

		errno = 0;
		if (part < sizeof(long))
			word = ptrace(PTRACE_PEEKDATA, s->pid, where, NULL);
		memcpy(&word, (const uint8_t *)bytes + done, part);
		if (errno || ptrace(PTRACE_POKEDATA, s->pid, where, (void *)word) < 0)
			return false;
	}
	return true;
}

/* Writes to memory that the thread may not write, or that its stack will grow to. Kernels may forbid
 * the former to those who use its file. */
static bool poke(const struct stop *s, uint64_t at, const void *bytes, size_t len)
{
	return pwrite(s->memory, bytes, len, (off_t)at) == (ssize_t)len ||
	       poke_words(s, at, bytes, len);
}

static bool set_regs(const struct stop *s, const struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, s->pid, NULL, regs) == 0;
}

/* ---- what the thread does */

/* Whether its system call was interrupted while it waited. */
static bool is_cut(const struct user_regs_struct *r)
{
	long number = (long)r->orig_rax, result = (long)r->rax;

	if (number < 0)
		return false;
	if (result == -EINTR)
		return number == SYS_epoll_wait || number == SYS_epoll_pwait ||
		       number == SYS_rt_sigtimedwait;
	return result == RESTART_SYS || result == RESTART_INTR || result == RESTART_HAND ||
	       result == RESTART_BLOCK;
}

/* The number of its system call; -1: unknown. A wait that is being repeated has the number of
 * restart_syscall, but the instruction before, mov $NUMBER, %eax, has its own. */
static long number_of(pid_t pid, const struct user_regs_struct *r)
{
	uint8_t code[7];

	if (r->orig_rax != SYS_restart_syscall)
		return (long)r->orig_rax;
	return memory_read(pid, r->rip - sizeof(code), code, sizeof(code)) && code[0] == 0xb8
	               ? (long)bytes_u32(code, 1)
	               : -1;
}

/* Whether it is FUTEX_WAIT or FUTEX_WAIT_BITSET, but not for the GIL: who takes the GIL cannot be called. */
static bool waits_for_lock(const struct remote_call *call, const struct user_regs_struct *r)
{
	const unsigned command = r->rsi & FUTEX_COMMAND;

	return (command == 0 || command == 9) && r->rdi - call->gil >= PYTHON_GIL_SIZE;
}

/* The way that its system call permits to this caller. CPython repeats most calls that end with EINTR, and
 * looks for signals before. A call that others made is repeated, unless the kernel ends it with EINTR. */
static enum way way_of(const struct remote_call *call, const struct user_regs_struct *r,
                       enum caller caller)
{
	const bool repeats = (long)r->rax == RESTART_SYS;

	if (!is_cut(r) || caller == CALLER_UNKNOWN)
		return WAY_PENDING;
	/* Without a GIL, it is not known whether CPython expects to be called. */
	if (caller == CALLER_OTHER && call->target->def->layout.free_threaded)
		return WAY_PENDING;
	switch (number_of(call->target->pid, r)) {
	case SYS_futex:
		return !waits_for_lock(call, r)     ? WAY_PENDING
		       : caller == CALLER_PYTHON    ? WAY_WAKE
		       : caller == CALLER_SEMAPHORE ? WAY_DIRECT
		                                    : WAY_PENDING;
	case SYS_pause: /* its end would be a signal to the program */
		return WAY_REPEAT;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_rt_sigtimedwait:
		return WAY_DIRECT;
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return caller == CALLER_PYTHON ? WAY_DIRECT : WAY_PENDING;
	case SYS_accept:
	case SYS_accept4:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_read:
	case SYS_readv:
	case SYS_pread64:
	case SYS_write:
	case SYS_writev:
	case SYS_open:
	case SYS_openat:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_flock:
	case SYS_fcntl:
		return caller == CALLER_PYTHON ? WAY_DIRECT : repeats ? WAY_REPEAT : WAY_PENDING;
	default:
		return WAY_PENDING;
	}
}

/* PyGILState_Ensure() knows the main interpreter only. */
static bool has_one_interpreter(const struct remote_call *call)
{
	const uint32_t *at = call->target->def->layout.memory;
	pid_t pid = call->target->pid;
	uint64_t first, next;

	return memory_u64(pid, call->target->root + at[MEMORY_INTERPRETERS], &first) && first &&
	       memory_u64(pid, first + at[MEMORY_NEXT_INTERPRETER], &next) && !next;
}

static void add_maps(struct maps *maps, struct modules *modules, pid_t pid, const char *library)
{
	CLEANUP(free) char *text = procfs_read(pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = text;

	for (unsigned i = 0; i < MAPS_MAX && procfs_next_mapping(&m, &rest); i++) {
		CLEANUP(free) char *path = NULL;

		if (*m.path != '/' || m.rights[2] != 'x')
			continue;
		path = process_openable(pid, &m);
		if (!path && is_library(m.path) && (path = remote_library(pid, library))) {
			free(path);
			path = xstrdup(library);
		}
		maps_mmap(maps, (uint32_t)pid, m.start, m.end - m.start, m.offset,
		          modules_get(modules, path ? path : m.path, NULL));
	}
}

/* The file has several names if a folder is a link. */
static bool is_python(const struct remote_call *call, const char *path)
{
	struct stat a, b;

	return strstr(path, "/lib-dynload/") ||
	       (stat(path, &a) == 0 && stat(call->target->process.python->library, &b) == 0 &&
	        a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* For stacks of the thread. Reading the files takes long, and is done for the first stack only. */
struct callers {
	struct maps *maps;
	struct modules *modules;
	struct unwinder *unwinder;
};

static void callers_init(struct callers *ret, pid_t pid, const char *library)
{
	ret->maps = maps_new();
	ret->modules = modules_new(false);
	ret->unwinder = unwinder_new(EM_X86_64, ret->maps);
	add_maps(ret->maps, ret->modules, pid, library);
}

static void callers_done(struct callers *callers)
{
	unwinder_free(callers->unwinder);
	maps_free(callers->maps);
	modules_free(callers->modules);
}

static size_t copy_stack(pid_t pid, uint64_t from, uint8_t *ret)
{
	for (size_t len = STACK_COPY; len >= STACK_LEAST; len /= 2)
		if (memory_read(pid, from, ret, len))
			return len;
	return 0;
}

/* Only libc's function may be between the call and its caller, and, if that waits for a lock, ours. */
static enum caller caller_of(const struct remote_call *call, const struct callers *callers,
                             const struct user_regs_struct *r)
{
	const bool lock = number_of(call->target->pid, r) == SYS_futex;
	const size_t most = lock ? FRAMES_LOCK : FRAMES_SLEEP;
	enum caller ret = CALLER_PYTHON;
	uint8_t stack[STACK_COPY];
	/* As in <asm/perf_regs.h>: ax to ip, and r8 to r15. */
	const uint64_t regs[] = { r->rax, r->rbx, r->rcx, r->rdx, r->rsi, r->rdi,
		                  r->rbp, r->rsp, r->rip, r->r8,  r->r9,  r->r10,
		                  r->r11, r->r12, r->r13, r->r14, r->r15 };
	const struct unwind_sample sample = {
		.pid = (uint32_t)call->target->pid,
		.abi = UNWIND_ABI_64,
		.regs_mask = 0xff01ff,
		.regs = cursor_make(regs, sizeof(regs)),
		.stack = cursor_make(stack, copy_stack(call->target->pid, r->rsp, stack)),
	};
	const struct module *libc = NULL;
	struct unwind_stack found;

	unwind_stack(callers->unwinder, &sample, &found);
	for (size_t i = 0, own = 0; i < found.n; i++) {
		const struct location *l = unwinder_location(callers->unwinder, found.locations[i]);
		const struct module *m = l->module;

		if (!m || l->offset - call->restore_offset + 1 < 2)
			return CALLER_UNKNOWN;
		if (!libc)
			libc = m;
		if (lock && is_library(m->path))
			own++;
		else if (m == libc && (ret == CALLER_OTHER || i - own >= most))
			return CALLER_UNKNOWN;
		else if (m != libc && is_python(call, m->path))
			return ret == CALLER_PYTHON && strstr(m->path, "/_multiprocessing.")
			               ? CALLER_SEMAPHORE
			               : ret;
		else if (m != libc)
			ret = CALLER_OTHER;
	}
	return CALLER_UNKNOWN;
}

/* Whether the GIL is the thread's. */
static bool has_gil(const struct stop *s)
{
	const uint32_t ident_at = s->call->target->def->layout.memory[MEMORY_THREAD_ID];
	uint64_t holder, ident;
	uint32_t locked;

	return !memory_u32(s->pid, s->call->gil + PYTHON_GIL_LOCKED, &locked) ||
	       (locked &&
	        (!memory_u64(s->pid, s->call->gil + PYTHON_GIL_HOLDER, &holder) ||
	         !memory_u64(s->pid, holder + ident_at, &ident) || ident == s->regs.fs_base));
}

/* Whether it is in a restartable sequence, which may not be left and continued. */
static bool is_in_rseq(const struct stop *s)
{
	struct {
		uint64_t pointer;
		uint32_t size, signature, flags, pad;
	} rseq = { 0 };
	uint64_t section, part[2]; /* start and length */

	return ptrace(GET_RSEQ, s->pid, sizeof(rseq), &rseq) > 0 && rseq.pointer &&
	       memory_u64(s->pid, rseq.pointer + 8, &section) && section &&
	       memory_read(s->pid, section + 8, part, sizeof(part)) &&
	       s->regs.rip - part[0] < part[1];
}

static int read_regs(struct stop *s, struct error *err)
{
	struct iovec regs = { &s->regs, sizeof(s->regs) };
	struct iovec xstate = { s->xstate, sizeof(s->xstate) };

	if (ptrace(PTRACE_GETREGSET, s->pid, NT_PRSTATUS, &regs) < 0)
		return error_errno(err, "process %d: its registers", (int)s->pid);
	if (regs.iov_len != sizeof(s->regs) || s->regs.cs != CODE_64BIT)
		return error_set(err, ENOTSUP, "process %d: its main thread executes 32-bit code",
		                 (int)s->pid);
	if (ptrace(PTRACE_GETREGSET, s->pid, NT_X86_XSTATE, &xstate) < 0 &&
	    ptrace(PTRACE_GETREGSET, s->pid, NT_PRFPREG, &xstate) < 0)
		return error_errno(err, "process %d: its vector registers", (int)s->pid);
	s->xstate_len = xstate.iov_len;
	if (ptrace(PTRACE_GETSIGMASK, s->pid, sizeof(s->mask), &s->mask) < 0)
		return error_errno(err, "process %d: its signals", (int)s->pid);
	return 0;
}

/* ---- a call that returns through sigreturn */

/* Makes of the registers those with which the thread goes on after a call, as the kernel does after
 * a signal handler. */
static void resume_with(struct stop *s, bool interrupted)
{
	struct user_regs_struct *r = &s->resume;

	*r = s->regs;
	if (!is_cut(r) || (long)r->rax == -EINTR)
		return;
	if (interrupted) {
		r->rax = (unsigned long)-EINTR;
		return;
	}
	r->rax = (long)r->rax == RESTART_BLOCK ? SYS_restart_syscall : r->orig_rax;
	r->rip -= 2;
}

/* The size of the state in the frame, in which AMX, which the thread does not use, is omitted. */
static size_t finish_xstate(struct stop *s)
{
	uint64_t features;
	uint32_t size = XSTATE_MIN, a, b, c, d;
	uint32_t magic2 = XSTATE_MAGIC2;
	struct {
		uint32_t magic1, extended_size;
		uint64_t features;
		uint32_t size, padding[7];
	} software = { .magic1 = XSTATE_MAGIC1 };

	_Static_assert(sizeof(software) == 48, "as struct _fpx_sw_bytes");
	if (s->xstate_len < XSTATE_MIN)
		return s->xstate_len;
	features = bytes_u64(s->xstate, XSTATE_SOFTWARE) & ~XSTATE_AMX;
	for (unsigned i = 2; i < 63; i++)
		if (features >> i & 1 && __get_cpuid_count(13, i, &a, &b, &c, &d) && b + a > size)
			size = b + a;
	if (size + sizeof(magic2) > sizeof(s->xstate))
		return 0;
	software.features = features;
	software.size = size;
	software.extended_size = size + (uint32_t)sizeof(magic2);
	memcpy(s->xstate + XSTATE_SOFTWARE, &software, sizeof(software));
	memcpy(s->xstate + size, &magic2, sizeof(magic2));
	return size + sizeof(magic2);
}

/* Puts the registers on the stack, and the address to which a call returns. */
static int put_frame(struct stop *s, struct error *err)
{
	const struct user_regs_struct *r = &s->resume;
	const size_t size = offsetof(ucontext_t, uc_sigmask) + sizeof(s->mask);
	uint8_t original[sizeof(s->xstate)];
	size_t xstate;
	uint64_t at;
	ucontext_t uc = { .uc_flags = FRAME_FLAGS, .uc_stack.ss_flags = KEEP_ALTSTACK };
	greg_t *g = uc.uc_mcontext.gregs;

	if (s->xstate_len > XSTATE_MIN && bytes_u64(s->xstate, XSTATE_HEADER) & XSTATE_AMX)
		return not_now(s, err);
	memcpy(original, s->xstate, sizeof(original));
	xstate = finish_xstate(s);
	if (!xstate)
		return error_set(err, ENOTSUP, "process %d: unknown vector registers", (int)s->pid);
	at = (s->regs.rsp - RED_ZONE - xstate) & ~(uint64_t)63;
	g[REG_R8] = (greg_t)r->r8, g[REG_R9] = (greg_t)r->r9, g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11, g[REG_R12] = (greg_t)r->r12, g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14, g[REG_R15] = (greg_t)r->r15, g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi, g[REG_RBP] = (greg_t)r->rbp, g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx, g[REG_RAX] = (greg_t)r->rax, g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp, g[REG_RIP] = (greg_t)r->rip, g[REG_EFL] = (greg_t)r->eflags;
	g[REG_CSGSFS] = (greg_t)(r->cs | r->ss << 48);
	uc.uc_mcontext.fpregs = (void *)(uintptr_t)at;
	memcpy(&uc.uc_sigmask, &s->mask, sizeof(s->mask));
	/* The return address is at an odd multiple of 8, as at a function's entry. */
	s->frame = ((at - size) & ~(uint64_t)15) - 8;
	if (!poke(s, at, s->xstate, xstate) || !poke(s, s->frame + 8, &uc, size) ||
	    !poke(s, s->frame, &s->call->restore, sizeof(s->call->restore)))
		return error_errno(err, "process %d: cannot write its stack", (int)s->pid);
	memcpy(s->xstate, original, sizeof(original));
	return 0;
}

static struct user_regs_struct call_regs(const struct stop *s, uint64_t function)
{
	struct user_regs_struct r = s->regs;

	r.rsp = s->frame;
	r.rip = function;
	r.eflags = FLAGS;
	r.orig_rax = (unsigned long)-1;
	r.rax = 0;
	return r;
}

/* Lets the thread run up to its next system call's begin or end; signals are delivered. */
static bool to_next_syscall(const struct stop *s, struct user_regs_struct *ret)
{
	int signal = 0, event;

	do {
		if (ptrace(PTRACE_SYSCALL, s->pid, NULL, signal) < 0)
			return false;
		event = wait_for(s, CALL_MAX_NS, &signal);
		if (event == PTRACE_EVENT_STOP)
			signal = 0;
	} while (event == PTRACE_EVENT_STOP || (event == 0 && signal != (SIGTRAP | 0x80)));
	return event == 0 && ptrace(PTRACE_GETREGS, s->pid, NULL, ret) == 0;
}

/* The program's memory for the text. */
static bool map_page(const struct stop *s, uint64_t size, uint64_t *ret)
{
	struct user_regs_struct r = call_regs(s, s->call->enter);
	unsigned stops = 0;

	r.rax = SYS_mmap;
	r.rdi = 0;
	r.rsi = size;
	r.rdx = 5;    /* PROT_READ | PROT_EXEC */
	r.r10 = 0x22; /* MAP_PRIVATE | MAP_ANONYMOUS */
	r.r8 = (unsigned long)-1;
	r.r9 = 0;
	if (!set_regs(s, &r))
		return false;
	while (stops < 2) {
		if (!to_next_syscall(s, &r))
			return false;
		stops += r.rip == s->call->enter + 2;
	}
	*ret = r.rax;
	return (long)r.rax > 0;
}

/* A wait with a relative time-out cannot be repeated after sigreturn. The thread therefore repeats
 * it in place of sigreturn. */
static void repeat_wait(const struct stop *s)
{
	struct iovec xstate = { (void *)(uintptr_t)s->xstate, s->xstate_len };
	struct user_regs_struct r;

	do {
		if (!to_next_syscall(s, &r))
			return;
	} while (r.orig_rax != SYS_rt_sigreturn || r.rsp != s->frame + 8 || (long)r.rax != -ENOSYS);
	r = s->regs;
	r.orig_rax = SYS_restart_syscall;
	r.rax = (unsigned long)-ENOSYS;
	if (ptrace(PTRACE_SETREGSET, s->pid,
	           s->xstate_len > XSTATE_MIN ? NT_X86_XSTATE : NT_PRFPREG, &xstate) == 0)
		set_regs(s, &r);
}

/* ---- the text */

static size_t put_call(uint8_t *code, uint64_t function)
{
	code[0] = 0x48, code[1] = 0xb8; /* mov $function, %rax */
	memcpy(code + 2, &function, 8);
	code[10] = 0xff, code[11] = 0xd0; /* call *%rax */
	return 12;
}

static size_t put_number(uint8_t *code, uint16_t opcode, uint64_t number)
{
	code[0] = (uint8_t)(opcode >> 8), code[1] = (uint8_t)opcode;
	memcpy(code + 2, &number, 8);
	return 10;
}

#define MOV_RDI 0x48bf
#define MOV_RSI 0x48be
#define MOV_R10 0x49ba

/* A function that executes the text, and then unmaps itself and returns 0. */
static void make_stub(uint8_t *code, struct remote_call *call, enum way way)
{
	size_t n = 0;

	code[n++] = 0x53; /* push %rbx */
	if (is_direct(way)) {
		n += put_call(code + n, call->ensure);
		code[n++] = 0x89, code[n++] = 0xc3; /* mov %eax, %ebx */
	}
	n += put_number(code + n, MOV_RDI, call->text);
	n += put_call(code + n, call->run);
	call->running = call->page + n;
	if (is_direct(way)) {
		code[n++] = 0x89, code[n++] = 0xdf; /* mov %ebx, %edi */
		n += put_call(code + n, call->release);
	}
	code[n++] = 0x5b; /* pop %rbx */
	n += put_number(code + n, MOV_RDI, call->page);
	n += put_number(code + n, MOV_RSI, call->size);
	n += put_number(code + n, MOV_R10, call->enter);
	code[n++] = 0xb8; /* mov $SYS_munmap, %eax */
	memcpy(code + n, &(uint32_t){ SYS_munmap }, 4);
	n += 4;
	code[n++] = 0x41, code[n++] = 0xff, code[n++] = 0xe2; /* jmp *%r10 */
}

static int check_room(const struct stop *s, struct error *err)
{
	struct cstack stack = cstack_find(s->pid, s->regs.rsp);
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	if (!stack.of_main)
		return error_set(err, EAGAIN, "process %d: its main thread uses another stack",
		                 (int)s->pid);
	prlimit(s->pid, RLIMIT_STACK, NULL, &limit);
	if (limit.rlim_cur != RLIM_INFINITY &&
	    stack.high - s->regs.rsp + STACK_ROOM > limit.rlim_cur)
		return error_set(err, EAGAIN, "process %d: its main thread's stack is nearly full",
		                 (int)s->pid);
	return 0;
}

static int inject(struct stop *s, enum way way, const char *text, struct error *err)
{
	struct remote_call *call = s->call;
	const uint64_t size = (STUB_SIZE + strlen(text) + 1 + 4095) & ~(uint64_t)4095;
	uint8_t stub[STUB_SIZE] = { 0 };
	struct user_regs_struct r;
	bool mapped, repeat;

	if (is_in_rseq(s))
		return not_now(s, err);
	resume_with(s, way == WAY_DIRECT || way == WAY_WAKE);
	repeat = way == WAY_PENDING && is_cut(&s->regs) && (long)s->regs.rax == RESTART_BLOCK;
	if (check_room(s, err) < 0 || put_frame(s, err) < 0)
		return -1;
	mapped = map_page(s, size, &call->page);
	call->size = size;
	call->text = call->page + STUB_SIZE;
	make_stub(stub, call, way);
	if (mapped && poke(s, call->page, stub, sizeof(stub)) &&
	    poke(s, call->text, text, strlen(text) + 1)) {
		r = call_regs(s, is_direct(way) ? call->page : call->add);
		r.rdi = call->page;
		r.rsi = 0;
		set_regs(s, &r);
	} else {
		error_set(err, mapped ? ENOTSUP : EAGAIN,
		          "process %d: its memory cannot be extended", (int)s->pid);
		call->page = 0;
	}
	if (repeat)
		repeat_wait(s);
	return call->page ? 0 : -1;
}

/* ---- the requests, each in a thread of its own: see end_stop */

struct request {
	struct remote_call *call;
	const char *text;
	struct error *err;
	void (*act)(struct stop *s, struct request *request);
	int ret;
};

static void *run_request(void *data)
{
	struct request *request = data;
	pid_t pid = request->call->target->pid;
	CLEANUP(free) char *path = xasprintf("/proc/%d/mem", (int)pid);
	CLEANUP(close) int memory = open(path, O_RDWR | O_CLOEXEC);
	struct stop *s = xcalloc(1, sizeof(*s));

	s->call = request->call;
	s->pid = pid;
	s->memory = memory;
	request->ret = -1;
	request->act(s, request);
	free(s);
	return NULL;
}

static int run(struct request *request)
{
	pthread_t thread;

	if (thread_start(&thread, run_request, request) < 0)
		return error_set(request->err, EAGAIN, "no thread can be started");
	pthread_join(thread, NULL);
	return request->ret;
}

static bool is_same_place(const struct user_regs_struct *a, const struct user_regs_struct *b)
{
	return a->rip == b->rip && a->rsp == b->rsp;
}

/* Stops the thread and finds the way. The first unwinding takes longer than it may be stopped, so it
 * goes on meanwhile; then it must be at the same place. Returns with the thread stopped. */
static int stop_and_look(struct stop *s, enum way *ret, struct error *err)
{
	struct callers callers;
	struct user_regs_struct regs;
	enum way way = WAY_PENDING;
	int failed;

	*ret = WAY_PENDING;
	if (begin_stop(s, err) < 0 || read_regs(s, err) < 0)
		return -1;
	regs = s->regs;
	if (way_of(s->call, &regs, CALLER_PYTHON) == WAY_PENDING)
		return 0;
	end_stop(s);
	callers_init(&callers, s->pid, s->call->library);
	caller_of(s->call, &callers, &regs);
	failed = begin_stop(s, err) < 0 || read_regs(s, err) < 0;
	if (!failed && is_same_place(&regs, &s->regs))
		way = way_of(s->call, &s->regs, caller_of(s->call, &callers, &s->regs));
	if (way == WAY_WAKE || (way != WAY_PENDING && has_one_interpreter(s->call) && !has_gil(s)))
		*ret = way;
	callers_done(&callers);
	return failed ? -1 : 0;
}

static void ask(struct stop *s, struct request *request)
{
	enum way way;

	if (stop_and_look(s, &way, request->err) == 0)
		request->ret = inject(s, way, request->text, request->err);
	end_stop(s);
}

int remote_call_ask(struct remote_call *call, const char *text, struct error *err)
{
	return run(&(struct request){ .call = call, .text = text, .err = err, .act = ask });
}

/* Whether the thread is executing the text: the address to which that returns is on its stack. */
static bool is_running(const struct stop *s)
{
	struct cstack stack = cstack_find(s->pid, s->regs.rsp);
	uint8_t part[4096];

	for (uint64_t at = s->regs.rsp & ~(uint64_t)4095;
	     at < stack.high && at < s->regs.rsp + STACK_SCAN; at += sizeof(part)) {
		if (!memory_read(s->pid, at, part, sizeof(part)))
			return true;
		for (size_t i = 0; i < sizeof(part); i += 8)
			if (at + i >= s->regs.rsp && bytes_u64(part, i) == s->call->running)
				return true;
	}
	return false;
}

/* Replaces the text of a pending call by an empty one, unless its execution has begun or ended. Only
 * the main thread, which is stopped, unmaps it. */
static bool take_back(const struct stop *s, const char *text)
{
	const struct remote_call *call = s->call;
	size_t len = strlen(text) + 1;
	CLEANUP(free) char *now = xcalloc(len, 1);

	return s->regs.rip - call->page >= call->size && !is_running(s) &&
	       memory_read(s->pid, call->text, now, len) && !memcmp(now, text, len) &&
	       poke(s, call->text, "", 1);
}

static void wake(struct stop *s, struct request *request)
{
	enum way way;

	if (stop_and_look(s, &way, request->err) == 0 && way == WAY_WAKE) {
		s->regs.rax = (unsigned long)-EINTR;
		s->regs.orig_rax = (unsigned long)-1;
		set_regs(s, &s->regs);
	} else if (is_direct(way) && take_back(s, request->text)) {
		inject(s, way, request->text, request->err);
	}
	end_stop(s);
}

void remote_call_wake(struct remote_call *call, const char *text)
{
	struct error ignored;

	run(&(struct request){ .call = call, .text = text, .err = &ignored, .act = wake });
}

static void withdraw(struct stop *s, struct request *request)
{
	if (begin_stop(s, request->err) == 0 && read_regs(s, request->err) == 0 &&
	    take_back(s, request->text))
		request->ret = 0;
	end_stop(s);
}

bool remote_call_withdraw(struct remote_call *call, const char *text)
{
	struct error ignored;

	return run(&(struct request){
		       .call = call, .text = text, .err = &ignored, .act = withdraw }) == 0;
}

/* ---- the process */

/* Finds the addresses of two pieces of machine code that every libc has. */
static bool find_code(struct remote_call *call)
{
	static const uint8_t enter[] = { 0x0f, 0x05, 0xc3 }; /* syscall; ret */
	static const uint8_t restore[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	CLEANUP(free) char *maps = procfs_read(call->target->pid, 0, "maps", NULL);
	struct procfs_mapping m;
	char *rest = maps;

	while (!(call->enter && call->restore) && procfs_next_mapping(&m, &rest)) {
		const uint64_t size = m.end - m.start;
		CLEANUP(free) uint8_t *code = NULL;
		const uint8_t *at;

		if (m.rights[2] != 'x' || !strstr(m.path, "/libc") || size > CODE_MAX)
			continue;
		code = xcalloc(size, 1);
		if (!memory_read(call->target->pid, m.start, code, size))
			continue;
		at = memmem(code, size, enter, sizeof(enter));
		if (at)
			call->enter = m.start + (uint64_t)(at - code);
		at = memmem(code, size, restore, sizeof(restore));
		if (at) {
			call->restore = m.start + (uint64_t)(at - code);
			call->restore_offset = m.offset + (uint64_t)(at - code);
		}
	}
	return call->enter && call->restore;
}

static bool find_functions(struct remote_call *call)
{
	const struct process_python *process = &call->target->process;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	const struct {
		const char *name;
		uint64_t *to;
	} table[] = {
		{ "Py_AddPendingCall", &call->add },
		{ "PyRun_SimpleString", &call->run },
		{ "PyGILState_Ensure", &call->ensure },
		{ "PyGILState_Release", &call->release },
	};
	struct error ignored;

	if (symbols_open_bare(&symbols, process->python->library, &ignored) < 0)
		return false;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (!symbols_address(symbols, table[i].name, table[i].to))
			return false;
		*table[i].to += process->bias;
	}
	return true;
}

static bool find_gil(struct remote_call *call)
{
	const struct probedef *def = call->target->def;
	const uint32_t *at = def->layout.memory;
	pid_t pid = call->target->pid;
	uint64_t interpreter = call->target->root, next = interpreter + at[MEMORY_INTERPRETERS];

	if (at[MEMORY_GIL] == PYTHON_NO_OFFSET)
		return false;
	if (def->shared) {
		call->gil = call->target->root + at[MEMORY_GIL];
		return true;
	}
	/* The main one is the last in the list. */
	for (unsigned i = 0; i < 100000 && memory_u64(pid, next, &next) && next; i++) {
		interpreter = next;
		next += at[MEMORY_NEXT_INTERPRETER];
	}
	if (!memory_u64(pid, interpreter + at[MEMORY_GIL], &call->gil) || !call->gil)
		return false;
	call->gil += def->layout.free_threaded ? PYTHON_GIL_AFTER_ON : 0;
	return true;
}

/* The number after a name in /proc/PID/status; 0 if there is none. */
static unsigned status_number(const char *status, const char *name)
{
	const char *line = status ? strstr(status, name) : NULL;

	return line ? (unsigned)strtoul(line + strlen(name), NULL, 10) : 0;
}

static int check_status(pid_t pid, struct error *err)
{
	CLEANUP(free) char *theirs = read_status(pid);
	CLEANUP(free) char *ours = read_status(0);
	const char *features = theirs ? strstr(theirs, "\nx86_Thread_features:") : NULL;
	unsigned tracer = status_number(theirs, "\nTracerPid:");

	if (!theirs)
		return error_set(err, ESRCH, "process %d has ended", (int)pid);
	if (tracer)
		return error_set(err, EBUSY,
		                 "process %d is traced by process %u, such as a debugger or "
		                 "strace: end that first",
		                 (int)pid, tracer);
	if (features && strstr(features, "shstk"))
		return error_set(err, ENOTSUP,
		                 "process %d has a shadow stack: it cannot load the library while "
		                 "it runs",
		                 (int)pid);
	/* A filter may end the program for a system call of the library's. Those of a container
	 * are ours, too. */
	if (status_number(theirs, "\nSeccomp:") &&
	    (!status_number(theirs, "\nSeccomp_filters:") ||
	     status_number(theirs, "\nSeccomp_filters:") >
	             status_number(ours, "\nSeccomp_filters:")))
		return error_set(err, ENOTSUP,
		                 "process %d is restricted by seccomp, which may forbid what the "
		                 "library does",
		                 (int)pid);
	return 0;
}

int remote_call_find(struct remote_call *ret, const struct target *target, const char *library,
                     struct error *err)
{
	struct remote_call call = { .target = target, .library = library };
	const char *version = target->process.python->version;

	if (remote_check_owner(target, err) < 0 || check_status(target->pid, err) < 0)
		return -1;
	if (!find_gil(&call))
		return error_set(err, ENOTSUP,
		                 "process %d: Python %s cannot load the library while it runs",
		                 (int)target->pid, version);
	if (!find_functions(&call) || !find_code(&call))
		return error_set(err, ENOTSUP,
		                 "process %d: the functions to call are not in its Python or libc",
		                 (int)target->pid);
	*ret = call;
	return 0;
}

#else

int remote_call_find(struct remote_call *ret, const struct target *target, const char *library,
                     struct error *err)
{
	(void)ret;
	(void)library;
	return error_set(err, ENOTSUP,
	                 "process %d: Python %s can load the library while it runs on x86-64 only",
	                 (int)target->pid, target->process.python->version);
}

int remote_call_ask(struct remote_call *call, const char *text, struct error *err)
{
	(void)text;
	return error_set(err, ENOTSUP, "process %d", (int)call->target->pid);
}

void remote_call_wake(struct remote_call *call, const char *text)
{
	(void)call;
	(void)text;
}

bool remote_call_withdraw(struct remote_call *call, const char *text)
{
	(void)call;
	(void)text;
	return false;
}

#endif

#define THREADS_MAX 100000

/* _Py_MAX_SCRIPT_PATH_SIZE, the same in all versions so far. */
#define PATH_SIZE 512

/*
 * The bits to set in the lowest byte of PyThreadState.eval_breaker, which is overwritten by one
 * write (Include/internal/pycore_ceval.h). If there is nothing to do for one of these bits, the
 * thread ignores it:
 *
 *	2	signals pending		4	calls to do		8	asynchronous exception
 *	32	please stop
 *
 * By setting them all, none can be lost. Two others are cleared, because they are set again if
 * needed: a thread that wants the GIL asks again after the switch interval, and the garbage
 * collector is due until it has run. They must not be set here: a thread that is asked to release
 * the GIL waits until another one has taken it. The remaining bit, the JIT compiler's, is
 * preserved.
 */
#define BREAKER_BITS 0x2e
#define BREAKER_JIT  0x80

/* _Py_DebugOffsets.debugger_support. */
struct offsets {
	uint64_t breaker, support, enabled, request, script, script_size;
};

/* The PyThreadState of the process's main thread in an interpreter; 0: none. */
static uint64_t find_in(const struct target *target, uint64_t interpreter)
{
	const uint32_t *at = target->def->layout.memory;
	uint64_t thread = interpreter, pthread;
	uint32_t id, main = procfs_own_number(target->pid, 0), next = at[MEMORY_THREADS];

	for (unsigned i = 0; i < THREADS_MAX; i++, next = at[MEMORY_NEXT_THREAD]) {
		if (!memory_u64(target->pid, thread + next, &thread) || !thread)
			return 0;
		if (memory_u32(target->pid, thread + at[MEMORY_NATIVE_ID], &id) && id == main)
			return thread;
		/* If C code has forked without telling CPython, that is the parent's. */
		if (memory_u64(target->pid, thread + at[MEMORY_THREAD_ID], &pthread) && pthread &&
		    memory_pthread_tid(target->pid, pthread, &id) && id == main)
			return thread;
	}
	return 0;
}

/* Finds the main thread in the main interpreter, which is the last one in the list. */
static bool find_main(const struct target *target, uint64_t *thread, uint64_t *interpreter)
{
	const uint32_t *at = target->def->layout.memory;
	uint64_t next = target->root + at[MEMORY_INTERPRETERS];

	*interpreter = 0;
	for (unsigned i = 0; i < THREADS_MAX && memory_u64(target->pid, next, &next) && next; i++) {
		*interpreter = next;
		next += at[MEMORY_NEXT_INTERPRETER];
	}
	*thread = *interpreter ? find_in(target, *interpreter) : 0;
	return *thread;
}

int remote_exec_find(struct remote_exec *ret, const struct target *target, struct error *err)
{
	const struct probedef *def = target->def;
	uint64_t thread, interpreter;
	uint32_t enabled;
	struct offsets at;

	if (def->layout.memory[MEMORY_DEBUGGER] == PYTHON_NO_OFFSET || def->layout.free_threaded)
		return error_set(
			err, ENOTSUP,
			"process %d: Python %s cannot load the library while it runs: 3.14 "
			"and later with a GIL can",
			(int)target->pid, target->process.python->version);
	if (remote_check_owner(target, err) < 0)
		return -1;
	if (!find_main(target, &thread, &interpreter) ||
	    !memory_read(target->pid, target->root + def->layout.memory[MEMORY_DEBUGGER], &at,
	                 sizeof(at)) ||
	    !memory_u32(target->pid, interpreter + at.enabled, &enabled) ||
	    !memory_u64(target->pid, interpreter + def->layout.memory[MEMORY_GIL], &ret->gil))
		return error_set(err, ESRCH, "process %d: its main thread runs no Python",
		                 (int)target->pid);
	/* This memory will be written, so an unknown layout is refused. */
	if (at.script_size != PATH_SIZE || at.script != 4 || at.request != 0 || enabled > 1)
		return error_set(err, ENOTSUP, "process %d: its Python %s is not supported",
		                 (int)target->pid, target->process.python->version);
	if (!enabled)
		return error_set(err, ENOTSUP,
		                 "process %d was started with -X disable-remote-debug or "
		                 "PYTHON_DISABLE_REMOTE_DEBUG, or its Python was built without "
		                 "remote debugging",
		                 (int)target->pid);
	ret->target = target;
	ret->request = thread + at.support + at.request;
	ret->script = thread + at.support + at.script;
	ret->breaker = thread + at.breaker;
	return 0;
}

/* Makes the thread check for pending work. */
static bool wake_reader(const struct remote_exec *remote)
{
	pid_t pid = remote->target->pid;
	uint8_t bits;

	if (!memory_read(pid, remote->breaker, &bits, sizeof(bits)))
		return false;
	bits = (bits & BREAKER_JIT) | BREAKER_BITS;
	return memory_write(pid, remote->breaker, &bits, sizeof(bits));
}

int remote_exec_ask(const struct remote_exec *remote, const char *path, struct error *err)
{
	const uint32_t yes = 1;
	char script[PATH_SIZE] = "";
	pid_t pid = remote->target->pid;
	uint32_t asked;

	if (strlen(path) >= sizeof(script))
		return error_set(err, ENAMETOOLONG, "%s: its name is too long", path);
	memcpy(script, path, strlen(path));
	if (memory_u32(pid, remote->request, &asked) && asked)
		return error_set(err, EBUSY, "process %d: a debugger's script is pending",
		                 (int)pid);
	if (!memory_write(pid, remote->script, script, sizeof(script)) ||
	    !memory_write(pid, remote->request, &yes, sizeof(yes)))
		return error_errno(err, "process %d: cannot write its memory", (int)pid);
	if (wake_reader(remote))
		return 0;
	error_errno(err, "process %d: cannot write its memory", (int)pid);
	remote_exec_withdraw(remote);
	return -1;
}

bool remote_exec_withdraw(const struct remote_exec *remote)
{
	const uint32_t no = 0;
	uint32_t asked = 0;

	memory_read(remote->target->pid, remote->request, &asked, sizeof(asked));
	return asked && memory_write(remote->target->pid, remote->request, &no, sizeof(no));
}
