// The page of weekwheel-sessiond, and of weekwheel-expirer: asks /v1 and shows what it says. An expirer knows deadlines alone.
"use strict";

const PACES = 60;
const EVERY_S = 2;
const HEAD_BYTES = 12; // of a value, beside what a client set

let former = null; // what was asked before, for what happens in a second
let values = 0; // bytes of all values, when they were counted last
const paces = Array(PACES).fill(0);

function bytesText(bytes) {
	for (const [unit, size] of [["GiB", 1 << 30], ["MiB", 1 << 20], ["KiB", 1 << 10]]) {
		if (bytes >= size)
			return `${(bytes / size).toFixed(1)} ${unit}`;
	}
	return number(bytes) + " B";
}

const plural = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

// ---- Numbers

// How many of something in a second, since what was asked before. A server that was started anew counts from 0.
function pace(stats, what) {
	const span = former ? (stats.uptime_ms - former.uptime_ms) / 1000 : 0;
	return span > 0 ? Math.max(0, stats[what] - former[what]) / span : 0;
}

function showPaces(commands) {
	if (former)
		paces.push(commands);
	paces.splice(0, paces.length - PACES);
	const most = Math.max(1, ...paces);
	$("pace").textContent = `${number(Math.round(commands))} now, at most ${number(Math.round(Math.max(0, ...paces)))} in the last two minutes.`;
	$("paces").setAttribute("aria-label", $("pace").textContent);
	$("paces").replaceChildren(...paces.map((count) => {
		const bar = element("span", {title: number(Math.round(count))});
		bar.style.height = 100 * count / most + "%";
		return bar;
	}));
}

function ofServer(stats) {
	const looked = stats.hits + stats.misses;
	const databases = stats.databases.map((one) => `${number(one.sessions)} in ${one.database}`).join(", ");
	return [["Databases", stats.databases.length > 1 ? databases : ""],
		["Values", bytesText(values + HEAD_BYTES * stats.sessions)],
		["Memory limit", stats.most_bytes ? bytesText(stats.most_bytes) : "none"],
		["Evicted", stats.evicted ? number(stats.evicted) : ""],
		["Lookups that found one", looked ? `${(100 * stats.hits / looked).toFixed(1)} %` : ""],
		["Clients", number(stats.clients)],
		["Received", `${bytesText(stats.received_bytes)}, ${bytesText(Math.round(pace(stats, "received_bytes")))} a second`],
		["Sent", `${bytesText(stats.sent_bytes)}, ${bytesText(Math.round(pace(stats, "sent_bytes")))} a second`]];
}

function ofExpirer(stats) {
	return [...stats.nodes.map((one) => [one.node, number(one.sessions) + (one.exact ? "" : ", catching up")]),
		["Only those due within", stats.window ? spanText(stats.window) : ""]];
}

function showNumbers(stats) {
	const terms = [["Sessions", number(stats.sessions)], ...(stats.nodes ? ofExpirer(stats) : ofServer(stats)),
		["Memory in all", bytesText(stats.resident_bytes)], ["Keys and deadlines", bytesText(stats.map_bytes)],
		["Expired", `${number(stats.expired)}, ${number(Math.round(pace(stats, "expired")))} a second`],
		["Uptime", spanText(stats.uptime_ms / 1000)]];
	replace($("numbers"), ...terms.filter(([, value]) => value).flatMap(([term, value]) =>
		[element("dt", {}, term), element("dd", {}, value)]));
}

async function askNumbers() {
	const stats = await ask("GET", "stats");
	$("state").textContent = (stats.ready ? "" : "Something is wrong: see /readyz. ") +
		`${plural(stats.sessions, "session")}, ` + (stats.nodes ? plural(stats.nodes.length, "master") : plural(stats.clients, "client"));
	$("pace-title").textContent = stats.nodes ? "Changes of keys a second" : "Commands a second";
	if (former && stats.uptime_ms < former.uptime_ms)
		former = null;
	showNumbers(stats);
	showPaces(pace(stats, stats.nodes ? "heard" : "commands"));
	former = stats;
}

// ---- The largest

async function askSessions() {
	const said = await ask("GET", "sessions");
	values = said.value_bytes;
	$("beyond").textContent = `${number(said.later)} end later than in a week, ${number(said.never)} never.`;
	replace($("largest"), ...said.largest.map((one) => element("tr", {},
		element("td", {}, one.key + "…"), element("td", {}, one.database), element("td", {}, bytesText(one.bytes)),
		element("td", {}, one.left === null ? "never" : spanText(one.left)))));
	$("largest-part").hidden = said.other_keys > 0 && said.largest.length === 0;
	$("largest-none").hidden = said.largest.length > 0;
}

// ---- Going on

const PARTS = [
	{ask: askSessions, every: 10},
	{ask: askNumbers, every: EVERY_S},
	{ask: askWheels, every: 5},
	{ask: askWeek, every: 30},
];
let isBusy = false;

async function look() {
	const due = PARTS.filter((part) => Date.now() - (part.at ?? 0) >= 1000 * part.every - 100);
	if (document.hidden || isBusy)
		return;
	isBusy = true;
	for (const part of due) {
		part.at = Date.now();
		try {
			await part.ask();
		} catch (error) {
			$("state").textContent = error instanceof Problem ? error.message : "The server does not answer.";
			$("login").hidden = $("login").hidden && ![401, 403].includes(error.status);
		}
	}
	isBusy = false;
}

$("login").addEventListener("submit", (event) => {
	event.preventDefault();
	useToken($("token").value.trim());
	$("token").value = "";
	PARTS.forEach((part) => { part.at = 0; });
	look();
});

WHEELS.forEach(makeWheel);
turnHands();
setInterval(turnHands, 1000);
setInterval(look, 1000);
look();
