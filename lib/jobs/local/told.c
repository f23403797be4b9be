/* The events of jobs are noted as bytes, and read again for the listener when the batch is written. */
#include "lib/jobs/local/told.h"

#include <string.h>

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/tell.h"

/* If the events of a batch take more than this, one event replaces the last ones and reports their loss. */
enum { TOLD_BYTES_MAX = 4 << 20 };

/* Before its tube, key and error in the buffer. */
struct told {
	uint64_t id;
	uint64_t version;
	uint64_t left;
	uint32_t attempt;
	uint8_t kind;
	uint8_t tube;
	uint8_t key;
	uint8_t error;
};

static int listens(struct jobs_local *jobs)
{
	return ww_jobs_is_heard(&jobs->base);
}

static uint64_t left_of(struct jobs_local *jobs, enum ww_event_kind kind, const struct job_record *record)
{
	uint64_t now = ww_jobs_time(ww_jobs_timeline(jobs, (record->flags & WW_JOB_WALL) != 0));

	if (kind == WW_EVENT_CANCELLED || kind == WW_EVENT_STARTED || kind == WW_EVENT_BURIED ||
	    (kind == WW_EVENT_FINISHED && !record->period))
		return WW_EVENT_UNKNOWN;
	return record->due > now ? record->due - now : 0;
}

/* Returns 0, or -1 if there is no room for so many bytes more. */
static int make_room(struct jobs_local *jobs, size_t size)
{
	size_t room = jobs->told_room ? 2 * jobs->told_room : 4096;
	void *more;

	if (jobs->told_size + size <= jobs->told_room)
		return 0;
	if (room > TOLD_BYTES_MAX)
		return -1;
	more = ww_jobs_resize(jobs, jobs->told, jobs->told_room, room);
	if (!more)
		return -1;
	jobs->told = more;
	jobs->told_room = room;
	return 0;
}

static void append(struct jobs_local *jobs, const void *bytes, size_t size)
{
	if (size)
		memcpy(jobs->told + jobs->told_size, bytes, size);
	jobs->told_size += size;
}

void ww_jobs_tell(
    struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id, const struct job_record *record, uint64_t attempt)
{
	struct told told = {.id = id, .version = record->version, .attempt = (uint32_t)attempt, .kind = (uint8_t)kind};
	const struct tube *tube;
	struct store_bytes error = {"", 0};

	if (!listens(jobs))
		return;
	tube = ww_jobs_tube_number(jobs, record->tube);
	if (kind == WW_EVENT_RELEASED || kind == WW_EVENT_TIMED_OUT || kind == WW_EVENT_BURIED)
		error = record->error;
	told.left = left_of(jobs, kind, record);
	told.tube = tube ? (uint8_t)tube->name_length : 0;
	told.key = (uint8_t)record->key.size;
	told.error = (uint8_t)(error.size < WW_JOB_ERROR_MAX ? error.size : WW_JOB_ERROR_MAX);
	if (jobs->told_lost || make_room(jobs, sizeof told + told.tube + told.key + told.error) != 0) {
		jobs->told_lost = 1;
		return;
	}
	append(jobs, &told, sizeof told);
	append(jobs, tube ? tube->name : "", told.tube);
	append(jobs, record->key.data, told.key);
	append(jobs, error.data, told.error);
}

/* A pair of such a job need not be read for anything else. */
void ww_jobs_tell_read(struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id)
{
	struct job_record record;

	if (listens(jobs) && ww_jobs_read(jobs, id, &record) == WW_OK)
		ww_jobs_tell(jobs, kind, id, &record, 0);
}

static size_t tell_one(struct jobs_local *jobs, const unsigned char *at)
{
	char tube[WW_TUBE_MAX + 1];
	char error[WW_JOB_ERROR_MAX + 1];
	struct ww_job_event event = {.tube = tube};
	struct told told;

	memcpy(&told, at, sizeof told);
	at += sizeof told;
	memcpy(tube, at, told.tube);
	tube[told.tube] = '\0';
	memcpy(error, at + told.tube + told.key, told.error);
	error[told.error] = '\0';
	event.kind = (enum ww_event_kind)told.kind;
	event.id = told.id;
	event.version = told.version;
	event.left = told.left;
	event.attempt = told.attempt;
	event.key = at + told.tube;
	event.key_length = told.key;
	event.error = told.error ? error : NULL;
	ww_jobs_tell_event(&jobs->base, &event);
	return sizeof told + told.tube + told.key + told.error;
}

void ww_jobs_told(struct jobs_local *jobs)
{
	const struct ww_job_event lost = {.kind = WW_EVENT_LOST, .tube = "", .left = WW_EVENT_UNKNOWN};
	size_t at = 0;

	while (at < jobs->told_size)
		at += tell_one(jobs, jobs->told + at);
	if (jobs->told_lost)
		ww_jobs_tell_event(&jobs->base, &lost);
	ww_jobs_untold(jobs);
	/* Memory is not kept for a batch that was large, or for listeners that have left. */
	if (jobs->told_room > 65536 || (jobs->told && !listens(jobs))) {
		ww_jobs_give(jobs, jobs->told, jobs->told_room);
		jobs->told = NULL;
		jobs->told_room = 0;
	}
}

void ww_jobs_untold(struct jobs_local *jobs)
{
	jobs->told_size = 0;
	jobs->told_lost = 0;
}
