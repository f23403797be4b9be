// The tubes of the page: a list, and one that is chosen, of which the wheels, the week and the jobs then are.
"use strict";

const STATES = ["ready", "delayed", "reserved", "buried"];
const TUBES = 100;
const SWEPT = 100;

let tubes = [];
let limits = [];
let buriedCount = Infinity;

const tubePath = (tube) => "tubes/" + encodeURIComponent(tube);
const countOf = (some, state) => some.reduce((sum, tube) => sum + tube[state], 0);
const pauseText = (tube) => tube.pause_left > 0 ? spanText(tube.pause_left) + " left" : "";

const unknownText = (tube) => tube.unknown_code ?
	`${number(tube.unknown_code)} ready that no worker knows, from code ${tube.lowest_unknown_code} on` : "";

// ---- Limits

const ofWhat = (limit) => limit.each ? "each group" :
	limit.group || limit.group_base64 ? "group " + name({key: limit.group, key_base64: limit.group_base64}) : "";

const limitText = (limit) => [
	limit.running ? `${number(limit.running)} at once` : "",
	limit.starts ? `${number(limit.starts)} in ${spanText(limit.per)}` : "",
	limit.starts && limit.burst > 1 ? `${number(limit.burst)} in a burst` : "",
	limit.weight > 1 ? `${number(limit.weight)} turns for one` : "",
	ofWhat(limit),
	limit.now_held ? `${number(limit.now_held)} held` : "",
].filter((text) => text).join(", ");

// ---- The list

function showTubes() {
	const part = $("tube-find").elements.name.value.trim();
	const found = tubes.filter((tube) => tube.name.includes(part));
	replace($("tubes"), ...found.slice(0, TUBES).map((tube) => element("tr", {"data-row": tube.name},
		element("th", {scope: "row"}, element("button", {"data-focus": "tube " + tube.name, "aria-pressed": tube.name === scope,
			onclick: () => attempt(() => choose(tube.name === scope ? "" : tube.name))}, tube.name)),
		...STATES.map((state) => element("td", {}, number(tube[state]))),
		element("td", {}, limits.filter((limit) => limit.tube === tube.name).map(limitText).join("; ")),
		element("td", {}, [pauseText(tube), unknownText(tube)].filter((text) => text).join("; ")))));
	$("tubes-none").hidden = tubes.length > 0;
	$("tubes-more").textContent = found.length > TUBES ? `${number(found.length - TUBES)} more: type a part of the name.` : "";
}

async function askNumbers() {
	({tubes} = await ask("GET", "tubes"));
	({limits} = await ask("GET", "limits"));
	const fault = may("read", "*") ? (await ask("GET", "stats")).fault : null;
	$("state").textContent = fault ? "The store cannot write: " + fault :
		STATES.map((state) => `${number(countOf(tubes, state))} ${state}`).join(", ");
	const buried = countOf(tubes, "buried");
	if (buried > buriedCount)
		announce(`Now ${number(buried)} jobs are buried.`);
	buriedCount = buried;
	if (jobsAre() !== jobsWere)
		stale(askJobs);
	showTubes();
	showTube();
}

$("tube-find").addEventListener("input", showTubes);
$("tube-find").addEventListener("submit", (event) => {
	event.preventDefault();
	attempt(() => choose(event.target.elements.name.value.trim()));
});

// ---- The one that is chosen

// From now on the page is of this tube; "": of all.
function setScope(tube) {
	scope = tube;
	for (const span of document.querySelectorAll(".of"))
		span.textContent = tube && ": " + tube;
	$("limit").reset();
	$("purge").reset();
	$("minutes").replaceChildren();
	if (tube)
		$("put").elements.tube.value = $("find").elements.tube.value = tube;
	jobsFrom();
	showTubes();
	showTube();
}

async function choose(tube) {
	setScope(tube);
	await refresh();
	if (tube)
		reveal($("tube-title"));
}

// Do something to the tube, and show what became of it.
const change = (work) => attempt(async () => {
	const said = await work();
	await refresh();
	return said;
});

function limitRow(limit) {
	const which = ofWhat(limit) || "the tube";
	const end = async () => {
		await ask("DELETE", tubePath(limit.tube) + "/limit", refOf(limit));
		return `The limit of ${which} has ended.`;
	};
	const buttons = may("admin", limit.tube) ? [["End", () => change(end)]] : [];
	if (buttons.length && !limit.group_base64)
		buttons.unshift(["Change", () => fillLimit(limit)]);
	return element("tr", {"data-row": which}, element("th", {scope: "row"}, which), element("td", {}, limitText({...limit, each: false, group: "", group_base64: ""})),
		element("td", {}, number(limit.now_running)),
		element("td", {}, element("span", {class: "actions"}, ...buttons.map(([text, onclick]) =>
			element("button", {"data-focus": `${text} ${which}`, "aria-label": `${text} the limit of ${which}`, onclick}, text)))));
}

const refOf = (limit) => limit.each ? {each: true} : limit.group_base64 ? {group_base64: limit.group_base64} :
	limit.group ? {group: limit.group} : {};

