/* Reads a store when it is opened: the slots, except records that have left them, then the turns of the ring. */
#include "lib/postgres/load.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/postgres/far.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/store.h"

enum { SETTLE_EVERY = 4096 };

/* A job that left a slot, from `gone`. */
struct gone {
	uint64_t id;
	uint64_t turn;
	unsigned slot;
};

struct load {
	struct postgres *postgres;
	struct gone *gone; /* in order of slots, ids and turns */
	size_t gone_count;
	size_t gone_room;
	unsigned part; /* that is read */
	uint64_t far;  /* what is due from then on is far, wherever it lies: an estimate */
	struct ids numbers;
	uint64_t secret;
};

/* Call fn for each row of a statement. */
static int each_row(struct load *load, const char *statement, int (*fn)(struct load *load, const PGresult *row))
{
	struct link *link = &load->postgres->writer;
	int error = ww_postgres_link_stream(link, statement, NULL, 0);
	int bad = WW_OK;
	PGresult *row;

	for (size_t count = 1; !error; count++) {
		error = ww_postgres_link_row(link, &row);
		if (!error && !bad)
			bad = fn(load, row);
		PQclear(row);
		/* The notes that memory made of a write are handled. */
		if (count % SETTLE_EVERY == 0)
			ww_postgres_store_settle(load->postgres);
	}
	ww_postgres_store_settle(load->postgres);
	return error == LINK_END ? bad : error;
}

/* ---- What is gone */

static int compare_gone(const void *one, const void *other)
{
	const struct gone *a = one;
	const struct gone *b = other;

	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (a->turn > b->turn) - (a->turn < b->turn);
}

static int add_number(void *context, uint64_t number)
{
	struct load *load = context;

	return ww_postgres_ids_add(&load->numbers, load->postgres->allocator, number);
}

static int room_for_gone(struct load *load, size_t more)
{
	size_t room = 2 * (load->gone_count + more);
	struct gone *all;

	if (load->gone_count + more <= load->gone_room)
		return WW_OK;
	all = memory_take(load->postgres->allocator, room * sizeof *all);
	if (!all)
		return WW_ENOMEM;
	if (load->gone_count)
		memcpy(all, load->gone, load->gone_count * sizeof *all);
	memory_give(load->postgres->allocator, load->gone, load->gone_room * sizeof *all);
	load->gone = all;
	load->gone_room = room;
	return WW_OK;
}

/* slot, ids, turns: two arrays of one length. */
static int read_gone(struct load *load, const PGresult *row)
{
	size_t size;
	const void *bytes = ww_postgres_link_bytes(row, 0, 1, &size);
	size_t count;
	int error;

	load->numbers.count = 0;
	error = ww_postgres_array_each(bytes, size, add_number, load);
	count = load->numbers.count;
	bytes = ww_postgres_link_bytes(row, 0, 2, &size);
	if (!error)
		error = ww_postgres_array_each(bytes, size, add_number, load);
	if (!error && load->numbers.count != 2 * count)
		error = WW_ECORRUPT;
	if (!error)
		error = room_for_gone(load, count);
	for (size_t i = 0; i < count && !error; i++)
		load->gone[load->gone_count++] = (struct gone){
		    load->numbers.all[i], load->numbers.all[count + i], (unsigned)ww_postgres_link_number(row, 0, 0)};
	load->postgres->parts[RING_PARTS + (unsigned)ww_postgres_link_number(row, 0, 0) % SLOTS].has_rows = 1;
	return error;
}

