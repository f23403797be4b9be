/* The command import: puts the jobs that export wrote into a store, in batches. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/command.h"
#include "tools/common/memory.h"
#include "tools/common/message.h"
#include "tools/common/progress.h"
#include "tools/common/suggest.h"
#include "tools/weekwheel/input/input.h"
#include "tools/weekwheel/input/keys.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/store/line.h"
#include "tools/weekwheel/store/store.h"

/* A batch ends with the first of these: its jobs, or the bytes of their headers and bodies (fewer in a shared store). */
enum { BATCH_JOBS = 1000, BATCH_BYTES = 16 << 20, SHARED_BYTES = 4 << 20 };

/* Messages about single lines; keys of a batch; the largest room of a body that is kept for the next line. */
enum { MESSAGES_MAX = 20, KEYS_MAX = 2048, BODY_KEPT = 1 << 16 };

/* A line in a batch. */
struct import_entry {
	struct job_line line;
	uint64_t number;
};

struct import {
	struct store_place place;
	const char *file;   /* "-": standard input */
	const char *source; /* its name in messages */
	int replace, json;
	struct opened_store store;
	int is_open, is_refused;
	struct input input;
	struct import_entry **entries; /* BATCH_JOBS of them, made as they are needed */
	struct ww_job_put *puts;       /* one for each entry */
	const struct ww_job_info **was;
	struct keys *keys; /* of the batch, after the names of their tubes */
	size_t jobs;       /* in the batch */
	uint64_t bytes;    /* of their headers and bodies */
	int64_t shift;
	uint64_t number;            /* of the line */
	uint64_t begun;             /* the first line of the batch that is being written; 0: none */
	uint64_t added, substitute; /* committed: new jobs, and jobs in place of others */
	uint64_t first, last;       /* new ids */
	uint64_t left_out;
	uint64_t limits_set;
};

/* main hands the command line to another command if it has --from, which is only here for the help. */
enum { FROM = 1 };

static const struct option table[] = {
    {FROM, 0, "from", "URL", "move the jobs of another server to weekwheeld:\n'weekwheel import --from URL --help'"},
    {JOBS_FLAG(struct import, replace), 'r', "replace", NULL,
        "replace jobs of the same tube and key, instead of\nleaving out those of the file"},
    {JOBS_FLAG(struct import, json), 'j', "json", NULL, "write the summary as JSON"},
    PLACE_OPTIONS,
    {PLACE_SHARDS, 0, "redis-shards", "N", "parts of a new store; 16"},
    JOBS_HELP_OPTION,
};

__attribute__((format(printf, 3, 4))) static int leave_out(
    struct import *import, uint64_t number, const char *format, ...)
{
	char text[LINE_PROBLEM + 300];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (import->left_out++ < MESSAGES_MAX)
		message_line("%s:%" PRIu64 ": %s", import->source, number, text);
	return 0;
}

/* An existing store keeps its number of shards. */
static void warn_of_shards(const struct import *import)
{
	uint64_t wanted = import->place.shards;
	uint32_t has = wanted ? store_redis_shards(&import->store) : 0;

	if (wanted && has != wanted)
		message_line("warning: --redis-shards %" PRIu64 " changes nothing: the store was made with %" PRIu32
		             "; another --redis-prefix names a new one",
		    wanted, has);
}

/* Return 0, or -1 after a message. */
static int open_place(struct import *import)
{
	int error;

	if (import->is_open)
		return 0;
	error = store_open(&import->store, &import->place, 0);
	if (error) {
		import->is_refused = 1;
		store_refused(&import->place, error);
		return -1;
	}
	import->is_open = 1;
	warn_of_shards(import);
	import->shift = store_shift(&import->store);
	return 0;
}

/* A directory that is missing may be a mistake. It is made with the first line that is right, or of a file without lines. */
static int is_missing(const struct import *import)
{
	return import->place.path && access(import->place.path, F_OK) != 0 && errno == ENOENT;
}

/* Give up, and say which lines were not put. */
static int stop(struct import *import, int error)
{
	char text[STORE_REASON];

	store_reason(text, sizeof text, &import->place, error);
	if (import->begun && import->store.is_shared)
		message_error("%s\nSome of lines %" PRIu64 " to %" PRIu64 " of %s may have been put, and none after "
		              "them.",
		    text, import->begun, import->number, import->source);
	else if (import->begun)
		message_error(
		    "%s\nLine %" PRIu64 " of %s and those after it were not put.", text, import->begun, import->source);
	else
		message_error("%s", text);
	return -1;
}

/* ---- Batches */

