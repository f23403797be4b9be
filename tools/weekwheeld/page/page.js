// The page of weekwheeld: asks /v1 and shows what it says. Text from jobs is only ever set as text.
"use strict";

const WHEELS = [
	{name: "60 seconds", span: 1, count: 60, slot: (now) => now.getSeconds()},
	{name: "60 minutes", span: 60, count: 60, slot: (now) => now.getMinutes()},
	{name: "24 hours", span: 3600, count: 24, slot: (now) => now.getHours()},
	{name: "7 days", span: 86400, count: 7, slot: (now) => (now.getDay() + 6) % 7},
];
const HOURS = 168;
const BODY_SHOWN = 20000;

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";
let chosenHour = null;

// ---- Asking

class Problem extends Error {
	constructor(said) {
		super((said.field ? said.field + ": " : "") + said.detail + (said.remedy ? " (" + said.remedy + ")" : ""));
		this.field = said.field;
		this.status = said.status;
	}
}

async function ask(method, path, body, headers = {}) {
	if (token)
		headers.Authorization = "Bearer " + token;
	if (body !== undefined)
		headers["Content-Type"] = "application/json";
	const answer = await fetch("v1/" + path, {method, headers, body: body === undefined ? body : JSON.stringify(body)});
	if (answer.status === 204)
		return null;
	const said = await answer.json();
	if (!answer.ok)
		throw new Problem(said);
	return said;
}

function tell(text) {
	$("message").textContent = text;
	$("message").hidden = !text;
}

// Do something that a person asked for, and tell what went wrong.
async function attempt(work) {
	try {
		tell("");
		await work();
	} catch (error) {
		tell(error instanceof Problem ? error.message : "The server does not answer.");
	}
}

// ---- Elements

// Put new rows in place of others. Whoever is at a button stays there: buttons have names in data-focus.
function replace(parent, ...children) {
	const at = parent.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
	parent.replaceChildren(...children);
	if (at !== undefined)
		parent.querySelector(`[data-focus="${CSS.escape(at)}"]`)?.focus();
}

function element(name, attributes = {}, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) {
		if (key === "onclick")
			made.addEventListener("click", value);
		else if (value !== null)
			made.setAttribute(key, value);
	}
	made.append(...children.map((child) => child instanceof Node ? child : String(child)));
	return made;
}

function drawn(name, attributes, text) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", name);
	for (const [key, value] of Object.entries(attributes))
		made.setAttribute(key, value);
	if (text !== undefined)
		made.textContent = text;
	return made;
}

const number = (value) => Number(value).toLocaleString("en");

function spanText(seconds) {
	for (const [unit, length] of [["d", 86400], ["h", 3600], ["min", 60]]) {
		if (seconds >= length)
			return +(seconds / length).toFixed(1) + " " + unit;
	}
	return +Number(seconds).toFixed(1) + " s";
}

const timeText = (moment) => new Date(moment).toLocaleString();

// How strong a slot is drawn: empty ones faintly, and large numbers by their logarithm.
function strength(count, most) {
	return count === 0 ? 0.04 : 0.2 + 0.8 * Math.log1p(count) / Math.log1p(most);
}

// ---- The wheels

function slotPath(index, count) {
	const from = 2 * Math.PI * index / count - Math.PI / 2;
	const to = 2 * Math.PI * (index + 1) / count - Math.PI / 2;
	const at = (radius, angle) => (50 + radius * Math.cos(angle)).toFixed(2) + " " + (50 + radius * Math.sin(angle)).toFixed(2);
	return `M${at(30, from)} L${at(48, from)} A48 48 0 0 1 ${at(48, to)} L${at(30, to)} A30 30 0 0 0 ${at(30, from)} Z`;
}

function makeWheel(wheel) {
	const picture = drawn("svg", {viewBox: "0 0 100 100", role: "img"});
	wheel.slots = [];
	for (let index = 0; index < wheel.count; index++) {
		const slot = drawn("path", {class: "slot", d: slotPath(index, wheel.count)});
		slot.append(drawn("title", {}));
		slot.style.fillOpacity = strength(0, 1);
		wheel.slots.push(slot);
		picture.append(slot);
	}
	wheel.hand = drawn("line", {class: "hand", x1: 50, y1: 22, x2: 50, y2: 1});
	wheel.sum = drawn("text", {class: "sum", x: 50, y: 54});
	wheel.picture = picture;
	picture.append(wheel.hand, wheel.sum);
	$("wheels").append(element("figure", {}, picture, element("figcaption", {}, wheel.name)));
}

