/* SPDX-License-Identifier: MIT */
/* CPU limits of control groups, from files as the kernel writes them. */
#include "system/host.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

#include "tap.h"

static char folder[] = "/tmp/giltracer-cgroup-XXXXXX";

static void make(const char *name)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", folder, name);

	mkdir(path, 0700);
}

static void put(const char *name, const char *text)
{
	CLEANUP(free) char *path = xasprintf("%s/%s", folder, name);
	FILE *f = fopen(path, "w");

	if (!ok(f != NULL, "%s is written", name))
		return;
	fputs(text, f);
	fclose(f);
}

static void put_mounts(bool v1)
{
	CLEANUP(free)
	char *text = v1 ? xasprintf("cgroup2 %s/unified cgroup2 rw 0 0\n"
	                            "cgroup %s/cpu cgroup rw,relatime,cpuacct,cpu 0 0\n",
	                            folder, folder)
	                : xasprintf("proc /proc proc rw 0 0\n"
	                            "cgroup2 %s/unified cgroup2 rw,nsdelegate 0 0\n",
	                            folder);

	put("mounts", text);
}

static struct cpu_quota between(const char *stat, const char *text)
{
	struct cpu_quota ret;
	struct cgroup cgroup;

	cgroup_open(&cgroup, folder);
	put(stat, text);
	ret = cgroup_since(&cgroup);
	cgroup_done(&cgroup);
	return ret;
}

static void test_v2(void)
{
	struct cpu_quota q;

	put_mounts(false);
	put("cgroup", "0::/pod/app\n");
	make("unified");
	make("unified/pod");
	make("unified/pod/app");
	put("unified/pod/app/cpu.max", "max 100000\n");
	put("unified/pod/cpu.max", "25000 100000\n");
	put("unified/pod/cpu.stat", "usage_usec 9\nnr_periods 10\nnr_throttled 4\n");
	q = between("unified/pod/cpu.stat",
	            "usage_usec 9\nnr_periods 134\nnr_throttled 108\nthrottled_usec 10000000\n");
	ok(q.quota_us == 25000 && q.period_us == 100000, "the limit of a group around it");
	is_u64(q.periods, 124, "periods since the start");
	is_u64(q.throttled, 104, "throttled periods since the start");
	put("unified/pod/app/cpu.max", "50000 100000\n");
	put("unified/pod/app/cpu.stat", "nr_periods 1\nnr_throttled 1\n");
	q = between("unified/pod/app/cpu.stat", "nr_periods 3\nnr_throttled 2\n");
	ok(q.quota_us == 50000 && q.periods == 2 && q.throttled == 1,
	   "of two limits, the one that stopped it");
	q = between("unified/pod/app/cpu.stat", "nr_periods 3\nnr_throttled 2\n");
	ok(q.quota_us == 25000 && !q.throttled, "if none did, the lower one");
	put("unified/pod/app/cpu.max", "max 100000\n");
	put("unified/pod/cpu.max", "max 100000\n");
	q = between("unified/pod/cpu.stat", "nr_periods 9\n");
	ok(!q.quota_us && !q.periods, "no limit");
}

static void test_v1(void)
{
	struct cpu_quota q;

	put_mounts(true);
	put("cgroup", "5:memory:/m\n3:cpuset:/s\n2:cpuacct,cpu:/docker/123\n0::/\n");
	make("cpu");
	put("cpu/cpu.cfs_quota_us", "150000\n");
	put("cpu/cpu.cfs_period_us", "100000\n");
	put("cpu/cpu.stat", "nr_periods 5\nnr_throttled 5\nthrottled_time 7\n");
	q = between("cpu/cpu.stat", "nr_periods 8\nnr_throttled 6\nthrottled_time 9\n");
	ok(q.quota_us == 150000 && q.periods == 3 && q.throttled == 1,
	   "version 1, in a container that sees its group as the root");
	put("cpu/cpu.cfs_quota_us", "-1\n");
	q = between("cpu/cpu.stat", "nr_periods 9\n");
	ok(!q.quota_us, "no limit in version 1");
}

static void test_broken(void)
{
	struct cpu_quota q;

	put("cgroup", "0\n::\n2:cpu\n\n");
	q = between("cpu/cpu.stat", "");
	ok(!q.quota_us, "no group");
	put("mounts", "cgroup\ncgroup x\ncgroup x cgroup\n\n");
	q = between("cpu/cpu.stat", "");
	ok(!q.quota_us, "no mount");
	q = between("mounts", "");
	ok(!q.quota_us, "no files");
}

int main(void)
{
	struct error err;

	ok(mkdtemp(folder) != NULL, "a folder");
	test_v2();
	test_v1();
	test_broken();
	ok(file_remove_tree(folder, &err) == 0, "the folder is removed");
	return done_testing();
}
