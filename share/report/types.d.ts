// SPDX-License-Identifier: MIT
// The types with which tsc --checkJs checks the page: what it reads of its documents (FORMAT.md;
// the manual for the report), sections after decoding, and what its modules pass to each other.
// Times and durations are in ns.

// What the blocks consist of. A decoded section has its columns in place of "bytes".
interface Header {
	kind: string;
	pass: number;
	n: number;
	bytes: number;
	start?: number; // the time, or the id, of the first entry
	thread?: number;
	depth?: number;
	counter?: number;
	table?: "slices" | "stacks" | "samples" | "cpus";
}

// Of a lane or of a row of calls. In a lane, start has one more entry, since each span ends where
// the next one begins.
interface Section {
	start: Float64Array;
	end?: Float64Array; // of calls
	n: number;
	t0: number;
	t1: number;
	state?: Uint8Array; // of lanes
	name?: Uint32Array; // of calls
	names?: Float64Array; // of calls: id, number, longest; id, …
	cls?: Uint8Array; // state + states * index in gils
	classes?: number;
	gils?: number[]; // from 1
	flags?: Uint8Array | null;
	stack?: Uint32Array | null;
	cpu?: Uint16Array | null; // from 1
	waker?: Uint32Array | null; // from 1
	ck: Float64Array; // prefix sums, see prefix.js
	at: Float64Array;
	top?: Uint32Array; // of calls: the longest of each group
	total: Float64Array | number;
	marks?: Float64Array; // waits that must stay visible: start, end, …
	hist?: Uint32Array; // of the lengths of waits
	topWaits?: Uint32Array;
	topHolds?: Uint32Array;
}

// A span of a track: section, its index, the index in it.
interface Place {
	s: Section;
	k: number;
	i: number;
}

type SpanTest = (s: Section, i: number) => boolean;

// A span that the reader points at. gil, cpu and waker are indices, -1 for none.
interface LanePin {
	kind: "gil" | "cpu";
	thread: number;
	at: Place;
	from: number;
	to: number;
	state: number;
	gil: number;
	flags: number;
	stack: number;
	cpu: number;
	waker: number;
}
interface CallPin {
	kind: "py";
	thread: number;
	depth: number;
	at: Place;
	from: number;
	to: number;
	name: number;
	flags: number;
}
interface SamplePin {
	kind: "samples";
	thread: number;
	from: number;
	to: number; // = from
	time: number;
	what: number;
	stack: number;
}
type Pin = LanePin | CallPin | SamplePin;

// A row of the timeline, and where it is.
interface Row {
	kind:
		| "gil"
		| "held"
		| "cpu"
		| "counter"
		| "samples"
		| "py"
		| "name"
		| "owner"
		| "process"
		| "slot"
		| "thin" // a thread of a crowd
		| "crowd"
		| "tasks";
	h: number;
	y: number;
	thread?: number;
	threads?: number[];
	head?: boolean; // the first one of a thread, with its name
	top?: number;
	bottom?: number;
	// of some kinds only
	gil?: number;
	fixed?: boolean; // does not scroll
	depth?: number;
	lead?: boolean;
	more?: number; // rows that are hidden; below 0, that can be hidden
	counter?: number;
	sections?: Section[];
	pid?: number;
	text?: string;
	n?: number;
	shift?: number; // what is subtracted from times
	group?: number;
}

// A column of a table of the page.
interface TableColumn<R> {
	head: string;
	csv?: string;
	num?: boolean;
	wide?: boolean;
	title?: string;
	value: (row: R) => string | number;
	cell?: (row: R) => unknown;
}

interface TableOptions<R> {
	caption: string;
	hideCaption?: boolean;
	note?: unknown; // after the caption
	sort?: number; // index of a column
	up?: boolean;
	limit?: number; // rows shown until "show all"
	onrow?: (row: R) => void;
	attrs?: (row: R) => object;
}

