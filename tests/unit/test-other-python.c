/* SPDX-License-Identifier: MIT */
/* Which mapped files are interpreters that were not probed. */
#include "binary/module.h"
#include "tap.h"
#include "trace/perf/other_python.h"

#define MIB (1 << 20)

int main(void)
{
	const struct build_id id = { .size = 4, .bytes = { 0xab, 0xcd, 0x01, 0x23 } };
	const struct build_id none = { .size = 0 };
	const char *other = "12345678";

	ok(is_other_python("/opt/lib/libpython3.12.so.1.0", 4096, &id, other), "a libpython");
	ok(!is_other_python("/opt/lib/libpython3.12.so.1.0", MIB, &id, "abcd0123"),
	   "not the one that was probed");
	ok(!is_other_python("/opt/lib/libpython3.12.so.1.0", MIB, &id, "abcd0123ff"),
	   "nor if the recording has but the start of its build-id");
	ok(is_other_python("/usr/bin/python3.11", 2 * MIB, &id, other), "one with all in it");
	ok(is_other_python("python3.13t", 2 * MIB, &id, other), "a free-threaded one");
	ok(!is_other_python("/usr/bin/python3.11", 4096, &id, other),
	   "not one whose code is in a libpython");
	ok(!is_other_python("/usr/bin/pythonize", 2 * MIB, &id, other), "not any name");
	ok(!is_other_python("/usr/lib/libc.so.6", 2 * MIB, &id, other), "not any library");
	ok(!is_other_python("/usr/bin/python3", 2 * MIB, &none, other),
	   "not where the build is not known");
	ok(!is_other_python("/usr/bin/python3", 2 * MIB, &id, ""), "nor that of ours");
	ok(is_other_python("/usr/bin/python3", 2 * MIB, &none, NULL),
	   "any build where none has probes");
	ok(!is_other_python("/usr/lib/libc.so.6", 2 * MIB, &none, NULL), "but not any file");
	return done_testing();
}
