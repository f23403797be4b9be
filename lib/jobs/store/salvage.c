/*
 * Reads what a damaged store still has. SQLite cannot: its recovery (ext/recover) is in no distribution's library, only in
 * the shell, and opens the files for writing. It takes the rows of a page whose sum is wrong, does not correct a flipped
 * bit, does not notice a damaged log, which it cuts off, and knows no journal. The rows of jobs also need the index's edges
 * and the journal's later changes before they mean anything. So image.c reads pages and log, rows.c the rows, both by
 * SQLite's published format, and nothing here writes.
 */

#include "lib/jobs/store/salvage.h"

#include <limits.h>
#include <stdlib.h>

#include "lib/base/memory.h"
#include "lib/jobs/store/changes.h"
#include "lib/jobs/store/files.h"
#include "lib/jobs/store/rows.h"
#include "lib/jobs/store/sqlite.h"
#include "lib/jobs/store/whole.h"
#include "lib/journal/replay.h"

struct salvage {
	struct pages_image image;
	struct store journal; /* what it has changed, as in disk.c: a byte before each value */
	salvage_fn *pair;
	void *context;
	/* What the index says about jobs in slots. */
	struct slots_mark edge[SLOTS_LINES];
	int has_edge;
	uint64_t cut;
	uint64_t record;
	struct gone {
		uint64_t slot;
		uint64_t id;
	} * gone;
	size_t count;
	size_t room;
	int is_first; /* the walk for META and TUBES */
};

/* ---- Rows by their columns */

static int has_kinds(const struct rows_row *row, int has_id, const char *kinds)
{
	int columns = (int)strlen(kinds);

	if (row->has_id != has_id || row->columns != columns)
		return 0;
	for (int i = 0; i < columns; i++)
		if (row->column[i].kind != (kinds[i] == 'n' ? ROWS_NUMBER : kinds[i] == 'b' ? ROWS_BYTES : ROWS_NULL))
			return 0;
	return 1;
}

static uint64_t number(const struct rows_row *row, int column)
{
	return (uint64_t)row->column[column].number;
}

