/* SPDX-License-Identifier: MIT */
/*
 * A program that was already running. The launcher makes CPython load the library
 * (live/remote.h, live/remote.h), which is therefore not in front of libc: in CPython's
 * memory, the addresses of libc's functions are replaced by ours, and restored when the recording
 * ends. The library stays loaded without effect.
 *
 * The thread that loads it holds the GIL, so no thread takes or releases the GIL meanwhile. A
 * thread that waits for it is noticed when it next calls one of our functions.
 */
#include "preload/calls_python.h"
#include "preload/count.h"
#include "preload/internal.h"
#include "preload/locks.h"
#include "preload/nogil.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#else
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

/* Ticks between checks that the launcher is alive: about a second. */
#define LOOK_EVERY 2000000000

#define SLOTS_MAX 32

/* The location of a function's address in CPython's memory. @theirs: its original value */
struct slot {
	void **at;
	void *ours, *theirs;
};

/**
 * CPython's executable or library.
 * @base: to which its addresses are relative; @start: of its memory
 * @relro, @relro_end: pages that are read-only
 */
static struct {
	const char *base, *start;
	char *relro, *relro_end;
	const ElfW(Dyn) * dynamic;
	struct slot slots[SLOTS_MAX];
	unsigned count;
	uint64_t next_look;
} object;

/* ---- the slots */

static int find_object(struct dl_phdr_info *info, size_t size, void *address)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const ElfW(Phdr) *dynamic = NULL, *relro = NULL;
	bool inside = false;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD)
			inside |= (uintptr_t)address - info->dlpi_addr - p->p_vaddr < p->p_memsz;
		if (p->p_type == PT_DYNAMIC)
			dynamic = p;
		if (p->p_type == PT_GNU_RELRO)
			relro = p;
	}
	if (!inside || !dynamic)
		return 0;
	object.base = (const char *)info->dlpi_addr;
	object.dynamic = (const void *)(object.base + dynamic->p_vaddr);
	object.relro = object.relro_end = NULL;
	if (relro) {
		uintptr_t at = info->dlpi_addr + relro->p_vaddr;

		object.relro = (char *)(at & -page);
		object.relro_end = (char *)((at + relro->p_memsz) & -page);
	}
	return 1;
}

/* The dynamic linker adds the base to some addresses only. */
static const void *address_of(uint64_t value)
{
	return (uintptr_t)value < (uintptr_t)object.base ? object.base + value
	                                                 : (const char *)(uintptr_t)value;
}

static void *ours_for(const char *name)
{
	for (const struct interposed *i = interposed; i->name; i++)
		if (!strcmp(i->name, name) && (!i->nogil || python.at.free_threaded))
			return i->function;
	return NULL;
}

static bool add_slots(const ElfW(Rela) * rela, size_t bytes, const ElfW(Sym) * symbols,
                      const char *strings)
{
	for (const ElfW(Rela) *r = rela; r < rela + bytes / sizeof(*rela); r++) {
		struct slot slot;

		if (!IS_SLOT(ELF64_R_TYPE(r->r_info)))
			continue;
		slot.ours = ours_for(strings + symbols[ELF64_R_SYM(r->r_info)].st_name);
		if (!slot.ours)
			continue;
		if (object.count == SLOTS_MAX)
			return false;
		slot.at = (void **)(uintptr_t)(object.base + r->r_offset);
		slot.theirs = *slot.at;
		object.slots[object.count++] = slot;
	}
	return true;
}

/* Whether the value is libc's function, or CPython's code that will look it up, rather than
 * another library's function. */
static bool is_plain(const struct slot *slot, const void *libc)
{
	Dl_info is, in_libc, in_python;

	return dladdr(slot->theirs, &is) && dladdr(libc, &in_libc) &&
	       dladdr(object.dynamic, &in_python) &&
	       (is.dli_fbase == in_libc.dli_fbase || is.dli_fbase == in_python.dli_fbase);
}

static bool has_all(void)
{
	for (const struct interposed *i = interposed; i->name; i++) {
		bool found = !i->needed;

		for (unsigned s = 0; s < object.count; s++)
			found |= object.slots[s].ours == i->function;
		if (!found)
			return false;
	}
	return true;
}

