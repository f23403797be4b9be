/* The events of jobs are noted as bytes, and read again for the listener when the batch is written. */
#include "lib/jobs/local/events.h"

#include <string.h>

#include "lib/jobs/local/local.h"
#include "lib/jobs/local/memory.h"
#include "lib/jobs/local/records.h"
#include "lib/jobs/local/timeline.h"
#include "lib/jobs/local/tube.h"
#include "lib/jobs/publish.h"

/* If the events of a batch take more than this, one event replaces the last ones and reports their loss. */
enum { NOTED_BYTES_MAX = 4 << 20 };

/* Before its tube, key and error in the buffer. */
struct noted {
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
	    ((kind == WW_EVENT_FINISHED || kind == WW_EVENT_EXPIRED) && !record->period))
		return WW_EVENT_UNKNOWN;
	return record->due > now ? record->due - now : 0;
}

/* Returns 0, or -1 if there is no room for this many more bytes. */
static int make_room(struct jobs_local *jobs, size_t size)
{
	size_t room = jobs->events_room ? 2 * jobs->events_room : 4096;
	void *more;

	if (jobs->events_size + size <= jobs->events_room)
		return 0;
	if (room > NOTED_BYTES_MAX)
		return -1;
	more = ww_jobs_resize(jobs, jobs->events, jobs->events_room, room);
	if (!more)
		return -1;
	jobs->events = more;
	jobs->events_room = room;
	return 0;
}

static void append(struct jobs_local *jobs, const void *bytes, size_t size)
{
	if (size)
		memcpy(jobs->events + jobs->events_size, bytes, size);
	jobs->events_size += size;
}

void ww_jobs_note_event(
    struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id, const struct job_record *record, uint64_t attempt)
{
	struct noted noted = {
	    .id = id, .version = record->version, .attempt = (uint32_t)attempt, .kind = (uint8_t)kind};
	const struct tube *tube;
	struct store_bytes error = {"", 0};

	if (!listens(jobs))
		return;
	tube = ww_jobs_tube_number(jobs, record->tube);
	if (kind == WW_EVENT_RELEASED || kind == WW_EVENT_TIMED_OUT || kind == WW_EVENT_BURIED)
		error = record->error;
	noted.left = left_of(jobs, kind, record);
	noted.tube = tube ? (uint8_t)tube->name_length : 0;
	noted.key = (uint8_t)record->key.size;
	noted.error = (uint8_t)(error.size < WW_JOB_ERROR_MAX ? error.size : WW_JOB_ERROR_MAX);
	if (jobs->events_lost || make_room(jobs, sizeof noted + noted.tube + noted.key + noted.error) != 0) {
		jobs->events_lost = 1;
		return;
	}
	append(jobs, &noted, sizeof noted);
	append(jobs, tube ? tube->name : "", noted.tube);
	append(jobs, record->key.data, noted.key);
	append(jobs, error.data, noted.error);
}

/* A pair of such a job need not be read for anything else. */
void ww_jobs_note_event_of(struct jobs_local *jobs, enum ww_event_kind kind, uint64_t id)
{
	struct job_record record;

	if (listens(jobs) && ww_jobs_read(jobs, id, &record) == WW_OK)
		ww_jobs_note_event(jobs, kind, id, &record, 0);
}

static size_t publish_one(struct jobs_local *jobs, const unsigned char *at)
{
	char tube[WW_TUBE_MAX + 1];
	char error[WW_JOB_ERROR_MAX + 1];
	struct ww_job_event event = {.tube = tube};
	struct noted noted;

	memcpy(&noted, at, sizeof noted);
	at += sizeof noted;
	memcpy(tube, at, noted.tube);
	tube[noted.tube] = '\0';
	memcpy(error, at + noted.tube + noted.key, noted.error);
	error[noted.error] = '\0';
	event.kind = (enum ww_event_kind)noted.kind;
	event.id = noted.id;
	event.version = noted.version;
	event.left = noted.left;
	event.attempt = noted.attempt;
	event.key = at + noted.tube;
	event.key_length = noted.key;
	event.error = noted.error ? error : NULL;
	ww_jobs_publish_event(&jobs->base, &event);
	return sizeof noted + noted.tube + noted.key + noted.error;
}

void ww_jobs_publish_noted(struct jobs_local *jobs)
{
	const struct ww_job_event lost = {.kind = WW_EVENT_LOST, .tube = "", .left = WW_EVENT_UNKNOWN};
	size_t at = 0;

	while (at < jobs->events_size)
		at += publish_one(jobs, jobs->events + at);
	if (jobs->events_lost)
		ww_jobs_publish_event(&jobs->base, &lost);
	ww_jobs_drop_noted(jobs);
	/* Memory is not kept for a batch that was large, or for listeners that have left. */
	if (jobs->events_room > 65536 || (jobs->events && !listens(jobs))) {
		ww_jobs_give(jobs, jobs->events, jobs->events_room);
		jobs->events = NULL;
		jobs->events_room = 0;
	}
}

void ww_jobs_drop_noted(struct jobs_local *jobs)
{
	jobs->events_size = 0;
	jobs->events_lost = 0;
}
