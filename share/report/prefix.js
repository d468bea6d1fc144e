// SPDX-License-Identifier: MIT
// Running sums along a lane.

import {LANE_BITS} from "./states.js";

// The prefix sums by class and the time at every 16th span, and the totals. A class is state +
// states * gil.
export function prefix(start, cls, n, classes) {
	const mask = (1 << LANE_BITS) - 1,
		at = new Float64Array((n >> LANE_BITS) + 1);
	const ck = new Float64Array(at.length * classes),
		sum = new Float64Array(classes);
	for (let i = 0; i <= n; i++) {
		if ((i & mask) === 0) {
			at[i >> LANE_BITS] = start[i];
			ck.set(sum, (i >> LANE_BITS) * classes);
		}
		if (i < n) sum[cls[i]] += start[i + 1] - start[i];
	}
	return {ck, at, total: sum};
}
