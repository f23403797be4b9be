// The schedules of the page: a list with buttons, one with its times, and a form that says what an expression means.
"use strict";

const SCHEDULES = 50;
const MEANS_AFTER_MS = 250;
const SCHEDULES_MOST = 1000;
let scheduleLimit = SCHEDULES;
const schedulesList = new List("schedules", "schedules", "schedules");

const schedulePath = (one) => `tubes/${encodeURIComponent(one.tube)}/schedules/${encodeURIComponent(one.name)}`;

// What a schedule's time is to its people: the clock of its zone, with its offset.
const zoneText = (time) => time.replace("T", " ").replace(/([+-])/g, (sign, _, at) => at > 10 ? " " + sign : sign);

function scheduleActions(one) {
	if (!may("put", one.tube))
		return "";
	const button = (text, work) => element("button", {"data-focus": `${text} ${one.tube} ${one.name}`, "aria-label": `${text} ${one.name}`,
		onclick: () => attempt(async () => {
			const said = await work();
			await askSchedules();
			return said;
		})}, text);
	const post = (verb) => () => ask("POST", `${schedulePath(one)}/${verb}`);
	const run = async () => `Job ${(await post("run")()).id} is put.`;
	const pause = async () => {
		await post("pause")();
		return "It makes no jobs now.";
	};
	const remove = async () => {
		if (confirm(`Remove the schedule ${one.name} of ${one.tube}? Its jobs stay.`))
			await ask("DELETE", schedulePath(one), undefined, match(one));
	};
	return element("span", {class: "actions"}, button("Run", run),
		one.paused ? button("Resume", async () => { await post("resume")(); }) : button("Pause", pause), button("Remove", remove));
}

function nextText(one) {
	if (one.paused)
		return "paused";
	if (!one.next)
		return "none is left";
	const left = (new Date(one.next) - Date.now()) / 1000;
	return timeText(one.next, one.zone) + (left > 0 ? `, in ${spanText(left)}` : "");
}

function showSchedules(schedules) {
	schedules.sort((a, b) => (a.next ?? "z").localeCompare(b.next ?? "z"));
	replace($("schedules"), ...schedules.map((one) => element("tr", {"data-row": `${one.tube} ${one.name}`},
		element("td", {}, element("button", {"data-focus": `show ${one.tube} ${one.name}`,
			onclick: () => attempt(() => showSchedule(one))}, name({key: one.name, key_base64: one.name_base64}))),
		element("td", {}, one.tube), element("td", {}, element("code", {}, one.cron)),
		element("td", {class: "zone"}, one.zone),
		element("td", {class: "text"}, nextText(one)),
		element("td", {}, number(one.made) + (one.skipped ? `, ${number(one.skipped)} left out` : "")),
		element("td", {}, scheduleActions(one)))));
	schedulesList.tell(SCHEDULES_MOST);
}

async function askSchedules() {
	try {
		await schedulesList.look(scheduleLimit);
		showSchedules([...schedulesList.rows]);
	} catch (error) {
		// A server may be built without schedules.
		$("schedules-part").hidden = error instanceof Problem && error.status === 404;
		if (!$("schedules-part").hidden)
			throw error;
	}
}

$("schedules-more").addEventListener("click", () => attempt(async () => {
	scheduleLimit = Math.min(SCHEDULES_MOST, scheduleLimit + SCHEDULES);
	await askSchedules();
}));

const meaning = (cron, zone) => ask("GET", "cron?" + new URLSearchParams(zone ? {expression: cron, zone} : {expression: cron}));

// ---- One

