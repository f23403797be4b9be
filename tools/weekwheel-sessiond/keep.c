/* Sessions over a restart: see keep.h. */
#include "tools/weekwheel-sessiond/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tools/common/message.h"
#include "tools/service/buffer.h"
#include "tools/service/state.h"

#define MAGIC "wwsessd\n"

enum { VERSION = 1, HEAD = 24, BLOCK_HEAD = 16, RECORD_HEAD = 32, BLOCK = 65536 };

struct keep {
	struct data *data;
	struct data_keep hooks;
	char *path;
	int folder;
	uint64_t every;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* something is asked for, or has been done */
	uint64_t asked;      /* snapshots, each by its number */
	uint64_t begun;
	uint64_t done;
	int is_failing; /* the last one failed */
	int is_ending;
	int64_t last; /* s of wall time: when the last one was complete */
	_Atomic uint64_t changes;
	uint64_t written; /* changes that were made when the last one began */
};

/* ---- Numbers */

static void write_number(unsigned char *to, uint64_t number, int size)
{
	for (int i = 0; i < size; i++)
		to[i] = (unsigned char)(number >> 8 * i);
}

static uint64_t read_number(const unsigned char *from, int size)
{
	uint64_t number = 0;

	for (int i = 0; i < size; i++)
		number |= (uint64_t)from[i] << 8 * i;
	return number;
}

static uint64_t sum_of(uint64_t before, const void *bytes, size_t size)
{
	return XXH3_64bits_withSeed(bytes, size, before);
}

/* A deadline is never early by being rounded. */
static uint64_t wall_of(const struct data *data, uint64_t deadline)
{
	return deadline == DATA_NEVER ? DATA_NEVER : (uint64_t)data_to_wall_ms(data, deadline + WW_MILLISECOND - 1);
}

static uint64_t deadline_of(const struct data *data, uint64_t wall_ms)
{
	return wall_ms == DATA_NEVER ? DATA_NEVER : data_from_wall_ms(data, (int64_t)wall_ms);
}

/* ---- Writing */

struct keep_writing {
	struct keep *keep;
	FILE *file;
	unsigned database;
	struct buffer block;
	uint64_t sum;
	uint64_t entries;
	int error; /* an errno */
};

static void write_bytes(struct keep_writing *writer, const void *bytes, size_t size)
{
	if (!writer->error && size && fwrite(bytes, 1, size, writer->file) != size)
		writer->error = errno ? errno : EIO;
}

static void write_block(struct keep_writing *writer)
{
	unsigned char head[BLOCK_HEAD];

	writer->sum = sum_of(writer->sum, writer->block.data, writer->block.size);
	write_number(head, writer->block.size, 8);
	write_number(head + 8, writer->sum, 8);
	write_bytes(writer, head, sizeof head);
	write_bytes(writer, writer->block.data, writer->block.size);
	buffer_drop(&writer->block, writer->block.size);
}

static int write_entry(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct keep_writing *writer = context;
	const struct data *data = writer->keep->data;
	const struct value *value = found->value;
	unsigned char head[RECORD_HEAD] = {0};
	struct data_entry entry;

	data_entry_fill(&entry, found);
	head[0] = (unsigned char)writer->database;
	write_number(head + 2, length, 2);
	write_number(head + 4, value->size, 4);
	write_number(head + 8, entry.ttl, 8);
	write_number(head + 16, wall_of(data, entry.deadline), 8);
	write_number(head + 24, wall_of(data, entry.end), 8);
	if (buffer_append(&writer->block, head, sizeof head) || buffer_append(&writer->block, key, length) ||
	    buffer_append(&writer->block, value->bytes, value->size))
		writer->error = ENOMEM;
	writer->entries++;
	return writer->error != 0;
}

static void write_database(struct keep_writing *writer)
{
	struct ww_session *session = data_map(writer->keep->data, writer->database);
	uint64_t cursor = 0;

	if (!session)
		return;
	do {
		(void)ww_session_scan(session, &cursor, write_entry, writer);
		if (writer->block.size >= BLOCK)
			write_block(writer);
	} while (cursor && !writer->error);
}

static void write_all(struct keep_writing *writer)
{
	unsigned char head[HEAD] = MAGIC;

	write_number(head + 8, VERSION, 4);
	writer->sum = sum_of(0, head, HEAD - 8);
	write_number(head + HEAD - 8, writer->sum, 8);
	write_bytes(writer, head, sizeof head);
	for (unsigned i = 0; i < data_databases(writer->keep->data) && !writer->error; i++) {
		writer->database = i;
		write_database(writer);
	}
	if (writer->block.size > 0)
		write_block(writer);
	write_block(writer);
	if (!writer->error && (fflush(writer->file) != 0 || fsync(fileno(writer->file)) != 0))
		writer->error = errno;
}

