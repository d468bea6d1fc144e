// SPDX-License-Identifier: MIT
// Functions that are called everywhere, by their own names.

export const max = Math.max;
export const min = Math.min;
export const floor = Math.floor;
export const round = Math.round;
