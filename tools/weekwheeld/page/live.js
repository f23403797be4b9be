// Live: reads /v1/events and lets what has changed be asked for. Without it, the page asks from time to time.
"use strict";

const EVENTS_SHOWN = 30;
const AGAIN_MS = [2000, 5000, 15000, 30000];

const CHANGES = {
	put: [askNumbers, askWheels, askWeek],
	moved: [askNumbers, askWheels, askWeek],
	cancelled: [askNumbers, askWheels, askWeek, askJobs],
	due: [askNumbers, askWheels],
	started: [askNumbers, askWheels],
	finished: [askNumbers, askWheels],
	released: [askNumbers, askWheels],
	"timed-out": [askNumbers, askWheels],
	returned: [askNumbers],
	buried: [askNumbers, askWheels, askJobs],
	expired: [askNumbers, askWheels, askWeek],
	kicked: [askNumbers, askWheels, askJobs],
	schedule: [askSchedules],
	lost: [askNumbers, askWheels, askWeek, askJobs, askSchedules],
};

let lastId = "";
let failures = 0;
let ear = null; // ends the stream
let sayAgain = 0;

// Of a schedule: its version is another one whenever it is changed or one of its times comes.
const whatOfSchedule = (data) => data.removed ? "" : data.version === 1 ? "new" : "changed, or one of its times came";

function moreText(data) {
	return [data.name !== undefined || data.name_base64 !== undefined ? whatOfSchedule(data) : "",data.attempt ? `attempt ${data.attempt}` : "", data.left > 0 ? `due in ${spanText(data.left)}` : "", data.error ?? "",
		data.removed ? "removed" : ""].filter((text) => text).join(", ");
}

let heard = [];

// A busy server reports more than can be read: the last ones are shown, once in a while.
function showEvents() {
	sayAgain = 0;
	replace($("events"), ...heard.map(([word, data, id]) => element("tr", {"data-row": id},
		element("td", {}, timeText(data.time)), element("td", {}, word), element("td", {}, data.tube ?? ""),
		element("td", {}, data.id ? jobButton(data.id) : ""),
		element("td", {}, data.name ?? name(data)), element("td", {}, moreText(data)))));
	$("events-none").hidden = heard.length > 0;
}

function begin(data) {
	// Over Redis, other servers change jobs, too: then the page goes on asking.
	isLive = data.all;
	failures = 0;
	$("live").textContent = "live";
	if (data.lost)
		stale(...CHANGES.lost);
}

function hear(word, data) {
	if (word === "begin") {
		begin(data);
		return;
	}
	stale(...(CHANGES[word] ?? []), ...wanted().state.value === "buried" ? [] : [askJobs]);
	if (shown && data.id === shown.job.id)
		stale(askShown);
	if (word === "lost")
		return;
	heard = [[word, data, lastId], ...heard.slice(0, EVENTS_SHOWN - 1)];
	sayAgain ||= setTimeout(showEvents, 300);
}

function take(block) {
	const fields = {};
	for (const line of block.split("\n")) {
		const at = line.indexOf(": ");
		if (at > 0)
			fields[line.slice(0, at)] = line.slice(at + 2);
	}
	lastId = fields.id ?? lastId;
	if (fields.event)
		hear(fields.event, JSON.parse(fields.data));
}

async function read(signal) {
	const headers = {Accept: "text/event-stream"};
	const sent = token;
	mayAsk();
	if (sent)
		headers.Authorization = "Bearer " + sent;
	if (lastId)
		headers["Last-Event-ID"] = lastId;
	const answer = await fetch("v1/events", {headers, signal, cache: "no-store"});
	heed(answer, sent);
	if (!answer.ok)
		return;
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
	for (let rest = ""; ;) {
		const {value, done} = await reader.read();
		if (done)
			return;
		const blocks = (rest + value).split("\n\n");
		rest = blocks.pop();
		blocks.forEach(take);
	}
}

// Read until the stream ends, and again after a while. Nobody listens for a page that is not seen.
async function listen() {
	const own = new AbortController();
	ear?.abort();
	ear = own;
	while (!own.signal.aborted && !document.hidden && !refusal) {
		try {
			await read(own.signal);
		} catch {
			// It has been cut off.
		}
		if (ear !== own)
			return;
		isLive = false;
		$("live").textContent = "polling";
		await new Promise((go) => setTimeout(go, AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)]));
	}
}

function listenAgain() {
	failures = 0;
	listen();
}

document.addEventListener("visibilitychange", () => {
	if (document.hidden)
		ear?.abort();
	else
		listenAgain();
});

refresh().then(listen);
