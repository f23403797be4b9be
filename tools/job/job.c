/* The fields of jobs, leases, runs, limits and schedules. scripts/make-openapi reads these tables, too: a field is a row. */
#include "tools/job/job.h"

#include "weekwheel/driver.h"
#include "weekwheel/schedule.h"

const char *const job_states[] = {"invalid", "delayed", "ready", "reserved", "buried", "ended", NULL};
const char *const job_missed[] = {"once", "all", "skip", NULL};
const char *const job_expired[] = {"drop", "bury", NULL};
const char *const job_modes[] = {"replace", "if-absent", "keep-earlier", "keep-later", NULL};
const char *const job_overlaps[] = {"allow", "skip", "wait", NULL};
const char *const job_events[] = {"put", "moved", "cancelled", "due", "started", "finished", "released", "timed-out",
    "returned", "buried", "kicked", "lost", "expired", NULL};

#define SPEC(name) FIELD_PLACE(struct job_request, spec.name)
#define SPEC_OF(name) FIELD_PLACE_OF(struct job_request, spec.name)
#define INFO(name) FIELD_PLACE(struct ww_job_info, name)
#define INFO_OF(name) FIELD_PLACE_OF(struct ww_job_info, name)

#define PUTS (JOB_PUT | JOB_SCHEDULE)