function showWheel(wheel, counts) {
	const first = wheel.slot(new Date());
	const most = Math.max(1, ...counts);
	const sum = counts.reduce((a, b) => a + b, 0);
	counts.forEach((count, ahead) => {
		const slot = wheel.slots[(first + ahead) % wheel.count];
		slot.style.fillOpacity = strength(count, most);
		slot.firstChild.textContent = `${number(count)} due in ${spanText(ahead * wheel.span)}`;
	});
	wheel.sum.textContent = number(sum);
	wheel.picture.setAttribute("aria-label", `${number(sum)} jobs due within ${wheel.name}`);
}

function turnHands() {
	const now = new Date();
	for (const wheel of WHEELS)
		wheel.hand.setAttribute("transform", `rotate(${360 * (wheel.slot(now) + 0.5) / wheel.count} 50 50)`);
}

async function askWheels() {
	for (const wheel of WHEELS)
		showWheel(wheel, (await ask("GET", `forecast?span=${wheel.span}&count=${wheel.count}`)).counts);
}

// ---- Tubes and numbers

function limitText(limits) {
	const texts = limits.map((limit) => [
		limit.running ? `${limit.running} at once` : "",
		limit.starts ? `${limit.starts} in ${spanText(limit.per)}` : "",
		limit.each ? "each group" : limit.group ? "group " + limit.group : "",
		limit.now_held ? `${number(limit.now_held)} held` : "",
	].filter((text) => text).join(", "));
	return texts.join("; ");
}

function showTubes(tubes, limits) {
	replace($("tubes"), ...tubes.map((tube) => element("tr", {},
		element("th", {scope: "row"}, tube.name),
		...["ready", "delayed", "reserved", "buried"].map((state) => element("td", {}, number(tube[state]))),
		element("td", {}, limitText(limits.filter((limit) => limit.tube === tube.name))),
		element("td", {}, tube.pause_left > 0 ? spanText(tube.pause_left) + " left" : ""))));
	$("tubes-none").hidden = tubes.length > 0;
}

async function askNumbers() {
	const stats = await ask("GET", "stats");
	$("state").textContent = stats.fault ? "The store cannot write: " + stats.fault :
		`${number(stats.ready)} ready, ${number(stats.delayed)} delayed, ${number(stats.reserved)} reserved, ` +
		`${number(stats.buried)} buried`;
	showTubes((await ask("GET", "tubes")).tubes, (await ask("GET", "limits")).limits);
}

// ---- The week

function showMinutes(start, counts) {
	const most = Math.max(1, ...counts);
	const sum = counts.reduce((a, b) => a + b, 0);
	$("minutes").replaceChildren(
		element("h3", {}, `${number(sum)} jobs in the hour from ${start.toLocaleString()}`),
		element("div", {class: "bars", role: "img", "aria-label": "jobs a minute: " + counts.join(" ")},
			...counts.map((count, minute) => {
				const bar = element("span", {title: `${number(count)} in minute ${minute}`});
				bar.style.height = 100 * count / most + "%";
				return bar;
			})));
}

async function askMinutes(hour) {
	const asked = new Date();
	const counts = (await ask("GET", "forecast?span=60&count=10080")).counts.slice(60 * hour, 60 * hour + 60);
	chosenHour = hour;
	showMinutes(new Date(asked.getTime() + hour * 3600000), counts);
}

