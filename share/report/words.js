// SPDX-License-Identifier: MIT
// All words that the page's modules show, by place; those that never change are in page.in.html,
// and those of C in phrases.def. A phrase with numbers or names in it is a function. A list of two
// has the words for a recording with a GIL, then those for an interpreter without one: gilText()
// chooses.

import {fmtCount, plural} from "./format.js";

/** @typedef {(text: string) => string} Phrase */
/** @typedef {(text: string) => HTMLElement} Mark makes a part of a phrase an element */
/** @typedef {(string | HTMLElement)[]} Rich a phrase with such parts */

// Counted things
export const calls = (/** @type {number} */ n) => plural(n, "call");
export const frames = (/** @type {number} */ n) => plural(n, "frame");
export const holdsFound = (/** @type {number} */ n) => plural(n, "hold");
export const spansFound = (/** @type {number} */ n) => plural(n, "span");
export const threads = (/** @type {number} */ n) => plural(n, "thread");
export const waits = (/** @type {number} */ n) => plural(n, "wait");
export const cpus = (/** @type {number} */ n) => n + (n === 1 ? " CPU" : " CPUs");

// Headings and terms that several places use
export const at = "At";
export const beforePlace = " in "; // between the name of a thread or cause, and a function
export const callerHead = "Callers";
export const calleeHead = "Callees";
export const copied = "Copied";
export const cpu = "CPU";
export const cpuNumber = (/** @type {number} */ n) => "CPU " + n;
export const duration = "Duration";
export const forTime = "For";
export const from = "From";
export const functionHead = "Function";
export const go = "go";
export const held = "Held";
export const holds = "Holds";
export const longest = "Longest";
export const note = "Note";
export const notKnown = "not known";
export const nobody = "nobody";
export const program = "Program";
export const python = "Python";
export const pythonCalls = "Python calls";
export const ran = "Ran";
export const samplesHead = "Samples";
export const share = "Share";
export const tasksHead = "Tasks";
export const thread = "Thread";
export const threadsHead = "Threads";
export const time = "Time";
export const times = "Times";
export const unknown = "unknown";
export const unknownHead = "Unknown";
export const waitCaused = "Wait caused";
export const zoomToIt = "Zoom to it";
export const reading = "reading…";
export const tid = (/** @type {number} */ n) => "tid " + n;
/** @type {(f: {name: string, place?: string}) => string} */
export const inFunction = f => " in " + f.name + (f.place ? " (" + f.place + ")" : "");
export const insideOf = (/** @type {string} */ name) => " in " + name;
export const inRange = "in the selected range";
export const inView = "in the part in view";
export const mostlyFor = ["Mostly for", "Mainly released by"];
export const functionsHeld = "Functions that held the GIL while others waited";
export const nobodyOrUnknown = "nobody, or not known";
export const cannotTell = ["cannot be told", "not seen"];
export const noWait = ["No thread waited for the GIL.", "No thread was blocked."];
export const showAll = (/** @type {number} */ n) => "Show all " + fmtCount(n);
/** @type {(ns: string, percent: string) => string} */
export const withShare = (ns, percent) => ns + " (" + percent + ")";

// Names of threads and GILs
export const threadNumber = (/** @type {number} */ index) => "thread " + index;
export const threadOfTid = (/** @type {number} */ n) => "thread " + n;
export const mainThread = "main";
export const gil = "GIL";
/** @type {(n: number, pid: number | null) => string} */
export const gilNumber = (n, pid) => "GIL " + n + (pid === null ? "" : " (" + pid + ")");
export const handOffHolder = "nobody (hand-off)";
export const notSeenHolder = "nobody, or not seen";
/** @type {(name: string, n: number) => string} */
export const showThreads = (name, n) => name + ": show these " + n + " threads";
export const showInTimeline = (/** @type {string} */ name) => name + ": show in the timeline";

// States of a thread, by number
export const gilStates = [
	"unknown",
	"no GIL",
	"holds the GIL",
	"waits for the GIL",
	"released on request, awaiting the switch",
	"takes the GIL, which is free",
];
export const lockStates = [
	"unknown",
	"free",
	"stops the others",
	"waits for a lock",
	"stopped by another thread",
	"spins for a lock",
];
export const cpuStates = [
	"unknown",
	"running",
	"runnable without a CPU",
	"asleep",
	"uninterruptible (disk)",
	"asleep for the GIL",
];
// What a thread did in a sample, by number
export const sampleStates = [
	"",
	"its stack changed while it was read",
	"has the GIL",
	"waits for the GIL",
	"runnable without the GIL",
	"asleep: a lock",
	"asleep: network",
	"asleep: poll, select",
	"asleep: file or pipe",
	"asleep: sleep",
	"asleep: a process",
	"asleep",
	"unknown",
];

