/* SPDX-License-Identifier: MIT */
/* Asks the kernel for single settings, and runs short programs. */
#include "system/host.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "system/tracefs.h"

#define SMALL_MAX  65536
#define OUTPUT_MAX (1u << 20)

static char *sysctl_path(const char *name)
{
	char *path = xasprintf("/proc/sys/%s", name);

	for (char *s = path; *s; s++)
		if (*s == '.')
			*s = '/';
	return path;
}

char *host_sysctl(const char *name)
{
	CLEANUP(free) char *path = sysctl_path(name);
	CLEANUP(free) char *text = NULL;
	struct error ignored;

	if (file_read(&text, NULL, path, SMALL_MAX, &ignored) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return take(text);
}

int host_sysctl_write(const char *name, const char *value, struct error *err)
{
	CLEANUP(free) char *path = sysctl_path(name);

	return file_write_control(path, value, 0, err);
}

/* The last line that is not empty, where programs usually print the reason of a failure. */
static const char *last_line(char *text)
{
	char *end = text + strlen(text), *line;

	while (end > text && end[-1] == '\n')
		*--end = '\0';
	line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

int host_run(const char *const *argv, struct error *err)
{
	const struct capture capture = { .argv = argv, .no_input = true, .max = OUTPUT_MAX };
	struct captured out;
	int status = 0;

	if (capture_run(&out, &capture, err) < 0)
		return err->code == ENOENT
		               ? error_set(err, ENOENT, "%s: not found in PATH", argv[0])
		               : -1;
	if (out.status && *out.text)
		status = error_set(err, EIO, "%s: %s", argv[0], last_line(out.text));
	else if (out.status)
		status = error_set(err, EIO, "%s: failed with wait status %#x", argv[0],
		                   (unsigned)out.status);
	free(out.text);
	return status;
}

bool host_capable(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	return syscall(SYS_capget, &header, sets) == 0 &&
	       sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* Whether our bounding set contains it; no program that we start can have more. */
static bool host_may_have(int capability)
{
	return prctl(PR_CAPBSET_READ, capability) == 1;
}

/* perf searches the file even if it contains no addresses, which takes it half of its start. */
static void hide_kallsyms(void)
{
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0)
		mount("/dev/null", "/proc/kallsyms", NULL, MS_BIND, NULL);
}

/* A program executed by root gets all of the bounding set, and the inheritable capabilities. */
bool host_give_up_syslog(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_CAPBSET_DROP, CAP_SYSLOG, 0, 0, 0) == 0 &&
	    syscall(SYS_capget, &header, sets) == 0) {
		sets[CAP_TO_INDEX(CAP_SYSLOG)].inheritable &= ~CAP_TO_MASK(CAP_SYSLOG);
		syscall(SYS_capset, &header, sets);
	}
	return true;
}

bool host_hide_kernel_symbols(void)
{
	hide_kallsyms();
	return host_give_up_syslog();
}

/* ---- stolen time */

#define STAT_MAX (1 << 20)

uint64_t steal_time_parse(const char *text, uint64_t ticks)
{
	uint64_t steal;

	/* user nice system idle iowait irq softirq steal */
	if (!ticks || sscanf(text, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &steal) != 1 ||
	    steal > UINT64_MAX / NS_PER_SECOND)
		return 0;
	return steal * NS_PER_SECOND / ticks;
}

uint64_t steal_time_ns(void)
{
	CLEANUP(free) char *text = NULL;
	long ticks = sysconf(_SC_CLK_TCK);
	struct error err;

	if (file_read(&text, NULL, "/proc/stat", STAT_MAX, &err) < 0)
		return 0;
	return steal_time_parse(text, ticks > 0 ? (uint64_t)ticks : 0);
}

uint64_t steal_time_since(uint64_t before_ns)
{
	uint64_t now_ns = steal_time_ns();

	return now_ns > before_ns ? now_ns - before_ns : 0;
}

uint64_t steal_time_most(uint64_t stolen_ns)
{
	long ticks = sysconf(_SC_CLK_TCK);

	if (!steal_time_ns() || ticks <= 0)
		return 0;
	return stolen_ns + NS_PER_SECOND / (uint64_t)ticks;
}

