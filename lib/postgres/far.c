/* Far jobs of a store in PostgreSQL: where they lie, and their visits to memory. */
#include "lib/postgres/far.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/store.h"

unsigned ww_postgres_far_hours = 2;

/* Ids at the end of a row that may be in any order. */
enum { TAIL = 256 };
/* Ids of each slot that are looked for at a time, and jobs of a slot that are read at a time. */
enum { IDS_AT_ONCE = 8, ROWS_AT_ONCE = 2000 };
/* Visits that end at a time: more than a walk lets come between two rests. */
enum { LEAVES_AT_ONCE = 4096 };
/* The rest is gone through so seldom. */
#define REST_SPAN (8 * HOUR)
#define LEFT (UINT64_C(1) << 63)

/* ---- Ids of a slot */

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one & ~LEFT;
	uint64_t b = *(const uint64_t *)other & ~LEFT;

	return (a > b) - (a < b);
}

/* Bring the tail into order. Without memory it stays as it is. */
static void sort(const struct postgres *postgres, struct part *part)
{
	uint64_t *all = part->ids.all;
	size_t head = part->sorted;
	size_t size = part->ids.count - head;
	size_t at = part->ids.count;
	uint64_t *tail;

	if (size == 0)
		return;
	tail = memory_take(postgres->allocator, size * sizeof *tail);
	if (!tail)
		return;
	qsort(all + head, size, sizeof *all, compare);
	memcpy(tail, all + head, size * sizeof *tail);
	for (size_t left = size; left;)
		all[--at] = head && compare(&all[head - 1], &tail[left - 1]) > 0 ? all[--head] : tail[--left];
	part->sorted = part->ids.count;
	memory_give(postgres->allocator, tail, size * sizeof *tail);
}