// Causes of time
export const causes = {
	gil: "waits for the GIL, held by",
	handoff: "GIL free: hand-off",
	switched: "released on request, awaiting the switch",
	free: "takes a free GIL",
	released: "blocked until released by",
	unseen: "blocked, release not seen",
	unlocked: "lock free: hand-off",
	stopped: "stopped by another thread",
	cpu: "on a CPU, with the GIL",
	native: "on a CPU, without the GIL",
	held: "holds the GIL",
	nogil: "without the GIL: in C code, or asleep",
	runnable: "runnable without a CPU",
	lock: "blocked by a lock",
	io: "I/O or timer",
	disk: "uninterruptible (disk)",
	asleep: "asleep",
	unknown: "unknown",
};
/** @type {(kind: string, who: string, asleep: boolean) => string} */
export const causeBy = (kind, who, asleep) =>
	causes[kind] +
	(!who
		? ""
		: kind === "runnable"
			? ", behind " + who
			: asleep
				? " until woken by " + who
				: " " + who);
export const whereTimeWent = "Where its time went";
export const otherCauses = "other causes";
export const smallerCauses = (/** @type {number} */ n) => plural(n, "smaller cause");

// The bar at the top
export const light = "Light";
export const dark = "Dark";
export const recordings = {gil: "GIL recording", stacks: "Stack recording"};
export const recordingShown = "The recording that the timeline shows";
export const twoOfOneRun = "Two recordings of one run";
export const twoRuns = "Two runs of the program: they are never mixed";
export const nothingFound = "nothing found";

// Exports
/** @type {(size: string, percent: string) => string} */
export const writing = (size, percent) =>
	"Writing about " + size + ": " + percent + " (Escape to cancel)";
export const largeFile = (/** @type {string} */ size) =>
	"The file will have about " + size + ". Many viewers cannot open it. Write it?";
/** @type {(range: boolean, dur: string, n: number) => string} */
export const exportScope = (range, dur, n) =>
	(range ? "The selected range, " : "What is in view, ") + dur + ", " + threads(n);

// Questions
export const whichLine = "Which line?";
export const whichLock = "Which lock?";
export const whySlow = "Why are some calls slow?";
export const didItHelp = "Did a change help?";
export const withoutGilHelps = "Would it help without the GIL?";
/** @type {(code: Mark) => Rich} */
export const howToCompare = code => [
	"Record both states of the program with ",
	code("--keep before"),
	" and ",
	code("--keep after"),
	", then: ",
	code("giltracer diff -o diff.html before after"),
];

// Without the GIL
export const replayUnlike =
	"Not known: replayed with the GIL, the recorded schedule does not take as long as " +
	"recorded. The numbers below have that error.";
export const replayNoShorter =
	"Little: the run would take as long, since threads wait for each other, or Python code " +
	"is slower.";
/** @type {(n: number, without: string, with_: string) => string} */
export const replayShorter = (n, without, with_) =>
	`With ${cpus(n)}, the run would take ${without} instead of ${with_}; more would hardly help.`;
export const withGil = (/** @type {number} */ n) => "With the GIL, " + cpus(n);
export const withoutGil = (/** @type {number} */ n) => "Without the GIL, " + cpus(n);
export const replayHead = "Replay of the recorded schedule";
export const waitsForGil = "Waits for the GIL";
export const sharesCpus = "Shares CPUs";
export const lengthOfRun = "Length of the run";
export const withoutGilCaption = "With and without the GIL";
/** @type {(was: string, is: string, error: string, factor: number, code: Mark) => Rich} */
export const withoutGilHint = (recorded, replayed, error, factor, code) => [
	`Waits are summed over all threads. The recording took ${recorded}, its replay with the GIL `,
	`${replayed}: an error of ${error}. It is assumed that Python code takes ${factor} times as `,
	"long without the GIL, and that sleeps take as long as they did. Not included: waits for ",
	"locks that the GIL made unnecessary, and for what else threads share. ",
	code("giltracer report --without-gil"),
	" has other numbers of CPUs, and tells what limits the run then.",
];

// Findings
/** @type {(k: number, n: number, time: string) => string} */
export const placeOf = (k, n, time) =>
	(k ? "Place " + (k + 1) + " of " + n : "Worst of " + plural(n, "place")) +
	", at " +
	time +
	(n > 1 ? " ›" : "");

// The timeline
export const timelineTitles = {
	locks: "Blocked threads over time",
	gil: "GIL holders over time",
	states: "Thread states over time",
};
export const wholeCrumb = "All";
/** @type {(from: string, to: string) => string} */
export const crumbTitle = (from, to) => "From " + from + " to " + to;
export const widthOf = "Width of this column";
export const gilRows = ["GIL", "Locks"];
export const cpuRows = "CPU state";
export const counterRows = "Counters";
export const labelsSwitch = "Labels";
export const legendHolds = [
	"holds (the thread’s colour)",
	"stops the others (the thread’s colour)",
];
export const legendWaits = ["waits", "waits for a lock"];
export const legendSwitch = [
	"released on request, awaiting the switch",
	"stopped by another thread",
];
export const legendFreeWait = ["takes a free GIL", "spins for a lock"];
export const legendNone = ["no GIL", "free"];
export const legendRunning = "running";
export const legendRunnable = "runnable without a CPU";
export const legendAsleep = "asleep";
export const legendDisk = "disk";
export const legendGilSleep = "asleep for the GIL";
export const legendTasks = {run: "tasks run", late: "are late", wait: "wait"};
export const legendSample = {
	has: "sample: has the GIL",
	waits: "waits for it",
	runnable: "runnable without it",
	asleep: "asleep",
};
export const noCallsRecorded = "Python calls were not recorded.";
export const unreadable = (/** @type {string} */ why) =>
	"Part of this file cannot be read (" + why + "): the picture is incomplete.";
