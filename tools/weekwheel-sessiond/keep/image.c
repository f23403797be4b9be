/* Writing an image of all sessions, while they change. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/system.h"
#include "tools/weekwheel-sessiond/keep/keep_internal.h"

/*
 * The bytes of a block, and the bytes after which the file is synced, so that no sync has much to do while clients
 * wait.
 */
enum { BLOCK = 65536, SYNCED = 16 << 20 };

struct keep_writing {
	struct keep *keep;
	int fd;
	int is_last;
	int error; /* an errno */
	unsigned database;
	struct buffer block;
	uint64_t waiting; /* id of the last item of the outbox that was written */
	uint64_t sum;
	uint64_t bytes;
	uint64_t synced;
};

static void write_bytes(struct keep_writing *image, const void *bytes, size_t size)
{
	const char *from = bytes;

	while (size > 0 && !image->error) {
		ssize_t written = write(image->fd, from, size);
		if (written < 0 && errno != EINTR)
			image->error = errno;
		/* An attempt that cannot succeed would be repeated for ever. */
		if (written == 0)
			image->error = ENOSPC;
		if (written > 0) {
			from += written;
			size -= (size_t)written;
			image->bytes += (uint64_t)written;
		}
	}
}

static void write_block(struct keep_writing *image)
{
	unsigned char head[KEEP_BLOCK_HEAD];

	image->sum = keep_format_sum(image->sum, image->block.data, image->block.size);
	keep_format_number(head, image->block.size, 8);
	keep_format_number(head + 8, image->sum, 8);
	write_bytes(image, head, sizeof head);
	write_bytes(image, image->block.data, image->block.size);
	buffer_drop(&image->block, image->block.size);
	if (!image->error && image->bytes - image->synced > SYNCED) {
		image->error = fdatasync(image->fd) != 0 ? errno : 0;
		image->synced = image->bytes;
	}
}

/*
 * The deadline is the one on disk, from which a load after a crash adds what touches may have been left out. So an image
 * changes nothing of what holds for an entry, and no number of crashes adds up.
 */
static int add_entry(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct keep_writing *image = context;
	const struct value *value = found->value;
	struct data_entry entry;

	data_entry_fill(&entry, found);
	if (keep_format_add(&image->block,
	        &(struct keep_entry){image->is_last ? KEEP_LAST : KEEP_SET, image->database, key, length, value->bytes,
	            value->size, entry.ttl, keep_ms_of(image->keep, entry.disk), keep_ms_of(image->keep, entry.end),
	            keep_ms_of(image->keep, entry.deadline), 0}) != 0)
		image->error = ENOMEM;
	return image->error != 0;
}

static void write_database(struct keep_writing *image)
{
	struct ww_session *session = data_map(image->keep->data, image->database);
	uint64_t cursor = 0;

	if (!session)
		return;
	do {
		(void)ww_session_scan(session, &cursor, add_entry, image);
		if (image->block.size >= BLOCK)
			write_block(image);
	} while (cursor && !image->error);
}

static int add_ended(const void *key, size_t length, uint64_t end, uint64_t until, void *context)
{
	struct keep_writing *image = context;

	if (keep_format_add(&image->block, &(struct keep_entry){.kind = KEEP_ENDED,
	                                       .database = image->database,
	                                       .key = key,
	                                       .length = length,
	                                       .value = "",
	                                       .deadline = keep_ms_of(image->keep, until),
	                                       .end = keep_ms_of(image->keep, end)}) != 0)
		image->error = ENOMEM;
	return image->error != 0;
}

/* After all sessions, some of which have expired during the walk, and when all that had expired by then is recalled. */
static void write_ended(struct keep_writing *image)
{
	for (unsigned i = 0; i < data_databases(image->keep->data) && !image->error; i++) {
		uint64_t cursor = 0;
		image->database = i;
		do {
			(void)data_recalled(image->keep->data, i, &cursor, add_ended, image);
			if (image->block.size >= BLOCK)
				write_block(image);
		} while (cursor && !image->error);
	}
}

static void full(void *context)
{
	write_block(context);
}

/*
 * What waits to be delivered before the sessions are walked goes ahead of them: a load takes what it reads of a key later for
 * another session. What leaves the maps during the walk comes behind: so nothing that expires is in neither.
 */
