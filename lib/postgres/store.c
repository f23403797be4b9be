/* The pairs of a store in PostgreSQL: in memory, and each write as a row. */
#include "lib/postgres/store.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/memory.h"
#include "lib/base/time.h"
#include "lib/postgres/far.h"
#include "lib/postgres/fence.h"
#include "lib/postgres/postgres_internal.h"
#include "lib/postgres/ring.h"
#include "lib/postgres/state.h"

/* The sequence of ids for SQL follows in steps: ids grow with arrival, roughly. */
enum { NUMBERS_AT_ONCE = 1000 };
enum { EPOCHS_OF_TIMELINE_BITS = 12, EPOCH_MAX = 1 << 23 };
#define ALIVE_FOR (2 * WW_SECOND)
#define ROUND_MAX ((size_t)768 << 20)

int ww_postgres_store_failed(struct postgres *postgres, int error)
{
	if (ww_postgres_link_is_lost(&postgres->writer)) {
		ww_postgres_lose(postgres, postgres->writer.why);
		error = WW_EIO;
	}
	return error;
}

/* ---- Reading */

/* Far jobs have pairs in these tables that memory lacks. */
static int is_line(enum store_table table)
{
	return table == STORE_JOBS || table == STORE_DUE || table == STORE_WALL;
}

/* In memory, a record has its part before it. */
static int shown(int error, enum store_table table, struct store_bytes *value)
{
	if (!error && is_of_job(table))
		*value = (struct store_bytes){(const char *)value->data + 1, value->size - 1};
	return error;
}

static int get(void *self, enum store_table table, struct store_bytes key, struct store_bytes *value)
{
	struct postgres *postgres = self;
	const struct store *memory = &postgres->memory;
	int error = memory->ops->get(memory->self, table, key, value);

	if (error == WW_ENOTFOUND && is_line(table) && key.size >= 8) {
		error = ww_postgres_far_visit(postgres, id_of_key(key));
		if (!error)
			error = memory->ops->get(memory->self, table, key, value);
	}
	return shown(error, table, value);
}

/* Due times or ids are numbers at the beginning of keys. */
static uint64_t number_of(struct store_bytes key)
{
	unsigned char bytes[8] = {0};

	if (key.size)
		memcpy(bytes, key.data, key.size < 8 ? key.size : 8);
	return store_read64(bytes);
}

/* Let far jobs between two keys visit memory. Returns 1 if memory is to be asked again, 0, or an error. */
static int visit_between(struct postgres *postgres, enum store_table table, uint64_t from, uint64_t to)
{
	unsigned part;
	int error;

	if (table == STORE_JOBS)
		return ww_postgres_far_visit_ids(postgres, from, to);
	part = ww_postgres_far_between(postgres, from, to);
	if (part == NO_PART)
		return 0;
	error = ww_postgres_far_visit_part(postgres, part);
	return error ? error : 1;
}

static int note_last(struct postgres *postgres, int error, enum store_table table, struct store_bytes key)
{
	struct read_key *last = &postgres->last[table];

	last->size = error ? 0 : key.size;
	if (last->size)
		memcpy(last->bytes, key.data, last->size);
	return error;
}

/* The pair nearest to `from`, at or after it, or before it. */
static int find(struct postgres *postgres, int is_before, enum store_table table, struct store_bytes from,
    struct store_bytes *key, struct store_bytes *value)
{
	const struct store *memory = &postgres->memory;
	uint64_t bounds[2] = {number_of(from), number_of(from)};
	int error, more;

	do {
		error = (is_before ? memory->ops->before : memory->ops->seek)(memory->self, table, from, key, value);
		if ((error && error != WW_ENOTFOUND) || !is_line(table))
			break;
		bounds[!is_before] = !error ? number_of(*key) : is_before ? 0 : UINT64_MAX;
		more = visit_between(postgres, table, bounds[0], bounds[1]);
		if (more < 0)
			error = more;
	} while (more > 0);
	if (!error && is_line(table) && table != STORE_JOBS)
		ww_postgres_far_use(postgres, number_of(*key));
	return shown(note_last(postgres, error, table, *key), table, value);
}

