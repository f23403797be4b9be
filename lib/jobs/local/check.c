/* Checks a store: everything that must hold between records, indices and counts. */
#include "lib/jobs/local/check.h"

#include <limits.h>
#include <string.h>

#include "lib/base/report.h"
#include "lib/jobs/local/counts.h"
#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/queue.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/store/slot.h"

/* What a slot has, and what its count says. */
struct checked_slot {
	uint64_t found;
	uint64_t jobs;
};

struct check {
	struct jobs_local *jobs;
	ww_jobs_problem_fn *problem;
	void *context;
	int problems;
	size_t looks;
	uint64_t records; /* of jobs that have not ended */
	uint64_t kept;
	uint64_t keys;
	uint64_t *waiting; /* by number of tube */
	uint64_t *buried_in;
	uint64_t *kept_in;
	struct checked_slot *in_slot; /* by number of tube; the last is ALL_TUBES */
	uint32_t *tubes;              /* that the slot has jobs of */
	size_t tube_count;
	uint64_t slot;
	uint64_t counts; /* that were compared */
};

__attribute__((format(printf, 2, 3))) static void report(struct check *check, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report_message(check->problem, check->context, format, arguments);
	va_end(arguments);
	check->problems += check->problems < INT_MAX;
}

static int first(struct check *check, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	return check->jobs->store.ops->seek(check->jobs->store.self, table, (struct store_bytes){"", 0}, key, value);
}

/* Let go of what was read before, now and then. */
static int next(struct check *check, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	const struct store *store = &check->jobs->store;
	unsigned char from[STORE_KEY_MAX];
	struct store_bytes here = {from, key->size};

	if (++check->looks % LOOKS_AT_ONCE == 0 && key->size <= sizeof from && !check->jobs->writing) {
		memcpy(from, key->data, key->size);
		store->ops->rest(store->self);
		int error = store->ops->seek(store->self, table, here, key, value);
		if (error)
			return error;
	}
	return store->ops->next(store->self, table, key, value);
}

/* ---- From jobs to what leads to them */

static void count_job(struct check *check, enum store_table table, const struct job_record *record, uint32_t tube)
{
	uint64_t *counts = table != STORE_BURIED ? check->waiting : record->ended ? check->kept_in : check->buried_in;

	counts[tube]++;
}

static void check_job(struct check *check, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	const struct store_ops *ops = check->jobs->store.ops;
	struct job_record record;
	struct store_bytes place;
	unsigned char id_key[8];
	uint64_t id = key.size < 8 ? 0 : store_read64((const char *)key.data + key.size - 8);
	uint64_t found = 0;

	if (ww_jobs_read_pair(table, key, value, &id, &record) || record.key.size > WW_JOB_KEY_MAX) {
		check->records++;
		report(check, "the record of job %llu cannot be read", (unsigned long long)id);
		return;
	}
	*(record.ended ? &check->kept : &check->records) += 1;
	if (id >= check->jobs->meta.next_id)
		report(check, "job %llu has an id that was not given yet", (unsigned long long)id);
	store_write64(id_key, id);
	if (ops->get(check->jobs->store.self, STORE_JOBS, (struct store_bytes){id_key, sizeof id_key}, &place) ||
	    !ww_jobs_is_place(id, table, key, place))
		report(check, "job %llu is not found by its id", (unsigned long long)id);
	const struct tube *tube = ww_jobs_tube_number(check->jobs, record.tube);
	if (!tube) {
		report(check, "job %llu is in a tube that does not exist", (unsigned long long)id);
		return;
	}
	count_job(check, table, &record, tube->number);
	if (!record.key.size)
		return;
	check->keys++;
	struct job_record other;
	if (ww_jobs_key(check->jobs, tube, record.key, &found, &other) || found != id)
		report(check, "job %llu is not found by its key", (unsigned long long)id);
}

/* ---- Slots: their jobs come one after the other */

/* The first job of its tube in the slot: look up what is counted. */
static void begin_slot(struct check *check, uint32_t tube, int wall, uint64_t due, uint64_t id)
{
	uint32_t at = tube == ALL_TUBES ? check->jobs->numbered_room : tube;
	struct slot_count count = {0};
	int error = ww_jobs_counts_seek(check->jobs, tube, wall, due, &count);

	if (error || count.slot != slot_of(due))
		count.jobs = 0;
	else
		check->counts++;
	check->in_slot[at].jobs = count.jobs;
	check->tubes[check->tube_count++] = at;
	if (count.jobs && tube != ALL_TUBES && (count.due > due || (count.due == due && count.id > id)))
		report(check, "job %llu is due before what is noted as the first of its tube in that hour",
		    (unsigned long long)id);
}

static void count_in_slot(struct check *check, uint32_t tube, int wall, uint64_t due, uint64_t id)
{
	uint32_t at = tube == ALL_TUBES ? check->jobs->numbered_room : tube;

	if (!check->in_slot[at].found++)
		begin_slot(check, tube, wall, due, id);
}

