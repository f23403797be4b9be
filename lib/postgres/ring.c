/* Turns the ring of a store in PostgreSQL, and empties parts of it, and slots. */
#include "lib/postgres/ring.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/postgres/far.h"
#include "lib/postgres/fence.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/store.h"

/* How many records are written on at a time, and of how many bytes: other calls wait meanwhile. */
enum { STEP = 256, STEP_BYTES = 16 << 20 };
/* A slot that has lost half of at least this many rows is written anew. */
enum { SPARSE = 10000 };

static unsigned slot_of(const struct postgres *postgres, enum store_table table, struct store_bytes key)
{
	uint64_t hour = postgres->now / HOUR;
	uint64_t due = table == STORE_BURIED ? 0 : store_read64(key.data) / HOUR;

	return due > hour && due - hour < HOURS_AHEAD ? (unsigned)(due % SLOT_REST) : SLOT_REST;
}

/* ---- Writing on */

/* The records of a step. */
struct step {
	struct postgres *postgres;
	struct changes pair; /* for one record, or all of them */
	struct array slots, ids, pairs;
	unsigned char *marks[STEP]; /* where memory has their parts */
	uint64_t jobs[STEP];        /* their ids */
	size_t count;
};

/* The record of a job whose newest row is in the part. WW_ENOTFOUND: it is not. */
static int find(const struct postgres *postgres, uint64_t id, unsigned part, enum store_table *table,
    unsigned char place[STORE_KEY_MAX], struct store_bytes *key, struct store_bytes *value)
{
	const struct store *memory = &postgres->memory;
	unsigned char bytes[8];
	int error;

	store_write64(bytes, id);
	error = memory->ops->get(memory->self, STORE_JOBS, (struct store_bytes){bytes, sizeof bytes}, value);
	if (!error)
		error = ww_jobs_port_place(id, *value, table, place, &key->size);
	key->data = place;
	if (!error)
		error = memory->ops->get(memory->self, *table, *key, value);
	return error ? error : *(const unsigned char *)value->data == part ? WW_OK : WW_ENOTFOUND;
}

/* Add a record to the step: for its slot or, where a slot is emptied, to the changes of a turn. */
static int add_record(struct step *step, uint64_t id)
{
	struct postgres *postgres = step->postgres;
	unsigned part = postgres->emptying;
	unsigned to = postgres->current;
	unsigned char place[STORE_KEY_MAX];
	enum store_table table;
	struct store_bytes key, value, kept;
	int error = find(postgres, id, part, &table, place, &key, &value);

	if (error)
		return error == WW_ENOTFOUND ? WW_OK : error;
	if (part < RING_PARTS) {
		to = RING_PARTS + slot_of(postgres, table, key);
		step->pair.size = 0;
	}
	error = ww_jobs_port_change(&step->pair, postgres->allocator, table, key, CHANGES_THERE,
	    (struct store_bytes){(const char *)value.data + 1, value.size - 1}, &kept);
	if (!error && part < RING_PARTS)
		error = ww_postgres_array_number(&step->slots, to - RING_PARTS) ||
		                ww_postgres_array_number(&step->ids, id) ||
		                ww_postgres_array_bytes(&step->pairs, step->pair.bytes, step->pair.size)
		            ? WW_ENOMEM
		            : WW_OK;
	if (!error)
		error = ww_postgres_store_move(postgres, id, part, to, postgres->current);
	if (error)
		return error;
	/* A job that is in the part twice is found once. */
	step->jobs[step->count] = id;
	step->marks[step->count] = (unsigned char *)(uintptr_t)value.data;
	*step->marks[step->count++] = (unsigned char)to;
	return WW_OK;
}

static int insert(struct step *step)
{
	struct postgres *postgres = step->postgres;
	unsigned char turn[8];
	struct link_argument arguments[4] = {[2] = {LINK_INT8, turn, sizeof turn}};
	int error;

	store_write64(turn, postgres->turn + 1);
	if (ww_postgres_array_argument(&step->slots, &arguments[0]) ||
	    ww_postgres_array_argument(&step->ids, &arguments[1]) ||
	    ww_postgres_array_argument(&step->pairs, &arguments[3]))
		return WW_ENOMEM;
	error = ww_postgres_link_ask(&postgres->writer,
	    "INSERT INTO weekwheel.job SELECT slot, id, $3, pair FROM unnest($1, $2, $4) AS row (slot, id, pair)",
	    arguments, 4, NULL);
	if (error)
		return ww_postgres_store_failed(postgres, error);
	postgres->turn++;
	for (size_t i = 0; i < step->count; i++)
		postgres->parts[*step->marks[i]].has_rows = 1;
	return WW_OK;
}