export const readingEvents = (/** @type {number} */ n) => "reading… " + fmtCount(n) + " events";
export const wholeRecording = "Whole recording";
export const stripColour = ["colour: holder", "colour: thread stopping others"];
export const stripDark = ["dark: number of waiters", "dark: number of blocked"];
export const stripStates = "all threads together";
export const gilOfStrip = "GIL shown for the whole recording";
/** @type {(gil: string, percent: string) => string} */
export const gilHeld = (gil, percent) => gil + ", held " + percent;
/** @type {(n: number, most: number) => string} */
export const showAllThreads = (n, most) => "Show all " + n + " threads, not just " + most;
export const fromStartOfEach = "From the start of each";
export const tasksOfLoops = "Tasks of event loops";
export const timeAxis = "time →";
export const onCpuShare = (/** @type {string} */ percent) => "on CPU " + percent;
/** @type {Phrase[]} */
export const waitsFor = [x => "waits " + x, x => "blocked " + x];
/** @type {Phrase[]} */
export const holdsFor = [x => "holds " + x, x => "stops others " + x];
export const heldByLane = (/** @type {string} */ gil) => gil + " held by";
export const heldBy = (/** @type {string} */ name) => "held by " + name;
export const keepHint = "Click to keep it at the top";
export const releaseHint = "Kept at the top: click to release it";
/** @type {(n: number, state: string) => string} */
export const crowdCount = (n, state) => n + " × " + state;
export const processOf = (/** @type {number} */ pid) => "Process " + pid;
export const counter = "counter";
export const moreRows = (/** @type {number} */ n) => "+ " + n + " more ▾";
export const fewerRows = "fewer ▴";
/** @type {(n: number, text: string) => string} */
export const slotOf = (n, text) => "slot " + n + ": " + text;
/** @type {(name: string, ns: string) => string} */
export const nameHolds = (name, ns) => name + " · holds " + ns;
/** @type {((ns: string, name: string) => string)[]} */
export const waitsForWhom = [
	(ns, name) => "waits " + ns + " for " + name,
	(ns, name) => "waits " + ns + " until released by " + name,
];
/** @type {((ns: string, name: string) => string)[]} */
export const waitsForShort = [
	(ns, name) => "waits " + ns + " for " + name,
	(ns, name) => "waits " + ns + ", released by " + name,
];

// Spans that the reader points at
export const sampled = "sampled";
/** @type {(dur: string, time: string) => string} */
export const durAt = (dur, time) => dur + " at " + time;
/** @type {(later: boolean, name: string) => string} */
export const noSuchWait = (later, name) =>
	"No " + (later ? "later" : "earlier") + " wait of " + name;
/** @type {(name: string, place: string) => string} */
export const inOuter = (name, place) => "in " + name + ", " + place;
export const noCallThere = (/** @type {string} */ why) =>
	"No Python call was recorded there" + (why && ": " + why);
export const noFrameThere = (/** @type {string} */ why) =>
	(why || "Python calls were not recorded") + ", and no probe read a Python frame there";
export const aroundHere = (/** @type {string} */ list) => "around here: " + list;
export const mainlyFor = ["mainly for ", "mainly released by "];
export const ranBefore = "ran ";
/** @type {((n: number) => string)[]} */
export const waitedMeanwhile = [
	n => threads(n) + " waited",
	n => threads(n) + (n === 1 ? " was" : " were") + " blocked",
];
/** @type {(dur: string, before: boolean) => string} */
export const fromPinned = (dur, before) =>
	dur + (before ? " before" : " after") + " the start of the pinned slice";
export const wokenBefore = "woken by ";
/** @type {(cpus: string, owners: string) => string} */
export const queuedOn = (cpus, owners) => "runnable, queued on " + cpus + ", used by " + owners;
export const aCpu = "a CPU";
export const andBetween = " and ";

// Details
/** @type {(some: number, n: number) => string} */
export const someThreads = (some, n) => " · " + some + " of " + threads(n);
/** @type {(n: number, ns: string) => string} */
export const otherThreads = (n, ns) => plural(n, "other thread") + ": " + ns + " in all";
export const frameCut = " (cut here: the recorded stack ended)";
export const frameBroken = " (ends here: its caller is unknown)";
export const frameUnsure = " (its Python calls are unknown)";
export const endInferred = "its end was inferred: no probe saw the release";
export const startAssumed = "its start was assumed";
export const notEnded = "it had not ended when the recording ended";
export const findAllCalls = "find all calls";
export const callersAndCallees = "callers and callees";
export const heldIt = ["Held the GIL", "Stopped the others"];
export const waitedForIt = ["Waited for it", "Was blocked"];
export const allItsCalls = "All its calls";
export const longestInRecording = (/** @type {string} */ ns) =>
	"longest " + ns + ", in the whole recording";