async function showSchedule(listed) {
	const one = await ask("GET", schedulePath(listed));
	const said = await meaning(one.cron, one.zone);
	const terms = [["Schedule", `${one.name} of ${one.tube}`], ["Means", said.words], ["If the former job has not ended", one.overlap],
		["Missed times", one.missed + (one.missed === "skip" ? `, older than ${spanText(one.skip)}` : "")],
		["Group", name({key: one.group, key_base64: one.group_base64})], ["Keep how runs ended", one.keep ? spanText(one.keep) : ""], ["Spread", one.spread ? spanText(one.spread) : ""],
		["From", one.start && timeText(one.start, one.zone)], ["Until", one.end && timeText(one.end, one.zone)],
		["Last time", one.last && timeText(one.last, one.zone)], ["Next times", one.times.map(zoneText).join("\n")]];
	replace($("schedule"),
		element("dl", {}, ...terms.filter(([, value]) => value).flatMap(([term, value]) =>
			[element("dt", {}, term), element("dd", {}, value)])),
		element("pre", {tabindex: 0}, (one.body ?? one.body_base64).slice(0, BODY_SHOWN)),
		element("span", {class: "actions"},
			...!may("put", one.tube) ? [] : [element("button", {"data-focus": "change", onclick: () => changeSchedule(one)}, "Change")],
			element("button", {"data-focus": "close", onclick: () => $("schedule").replaceChildren()}, "Close")));
	reveal($("schedule"));
}

// ---- The form

let changed = null; // the schedule that is in the form, as it was

function changeSchedule(one) {
	const form = $("plan").elements;
	changed = one;
	for (const field of ["name", "tube", "cron", "zone", "overlap", "missed", "group"])
		form[field].value = one[field] ?? "";
	for (const field of ["skip", "keep"])
		form[field].value = one[field] ? one[field] + "s" : "";
	form.body.value = one.body ?? "";
	form.attempts.value = one.attempts || "";
	$("plan-part").open = true;
	form.cron.focus();
	explain();
}

// What the form does not have stays as it was.
function planned(form) {
	const plan = {cron: form.cron.value, zone: form.zone.value || "UTC", body: form.body.value, overlap: form.overlap.value,
		missed: form.missed.value};
	if (form.attempts.value)
		plan.attempts = Number(form.attempts.value);
	if (form.missed.value === "skip")
		plan.skip = form.skip.value;
	for (const field of ["group", "keep"]) {
		if (form[field].value)
			plan[field] = form[field].value;
	}
	if (!changed || changed.name !== form.name.value || changed.tube !== form.tube.value)
		return [plan, {}];
	for (const field of ["spread", "start", "end", "priority", "run", "backoff", "backoff_max", "expire", "expired", "paused"])
		plan[field] = changed[field];
	for (const field of ["body", "group"]) {
		if (changed[field + "_base64"] !== undefined && !plan[field]) {
			plan[field + "_base64"] = changed[field + "_base64"];
			delete plan[field];
		}
	}
	return [plan, match(changed)];
}

$("plan").addEventListener("submit", (event) => {
	const form = event.target.elements;
	event.preventDefault();
	attempt(async () => {
		const [plan, headers] = planned(form);
		const one = {tube: form.tube.value, name: form.name.value};
		const made = await ask("PUT", schedulePath(one), plan, headers);
		changed = null;
		$("plan-said").textContent = `The schedule ${one.name} is ${made.result}.`;
		$("schedule").replaceChildren();
		await askSchedules();
	});
});

let explained = 0;
let waiting = 0;

// Say what the expression means, or what is wrong with it. An answer that comes after a later question is not shown.
async function explain() {
	const form = $("plan").elements;
	const asked = ++explained;
	let text = "";
	if (!form.cron.value)
		return;
	try {
		const said = await meaning(form.cron.value, form.zone.value);
		text = said.words + (said.times.length ? ". Next: " + said.times.slice(0, 3).map(zoneText).join(", ") : ". It never comes.");
	} catch (error) {
		text = error instanceof Problem ? error.detail : "The server does not answer.";
	}
	if (asked === explained)
		$("plan-means").textContent = text;
}

for (const field of ["cron", "zone"])
	$("plan").elements[field].addEventListener("input", () => {
		clearTimeout(waiting);
		waiting = setTimeout(explain, MEANS_AFTER_MS);
	});

$("plan").elements.zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
// Browsers without this list leave people to type.
if (Intl.supportedValuesOf)
	$("plan-part").addEventListener("toggle", () => $("zones").replaceChildren(
		...Intl.supportedValuesOf("timeZone").map((zone) => element("option", {value: zone}))), {once: true});