function showWeek(counts) {
	const begin = Date.now();
	const most = Math.max(1, ...counts);
	const rows = [];
	for (let day = 0; day < 7; day++) {
		const cells = [];
		for (let hour = 24 * day; hour < 24 * day + 24; hour++) {
			const from = new Date(begin + hour * 3600000);
			const button = element("button", {
				"aria-label": `${number(counts[hour])} jobs in the hour from ${from.toLocaleString()}`,
				title: `${from.toLocaleString()}: ${number(counts[hour])}`,
				"data-hour": hour,
				"data-focus": "hour " + hour,
				onclick: () => attempt(() => askMinutes(hour)),
			});
			button.style.background = `rgba(var(--heat), ${strength(counts[hour], most)})`;
			cells.push(element("td", {}, button));
		}
		rows.push(element("tr", {}, element("th", {scope: "row"},
			new Date(begin + day * 86400000).toLocaleDateString([], {weekday: "short", day: "numeric"})), ...cells));
	}
	replace($("week").tBodies[0], ...rows);
	$("week").tHead.replaceChildren(element("tr", {}, element("th", {}), ...Array.from({length: 24}, (_, hour) =>
		element("th", {scope: "col"}, hour % 6 ? "" :
			new Date(begin + hour * 3600000).toLocaleTimeString([], {hour: "numeric", minute: "2-digit"})))));
}

// Arrow keys go from hour to hour.
$("week").addEventListener("keydown", (event) => {
	const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -24, ArrowDown: 24}[event.key];
	const at = event.target.dataset.hour;
	if (!step || at === undefined)
		return;
	const next = $("week").querySelector(`[data-hour="${+at + step}"]`);
	if (next) {
		next.focus();
		event.preventDefault();
	}
});

const askWeek = async () => showWeek((await ask("GET", `forecast?span=3600&count=${HOURS}`)).counts);

// ---- Jobs

const match = (job) => ({"If-Match": `"${job.version}"`});
const name = (job) => job.key || (job.key_base64 ? job.key_base64 + " (base64)" : "");

// A job that has changed since it was shown is not touched: the server compares versions.
function actions(job, after) {
	const path = "jobs/" + job.id;
	const act = (work) => () => attempt(async () => {
		await work();
		await after();
	});
	const move = async () => {
		const delay = prompt("Due in how long? (90s, 1h30m)", "0s");
		if (delay !== null)
			await ask("PATCH", path, {delay}, match(job));
	};
	const remove = async () => {
		if (confirm(`Delete job ${job.id}?`))
			await ask("DELETE", path, undefined, match(job));
	};
	const button = (text, work) => element("button", {"data-focus": text + " " + job.id, onclick: act(work)}, text);
	const buttons = [];
	if (job.state === "buried" || job.state === "delayed")
		buttons.push(button("Kick", () => ask("POST", path + "/kick", undefined, match(job))));
	if (job.state === "delayed" || job.state === "ready")
		buttons.push(button("Move", move));
	buttons.push(button("Delete", remove));
	return element("span", {class: "actions"}, ...buttons);
}

// Shows a job, which is below.
const jobButton = (id) => element("button", {"data-focus": "job " + id, onclick: () => attempt(async () => {
	await askJob("jobs/" + id);
	$("job-title").scrollIntoView({block: "nearest"});
})}, id);

function showBuried(jobs) {
	replace($("buried"), ...jobs.map((job) => element("tr", {},
		element("td", {}, jobButton(job.id)),
		element("td", {}, job.tube), element("td", {}, name(job)), element("td", {}, job.error),
		element("td", {}, number(job.reserves)), element("td", {}, actions(job, askBuried)))));
	$("buried-none").hidden = jobs.length > 0;
}

const askBuried = async () => showBuried((await ask("GET", "jobs?state=buried&limit=50")).jobs);

// What happened to a job, as far as it tells.
function story(job) {
	const lines = [["Id", job.id], ["Tube", job.tube], ["Key", name(job)], ["Group", job.group], ["State", job.state],
		["Version", job.version], ["Put", timeText(job.created)]];
	if (job.due)
		lines.push(["Due", `${timeText(job.due)} (${job.clock} time)`]);
	if (job.left > 0)
		lines.push([job.state === "reserved" ? "Lease ends in" : "Due in", spanText(job.left)]);
	lines.push(["Every", job.every ? spanText(job.every) : ""], ["Priority", job.priority], ["Time to run", spanText(job.run)],
		["Delivered", `${number(job.reserves)} times${job.attempts ? " of at most " + number(job.attempts) : ""}`],
		["Ran out of time", number(job.timeouts)], ["Given back", number(job.releases)], ["Buried", number(job.buries)],
		["Kicked", number(job.kicks)], ["Last error", job.error], ["Body", number(job.length) + " bytes"]);
	return lines.filter(([, value]) => value !== "" && value !== undefined && value !== "0");
}

