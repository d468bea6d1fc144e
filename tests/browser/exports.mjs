// SPDX-License-Identifier: MIT
// speedscope opens what giltracer export wrote.
import {readFileSync, writeFileSync} from "node:fs";
import {resolve} from "node:path";
import {done, is, ok, open} from "./lib.mjs";

const dialogs = [];

// As speedscope's own command does it: a script with the file, named in the address.
async function load(name) {
	const file = readFileSync(name).toString("base64");
	const script = resolve(`${name}.js`);
	writeFileSync(script, `speedscope.loadFileFromBase64("${name}", "${file}")`);
	const page = await open(`${process.env.SPEEDSCOPE}/index.html`, {
		hash: `#localProfilePath=${script}`,
		foreign: true,
	});
	page.on("dialog", d => {
		dialogs.push(d.message());
		d.dismiss();
	});
	return page;
}

const shown = (page, text) =>
	page
		.waitForFunction(t => document.body.innerText.includes(t), text, {timeout: 60000})
		.then(
			() => true,
			() => false,
		);

function inPeace(page, name) {
	const troubles = page.troubles.filter(t => !t.startsWith("warning: [.WebGL")); // no GPU here
	is([dialogs, troubles], [[], []], name);
}

const [own, folded] = process.argv.slice(2);
const page = await load(own);
const waiter = `</script>'&"`;
ok(await shown(page, waiter), "the thread that waited most is open", dialogs, page.troubles);
ok(await shown(page, "(1/3)"), "of three");
await page.keyboard.press("n");
ok(await shown(page, "(2/3)"), "the next one");
inPeace(page, "in peace");

const stacks = await load(folded);
ok(await shown(stacks, folded), "folded stacks are open", dialogs, stacks.troubles);
await stacks.keyboard.press("3"); // the table of all functions
ok(await shown(stacks, "[no Python frame]"), "with their functions", dialogs, stacks.troubles);
inPeace(stacks, "in peace, too");
await done();
