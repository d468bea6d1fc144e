// SPDX-License-Identifier: MIT
// Events by which the parts of the page tell each other what has changed:
//	data      more data was decoded     read      all data was decoded
//	complete  and is prepared
//	view      another part is in view   pass      another recording is shown
//	pin       another span is pinned    range     another range is selected
//	filter    other threads or rows     search    other hits
//	theme     other colours             now       draw at once
//	lit       another finding is lit up
//	told      announce the pinned span to screen readers

const listeners = new Map();

export function on(names, f) {
	for (const name of names.split(" ")) {
		if (!listeners.has(name)) listeners.set(name, []);
		listeners.get(name).push(f);
	}
}

export function emit(name) {
	for (const f of listeners.get(name) || []) f();
}

// A function that calls f, at most once per frame.
export function perFrame(f) {
	let asked = false;
	return () => {
		if (asked) return;
		asked = true;
		requestAnimationFrame(() => {
			asked = false;
			f();
		});
	};
}

// A function that calls f when it has not been called itself for ms.
export function whenQuiet(ms, f) {
	let timer = 0;
	return () => {
		clearTimeout(timer);
		timer = setTimeout(f, ms);
	};
}

const STEP_MS = 12;
// Runs a generator in steps, between which the page can respond. A new start ends the previous
// run, and so does stop().
export function inSteps(work) {
	let current = null;
	const start = (...args) => {
		const steps = (current = work(...args));
		const go = () => {
			if (steps !== current) return;
			for (const began = performance.now(); performance.now() - began < STEP_MS; )
				if (steps.next().done) return;
			setTimeout(go);
		};
		go();
	};
	start.stop = () => {
		current = null;
	};
	return start;
}

// Runs a generator to its end at once.
export function atOnce(steps) {
	for (;;) {
		const {done, value} = steps.next();
		if (done) return value;
	}
}