static int note_gone(struct salvage *salvage, uint64_t slot, uint64_t id)
{
	if (salvage->count == salvage->room) {
		size_t room = salvage->room ? 2 * salvage->room : 1024;
		struct gone *more = realloc(salvage->gone, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		salvage->gone = more;
		salvage->room = room;
	}
	salvage->gone[salvage->count++] = (struct gone){slot, id};
	return WW_OK;
}

static int by_slot(const void *a, const void *b)
{
	const struct gone *one = a, *other = b;

	if (one->slot != other->slot)
		return one->slot < other->slot ? -1 : 1;
	return (one->id > other->id) - (one->id < other->id);
}

static int is_gone(const struct salvage *salvage, uint64_t slot, uint64_t id)
{
	const struct gone key = {slot, id};

	return salvage->count && bsearch(&key, salvage->gone, salvage->count, sizeof key, by_slot);
}

/* ---- Pairs */

/* Hand a pair of the index on, unless the journal has changed it. */
static int hand_on(struct salvage *salvage, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct store_bytes changed;

	if (salvage->journal.ops->get(salvage->journal.self, table, key, &changed) == WW_OK)
		return WW_OK;
	return salvage->pair(salvage->context, table, key, value);
}

static int hand_on_pair(struct salvage *salvage, const struct rows_row *row)
{
	static const enum store_table first[] = {STORE_META, STORE_TUBES, STORE_TABLES};
	static const enum store_table jobs[] = {STORE_BURIED, STORE_TABLES};

	for (const enum store_table *table = salvage->is_first ? first : jobs; *table != STORE_TABLES; table++) {
		struct store_bytes value = row->column[1].bytes;
		if (ww_sqlite_check(*table, row->column[0].bytes, &value) == WW_OK)
			return hand_on(salvage, *table, row->column[0].bytes, value);
	}
	return WW_OK;
}

static int hand_on_job(struct salvage *salvage, int line, uint64_t due, uint64_t id, struct store_bytes job)
{
	unsigned char key[16];

	store_write64(key, due);
	store_write64(key + 8, id);
	return hand_on(
	    salvage, line == SLOTS_WALL ? STORE_WALL : STORE_DUE, (struct store_bytes){key, sizeof key}, job);
}

static int hand_on_far(struct salvage *salvage, const struct rows_row *row)
{
	uint64_t slot = number(row, 0);
	struct slots_mark mark = {slots_start(slot) + number(row, 2), number(row, 1)};
	int line = slots_line(slot);

	if (is_gone(salvage, slot, mark.id) || slots_is_near(mark, salvage->edge[line]))
		return WW_OK;
	return hand_on_job(salvage, line, mark.due, mark.id, row->column[3].bytes);
}

/* ---- Two walks */

/* What must be known before jobs are read. */
static int read_first(void *context, const struct rows_row *row)
{
	struct salvage *salvage = context;

	if (has_kinds(row, 0, "nn"))
		return note_gone(salvage, number(row, 0), number(row, 1));
	if (has_kinds(row, 0, "bb"))
		return hand_on_pair(salvage, row);
	if (row->id != 1)
		return WW_OK;
	if (has_kinds(row, 1, "-nnnnn")) {
		for (int line = 0; line < SLOTS_LINES; line++)
			salvage->edge[line] = (struct slots_mark){number(row, 1 + 2 * line), number(row, 2 + 2 * line)};
		salvage->has_edge = 1;
	} else if (has_kinds(row, 1, "-nn")) {
		salvage->cut = number(row, 1);
		salvage->record = number(row, 2);
	}
	return WW_OK;
}

static int read_jobs(void *context, const struct rows_row *row)
{
	struct salvage *salvage = context;

	if (has_kinds(row, 0, "bb"))
		return hand_on_pair(salvage, row);
	if (!has_kinds(row, 0, "nnnb"))
		return WW_OK;
	/* The line of near; slots are greater. */
	if (number(row, 0) < SLOTS_LINES)
		return hand_on_job(salvage, (int)number(row, 0), number(row, 1), number(row, 2), row->column[3].bytes);
	return hand_on_far(salvage, row);
}

/* ---- The journal */

static int note_change(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	struct salvage *salvage = context;

	return salvage->journal.ops->put(salvage->journal.self, table, key, kept);
}

static int read_record(void *context, const unsigned char *bytes, size_t size)
{
	struct salvage *salvage = context;
	int error = ww_changes_each(bytes, size, note_change, salvage);

	(void)salvage->journal.ops->commit(salvage->journal.self);
	return error;
}

static void report_problem(const char *problem, void *context)
{
	ww_image_report(context, "%s", problem);
}

struct handing {
	struct salvage *salvage;
	enum store_table table;
};

static int hand_on_change(void *context, struct store_bytes key, struct store_bytes kept)
{
	const struct handing *handing = context;
	struct store_bytes value = {(const unsigned char *)kept.data + 1, kept.size - 1};

	if (!kept.size || ((const unsigned char *)kept.data)[0] != CHANGES_THERE)
		return WW_OK;
	return handing->salvage->pair(handing->salvage->context, handing->table, key, value);
}

static int hand_on_changes(struct salvage *salvage, enum store_table table)
{
	struct handing handing = {salvage, table};

	return ww_store_memory_each(&salvage->journal, table, hand_on_change, &handing);
}

/* ---- All of it */

/* The place in the journal comes from the index, and what the journal has changed goes before the index. */
static int find_cut(void *context, const struct rows_row *row)
{
	struct salvage *salvage = context;

	if (row->has_id && row->id == 1 && has_kinds(row, 1, "-nn")) {
		salvage->cut = number(row, 1);
		salvage->record = number(row, 2);
	}
	return WW_OK;
}

static int read_journal(struct salvage *salvage, const char *folder)
{
	struct replay replay = {.folder = folder,
	    .salvage = 1,
	    .read = read_record,
	    .context = salvage,
	    .problem = report_problem,
	    .problem_context = &salvage->image};
	uint64_t reported;
	int error;

	salvage->cut = UINT64_MAX;
	error = ww_rows_each(&salvage->image, find_cut, salvage);
	if (salvage->cut == UINT64_MAX)
		ww_image_report(&salvage->image,
		    "%s: how much of the journal the index has is not known: all of it is taken", folder);
	replay.cut = salvage->cut;
	replay.record = salvage->record;
	reported = salvage->image.problems;
	if (!error)
		error = ww_replay(&replay);
	/* A store has at least one file of it, also after it was closed. */
	if (!error && replay.last == replay.cut && salvage->image.problems == reported)
		ww_image_report(
		    &salvage->image, "%s: its journal is missing, so what was acknowledged last may be lost", folder);
	return error;
}

static int read_all(struct salvage *salvage)
{
	int error;

	salvage->is_first = 1;
	error = ww_rows_each(&salvage->image, read_first, salvage);
	if (!error && !salvage->has_edge)
		ww_image_report(&salvage->image,
		    "%s: which jobs have ended is not known: finished jobs may be delivered again",
		    salvage->image.folder);
	if (salvage->count)
		qsort(salvage->gone, salvage->count, sizeof *salvage->gone, by_slot);
	if (!error)
		error = hand_on_changes(salvage, STORE_META);
	if (!error)
		error = hand_on_changes(salvage, STORE_TUBES);
	salvage->is_first = 0;
	if (!error)
		error = ww_rows_each(&salvage->image, read_jobs, salvage);
	for (int table = STORE_DUE; table <= STORE_BURIED && !error; table++)
		error = hand_on_changes(salvage, (enum store_table)table);
	return error;
}

int ww_salvage_read(const char *folder, const struct ww_allocator *allocator, salvage_fn *pair, void *pair_context,
    ww_jobs_problem_fn *problem, void *context)
{
	const struct ww_jobs_config config = {.allocator = allocator};
	struct salvage salvage = {.pair = pair, .context = pair_context};
	int error = ww_image_open(&salvage.image, folder, problem, context);

	if (error)
		return error;
	if (salvage.image.pages && ww_image_find_free(&salvage.image))
		ww_image_report(&salvage.image,
		    "%s: which pages are free is not known: finished jobs may be delivered again", folder);
	error = ww_store_memory_open(&salvage.journal, &config);
	if (!error)
		error = read_journal(&salvage, folder);
	if (!error)
		error = read_all(&salvage);
	if (salvage.journal.ops)
		(void)salvage.journal.ops->close(salvage.journal.self);
	ww_image_close(&salvage.image);
	free(salvage.gone);
	return error;
}

static int ignore(void *context, const unsigned char *bytes, size_t size)
{
	(void)context;
	(void)bytes;
	(void)size;
	return WW_OK;
}

int ww_salvage_examine(const char *folder, ww_jobs_problem_fn *problem, void *context)
{
	unsigned char page[PAGES_SIZE];
	struct pages_image image;
	struct replay replay = {.folder = folder,
	    .cut = UINT64_MAX,
	    .salvage = 1,
	    .read = ignore,
	    .problem = report_problem,
	    .problem_context = &image};
	int error = ww_image_open(&image, folder, problem, context);

	if (error)
		return error;
	for (uint32_t i = 1; i <= image.pages; i++)
		/* The sums of the log are checked already. */
		if (!image.in_log[i - 1])
			(void)ww_image_page(&image, i, page);
	error = ww_replay(&replay);
	if (image.log < 0 && image.database >= 0 && !error && !replay.is_closed && !replay.is_empty)
		ww_image_report(&image, WHOLE_NO_LOG, folder);
	/* Files go while a process writes. */
	if (error == WW_ENOTFOUND || error == WW_EVERSION)
		error = WW_OK;
	ww_image_close(&image);
	return error ? error : image.problems < INT_MAX ? (int)image.problems : INT_MAX;
}