/* Whether the row was written before the job left. */
static int is_gone(const struct load *load, unsigned slot, uint64_t id, uint64_t turn)
{
	const struct gone sought = {id, turn, slot};
	size_t low = 0;
	size_t high = load->gone_count;

	/* The first note that is later than this turn. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (compare_gone(&load->gone[middle], &sought) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < load->gone_count && load->gone[low].slot == slot && load->gone[low].id == id;
}

/* ---- Changes */

/* A slot has the job, too: it has left that. */
static int leave_slots(const struct load *load, uint64_t id, unsigned noted_in)
{
	struct postgres *postgres = load->postgres;
	unsigned part;
	int error = WW_OK;

	while (!error && (part = ww_postgres_far_find(postgres, id)) != NO_PART)
		error = ww_postgres_store_move(postgres, id, part, NO_PART, noted_in);
	return error;
}

static int replay(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	struct load *load = context;
	struct postgres *postgres = load->postgres;
	const struct store *memory = &postgres->memory;
	int is_there = *(const char *)kept.data == CHANGES_THERE;
	unsigned noted_in = load->part < RING_PARTS ? load->part : postgres->current;
	int error;

	if (is_of_job(table) && key.size < 8)
		return WW_ECORRUPT;
	if (load->part >= RING_PARTS && table != STORE_BURIED && is_there && store_read64(key.data) >= load->far)
		return ww_postgres_far_note(postgres, load->part, id_of_key(key), store_read64(key.data));
	if (is_of_job(table) && is_there) {
		error = ww_postgres_store_place(postgres, table, key, kept, load->part, noted_in);
		if (!error && load->part < RING_PARTS)
			return leave_slots(load, id_of_key(key), noted_in);
		/* When the store has the time, it knows better whether the job is far. */
		return error || table == STORE_BURIED
		           ? error
		           : ww_postgres_ids_add(&load->postgres->visits, load->postgres->allocator, id_of_key(key));
	}
	if (is_of_job(table)) {
		error = ww_postgres_store_remove(postgres, table, key, noted_in);
		if (!error || error == WW_ENOTFOUND)
			error = leave_slots(load, id_of_key(key), noted_in);
	} else if (is_there)
		error = memory->ops->put(
		    memory->self, table, key, (struct store_bytes){(const char *)kept.data + 1, kept.size - 1});
	else
		error = memory->ops->remove(memory->self, table, key);
	/* What an earlier turn put may have been written on, and that part emptied. */
	return error == WW_ENOTFOUND ? WW_OK : error;
}

static int read_changes(struct load *load, const PGresult *row, int column)
{
	size_t size;
	const void *bytes = ww_postgres_link_bytes(row, 0, column, &size);

	return ww_jobs_port_changes(bytes, size, replay, load);
}

static void note_turn(struct postgres *postgres, int64_t turn)
{
	if ((uint64_t)turn > postgres->turn)
		postgres->turn = (uint64_t)turn;
}

/* slot, id, turn, pair */
static int read_job(struct load *load, const PGresult *row)
{
	unsigned slot = (unsigned)ww_postgres_link_number(row, 0, 0);
	uint64_t id = (uint64_t)ww_postgres_link_number(row, 0, 1);
	int64_t turn = ww_postgres_link_number(row, 0, 2);
	const unsigned char *bytes;
	size_t size;

	if (slot >= SLOTS)
		return WW_ECORRUPT;
	load->part = RING_PARTS + slot;
	load->postgres->parts[load->part].has_rows = 1;
	note_turn(load->postgres, turn);
	if (is_gone(load, slot, id, (uint64_t)turn))
		return WW_OK;
	/* Of what lies in an hour, the beginning of the key is enough: its due time. */
	if (slot == SLOT_REST)
		return read_changes(load, row, 3);
	bytes = ww_postgres_link_bytes(row, 0, 3, &size);
	return size == 16 ? ww_postgres_far_note(load->postgres, load->part, id, store_read64(bytes + 8)) : WW_ECORRUPT;
}

/* slot, pair: the key of a job that is far. */
static int lead_far(void *context, enum store_table table, struct store_bytes key, struct store_bytes kept)
{
	struct load *load = context;
	struct postgres *postgres = load->postgres;

	if (!is_of_job(table) || key.size < 8)
		return WW_ECORRUPT;
	if (!ww_postgres_far_is_in(postgres, load->part, id_of_key(key)))
		return WW_OK;
	return ww_jobs_port_lead(&postgres->memory, PORT_BY_KEY, load->secret, table, key,
	    (struct store_bytes){(const char *)kept.data + 1, kept.size - 1});
}

static int read_key(struct load *load, const PGresult *row)
{
	size_t size;
	const void *bytes = ww_postgres_link_bytes(row, 0, 1, &size);

	load->part = RING_PARTS + (unsigned)ww_postgres_link_number(row, 0, 0) % SLOTS;
	return ww_jobs_port_changes(bytes, size, lead_far, load);
}

static int take_known(void *context, uint64_t id)
{
	struct postgres *postgres = ((struct load *)context)->postgres;

	return ww_postgres_ids_set(&postgres->known, postgres->allocator, id);
}

/* ring, turn, taken, changes */
static int read_turn(struct load *load, const PGresult *row)
{
	size_t size;
	const void *taken = ww_postgres_link_bytes(row, 0, 2, &size);
	int error;

	load->part = (unsigned)ww_postgres_link_number(row, 0, 0) % RING_PARTS;
	load->postgres->parts[load->part].has_rows = 1;
	note_turn(load->postgres, ww_postgres_link_number(row, 0, 1));
	error = ww_postgres_array_each(taken, size, take_known, load);
	return error ? error : read_changes(load, row, 3);
}

/* ---- The whole */

static int read_current(struct load *load, const PGresult *row)
{
	load->postgres->position = (uint64_t)ww_postgres_link_number(row, 0, 0);
	load->postgres->current = (unsigned)(load->postgres->position % RING_PARTS);
	return WW_OK;
}

static int read_numbers(struct load *load, const PGresult *row)
{
	load->postgres->numbered = (uint64_t)ww_postgres_link_number(row, 0, 0);
	return WW_OK;
}

static int read_all(struct load *load)
{
	int error = each_row(load, "SELECT last_value FROM weekwheel.current", read_current);

	if (!error)
		error = each_row(load, "SELECT last_value FROM weekwheel.ids", read_numbers);
	if (!error)
		error = each_row(load, "SELECT slot, ids, turns FROM weekwheel.gone", read_gone);
	if (load->gone_count)
		qsort(load->gone, load->gone_count, sizeof *load->gone, compare_gone);
	if (!error)
		error = each_row(load,
		    "SELECT slot, id, turn, CASE WHEN slot = 168 THEN pair ELSE substring(pair, 1, 16) END FROM weekwheel.job",
		    read_job);
	if (!error)
		error =
		    each_row(load, "SELECT ring, turn, taken, changes FROM weekwheel.turn ORDER BY turn", read_turn);
	return error;
}

/* What leads to a job. */
struct leads {
	struct postgres *postgres;
	const struct store store;
	uint64_t secret;
	enum store_table table;
};

static int lead(void *context, struct store_bytes key, struct store_bytes value)
{
	struct leads *leads = context;

	return ww_jobs_port_lead(&leads->store, PORT_BY_ID | PORT_BY_KEY, leads->secret, leads->table, key,
	    (struct store_bytes){(const char *)value.data + 1, value.size - 1});
}

static int lead_all(struct load *load)
{
	struct postgres *postgres = load->postgres;
	static const enum store_table tables[] = {STORE_DUE, STORE_WALL, STORE_BURIED};
	struct leads leads = {.postgres = postgres, .store = postgres->memory};
	int error = ww_jobs_port_secret(&postgres->memory, &leads.secret);

	if (error == WW_ENOTFOUND)
		return WW_OK;
	for (size_t i = 0; i < sizeof tables / sizeof *tables && !error; i++) {
		leads.table = tables[i];
		error = ww_jobs_port_each(&postgres->memory, leads.table, lead, &leads);
	}
	ww_postgres_store_settle(postgres);
	load->secret = leads.secret;
	return error ? error : each_row(load, "SELECT slot, pair FROM weekwheel.job", read_key);
}

int ww_postgres_load(struct postgres *postgres)
{
	struct load load = {
	    .postgres = postgres, .far = postgres->ahead + time_now(CLOCK_BOOTTIME) + HOURS_AHEAD * HOUR};
	int error = read_all(&load);

	if (!error)
		error = lead_all(&load);
	if (!error)
		error = ww_postgres_link_execute(
		    &postgres->writer, "SET enable_seqscan = off; SET enable_bitmapscan = off");
	memory_give(postgres->allocator, load.gone, load.gone_room * sizeof *load.gone);
	ww_postgres_ids_free(&load.numbers, postgres->allocator);
	return error;
}
