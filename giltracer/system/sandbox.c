/* SPDX-License-Identifier: MIT */
/* Finds what restricts this process (container, seccomp, lockdown), and who can lift that. */
#include "system/sandbox.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "system/host.h"
#include "system/tracefs.h"

#define SMALL_MAX 65536

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

bool sandbox_locked_down(void)
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