static void end_slot(struct check *check)
{
	for (size_t i = 0; i < check->tube_count; i++) {
		struct checked_slot *slot = &check->in_slot[check->tubes[i]];
		const struct tube *tube = ww_jobs_tube_number(check->jobs, check->tubes[i]);
		if (slot->found != slot->jobs)
			report(check, "%s: %llu jobs are counted in the hour %llu, and it has %llu",
			    tube ? tube->name : "all tubes", (unsigned long long)slot->jobs,
			    (unsigned long long)check->slot, (unsigned long long)slot->found);
		*slot = (struct checked_slot){0};
	}
	check->tube_count = 0;
}

static void check_table(struct check *check, enum store_table table)
{
	struct store_bytes key;
	struct store_bytes value;
	struct job_record record;
	uint64_t id;

	for (int error = first(check, table, &key, &value); !error; error = next(check, table, &key, &value)) {
		check_job(check, table, key, value);
		if (table == STORE_BURIED || ww_jobs_read_pair(table, key, value, &id, &record) ||
		    !ww_jobs_tube_number(check->jobs, record.tube))
			continue;
		if (slot_of(record.due) != check->slot)
			end_slot(check);
		check->slot = slot_of(record.due);
		count_in_slot(check, (uint32_t)record.tube, table == STORE_WALL, record.due, id);
		count_in_slot(check, ALL_TUBES, table == STORE_WALL, record.due, id);
	}
	end_slot(check);
}

/* ---- Counts: every job is found by now, thus a surplus leads to no job */

static uint64_t count_pairs(struct check *check, enum store_table table)
{
	struct store_bytes key;
	struct store_bytes value;
	uint64_t count = 0;

	for (int error = first(check, table, &key, &value); !error; error = next(check, table, &key, &value))
		count++;
	return count;
}

static void check_counts(struct check *check)
{
	const struct {
		const char *name;
		enum store_table table;
		uint64_t count;
	} indices[] = {{"ids", STORE_JOBS, check->records + check->kept}, {"keys", STORE_KEYS, check->keys},
	    {"slots", STORE_COUNTS, check->counts}};
	const struct meta *meta = &check->jobs->meta;
	struct tube *tube;
	struct tube *after;

	for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
		uint64_t pairs = count_pairs(check, indices[i].table);
		if (pairs != indices[i].count)
			report(check, "the index of %s has %llu entries, and %llu belong there", indices[i].name,
			    (unsigned long long)pairs, (unsigned long long)indices[i].count);
	}
	HASH_ITER(hh, check->jobs->tubes, tube, after) {
		if (tube->waiting != check->waiting[tube->number] || tube->buried != check->buried_in[tube->number])
			report(check, "the tube %s counts %llu jobs and %llu buried ones, and has %llu and %llu",
			    tube->name, (unsigned long long)tube->waiting, (unsigned long long)tube->buried,
			    (unsigned long long)check->waiting[tube->number],
			    (unsigned long long)check->buried_in[tube->number]);
		if (tube->kept != check->kept_in[tube->number])
			report(check, "the tube %s counts %llu ended jobs that are kept, and has %llu", tube->name,
			    (unsigned long long)tube->kept, (unsigned long long)check->kept_in[tube->number]);
	}
	if (meta->accepted - meta->ended != check->records)
		report(check, "%llu jobs were accepted and %llu have ended: %llu should be there, and %llu are",
		    (unsigned long long)meta->accepted, (unsigned long long)meta->ended,
		    (unsigned long long)(meta->accepted - meta->ended), (unsigned long long)check->records);
}

struct check_call {
	ww_jobs_problem_fn *problem;
	void *context;
};

static int check_store(struct jobs_local *jobs, void *arguments)
{
	const struct check_call *call = arguments;
	struct check check = {.jobs = jobs, .problem = call->problem, .context = call->context};
	size_t size = (jobs->numbered_room + 1) * sizeof(uint64_t);
	size_t slots_size = (jobs->numbered_room + 1) * sizeof *check.in_slot;
	size_t tubes_size = (jobs->numbered_room + 1) * sizeof *check.tubes;
	int result = WW_ENOMEM;

	check.waiting = ww_jobs_resize(jobs, NULL, 0, size);
	check.buried_in = ww_jobs_resize(jobs, NULL, 0, size);
	check.kept_in = ww_jobs_resize(jobs, NULL, 0, size);
	check.in_slot = ww_jobs_resize(jobs, NULL, 0, slots_size);
	check.tubes = ww_jobs_resize(jobs, NULL, 0, tubes_size);
	if (check.waiting && check.buried_in && check.kept_in && check.in_slot && check.tubes) {
		check_table(&check, STORE_DUE);
		check_table(&check, STORE_WALL);
		check_table(&check, STORE_BURIED);
		check_counts(&check);
		result = check.problems;
	}
	ww_jobs_give(jobs, check.waiting, size);
	ww_jobs_give(jobs, check.buried_in, size);
	ww_jobs_give(jobs, check.kept_in, size);
	ww_jobs_give(jobs, check.in_slot, slots_size);
	ww_jobs_give(jobs, check.tubes, tubes_size);
	return result;
}

int ww_jobs_local_check(struct ww_jobs *handle, ww_jobs_problem_fn *problem, void *context)
{
	struct check_call call = {problem, context};

	return ww_jobs_submit(local_of(handle), check_store, &call);
}
