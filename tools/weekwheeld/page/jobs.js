// The jobs of the page: a list in pages, one with its story, and a form to put one.
"use strict";

const BODY_SHOWN = 20000;
const JOBS = 20;

const match = (job) => ({"If-Match": `"${job.version}"`});
const name = (job) => job.key || (job.key_base64 ? job.key_base64 + " (base64)" : "");

// A job that has changed since it was shown is not touched: the server compares versions.
function actions(job, after) {
	const path = "jobs/" + job.id;
	const act = (work) => () => attempt(async () => {
		const said = await work();
		await after();
		return said;
	});
	const move = async () => {
		const delay = prompt("Due in how long? (90s, 1h30m)", "0s");
		if (delay === null)
			return "";
		await ask("PATCH", path, {delay}, match(job));
		return `Job ${job.id} is moved.`;
	};
	const remove = async () => {
		if (!confirm(`Delete job ${job.id}?`))
			return "";
		await ask("DELETE", path, undefined, match(job));
		return `Job ${job.id} is deleted.`;
	};
	const kick = async () => {
		await ask("POST", path + "/kick", undefined, match(job));
		return `Job ${job.id} is kicked.`;
	};
	const button = (text, work) => element("button", {"data-focus": text + " " + job.id, "aria-label": `${text} job ${job.id}`,
		onclick: act(work)}, text);
	const buttons = [];
	if (!may("work", job.tube))
		return "";
	if (job.state === "buried" || job.state === "delayed")
		buttons.push(button("Kick", kick));
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

// ---- The list

const jobsList = new List("jobs", "jobs", "");
let jobsWere = Infinity; // how many there were, as the tubes say, when they were asked for
let pages = []; // where the pages before this one begin

const wanted = () => $("filter").elements;

// How many there are, as far as the numbers of tubes tell.
const jobsAre = () => wanted().key.value || !wanted().state.value ? Infinity :
	countOf(tubes.filter((tube) => !scope || tube.name === scope), wanted().state.value);

function whenText(job) {
	if (job.state === "reserved")
		return `its lease ends in ${spanText(job.left)}`;
	return job.due ? timeText(job.due) + (job.left > 0 ? `, in ${spanText(job.left)}` : "") : "";
}

function showJobs() {
	replace($("jobs"), ...jobsList.rows.map((job) => element("tr", {"data-row": job.id},
		element("td", {}, jobButton(job.id)), element("td", {}, job.tube), element("td", {}, name(job)), element("td", {}, job.state),
		element("td", {}, whenText(job)), element("td", {class: "text"}, job.error), element("td", {}, number(job.reserves)),
		element("td", {}, actions(job, async () => {
			await askNumbers();
			await askJobs();
		})))));
	jobsList.tell();
	$("jobs-page").textContent = pages.length ? ", page " + (pages.length + 1) : "";
	$("jobs-back").hidden = pages.length === 0;
	$("jobs-on").hidden = jobsList.isLooking || !jobsList.next || jobsList.rows.length < JOBS;
}

async function askJobs() {
	jobsWere = jobsAre();
	await jobsList.look(JOBS, pages.length ? Infinity : jobsWere);
	if (jobsList.isLooking)
		stale(askJobs);
	showJobs();
}

// Show another page: the one that begins there, or the first one of what is wanted now.
function jobsFrom(from = null, before = []) {
	const query = new URLSearchParams();
	for (const [argument, value] of [["tube", scope], ["state", wanted().state.value], ["prefix", wanted().key.value]])
		if (value)
			query.append(argument, value);
	pages = before;
	jobsList.begin("jobs?" + query, from);
	replace($("jobs"));
}

const turn = (from, before) => attempt(async () => {
	jobsFrom(from, before);
	const {round} = jobsList;
	do
		await askJobs();
	while (jobsList.isLooking && jobsList.round === round);
});

// The heading says which page it is to those who hear it.
async function turnPage(from, before) {
	await turn(from, before);
	reveal($("jobs-title"));
}

$("jobs-on").addEventListener("click", () => turnPage(jobsList.next, [...pages, jobsList.from]));
$("jobs-back").addEventListener("click", () => turnPage(pages.at(-1), pages.slice(0, -1)));

$("filter").addEventListener("submit", (event) => {
	event.preventDefault();
	turn();
});
$("filter").elements.state.addEventListener("change", () => turn());

jobsFrom();

// ---- One

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
	if (job.code)
		lines.push(["For workers with", `code ${job.code} or a later one`]);
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

