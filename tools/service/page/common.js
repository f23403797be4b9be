// What the pages of both servers share: asking, elements, the four wheels, the week. Text from outside is only set as text.
// A page says on its body what it counts: data-what="jobs" and data-end="due".
"use strict";

const WHEELS = [
	{name: "60 seconds", span: 1, count: 60, slot: (now) => now.getSeconds()},
	{name: "60 minutes", span: 60, count: 60, slot: (now) => now.getMinutes()},
	{name: "24 hours", span: 3600, count: 24, slot: (now) => now.getHours()},
	{name: "7 days", span: 86400, count: 7, slot: (now) => (now.getDay() + 6) % 7},
];
const HOURS = 168;
const {what, end} = document.body.dataset;

const $ = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";

// ---- Asking

class Problem extends Error {
	constructor(said) {
		const detail = said.detail.replace(/^byte (\d+): (.*)$/s, "$2, at character $1");
		super((said.field ? said.field + ": " : "") + detail + (said.remedy ? " (" + said.remedy + ")" : ""));
		this.detail = detail;
		this.field = said.field;
		this.status = said.status;
	}
}

// After a wrong token nothing is asked until another is given, or, if the server wants a rest, until that is over.
let refusal = "";
let restUntil = 0;

function useToken(text) {
	token = text;
	refusal = "";
	restUntil = 0;
	sessionStorage.setItem("token", token);
}

// Whether the server may be asked, and what it says against it.
function mayAsk() {
	if (refusal)
		throw new Problem({detail: refusal, status: 401});
	if (Date.now() < restUntil)
		throw new Problem({detail: "A wrong token came from this address: the page waits.", status: 429});
}

function heed(answer, sent) {
	if (answer.status === 429)
		restUntil = Date.now() + 1000 * (Number(answer.headers.get("Retry-After")) || 5);
	if (answer.status !== 401 || sent !== token)
		return;
	if (sent)
		useToken("");
	refusal = sent ? "The server does not know this token: give another." : "this needs a token that the server knows";
}

async function ask(method, path, body, headers = {}) {
	const sent = token;
	mayAsk();
	if (sent)
		headers.Authorization = "Bearer " + sent;
	if (body !== undefined)
		headers["Content-Type"] = "application/json";
	const answer = await fetch("v1/" + path, {method, headers, body: body === undefined ? body : JSON.stringify(body)});
	heed(answer, sent);
	// What another token was granted is not shown any more.
	if (sent !== token && !refusal)
		throw new Problem({detail: "another token is used now"});
	if (refusal)
		mayAsk();
	if (answer.status === 204)
		return null;
	if (answer.ok)
		return answer.json();
	const isJson = answer.headers.get("Content-Type")?.includes("json");
	throw new Problem(isJson ? await answer.json() : {detail: (await answer.text()).trim(), status: answer.status});
}

// The button that was pressed last, and its part of the page.
let pressed = {};

document.addEventListener("click", (event) => {
	const button = event.target.closest("button");
	if (button)
		pressed = {button, focus: button.dataset.focus, part: button.closest("section")};
}, true);

// Where a message belongs: beside that button, which may have been drawn anew, or else in its part.
function place() {
	const {button, focus, part} = pressed;
	const again = focus === undefined ? null : (part ?? document).querySelector(`[data-focus="${CSS.escape(focus)}"]`);
	const at = button?.isConnected ? button : again;
	if (at)
		at.after($("message"));
	else if (part)
		part.querySelector("h2").after($("message"));
}

// There is one message; what was said before is over.
function tell(text, isGood = false) {
	$("message").classList.toggle("good", isGood);
	for (const said of document.querySelectorAll(".said"))
		said.textContent = "";
	$("message").hidden = !text;
	if (text)
		place();
	$("message").textContent = text;
	if (text)
		$("message").scrollIntoView({block: "nearest"});
}

// Do something that a person asked for, and show its outcome, or what went wrong.
async function attempt(work) {
	try {
		tell("");
		const said = await work();
		if (said)
			tell(said, true);
	} catch (error) {
		tell(error instanceof Problem ? error.message : "The server does not answer.");
	}
}

// ---- Lists

const LOOK_MS = 2000;

// Entries of a list whose pages may be empty though more follow. What does not get ready in time goes on at the next look.
// Its table has the id `name`; beside it are name-none and name-looking, and perhaps a button name-more.
class List {
	constructor(name, kind, path) {
		Object.assign(this, {name, kind, path: path + (path.includes("?") ? "&" : "?"), rows: [], found: [], next: null, isLooking: false});
	}

	// Look for this many; there are `count` in all, as far as known.
	async look(most, count = Infinity) {
		const wanted = Math.min(most, count);
		const begun = Date.now();
		if (!this.isLooking)
			[this.found, this.next] = [[], null];
		this.isLooking = wanted > 0;
		while (this.isLooking && Date.now() - begun < LOOK_MS) {
			const page = await ask("GET", `${this.path}limit=${most - this.found.length}${this.next ? "&after=" + this.next : ""}`);
			this.found.push(...page[this.kind]);
			this.next = page.next;
			this.isLooking = this.next !== null && this.found.length < wanted;
			if (this.isLooking && !this.rows.length)
				this.tell();
		}
		// The former ones are shown until others are known.
		if (!this.isLooking || this.found.length >= this.rows.length)
			this.rows = [...this.found];
	}