/* Write on the next living jobs of the part being emptied, before a place in its ids. */
static int write_on(struct postgres *postgres, size_t end)
{
	const struct ids *ids = &postgres->parts[postgres->emptying].ids;
	const struct ww_allocator *allocator = postgres->allocator;
	struct step step = {.postgres = postgres,
	    .slots = {.allocator = allocator, .element = LINK_INT2},
	    .ids = {.allocator = allocator, .element = LINK_INT8},
	    .pairs = {.allocator = allocator, .element = LINK_BYTEA}};
	size_t at = postgres->emptied;
	size_t noted = postgres->lefts[postgres->current].count;
	int error = WW_OK;

	for (; at < end && step.count < STEP && step.pairs.size + step.pair.size < STEP_BYTES && !error; at++)
		error = add_record(&step, ids->all[at]);
	if (!error && step.count && postgres->emptying < RING_PARTS)
		error = insert(&step);
	else if (!error && step.count) {
		struct changes round = postgres->round;
		postgres->round = step.pair;
		error = ww_postgres_store_write(postgres, postgres->current);
		step.pair = postgres->round;
		postgres->round = round;
	}
	if (error) {
		for (size_t i = 0; i < step.count; i++)
			*step.marks[i] = (unsigned char)postgres->emptying;
		ww_postgres_store_unsettle(postgres);
		postgres->lefts[postgres->current].count = noted;
	} else {
		postgres->emptied = at;
		ww_postgres_store_settle(postgres);
		for (size_t i = 0; i < step.count; i++)
			ww_postgres_far_leave(postgres, step.jobs[i]);
	}
	memory_give(allocator, step.pair.bytes, step.pair.room);
	ww_postgres_array_free(&step.slots);
	ww_postgres_array_free(&step.ids);
	ww_postgres_array_free(&step.pairs);
	return error;
}

/* ---- Emptying */

static int write_gone(struct postgres *postgres, const struct lefts *lefts)
{
	const struct ww_allocator *allocator = postgres->allocator;
	struct array slots = {.allocator = allocator, .element = LINK_INT2};
	struct array ids = {.allocator = allocator, .element = LINK_INT8};
	struct array turns = {.allocator = allocator, .element = LINK_INT8};
	struct link_argument arguments[3];
	int error = WW_OK;

	for (size_t i = 0; i < lefts->count && !error; i++)
		if (ww_postgres_array_number(&slots, lefts->all[i].slot) ||
		    ww_postgres_array_number(&ids, lefts->all[i].id) ||
		    ww_postgres_array_number(&turns, lefts->all[i].turn))
			error = WW_ENOMEM;
	if (!error &&
	    (ww_postgres_array_argument(&slots, &arguments[0]) || ww_postgres_array_argument(&ids, &arguments[1]) ||
	        ww_postgres_array_argument(&turns, &arguments[2])))
		error = WW_ENOMEM;
	/* A slot that was emptied meanwhile will lose these rows again. */
	for (size_t i = 0; i < lefts->count && !error; i++)
		postgres->parts[RING_PARTS + lefts->all[i].slot].has_rows = 1;
	if (!error && lefts->count)
		error = ww_postgres_link_ask(&postgres->writer,
		    "INSERT INTO weekwheel.gone SELECT slot, array_agg(id), array_agg(turn) "
		    "FROM unnest($1, $2, $3) AS row (slot, id, turn) GROUP BY slot",
		    arguments, 3, NULL);
	ww_postgres_array_free(&slots);
	ww_postgres_array_free(&ids);
	ww_postgres_array_free(&turns);
	return error;
}

/* Under the lock, in a statement of its own, which sees all that committed before: each row of the inbox is taken. */
static int check_taken(struct postgres *postgres, unsigned part)
{
	char statement[80];
	PGresult *result;
	int error;

	(void)snprintf(statement, sizeof statement, "SELECT count(*), bit_xor(id) FROM weekwheel.inbox_%u", part);
	error = ww_postgres_link_ask(&postgres->writer, statement, NULL, 0, &result);
	if (!error && ((uint64_t)ww_postgres_link_number(result, 0, 0) != postgres->taken_of[part].count ||
	                  (uint64_t)ww_postgres_link_number(result, 0, 1) != postgres->taken_of[part].ids))
		error = WW_EAGAIN;
	PQclear(result);
	return error;
}

/*
 * TRUNCATE waits for all that write or read the tables, and all others wait behind it, so it waits only briefly. A put
 * whose transaction is open keeps its part.
 */
static int truncate_part(struct postgres *postgres, unsigned part)
{
	struct link *writer = &postgres->writer;
	char lock[160];
	char cut[120];
	int error;

	if (part < RING_PARTS) {
		(void)snprintf(lock, sizeof lock,
		    "BEGIN; SET LOCAL lock_timeout = 50; LOCK TABLE weekwheel.inbox_%u, weekwheel.turn_%u", part, part);
		(void)snprintf(cut, sizeof cut, "TRUNCATE weekwheel.inbox_%u, weekwheel.turn_%u; COMMIT", part, part);
	} else {
		(void)snprintf(lock, sizeof lock,
		    "BEGIN; SET LOCAL lock_timeout = 50; LOCK TABLE weekwheel.job_%u, weekwheel.gone_%u",
		    part - RING_PARTS, part - RING_PARTS);
		(void)snprintf(cut, sizeof cut, "TRUNCATE weekwheel.job_%u, weekwheel.gone_%u; COMMIT",
		    part - RING_PARTS, part - RING_PARTS);
	}
	error = ww_postgres_link_execute(writer, lock);
	if (!error && part < RING_PARTS)
		error = check_taken(postgres, part);
	if (!error && part < RING_PARTS)
		error = write_gone(postgres, &postgres->lefts[part]);
	if (!error)
		error = ww_postgres_link_execute(writer, cut);
	if (error) {
		(void)ww_postgres_link_execute(writer, "ROLLBACK");
		return ww_postgres_store_failed(postgres, error);
	}
	ww_postgres_ids_free(&postgres->parts[part].ids, postgres->allocator);
	postgres->parts[part].has_rows = 0;
	ww_postgres_far_clear(postgres, part);
	if (part < RING_PARTS) {
		postgres->lefts[part].count = 0;
		postgres->taken_of[part].count = postgres->taken_of[part].ids = 0;
	}
	return WW_OK;
}