interface States {
	running_ns: number;
	runnable_ns: number;
	sleeping_ns: number;
	uninterruptible_ns: number;
	gil_sleep_ns: number;
	unknown_ns: number;
}
interface Thread {
	pid: number;
	tid: number;
	name: string | null;
	main: boolean;
	from_ns: number;
	to_ns: number;
	total_ns: number;
	hold_ns: number;
	wait_ns: number;
	switch_wait_ns: number;
	free_wait_ns: number;
	no_gil_ns: number;
	unknown_ns: number;
	suspended_ns?: number;
	holds: number;
	waits: number;
	longest_hold_ns: number;
	longest_hold_at_ns: number;
	longest_wait_ns: number;
	longest_wait_at_ns: number;
	lock_wait_ns: number | null;
	states: States | null;
	// of a free-threaded interpreter
	stopping_ns?: number;
	stopped_ns?: number;
	spinning_ns?: number;
	longest_lock_wait_ns?: number | null;
	longest_lock_wait_at_ns?: number;
	longest_stop_ns?: number;
	longest_stop_at_ns?: number;
	longest_stopping_ns?: number;
	longest_stopping_at_ns?: number;
}
interface Blame {
	waiter: number;
	holder: number | null;
	wait_ns: number;
	longest_ns: number;
	longest_at_ns: number;
	pairs?: number;
}
interface ThreadColumn {
	key: string;
	minus: string | null;
	longest: boolean;
	head: string;
	help: string;
}
interface Pass {
	name: string;
	start_ns: string;
	dur_ns: number;
	exit_status: number;
	wall_ns: number;
	events: number;
	lost: number;
	gil_events: number;
	slices: number;
	slices_note: string;
	samples?: {count: number; hz: number; missed: number; torn: number; gil_only: boolean};
	counters: string[];
	columns: ThreadColumn[];
	state_columns: ThreadColumn[];
	threads: Thread[];
	gils: {
		pid: number;
		address: string;
		from_ns: number;
		to_ns: number;
		held_ns: number;
		wanted_ns: number;
		handover_ns: number;
	}[];
	blame: Blame[];
	caused?: number[];
	locks?: boolean;
	lock_blame?: Blame[];
	lock_caused?: number[];
}
interface TaskLane {
	exact: boolean;
	dur: number[];
	running: number[];
	late: number[];
	waiting: number[];
	unknown: number[];
	at?: number[]; // added by tasks.js, as the next two
	sums?: number[][];
	most?: number;
}
interface SourceLine {
	file: string;
	line: number;
	indent: number;
	text: string;
}
interface Caveat {
	code: string;
	count: number;
	text: string;
	pass?: string | null; // not of notes
}
interface Tree {
	names: string[];
	nodes: number[]; // parent, name, …
}
interface Meeting extends Tree {
	pairs: number[]; // waited, held, ns, …
	ns: number;
	cut_ns: number;
}
// A node of a flame graph.
interface FlameNode {
	key: string;
	name: string;
	ns: number;
	kids: Map<string, FlameNode>;
	native?: boolean;
	ids?: number[]; // in a Tree, as up
	up?: FlameNode;
}
interface FlameFrame {
	node: FlameNode;
	x: number;
	w: number;
	depth: number;
	up: FlameFrame | null;
}
interface Meta {
	format: number;
	command: string[];
	created: string;
	host: string;
	cpus: number;
	state_detect: boolean;
	gil_detect: boolean;
	one_run: boolean;
	main_pass: number;
	switch_interval_ns: number;
	wait_mark_ns: number;
	crowds_from: number;
	crowd_least: number;
	nearly_all_percent: number;
	library_marks: string[];
	holders_hint: string;
	notes: Caveat[];
	passes: Pass[];
	source?: SourceLine[];
	tasks?: {pass: number; groups: number; lanes: TaskLane[]};
	meeting: {gil?: Meeting; locks?: Meeting};
	without_gil?: {
		known: boolean;
		factor: number;
		recorded_ns: number;
		duration_ns: number;
		cpus: number;
		replayed_ns: number;
		replayed_shared_ns: number;
		end_ns: number;
		runs: {cpus: number; shared_ns: number; end_ns: number}[];
	};
	diff?: Tree & {a: number[]; b: number[]; a_dur_ns: number; b_dur_ns: number; cut_ns: number};
}
interface Overview {
	pass?: number;
	buckets?: number;
	threads?: {thread: number; hold: string; wait: string; free_wait: string; no: string}[];
}

