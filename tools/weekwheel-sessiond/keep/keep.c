/* The folder, the thread that syncs the journal, and the one that writes images: see keep.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/boot.h"
#include "lib/base/time.h"
#include "lib/journal/replay.h"
#include "tools/common/folder.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

/* How long to wait after a failed image: the next one would fill the disk again, and the journal needs room. */
#define REST (10 * WW_SECOND)
#define CLOCK_EVERY (3600 * WW_SECOND)
/* It looks at them as often within that time: a step that nobody noted would count as time off after a power failure. */
enum { CLOCK_LOOKS = 240 };
/* Each killed server leaves a file of a mebibyte, however few sessions it has. With this many, an image is written. */
enum { FILES_LEFT = 16 };
/* The journal could take twice as much. */
#define RECORD_MOST (UINT64_C(1) << 30)

/* ---- The threads */

/* The lock is held. */
static void write_image(struct keep *keep)
{
	uint64_t number = keep->asked;
	int error;

	pthread_mutex_unlock(&keep->lock);
	error = keep_image_write(keep, 0);
	if (error)
		state_begin("image", 0,
		    "an image of the sessions cannot be written to %s: %s; the journal grows until it can", keep->path,
		    keep_log_why(error));
	else
		state_end("image", "images of the sessions are written to %s again", keep->path);
	pthread_mutex_lock(&keep->lock);
	keep->done = number;
	keep->is_failing = error != 0;
	keep->again = error ? time_now(CLOCK_MONOTONIC) + REST : 0;
	if (!error)
		keep->last = (int64_t)time(NULL);
	pthread_cond_broadcast(&keep->wake);
}

/* Syncs do not wait for an image, which may take minutes. */
static void *paint(void *context)
{
	struct keep *keep = context;

	pthread_mutex_lock(&keep->lock);
	while (!keep->is_ending) {
		if (keep->asked != keep->done)
			write_image(keep);
		else
			pthread_cond_wait(&keep->wake, &keep->lock);
	}
	pthread_mutex_unlock(&keep->lock);
	return NULL;
}

/* On a full disk, an image without the deleted sessions may make room. */
static int is_due(const struct keep *keep)
{
	return ((keep->grown > keep->config.grows && keep->grown > keep->image_bytes) ||
	           (keep->is_full == WW_EFULL && keep->is_freed)) &&
	       time_now(CLOCK_MONOTONIC) >= keep->again;
}

/* Sync what was written, and write an image if the journal is long. The lock is held. */
static void tend(struct keep *keep)
{
	keep->has_work = 0;
	pthread_mutex_unlock(&keep->lock);
	if (keep->config.sync == KEEP_INTERVAL)
		(void)keep_log_sync(keep);
	keep_log_turn(keep);
	pthread_mutex_lock(&keep->lock);
	if (keep->asked == keep->done && is_due(keep)) {
		keep->asked++;
		keep->is_freed = 0;
		pthread_cond_broadcast(&keep->wake);
	}
}

/* An idle server notes the clocks: a start after a power failure counts the time since the last record. */
static uint64_t clock_pause(const struct keep *keep)
{
	uint64_t quarter = (uint64_t)keep->config.downtime_max * WW_MILLISECOND / 4;

	return quarter > 0 && quarter < CLOCK_EVERY ? quarter : CLOCK_EVERY;
}

/* Sleep until there is work, and then for an interval more, except at the end; or until it is time to look at the clocks. */
static void wait_for_work(struct keep *keep)
{
	uint64_t since = time_now(CLOCK_MONOTONIC);
	uint64_t pause;

	while (!keep->is_ending && !keep->has_work && !keep->is_full)
		if (time_wait(&keep->wake, &keep->lock, time_add(since, clock_pause(keep) / CLOCK_LOOKS)) ==
		    ETIMEDOUT) {
			keep->is_idle = 1;
			return;
		}
	since = time_now(CLOCK_MONOTONIC);
	do
		/* A server without room tries again each second, however long the interval is. */
		pause = keep->is_full && keep->config.interval > WW_SECOND ? WW_SECOND : keep->config.interval;
	while (!keep->is_ending && time_wait(&keep->wake, &keep->lock, time_add(since, pause)) != ETIMEDOUT);
}

