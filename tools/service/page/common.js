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
let scope = ""; // the tube of which all is shown; "": of all
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

// Where a message belongs: beside that button, which may have been drawn anew, or beside what has the focus in its place, or
// else in its part.
function place() {
	const {button, focus, part} = pressed;
	const again = focus === undefined ? null : (part ?? document).querySelector(`[data-focus="${CSS.escape(focus)}"]`);
	const next = part?.contains(document.activeElement) ? document.activeElement.closest("button") : null;
	const at = button?.isConnected ? button : again ?? next;
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
		Object.assign(this, {name, kind});
		this.begin(path);
	}

	// Of what is listed from there on, nothing is known.
	begin(path = this.path, from = null) {
		Object.assign(this, {path, from, rows: [], found: [], next: null, isLooking: false, round: {}});
	}

	// Look for this many; there are `count` in all, as far as known. Who asks meanwhile gets the same.
	look(most, count = Infinity) {
		const {round} = this;
		round.under ??= this.lookOn(round, most, count).finally(() => { round.under = null; });
		return round.under;
	}

	async lookOn(round, most, count) {
		const wanted = Math.min(most, count);
		const begun = Date.now();
		if (!this.isLooking)
			[this.found, this.next] = [[], this.from];
		this.isLooking = wanted > 0;
		while (this.isLooking && Date.now() - begun < LOOK_MS) {
			const query = `limit=${most - this.found.length}${this.next ? "&after=" + this.next : ""}`;
			const page = await ask("GET", this.path + (this.path.includes("?") ? "&" : "?") + query);
			if (round !== this.round)
				return;
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

	// Say that there is none only if that is known.
	tell(most = 0) {
		$(this.name + "-none").hidden = this.rows.length > 0 || this.isLooking;
		$(this.name + "-looking").hidden = !this.isLooking;
		if (most)
			$(this.name + "-more").hidden = this.isLooking || !this.next || this.rows.length >= most;
	}
}

// ---- Elements

// What a row, a button or a picture is the same by, when it is drawn anew.
const nameOf = (node) => node.nodeName + " " + (node.dataset?.row ?? node.dataset?.focus ?? "");

// The message stands between elements that are drawn, and is none of them.
const past = (node) => node === $("message") ? node.nextSibling : node;

function drop(node) {
	if (node.contains($("message")))
		document.querySelector("header").after($("message"));
	node.remove();
}

// Make an element as another one is, which is then of no use.
function liken(old, made) {
	if (old.nodeType === Node.TEXT_NODE) {
		if (old.data !== made.data)
			old.data = made.data;
		return;
	}
	for (const {name} of [...old.attributes])
		if (!made.hasAttribute(name))
			old.removeAttribute(name);
	// The policy of the page lets no script set a style as an attribute.
	for (const {name, value} of made.attributes)
		if (name !== "style" && old.getAttribute(name) !== value)
			old.setAttribute(name, value);
	old.style.cssText = made.style.cssText;
	old.onclick = made.onclick;
	renew(old, [...made.childNodes]);
}

// Give an element these children. Those that are there already stay what they are, with focus and selection.
function renew(parent, children) {
	const wanted = new Set(children.map(nameOf));
	for (const node of [...parent.childNodes])
		if (past(node) === node && !wanted.has(nameOf(node)))
			drop(node);
	let at = past(parent.firstChild);
	for (const made of children) {
		let old = at;
		while (old && nameOf(old) !== nameOf(made))
			old = past(old.nextSibling);
		if (!old) {
			parent.insertBefore(made, at);
			continue;
		}
		if (old === at)
			at = past(at.nextSibling);
		else
			parent.insertBefore(old, at);
		liken(old, made);
	}
	while (at) {
		const next = past(at.nextSibling);
		drop(at);
		at = next;
	}
}

// Show rows in place of others. The focus stays where it is; if what has it goes, the row in its place gets it.
function replace(parent, ...children) {
	const active = parent.contains(document.activeElement) ? document.activeElement : null;
	const row = [...parent.children].findIndex((child) => child.contains(active));
	const {parentNode} = $("message");
	const heads = parent.parentElement.tHead?.rows[0]?.cells ?? [];
	for (const cells of children.map((child) => child.cells ?? []))
		[...cells].forEach((cell, index) => heads[index]?.textContent && (cell.dataset.label = heads[index].textContent));
	renew(parent, children);
	if ($("message").parentNode !== parentNode && !$("message").hidden)
		place();
	if (!active || document.activeElement === active)
		return;
	const next = parent.children[Math.min(row, parent.children.length - 1)]?.querySelector("button");
	(active.isConnected ? active : next ?? parent.closest("section").querySelector("h2")).focus({preventScroll: true});
}

function element(name, attributes = {}, ...children) {
	const made = document.createElement(name);
	for (const [key, value] of Object.entries(attributes)) {
		if (key === "onclick")
			made.onclick = value;
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

const CLOCK = {hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit",
	second: "2-digit", timeZoneName: "longOffset"};

// The only form of a time on the page: by the clock of a zone, or of here, with its offset.
function timeText(moment, zone) {
	let parts;
	try {
		parts = new Intl.DateTimeFormat("en", {...CLOCK, timeZone: zone}).formatToParts(new Date(moment));
	} catch {
		return timeText(moment); // the browser does not know the zone
	}
	const {year, month, day, hour, minute, second, timeZoneName} = Object.fromEntries(parts.map(({type, value}) => [type, value]));
	return `${year}-${month}-${day} ${hour}:${minute}:${second} ${timeZoneName.replace("GMT", "") || "+00:00"}`;
}

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

const forecast = (span, count) => `forecast?span=${span}&count=${count}${scope && "&tube=" + encodeURIComponent(scope)}`;

async function askWheels() {
	for (const wheel of WHEELS)
		showWheel(wheel, (await ask("GET", forecast(wheel.span, wheel.count))).counts);
}

// ---- The week

function showMinutes(start, counts) {
	const most = Math.max(1, ...counts);
	const sum = counts.reduce((a, b) => a + b, 0);
	replace($("minutes"),
		element("h3", {}, `${number(sum)} ${what} in the hour from ${timeText(start)}`),
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
	const {counts, pace} = await ask("GET", forecast(60, 60 * HOURS));
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

// The hour that has the map's one place in the order of the Tab key; arrow keys go to others.
let mapHour = new Date().getHours();

function hourButton(from, hour, count, most, over) {
	const button = element("button", {
		class: over ? "over" : null,
		"aria-label": `${number(count)} ${what} in the hour from ${timeText(from)}${over}`,
		title: `${timeText(from)}: ${number(count)}${over}`,
		"data-hour": hour,
		tabindex: hour === mapHour ? 0 : -1,
		onclick: () => attempt(() => askMinutes(hour)),
	});
	button.style.background = `rgba(var(--heat), ${strength(count, most)})`;
	return button;
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
		for (let hour = 24 * day; hour < 24 * day + 24; hour++)
			cells.push(element("td", {}, hourButton(new Date(begin + hour * 3600000), hour, counts[hour], most, excess(counts[hour], pace))));
		const noon = new Date(begin + day * 86400000 + 43200000);
		rows.push(element("tr", {}, element("th", {scope: "row"},
			`${noon.toLocaleDateString("en", {weekday: "short"})} ${noon.getDate()}`), ...cells));
	}
	replace($("week").tBodies[0], ...rows);
	replace($("week").tHead, element("tr", {}, element("th", {}), ...Array.from({length: 24}, (_, hour) =>
		element("th", {scope: "col"}, hour % 6 ? "" : timeText(begin + hour * 3600000).slice(11, 16)))));
}

const askWeek = async () => showWeek(...await weekOf());

// Arrow keys go from hour to hour as they are seen: on a telephone a day is a column.
$("week").addEventListener("keydown", (event) => {
	const [over, down] = matchMedia("(max-width: 40rem)").matches ? [24, 1] : [1, 24];
	const at = Number(event.target.dataset.hour);
	const to = {ArrowLeft: at - over, ArrowRight: at + over, ArrowUp: at - down, ArrowDown: at + down,
		Home: at - at % 24, End: at - at % 24 + 23}[event.key];
	const next = $("week").querySelector(`[data-hour="${to}"]`);
	if (next) {
		next.focus();
		event.preventDefault();
	}
});

$("week").addEventListener("focusin", (event) => {
	const at = event.target.dataset.hour;
	if (at === undefined)
		return;
	$("week").querySelector("[tabindex='0']").tabIndex = -1;
	event.target.tabIndex = 0;
	mapHour = Number(at);
});
