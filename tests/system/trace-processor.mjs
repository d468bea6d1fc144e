// SPDX-License-Identifier: MIT
// Perfetto's trace processor, as its page has it: trace-processor.mjs FOLDER <REQUESTS >REPLIES
// FOLDER has engine_bundle.js, a worker, and its WebAssembly; requests and replies are
// TraceProcessorRpcStream messages.
import fs from "node:fs";
import path from "node:path";
import process from "node:process";
import vm from "node:vm";

const folder = process.argv[2];
const requests = new Uint8Array(fs.readFileSync(0));

function fail(error) {
	// A stack would have the bundle's only line, 150 KB of it.
	fs.writeSync(2, `${error?.message ?? error}\n`.slice(0, 2000));
	process.exit(1);
}

function reply(bytes) {
	for (let done = 0; done < bytes.length; ) {
		done += fs.writeSync(1, bytes, done);
	}
}

// What the worker looks for, to know that it is one.
delete globalThis.process;
Object.assign(globalThis, {
	self: globalThis,
	WorkerGlobalScope: Object,
	location: {href: "http://localhost/", protocol: "http:", host: "localhost"},
	XMLHttpRequest: class {
		open(_, name) {
			this.file = path.join(folder, path.basename(name));
		}
		send() {
			this.response = fs.readFileSync(this.file);
			this.status = 200;
		}
	},
});
console.log = console.warn = () => {};
process.on("uncaughtException", fail);
vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"));
const port = {postMessage: reply};
globalThis.onmessage({data: port});
// The worker has initialized itself when the promises that are pending are settled.
setImmediate(() => port.onmessage({data: requests}));