static void *run(void *context)
{
	struct keep *keep = context;
	int looks = 0;

	pthread_mutex_lock(&keep->lock);
	while (!keep->is_ending) {
		keep->is_idle = 0;
		wait_for_work(keep);
		if (keep->has_work || keep->is_freed)
			tend(keep);
		looks = keep->is_idle ? looks + 1 : 0;
		if (looks) {
			pthread_mutex_unlock(&keep->lock);
			keep_log_clock(keep, looks % CLOCK_LOOKS == 0);
			pthread_mutex_lock(&keep->lock);
		}
		if (keep->is_full) {
			pthread_mutex_unlock(&keep->lock);
			keep_log_room(keep);
			pthread_mutex_lock(&keep->lock);
		}
	}
	pthread_mutex_unlock(&keep->lock);
	return NULL;
}

static int save(void *context, int wait)
{
	struct keep *keep = context;
	int result = WW_OK;

	pthread_mutex_lock(&keep->lock);
	if (keep->asked != keep->done) {
		result = WW_EBUSY;
	} else {
		uint64_t number = ++keep->asked;

		pthread_cond_broadcast(&keep->wake);
		while (wait && keep->done < number && !keep->is_ending)
			pthread_cond_wait(&keep->wake, &keep->lock);
		if (wait && (keep->is_failing || keep->done < number))
			result = WW_EIO;
	}
	pthread_mutex_unlock(&keep->lock);
	return result;
}

static int saving(void *context, int64_t *last)
{
	struct keep *keep = context;
	int is_busy;

	pthread_mutex_lock(&keep->lock);
	is_busy = keep->asked != keep->done;
	*last = keep->last;
	pthread_mutex_unlock(&keep->lock);
	return is_busy;
}

static void info(void *context, struct buffer *out)
{
	struct keep *keep = context;

	(void)buffer_format(out,
	    "journal_size:%" PRIu64 "\r\njournal_since_image:%" PRIu64 "\r\njournal_unsynced_changes:%" PRIu64
	    "\r\njournal_last_write_status:%s\r\nimage_size:%" PRIu64 "\r\n",
	    ww_journal_bytes(&keep->journal), (uint64_t)keep->grown, keep->written - keep->synced,
	    ww_fault_final(&keep->fault) || keep->is_full ? "err" : "ok", (uint64_t)keep->image_bytes);
}

/* ---- Beginning and end */

static void keep_free(struct keep *keep)
{
	if (keep->is_open)
		ww_journal_close(&keep->journal);
	if (keep->folder >= 0)
		(void)close(keep->folder);
	ww_fault_destroy(&keep->fault);
	buffer_free(&keep->pending);
	buffer_free(&keep->parts);
	buffer_free(&keep->batch);
	pthread_cond_destroy(&keep->wake);
	pthread_mutex_destroy(&keep->lock);
	pthread_mutex_destroy(&keep->writing);
	pthread_mutex_destroy(&keep->noting);
	free(keep->path);
	free(keep);
}

static struct keep *keep_make(struct data *data, const struct keep_config *config)
{
	struct keep *keep = calloc(1, sizeof *keep);

	if (!keep)
		return NULL;
	keep->data = data;
	keep->config = *config;
	if (!keep->config.record)
		keep->config.record = RECORD_MOST;
	keep->folder = -1;
	keep->ahead = KEEP_UNKNOWN;
	keep->last = (int64_t)time(NULL);
	keep->hooks = (struct data_keep){.save = save, .saving = saving, .info = info, .is_reporting = config->reports};
	keep->boot = data_is_virtual(data) ? 0 : boot_number();
	keep_log_hooks(keep);
	keep_outbox_hooks(keep);
	ww_fault_init(&keep->fault);
	pthread_mutex_init(&keep->noting, NULL);
	pthread_mutex_init(&keep->writing, NULL);
	pthread_mutex_init(&keep->lock, NULL);
	(void)time_cond_init(&keep->wake);
	keep->path = strdup(config->folder);
	return keep;
}