const struct field job_fields[] = {
    {"id", FIELD_ID, .out = INFO(id), .where = JOB_SHOWN},
    {"tube", FIELD_TEXT, .in = SPEC(tube), .out = INFO(tube), .where = JOB_PUT | JOB_SHOWN, .least = 1,
        .most = WW_TUBE_MAX, .initial = "\"default\""},
    {"key", FIELD_BYTES, .in = SPEC_OF(key), .out = INFO_OF(key), .where = JOB_PUT | JOB_SHOWN, .flags = FIELD_MISSING,
        .least = 1, .most = WW_JOB_KEY_MAX, .says = "Unique in its tube. Alone, it replaces a job of that key."},
    {"group", FIELD_BYTES, .in = SPEC_OF(group), .out = INFO_OF(group), .where = PUTS | JOB_LIMIT | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .least = 1, .most = WW_JOB_GROUP_MAX,
        .says = "Groups of a tube take turns, and may have limits."},
    {"headers", FIELD_HEADERS, .in = SPEC_OF(headers), .out = INFO_OF(headers), .where = JOB_PUT | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .since = "0.2",
        .says =
            "Names and values beside the body, such as a trace or a tenant: 16 of visible ASCII, 4096 bytes in all."},
    {"then", FIELD_JOB, .in = SPEC_OF(then), .out = INFO_OF(then), .where = JOB_PUT | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .since = "0.2",
        .says =
            "A job that is put in one write with this one's finish; its delay counts from there. Not with \"every\"."},
    {"version", FIELD_COUNT, .out = INFO(version), .where = JOB_SHOWN, .says = "Grows with each change."},
    {"state", FIELD_WORD, .out = INFO(state), .where = JOB_SHOWN, .least = WW_JOB_DELAYED, .words = job_states},
    {"priority", FIELD_COUNT, .in = SPEC(priority), .out = INFO(priority), .where = PUTS | JOB_RELEASE | JOB_SHOWN,
        .most = UINT32_MAX, .initial = "1024", .says = "Lower is delivered first."},
    {"delay", FIELD_SPAN, .in = SPEC(due), .out = INFO(delay), .where = JOB_PUT | JOB_MOVE | JOB_RELEASE | JOB_SHOWN,
        .says = "Until it is due; a release without it takes the job's backoff."},
    {"at", FIELD_TIME, .in = SPEC(due), .where = JOB_PUT | JOB_MOVE,
        .says = "When it is due, by the wall clock. A zone is needed."},
    {"spread", FIELD_SPAN, .in = FIELD_PLACE(struct job_request, spread), .where = JOB_PUT, .since = "0.2",
        .says = "It is due a part of this later, which its tube and key fix, or its body."},
    {"due", FIELD_DUE, .out = INFO(due), .where = JOB_SHOWN, .says = "When it is due. A buried job is not."},
    {"left", FIELD_SPAN, .out = INFO(left), .where = JOB_SHOWN,
        .says = "Until it is due, until its lease ends, or until its key is free."},
    {"clock", FIELD_CLOCK, .out = INFO(flags), .where = JOB_SHOWN, .says = "That of its due time."},
    {"created", FIELD_TIME, .out = INFO(created), .where = JOB_SHOWN, .flags = FIELD_OR_NONE,
        .says = "When it was put or last replaced."},
    {"run", FIELD_SPAN, .in = SPEC(run), .out = INFO(run), .where = PUTS | JOB_SHOWN, .least = WW_SECOND,
        .initial = "60", .says = "Time to run of a delivery, at least a second."},
    {"every", FIELD_SPAN, .in = SPEC(period), .out = INFO(period), .where = JOB_PUT | JOB_WORD | JOB_SHOWN,
        .flags = FIELD_OR_NONE, .least = WW_MILLISECOND,
        .says = "Elapsed time from one due time to the next; 0: once."},
    {"missed", FIELD_WORD, .in = SPEC(missed), .out = INFO(missed), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .initial = "\"once\"", .words = job_missed,
        .says =
            "What passed while no server worked: one job for the first time, one for each, or none older than \"skip\"."},
    {"skip", FIELD_SPAN, .in = SPEC(skip), .out = INFO(skip), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .says = "With missed skip: times older than this are not delivered."},
    {"attempts", FIELD_COUNT, .in = SPEC(attempts), .out = INFO(attempts), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .most = UINT32_MAX, .says = "Deliveries until it is buried; 0: no limit."},
    {"backoff", FIELD_SPAN, .in = SPEC(backoff), .out = INFO(backoff), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .says = "Delay after the first failed attempt; it doubles with each."},
    {"backoff_max", FIELD_SPAN, .in = SPEC(backoff_max), .out = INFO(backoff_max), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .initial = "3600", .says = "The longest of these delays."},
    {"keep", FIELD_SPAN, .in = SPEC(keep), .out = INFO(keep), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .says = "How long it is kept how each run ended."},
    {"expire", FIELD_SPAN, .in = SPEC(expire), .out = INFO(expire), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .says = "How long after it is due it expires, unless a worker has it; 0: never."},
    {"expired", FIELD_WORD, .in = SPEC(expired), .out = INFO(expired), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .initial = "\"drop\"", .words = job_expired,
        .says = "What becomes of it then: it ends, or it is buried."},
    {"expires", FIELD_DUE, .out = INFO(expires), .where = JOB_SHOWN, .flags = FIELD_OPTIONAL,
        .says = "When it expires."},
    {"code", FIELD_COUNT, .in = SPEC(code), .out = INFO(code), .where = PUTS | JOB_WORD | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .most = WW_JOB_CODE_MAX, .since = "0.2",
        .says = "The version of the code that can do it: workers that know less do not get it; 0: any worker."},
    {"mode", FIELD_WORD, .in = SPEC(key_mode), .where = JOB_PUT, .initial = "\"replace\"", .words = job_modes,
        .says = "What happens if there is a job of the same key."},
    {"debounce", FIELD_SPAN, .in = SPEC(key_span), .where = JOB_PUT, .least = WW_MILLISECOND,
        .says = "Each put moves the job, but at most this long after the first."},
    {"debounced", FIELD_SPAN, .out = INFO(debounce), .where = JOB_SHOWN, .flags = FIELD_OPTIONAL,
        .says = "Since the first put of a job that is debounced."},
    {"unique", FIELD_SPAN, .in = SPEC(key_span), .out = INFO(hold), .where = JOB_PUT | JOB_SHOWN,
        .flags = FIELD_OPTIONAL, .least = WW_MILLISECOND,
        .says = "Keep a job of the same key, and its key for this long after it has finished."},
    {"reserves", FIELD_COUNT, .out = INFO(reserves), .where = JOB_SHOWN, .says = "Deliveries."},
    {"timeouts", FIELD_COUNT, .out = INFO(timeouts), .where = JOB_SHOWN},
    {"releases", FIELD_COUNT, .out = INFO(releases), .where = JOB_SHOWN},
    {"buries", FIELD_COUNT, .out = INFO(buries), .where = JOB_SHOWN},
    {"kicks", FIELD_COUNT, .out = INFO(kicks), .where = JOB_SHOWN},
    {"tries", FIELD_COUNT, .out = INFO(tries), .where = JOB_SHOWN,
        .says = "Failed deliveries of those that \"attempts\" counts."},
    {"error", FIELD_TEXT, .in = FIELD_PLACE(struct job_request, error), .out = INFO(error),
        .where = JOB_RELEASE | JOB_SHOWN, .flags = FIELD_CUT, .most = WW_JOB_ERROR_MAX,
        .says = "Why it was released or buried; at most 255 bytes are kept."},
    {"token", FIELD_ID, .out = INFO(token), .where = JOB_SHOWN, .flags = FIELD_OPTIONAL,
        .says = "Of the delivery that a worker has."},
    {"length", FIELD_COUNT, .out = INFO(body_length), .where = JOB_SHOWN, .says = "Bytes of the body."},
    {"body", FIELD_BODY, .in = SPEC_OF(body), .out = INFO_OF(body), .where = PUTS | JOB_REPORT | JOB_BODY,
        .says = "Any text; a report has at most 4096 bytes."},
    {.name = NULL},
};