	forget() {
		Object.assign(this, {rows: [], found: [], next: null, isLooking: false});
	}

	// Say that there is none only if that is known.
	tell(most = 0) {
		$(this.name + "-none").hidden = this.rows.length > 0 || this.isLooking;
		$(this.name + "-looking").hidden = !this.isLooking;
		if (most)
			$(this.name + "-more").hidden = this.isLooking || !this.next || this.rows.length >= most;
	}
}

// ---- Elements

// Put new rows in place of others. The focus stays on its button: buttons have names in data-focus.
function replace(parent, ...children) {
	const at = parent.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
	const message = $("message");
	const has = parent.contains(message);
	parent.replaceChildren(...children);
	if (has)
		document.querySelector("header").after(message);
	if (has && !message.hidden)
		place();
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

// Show what was asked for: it comes into view as far as it fits, and is what a reader is at.
function reveal(made) {
	made.scrollIntoView({block: made.offsetHeight > innerHeight ? "start" : "nearest"});
	made.focus({preventScroll: true});
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

const WITH_ZONE = {year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit",
	timeZoneName: "short"};

// By the clock here, with the name of its zone.
const timeText = (moment) => new Date(moment).toLocaleString([], WITH_ZONE);

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
		slot.firstChild.textContent = `${number(count)} ${end} in ${spanText(ahead * wheel.span)}`;
	});
	wheel.sum.textContent = number(sum);
	wheel.picture.setAttribute("aria-label", `${number(sum)} ${what} ${end} within ${wheel.name}`);
}

function clearWheels() {
	for (const wheel of WHEELS) {
		showWheel(wheel, new Array(wheel.count).fill(0));
		wheel.sum.textContent = "";
		wheel.picture.removeAttribute("aria-label");
	}
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

// ---- The week

function showMinutes(start, counts) {
	const most = Math.max(1, ...counts);
	const sum = counts.reduce((a, b) => a + b, 0);
	$("minutes").replaceChildren(
		element("h3", {}, `${number(sum)} ${what} in the hour from ${start.toLocaleString()}`),
		element("div", {class: "bars", role: "img", "aria-label": what + " a minute: " + counts.join(" ")},
			...counts.map((count, minute) => {
				const bar = element("span", {title: `${number(count)} in minute ${minute}`});
				bar.style.height = 100 * count / most + "%";
				return bar;
			})));
}

// What comes within a week, minute by minute from a moment on. What is due already counts as of the first minute.
async function weekOf() {
	const asked = new Date();
	const {counts, pace} = await ask("GET", `forecast?span=60&count=${60 * HOURS}`);
	return [asked, counts, pace];
}

// The span, of this many milliseconds after another moment, in which a minute ends: what is due on the hour is of that hour.
const spanOf = (asked, minute, from, ms) => Math.floor((asked.getTime() + 60000 * (minute + 1) - 1 - from) / ms);

const midnight = (asked) => new Date(asked).setHours(0, 0, 0, 0);

async function askMinutes(hour) {
	const [asked, minutes] = await weekOf();
	const from = midnight(asked) + hour * 3600000;
	const counts = new Array(60).fill(0);
	minutes.forEach((count, minute) => {
		const at = spanOf(asked, minute, from, 60000);
		if (at >= 0 && at < 60)
			counts[at] += count;
	});
	showMinutes(new Date(from), counts);
}

// What is said of an hour in which more comes than can be done at this pace, a second.
function excess(count, pace) {
	const times = count / (3600 * pace);
	return times > 1 && isFinite(times) ? `, ${number(Math.round(10 * times) / 10)} times what the workers can do` : "";
}

// A row is a day of the clock here, and a cell one of its hours.
function showWeek(asked, minutes, pace) {
	const begin = midnight(asked);
	const counts = new Array(HOURS).fill(0);
	minutes.forEach((count, minute) => {
		const hour = spanOf(asked, minute, begin, 3600000);
		if (hour < HOURS)
			counts[hour] += count;
	});
	const most = Math.max(1, ...counts);
	const rows = [];
	for (let day = 0; day < 7; day++) {
		const cells = [];
		for (let hour = 24 * day; hour < 24 * day + 24; hour++) {
			const from = new Date(begin + hour * 3600000);
			const over = excess(counts[hour], pace);
			const button = element("button", {
				class: over ? "over" : "",
				"aria-label": `${number(counts[hour])} ${what} in the hour from ${from.toLocaleString()}${over}`,
				title: `${from.toLocaleString()}: ${number(counts[hour])}${over}`,
				"data-hour": hour,
				"data-focus": "hour " + hour,
				onclick: () => attempt(() => askMinutes(hour)),
			});
			button.style.background = `rgba(var(--heat), ${strength(counts[hour], most)})`;
			cells.push(element("td", {}, button));
		}
		rows.push(element("tr", {}, element("th", {scope: "row"},
			new Date(begin + day * 86400000 + 43200000).toLocaleDateString([], {weekday: "short", day: "numeric"})), ...cells));
	}
	replace($("week").tBodies[0], ...rows);
	$("week").tHead.replaceChildren(element("tr", {}, element("th", {}), ...Array.from({length: 24}, (_, hour) =>
		element("th", {scope: "col"}, hour % 6 ? "" :
			new Date(begin + hour * 3600000).toLocaleTimeString([], {hour: "numeric", minute: "2-digit"})))));
}

const askWeek = async () => showWeek(...await weekOf());

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