static int seek(
    void *self, enum store_table table, struct store_bytes from, struct store_bytes *key, struct store_bytes *value)
{
	return find(self, 0, table, from, key, value);
}

/* A visit ends memory's own way through the pairs. */
static int next(void *self, enum store_table table, struct store_bytes *key, struct store_bytes *value)
{
	struct postgres *postgres = self;
	struct read_key from = postgres->last[table];

	if (!from.size)
		return WW_ENOTFOUND;
	from.bytes[from.size++] = 0;
	return seek(self, table, (struct store_bytes){from.bytes, from.size}, key, value);
}

static int before(
    void *self, enum store_table table, struct store_bytes to, struct store_bytes *key, struct store_bytes *value)
{
	return find(self, 1, table, to, key, value);
}

static uint64_t quiet(void *self, enum store_table table, struct store_bytes from)
{
	const struct postgres *postgres = self;
	const struct store *memory = &postgres->memory;
	struct store_bytes key, value;
	uint64_t far = ww_postgres_far_quiet(postgres, number_of(from));
	uint64_t near = memory->ops->seek(memory->self, table, from, &key, &value) ? UINT64_MAX : number_of(key);

	return near < far ? near : far;
}

static void rest(void *self)
{
	ww_postgres_far_rest(self);
}

/* ---- Parts */

static int add_left(struct postgres *postgres, struct lefts *lefts, struct left left)
{
	if (lefts->count == lefts->room) {
		size_t room = lefts->room ? 2 * lefts->room : 64;
		struct left *more = memory_take(postgres->allocator, room * sizeof *more);
		if (!more)
			return WW_ENOMEM;
		if (lefts->count)
			memcpy(more, lefts->all, lefts->count * sizeof *more);
		memory_give(postgres->allocator, lefts->all, lefts->room * sizeof *more);
		lefts->all = more;
		lefts->room = room;
	}
	lefts->all[lefts->count++] = left;
	return WW_OK;
}

/* The part of the record under this key that memory has, or NO_PART. */
static unsigned part_of(const struct postgres *postgres, enum store_table table, struct store_bytes key)
{
	const struct store *memory = &postgres->memory;
	struct store_bytes value;

	return memory->ops->get(memory->self, table, key, &value) == WW_OK ? *(const unsigned char *)value.data
	                                                                   : NO_PART;
}

/* A record moves from one part to another. That counts when the write succeeds. */
static int move(struct postgres *postgres, uint64_t id, unsigned from, unsigned to, unsigned noted_in)
{
	int error = WW_OK;

	if (from != NO_PART && from >= RING_PARTS)
		error = add_left(
		    postgres, &postgres->lefts[noted_in], (struct left){id, postgres->turn + 1, from - RING_PARTS});
	if (!error && to != NO_PART)
		error = ww_postgres_ids_add(&postgres->parts[to].ids, postgres->allocator, id);
	if (!error)
		error = ww_postgres_ids_add(&postgres->moves, postgres->allocator, (uint64_t)from << 16 | to);
	if (error)
		return error;
	error = ww_postgres_ids_add(&postgres->moves, postgres->allocator, id);
	if (error) {
		postgres->moves.count--;
		return error;
	}
	if (from != NO_PART && from >= RING_PARTS)
		ww_postgres_far_mark(postgres, from, id, 1);
	if (to != NO_PART && to >= RING_PARTS && id > postgres->far_most)
		postgres->far_most = id;
	return WW_OK;
}

void ww_postgres_store_unsettle(struct postgres *postgres)
{
	for (size_t i = postgres->moves.count / 2; i-- > 0;) {
		unsigned from = (unsigned)(postgres->moves.all[2 * i] >> 16);
		unsigned to = (unsigned)(postgres->moves.all[2 * i] & NO_PART);
		uint64_t id = postgres->moves.all[2 * i + 1];
		if (from != NO_PART && from >= RING_PARTS)
			ww_postgres_far_mark(postgres, from, id, 0);
		if (to != NO_PART && to >= RING_PARTS)
			ww_postgres_far_mark(postgres, to, id, 1);
	}
	postgres->moves.count = 0;
}