_Static_assert(sizeof job_fields / sizeof *job_fields <= 64, "what reads a line has a bit of 64 for each field");

#define LEASE(name) FIELD_PLACE(struct ww_lease, name)
#define LEASE_OF(name) FIELD_PLACE_OF(struct ww_lease, name)

const struct field job_lease_fields[] = {
    {"id", FIELD_ID, .out = LEASE(id)},
    {"tube", FIELD_TEXT, .out = LEASE(tube)},
    {"key", FIELD_BYTES, .out = LEASE_OF(key), .flags = FIELD_OPTIONAL},
    {"token", FIELD_ID, .out = LEASE(token), .says = "What ends the lease."},
    {"attempt", FIELD_COUNT, .out = LEASE(attempt), .says = "1 with the first delivery."},
    {"attempts", FIELD_COUNT, .out = LEASE(attempts)},
    {"priority", FIELD_COUNT, .out = LEASE(priority)},
    {"ends", FIELD_ENDS, .out = LEASE(ends)},
    {"created", FIELD_TIME, .out = LEASE(created), .flags = FIELD_OR_NONE},
    {"missed", FIELD_COUNT, .out = LEASE(missed), .flags = FIELD_OPTIONAL,
        .says = "Further times that this delivery stands for."},
    {"headers", FIELD_HEADERS, .out = LEASE_OF(headers), .flags = FIELD_OPTIONAL, .since = "0.2",
        .says = "What the job has beside its body."},
    {"body", FIELD_BODY, .out = LEASE_OF(body)},
    {.name = NULL},
};

#define RUN(name) FIELD_PLACE(struct ww_job_run, name)
#define RUN_OF(name) FIELD_PLACE_OF(struct ww_job_run, name)

const struct field job_run_fields[] = {
    {"run", FIELD_ID, .out = RUN(number)},
    {"id", FIELD_ID, .out = RUN(job), .says = "Of the job."},
    {"tube", FIELD_TEXT, .out = RUN(tube)},
    {"key", FIELD_BYTES, .out = RUN_OF(key), .flags = FIELD_OR_NONE},
    {"outcome", FIELD_WORD, .out = RUN(outcome), .least = WW_EVENT_FINISHED, .most = WW_EVENT_EXPIRED,
        .words = job_events},
    {"attempt", FIELD_COUNT, .out = RUN(attempt), .says = "1 with the first."},
    {"ended", FIELD_TIME, .out = RUN(ended)},
    {"error", FIELD_TEXT, .out = RUN(error), .says = "Why it was released, timed out or buried."},
    {"length", FIELD_COUNT, .out = RUN(report_length), .since = "0.2", .says = "Bytes of the report."},
    {"report", FIELD_BODY, .out = RUN_OF(report), .where = JOB_BODY, .says = "What its worker said."},
    {.name = NULL},
};

#define LIMIT(name) FIELD_PLACE(struct ww_limit_info, name)