static void empty_part(struct postgres *postgres)
{
	size_t end = postgres->parts[postgres->emptying].ids.count;
	int error = WW_OK;

	/* What is to be written on has to be in memory. */
	if (postgres->emptying >= RING_PARTS && postgres->emptied < end)
		error = ww_postgres_far_visit_next(postgres, postgres->emptying, postgres->emptied, STEP, &end);
	if (!error && postgres->emptied < end)
		error = write_on(postgres, end);
	else if (!error) {
		error = truncate_part(postgres, postgres->emptying);
		postgres->is_emptying = error != WW_OK;
	}
	if (error)
		postgres->again = time_now(CLOCK_MONOTONIC) + WW_SECOND;
}

static void begin_emptying(struct postgres *postgres, unsigned part)
{
	postgres->is_emptying = 1;
	postgres->emptying = part;
	postgres->emptied = 0;
}

/* ---- What is to be done */

/* Turn the ring: its next part is empty. Pairs that belong to no job go there first. */
static void turn_ring(struct postgres *postgres, unsigned next)
{
	char statement[80];
	int error;

	postgres->round.size = 0;
	error = ww_postgres_store_add_image(postgres);
	if (!error)
		error = ww_postgres_store_write(postgres, next);
	(void)snprintf(statement, sizeof statement, "SELECT setval('weekwheel.current', %llu)",
	    (unsigned long long)postgres->position + 1);
	if (!error)
		error = ww_postgres_link_execute(&postgres->writer, statement);
	postgres->round.size = 0;
	if (error) {
		(void)ww_postgres_store_failed(postgres, error);
		postgres->again = time_now(CLOCK_MONOTONIC) + WW_SECOND;
		return;
	}
	postgres->has_news = 0;
	postgres->position++;
	postgres->current = next;
	postgres->began = time_now(CLOCK_MONOTONIC);
}

/* Whether a slot has nothing left, or little: its hour is over, or most of its rows are gone. */
static int is_done(const struct postgres *postgres, unsigned slot)
{
	const struct part *part = &postgres->parts[RING_PARTS + slot];
	unsigned hour = (unsigned)(postgres->now / HOUR % SLOT_REST);

	if (!part->has_rows || part->living == 0)
		return part->has_rows;
	if (part->ids.count > SPARSE && part->living < part->ids.count / 2)
		return 1;
	return slot != SLOT_REST && (slot + SLOT_REST - hour) % SLOT_REST > HOURS_AHEAD;
}

static void look_at_slots(struct postgres *postgres)
{
	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (is_done(postgres, slot)) {
			begin_emptying(postgres, RING_PARTS + slot);
			return;
		}
	postgres->again =
	    time_now(CLOCK_MONOTONIC) + (postgres->config.ring < WW_SECOND ? postgres->config.ring : WW_SECOND);
}

static int has_rows(const struct postgres *postgres, unsigned part)
{
	return postgres->parts[part].has_rows || postgres->taken_of[part].count;
}

/* It is time to turn the ring. While nothing is written there is no need: the parts before the current one are emptied. */
static void go_round(struct postgres *postgres)
{
	unsigned part = (postgres->current + 1) % RING_PARTS;

	if (postgres->has_news) {
		turn_ring(postgres, part);
		return;
	}
	while (part != postgres->current && !has_rows(postgres, part))
		part = (part + 1) % RING_PARTS;
	if (part != postgres->current)
		begin_emptying(postgres, part);
}

int ww_postgres_ring_tend(struct postgres *postgres)
{
	uint64_t now = time_now(CLOCK_MONOTONIC);
	unsigned next = (postgres->current + 1) % RING_PARTS;
	int more;

	if (postgres->lost || postgres->is_first)
		return 0;
	ww_postgres_fence_tend(postgres);
	more = ww_postgres_far_tend(postgres);
	if (postgres->is_emptying && now < postgres->again)
		return more;
	if (postgres->is_emptying) {
		empty_part(postgres);
		return more || postgres->is_emptying;
	}
	if (now >= postgres->again)
		look_at_slots(postgres);
	if (postgres->is_emptying)
		return 1;
	if (has_rows(postgres, next))
		begin_emptying(postgres, next);
	else if (now - postgres->began >= postgres->config.ring)
		go_round(postgres);
	return more || postgres->is_emptying;
}
