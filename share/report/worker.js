// SPDX-License-Identifier: MIT
// The worker: decodes base64, inflates and decodes a block, and transfers the buffers to the page
// without copying them.

import {decodeBlock} from "./decode.js";
import * as words from "./words.js";

function fromBase64(text) {
	if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
	const raw = atob(text);
	const u8 = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++) u8[i] = raw.charCodeAt(i);
	return u8;
}

async function inflate(u8, size) {
	const out = new Uint8Array(size);
	const reader = new Blob([u8])
		.stream()
		.pipeThrough(new DecompressionStream("deflate-raw"))
		.getReader();
	let pos = 0;
	for (;;) {
		const {done, value} = await reader.read();
		if (done) break;
		if (pos + value.length > size) throw new Error(words.blockLong);
		out.set(value, pos);
		pos += value.length;
	}
	return out.subarray(0, pos);
}

let queue = Promise.resolve();

async function handle({id, text, list, markNs}) {
	try {
		const size = list.reduce((sum, h) => sum + h.bytes, 0);
		const sections = decodeBlock(await inflate(fromBase64(text), size), list, markNs);
		const buffers = new Set();
		for (const s of sections)
			for (const key in s) if (ArrayBuffer.isView(s[key])) buffers.add(s[key].buffer);
		self.postMessage({id, sections}, {transfer: [...buffers]});
	} catch (e) {
		postMessage({id, error: String((e && e.message) || e)});
	}
}

self.onmessage = e => {
	queue = queue.then(() => handle(e.data));
};
