// SPDX-License-Identifier: MIT
// Numbers that the worker and the page share: states of lanes, and sizes for prefix sums.

export const GIL_STATES = 6; // of a gil lane: unknown, no GIL, and these
export const NONE_STATE = 1;
export const HOLD_STATE = 2;
export const WAIT_STATE = 3;
export const SWITCH_STATE = 4;
export const FREE_STATE = 5; // takes a GIL that is free, which is not a wait
export const CPU_STATES = 6; // of a cpu lane: unknown, running, runnable, …
export const RUNNABLE_STATE = 2;
export const SLEEPING_STATE = 3;
export const DISK_STATE = 4;

export const LANE_BITS = 4; // a checkpoint of a lane's prefix sums every 16 spans
export const GROUP_BITS = 5; // calls in groups of 32
export const HIST_SUB = 32; // buckets of the histogram per doubling
