// SPDX-License-Identifier: MIT
// Usual ways to navigate: Back, links with the whole view, edges that can be dragged, a range by
// keyboard, two fingers, few stops of the Tab key.
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

// A link contains the whole view.
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

// The tooltip disappears when its span moves away.
await page.evaluate(() => gt.setRange(null));
await page.mouse.move(xOf(3e8), box.y + 60);
await page.waitForFunction(() => !document.getElementById("tip").hidden);
await page.mouse.dblclick(xOf(3e8), box.y + 60);
await page.waitForFunction(() => gt.view.to - gt.view.from < 2e9);
ok(!(await page.isVisible("#tip")), "a click that zooms takes the hover text away");

// An emulated touch screen.
const phone = await open(file, {width: 390, height: 800, touch: true});
const devtools = await phone.context().newCDPSession(phone);
await phone.evaluate(() => document.getElementById("timeline").scrollIntoView());
await quiet(phone);
const screen = await phone.locator("#tl").boundingBox(),
	left = screen.x + (await phone.evaluate(() => gt.GUTTER)),
	nsPerPx = 2.5e9 / (screen.x + screen.width - left);
const touch = (type, ...xs) =>
	devtools.send("Input.dispatchTouchEvent", {
		type,
		touchPoints: xs.map((x, id) => ({x: left + x, y: screen.y + 60, id})),
	});
await touch("touchStart", 100);
await touch("touchStart", 100, 140);
for (const x of [150, 160, 170, 180]) await touch("touchMove", 100, x);
await touch("touchEnd");
await quiet(phone);
const pinched = await view(phone);
near(pinched.to - pinched.from, 2.5e9 / 2, 2e7, "two fingers twice as far apart zoom in twofold");
near(pinched.from, 50 * nsPerPx, 2e7, "and what is under the first one stays there");
// Sent at once, since a finger that rests before it moves selects.
await Promise.all([
	touch("touchStart", 100),
	...[110, 130, 150].map(x => touch("touchMove", x)),
	touch("touchEnd"),
]);
await quiet(phone);
near((await view(phone)).from, 25 * nsPerPx, 2e7, "one finger moves it");
await phone.evaluate(() => {
	gt.setView(0, gt.pass().dur_ns);
	globalThis.held = new Promise(held =>
		document
			.getElementById("tl")
			.addEventListener("pointerdown", () => setTimeout(held, 500), {once: true}),
	);
});
await touch("touchStart", 50);
await phone.evaluate(() => globalThis.held);
for (const x of [60, 80, 100]) await touch("touchMove", x);
await touch("touchEnd");
await quiet(phone);
const touched = await range(phone);
near(touched[0], 50 * nsPerPx, 2e7, "a finger that is held selects a range");
near(touched[1], 100 * nsPerPx, 2e7, "to where it goes");
await touch("touchStart", 75);
await touch("touchEnd");
await quiet(phone);
ok(await phone.isVisible("#details"), "a tap shows details");
is(await phone.evaluate(() => visualViewport.scale), 1, "and the page is not zoomed");
is(phone.troubles, [], "in peace");
await phone.context().close();

// The body of a table is one stop of the Tab key.
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