static void write_outbox(struct keep_writing *image)
{
	data_settle_gone(image->keep->data);
	if (keep_outbox_add(image->keep, &image->block, &image->waiting, full, image) != 0)
		image->error = ENOMEM;
}

static void write_all(struct keep_writing *image, uint64_t cut, uint64_t record)
{
	unsigned char head[KEEP_HEAD] = KEEP_MAGIC;

	keep_format_number(head + 8, KEEP_VERSION, 4);
	keep_format_number(head + 12, image->is_last ? KEEP_EXACT : 0, 4);
	keep_format_number(head + 16, cut, 8);
	keep_format_number(head + 24, record, 8);
	image->sum = keep_format_sum(0, head, KEEP_HEAD - 8);
	keep_format_number(head + KEEP_HEAD - 8, image->sum, 8);
	write_bytes(image, head, sizeof head);
	if (keep_clock_add(image->keep, &image->block) != 0)
		image->error = ENOMEM;
	write_outbox(image);
	for (unsigned i = 0; i < data_databases(image->keep->data) && !image->error; i++) {
		image->database = i;
		write_database(image);
	}
	if (!image->error)
		write_outbox(image);
	if (!image->error)
		write_ended(image);
	if (image->block.size > 0)
		write_block(image);
	write_block(image);
	if (!image->error && fsync(image->fd) != 0)
		image->error = errno;
}

/* The disk has no room for another file, so all of the last one has to be read after the image. `writing` is held. */
static void keep_last_file(struct keep *keep)
{
	keep->cut--;
	keep->record = keep->journal.first;
	keep->cut_grown -= keep->journal.offset < keep->cut_grown ? keep->journal.offset : keep->cut_grown;
}

/* All changes noted until now are in the files up to `cut`, and in the maps. Later ones go into the next file. */
static int begin_file(struct keep *keep, int is_last)
{
	int error = keep_log_write(keep);

	/* More of the journal may be read after an image than needed. So failed attempts need no new files. */
	if (keep->is_begun && !is_last)
		return error;
	pthread_mutex_lock(&keep->writing);
	keep->cut = ww_journal_end(&keep->journal, &keep->record);
	keep->cut_grown = keep->grown;
	if (!error)
		error = ww_journal_turn(&keep->journal, is_last);
	keep->is_begun = !error;
	if (error == WW_EFULL && !is_last && keep->batch.size == 0 && keep->journal.files > 0 && keep->cut > 1) {
		keep_last_file(keep);
		error = WW_OK;
	}
	pthread_mutex_unlock(&keep->writing);
	return error;
}

/*
 * Later changes that the image contains must be in the journal on disk before the image counts: it may contain one
 * part of a transaction but not the other. A thread in a transaction holds its stripes until it is noted.
 */
static int sync_changes(struct keep *keep)
{
	int error;

	data_pass(keep->data);
	error = keep_log_write(keep);
	return error ? error : keep_log_sync(keep);
}

static int write_file(struct keep_writing *image)
{
	image->fd =
	    openat(image->keep->folder, "sessions.new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (image->fd < 0)
		return error_of_errno(errno);
	write_all(image, image->keep->cut, image->keep->record);
	buffer_free(&image->block);
	if (close(image->fd) != 0 && !image->error)
		image->error = errno;
	return image->error ? error_of_errno(image->error) : WW_OK;
}

static int give_name(const struct keep *keep)
{
	if (renameat(keep->folder, "sessions.new", keep->folder, "sessions") != 0 || fsync(keep->folder) != 0)
		return error_of_errno(errno);
	return WW_OK;
}

int keep_image_write(struct keep *keep, int is_last)
{
	struct keep_writing image = {.keep = keep, .is_last = is_last};
	int error = begin_file(keep, is_last);

	if (error)
		return error;
	error = write_file(&image);
	if (!error)
		error = sync_changes(keep);
	if (!error)
		error = give_name(keep);
	if (error) {
		/* The journal needs that room. */
		(void)unlinkat(keep->folder, "sessions.new", 0);
		return error;
	}
	keep->is_begun = 0;
	keep->grown -= keep->cut_grown;
	keep->image_bytes = image.bytes;
	return ww_journal_cut(&keep->journal, keep->cut);
}