static void count_moves(struct postgres *postgres)
{
	for (size_t i = 0; i < postgres->moves.count; i += 2) {
		unsigned from = (unsigned)(postgres->moves.all[i] >> 16);
		unsigned to = (unsigned)(postgres->moves.all[i] & NO_PART);
		if (from != NO_PART)
			postgres->parts[from].living--;
		if (to != NO_PART)
			postgres->parts[to].living++;
	}
	postgres->moves.count = 0;
}

/* The part for that moment stands where changes.h has a byte. */
int ww_postgres_store_keep(const struct postgres *postgres, enum store_table table, struct store_bytes key,
    struct store_bytes kept, unsigned part)
{
	const struct store *memory = &postgres->memory;
	unsigned char *mark = (unsigned char *)(uintptr_t)kept.data;
	unsigned char was = *mark;
	int error;

	*mark = (unsigned char)part;
	error = memory->ops->put(memory->self, table, key, kept);
	*mark = was;
	return error;
}

int ww_postgres_store_place(struct postgres *postgres, enum store_table table, struct store_bytes key,
    struct store_bytes kept, unsigned part, unsigned noted_in)
{
	int error = move(postgres, id_of_key(key), part_of(postgres, table, key), part, noted_in);

	return error ? error : ww_postgres_store_keep(postgres, table, key, kept, part);
}

int ww_postgres_store_remove(
    struct postgres *postgres, enum store_table table, struct store_bytes key, unsigned noted_in)
{
	const struct store *memory = &postgres->memory;
	unsigned part = part_of(postgres, table, key);
	int error = WW_ENOTFOUND;

	if (part != NO_PART)
		error = move(postgres, id_of_key(key), part, NO_PART, noted_in);
	return error ? error : memory->ops->remove(memory->self, table, key);
}

int ww_postgres_store_move(struct postgres *postgres, uint64_t id, unsigned from, unsigned to, unsigned noted_in)
{
	return move(postgres, id, from, to, noted_in);
}

void ww_postgres_store_settle(struct postgres *postgres)
{
	(void)postgres->memory.ops->commit(postgres->memory.self);
	count_moves(postgres);
}

/* ---- Writing */

static int begin(void *self)
{
	struct postgres *postgres = self;

	if (postgres->lost)
		return WW_EIO;
	postgres->round.size = 0;
	postgres->left_before = postgres->lefts[postgres->current].count;
	postgres->taken_before = postgres->taken.count;
	ww_postgres_far_begin(postgres);
	return postgres->memory.ops->begin(postgres->memory.self);
}

/* A row has less than a gigabyte. What does not fit into this turn fits into the next one. */
static int room(void *self, size_t size)
{
	const struct postgres *postgres = self;

	return postgres->lost ? postgres->lost : postgres->round.size + size > ROUND_MAX ? WW_EFULL : WW_OK;
}

/* What leads to a job is not written: it follows from the record. */
static int is_written(enum store_table table)
{
	return table != STORE_JOBS && table != STORE_KEYS;
}

static int add_change(struct postgres *postgres, enum store_table table, struct store_bytes key, int there,
    struct store_bytes value, struct store_bytes *kept)
{
	return ww_jobs_port_change(&postgres->round, postgres->allocator, table, key, there, value, kept);
}

static int put(void *self, enum store_table table, struct store_bytes key, struct store_bytes value)
{
	struct postgres *postgres = self;
	const struct store *memory = &postgres->memory;
	struct store_bytes kept;
	int error = is_written(table) ? add_change(postgres, table, key, CHANGES_THERE, value, &kept) : WW_OK;

	if (error)
		return error;
	if (is_of_job(table))
		return ww_postgres_store_place(postgres, table, key, kept, postgres->current, postgres->current);
	return memory->ops->put(memory->self, table, key, value);
}

static int remove_pair(void *self, enum store_table table, struct store_bytes key)
{
	struct postgres *postgres = self;
	const struct store *memory = &postgres->memory;
	struct store_bytes kept;
	int error = is_of_job(table) ? ww_postgres_store_remove(postgres, table, key, postgres->current)
	                             : memory->ops->remove(memory->self, table, key);

	if (error || !is_written(table))
		return error;
	return add_change(postgres, table, key, CHANGES_REMOVED, (struct store_bytes){"", 0}, &kept);
}