static void end_threads(struct keep *keep, int is_one)
{
	pthread_mutex_lock(&keep->lock);
	keep->is_ending = 1;
	pthread_cond_broadcast(&keep->wake);
	pthread_mutex_unlock(&keep->lock);
	pthread_join(keep->thread, NULL);
	if (!is_one)
		pthread_join(keep->painter, NULL);
}

/* The servers before took room in advance, in files that nobody writes to any more: so there is some for what is deleted. */
static void give_back_room(const struct keep *keep)
{
	const struct replay replay = {
	    .folder = keep->path, .cut = keep->read_from, .last = keep->read_from + (uint64_t)keep->found};

	ww_replay_give_back(&replay);
}

/* Returns 0, or -1 after a message. */
static int begin(struct keep *keep)
{
	int error;

	/* A server that was killed may have left an image that is none, and takes room. */
	(void)unlinkat(keep->folder, "sessions.new", 0);
	keep_log_room(keep);
	if (keep->is_full == WW_EFULL) {
		give_back_room(keep);
		keep_log_room(keep);
	}
	/* Without room the sessions can be read, and the thread looks for it. */
	error = keep->is_full;
	if (error && error != WW_EFULL)
		return message_error("--data %s: the journal cannot be written: %s", keep->path, ww_strerror(error));
	/*
	 * What was recovered is not in a journal that can be read again. And in a folder without an image nobody could see that
	 * the journal was lost: it would be a new one.
	 */
	if (keep->config.recovers || (!error && !keep->image_bytes))
		error = keep_image_write(keep, 0);
	if (error && (error != WW_EFULL || keep->config.recovers))
		return message_error("--data %s: an image cannot be written: %s", keep->path, ww_strerror(error));
	if (keep->found > FILES_LEFT)
		keep->asked = 1;
	if (pthread_create(&keep->thread, NULL, run, keep) == 0) {
		if (pthread_create(&keep->painter, NULL, paint, keep) == 0)
			return 0;
		end_threads(keep, 1);
	}
	return message_error("cannot start the threads that keep the sessions");
}

struct keep *keep_open(struct data *data, const struct keep_config *config)
{
	struct keep *keep = keep_make(data, config);

	if (!keep || !keep->path) {
		message_error("no memory");
	} else if ((keep->folder = folder_take(keep->path)) >= 0 && keep_load(keep) == 0 && begin(keep) == 0) {
		data_set_keep(data, &keep->hooks);
		outbox_set_journal(config->outbox, &keep->outbox_hooks);
		keep_outbox_mark(keep);
		/* Without room it stays noted. */
		(void)keep_log_write(keep);
		return keep;
	}
	if (keep)
		keep_free(keep);
	return NULL;
}

int keep_close(struct keep *keep)
{
	int error;

	if (!keep)
		return 0;
	end_threads(keep, 0);
	/* What expires from now on is in the image, as a session or in the outbox, and not in a journal behind it. */
	outbox_set_journal(keep->config.outbox, NULL);
	error = keep_log_write(keep);
	/* Clients that had to wait for the journal were told, and what expired is reported by the next start. */
	if (error == WW_EFULL && keep_log_sync(keep) == WW_OK)
		message_error(
		    "there is no room for an image of the sessions in %s; the journal has all that was acknowledged",
		    keep->path);
	else if (error || (error = keep_log_sync(keep)) != WW_OK)
		message_error(
		    "the last changes of sessions could not be written to %s: %s", keep->path, ww_strerror(error));
	else if ((error = keep_image_write(keep, 1)) != 0)
		message_error("an image of the sessions could not be written to %s: %s; the journal has all of them",
		    keep->path, ww_strerror(error));
	data_set_keep(keep->data, NULL);
	keep_free(keep);
	return error ? -1 : 0;
}