export const noteOnMoment = "Note on this moment";
export const sampledAt = "Sampled at";
export const to = "To";
export const wokenBy = "Woken by";
export const queuedOnHead = "Queued on";
export const holdersMeanwhile = ["GIL holders meanwhile", "Released by"];
export const waitersMeanwhile = ["Threads that waited", "Threads that were stopped"];
export const mostlyBecause = "Mostly because";
export const ranBetween = " ran ";
export const noCallKnown = "No Python call is known at this moment.";
export const previousWait = "‹ Previous wait";
export const nextWait = "Next wait ›";
export const selectItsRange = "Select its range";
export const pythonStack = "Python stack";
export const nativeStack = "Native stack";
export const noNativeStack = "No native stack was recorded here.";
export const stackRecordingHas = "The stack recording has native stacks.";
export const cpuUsedMeanwhile = "CPU used meanwhile by";

// The replay of a hand-over
/** @type {(name: string, doing: string) => string} */
export const stepHas = (name, doing) => name + " has the GIL" + doing + ".";
export const stepAsks = (/** @type {string} */ name) => name + " asks for the GIL and waits.";
export const stepLeftOut = (/** @type {number} */ n) =>
	n + " more holds of other threads are left out.";
/** @type {(name: string, doing: string) => string} */
export const stepTakes = (name, doing) => name + " takes the GIL" + doing + ".";
export const stepRequest = (/** @type {string} */ interval) =>
	"After " +
	interval +
	" without a change of holder, Python asks for a release " +
	"(not recorded: the moment follows from the switch interval).";
/** @type {(name: string, ns: string, free: string) => string} */
export const stepReleases = (name, ns, free) =>
	name + " releases the GIL after " + ns + (free && "; it is free for " + free) + ".";
/** @type {(name: string, ns: string, runnable: string) => string} */
export const stepGets = (name, ns, runnable) =>
	name +
	" gets the GIL after " +
	ns +
	(runnable && ", of which it was runnable without a CPU for " + runnable) +
	".";
export const stageHas = "has the GIL";
export const stageWaits = "waits";
export const replayTitle = "Replay of this wait";
export const replayOpen = "Replay the hand-over, step by step";
export const stepBack = "‹ Step back";
export const stepNext = "Next step ›";
/** @type {(k: number, n: number) => string} */
export const stepNumber = (k, n) => k + " of " + n;

// A moment as a card
/** @type {(name: string, n: number) => string} */
export const threadWithTid = (name, n) => name + ", tid " + n;
export const afterStart = (/** @type {string} */ time) =>
	time + " after the start of the recording";
export const copyMarkdown = "Copy as Markdown";
export const momentCard = "This moment as a card";
export const explainMoment = "Explain this moment:";

// The selected range
export const rangeTitle = (/** @type {string} */ dur) => "Selected range · " + dur;
/** @type {(from: string, to: string, dur: string) => string} */
export const rangeHint = (from, to, dur) => "From " + from + " to " + to + ": " + dur;
export const rangeHolds = ["Holds", "Stops others"];
export const rangeWaits = ["Waits", "Blocked"];
export const rangeFreeWait = "Free wait";
export const rangeNone = ["No GIL", "Free"];
export const timePerThread = "Time per thread";
export const pairHolder = ["Held", "Released by"];
export const pairWaiter = ["Waited", "Blocked"];
export const ofItsWait = "Of its wait";
/** @type {(most: number, n: number) => string} */
export const largestPairs = (most, n) =>
	": the " + fmtCount(most) + " largest of " + plural(n, "pair");
export const heldByHead = "Held by";

// Time per thread
export const locksOfProgram = "no GIL, waits for a lock of the program";
export const barHold = ["holds the GIL", "stops the others"];
export const barWait = ["waits for the GIL", "is blocked"];
export const barFreeWait = ["takes a free GIL", "spins for a lock"];
export const barNoneRun = ["no GIL, on a CPU", "free, on a CPU"];
export const barNoneSleep = ["no GIL, asleep or not on a CPU", "free, asleep or not on a CPU"];
export const barNone = ["no GIL", "free"];
export const sharesOfLife = "Shares of its life";
export const total = "Total";
export const statesCaption = "Per thread: shares of its lifetime by state";
export const lifetime = "Lifetime";
export const lifetimeHelp = "Lifetime within the recording";
export const threadsCaption = "Per thread: shares of its lifetime, longest wait first";
export const noThread = "No thread was recorded.";
export const groupNames = "Group similar names";
export const showEach = (/** @type {number} */ n) => "Show each of the " + fmtCount(n) + " threads";
export const keyHold = ["holds the GIL (its colour)", "stops the others (its colour)"];
export const keyWait = ["waits for the GIL", "is blocked: waits for a lock, or is stopped"];
export const keyFreeWait = [
	"takes a free GIL: tracing overhead or scheduling delay",
	"spins: tries again and again to get a lock",
];
export const keyNoneSleep = ["no GIL, asleep", "free, asleep"];
export const keyNone = ["no GIL: in C code, or asleep", "free"];

