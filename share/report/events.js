// SPDX-License-Identifier: MIT
// Parts of the page tell each other what changed:
//	data      more was decoded          complete  all was
//	view      another part is shown     pass      another recording
//	pin       another span is pinned    range     another range is selected
//	filter    other threads or rows     search    other hits      theme     other colours

const listeners = new Map();

function on(names, f) {
	for (const name of names.split(" ")) {
		if (!listeners.has(name))
			listeners.set(name, []);
		listeners.get(name).push(f);
	}
}

function emit(name) {
	for (const f of listeners.get(name) || [])
		f();
}

// f, at most once per frame.
function perFrame(f) {
	let asked = false;
	return () => {
		if (asked)
			return;
		asked = true;
		requestAnimationFrame(() => { asked = false; f(); });
	};
}

// f, once things have been quiet for ms.
function whenQuiet(ms, f) {
	let timer = 0;
	return () => { clearTimeout(timer); timer = setTimeout(f, ms); };
}
