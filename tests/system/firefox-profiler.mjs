// SPDX-License-Identifier: MIT
// What the Firefox profiler reads in a file: firefox-profiler.mjs PROFILER_CLI FILE THREADS >JSON
// Its command line loads a profile in a daemon and asks it by a socket; here both are one process.
import fs from "node:fs";
import net from "node:net";
import path from "node:path";
import readline from "node:readline";
import {createRequire} from "node:module";

const [cli, file] = process.argv.slice(2, 4).map(f => path.resolve(f));
const threads = Number(process.argv[4]);
const sessions = path.resolve("profiler-sessions");
process.argv = [process.argv[0], cli, "--daemon", file, "--session", "test"];
process.env.PROFILER_CLI_SESSION_DIR = sessions;

const listen = net.Server.prototype.listen;
const listening = new Promise(resolve => {
	net.Server.prototype.listen = function (...args) {
		this.once("listening", resolve);
		return listen.apply(this, args);
	};
});
createRequire(import.meta.url)(cli);
await listening;
const socket = net.connect(path.join(sessions, "test.sock"));
const lines = readline.createInterface({input: socket})[Symbol.asyncIterator]();

async function ask(request) {
	socket.write(`${JSON.stringify(request)}\n`);
	return JSON.parse((await lines.next()).value);
}

async function command(words) {
	const answer = await ask({type: "command", command: words});
	if (answer.type !== "success") {
		throw new Error(answer.error);
	}
	return answer.result;
}

let state = await ask({type: "status"});
while (state.type === "loading") {
	state = await ask({type: "status"});
}
if (state.type !== "ready") {
	fs.writeSync(2, `${state.error}\n`);
	process.exit(1);
}
const found = [];
for (let i = 0; i < threads; i++) {
	const about = {command: "thread", thread: `t-${i}`};
	found.push({
		functions: await command({...about, subcommand: "functions", includeIdle: true}),
		markers: await command({...about, subcommand: "markers"}),
	});
}
fs.writeFileSync(1, JSON.stringify(found));
process.exit(0);