// What the page reads of the document of --json.
interface HeldFunction {
	tid: number;
	function: string | null;
	file: string | null;
	line: number | null;
	native?: string | null; // of hogs
	caller?: {function: string | null; file: string | null; line: number | null} | null;
	wait_caused_ns: number;
	holds: number;
	hold_ns: number;
	held_off_cpu_ns: number | null;
	longest_hold_ns: number;
	longest_hold_at_ns: number;
	gain_ns?: number | null;
}
interface ThreadPlace {
	tid: number;
	from_ns: number;
	to_ns: number;
}
interface GroupPlace {
	task_group: number;
	from_ns: number;
	to_ns: number;
}
interface Finding {
	kind: string;
	title: string;
	cost_ns: number | null;
	percent: number | null;
	places: (ThreadPlace | GroupPlace)[];
}
interface LineTimes {
	file: string | null;
	line: number;
	function: string | null;
	tid: number;
	from_ns: number;
	to_ns: number;
	held_ns: number;
	caused_ns: number;
	waited_ns: number;
	lock_wait_ns: number;
	lock_caused_ns: number;
}
interface BlockedFunction {
	function: string | null;
	file: string | null;
	line: number | null;
	what: string;
	of: string | null;
	name: string | null;
	count: number;
	total_ns: number;
	longest_ns: number;
}
interface Starvation {
	tid: number | null;
	by_tid: number | null;
	by_name: string | null;
	runnable_ns: number;
}
interface TaskDelay {
	at_ns: number;
	ns: number;
	inferred: boolean;
	loop_tid: number | null;
	function: string | null;
	function_ns: number;
	slept_ns: number;
	other_steps: number;
	gil_wait_ns: number;
	holder_tid: number | null;
	holder_function: string | null;
}
interface TaskCause {
	what: "running" | "gil" | "late" | "late_gil" | "waiting" | "unknown" | "others";
	function: string | null;
	line: number | null;
	causes?: number;
	fast_ns: number;
	slow_ns: number;
}
interface TaskGroup {
	name: string | null;
	named: boolean;
	loop: string;
	tasks: number;
	steps: number;
	running_ns: number;
	waiting_ns: number;
	late_ns: number;
	unknown_ns: number;
	late_inferred_ns: number;
	late_gil_wait_ns: number;
	longest_late: TaskDelay | null;
	requests: {
		count: number;
		fast: number;
		slow: number;
		p50_ns: number;
		p95_ns: number;
		p99_ns: number;
		longest_ns: number;
		causes: TaskCause[];
		slowest: {task: number; tid: number | null; from_ns: number; ns: number}[];
	} | null;
	waits: {function: string; line: number | null}[];
}
interface Report {
	schema: number;
	giltracer: string;
	verdict: {kind: string; headline: string; advice: string | null; quality: string};
	findings: Finding[];
	lines: LineTimes[];
	python: {
		executable: string;
		version: string;
		implementation: string | null;
		free_threaded: boolean;
	};
	functions: HeldFunction[];
	hogs: HeldFunction[];
	blocked: BlockedFunction[] | null;
	starvation: Starvation[];
	tasks: {count: number; steps: number; groups: TaskGroup[]} | null;
	caveats: Caveat[];
	shortened?: {[list: string]: number};
}