// Waits by holder
export const blameTitle = ["Waits, by holder", "Lock waits, by releasing thread"];
/** @type {((bold: Mark) => Rich)[]} */
export const blameHint = [
	bold => [
		"A row ",
		bold("holds"),
		" the GIL, a column ",
		bold("waits"),
		" for it. Click a cell to see only these two.",
	],
	bold => [
		"A column’s thread ",
		bold("is blocked"),
		", by a lock or because it is stopped, until a row’s thread ",
		bold("releases"),
		" it. Click a cell to see only these two.",
	],
];
export const others = "others";
export const otherRows = (/** @type {number} */ n) => plural(n, "other");
export const handOffRow = [
	"Hand-off: the GIL was free, the waiter was not running yet",
	"The lock was free and the waiter not yet running",
];
export const unknownRow = ["Records were lost", "The release was not recorded"];
export const leftOutRow = (/** @type {number} */ n) => fmtCount(n) + " pairs";
export const leftOutTitle = "Pairs with the least waiting; --json has each of them";
export const matrixCaption = [
	"Wait of the column's thread while the row's thread held the GIL",
	"Time the column's thread was blocked until a release by the row's thread",
];
export const matrixCorner = ["holds ↓ waits →", "releases ↓ blocked →"];
export const matrixCaused = "caused";
export const switchLeftOut = (/** @type {string} */ ns) =>
	"Not included: " + ns + " of switch wait after forced releases.";

// Where threads sleep
export const whereAsleep = "Where the threads sleep";
export const asleepHint = "Few GIL waits. Threads slept in these lines of Python:";
export const asleepIn = "Asleep in";
export const noStackOfSleep = "No stack was recorded while a thread slept.";
export const noStacks = "No stacks were recorded: giltracer --state-detect records them.";
export const inKernel = "[kernel]";

// Source, by line: heading and meaning of each column
/** @type {{[key: string]: [string, string]}} */
export const lineColumns = {
	caused_ns: ["Caused", "how long others waited for the GIL while this line held it"],
	held_ns: ["Held", "how long this line held the GIL"],
	waited_ns: ["Waited", "how long threads waited for the GIL in this line"],
	lock_caused_ns: [
		"With lock",
		"how long threads waited for a lock while this line ran in the thread that had it",
	],
	lock_wait_ns: ["For locks", "how long threads waited for a lock in this line"],
};
export const sourceMissing = " (its source was not recorded)";
export const linesOf = (/** @type {string} */ file) => "Lines of " + file;
export const line = "Line";
export const source = "Source";
export const linesLeft = (/** @type {number} */ n) =>
	"… and " + plural(n, "line") + " more, which cost less.";
export const lineHint =
	"A hold has the line that ran when its release was requested, or else its last one.";

// Why some calls are slow
export const gilHeldIn = (/** @type {string} */ name) => "waits for the GIL, held in " + name;
export const gilHeldForShort = "waits for the GIL, held for short";
export const otherCauseCount = (/** @type {number} */ n) => plural(n, "other cause");
export const durations = "Durations";
/** @type {(n: number, all: string, name: HTMLElement, slowNs: string, fastNs: string) => Rich} */
export const slowOnes = (n, all, name, slowNs, fastNs) => [
	"The slowest " + (n === 1 ? "" : n + " ") + "of " + all + " of ",
	name,
	n === 1
		? ` takes ${slowNs}, those of the fast half ${fastNs} on average. `
		: ` take ${slowNs} on average, those of the fast half ${fastNs}. `,
];
/** @type {(longer: string, shorter: string | null) => string} */
export const timeOfCauses = (longer, shorter) =>
	(shorter ? `Some causes take ${longer} more, others ${shorter} less. ` : "") +
	`Of the ${longer} more, `;
/** @type {(name: string, place: string, n: number) => string} */
export const requestChoice = (name, place, n) => name + " (" + place + "), " + calls(n);
export const tasks = (/** @type {number} */ n) => plural(n, "task");
/** @type {(name: string, n: number) => string} */
export const tasksChoice = (name, n) => "tasks " + name + ", " + tasks(n);
export const tasksExamined =
	"Of the tasks that were created and finished while they were recorded. The causes are those " +
	"of all tasks in the fast half and in the slowest 5 %.";