/* A job was not put, since another has its key. It makes room, if it may. */
static int put_instead(struct import *import, const struct import_entry *entry, struct ww_job_put *put)
{
	const struct ww_job_spec *spec = &entry->line.spec;
	const struct ww_job_ref ref = {.tube = spec->tube, .key = spec->key, .key_length = spec->key_length};
	const struct ww_job_info *const was = &entry->line.info;
	struct ww_job_put again = {.spec = spec};
	int result;

	if (!import->replace)
		return leave_out(import, entry->number,
		    "job %" PRIu64 " has the same key%s; expected another, or --replace", put->id,
		    put->result == WW_PUT_ENDED ? ", which is not free yet, although it has ended" : "");
	result = ww_jobs_cancel(import->store.jobs, &ref);
	if (result >= 0 || result == WW_ENOTFOUND)
		result = ww_jobs_put_again(import->store.jobs, &again, &was, 1);
	if (!result)
		result = again.result;
	*put = again;
	put->result = result < 0 ? result : WW_PUT_REPLACED;
	return result < 0 ? result : WW_OK;
}

/* Handle the result of a job of the batch. */
static int settle(struct import *import, const struct import_entry *entry, struct ww_job_put *put)
{
	if (put->result == WW_EOVERFLOW)
		return leave_out(import, entry->number, "it is due in more than 146 years; expected an earlier 'due'");
	/* Each member was checked before. Other errors are no fault of this job. */
	if (put->result < 0)
		return put->result;
	return put->result >= WW_PUT_KEPT ? put_instead(import, entry, put) : WW_OK;
}

static void count(struct import *import)
{

	for (size_t i = 0; i < import->jobs; i++) {
		const struct ww_job_put *put = &import->puts[i];

		import->substitute += put->result == 1;
		import->added += put->result == 0;
		if (put->result)
			continue;
		import->first = import->first && import->first < put->id ? import->first : put->id;
		import->last = import->last > put->id ? import->last : put->id;
	}
}

static void forget(struct import *import)
{

	for (size_t i = 0; i < import->jobs; i++)
		if (import->entries[i]->line.room.capacity > BODY_KEPT)
			buffer_free(&import->entries[i]->line.room);
	keys_free(import->keys);
	import->keys = keys_new();
	import->jobs = 0;
	import->bytes = 0;
}

static int end_batch(struct import *import)
{
	struct ww_jobs *jobs = import->store.jobs;
	int committed;
	int error;

	if (!import->jobs) {
		forget(import);
		return 0;
	}
	import->begun = import->entries[0]->number;
	error = ww_jobs_begin(jobs);
	if (error)
		return stop(import, error);
	for (size_t i = 0; i < import->jobs; i++) {
		import->puts[i] = (struct ww_job_put){.spec = &import->entries[i]->line.spec};
		import->was[i] = &import->entries[i]->line.info;
	}
	error = ww_jobs_put_again(jobs, import->puts, import->was, import->jobs);
	for (size_t i = 0; i < import->jobs && !error; i++)
		error = settle(import, import->entries[i], &import->puts[i]);
	committed = ww_jobs_commit(jobs);
	if (error || committed)
		return stop(import, error ? error : committed);
	count(import);
	forget(import);
	return 0;
}

/* ---- Limits */

static int set_limit(struct import *import, const struct ww_limit_info *info)
{
	int error = ww_jobs_limit_set(import->store.jobs, &info->ref, &info->limit);

	import->begun = 0;
	if (error == WW_EINVAL && info->limit.weight > 1)
		return leave_out(import, import->number, "groups in Redis have no weights");
	import->limits_set += !error;
	return error ? stop(import, error) : 0;
}

static int take_limit(struct import *import, const char *text, size_t size)
{
	struct job_line line = {.room = {0}};
	int is_wrong = line_read_limit(&line, text, size);
	int failed = is_wrong ? leave_out(import, import->number, "%s", line.problem) : open_place(import);

	if (!is_wrong && !failed)
		failed = set_limit(import, &line.limit);
	buffer_free(&line.room);
	return failed;
}

/* ---- A line */

/*
 * Return whether the batch has a job of this tube and key. Add it otherwise. Such a line must wait until the batch is
 * written: then the store knows the key, and jobs of one key are put in order.
 */
static int is_in_batch(struct import *import, const struct ww_job_spec *spec)
{
	char text[WW_TUBE_MAX + 1 + WW_JOB_KEY_MAX];
	size_t tube = strlen(spec->tube) + 1; /* with a NUL, which parts it from the key */
	size_t known = keys_count(import->keys);

	memcpy(text, spec->tube, tube);
	memcpy(text + tube, spec->key, spec->key_length);
	return keys_intern(import->keys, text, tube + spec->key_length) < known;
}

