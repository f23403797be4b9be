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

class Problem extends Error {}

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
		throw new Problem((said.field ? said.field + ": " : "") + said.detail + (said.remedy ? " (" + said.remedy + ")" : ""));
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
	$("tubes").replaceChildren(...tubes.map((tube) => element("tr", {},
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
				onclick: () => attempt(() => askMinutes(hour)),
			});
			button.style.background = `rgba(var(--heat), ${strength(counts[hour], most)})`;
			cells.push(element("td", {}, button));
		}
		rows.push(element("tr", {}, element("th", {scope: "row"},
			new Date(begin + day * 86400000).toLocaleDateString([], {weekday: "short", day: "numeric"})), ...cells));
	}
	const focused = document.activeElement && document.activeElement.dataset.hour;
	$("week").tBodies[0].replaceChildren(...rows);
	$("week").tHead.replaceChildren(element("tr", {}, element("th", {}), ...Array.from({length: 24}, (_, hour) =>
		element("th", {scope: "col"}, hour % 6 ? "" : new Date(begin + hour * 3600000).getHours() + ":00"))));
	if (focused !== undefined && focused !== null)
		$("week").querySelector(`[data-hour="${focused}"]`).focus();
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
	const buttons = [];
	if (job.state === "buried" || job.state === "delayed")
		buttons.push(element("button", {onclick: act(() => ask("POST", path + "/kick", undefined, match(job)))}, "Kick"));
	if (job.state === "delayed" || job.state === "ready")
		buttons.push(element("button", {onclick: act(move)}, "Move"));
	buttons.push(element("button", {onclick: act(remove)}, "Delete"));
	return element("span", {class: "actions"}, ...buttons);
}

function showBuried(jobs) {
	$("buried").replaceChildren(...jobs.map((job) => element("tr", {},
		element("td", {}, element("button", {onclick: () => attempt(() => askJob("jobs/" + job.id))}, job.id)),
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

async function askJob(path) {
	const job = await ask("GET", path);
	const body = job.body !== undefined ? job.body : job.body_base64;
	$("job").replaceChildren(
		element("dl", {}, ...story(job).flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)])),
		element("pre", {tabindex: 0}, body.slice(0, BODY_SHOWN)),
		actions(job, async () => {
			$("job").replaceChildren();
			await refresh();
		}));
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
});

// ---- Going on

// A part that the token does not grant is left as it is, and the others are shown.
async function refresh(parts = [askNumbers, askWheels, askWeek, askBuried]) {
	let problem = "";
	for (const part of parts) {
		try {
			await part();
		} catch (error) {
			problem = error instanceof Problem ? error.message : "The server does not answer.";
		}
	}
	if (problem)
		$("state").textContent = problem;
}

function every(seconds, ...parts) {
	let busy = false;
	setInterval(async () => {
		if (document.hidden || busy)
			return;
		busy = true;
		await refresh(parts);
		busy = false;
	}, 1000 * seconds);
}

WHEELS.forEach(makeWheel);
turnHands();
setInterval(turnHands, 1000);
refresh();
every(2, askNumbers);
every(3, askWheels);
every(10, askBuried);
every(30, askWeek);