double steal_time_percent(uint64_t stolen_ns, uint64_t wall_ns, uint64_t cpus)
{
	double all = (double)wall_ns * (double)cpus;

	return all > 0 ? 100 * (double)stolen_ns / all : 0;
}

/* ---- CPU limits of control groups */

#define FILE_MAX (1 << 20)

static char *read_in(const char *folder, const char *name)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", folder, name);
	struct error err;
	char *text;

	return file_read(&text, NULL, path, FILE_MAX, &err) < 0 ? NULL : text;
}

static bool has_word(const char *list, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; at < list + len; at += strcspn(at, ",") + 1)
		if (at + n <= list + len && !strncmp(at, word, n) &&
		    (at + n == list + len || at[n] == ','))
			return true;
	return false;
}

/* The next of the n words of a line; NULL: there are not so many. */
static const char *word_at(const char *line, size_t len, unsigned n, size_t *ret_len)
{
	const char *end = line + len;

	for (; n && line < end; n--) {
		line += strcspn(line, " \n");
		line += line < end;
	}
	*ret_len = strcspn(line, " \n");
	return line < end && line + *ret_len <= end ? line : NULL;
}

/* Where the hierarchy of the cpu controller is mounted; of version 1 if it has the controller.
 * Caller frees; NULL: nowhere. */
static char *find_mount(const char *mounts, bool *v1)
{
	char *ret = NULL;
	size_t len;

	for (const char *line = mounts; *line; line += len + (line[len] == '\n')) {
		size_t place_len, type_len, options_len;
		const char *place, *type, *options;

		len = strcspn(line, "\n");
		place = word_at(line, len, 1, &place_len);
		type = word_at(line, len, 2, &type_len);
		options = word_at(line, len, 3, &options_len);
		if (!place || !type || !options)
			continue;
		*v1 = type_len == 6 && !strncmp(type, "cgroup", 6) &&
		      has_word(options, options_len, "cpu");
		if (!*v1 && (ret || type_len != 7 || strncmp(type, "cgroup2", 7) != 0))
			continue;
		free(ret);
		ret = xasprintf("%.*s", (int)place_len, place);
		if (*v1)
			return ret;
	}
	return ret;
}

/* The process's path in the hierarchy; caller frees, NULL: none. A line is ID:CONTROLLERS:PATH. */
static char *find_path(const char *groups, bool v1)
{
	size_t len;

	for (const char *line = groups; *line; line += len + (line[len] == '\n')) {
		size_t id_len = strcspn(line, ":"), list_len;
		const char *list = line + id_len + 1;

		len = strcspn(line, "\n");
		if (id_len + 1 >= len)
			continue;
		list_len = strcspn(list, ":");
		if (list + list_len >= line + len)
			continue;
		if (v1 ? has_word(list, list_len, "cpu") : !list_len && *line == '0')
			return xasprintf("%.*s", (int)(line + len - list - list_len - 1),
			                 list + list_len + 1);
	}
	return NULL;
}

/* Returns false if the group has no limit. */
static bool read_limit(struct cpu_quota *ret, const char *folder)
{
	CLEANUP(free) char *max = read_in(folder, "cpu.max");
	CLEANUP(free) char *quota = read_in(folder, "cpu.cfs_quota_us");
	CLEANUP(free) char *period = read_in(folder, "cpu.cfs_period_us");

	*ret = (struct cpu_quota){ 0 };
	if (max)
		return sscanf(max, "%" SCNu64 " %" SCNu64, &ret->quota_us, &ret->period_us) == 2 &&
		       ret->quota_us && ret->period_us;
	/* -1: no limit */
	return quota && period && *quota != '-' && sscanf(quota, "%" SCNu64, &ret->quota_us) == 1 &&
	       ret->quota_us && sscanf(period, "%" SCNu64, &ret->period_us) == 1 && ret->period_us;
}

static uint64_t number_after(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (!strncmp(line, name, len) && line[len] == ' ')
			return strtoull(line + len, NULL, 10);
	return 0;
}

static void read_stat(struct cpu_quota *ret, const char *folder)
{
	CLEANUP(free) char *text = read_in(folder, "cpu.stat");

	ret->periods = text ? number_after(text, "nr_periods") : 0;
	ret->throttled = text ? number_after(text, "nr_throttled") : 0;
}