/* Store in *id the job of the store that has this key, or 0. */
static int find_same(struct import *import, const struct ww_job_spec *spec, uint64_t *id)
{
	const struct ww_job_ref ref = {.tube = spec->tube, .key = spec->key, .key_length = spec->key_length};
	struct ww_job_info info;
	int error = ww_jobs_peek(import->store.jobs, &ref, &info, NULL);

	*id = error ? 0 : info.id;
	/* Writing to a directory would report any other error again. */
	return error == WW_ENOTFOUND || !import->store.is_shared ? WW_OK : error;
}

/* Whether a job that has ended still has something to say: its key is taken. */
static int is_held(struct import *import, const struct job_line *line)
{
	const struct ww_job_spec *spec = &line->spec;
	uint64_t now = 0;

	(void)ww_jobs_now(import->store.jobs, 0, &now);
	return spec->flags & WW_JOB_AT ? spec->due + spec->key_span >= now + WW_MILLISECOND
	                               : line->info.left >= WW_MILLISECOND;
}

/* Returns 0 if there is nothing to put any more. */
static int set_time(struct import *import, struct import_entry *entry)
{
	struct ww_job_spec *spec = &entry->line.spec;
	uint64_t *expires = &entry->line.info.expires;
	const int64_t shift = import->shift;

	if (spec->flags & WW_JOB_AT && !(spec->flags & WW_JOB_WALL))
		spec->due = shift > 0 && spec->due < (uint64_t)shift ? 0 : spec->due - (uint64_t)shift;
	if (*expires && !(spec->flags & WW_JOB_WALL))
		*expires = shift > 0 && *expires <= (uint64_t)shift ? 1 : *expires - (uint64_t)shift;
	return entry->line.info.state != WW_JOB_ENDED || is_held(import, &entry->line);
}

static int check_key(struct import *import, const struct import_entry *entry, uint64_t *same)
{
	const struct ww_job_spec *spec = &entry->line.spec;
	int error;

	*same = 0;
	if (!spec->key_length)
		return 0;
	/* Keys of lines that were left out stay in the set: bound it. */
	if (keys_count(import->keys) >= KEYS_MAX || is_in_batch(import, spec)) {
		if (end_batch(import))
			return -1;
		(void)is_in_batch(import, spec);
	}
	error = import->replace ? WW_OK : find_same(import, spec, same);
	return error ? stop(import, error) : 0;
}

static int take_line(struct import *import, const char *text, size_t size)
{
	struct import_entry *entry = import->entries[import->jobs];
	size_t place = import->jobs;
	char excerpt[60];
	uint64_t same;

	if (strspn(text, " \t") >= size)
		return 0;
	if (line_is_limit(text, size))
		return take_limit(import, text, size);
	if (!entry)
		entry = import->entries[place] = memory_zeroed(1, sizeof *entry);
	entry->number = import->number;
	if (line_read(&entry->line, text, size))
		return leave_out(import, entry->number, "%s", entry->line.problem);
	if (open_place(import))
		return -1;
	if (check_key(import, entry, &same))
		return -1;
	message_excerpt(excerpt, sizeof excerpt, (const char *)entry->line.info.key, entry->line.spec.key_length);
	if (same)
		return leave_out(import, entry->number,
		    "job %" PRIu64 " of tube %s has the key %s already; expected another, or --replace", same,
		    entry->line.info.tube, excerpt);
	if (!set_time(import, entry))
		return 0;
	/* If check_key wrote the batch, this line is the first of the next. */
	import->entries[place] = import->entries[import->jobs];
	import->entries[import->jobs++] = entry;
	import->bytes += entry->line.spec.headers_length + entry->line.spec.then_length + entry->line.spec.body_length;
	return 0;
}

static int step(struct import *import, enum input_result result, const char *text, size_t size)
{
	import->number++;
	if (result == INPUT_LONG)
		return leave_out(
		    import, import->number, "the line is too long; expected %zu bytes at most", INPUT_LINE_MAX);
	if (take_line(import, text, size))
		return -1;
	if (import->number % 1000 == 0)
		progress_show(import->input.size ? input_position(&import->input) : import->number, import->input.size);
	if (import->jobs >= BATCH_JOBS || import->bytes >= (import->store.is_shared ? SHARED_BYTES : BATCH_BYTES))
		return end_batch(import);
	return 0;
}

static int read_all(struct import *import)
{
	enum input_result result;
	const char *text;
	size_t size;

	while ((result = input_line(&import->input, &text, &size)) == INPUT_LINE || result == INPUT_LONG)
		if (step(import, result, text, size))
			return -1;
	if (end_batch(import))
		return -1;
	if (result == INPUT_END)
		return 0;
	return message_error("%s: %s, after line %" PRIu64, import->source, import->input.problem, import->number);
}

/* ---- All of it */

