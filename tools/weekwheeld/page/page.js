// The page of weekwheeld: asks /v1 and shows what it says. This file has who asks, and how often.
"use strict";

// ---- Who am I, and what may I do

let who = {name: null, grants: []};

const escaped = (text) => text.replace(/[^\w*]/g, "\\$&");
const covers = (pattern, tube) => new RegExp(`^${escaped(pattern).replaceAll("*", ".*")}$`).test(tube);

// Whether the token has the right in this tube, with "*" in all, and without one in any.
const may = (right, tube) => who.grants.some(({rights, tubes}) => rights.includes(right) &&
	tubes.some((pattern) => tube === undefined || (tube === "*" ? pattern === "*" : covers(pattern, tube))));

const grantText = ({rights, tubes}) => (rights.includes("admin") ? "everything" : rights.join(" and ")) + " in " +
	tubes.map((pattern) => pattern === "*" ? "all tubes" : pattern).join(", ");

async function askWho() {
	who = await ask("GET", "token");
	document.body.classList.toggle("known", who.name !== null);
	$("read-only").hidden = who.name !== null;
	$("login").hidden = who.name === null;
	$("who").textContent = who.name === null ? "" : `${who.name}: ${who.grants.map(grantText).join("; ")}`;
	$("put-part").hidden = $("plan-part").hidden = !may("put");
	for (const part of PARTS.filter(({section}) => section))
		$(part.section).closest("section").hidden = !part.needs();
}

// What one token may see is nothing for another.
function forget() {
	ear?.abort();
	who = {name: null, grants: []};
	document.body.classList.remove("known");
	$("who").textContent = "";
	shown = changed = null;
	heard = [];
	lastId = "";
	tubes = limits = [];
	buriedCount = Infinity;
	stopSweeping();
	setScope("");
	schedulesList.begin();
	tell("");
	for (const id of ["tubes", "limits", "jobs", "schedules", "schedule", "job", "minutes", "events"])
		replace($(id));
	for (const part of [$("week").tHead, $("week").tBodies[0]])
		part.replaceChildren();
	for (const id of ["tube-part", "tubes-none", "jobs-none", "schedules-none", "schedules-more"])
		$(id).hidden = true;
	clearWheels();
}

function useAnother(text) {
	useToken(text);
	$("token").value = "";
	forget();
	$("state").textContent = "connecting …";
	refresh().then(listenAgain);
}

$("login").addEventListener("submit", (event) => {
	event.preventDefault();
	useAnother($("token").value.trim());
});

$("forget").addEventListener("click", () => {
	useAnother("");
	$("token").focus();
});

// ---- Going on

const mayCount = () => may("read", scope || "*");

// What is shown, and how often it is asked for (s): without events, with them, and how soon at most after one. What the
// token does not grant is not asked for, and its section is not there.
const PARTS = [
	{ask: askWho, needs: () => true, alone: 60, live: 60, soon: 60},
	{ask: askNumbers, needs: () => may("read"), section: "tubes", alone: 2, live: 15, soon: 1},
	{ask: askWheels, needs: mayCount, section: "wheels", alone: 3, live: 10, soon: 3},
	{ask: askJobs, needs: mayCount, section: "jobs", alone: 10, live: 60, soon: 1},
	{ask: askWeek, needs: mayCount, section: "week", alone: 30, live: 60, soon: 15},
	{ask: askShown, needs: () => may("read"), section: "find", alone: 10, live: 60, soon: 1},
	{ask: askSchedules, needs: () => may("read"), alone: 10, live: 60, soon: 1},
];
let isLive = false;
let trouble = "";

// For those who hear the page.
function announce(text) {
	$("news").textContent = text;
}

async function refresh(parts = PARTS) {
	let problem = "";
	for (const part of parts) {
		const begun = part.at = Date.now();
		part.isStale = false;
		try {
			if (part.needs())
				await part.ask();
		} catch (error) {
			problem = error instanceof Problem ? error.message : "The server does not answer.";
			if (error.status === 401)
				document.body.classList.remove("known");
		}
		part.took = Date.now() - begun;
	}
	if (!problem && !may("read"))
		problem = "The token does not grant 'read': nothing is shown.";
	if (problem)
		$("state").textContent = problem;
	if (problem !== trouble)
		announce(problem || "The server answers again.");
	trouble = problem;
}

// An event has changed what these show.
function stale(...asks) {
	for (const part of PARTS)
		part.isStale ||= asks.includes(part.ask);
}

// What takes long is asked for less often: it takes the server's time, too.
const REST = 10;
let isBusy = false;

async function look() {
	const now = Date.now();
	const span = (part) => part.isStale ? part.soon : isLive ? part.live : part.alone;
	const due = PARTS.filter((part) => now - part.at >= Math.max(1000 * span(part) - 100, REST * part.took));
	if (document.hidden || isBusy || due.length === 0)
		return;
	isBusy = true;
	await refresh(due);
	isBusy = false;
}

for (const span of document.querySelectorAll(".zone-here"))
	span.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone || "here";
WHEELS.forEach(makeWheel);
turnHands();
setInterval(turnHands, 1000);
setInterval(look, 1000);