/* The first of the ids in order that is not below this. */
static size_t first_from(const struct part *part, uint64_t id)
{
	size_t low = 0;
	size_t high = part->sorted;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if ((part->ids.all[middle] & ~LEFT) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Where the id stands, marked or not; or NULL. */
static uint64_t *place_of(struct postgres *postgres, unsigned number, uint64_t id)
{
	struct part *part = &postgres->parts[number];
	uint64_t *all = part->ids.all;

	if (part->ids.count - part->sorted > TAIL)
		sort(postgres, part);
	for (size_t i = first_from(part, id & ~LEFT); i < part->sorted && (all[i] & ~LEFT) == (id & ~LEFT); i++)
		if (all[i] == id)
			return &all[i];
	for (size_t i = part->sorted; i < part->ids.count; i++)
		if (all[i] == id)
			return &all[i];
	return NULL;
}

int ww_postgres_far_is_in(struct postgres *postgres, unsigned part, uint64_t id)
{
	return place_of(postgres, part, id) != NULL;
}

unsigned ww_postgres_far_find(struct postgres *postgres, uint64_t id)
{
	/* So it is of each job that is new. */
	if (id > postgres->far_most)
		return NO_PART;
	for (unsigned part = RING_PARTS; part < PARTS; part++)
		if (postgres->parts[part].living && place_of(postgres, part, id))
			return part;
	return NO_PART;
}

void ww_postgres_far_mark(struct postgres *postgres, unsigned part, uint64_t id, int has_left)
{
	uint64_t *place = place_of(postgres, part, has_left ? id : id | LEFT);

	if (place)
		*place ^= LEFT;
}

/* ---- Times of a slot */

static int has_far(const struct part *part)
{
	return part->living && part->least <= part->greatest;
}

static void set_least(struct postgres *postgres)
{
	postgres->far_least = UINT64_MAX;
	for (unsigned i = RING_PARTS; i < PARTS; i++)
		if (postgres->parts[i].least <= postgres->parts[i].greatest &&
		    postgres->parts[i].least < postgres->far_least)
			postgres->far_least = postgres->parts[i].least;
}

/* No job of the part that is due before `until` is far any more. */
static void have_no_far(struct postgres *postgres, unsigned number, uint64_t until)
{
	struct part *part = &postgres->parts[number];

	if (postgres->is_writing && !postgres->has_visits)
		for (unsigned i = RING_PARTS; i < PARTS; i++) {
			postgres->parts[i].least_before = postgres->parts[i].least;
			postgres->parts[i].greatest_before = postgres->parts[i].greatest;
		}
	postgres->has_visits = 1;
	if (part->least < until)
		part->least = until;
	if (part->least > part->greatest || until == UINT64_MAX) {
		part->least = UINT64_MAX;
		part->greatest = 0;
	}
	set_least(postgres);
}

static void have_far(struct postgres *postgres, unsigned number, uint64_t due)
{
	struct part *part = &postgres->parts[number];

	if (due < part->least)
		part->least = due;
	if (due > part->greatest)
		part->greatest = due;
	if (due < postgres->far_least)
		postgres->far_least = due;
}

/* What is due before this is near. */
static uint64_t near_until(const struct postgres *postgres)
{
	return (postgres->now / HOUR + ww_postgres_far_hours) * HOUR;
}

unsigned ww_postgres_far_between(const struct postgres *postgres, uint64_t from, uint64_t to)
{
	unsigned found = NO_PART;

	if (to < postgres->far_least)
		return NO_PART;
	for (unsigned i = RING_PARTS; i < PARTS; i++) {
		const struct part *part = &postgres->parts[i];
		if (has_far(part) && part->least <= to && part->greatest >= from &&
		    (found == NO_PART || part->least < postgres->parts[found].least))
			found = i;
	}
	return found;
}

uint64_t ww_postgres_far_quiet(const struct postgres *postgres, uint64_t from)
{
	unsigned part = ww_postgres_far_between(postgres, from, UINT64_MAX);

	if (part == NO_PART)
		return UINT64_MAX;
	return postgres->parts[part].least > from ? postgres->parts[part].least : from;
}

/* ---- Visits */

struct visit {
	struct postgres *postgres;
	unsigned part;
	int stays;
	uint64_t last;
	size_t rows;
	size_t came;
};

static int is_in_memory(const struct postgres *postgres, uint64_t id)
{
	const struct store *memory = &postgres->memory;
	unsigned char bytes[8];
	struct store_bytes value;

	store_write64(bytes, id);
	return memory->ops->get(memory->self, STORE_JOBS, (struct store_bytes){bytes, sizeof bytes}, &value) == WW_OK;
}

static int take_pair(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	struct visit *visit = context;
	struct postgres *postgres = visit->postgres;
	int error = is_of_job(table) && key.size >= 8 ? WW_OK : WW_ECORRUPT;

	if (!error && !visit->stays)
		error = ww_postgres_ids_add(&postgres->visits, postgres->allocator, id_of_key(key));
	if (!error)
		error = ww_postgres_store_keep(postgres, table, key, kept, visit->part);
	if (!error)
		error = ww_jobs_port_lead(&postgres->memory, PORT_BY_ID, 0, table, key,
		    (struct store_bytes){(const char *)kept.data + 1, kept.size - 1});
	visit->came += !error;
	return error;
}

/* id, pair: the latest row of a job comes first. */
static int take_row(struct visit *visit, const PGresult *row)
{
	uint64_t id = (uint64_t)ww_postgres_link_number(row, 0, 0);
	int is_latest = id != visit->last;
	size_t size;
	const void *bytes = ww_postgres_link_bytes(row, 0, 1, &size);

	visit->last = id;
	visit->rows++;
	if (!is_latest || !size || !ww_postgres_far_is_in(visit->postgres, visit->part, id) ||
	    is_in_memory(visit->postgres, id))
		return WW_OK;
	return ww_jobs_port_changes(bytes, size, take_pair, visit);
}

static int read_rows(struct visit *visit, const char *statement, const struct link_argument *arguments, size_t count)
{
	struct postgres *postgres = visit->postgres;
	int error =
	    postgres->lost ? postgres->lost : ww_postgres_link_stream(&postgres->writer, statement, arguments, count);
	int bad = WW_OK;
	PGresult *row;

	if (postgres->lost)
		return error;
	while (!error) {
		error = ww_postgres_link_row(&postgres->writer, &row);
		if (!error && !bad)
			bad = take_row(visit, row);
		PQclear(row);
	}
	if (!postgres->is_writing)
		(void)postgres->memory.ops->commit(postgres->memory.self);
	if (!visit->stays)
		postgres->visited_since = time_now(CLOCK_MONOTONIC);
	return error == LINK_END ? bad : ww_postgres_store_failed(postgres, error);
}

/* Those that come now stay longer than those that have come. */
static void begin_visit(struct postgres *postgres)
{
	postgres->visited_before = postgres->visits.count;
}

void ww_postgres_far_use(struct postgres *postgres, uint64_t due)
{
	if (postgres->visits.count && due >= near_until(postgres))
		postgres->visited_since = time_now(CLOCK_MONOTONIC);
}

/* All of them come, or else the slot is damaged. */
static int visit_ids(struct postgres *postgres, unsigned part, struct array *ids)
{
	struct visit visit = {.postgres = postgres, .part = part};
	struct link_argument argument;
	char statement[120];
	int error = ww_postgres_array_argument(ids, &argument);

	(void)snprintf(statement, sizeof statement,
	    "SELECT id, pair FROM weekwheel.job_%u WHERE id = ANY ($1) ORDER BY id, turn DESC", part - RING_PARTS);
	if (!error)
		error = read_rows(&visit, statement, &argument, 1);
	return error ? error : visit.came == ids->count ? WW_OK : WW_ECORRUPT;
}

int ww_postgres_far_visit(struct postgres *postgres, uint64_t id)
{
	struct array ids = {.allocator = postgres->allocator, .element = LINK_INT8};
	unsigned part = ww_postgres_far_find(postgres, id);
	int error;

	if (part == NO_PART || is_in_memory(postgres, id))
		return WW_ENOTFOUND;
	begin_visit(postgres);
	error = ww_postgres_array_number(&ids, id);
	if (!error)
		error = visit_ids(postgres, part, &ids);
	ww_postgres_array_free(&ids);
	return error;
}

/* Read some of a part, behind an id, that is due before `until`. *after is the last one; 0: there is no more. */
static int visit_some(struct visit *visit, uint64_t until, uint64_t *after)
{
	unsigned char numbers[2][8];
	const struct link_argument arguments[2] = {
	    {LINK_INT8, numbers[0], sizeof numbers[0]}, {LINK_BYTEA, numbers[1], sizeof numbers[1]}};
	char statement[300];
	int error;

	/* The due time is the beginning of the key in a change. */
	(void)snprintf(statement, sizeof statement,
	    "SELECT id, CASE WHEN substring(pair, 9, 8) < $2 THEN pair END FROM (SELECT id, turn, pair FROM weekwheel.job_%u "
	    "WHERE id > $1 ORDER BY id FETCH FIRST %d ROWS WITH TIES) AS piece ORDER BY id, turn DESC",
	    visit->part - RING_PARTS, ROWS_AT_ONCE);
	store_write64(numbers[0], *after);
	store_write64(numbers[1], until);
	visit->rows = 0;
	error = read_rows(visit, statement, arguments, 2);
	*after = visit->rows < ROWS_AT_ONCE ? 0 : visit->last;
	return error;
}

int ww_postgres_far_visit_part(struct postgres *postgres, unsigned part)
{
	struct visit visit = {.postgres = postgres, .part = part};
	uint64_t after = 0;
	int error = WW_OK;

	if (has_far(&postgres->parts[part])) {
		begin_visit(postgres);
		do
			error = visit_some(&visit, UINT64_MAX, &after);
		while (!error && after);
	}
	if (!error)
		have_no_far(postgres, part, UINT64_MAX);
	return error;
}

int ww_postgres_far_visit_next(struct postgres *postgres, unsigned number, size_t from, size_t most, size_t *end)
{
	struct array ids = {.allocator = postgres->allocator, .element = LINK_INT8};
	struct part *part = &postgres->parts[number];
	int error = WW_OK;

	/* Their order must not change any more: whoever goes through them would pass by some. */
	sort(postgres, part);
	if (part->sorted < part->ids.count)
		return WW_ENOMEM;
	for (*end = from; *end < part->ids.count && most && !error; ++*end) {
		uint64_t id = part->ids.all[*end];
		if (id & LEFT)
			continue;
		most--;
		if (!is_in_memory(postgres, id))
			error = ww_postgres_array_number(&ids, id);
	}
	begin_visit(postgres);
	if (!error && ids.count)
		error = visit_ids(postgres, number, &ids);
	ww_postgres_array_free(&ids);
	return error;
}

/* Add ids of the part that are far. `cut` is the last one if there are more. */
static int gather(struct postgres *postgres, unsigned number, uint64_t from, struct array *ids, uint64_t *cut)
{
	struct part *part = &postgres->parts[number];
	int error = WW_OK;

	sort(postgres, part);
	if (part->sorted < part->ids.count)
		return WW_ENOMEM;
	for (size_t i = first_from(part, from); i < part->sorted && !error; i++) {
		uint64_t id = part->ids.all[i] & ~LEFT;
		if (id > *cut)
			break;
		if (part->ids.all[i] & LEFT || is_in_memory(postgres, id))
			continue;
		error = ww_postgres_array_number(ids, id);
		if (ids->count == IDS_AT_ONCE)
			*cut = id;
	}
	return error;
}

int ww_postgres_far_visit_ids(struct postgres *postgres, uint64_t from, uint64_t to)
{
	struct array ids = {.allocator = postgres->allocator, .element = LINK_INT8};
	uint64_t cut = UINT64_MAX;
	int came = 0;
	int error = WW_OK;

	if (from >= postgres->seen_from && to <= postgres->seen_to)
		return 0;
	begin_visit(postgres);
	/* First see how far they reach. */
	for (int visits = 0; visits < 2; visits++)
		for (unsigned part = RING_PARTS; part < PARTS && !error; part++) {
			if (!has_far(&postgres->parts[part]))
				continue;
			ww_postgres_array_clear(&ids);
			error = gather(postgres, part, from, &ids, &cut);
			if (!error && visits && ids.count)
				error = visit_ids(postgres, part, &ids);
			came |= ids.count != 0;
		}
	ww_postgres_array_free(&ids);
	if (error)
		return error;
	postgres->seen_from = from;
	postgres->seen_to = cut;
	return came;
}

/* ---- Leaving */

void ww_postgres_far_leave(struct postgres *postgres, uint64_t id)
{
	const struct store *memory = &postgres->memory;
	unsigned char bytes[8], place[STORE_KEY_MAX];
	const struct store_bytes by_id = {bytes, sizeof bytes};
	struct store_bytes key = {place, 0}, value;
	enum store_table table;
	unsigned part;
	uint64_t due;

	store_write64(bytes, id);
	if (memory->ops->get(memory->self, STORE_JOBS, by_id, &value) ||
	    ww_jobs_port_place(id, value, &table, place, &key.size) || table == STORE_BURIED ||
	    memory->ops->get(memory->self, table, key, &value))
		return;
	part = *(const unsigned char *)value.data;
	due = store_read64(place);
	if (part < RING_PARTS || due < near_until(postgres) || due < postgres->parts[part].stay_until)
		return;
	/* Without memory it stays. */
	if (memory->ops->remove(memory->self, table, key) == WW_OK &&
	    memory->ops->remove(memory->self, STORE_JOBS, by_id) == WW_OK) {
		(void)memory->ops->commit(memory->self);
		have_far(postgres, part, due);
		postgres->seen_from = 1;
		postgres->seen_to = 0;
	} else
		memory->ops->abort(memory->self);
}

static int have_visited_long(const struct postgres *postgres)
{
	return time_now(CLOCK_MONOTONIC) - postgres->visited_since > WW_SECOND;
}

void ww_postgres_far_rest(struct postgres *postgres)
{
	struct ids *visits = &postgres->visits;
	size_t keep;

	if (!visits->count || postgres->is_writing || !postgres->now)
		return;
	if (have_visited_long(postgres))
		postgres->visited_before = visits->count;
	keep = postgres->visited_before > LEAVES_AT_ONCE ? postgres->visited_before - LEAVES_AT_ONCE : 0;
	for (size_t i = keep; i < postgres->visited_before; i++)
		ww_postgres_far_leave(postgres, visits->all[i]);
	visits->count -= postgres->visited_before - keep;
	memmove(
	    visits->all + keep, visits->all + postgres->visited_before, (visits->count - keep) * sizeof *visits->all);
	postgres->visited_before = keep;
	if (!visits->count)
		ww_postgres_ids_free(visits, postgres->allocator);
}

int ww_postgres_far_note(struct postgres *postgres, unsigned part, uint64_t id, uint64_t due)
{
	int error = ww_postgres_ids_add(&postgres->parts[part].ids, postgres->allocator, id);

	if (error)
		return error;
	postgres->parts[part].living++;
	if (id > postgres->far_most)
		postgres->far_most = id;
	have_far(postgres, part, due);
	return WW_OK;
}

/* ---- A write */

void ww_postgres_far_begin(struct postgres *postgres)
{
	postgres->is_writing = 1;
	postgres->has_visits = 0;
}

void ww_postgres_far_abort(struct postgres *postgres)
{
	postgres->is_writing = 0;
	postgres->seen_from = 1;
	postgres->seen_to = 0;
	if (!postgres->has_visits)
		return;
	/* Memory has forgotten who came. */
	for (unsigned i = RING_PARTS; i < PARTS; i++) {
		postgres->parts[i].least = postgres->parts[i].least_before;
		postgres->parts[i].greatest = postgres->parts[i].greatest_before;
	}
	set_least(postgres);
}

void ww_postgres_far_clear(struct postgres *postgres, unsigned number)
{
	struct part *part = &postgres->parts[number];

	part->sorted = 0;
	part->least = UINT64_MAX;
	part->greatest = part->stay_until = 0;
	set_least(postgres);
}

/* ---- What comes near */

static void look_for_near(struct postgres *postgres)
{
	uint64_t until = near_until(postgres);
	unsigned part;

	postgres->nearing_since = time_now(CLOCK_MONOTONIC);
	part = until ? ww_postgres_far_between(postgres, 0, until - 1) : NO_PART;
	if (part == NO_PART)
		return;
	postgres->nearing = part;
	postgres->nearing_after = 0;
	postgres->parts[part].stay_until = part == RING_PARTS + SLOT_REST ? until + REST_SPAN : UINT64_MAX;
}

int ww_postgres_far_tend(struct postgres *postgres)
{
	struct visit visit = {.postgres = postgres, .part = postgres->nearing, .stays = 1};
	int error;

	if (!postgres->nearing) {
		if (time_now(CLOCK_MONOTONIC) - postgres->nearing_since >= WW_SECOND)
			look_for_near(postgres);
		/* Many who have visited end that in many rests. */
		return postgres->nearing != 0 ||
		       (postgres->visits.count > LEAVES_AT_ONCE && have_visited_long(postgres));
	}
	error = visit_some(&visit, postgres->parts[visit.part].stay_until, &postgres->nearing_after);
	if (!error && postgres->nearing_after)
		return 1;
	if (!error)
		have_no_far(postgres, visit.part, postgres->parts[visit.part].stay_until);
	postgres->nearing = 0;
	return 0;
}
