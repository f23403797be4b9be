/* Reading image and journal. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/system.h"
#include "lib/journal/format.h"
#include "lib/journal/names.h"
#include "lib/journal/replay.h"
#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/keep/load.h"

enum { FILES_MOST = 4096 };

static void problem(const char *text, void *context)
{
	struct load *load = context;

	load->problems++;
	message_error("%s", text);
}

/* ---- The image */

static int image_is_damaged(struct load *load)
{
	char text[4400];

	(void)snprintf(text, sizeof text, "%s/sessions is damaged at byte %" PRIu64, load->keep->path, load->at);
	problem(text, load);
	return WW_ECORRUPT;
}

/* Returns 0, WW_ECORRUPT at the end of the file, or the system's error. */
static int read_bytes(const struct load *load, void *to, size_t size)
{
	if (fread(to, 1, size, load->file) == size)
		return WW_OK;
	return ferror(load->file) ? error_of_errno(errno) : WW_ECORRUPT;
}

/* Returns 0, or an error, after a message if it is damage. */
static int read_head(struct load *load)
{
	unsigned char head[KEEP_HEAD];
	int error = read_bytes(load, head, sizeof head);

	if (error && error != WW_ECORRUPT)
		return error;
	if (error || memcmp(head, KEEP_MAGIC, 8) != 0)
		return image_is_damaged(load);
	if (keep_format_get(head + 8, 4) < KEEP_OLDEST || keep_format_get(head + 8, 4) > KEEP_VERSION) {
		message_error("%s/sessions has another format: it was written by another version of weekwheel-sessiond",
		    load->keep->path);
		load->is_reported = 1;
		return WW_EVERSION;
	}
	load->sum = keep_format_get(head + KEEP_HEAD - 8, 8);
	load->is_headless = load->sum != keep_format_sum(0, head, KEEP_HEAD - 8);
	if (load->is_headless)
		return image_is_damaged(load);
	load->is_exact = (keep_format_get(head + 12, 4) & KEEP_EXACT) != 0;
	load->cut = keep_format_get(head + 16, 8);
	load->record = keep_format_get(head + 24, 8);
	return WW_OK;
}

static int read_nothing(void *context, const unsigned char *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return WW_OK;
}

/* Deadlines are exact if nothing came after the image: the journal has only the file that says so. */
static void check_exactness(struct load *load)
{
	struct replay replay = {
	    .folder = load->keep->path, .cut = load->cut, .record = load->record, .read = read_nothing};
	uint64_t numbers[2];
	int count = ww_journal_numbers(load->keep->folder, ".", numbers, 2);

	load->is_exact = load->is_exact && count == 1 && ww_replay(&replay) == WW_OK && replay.is_closed;
}

/* Its size is 0 at the end; *sum is what it should have. Errors as those of read_bytes. */
static int read_block(struct load *load, uint64_t *size, uint64_t *sum)
{
	unsigned char head[KEEP_BLOCK_HEAD];
	unsigned char *block;
	int error = read_bytes(load, head, sizeof head);

	if (error)
		return error;
	*size = keep_format_get(head, 8);
	*sum = keep_format_get(head + 8, 8);
	if (*size > load->size - load->at - sizeof head)
		return WW_ECORRUPT;
	block = realloc(load->block, *size + 1);
	if (!block)
		return WW_ENOMEM;
	load->block = block;
	return read_bytes(load, block, *size);
}

static int use_block(struct load *load, size_t size, uint64_t sum)
{
	int error = WW_ECORRUPT;

	if (keep_format_sum(load->sum, load->block, size) == sum)
		error = keep_entries_load(load, load->block, size);
	if (error == WW_ECORRUPT)
		error = image_is_damaged(load);
	/* The next block's sum goes on from the one that this should have. */
	return error == WW_ECORRUPT && load->keep->config.recovers ? WW_OK : error;
}

static int read_blocks(struct load *load)
{
	uint64_t size;
	uint64_t sum;
	int error;

	while ((error = read_block(load, &size, &sum)) == WW_OK) {
		if (size == 0 && keep_format_sum(load->sum, NULL, 0) == sum)
			return WW_OK;
		error = use_block(load, size, sum);
		if (error)
			return error;
		load->sum = sum;
		load->at += KEEP_BLOCK_HEAD + size;
	}
	return error == WW_ECORRUPT ? image_is_damaged(load) : error;
}