static void abort_write(void *self)
{
	struct postgres *postgres = self;

	postgres->round.size = 0;
	ww_postgres_store_unsettle(postgres);
	postgres->taken.count = postgres->taken_before;
	postgres->lefts[postgres->current].count = postgres->left_before;
	postgres->memory.ops->abort(postgres->memory.self);
	ww_postgres_far_abort(postgres);
}

static int add_to_image(void *context, struct store_bytes key, struct store_bytes value, enum store_table table)
{
	struct store_bytes kept;

	return add_change(context, table, key, CHANGES_THERE, value, &kept);
}

static int add_meta(void *context, struct store_bytes key, struct store_bytes value)
{
	return add_to_image(context, key, value, STORE_META);
}

static int add_tube(void *context, struct store_bytes key, struct store_bytes value)
{
	return add_to_image(context, key, value, STORE_TUBES);
}

static int add_count(void *context, struct store_bytes key, struct store_bytes value)
{
	return add_to_image(context, key, value, STORE_COUNTS);
}

int ww_postgres_store_add_image(struct postgres *postgres)
{
	int error = ww_jobs_port_each(&postgres->memory, STORE_META, add_meta, postgres);

	if (!error)
		error = ww_jobs_port_each(&postgres->memory, STORE_TUBES, add_tube, postgres);
	return error ? error : ww_jobs_port_each(&postgres->memory, STORE_COUNTS, add_count, postgres);
}

static const char write_statement[] = "INSERT INTO weekwheel.turn VALUES ($1, $2, $3, $4)";

int ww_postgres_store_prepare(struct postgres *postgres)
{
	static const enum link_type types[] = {LINK_INT2, LINK_INT8, LINK_INT8S, LINK_BYTEA};

	return ww_postgres_link_prepare(&postgres->writer, write_statement, types, sizeof types / sizeof *types);
}

/* Write the round, and what was taken from the inbox, as the row of a turn. */
int ww_postgres_store_write(struct postgres *postgres, unsigned part)
{
	unsigned char ring[2], turn[8];
	struct array taken = {.allocator = postgres->allocator, .element = LINK_INT8};
	struct link_argument arguments[4] = {{LINK_INT2, ring, sizeof ring}, {LINK_INT8, turn, sizeof turn},
	    {LINK_INT8S, NULL, 0}, {LINK_BYTEA, postgres->round.bytes, postgres->round.size}};
	int error = WW_OK;

	for (size_t i = 0; i < postgres->taken.count && !error; i++)
		error = ww_postgres_array_number(&taken, postgres->taken.all[i]);
	if (!error)
		error = ww_postgres_array_argument(&taken, &arguments[2]);
	ring[0] = 0;
	ring[1] = (unsigned char)part;
	store_write64(turn, postgres->turn + 1);
	if (!error)
		error = ww_postgres_link_ask(&postgres->writer, write_statement, arguments, 4, NULL);
	ww_postgres_array_free(&taken);
	if (error)
		return ww_postgres_store_failed(postgres, error);
	postgres->turn++;
	postgres->parts[part].has_rows = 1;
	postgres->has_news = 1;
	postgres->taken.count = 0;
	postgres->round.size = 0;
	return WW_OK;
}

/* The next ids of SQL are greater than those put here, roughly. If this fails, nothing is lost. */
static void move_numbers(struct postgres *postgres)
{
	unsigned char number[8];
	const struct link_argument argument = {LINK_INT8, number, sizeof number};

	if (postgres->even / 2 < postgres->numbered + NUMBERS_AT_ONCE)
		return;
	postgres->numbered = postgres->even / 2;
	store_write64(number, postgres->numbered);
	(void)ww_postgres_link_ask(&postgres->writer,
	    "SELECT max(nextval('weekwheel.ids')) FROM generate_series(1, $1 - (SELECT last_value FROM weekwheel.ids))",
	    &argument, 1, NULL);
}