static const char *find_slots(void)
{
	const ElfW(Rela) *rela = NULL, *jumps = NULL;
	size_t rela_bytes = 0, jump_bytes = 0;
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), *function;

	function = libc ? dlsym(libc, "pthread_mutex_lock") : NULL;
	object.count = 0;
	if (!function || !dl_iterate_phdr(find_object, dlsym(RTLD_DEFAULT, "PyEval_SaveThread")))
		return "its interpreter was not found";
	for (const ElfW(Dyn) *d = object.dynamic; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_RELA:
			rela = address_of(d->d_un.d_ptr);
			break;
		case DT_RELASZ:
			rela_bytes = d->d_un.d_val;
			break;
		case DT_JMPREL:
			jumps = address_of(d->d_un.d_ptr);
			break;
		case DT_PLTRELSZ:
			jump_bytes = d->d_un.d_val;
			break;
		case DT_SYMTAB:
			symbols = address_of(d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			strings = address_of(d->d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	if (!symbols || !strings || (rela && !add_slots(rela, rela_bytes, symbols, strings)) ||
	    (jumps && !add_slots(jumps, jump_bytes, symbols, strings)) || !has_all())
		return "its interpreter calls libc's functions in an unknown way";
	for (unsigned i = 0; i < object.count; i++)
		if (!is_plain(&object.slots[i], function))
			return "another library already intercepts its locks";
	return NULL;
}

static bool unprotect(int protection)
{
	return object.relro == object.relro_end ||
	       mprotect(object.relro, (size_t)(object.relro_end - object.relro), protection) == 0;
}

/* Values that other code has changed meanwhile are kept. */
static bool exchange(bool ours)
{
	if (!unprotect(PROT_READ | PROT_WRITE))
		return false;
	for (unsigned i = 0; i < object.count; i++) {
		const struct slot *s = &object.slots[i];
		void *from = ours ? s->theirs : s->ours;

		__atomic_compare_exchange_n(s->at, &from, ours ? s->ours : s->theirs, false,
		                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	}
	unprotect(PROT_READ);
	return true;
}

/* ---- the end */

/* Whether its lock on the file, or the file itself, is gone. */
static bool is_launcher_gone(void)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int saved = errno;
	long fd = process_open_shared(PRELOAD_CONTROL, O_RDWR), ret;

	ret = fd < 0 ? -1 : syscall(SYS_fcntl, fd, F_OFD_GETLK, &lock);
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = saved;
	return fd < 0 || (ret == 0 && lock.l_type == F_UNLCK);
}

/* One thread, of those that notice it at the same time. */
static void end(void)
{
	if (!__atomic_exchange_n(&process.joined, false, __ATOMIC_ACQ_REL))
		return;
	process.on = false;
	count_end();
	process_close();
	exchange(false);
}

void join_look(uint64_t stamp)
{
	bool over = __atomic_load_n(&process.control->stopped, __ATOMIC_RELAXED);

	if (!over && stamp >= object.next_look) {
		object.next_look = stamp + LOOK_EVERY;
		over = is_launcher_gone();
	}
	if (over)
		end();
}

void join_counted(struct self *me, const struct gil *g, uint64_t stamp)
{
	join_look(stamp);
	if (counting.on)
		count_learn_name(me, g);
}

bool join_in_child(void)
{
	if (!process.joined || !process.control->alone)
		return true;
	end();
	return false;
}

/* ---- the beginning */

void join_thread(struct self *me)
{
	stream_forget(me);
	count_forget(me);
	*me = (struct self){ .recording = process.recording };
}

/* Uses struct _gil_runtime_state of CPython 3.7 and later: the members after cond, and those before it. A
 * free-threaded build turns it on while a module is imported, and so has turned it off again. */
static const char *find_gil(void)
{
	char *cond = (char *)(uintptr_t)process.control->gil + GIL_LAST_HOLDER + 8;
	pthread_mutex_t *mutex = (void *)(cond + sizeof(pthread_cond_t));
	char *switch_cond = (char *)(mutex + 1);
	const int *on = (const void *)(cond - GIL_ON);
	void *(*current)(void);
	bool held;

	*(void **)&current = dlsym(RTLD_DEFAULT, "PyThreadState_Get");
	if (!process.control->gil || !current)
		return "its GIL was not found";
	held = *(void **)(void *)(cond - GIL_LAST_HOLDER) == current() &&
	       *(int *)(void *)(cond - GIL_LOCKED) == 1;
	if (!held && !(python.at.free_threaded && !*on))
		return "its GIL was not found";
	gils_found(mutex, (void *)cond, (void *)switch_cond, held);
	if (python.at.free_threaded && !nogil_on)
		return "the layout of its data is unknown";
	return NULL;
}

static const char *begin(const char *dir)
{
	const char *why;
	uint64_t ns;

	/* A recording takes the place of totals, and so do other totals: their reader finds out. */
	if (process.joined && (counting.on || process.control->stopped || is_launcher_gone()))
		end();
	if (process.on || counting.on)
		return "it is being recorded already";
	why = find_slots();
	if (why)
		return why;
	process.recording++;
	stream_again();
	gils_forget();
	join_self();
	if (!process_begin_in(dir) || !process.control || process.control->magic != PRELOAD_MAGIC ||
	    process.control->stopped) {
		process.on = false;
		return "its folder could not be opened";
	}
	frames_again();
	nogil_again();
	ns = clock_ns();
	why = find_gil();
	object.next_look = clock_stamp() + LOOK_EVERY;
	if (!why && !exchange(true))
		why = "its memory may not be changed";
	/* Only from then on may a thread find that the recording is over, and end it: the trials of
	 * locks_begin() need our functions. */
	if (!why) {
		if (process.on || counting.on)
			locks_begin(gils_symbol);
		process.joined = true;
	}
	if (why) {
		process.on = process.joined = false;
		count_end();
	} else
		__atomic_store_n(&process.control->joined_ns, ns, __ATOMIC_RELEASE);
	return why;
}

/* Returns None, or a str with the reason why it is impossible. */
static PyObject *join(PyObject *module, PyObject *dir)
{
	const char *why;
	char *path;

	(void)module;
	if (python.PyBytes_AsStringAndSize(dir, &path, NULL) != 0)
		return NULL;
	why = begin(path);
	if (why)
		return python.PyUnicode_FromString(why);
	python.Py_IncRef(python.none);
	return python.none;
}

/* CPython calls this when it imports the library under this name. As with giltracer_calls, it
 * returns no module. */
__attribute__((visibility("default"))) PyObject *PyInit_giltracer_join(void);

PyObject *PyInit_giltracer_join(void)
{
	static struct method method = { "join", join, METH_O, NULL };
	PyObject *function, *all;

	if (!python_find())
		return NULL;
	function = python.PyCFunction_NewEx(&method, NULL, NULL);
	all = function ? python.PyTuple_Pack((Py_ssize_t)1, function) : NULL;
	if (!all)
		return NULL;
	python.Py_DecRef(function);
	python.PyErr_SetObject(*python.import_error, all);
	python.Py_DecRef(all);
	return NULL;
}