/* Returns an errno. */
static int write_snapshot(struct keep *keep)
{
	struct keep_writing writer = {.keep = keep};
	int fd = openat(keep->folder, "sessions.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	writer.file = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!writer.file)
		return errno;
	write_all(&writer);
	buffer_free(&writer.block);
	if (fclose(writer.file) != 0 && !writer.error)
		writer.error = errno;
	if (!writer.error &&
	    (renameat(keep->folder, "sessions.new", keep->folder, "sessions") != 0 || fsync(keep->folder) != 0))
		writer.error = errno;
	return writer.error;
}

/* ---- The thread that writes */

/* The lock is held. */
static void save_once(struct keep *keep)
{
	uint64_t number = keep->begun = keep->asked;
	uint64_t changes = keep->changes;
	int error;

	pthread_mutex_unlock(&keep->lock);
	error = write_snapshot(keep);
	if (error)
		state_begin("save", 0,
		    "sessions cannot be written to %s: %s; a crash now loses what has changed since the last time",
		    keep->path, strerror(error));
	else
		state_end("save", "sessions are written to %s again", keep->path);
	pthread_mutex_lock(&keep->lock);
	keep->done = number;
	keep->is_failing = error != 0;
	if (!error) {
		keep->written = changes;
		keep->last = (int64_t)time(NULL);
	}
	pthread_cond_broadcast(&keep->wake);
}

static void *run(void *context)
{
	struct keep *keep = context;
	struct timespec until;

	pthread_mutex_lock(&keep->lock);
	while (!keep->is_ending) {
		int late = 0;

		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += (time_t)(keep->every / WW_SECOND);
		until.tv_nsec += (long)(keep->every % WW_SECOND);
		if (until.tv_nsec >= (long)WW_SECOND) {
			until.tv_nsec -= (long)WW_SECOND;
			until.tv_sec++;
		}
		while (!keep->is_ending && keep->asked == keep->done && !late)
			late = pthread_cond_timedwait(&keep->wake, &keep->lock, &until) == ETIMEDOUT;
		if (!keep->is_ending && keep->asked == keep->done && keep->changes != keep->written)
			keep->asked++;
		if (!keep->is_ending && keep->asked != keep->done)
			save_once(keep);
	}
	pthread_mutex_unlock(&keep->lock);
	return NULL;
}

/* ---- What data.c calls */

static const char *refuses(void *context)
{
	(void)context;
	return NULL;
}

static void changed(void *context)
{
	struct keep *keep = context;

	atomic_fetch_add_explicit(&keep->changes, 1, memory_order_relaxed);
}

static void changed_record(void *context, const struct data_record *record)
{
	(void)record;
	changed(context);
}

static void changed_key(void *context, unsigned database, const void *key, size_t length)
{
	(void)database;
	(void)key;
	(void)length;
	changed(context);
}

static void changed_name(void *context, const struct data_record *record, const void *from, size_t from_length)
{
	(void)record;
	(void)from;
	(void)from_length;
	changed(context);
}

static void changed_database(void *context, unsigned database)
{
	(void)database;
	changed(context);
}

static void nothing(void *context)
{
	(void)context;
}

static int settle(void *context)
{
	(void)context;
	return WW_OK;
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

/* ---- Loading */

struct keep_reading {
	struct keep *keep;
	FILE *file;
	uint64_t sum;
	uint64_t at; /* bytes that were good */
	uint64_t entries;
	uint64_t expired;
	unsigned char *block;
};

static int restore(struct keep_reading *loader, const unsigned char *from, size_t length, size_t size)
{
	struct data *data = loader->keep->data;
	struct data_record record = {.database = from[0], .key = from + RECORD_HEAD, .length = length};

	record.ttl = read_number(from + 8, 8);
	record.deadline = deadline_of(data, read_number(from + 16, 8));
	record.end = deadline_of(data, read_number(from + 24, 8));
	if (record.database >= data_databases(data))
		return message_error("%s/sessions has database %u: start the server with --databases %u or more",
		    loader->keep->path, record.database, record.database + 1);
	if (record.deadline <= data_now(data)) {
		loader->expired++;
		return 0;
	}
	loader->entries++;
	if (data_restore(data, &record, from + RECORD_HEAD + length, size) == WW_OK)
		return 0;
	return message_error(
	    "%s/sessions has more sessions than there is memory for, or than --maxmemory allows", loader->keep->path);
}

/* Returns 0, -1 after a message, or 1: it is damaged. */
static int load_records(struct keep_reading *loader, const unsigned char *at, size_t size)
{
	while (size > 0) {
		size_t length = size >= RECORD_HEAD ? (size_t)read_number(at + 2, 2) : 0;
		size_t value = size >= RECORD_HEAD ? (size_t)read_number(at + 4, 4) : 0;

		if (size < RECORD_HEAD || size - RECORD_HEAD < length + value)
			return 1;
		if (restore(loader, at, length, value) != 0)
			return -1;
		at += RECORD_HEAD + length + value;
		size -= RECORD_HEAD + length + value;
	}
	return 0;
}

/* Returns as load_records, or 2 at the end. */
static int load_block(struct keep_reading *loader, uint64_t left)
{
	unsigned char head[BLOCK_HEAD];
	unsigned char *block;
	uint64_t size;

	if (fread(head, 1, sizeof head, loader->file) != sizeof head)
		return 1;
	size = read_number(head, 8);
	if (size > left - sizeof head)
		return 1;
	block = realloc(loader->block, size + 1);
	if (!block)
		return message_error("no memory to read %s/sessions", loader->keep->path);
	loader->block = block;
	if (fread(block, 1, size, loader->file) != size)
		return 1;
	loader->sum = sum_of(loader->sum, block, size);
	if (loader->sum != read_number(head + 8, 8))
		return 1;
	loader->at += sizeof head + size;
	return size == 0 ? 2 : load_records(loader, block, size);
}

static int load_all(struct keep_reading *loader, uint64_t size)
{
	unsigned char head[HEAD];
	int result = 1;

	if (fread(head, 1, sizeof head, loader->file) == sizeof head && memcmp(head, MAGIC, 8) == 0) {
		loader->sum = sum_of(0, head, HEAD - 8);
		if (loader->sum == read_number(head + HEAD - 8, 8))
			result = 0;
		if (result == 0 && read_number(head + 8, 4) != VERSION)
			return message_error(
			    "%s/sessions was written by a later version of weekwheel-sessiond", loader->keep->path);
		loader->at = HEAD;
	}
	while (result == 0)
		result = size - loader->at < BLOCK_HEAD ? 1 : load_block(loader, size - loader->at);
	if (result == 1)
		return message_error("%s/sessions is damaged at byte %" PRIu64
		                     ": put a copy of it there, or move it away to begin without sessions",
		    loader->keep->path, loader->at);
	return result == 2 ? 0 : -1;
}

static int load(struct keep *keep)
{
	struct keep_reading loader = {.keep = keep};
	int fd = openat(keep->folder, "sessions", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat about;
	int result;

	if (fd < 0 && errno == ENOENT)
		return 0;
	loader.file = fd >= 0 ? fdopen(fd, "r") : NULL;
	if (!loader.file || fstat(fd, &about) != 0)
		return message_error("cannot read %s/sessions: %s", keep->path, strerror(errno));
	result = load_all(&loader, (uint64_t)about.st_size);
	free(loader.block);
	(void)fclose(loader.file);
	if (result == 0)
		message_info("%" PRIu64 " sessions are back from %s; %" PRIu64 " have expired meanwhile",
		    loader.entries, keep->path, loader.expired);
	return result;
}

/* ---- Beginning and end */

static int take_folder(struct keep *keep)
{
	if (mkdir(keep->path, 0700) != 0 && errno != EEXIST)
		return message_error("--data %s: %s", keep->path, strerror(errno));
	keep->folder = open(keep->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (keep->folder < 0)
		return message_error("--data %s: %s", keep->path, strerror(errno));
	if (flock(keep->folder, LOCK_EX | LOCK_NB) != 0)
		return message_error(
		    "--data %s: another server has this folder: end it, or give another folder", keep->path);
	return 0;
}

static void keep_free(struct keep *keep)
{
	if (keep->folder >= 0)
		(void)close(keep->folder);
	pthread_cond_destroy(&keep->wake);
	pthread_mutex_destroy(&keep->lock);
	free(keep->path);
	free(keep);
}

static struct keep *keep_make(struct data *data, const char *folder, uint64_t every)
{
	struct keep *keep = calloc(1, sizeof *keep);
	pthread_condattr_t attributes;

	if (!keep)
		return NULL;
	keep->data = data;
	keep->folder = -1;
	keep->every = every;
	keep->last = (int64_t)time(NULL);
	keep->hooks = (struct data_keep){.context = keep,
	    .refuses = refuses,
	    .set = changed_record,
	    .touch = changed_record,
	    .erase = changed_key,
	    .rename = changed_name,
	    .clear = changed_database,
	    .begin = nothing,
	    .commit = nothing,
	    .save = save,
	    .saving = saving,
	    .settle = settle};
	pthread_mutex_init(&keep->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&keep->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	keep->path = strdup(folder);
	return keep;
}

struct keep *keep_open(struct data *data, const char *folder, uint64_t every)
{
	struct keep *keep = keep_make(data, folder, every);

	if (!keep || !keep->path) {
		message_error("no memory");
	} else if (take_folder(keep) == 0 && load(keep) == 0) {
		if (pthread_create(&keep->thread, NULL, run, keep) == 0) {
			data_set_keep(data, &keep->hooks);
			return keep;
		}
		message_error("cannot start a thread that writes sessions");
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
	pthread_mutex_lock(&keep->lock);
	keep->is_ending = 1;
	pthread_cond_broadcast(&keep->wake);
	pthread_mutex_unlock(&keep->lock);
	pthread_join(keep->thread, NULL);
	error = write_snapshot(keep);
	if (error)
		message_error("sessions could not be written to %s: %s; those of the last time are there", keep->path,
		    strerror(error));
	data_set_keep(keep->data, NULL);
	keep_free(keep);
	return error ? -1 : 0;
}
