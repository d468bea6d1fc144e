// SPDX-License-Identifier: MIT
// Short names for functions that are called everywhere.

export const max = Math.max;
export const min = Math.min;
export const floor = Math.floor;
export const round = Math.round;