/* Returns 0, or an error after a message. Without a file there is none. */
static int read_image(struct load *load)
{
	int fd = openat(load->keep->folder, "sessions", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat about;
	int error;

	load->record = 1;
	if (fd < 0 && errno == ENOENT)
		return WW_OK;
	load->file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!load->file || fstat(fd, &about) != 0) {
		message_error("cannot read %s/sessions: %s", load->keep->path, strerror(errno));
		load->is_reported = 1;
		return WW_EIO;
	}
	load->size = (uint64_t)about.st_size;
	load->keep->image_bytes = load->size;
	error = read_head(load);
	if (!error)
		check_exactness(load);
	/* Each block has a sum, so what is whole is known without the head; where the journal goes on is not. */
	load->at = KEEP_HEAD;
	if (!error || (load->is_headless && load->keep->config.recovers))
		error = read_blocks(load);
	if (error == WW_ECORRUPT && load->keep->config.recovers)
		error = WW_OK;
	(void)fclose(load->file);
	free(load->block);
	return error;
}

/* ---- The journal */

struct reading {
	struct load *load;
	struct replay replay;
};

static void lose(const char *text, void *context)
{
	struct load *load = context;

	load->gaps++;
	problem(text, load);
}

static int read_record(void *context, const unsigned char *bytes, size_t size)
{
	struct reading *reading = context;
	struct load *load = reading->load;
	uint64_t number = reading->replay.record;

	/* Recovery reads what is whole, and may find a record of a former file once more. */
	if (number < load->next)
		return WW_OK;
	load->gaps += number > load->next;
	load->next = number + 1;
	if (size < KEEP_TIME)
		return WW_ECORRUPT;
	load->time = keep_format_get(bytes, KEEP_TIME);
	load->bytes += size;
	return keep_entries_load(load, bytes + KEEP_TIME, size - KEEP_TIME);
}

static int replay_journal(struct load *load)
{
	struct reading reading = {load, {.folder = load->keep->path,
	                                    .cut = load->cut,
	                                    .record = load->record,
	                                    .salvage = load->keep->config.recovers,
	                                    .read = read_record,
	                                    .context = &reading,
	                                    .problem = lose,
	                                    .problem_context = load}};
	int error;

	load->next = load->record;
	error = ww_replay(&reading.replay);
	/* What was recovered goes into an image before anything is acknowledged. */
	if (!error && !load->keep->config.recovers)
		error = ww_replay_settle(&reading.replay);
	if (error)
		return error;
	load->keep->read_from = load->cut;
	load->keep->found = (int)(reading.replay.last - load->cut);
	ww_journal_open(
	    &load->keep->journal, load->keep->path, &load->keep->fault, reading.replay.last, reading.replay.record);
	load->keep->journal.offset = load->keep->config.recovers ? 0 : reading.replay.end;
	load->keep->journal.salt = reading.replay.salt;
	load->keep->journal.kind = JOURNAL_SESSIONS;
	load->keep->journal.fills = load->keep->config.sync == KEEP_ALWAYS;
	load->keep->is_open = 1;
	return WW_OK;
}

/* ---- All */

/*
 * An image without a journal has lost the journal, and a journal whose first file is not number 1 has lost the image. What
 * came behind an image without a head may be lost as well: nobody knows.
 */
static int check_files(struct load *load)
{
	uint64_t numbers[FILES_MOST];
	int count = ww_journal_numbers(load->keep->folder, ".", numbers, FILES_MOST);
	char text[4400];

	if (count < 0 || (load->cut == 0 && count == 0 && !load->is_headless))
		return count < 0 ? count : WW_OK;
	if (count > 0 && (load->cut > 0 || numbers[0] == 1))
		return WW_OK;
	if (load->is_headless)
		(void)snprintf(text, sizeof text, "%s/sessions does not say which file of the journal came next",
		    load->keep->path);
	else if (load->cut > 0)
		(void)snprintf(text, sizeof text, "%s/journal.%" PRIu64 " is missing", load->keep->path, load->cut + 1);
	else
		(void)snprintf(text, sizeof text, "%s/sessions is missing", load->keep->path);
	lose(text, load);
	if (!load->keep->config.recovers)
		return WW_ECORRUPT;
	/* Any file may be the first, and any record. */
	if (load->cut == 0 && count > 0) {
		load->cut = UINT64_MAX;
		load->record = 0;
	}
	return WW_OK;
}