const struct field job_limit_fields[] = {
    {"tube", FIELD_TEXT, .out = LIMIT(ref.tube), .least = 1, .most = WW_TUBE_MAX},
    {"group", FIELD_BYTES, .out = FIELD_PLACE_OF(struct ww_limit_info, ref.group), .flags = FIELD_OPTIONAL, .least = 1,
        .most = WW_JOB_GROUP_MAX},
    {"each", FIELD_TRUTH, .out = LIMIT(ref.each)},
    {"running", FIELD_COUNT, .out = LIMIT(limit.running)},
    {"starts", FIELD_COUNT, .out = LIMIT(limit.starts)},
    {"per", FIELD_SPAN, .out = LIMIT(limit.per)},
    {"burst", FIELD_COUNT, .out = LIMIT(limit.burst), .least = 1, .most = WW_LIMIT_BURST_MAX},
    {"weight", FIELD_COUNT, .out = LIMIT(limit.weight), .least = 1, .most = WW_LIMIT_WEIGHT_MAX, .since = "0.2"},
    {"now_running", FIELD_COUNT, .out = LIMIT(running), .where = JOB_SHOWN},
    {"now_held", FIELD_COUNT, .out = LIMIT(held), .where = JOB_SHOWN},
    {"left", FIELD_SPAN, .out = LIMIT(left), .where = JOB_SHOWN, .says = "Until the next one may start."},
    {.name = NULL},
};

#define PLAN(name) FIELD_PLACE(struct ww_schedule_info, name)
#define PLAN_OF(name) FIELD_PLACE_OF(struct ww_schedule_info, name)

const struct field job_schedule_fields[] = {
    {"tube", FIELD_TEXT, .out = PLAN(spec.tube)},
    {"name", FIELD_BYTES, .out = PLAN(spec.name)},
    {"cron", FIELD_TEXT, .out = PLAN(spec.expression)},
    {"zone", FIELD_TEXT, .out = PLAN(spec.zone)},
    {"paused", FIELD_TRUTH, .out = PLAN(spec.is_paused)},
    {"missed", FIELD_WORD, .out = PLAN(spec.missed), .words = job_missed},
    {"overlap", FIELD_WORD, .out = PLAN(spec.overlap), .words = job_overlaps},
    {"skip", FIELD_SPAN, .out = PLAN(spec.skip)},
    {"spread", FIELD_SPAN, .out = PLAN(spec.spread)},
    {"start", FIELD_TIME, .out = PLAN(spec.start), .flags = FIELD_OR_NONE},
    {"end", FIELD_TIME, .out = PLAN(spec.end), .flags = FIELD_OR_NONE},
    {"anchor", FIELD_TIME, .out = PLAN(anchor), .flags = FIELD_OR_NONE, .since = "0.2",
        .says = "What the times of an interval are counted from."},
    {"priority", FIELD_COUNT, .out = PLAN(spec.priority)},
    {"attempts", FIELD_COUNT, .out = PLAN(spec.attempts)},
    {"run", FIELD_SPAN, .out = PLAN(spec.run)},
    {"backoff", FIELD_SPAN, .out = PLAN(spec.backoff)},
    {"backoff_max", FIELD_SPAN, .out = PLAN(spec.backoff_max)},
    {"keep", FIELD_SPAN, .out = PLAN(spec.keep)},
    {"expire", FIELD_SPAN, .out = PLAN(spec.expire), .flags = FIELD_OPTIONAL},
    {"expired", FIELD_WORD, .out = PLAN(spec.expired), .flags = FIELD_OPTIONAL, .words = job_expired},
    {"code", FIELD_COUNT, .out = PLAN(spec.code), .flags = FIELD_OPTIONAL, .since = "0.2"},
    {"group", FIELD_BYTES, .out = PLAN_OF(spec.group), .flags = FIELD_MISSING},
    {"last", FIELD_TIME, .out = PLAN(last), .flags = FIELD_OR_NONE,
        .says = "The last time that has a job, without its spread."},
    {"made", FIELD_COUNT, .out = PLAN(made), .says = "Times that have got a job."},
    {"skipped", FIELD_COUNT, .out = PLAN(skipped), .says = "Times without one because of the overlap."},
    {"length", FIELD_COUNT, .out = PLAN(spec.body_length), .says = "Bytes of the body."},
    {"body", FIELD_BODY, .out = PLAN_OF(spec.body), .where = JOB_BODY},
    {.name = NULL},
};

const struct field job_schedule_times[] = {
    {"version", FIELD_COUNT, .out = PLAN(version)},
    {"next", FIELD_TIME, .out = PLAN(next), .flags = FIELD_OR_NONE,
        .says = "With its spread; null: it is paused, or none is left."},
    {.name = NULL},
};
