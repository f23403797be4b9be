// The page of weekwheeld: asks /v1 and shows what it says.
"use strict";

const BODY_SHOWN = 20000;
const BURIED = 50;

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
	replace($("tubes"), ...tubes.map((tube) => element("tr", {"data-row": tube.name},
		element("th", {scope: "row"}, tube.name),
		...["ready", "delayed", "reserved", "buried"].map((state) => element("td", {}, number(tube[state]))),
		element("td", {}, limitText(limits.filter((limit) => limit.tube === tube.name))),
		element("td", {}, tube.pause_left > 0 ? spanText(tube.pause_left) + " left" : ""))));
	$("tubes-none").hidden = tubes.length > 0;
}

async function askNumbers() {
	const stats = await ask("GET", "stats");
	document.body.classList.toggle("read-only", stats.read_only);
	$("state").textContent = stats.fault ? "The store cannot write: " + stats.fault :
		`${number(stats.ready)} ready, ${number(stats.delayed)} delayed, ${number(stats.reserved)} reserved, ` +
		`${number(stats.buried)} buried`;
	if (stats.buried !== buriedCount)
		stale(askBuried);
	buriedCount = stats.buried;
	showTubes((await ask("GET", "tubes")).tubes, (await ask("GET", "limits")).limits);
}

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
	reveal($("job"));
})}, id);

function showBuried(jobs) {
	replace($("buried"), ...jobs.map((job) => element("tr", {"data-row": job.id},
		element("td", {}, jobButton(job.id)),
		element("td", {}, job.tube), element("td", {}, name(job)), element("td", {class: "text"}, job.error),
		element("td", {}, number(job.reserves)), element("td", {}, actions(job, askBuried)))));
	buried.tell();
}

let buriedCount = Infinity; // as the server counts them
const buried = new List("buried", "jobs", "jobs?state=buried");

async function askBuried() {
	await buried.look(BURIED, buriedCount);
	showBuried(buried.rows);
}

const timesText = (count) => number(count) + (count === 1 ? " time" : " times");

// What happened to a job, as far as it shows.
function story(job) {
	const lines = [["Id", job.id], ["Tube", job.tube], ["Key", name(job)], ["Group", job.group], ["State", job.state],
		["Version", job.version], ["Put", timeText(job.created)]];
	if (job.due)
		lines.push(["Due", `${timeText(job.due)} (${job.clock} time)`]);
	if (job.left > 0)
		lines.push([job.state === "reserved" ? "Lease ends in" : "Due in", spanText(job.left)]);
	if (job.expires)
		lines.push(["Expires", `${timeText(job.expires)}, and is then ${job.expired === "bury" ? "buried" : "dropped"}`]);
	lines.push(["Every", job.every ? spanText(job.every) : ""], ["Priority", job.priority], ["Time to run", spanText(job.run)],
		["Delivered", job.attempts ? `${number(job.reserves)} of at most ${number(job.attempts)} times` : timesText(job.reserves)],
		["Ran out of time", number(job.timeouts)], ["Given back", number(job.releases)], ["Buried", number(job.buries)],
		["Kicked", number(job.kicks)], ["Last error", job.error], ["Body", number(job.length) + " bytes"]);
	return lines.filter(([, value]) => value !== "" && value !== undefined && value !== "0");
}

// What a worker or a push reported: the members of an object, or the text as it is.
function reportOf(text) {
	let said = null;
	try {
		said = JSON.parse(text);
	} catch {
		// It is no JSON.
	}
	if (said === null || typeof said !== "object" || Array.isArray(said))
		return [element("pre", {tabindex: 0}, text)];
	const shown = Object.entries(said).filter(([, value]) => value !== "" && value !== null);
	return [element("dl", {}, ...shown.flatMap(([term, value]) => [element("dt", {}, term),
		element("dd", {}, typeof value === "object" ? JSON.stringify(value) : value)]))];
}

// How the last runs ended, of what was put with "keep".
async function runsOf(query) {
	const {runs} = await ask("GET", query + "limit=10");
	return runs.length === 0 ? [] : [element("h3", {}, "Runs"), element("ol", {class: "runs"}, ...runs.map((run) =>
		element("li", {}, `${run.outcome}, attempt ${run.attempt}, ${timeText(run.ended)}${run.error ? ": " + run.error : ""}`,
			...(run.report ? reportOf(run.report) : []))))];
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
	attempt(async () => {
		await askJob(path);
		reveal($("job"));
	});
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

// What one token may see is nothing for another.
function forget() {
	ear?.abort();
	shown = changed = null;
	heard = [];
	lastId = "";
	buriedCount = Infinity;
	buried.forget();
	schedulesList.forget();
	tell("");
	for (const id of ["tubes", "buried", "schedules", "schedule", "job", "minutes", "events"])
		replace($(id));
	for (const part of [$("week").tHead, $("week").tBodies[0]])
		part.replaceChildren();
	for (const id of ["tubes-none", "buried-none", "schedules-none", "schedules-more"])
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

$("forget").addEventListener("click", () => useAnother(""));

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
		const begun = part.at = Date.now();
		part.isStale = false;
		try {
			await part.ask();
		} catch (error) {
			problem = error instanceof Problem ? error.message : "The server does not answer.";
		}
		part.took = Date.now() - begun;
	}
	if (problem)
		$("state").textContent = problem;
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

WHEELS.forEach(makeWheel);
turnHands();
setInterval(turnHands, 1000);
setInterval(look, 1000);