static void add_level(struct cgroup *cgroup, const char *folder)
{
	struct cpu_quota *quota = &cgroup->quotas[cgroup->n];

	if (cgroup->n == CGROUP_LEVELS || !read_limit(quota, folder))
		return;
	read_stat(quota, folder);
	cgroup->folders[cgroup->n++] = xstrdup(folder);
}

void cgroup_open(struct cgroup *ret, const char *proc)
{
	CLEANUP(free) char *mounts = read_in(proc, "mounts");
	CLEANUP(free) char *groups = read_in(proc, "cgroup");
	CLEANUP(free) char *mount = NULL, *path = NULL, *folder = NULL;
	bool v1 = false;

	*ret = (struct cgroup){ 0 };
	mount = mounts ? find_mount(mounts, &v1) : NULL;
	path = mount && groups ? find_path(groups, v1) : NULL;
	if (!path)
		return;
	folder = xasprintf("%s%s", mount, path);
	/* In a container, the path may be one outside of it. */
	if (strstr(path, "/..") || access(folder, X_OK) < 0)
		folder[strlen(mount)] = '\0';
	for (size_t len = strlen(folder); len >= strlen(mount) && len; len--) {
		if (folder[len] && folder[len] != '/')
			continue;
		folder[len] = '\0';
		if (folder[len - 1] != '/')
			add_level(ret, folder);
	}
}

void cgroup_done(struct cgroup *cgroup)
{
	for (size_t i = 0; i < cgroup->n; i++)
		free(cgroup->folders[i]);
	cgroup->n = 0;
}

struct cpu_quota cgroup_since(const struct cgroup *cgroup)
{
	struct cpu_quota most = { 0 };

	for (size_t i = 0; i < cgroup->n; i++) {
		const struct cpu_quota *before = &cgroup->quotas[i];
		struct cpu_quota now = *before;

		read_stat(&now, cgroup->folders[i]);
		now.periods -= now.periods < before->periods ? now.periods : before->periods;
		now.throttled -= now.throttled < before->throttled ? now.throttled
		                                                   : before->throttled;
		if (!most.quota_us || now.throttled > most.throttled ||
		    (now.throttled == most.throttled &&
		     now.quota_us * most.period_us < most.quota_us * now.period_us))
			most = now;
	}
	return most;
}

/* ---- what a sandbox permits: capabilities, seccomp, security modules */

/* The process namespace that the kernel starts with (PID_NS_INIT_INO, linux/nsfs.h since 6.17). */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

/* Whether a file of /proc or /sys contains the text. */
static bool file_has(const char *path, const char *text)
{
	CLEANUP(free) char *all = NULL;
	struct error ignored;

	return file_read(&all, NULL, path, SMALL_MAX, &ignored) == 0 && strstr(all, text);
}

bool sandbox_user_namespace(void)
{
	CLEANUP(free) char *text = NULL;
	struct error ignored;
	unsigned long inside, outside, count;

	return file_read(&text, NULL, "/proc/self/uid_map", SMALL_MAX, &ignored) == 0 &&
	       (sscanf(text, "%lu %lu %lu", &inside, &outside, &count) != 3 || inside || outside ||
	        count < UINT32_MAX);
}

bool sandbox_filtered(void)
{
	return file_has("/proc/self/status", "\nSeccomp:\t2");
}

/* Whether the kernel is locked down for confidentiality. */
static bool sandbox_locked_down(void)
{
	return file_has("/sys/kernel/security/lockdown", "[confidentiality]");
}

/* AppArmor's profile for containers forbids writing below /sys. */
static bool is_confined(void)
{
	return file_has("/proc/self/attr/current", "(enforce)");
}

bool sandbox_perfmon_capable(void)
{
	return !sandbox_user_namespace() &&
	       (host_capable(CAP_PERFMON) || host_capable(CAP_SYS_ADMIN));
}

bool sandbox_own_pid_namespace(void)
{
	char text[64];
	ssize_t len = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);

	text[len > 0 ? len : 0] = '\0';
	return len > 0 && strcmp(text, FIRST_PID_NAMESPACE) != 0;
}

bool sandbox_container(void)
{
	if (sandbox_user_namespace())
		return true;
	if (geteuid() == 0)
		return sandbox_filtered() || !host_capable(CAP_SYS_ADMIN);
	/* A filter alone proves nothing: outside of containers, too, filters for other system
	 * calls are common. */
	return (sandbox_filtered() && file_has("/proc/self/status", "\nNoNewPrivs:\t1")) ||
	       (sandbox_own_pid_namespace() && !host_may_have(CAP_SYS_ADMIN));
}

