// SPDX-License-Identifier: MIT
// speedscope opens what giltracer export wrote.
import {readFileSync, writeFileSync} from "node:fs";
import {resolve} from "node:path";
import {done, is, ok, open} from "./lib.mjs";

// As speedscope's own command does it: a script with the file, named in the address.
const file = readFileSync(process.argv[2]).toString("base64");
const script = resolve("load.js");
writeFileSync(script, `speedscope.loadFileFromBase64("hog.json", "${file}")`);
const page = await open(`${process.env.SPEEDSCOPE}/index.html`, {
	hash: `#localProfilePath=${script}`,
	foreign: true,
});
const dialogs = [];
page.on("dialog", d => {
	dialogs.push(d.message());
	d.dismiss();
});
const shown = text =>
	page
		.waitForFunction(t => document.body.innerText.includes(t), text, {timeout: 20000})
		.then(
			() => true,
			() => false,
		);
const waiter = `</script>'&"`;
ok(await shown(waiter), "the thread that waited most is open", dialogs, page.troubles);
ok(await shown("(1/3)"), "of three");
await page.keyboard.press("n");
ok(await shown("(2/3)"), "the next one");
const troubles = page.troubles.filter(t => !t.startsWith("warning: [.WebGL")); // no GPU here
is([dialogs, troubles], [[], []], "in peace");
await done();