static void print_result(const struct import *import)
{
	/* Ids of several shards are not consecutive. */
	const int is_shared = !import->place.path;
	const uint64_t jobs = import->added + import->substitute;

	progress_clear();
	if (import->left_out > MESSAGES_MAX)
		message_line(
		    "%s: %" PRIu64 " more lines were left out", import->source, import->left_out - MESSAGES_MAX);
	if (import->json) {
		printf("{\"put\": %" PRIu64 ", \"replaced\": %" PRIu64 ", \"left_out\": %" PRIu64, jobs,
		    import->substitute, import->left_out);
		if (import->added && !is_shared)
			printf(", \"first\": %" PRIu64 ", \"last\": %" PRIu64, import->first, import->last);
		if (import->limits_set)
			printf(", \"limits\": %" PRIu64, import->limits_set);
		puts("}");
		return;
	}
	printf("%" PRIu64 " job%s put", jobs, jobs_plural(jobs));
	if (import->added && !is_shared)
		printf(", with new ids from %" PRIu64 " to %" PRIu64, import->first, import->last);
	if (import->substitute)
		printf(", %" PRIu64 " in place of others", import->substitute);
	if (import->left_out)
		printf(", %" PRIu64 " left out", import->left_out);
	if (import->limits_set)
		printf("; %" PRIu64 " limit%s set", import->limits_set, jobs_plural(import->limits_set));
	putchar('\n');
}

static void free_entries(struct import *import)
{

	for (size_t i = 0; i < BATCH_JOBS && import->entries[i]; i++) {
		buffer_free(&import->entries[i]->line.room);
		free(import->entries[i]);
	}
	free(import->entries);
	free(import->puts);
	free(import->was);
}

static int run(void *context)
{
	struct import *import = context;
	int failed;
	int error;

	import->source = strcmp(import->file, "-") == 0 ? "standard input" : import->file;
	if (input_open(&import->input, import->file))
		return message_error("%s: %s", import->source, import->input.problem);
	if (!is_missing(import) && open_place(import)) {
		input_close(&import->input);
		return STATUS_FAILED;
	}
	import->keys = keys_new();
	import->entries = memory_zeroed(BATCH_JOBS, sizeof *import->entries);
	import->puts = memory_zeroed(BATCH_JOBS, sizeof *import->puts);
	import->was = memory_zeroed(BATCH_JOBS, sizeof *import->was);
	progress_begin("importing");
	failed = read_all(import) != 0;
	if (!failed && !import->left_out)
		failed = open_place(import) != 0;
	error = import->is_open ? store_close(&import->store) : 0;
	if (error && !failed)
		store_refused(&import->place, error);
	if (!import->is_refused)
		print_result(import);
	free_entries(import);
	keys_free(import->keys);
	input_close(&import->input);
	return failed || error || import->left_out;
}

static int check(void *context, const struct options *options)
{
	struct import *import = context;
	const char *first = import->place.count ? import->place.operands[0] : "";
	int wrong;

	if (strncmp(first, "beanstalkd://", 13) == 0 || strncmp(first, "sidekiq://", 10) == 0)
		return options_fail(
		    options, "'%s': 'weekwheel import --from %s' moves its jobs to a server", first, first);
#ifdef HAVE_CALENDAR
	/* With a file, a word close to crontab is hardly a new directory. */
	if (import->place.count == 2 && suggest_distance(first, "crontab") <= 2 && access(first, F_OK) != 0)
		return options_fail(options,
		    "'%s': there is no such directory; did you mean 'import crontab %s'? ./%s would make it", first,
		    import->place.operands[1], first);
#endif
	wrong = place_complete(&import->place, options, &import->file);
	if (!import->file)
		import->file = "-";
	return wrong;
}

const struct jobs_command command_import = {
    .name = "weekwheel import",
    JOBS_TABLE(table),
    .context = &(struct import){.place = PLACE_DEFAULT},
    .server = JOBS_NO_SERVER,
    .take = place_take,
    .check = check,
    .run = run,
    .usage = "Usage: weekwheel import [OPTION]... DIR|URL [FILE]\n"
             "       weekwheel import crontab FILE     schedules of a crontab; see --help\n"
             "       weekwheel import --from URL       jobs of another server; see its --help\n"
             "\n"
             "Put the jobs that 'weekwheel export' wrote to FILE, or standard input, into DIR or\n"
             "Redis. A missing DIR is made, unless no line is right. No server may use DIR\n"
             "meanwhile. Jobs get new ids and keep their tubes, keys, bodies, due times and all\n"
             "other settings; buried ones are buried again. FILE may be compressed with gzip. A\n"
             "line that is not a job is reported and left out, and the exit status is then 1.\n",
    .examples = "Without DIR and URL, $WEEKWHEELD_STORE is the URL.\n"
                "\n"
                "Examples, a directory again from a backup, and its jobs in Redis:\n"
                "  weekwheel import /var/lib/weekwheeld/jobs jobs.json\n"
                "  weekwheel import --redis-shards 32 redis://127.0.0.1/ jobs.json\n",
};
