// SPDX-License-Identifier: MIT
// Parts of the page tell each other what changed:
//	data      more was decoded          complete  all was
//	view      another part is shown     pass      another recording
//	pin       another span is pinned    range     another range is selected
//	filter    other threads or rows     search    other hits      theme     other colours
//	told      what is pinned is to be said aloud                  now       draw at once

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

// f, at most once per frame.
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

// f, once things have been quiet for ms.
export function whenQuiet(ms, f) {
	let timer = 0;
	return () => {
		clearTimeout(timer);
		timer = setTimeout(f, ms);
	};
}

const STEP_MS = 12;
// Runs a generator in steps, between which the page can answer; a later start ends the one before.
export function inSteps(work) {
	let current = null;
	return (...args) => {
		const steps = (current = work(...args));
		const go = () => {
			if (steps !== current) return;
			for (const began = performance.now(); performance.now() - began < STEP_MS; )
				if (steps.next().done) return;
			setTimeout(go);
		};
		go();
	};
}