/* Weekwheeld could no longer open what --recover sets aside. A journal of 0.1 does not say whose it is. */
static int refuse_jobs(const struct keep *keep)
{
	static const char *const names[] = {"index.db", "index.db-wal"};
	int has_jobs = ww_journal_is_other(keep->folder, JOURNAL_SESSIONS);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		has_jobs |= faccessat(keep->folder, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (!has_jobs)
		return 0;
	return message_error(
	    "--data %s: weekwheeld keeps its jobs there, and nothing was changed: give another folder. "
	    "If weekwheeld refuses it, 'weekwheel recover %s NEW' saves the jobs",
	    keep->path, keep->path);
}

/* Keep damaged files: somebody may want to read them again. */
static int set_aside(struct keep *keep)
{
	uint64_t numbers[FILES_MOST];
	int count = ww_journal_numbers(keep->folder, ".", numbers, FILES_MOST);
	char from[64];
	char to[80];

	if (mkdirat(keep->folder, "damaged", 0700) != 0)
		return message_error(
		    "%s/damaged: %s: it is from the last time; move it away", keep->path, strerror(errno));
	for (int i = -1; i < count; i++) {
		(void)snprintf(from, sizeof from, i < 0 ? "sessions" : "journal.%" PRIu64, i < 0 ? 0 : numbers[i]);
		(void)snprintf(to, sizeof to, "damaged/%s", from);
		if (linkat(keep->folder, from, keep->folder, to, 0) != 0 && errno != ENOENT)
			return message_error("%s/%s: %s", keep->path, to, strerror(errno));
	}
	return 0;
}

static int load_all(struct load *load)
{
	int error = read_image(load);

	if (!error)
		error = check_files(load);
	if (!error)
		error = replay_journal(load);
	if (!error)
		error = keep_entries_judge(load);
	if (error == WW_ECORRUPT)
		return message_error(
		    "%s is damaged, and nothing was changed: put back a copy of all its files, or start with "
		    "--recover, which loads what is whole and not stale",
		    load->keep->path);
	if (error && !load->is_reported)
		return message_error("%s cannot be read: %s", load->keep->path, ww_strerror(error));
	return error ? -1 : 0;
}

static void log_what_waits(const struct keep *keep)
{
	struct outbox_stats stats;

	outbox_stats(keep->config.outbox, &stats);
	if (stats.waiting && keep->config.reports)
		message_info("%" PRIu64 " expiries wait to be reported", stats.waiting);
	else if (stats.waiting)
		message_warning("%" PRIu64
		                " expiries wait to be reported, and stay in %s until a start with --expired-to",
		    stats.waiting, keep->path);
}

static void warn_of_stale(const struct load *load)
{
	if (load->keep->config.takes_stale)
		message_warning(
		    "%" PRIu64
		    " of them are stale: what is damaged or missing may have deleted them or changed their values; "
		    "FLUSHALL ends all sessions",
		    load->stale);
	else
		message_warning(
		    "%" PRIu64
		    " sessions are left out as stale: what is damaged or missing may have deleted them or changed "
		    "their values; they are in %s/damaged, and --recover-stale would load them",
		    load->stale, load->keep->path);
}

int keep_load(struct keep *keep)
{
	struct load load = {.keep = keep, .now = (uint64_t)data_wall_ms(keep->data)};
	struct ww_session_stats stats;
	int result = refuse_jobs(keep);

	if (result == 0 && keep->config.recovers)
		result = set_aside(keep);
	if (result == 0)
		result = load_all(&load);
	keep_entries_free(&load);
	if (result != 0)
		return -1;
	keep->grown = load.bytes;
	data_stats(keep->data, &stats);
	if (stats.entries || load.expired || load.problems)
		message_info("%" PRIu64 " sessions are back from %s; %" PRIu64 " have expired meanwhile", stats.entries,
		    keep->path, load.expired);
	if (load.stale)
		warn_of_stale(&load);
	if (load.loses_ends)
		message_warning(
		    "sessions from %s had lifetimes, and without --lifetime or --lifetimes touches can keep them for ever",
		    keep->path);
	if (load.begins_lifetimes)
		keep->asked = 1;
	log_what_waits(keep);
	return 0;
}