function fillLimit(limit) {
	const form = $("limit").elements;
	form.of.value = limit.each ? "each" : limit.group ? "group" : "";
	form.group.value = limit.group ?? "";
	form.running.value = limit.running || "";
	form.starts.value = limit.starts || "";
	form.per.value = limit.starts ? limit.per + "s" : "";
	form.burst.value = limit.starts ? limit.burst : "";
	form.weight.value = limit.weight > 1 ? limit.weight : "";
	form.running.focus();
}

// What the token does not grant is not there, and its right is named.
function showTube() {
	const tube = tubes.find(({name}) => name === scope) ?? {name: scope, ready: 0, delayed: 0, reserved: 0, buried: 0, pause_left: 0};
	const own = limits.filter((limit) => limit.tube === scope);
	const lacks = [["work", "kick or purge"], ["admin", "pause it or change limits"]].filter(([right]) => !may(right, scope));
	$("tube-part").hidden = !scope;
	$("tube-title").textContent = "Tube " + scope;
	replace($("tube-numbers"), ...STATES.map((state) => [state, number(tube[state])]).concat([["pause", pauseText(tube) || "none"]],
		tube.unknown_code ? [["of unknown code", unknownText(tube)]] : [])
		.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]));
	$("tube-lacks").textContent = lacks.map(([right, does]) => `The token does not grant '${right}' here: you cannot ${does}.`).join(" ");
	$("kick-all").hidden = $("purge").hidden = !may("work", scope);
	$("pause").hidden = $("limit").hidden = !may("admin", scope);
	$("resume").hidden = $("pause").hidden || !tube.pause_left;
	$("limits-table").hidden = own.length === 0;
	replace($("limits"), ...own.map(limitRow));
}

$("tube-close").addEventListener("click", () => attempt(async () => {
	const button = `[data-focus="${CSS.escape("tube " + scope)}"]`;
	await choose("");
	($("tubes").querySelector(button) ?? $("tubes-title")).focus();
}));

$("pause").addEventListener("submit", (event) => {
	event.preventDefault();
	change(async () => {
		await ask("POST", tubePath(scope) + "/pause", {span: event.target.elements.span.value});
		return "It is paused.";
	});
});

$("resume").addEventListener("click", () => change(async () => {
	await ask("POST", tubePath(scope) + "/resume");
	$("pause").elements.span.focus();
	return "It goes on.";
}));

$("limit").addEventListener("submit", (event) => {
	const form = event.target.elements;
	event.preventDefault();
	change(async () => {
		const limit = form.of.value === "each" ? {each: true} : form.of.value ? {group: form.group.value} : {};
		for (const field of ["running", "starts", "burst", "weight"])
			if (form[field].value)
				limit[field] = Number(form[field].value);
		if (form.per.value)
			limit.per = form.per.value;
		await ask("PUT", tubePath(scope) + "/limit", limit);
		return "The limit is set.";
	});
});

// ---- All its jobs

let sweeping = null; // what is under way: it ends by itself once it is told to stop

function stopSweeping() {
	if (sweeping)
		sweeping.isStopped = true;
}

// The jobs in these states as they are now: what is put from then on is none of them.
async function findAll(own, states) {
	const path = `jobs?tube=${encodeURIComponent(scope)}&limit=${SWEPT}${states.map((state) => "&state=" + state).join("")}`;
	const found = [];
	let after = null;
	do {
		const {jobs, next} = await ask("GET", path + (after ? "&after=" + after : ""));
		found.push(...jobs.map(({id, version}) => ({id, version})));
		after = next;
		$("sweep-said").textContent = `${number(found.length)} found …`;
	} while (after && !own.isStopped);
	return found;
}

// Do something with each job, some at a time. One that changes meanwhile is left as it is.
async function sweepAll(own, found, done, work) {
	let count = 0, left = 0;
	while (count + left < found.length && !own.isStopped) {
		const ends = await Promise.allSettled(found.slice(count + left, count + left + SWEPT).map(work));
		const failed = ends.filter(({status}) => status === "rejected").map(({reason}) => reason);
		const fault = failed.find((reason) => ![404, 409, 412].includes(reason.status));
		count += ends.length - failed.length;
		left += failed.length;
		$("sweep-said").textContent = `${number(count)} ${done} …`;
		if (fault)
			throw fault;
	}
	return `${number(count)} ${done}${left ? `, ${number(left)} changed meanwhile` : ""}${own.isStopped ? "; stopped" : ""}.`;
}

async function sweep(states, done, work) {
	if (sweeping)
		return "Something is under way.";
	const own = sweeping = {isStopped: false};
	$("stop").hidden = false;
	try {
		return await sweepAll(own, await findAll(own, states), done, work);
	} finally {
		$("sweep-said").textContent = "";
		if (document.activeElement === $("stop"))
			$("kick-all").focus();
		$("stop").hidden = true;
		sweeping = null;
	}
}

$("stop").addEventListener("click", stopSweeping);

$("kick-all").addEventListener("click", () => change(() =>
	sweep(["buried"], "kicked", (job) => ask("POST", `jobs/${job.id}/kick`, undefined, match(job)))));

$("purge").addEventListener("submit", (event) => {
	event.preventDefault();
	change(async () => {
		if (event.target.elements.name.value !== scope)
			throw new Problem({detail: "This is not the name of the tube: nothing is deleted."});
		event.target.reset();
		return sweep(["ready", "delayed", "buried"], "deleted", (job) => ask("DELETE", "jobs/" + job.id, undefined, match(job)));
	});
});