/** @type {(c: TaskCause, place: string) => string} */
export const taskCause = (c, place) =>
	({
		running: "runs",
		gil: "waits for the GIL while it should run",
		late: "late: its event loop runs something else",
		late_gil: "late: the thread of its event loop waits for the GIL",
		waiting:
			"waits in " +
			(c.function || "an unknown place").replace(/ \(.*/, "") +
			(place ? " (" + place.replace(/:\d+$/, "") + (c.line ? ":" + c.line : "") + ")" : ""),
		unknown: "unknown: waits, or is late",
		others: otherCauseCount(c.causes),
	})[c.what];
export const readingRequests = "Reading…";
/** @type {(fast: [number, number], slow: [number, number]) => string} */
export const someExamined = ([fast, allFast], [slow, allSlow]) =>
	`The causes are of ${fast} of the ${allFast} fast calls and ` +
	`of ${slow} of the ${allSlow} slow ones.`;
export const allExamined = "The causes are those of all these calls.";
export const longestCall = (/** @type {string} */ ns) => "longest " + ns;
export const fastOnAverage = "Fast half, on average";
export const slowOnAverage = "Slowest 5 %, on average";
export const cause = "Cause";
export const fastHalf = "Fast half";
export const slowest = "Slowest 5 %";
export const difference = "Difference";
export const requestsCaption = "Time of a call by cause";
export const theSlowest = (/** @type {number} */ n) => "The slowest " + n;
export const coloursAsInTable = ", from their start; colours as in the table";

// Calls that keep the GIL, and places where threads are blocked
/** @type {(r: {what: string, of: string | null, name: string | null}) => string} */
export const blockedBy = r =>
	r.what === "lock"
		? /^_thread\./.test(r.of)
			? "waits for a " + r.of
			: r.of
				? "waits for the lock of a " + r.of + (r.name ? " (" + r.name + ")" : "")
				: "waits for a lock"
		: r.what === "spins"
			? "spins for " + (r.of ? "the lock of a " + r.of : "a lock")
			: r.what === "stopped"
				? "stopped by another thread"
				: "stops the others";
export const what = "What";
export const whereBlocked = "Where threads are blocked";
export const heldUntil = "Held until";
export const calledBefore = "called by ";
export const offCpu = "Off CPU";
export const offCpuHelp = "Held while the holder was off-CPU: asleep, or runnable without a CPU";
export const wouldSave = "Would save";
export const wouldSaveHelp = "Estimated wait saved if it released the GIL, see above";
/** @type {(interval: string, gains: boolean) => string} */
export const hogsHint = (interval, gains) =>
	"Kept the GIL after a release request (Python asks after " +
	interval +
	"): C code, or one long instruction." +
	(gains
		? " The wait that a release would save is an estimate: " +
			"the recording is replayed on its CPUs."
		: "");
export const hogs = "Calls that keep the GIL";
export const hogsCaption = "Calls that kept the GIL while others waited";
export const blockedHint = "All waits of a function are one row; the line is that of the longest.";
/** @type {(ns: string, why: string) => string} */
export const unknownLeftOut = (ns, why) => "Not included: " + ns + " in unknown functions. " + why;

// Longest waits and holds
export const waited = "Waited";
export const whichRan = "which ran";
export const longestWaits = ["The longest waits for the GIL", "The longest waits"];
export const longestHold = ["Held", "Stopped"];
export const holderRan = "ran";
export const summedOverWaiters = "Summed over the threads that waited";
export const longestHolds = ["The longest holds of the GIL", "The longest stops"];
export const longestHoldsTitle = ["Longest holds", "Longest stops"];
export const noHold = ["No thread held the GIL.", "No thread stopped the others."];

// Runnable without a CPU
export const runnableThread = "Runnable thread";
export const cpuUsedBy = "CPU used by";
export const shareOfRunnable = "Share of runnable time";
export const starvedCaption = "Runnable time without a CPU, by who used it";

// Tasks of event loops
export const unknownFunction = "unknown function";
/** @type {(loop: string, ns: string, holder: string, doing: string) => string} */
export const lateByGil = (loop, ns, holder, doing) =>
	loop +
	" waited for the GIL for " +
	ns +
	(holder && ", mostly while " + holder + " held it" + (doing && " in " + doing));
/** @type {(loop: string, ns: string, name: string) => string} */
export const lateByFunction = (loop, ns, name) => loop + " spent " + ns + " in " + name;
/** @type {(loop: string, ns: string) => string} */
export const lateBySelector = (loop, ns) =>
	loop + " was in its selector for " + ns + ", asleep or without a CPU";
/** @type {(loop: string, n: number) => string} */
export const lateBySteps = (loop, n) => loop + " began " + plural(n, "other step");
export const onLoop = (/** @type {string} */ loop) => "on " + loop;
export const averageOver = (/** @type {string} */ ns) => "on average over " + ns;
/** @type {(ns: string, inferred: boolean, time: string) => string} */
export const longestLate = (ns, inferred, time) =>
	"longest late: " + ns + (inferred ? " (inferred)" : "") + " at " + time;
/** @type {(n: number, steps: number) => string} */
export const tasksNote = (n, steps) =>
	plural(n, "task") +
	", " +
	plural(steps, "step") +
	". Late: ready, but the event loop’s thread was busy or waited for the GIL.";
export const lateInferred = (/** @type {string} */ ns) =>
	" Of late, " + ns + " is inferred: the callback that woke the task also waited for the loop.";
export const lateUnknown = (/** @type {string} */ ns) =>
	" For " + ns + " it is unknown whether tasks on uvloop, or greenlets, waited or were late.";
export const groupsShown = (/** @type {number} */ n) =>
	" The timeline shows the " + n + " groups with the most delay.";
export const task = "Task";
export const loop = "Loop";
export const waitsAt = "Waits at";
export const steps = "Steps";
export const running = "Running";
export const waiting = "Waiting";
export const late = "Late";
export const gilWait = "GIL wait";
export const gilWaitHelp = "Of late: the event loop’s thread waited for the GIL";
export const unknownHelp = "It is not known whether they waited or were late";
export const longestDelay = "Longest delay";
export const because = "because";

// Samples
/**
 * @type {(s: {count: number, hz: number, missed: number, torn: number, range: boolean,
 *         pinned: boolean, at: string}) => string}
 */
export const samplesNote = s =>
	plural(s.count, "sample") +
	" at " +
	s.hz +
	" Hz" +
	(s.missed ? ", " + s.missed + " missed" : "") +
	(s.torn ? ", " + plural(s.torn, "stack") + " dropped" : "") +
	". Shares, marked ~, are estimates of " +
	(s.range ? "the selected range" : "the part in view") +
	"; stacks are those of the sample nearest to " +
	s.at +
	(s.pinned
		? "."
		: " (the middle of " +
			(s.range ? "the range" : "the view") +
			"; click the timeline to choose a moment).");
export const atThatMoment = "At that moment";
export const innermostFirst = "Python stack, innermost first";
export const noPythonFrame = "no Python frame";
export const estimatedShares = "Estimated shares";
export const sampledCaption = "What every thread did";
export const sampleModes = {
	holds: "Sampled: has the GIL",
	waits: "Sampled: waits for it",
	all: "Sampled: all",
};
export const frameOfSample = "[no Python frame]";

// Flame graphs
export const flameModes = {
	offGil: "Waiting for the GIL",
	onGil: "Holding the GIL",
	offCpu: "Off the CPU",
};
export const frameWithoutStack = "[no stack]";
export const libraryFrames = "Library frames";
export const libraryFramesHelp = "Also functions of Python and of packages";
export const pythonOnly = "Python only";
export const pythonOnlyHelp =
	"Without native frames: their time is that of the Python call they ran in";
export const mergeThreads = "Merge threads";
export const mergeThreadsHelp = "All threads as one";
export const inverted = "Inverted";
export const invertedHelp = "Innermost functions first";
/**
 * @type {(f: {part: string, dur: string, samples: number | undefined, ns: string,
 *         found: string}) => string}
 */
export const flameNote = f =>
	"Time " +
	f.part +
	" (" +
	f.dur +
	"): " +
	(f.samples === undefined ? "" : "estimated from " + plural(f.samples, "sample") + ", about ") +
	f.ns +
	". Width is time; callers above, callees below. Click a frame to zoom in." +
	(f.found && " Found: " + f.found + ".");
export const allShown = "all shown";
export const notDrawn = (/** @type {number} */ n) =>
	"Not drawn, because they are too narrow or too deep: " +
	frames(n) +
	". Click a frame to see those above it.";
export const nothingOfThisKind = "Nothing of this kind here.";
/** @type {(name: string, part: string) => string} */
export const sandwichTitle = (name, part) => name + " between its callers and callees, " + part;
/** @type {(total: string, own: string) => string} */
export const byItself = (total, own) => total + ", by itself " + own;
export const outermost = "(outermost)";
export const waitsCaused = "Waits caused";
export const causedInHolds = (/** @type {string} */ ns) => ns + " in holds that mostly ran it";
export const causedAtMost = (/** @type {string} */ ns) =>
	", and up to " + ns + " in unknown functions";

// Stacks that waited and stacks that held meanwhile
export const meetGil = "Waited for the GIL, and what held it";
export const meetLocks = "Waited for locks";
export const meetDiff = "Waiting caused, before and after";
export const waitedIn = "Waited in";
export const whichHeldGil = "Which held the GIL";
export const meanwhile = "Meanwhile";
export const summedOverThreads = "summed over the threads that waited";
export const pairsOfStacks = "Pairs of stacks";
export const showWhole = "Show all";
export const waitedFor = (/** @type {string} */ ns) => "waited " + ns;
export const meetForHolder = " for ";
export const meetForLock = ", ";
export const ofWhole = (/** @type {string} */ ns) => " · of " + ns + " · show all";
export const meetNote = (/** @type {string} */ cut) =>
	"The whole recording. Above the bar, the stacks that waited; below it, what others " +
	"executed meanwhile: width is the time waited, summed over threads. Choose a frame to " +
	"see only what it waited for, or what waited for it." +
	(cut && " Of " + cut + ", only the threads are told apart.");
export const meetNotDrawn =
	"Frames that are too narrow or too deep are not drawn. Choose a frame to see them.";
/** @type {(text: string, was: string, is: string) => string} */
export const diffFrame = (text, was, is) => `${text}: ${was} → ${is} of the recording`;
export const diffAll = "all";
export const diffCut = (/** @type {string} */ ns) =>
	" " + ns + " count for callers: there are too many frames.";
/** @type {(red: Mark, blue: Mark) => Rich} */
export const diffNote = (red, blue) => [
	"The waiting that stacks caused, as a share of each recording. Width: the larger one; ",
	red("red"),
	": more in B, ",
	blue("blue"),
	": less.",
];
export const diffNotDrawn = "Frames that are too narrow are not drawn.";

// Lengths of waits
/** @type {(ns: string, from: string, to: string) => string} */
export const histogramBar = (ns, from, to) => ns + " of waiting, in waits of " + from + " to " + to;
export const halfTheTime = "half the time";
export const switchInterval = "switch interval";
/** @type {(n: number, half: string, p50: string, p95: string, p99: string) => string} */
export const histogramText = (n, half, p50, p95, p99) =>
	waits(n) +
	": half of the waiting time is in waits longer than " +
	half +
	". Of the waits, half are shorter than " +
	p50 +
	", 95 % shorter than " +
	p95 +
	", 99 % shorter than " +
	p99 +
	".";
export const histogramError = " (From the buckets: accurate to about 2 %.)";

// About this recording
export const freeThreaded = "(free-threaded)";
export const recorded = "Recorded";
export const host = "Host";
export const hostCpus = (/** @type {number} */ n) => plural(n, "CPU");
export const shownHere = "Recording shown";
export const oneOfOneRun = " (one of two, of one run)";
export const oneOfTwoRuns = " (one of two runs, never mixed)";
export const length = "Length";
export const events = "Events";
export const lostEvents = (/** @type {number} */ n) =>
	n ? ", " + fmtCount(n) + " lost" : ", none lost";
export const callsNote = "Calls, note";
/** @type {(held: string, wanted: string, handOff: string) => string} */
export const gilShares = (held, wanted, handOff) =>
	"held " + held + " of the time, wanted " + wanted + ", hand-off " + handOff;
export const ofPass = (/** @type {string} */ name) => name + " pass: ";

// Tables
export const copyCsv = "Copy as CSV";
export const copyTsv = "as TSV";

// Keys and words
/** @type {(dur: string, time: string) => string} */
export const showing = (dur, time) => "Showing " + dur + " from " + time;
export const keysTitle = "Keys";
export const wordsTitle = "Words";
/** @type {[string, string][]} */
export const keys = [
	["W  S", "zoom in, out (also + and −)"],
	["A  D  ← →", "move"],
	["Shift+← Shift+→", "select a range"],
	["↑ ↓", "previous, next row: shows its span in the middle of the view"],
	["[  ]", "previous, next wait of the thread"],
	["F", "fit everything, then the pinned span"],
	["/", "search; Enter or N next, Shift+N previous"],
	["K", "keep the pinned thread at the top, or release it (or click its name)"],
	["Enter", "zoom to the pinned span, or to the longest delay of tasks"],
	["T", "light or dark"],
	["Esc", "unpin, clear the range, clear the filter"],
	["?", "this help"],
];
export const keysAnywhere = "Single keys also where nothing has the focus";
export const pointerHelp =
	"Mouse: drag moves, Shift+drag selects a range: who kept whom waiting in it. " +
	"Ctrl+wheel zooms, double click zooms to a span. " +
	"Touch: two fingers zoom, hold and drag selects a range.";
/** @type {[string, string][]} */
export const glossary = [
	["GIL", "the lock that a thread must hold to run Python code: one at a time"],
	["holds", "from acquiring the GIL to releasing it"],
	["waits", "from requesting the GIL to acquiring it"],
	[
		"released on request, awaiting the switch",
		"it released the GIL on request and waits until another one has taken it; part of its wait",
	],
	[
		"takes a free GIL",
		"it waits although no thread holds the GIL: tracing overhead or scheduling delay",
	],
	["no GIL", "in C code that released it, or asleep"],
	["runnable without a CPU", "it could run, but others had the CPUs"],
	["asleep for the GIL", "its CPU state during a wait for the GIL"],
	["hand-off", "the GIL is free, the next thread not yet running"],
	["unknown", "before a thread's first event, or records were lost; in no other state"],
	[
		"switch interval",
		"how long Python lets a thread keep the GIL while others wait: 5 ms. " +
			"Longer holds are C code that does not release the GIL",
	],
];

// Files that cannot be read
export const sectionShort = "a section is shorter than it says";
export const columnLong = "a column is longer than its section";
export const stateMissing = "a lane has a state that does not exist";
export const nameLong = "a name is longer than its section";
export const blockShort = "a block is shorter than its sections";
export const blockLong = "a block is longer than its sections";
export const sectionLong = (/** @type {string} */ kind) =>
	"a " + kind + " section is longer than its columns";
export const workerFailed = "the worker failed";
export const endsEarly = "it ends too early";