// How the last runs ended, of what was put with "keep".
async function runsOf(query) {
	const {runs} = await ask("GET", query + "limit=10");
	return runs.length === 0 ? [] : [element("h3", {}, "Runs"), element("ol", {class: "runs"}, ...runs.map((run) =>
		element("li", {}, `${run.outcome}, attempt ${run.attempt}, ${timeText(run.ended)}${run.error ? ": " + run.error : ""}`,
			...(run.report ? [element("pre", {tabindex: 0}, run.report)] : []))))];
}

// The job that is shown: its path, and what is known of it.
let shown = null;

async function askJob(path) {
	const job = await ask("GET", path);
	const body = job.body !== undefined ? job.body : job.body_base64;
	const runs = await runsOf(`jobs/${job.id}/history?`);
	shown = {path, job};
	replace($("job"),
		element("dl", {}, ...story(job).flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)])),
		element("pre", {tabindex: 0}, body.slice(0, BODY_SHOWN)), ...runs,
		actions(job, () => refresh()));
}

// It goes on while it is shown.
async function askShown() {
	if (!shown)
		return;
	try {
		await askJob(shown.path);
	} catch (error) {
		if (!(error instanceof Problem) || error.status !== 404)
			throw error;
		replace($("job"), element("p", {class: "hint"}, `Job ${shown.job.id} has ended, or was deleted.`),
			...await runsOf(`jobs/${shown.job.id}/history?`));
		shown = null;
	}
}

$("find").addEventListener("submit", (event) => {
	const form = event.target.elements;
	event.preventDefault();
	const path = form.id.value ? "jobs/" + encodeURIComponent(form.id.value.trim()) :
		`tubes/${encodeURIComponent(form.tube.value || "default")}/keys/${encodeURIComponent(form.key.value)}`;
	attempt(() => askJob(path));
});

$("put").addEventListener("submit", (event) => {
	const form = event.target.elements;
	const job = {tube: form.tube.value, body: form.body.value};
	event.preventDefault();
	for (const field of ["delay", "key", "every"]) {
		if (form[field].value)
			job[field] = form[field].value;
	}
	if (form.at.value)
		job.at = new Date(form.at.value).toISOString();
	if (form.attempts.value)
		job.attempts = Number(form.attempts.value);
	attempt(async () => {
		const made = await ask("POST", "jobs", job);
		$("put-said").textContent = `Job ${made.id}: ${made.result}.`;
		await refresh();
	});
});

$("login").addEventListener("submit", (event) => {
	event.preventDefault();
	token = $("token").value.trim();
	sessionStorage.setItem("token", token);
	$("token").value = "";
	refresh();
	listenAgain();
});

// ---- Going on

// What is shown, and how often it is asked for (s): without events, with them, and how soon at most after one.
const PARTS = [
	{ask: askNumbers, alone: 2, live: 15, soon: 1},
	{ask: askWheels, alone: 3, live: 10, soon: 3},
	{ask: askBuried, alone: 10, live: 60, soon: 1},
	{ask: askWeek, alone: 30, live: 60, soon: 15},
	{ask: askShown, alone: 10, live: 60, soon: 1},
];
let isLive = false;

// A part that the token does not grant is left as it is, and the others are shown.
async function refresh(parts = PARTS) {
	let problem = "";
	for (const part of parts) {
		part.at = Date.now();
		part.isStale = false;
		try {
			await part.ask();
		} catch (error) {
			problem = error instanceof Problem ? error.message : "The server does not answer.";
		}
	}
	if (problem)
		$("state").textContent = problem;
}

// An event has changed what these show.
function stale(...asks) {
	for (const part of PARTS)
		part.isStale ||= asks.includes(part.ask);
}

let isBusy = false;

async function look() {
	const now = Date.now();
	const span = (part) => part.isStale ? part.soon : isLive ? part.live : part.alone;
	const due = PARTS.filter((part) => now - part.at >= 1000 * span(part) - 100);
	if (document.hidden || isBusy || due.length === 0)
		return;
	isBusy = true;
	await refresh(due);
	isBusy = false;
}

WHEELS.forEach(makeWheel);
turnHands();
setInterval(turnHands, 1000);
setInterval(look, 1000);