static int commit(void *self)
{
	struct postgres *postgres = self;
	int error = postgres->lost;

	if (!error && postgres->needs_image)
		error = ww_postgres_store_add_image(postgres);
	if (!error && (postgres->round.size || postgres->taken.count))
		error = ww_postgres_store_write(postgres, postgres->current);
	if (error) {
		abort_write(postgres);
		return error;
	}
	postgres->needs_image = 0;
	ww_postgres_store_settle(postgres);
	postgres->is_writing = 0;
	move_numbers(postgres);
	(void)ww_postgres_ring_tend(postgres);
	return WW_OK;
}

/* A commit that waits for the disk makes all before it stable. */
static int sync_now(void *self)
{
	struct postgres *postgres = self;
	char statement[200];
	int error;

	if (postgres->config.jobs.sync == WW_SYNC_ALWAYS)
		return postgres->lost;
	(void)snprintf(statement, sizeof statement,
	    "BEGIN; SET LOCAL synchronous_commit = on; INSERT INTO weekwheel.turn_%u VALUES (%u, %llu, NULL, ''); COMMIT",
	    postgres->current, postgres->current, (unsigned long long)postgres->turn + 1);
	error = postgres->lost ? WW_EIO : ww_postgres_link_execute(&postgres->writer, statement);
	/* The batch is written, but may not be durable: as with a disk, there is no second try. */
	if (error) {
		ww_postgres_lose(postgres, postgres->writer.why);
		return WW_EIO;
	}
	postgres->turn++;
	return WW_OK;
}

/* ---- The rest */

static void set_time(void *self, uint64_t elapsed, uint64_t wall_time)
{
	(void)wall_time;
	((struct postgres *)self)->now = elapsed;
}

static uint64_t disk(void *self)
{
	(void)self;
	return 0;
}

/*
 * A standby takes over when the owner has been silent for 3 s. An owner that was stopped or cut off checks before it
 * delivers from memory.
 */
static void see_whether_alive(struct postgres *postgres)
{
	uint64_t now = time_now(CLOCK_BOOTTIME);
	int error;

	if (postgres->lost || now - postgres->looked < WW_MILLISECOND)
		return;
	postgres->looked = now;
	if (!ww_postgres_link_has_ended(&postgres->writer) && now - postgres->alive < ALIVE_FOR)
		return;
	error = ww_postgres_link_execute(&postgres->writer, "SELECT 1");
	if (error)
		(void)ww_postgres_store_failed(postgres, error);
	else
		postgres->alive = now;
}

static int fault(void *self, char text[WW_FAULT_MAX])
{
	struct postgres *postgres = self;

	see_whether_alive(postgres);
	if (text)
		(void)snprintf(text, WW_FAULT_MAX, "%.*s", WW_FAULT_MAX - 1, postgres->lost ? postgres->why : "");
	return postgres->lost;
}

static int close_store(void *self)
{
	return ww_postgres_state_end(self);
}

/* SQL has the odd ids. */
static uint64_t new_id(void *self, uint64_t next_id)
{
	struct postgres *postgres = self;

	if (postgres->given)
		return postgres->given;
	postgres->even = (next_id + 1) & ~UINT64_C(1);
	return postgres->even;
}

/*
 * A point-in-time recovery, or a failover to a standby that lags, has lost the last numbers. PostgreSQL then begins
 * another timeline, whose openings have greater ones. Tokens stay positive for SQL.
 */
static uint64_t epoch(void *self, uint64_t next)
{
	const struct postgres *postgres = self;
	uint64_t first = (postgres->timeline - 1) << EPOCHS_OF_TIMELINE_BITS;

	return first > next && first < EPOCH_MAX ? first : next;
}

static uint64_t wall(void *self)
{
	return ((struct postgres *)self)->ahead + time_now(CLOCK_BOOTTIME);
}

const struct store_ops ww_postgres_store_ops = {begin, commit, abort_write, rest, get, room, put, remove_pair, seek,
    before, next, sync_now, set_time, disk, fault, close_store, new_id, wall, epoch, ww_postgres_fence_revoke, quiet};
const struct store_ops ww_postgres_store_ops_virtual = {begin, commit, abort_write, rest, get, room, put, remove_pair,
    seek, before, next, sync_now, set_time, disk, fault, close_store, new_id, NULL, epoch, ww_postgres_fence_revoke,
    quiet};
