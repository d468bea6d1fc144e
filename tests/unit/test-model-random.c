/* SPDX-License-Identifier: MIT */
/* Pseudo-random sequences of events, including invalid ones: the invariants hold for each of them,
 * and the owners recorded event by event equal those derived from the finished lanes. */
#include "../fuzz/model-bytes.h"

#include "model/owners.h"
#include "model/private.h"
#include "model/span.h"
#include "analysis/patterns.h"
#include "analysis/whatif.h"

#include "tap.h"

#define SEQUENCES 3000

static uint64_t seed;

static uint32_t next_random(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(seed >> 33);
}

/* Few sequences get far if all events are equally likely, so most bytes come from a list of likely
 * ones. */
static size_t fill(uint8_t *data, size_t max, bool nonsense)
{
	static const uint8_t likely[] = { EV_REQUEST,    EV_ACQUIRE,      EV_RELEASE, EV_SAVE,
		                          EV_RELEASED,   EV_REQUEST,      EV_ACQUIRE, EV_SWITCH_IN,
		                          EV_SWITCH_OUT, EV_PARK,         EV_PARKED,  EV_UNPARK,
		                          EV_STOP_WORLD, EV_STARTED_WORLD };
	size_t n = 2 + 4 * (next_random() % (max / 4 - 1));

	for (size_t i = 0; i < n; i++) {
		data[i] = (uint8_t)next_random();
		if (nonsense || i < 2)
			continue;
		if (i % 4 == 2 && data[i] % 8)
			data[i] = likely[next_random() % sizeof(likely)];
		else if (i % 4 == 3)
			data[i] = (uint8_t)(2 + next_random() % 4);
		else if (i % 4 == 0)
			data[i] = data[i] % 16 ? 1 : data[i] & 15;
		else if (i % 4 == 1 && data[i] % 16)
			data[i] &= 0x7f;
	}
	return n;
}

/* Drops stretches that only continue the previous one. */
static void join_owners(struct model_gil *g)
{
	size_t n = 0;

	for (size_t i = 0; i < g->owners.n; i++) {
		const struct gil_owner *o = &g->owners.v[i];

		if (!n || g->owners.v[n - 1].thread != o->thread ||
		    g->owners.v[n - 1].waiters != o->waiters)
			g->owners.v[n++] = *o;
	}
	g->owners.n = n;
}

/* Whether the owners equal those derived from the lanes, with the same times and holders. */
static bool same_owners(struct model *m, uint32_t gil)
{
	struct model_gil *g = &m->gils.v[gil], was;
	bool same;

	join_owners(g);
	was = *g;
	g->owners.v = NULL;
	g->owners.n = g->owners.alloc = 0;
	owners_rebuild(m, gil);
	while (g->owners.n && g->owners.v[g->owners.n - 1].start_ns >= g->end_ns)
		g->owners.n--;
	same = g->owners.n == was.owners.n;
	for (size_t i = 0; same && i < was.owners.n; i++)
		same = g->owners.v[i].start_ns == was.owners.v[i].start_ns &&
		       g->owners.v[i].thread == was.owners.v[i].thread &&
		       g->owners.v[i].waiters == was.owners.v[i].waiters;
	free(was.owners.v);
	return same;
}

/* A switch interval so short that random events include overdue holds. */
#define INTERVAL_NS 100000

/* Without a GIL, no thread waits for it, and no replay has more CPU time than its CPUs. */
static size_t wrong_replays(const struct model *m, const struct hogs *hogs)
{
	static const struct whatif_options options = WHATIF_OPTIONS_DEFAULT;
	struct whatif_free f;
	size_t wrong = 0;

	whatif_free_find(&f, hogs, m, NULL, 2, INTERVAL_NS, &options);
	for (unsigned i = 0; i < f.run_count; i++)
		wrong += f.runs[i].waited_ns ||
		         (double)f.runs[i].worked_ns >
		                 f.runs[i].cpus * (double)f.runs[i].end_ns * 1.001 + 1000;
	whatif_free_done(&f);
	return wrong;
}

/* Returns the number of overdue holds; also counts the estimates of gains, and those above the charged
 * waiting. All searches must terminate. */
static size_t count_overdue(const struct model *m, size_t *estimates, size_t *too_much)
{
	struct patterns patterns;
	struct hogs hogs;
	size_t n;

	hogs_find(&hogs, m, NULL, INTERVAL_NS);
	whatif_find(&hogs, m, NULL, 2, INTERVAL_NS);
	*too_much += wrong_replays(m, &hogs);
	for (size_t i = 0; i < hogs.v.n; i++) {
		const struct hog *hog = &hogs.v.v[i];

		if (hog->no_gain != GAIN_KNOWN)
			continue;
		*estimates += hog->gain_ns != 0;
		*too_much += hog->gain_ns > hog->overdue_wait_ns;
	}
	patterns_find(&patterns, m, NULL, INTERVAL_NS);
	patterns_done(&patterns);
	n = hogs.overdue.n;
	hogs_done(&hogs);
	return n;
}

static void test_sequences(const char *what, bool nonsense, const struct names *names)
{
	unsigned broken = 0, differ = 0, unowned = 0, rebuilt = 0;
	size_t overdue = 0, estimates = 0, too_much = 0;

	for (unsigned i = 0; i < SEQUENCES; i++) {
		uint8_t data[2000];
		struct error err = { 0 };
		struct model *m;
		size_t n;

		seed = i * 2 + nonsense;
		n = fill(data, sizeof(data), nonsense);
		m = model_from_bytes(data, n, names);
		if (model_check(m, &err) < 0 && !broken++)
			printf("# sequence %u: %s\n", i, err.text);
		overdue += count_overdue(m, &estimates, &too_much);
		for (uint32_t g = 0; g < m->gils.n; g++) {
			rebuilt += m->priv->gils.v[g].dirty;
			unowned += !m->gils.v[g].held_ns;
			if (!same_owners(m, g) && !differ++)
				printf("# sequence %u: the owners of GIL %u differ\n", i, g);
		}
		model_free(m);
	}
	is_u64(broken, 0, "%s: the invariants hold", what);
	is_u64(differ, 0, "%s: owners equal those of the lanes", what);
	ok((nonsense || estimates > 0) && !too_much, "%s: %zu gains, none more than the blame",
	   what, estimates);
	ok(overdue > 0, "%s: %zu overdue holds in them", what, overdue);
	ok(rebuilt > 100 && unowned > 10, "%s: %u GILs made again, %u never held", what, rebuilt,
	   unowned);
}

int main(void)
{
	struct names *names = names_new();

	test_sequences("nonsense", true, names);
	test_sequences("plausible", false, names);
	names_free(names);
	return done_testing();
}
