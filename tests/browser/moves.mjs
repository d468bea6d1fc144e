// SPDX-License-Identifier: MIT
// What people have in their fingers: Back, links with everything that is seen, edges that can be
// dragged, a range by keyboard, two fingers, few stops of the Tab key.
import {done, is, near, ok, open, pageFile, quiet} from "./lib.mjs";
import {hog} from "./programs.mjs";

const file = pageFile({passes: [hog({states: true})]});
const page = await open(file);
const view = p => p.evaluate(() => ({...gt.view}));
const range = p => p.evaluate(() => /r=(\d+),(\d+)/.exec(location.hash)?.slice(1).map(Number));
const whole = await view(page);

await page.focus("#tl");
await page.keyboard.press("w");
await quiet(page);
const once = await view(page);
await page.keyboard.press("w");
await page.keyboard.press("w");
await quiet(page);
await page.goBack();
await quiet(page);
const back = await view(page);
near(back.from, once.from, 1, "Back undoes a zoom");
await page.goBack();
await quiet(page);
is(await view(page), whole, "and the one before it");
await page.goForward();
await quiet(page);
near((await view(page)).to, once.to, 1, "Forward does it again");

// Everything that is seen.
await page.locator("#toggles button", {hasText: "CPU state"}).click();
await page.evaluate(() => gt.setRange(5e8, 9e8));
await quiet(page);
const link = await page.evaluate(() => location.hash);
const other = await open(file, {hash: link});
is(
	await other.evaluate(() => gt.tl.rows.some(r => r.kind === "cpu")),
	false,
	"a link carries which rows are hidden",
);
ok(
	await other.evaluate(() => {
		const top = document.getElementById("timeline").getBoundingClientRect().top;
		return top < innerHeight / 2;
	}),
	"and scrolls to the timeline",
);

// The edges of a range.
await page.evaluate(() => gt.setView(0, gt.pass().dur_ns));
await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
await quiet(page);
const box = await page.locator("#tl").boundingBox();
const gutter = await page.evaluate(() => gt.GUTTER);
const xOf = t => box.x + gutter + (t / 2.5e9) * (box.width - gutter);
await page.mouse.move(xOf(9e8), box.y + 60);
await page.mouse.down();
await page.mouse.move(xOf(12e8), box.y + 60, {steps: 4});
await page.mouse.up();
await quiet(page);
const dragged = await range(page);
is(dragged[0], 5e8, "dragging one edge of a range leaves the other");
near(dragged[1], 12e8, 5e6, "and moves this one");

// By keyboard.
await page.keyboard.press("Escape");
await page.focus("#tl");
for (let i = 0; i < 5; i++) await page.keyboard.press("Shift+ArrowRight");
await page.keyboard.press("Shift+ArrowLeft");
await quiet(page);
const keyed = await range(page);
near(keyed[1] - keyed[0], 0.08 * 2.5e9, 2e6, "Shift and arrows select a range");

// Two fingers.
await page.evaluate(() => gt.setRange(null));
await page.evaluate(() => {
	const tl = document.getElementById("tl"),
		rect = tl.getBoundingClientRect();
	tl.setPointerCapture = () => {};
	const touch = (type, id, x) =>
		tl.dispatchEvent(
			new PointerEvent(type, {
				pointerId: id,
				pointerType: "touch",
				clientX: rect.left + x,
				clientY: rect.top + 60,
				button: type === "pointermove" ? -1 : 0,
				bubbles: true,
			}),
		);
	touch("pointerdown", 1, 500);
	touch("pointerdown", 2, 600);
	touch("pointermove", 2, 700);
	touch("pointerup", 1, 500);
	touch("pointerup", 2, 700);
});
await quiet(page);
const pinched = await view(page);
near(pinched.to - pinched.from, 2.5e9 / 2, 2e6, "two fingers twice as far apart zoom in twofold");

// Stops of the Tab key: a table's body is one.
const stops = id =>
	page.evaluate(
		id =>
			[...document.querySelectorAll(id + " tbody button")].filter(b => b.tabIndex >= 0)
				.length,
		id,
	);
is([await stops("#threads-body"), await stops("#blame-body")], [1, 1], "a table is one stop");
const names = () => page.evaluate(() => document.activeElement.textContent);
await page.locator("#threads-body tbody button").first().focus();
const first = await names();
await page.keyboard.press("ArrowDown");
const second = await names();
await page.keyboard.press("ArrowUp");
ok(first !== second && (await names()) === first, "arrows go to the others: " + first + second);
is(page.troubles.concat(other.troubles), [], "in peace");
await done();
