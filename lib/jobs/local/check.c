/* Checks a store: everything that must hold between records, indices and counts. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/jobs/local/local_internal.h"

struct check {
	struct jobs_local *jobs;
	ww_jobs_problem_fn *problem;
	void *context;
	int problems;
	uint64_t records;
	uint64_t buried;
	uint64_t keys;
	uint64_t waits[2]; /* on elapsed and wall time */
	uint64_t *waiting; /* by number of tube */
	uint64_t *buried_in;
};

__attribute__((format(printf, 2, 3))) static void tell(struct check *check, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (check->problem)
		check->problem(text, check->context);
	check->problems += check->problems < INT_MAX;
}

static int first(struct check *check, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	return check->jobs->store.ops->seek(check->jobs->store.self, table, (struct store_bytes){"", 0}, key, value);
}

static int next(struct check *check, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	return check->jobs->store.ops->next(check->jobs->store.self, table, key, value);
}

static int has(struct check *check, enum store_table table, const void *key, size_t size)
{
	struct store_bytes value;

	return check->jobs->store.ops->get(check->jobs->store.self, table, (struct store_bytes){key, size}, &value) ==
	       WW_OK;
}

/* ---- From records to indices */

static void check_indices(struct check *check, uint64_t id, const struct job_record *record)
{
	unsigned char key[STORE_KEY_MAX];
	uint64_t found = 0;
	int wall = (record->flags & WW_JOB_WALL) != 0;
	const struct tube *tube = ww_jobs_tube_number(check->jobs, record->tube);

	if (!tube) {
		tell(check, "job %llu is in a tube that does not exist", (unsigned long long)id);
		return;
	}
	if (record->buried) {
		store_write32(key, tube->number);
		store_write64(key + 4, record->buried);
		store_write64(key + 12, id);
		check->buried++;
		check->buried_in[tube->number]++;
		if (!has(check, STORE_BURIED, key, 20))
			tell(check, "job %llu is buried, and no index has it", (unsigned long long)id);
	} else {
		store_write64(key, record->due);
		store_write64(key + 8, id);
		check->waits[wall]++;
		check->waiting[tube->number]++;
		if (!has(check, wall ? STORE_WALL : STORE_DUE, key, 16))
			tell(check, "job %llu would never come due: no index has it", (unsigned long long)id);
	}
	if (!record->key.size)
		return;
	check->keys++;
	if (ww_jobs_key(check->jobs, tube, record->key, &found) || found != id)
		tell(check, "job %llu is not found by its key", (unsigned long long)id);
}

static void check_records(struct check *check)
{
	struct store_bytes key;
	struct store_bytes value;
	struct job_record record;

	for (int error = first(check, STORE_JOBS, &key, &value); !error;
	     error = next(check, STORE_JOBS, &key, &value)) {
		uint64_t id = key.size == 8 ? store_read64(key.data) : 0;
		check->records++;
		if (key.size != 8 || ww_job_record_read(&record, id, value) || record.key.size > WW_JOB_KEY_MAX) {
			tell(check, "the record of job %llu cannot be read", (unsigned long long)id);
			continue;
		}
		if (id >= check->jobs->meta.next_id)
			tell(check, "job %llu has an id that was not given yet", (unsigned long long)id);
		check_indices(check, id, &record);
	}
}

/* ---- Counts: every record is in its index by now, thus a surplus there leads to no record */

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
	} indices[] = {{"due times", STORE_DUE, check->waits[0]},
	    {"due times of the wall clock", STORE_WALL, check->waits[1]}, {"buried jobs", STORE_BURIED, check->buried},
	    {"keys", STORE_KEYS, check->keys}};
	const struct meta *meta = &check->jobs->meta;
	struct tube *tube;
	struct tube *after;

	for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
		uint64_t pairs = count_pairs(check, indices[i].table);
		if (pairs != indices[i].count)
			tell(check, "the index of %s has %llu entries for %llu jobs", indices[i].name,
			    (unsigned long long)pairs, (unsigned long long)indices[i].count);
	}
	HASH_ITER(hh, check->jobs->tubes, tube, after) {
		if (tube->waiting != check->waiting[tube->number] || tube->buried != check->buried_in[tube->number])
			tell(check, "the tube %s counts %llu jobs and %llu buried ones, and has %llu and %llu",
			    tube->name, (unsigned long long)tube->waiting, (unsigned long long)tube->buried,
			    (unsigned long long)check->waiting[tube->number],
			    (unsigned long long)check->buried_in[tube->number]);
	}
	if (meta->accepted - meta->ended != check->records)
		tell(check, "%llu jobs were accepted and %llu have ended: %llu should be there, and %llu are",
		    (unsigned long long)meta->accepted, (unsigned long long)meta->ended,
		    (unsigned long long)(meta->accepted - meta->ended), (unsigned long long)check->records);
}

int ww_jobs_local_check(struct jobs_local *jobs, struct jobs_call *call)
{
	struct check check = {.jobs = jobs, .problem = call->problem, .context = call->context};
	size_t size = (jobs->numbered_room + 1) * sizeof(uint64_t);
	int result = WW_ENOMEM;

	check.waiting = ww_jobs_resize(jobs, NULL, 0, size);
	check.buried_in = ww_jobs_resize(jobs, NULL, 0, size);
	if (check.waiting && check.buried_in) {
		check_records(&check);
		check_counts(&check);
		result = check.problems;
	}
	ww_jobs_give(jobs, check.waiting, size);
	ww_jobs_give(jobs, check.buried_in, size);
	return result;
}