static void add_sentence(struct str *text, const char *sentence)
{
	str_addf(text, "%s%s", text->len ? "; " : "", sentence);
}

char *sandbox_text(void)
{
	CLEANUP(str_done) struct str text = { 0 };

	if (sandbox_user_namespace())
		add_sentence(&text, "this is a user namespace (an unprivileged container): its "
		                    "root has no capabilities outside of it");
	if (sandbox_filtered())
		add_sentence(&text, "a seccomp filter is in force, which may deny perf_event_open");
	if (is_confined())
		add_sentence(&text, "AppArmor confines this process");
	if (sandbox_locked_down())
		add_sentence(&text, "the kernel is locked down for confidentiality, which forbids "
		                    "tracefs");
	return text.len ? str_take(&text) : NULL;
}

bool sandbox_lacks(size_t i, const char **ret_name, const char **ret_what_for)
{
	static const struct {
		int capability, instead;
		const char *name, *what_for;
	} wanted[] = {
		{ CAP_PERFMON, CAP_SYS_ADMIN, "CAP_PERFMON",
		  "permits uprobes, tracepoints and the whole machine, whatever "
		  "kernel.perf_event_paranoid is" },
		{ CAP_IPC_LOCK, CAP_IPC_LOCK, "CAP_IPC_LOCK",
		  "permits ring buffers larger than kernel.perf_event_mlock_kb" },
		{ CAP_SYS_NICE, CAP_SYS_NICE, "CAP_SYS_NICE",
		  "gives perf priority over other programs, so that fewer records are lost" },
		{ CAP_SYS_ADMIN, CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "is what giltracer setup needs" },
	};

	for (size_t at = 0; at < sizeof(wanted) / sizeof(*wanted); at++) {
		bool has = host_capable(wanted[at].capability) || host_capable(wanted[at].instead);

		if ((has && !sandbox_user_namespace()) || i--)
			continue;
		*ret_name = wanted[at].name;
		*ret_what_for = wanted[at].what_for;
		return true;
	}
	return false;
}

static bool tracefs_is_there(void)
{
	CLEANUP(free) char *root = NULL;
	struct error ignored;

	return tracefs_find(&root, &ignored) == 0 && tracefs_can_install(root);
}

/* Adds an option of docker and podman, and its equivalent for Kubernetes. */
static void add_option(struct str *run, struct str *pod, const char *option, const char *instead)
{
	str_addf(run, " %s", option);
	str_addf(pod, "%s%s", pod->len ? ", " : "", instead);
}

static char *container_remedy(void)
{
	CLEANUP(str_done) struct str run = { 0 };
	CLEANUP(str_done) struct str pod = { 0 };

	if (sandbox_locked_down())
		return xstrdup("boot the host without lockdown=confidentiality");
	if (sandbox_user_namespace())
		add_option(&run, &pod, "--userns=host", "hostUsers: true");
	if (!sandbox_perfmon_capable())
		add_option(&run, &pod, "--cap-add PERFMON", "capabilities.add: PERFMON");
	if (sandbox_filtered())
		add_option(&run, &pod, "--security-opt seccomp=unconfined",
		           "seccompProfile: Unconfined");
	if (is_confined())
		add_option(&run, &pod, "--security-opt apparmor=unconfined",
		           "appArmorProfile: Unconfined");
	if (!tracefs_is_there())
		add_option(&run, &pod, "-v /sys/kernel/tracing:/sys/kernel/tracing",
		           "hostPath: /sys/kernel/tracing");
	if (!run.len)
		return xstrdup("outside of this container, by the administrator of its host");
	return xasprintf("outside of this container: docker or podman run%s (Kubernetes: %s)",
	                 str_get(&run), str_get(&pod));
}

char *sandbox_remedy(bool roots)
{
	if (sandbox_container())
		return container_remedy();
	if (sandbox_locked_down())
		return xstrdup("boot without lockdown=confidentiality");
	if (geteuid() == 0)
		return xstrdup("giltracer setup");
	return xstrdup(roots ? "as root: sudo giltracer ..." : "sudo giltracer setup");
}
