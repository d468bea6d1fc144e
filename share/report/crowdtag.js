// SPDX-License-Identifier: MIT
// A button with a crowd's name and colour, which shows its threads in the timeline.

import {h} from "./dom.js";
import {NAME_FIT, shorten} from "./format.js";
import {showThread, threadTag} from "./table.js";
import {threadColor} from "./theme.js";
import {setOnly} from "./view.js";
import * as words from "./words.js";

export const crowdTag = (c, most = NAME_FIT) =>
	c.name
		? h(
				"button.thread",
				{
					title: words.showThreads(c.name, c.threads.length),
					onclick: () => {
						setOnly(c.threads);
						showThread(c.threads[0]);
					},
				},
				h("i.dot", {style: "background:" + threadColor(c.threads[0])}),
				shorten(c.name, most),
				h("b", " × " + c.threads.length),
			)
		: threadTag(c.threads[0], most);
