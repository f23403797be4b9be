/*
 * A job of a limited tube needs a permit to start. One shard, the tube's home, issues them (lua/part_permit.lua):
 *
 *     reserve    take permits at home -> lease that many jobs in a shard -> settle at home: by which jobs, until when
 *     finish     end the lease in its shard -> free the permit at home, which notifies those that it refused
 *
 * If groups have limits, the shard first names the groups whose turn is next, and the permits are for these. Groups that
 * the home refuses are passed to the shard with the reserve: it holds them until permits are free.
 *
 * If a process dies between the steps, its permits end with the leases, or soon if there are none. If the answer to an
 * end is lost, the job's permit stays: so a home that has to refuse lists some permits now and then, and the shards say
 * which jobs still run.
 */
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lib/redis/redis_internal.h"

/* The longest time that a tube is not asked for because it was refused: a message may be lost. */
#define HOLD_MOST (5 * WW_SECOND)

/* Jobs of one call that are doubted to run. */
enum { DOUBT_BATCH = 128 };
/* The words of the home's reply before those of each group. */
enum { GIVEN_NUMBER, GIVEN_FIRST, GIVEN_AGAIN, GIVEN_DOUBTS, GIVEN_WORDS };

uint32_t ww_redis_permit_home(const struct redis_store *store, const char *tube)
{
	return (uint32_t)(XXH64(tube, strlen(tube), 0) % store->shards);
}

/* A word of a reply; anything else is malformed. */
static void add_text(struct words *words, const redisReply *text)
{
	const int is_text = text->type == REDIS_REPLY_STRING;

	ww_redis_words_bytes(words, is_text ? text->str : "", is_text ? text->len : 0);
}

/* ---- Hints */

static void mark(struct redis_store *store, const char *name, int is_limited)
{
	pthread_mutex_lock(&store->lock);
	struct tube_hints *tube = ww_redis_hint(store, name);
	if (tube)
		tube->is_limited = is_limited;
	pthread_mutex_unlock(&store->lock);
}

static void hold(struct redis_store *store, const char *name, uint64_t until_us, uint64_t seen)
{
	uint64_t now = ww_redis_clock_now(store);
	uint64_t span = until_us > now / 1000 ? until_us * 1000 - now : 0;

	pthread_mutex_lock(&store->lock);
	struct tube_hints *tube = ww_redis_hint(store, name);
	if (tube && tube->let <= seen)
		tube->held_until = time_now(CLOCK_BOOTTIME) + (span < HOLD_MOST ? span : HOLD_MOST);
	pthread_mutex_unlock(&store->lock);
}

void ww_redis_permit_let(struct redis_store *store, const char *name)
{
	struct tube_hints *tube;

	pthread_mutex_lock(&store->lock);
	HASH_FIND(hh, store->tubes, name, (unsigned)strlen(name), tube);
	store->readies++;
	if (tube) {
		tube->held_until = 0;
		tube->let = store->readies;
	}
	pthread_cond_broadcast(&store->heard);
	pthread_mutex_unlock(&store->lock);
}

/* ---- Leases that have ended */

/* A group may go on in a shard that was refused. Returns how many it held: none if it has no job of the group any more. */
static int64_t let_group(struct redis_store *store, const char *tube, const redisReply *group, uint32_t shard)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, "let");
	ww_redis_words_text(words, tube);
	add_text(words, group);
	int64_t number = ww_redis_call_number(store, &ww_redis_script_shard_limit, shard, words, REDIS_CALL_AGAIN);
	ww_redis_hint_made(store, tube, shard, HINT_PERHAPS);
	return number;
}

/* The next shard that was refused, or below 0. */
static int64_t next_refused(struct redis_store *store, const char *tube, const redisReply *group)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, "next");
	ww_redis_words_text(words, tube);
	add_text(words, group);
	return ww_redis_call_number(
	    store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube), words, REDIS_CALL_AGAIN);
}

/* Some permits of a tube have come free: these groups may go on in these shards. */
static void let_groups(struct redis_store *store, const char *tube, const redisReply *reply)
{
	for (size_t i = 0; i + 1 < reply->elements; i += 2) {
		const redisReply *group = reply->element[i];
		int64_t shard = ww_redis_call_value(reply->element[i + 1]);
		while (shard >= 0 && shard < store->shards && !let_group(store, tube, group, (uint32_t)shard))
			shard = next_refused(store, tube, group);
	}
	ww_redis_permit_let(store, tube);
}

/* Tell the home which of the doubted leases have ended: those of jobs that no shard has as reserved. */
static int report_lost(
    struct redis_store *store, const char *tube, redisReply *const *doubts, const struct gather *gather, size_t count)
{
	struct words *words = ww_redis_words_many(store, 5 + 2 * count);
	redisReply *const *is_leased;
	redisReply *reply;
	size_t lost = 0;
	int error = words ? WW_OK : WW_ENOMEM;

	if (error)
		return error;
	ww_redis_words_text(words, "lost");
	ww_redis_words_text(words, tube);
	add_text(words, doubts[0]);
	for (size_t i = 0; i < count; i++) {
		if (ww_redis_gather_reply(gather, i, 1, &is_leased) || ww_redis_call_value(is_leased[0]))
			continue;
		lost++;
		add_text(words, doubts[1 + 2 * i]);
		add_text(words, doubts[2 + 2 * i]);
	}
	if (lost) {
		error = ww_redis_call_list(store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube),
		    words, REDIS_CALL_AGAIN, 0, &reply);
		if (!error)
			let_groups(store, tube, reply);
		if (!error)
			ww_redis_call_free(reply);
	}
	ww_redis_words_free(store, words);
	return error;
}

/* The home has reported some permits that may be of jobs which have ended. An error is no loss: they are doubted again. */
static void clear_doubts(struct redis_store *store, const char *tube, const redisReply *reply)
{
	size_t count = reply->type == REDIS_REPLY_ARRAY ? reply->elements / 2 : 0;
	struct gather gather;

	if (!count)
		return;
	int error = ww_redis_gather_make(&gather, store, count, DOUBT_BATCH);
	for (size_t i = 0; i < count && !error; i++) {
		uint64_t id = (uint64_t)ww_redis_call_value(reply->element[1 + 2 * i]);
		ww_redis_gather_add(&gather, i, shard_of(store, id), 0);
	}
	if (!error)
		error = ww_redis_gather_begin(&gather, 1);
	for (size_t i = 0; i < count && !error; i++)
		add_text(ww_redis_gather_words(&gather, i), reply->element[1 + 2 * i]);
	if (!error)
		error = ww_redis_gather_run(&gather, &ww_redis_script_shard_leased, REDIS_CALL_AGAIN);
	if (!error)
		(void)report_lost(store, tube, reply->element, &gather, count);
	ww_redis_gather_free(&gather);
}

/* ---- Taken */

/* Ask the shard whose turn it is, for the tubes with limits of groups. */
static int look_at_rows(struct redis_store *store, uint32_t shard, size_t most, struct redis_permits *permits,
    size_t count, redisReply **reply)
{
	struct words *words;
	size_t asked = 0;
	size_t read = 0;

	for (size_t i = 0; i < count; i++)
		asked += permits[i].kind == LIMITED_GROUPS;
	if (!asked)
		return WW_OK;
	words = ww_redis_words_many(store, 3 + asked);
	if (!words)
		return WW_ENOMEM;
	ww_redis_words_number(words, most);
	for (size_t i = 0; i < count; i++)
		if (permits[i].kind == LIMITED_GROUPS)
			ww_redis_words_text(words, permits[i].tube);
	int error = ww_redis_call_list(
	    store, &ww_redis_script_shard_row, shard, words, REDIS_CALL_AGAIN | REDIS_CALL_SOON, asked, reply);
	ww_redis_words_free(store, words);
	for (size_t i = 0; i < count && !error; i++) {
		if (permits[i].kind != LIMITED_GROUPS)
			continue;
		permits[i].row = (*reply)->element[read++];
		error = ww_redis_call_array(store, permits[i].row, 0);
	}
	return error;
}

static int take(struct redis_store *store, uint32_t shard, size_t most, uint64_t seen, struct redis_permits *permits)
{
	const redisReply *row = permits->row;
	size_t groups = row ? row->elements / 2 : 0;
	struct words *words;

	/* Nothing is ready any more. */
	if (row && !groups)
		return WW_OK;
	words = ww_redis_words_many(store, 7 + 2 * groups);
	if (!words)
		return WW_ENOMEM;
	ww_redis_words_text(words, "take");
	ww_redis_words_text(words, permits->tube);
	ww_redis_words_number(words, most);
	ww_redis_words_number(words, us_up(2 * store->config.timeout));
	ww_redis_words_number(words, shard);
	for (size_t i = 0; i < 2 * groups; i += 2) {
		add_text(words, row->element[i]);
		ww_redis_words_number(words, (uint64_t)ww_redis_call_value(row->element[i + 1]));
	}
	int error = ww_redis_call_list(store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, permits->tube),
	    words, REDIS_CALL_SOON, GIVEN_WORDS, &permits->given);
	ww_redis_words_free(store, words);
	if (error)
		return error;
	redisReply *const *of = permits->given->element;
	int64_t number = ww_redis_call_value(of[GIVEN_NUMBER]);
	uint64_t again = (uint64_t)ww_redis_call_value(of[GIVEN_AGAIN]);
	/* Without a limit nothing is counted. A shard that does not know that yet still wants permits. */
	permits->number = number < 0 ? (uint32_t)most : (uint32_t)number;
	permits->first = (uint64_t)ww_redis_call_value(of[GIVEN_FIRST]);
	permits->is_rate = number > 0 && !permits->first;
	if (number < 0)
		mark(store, permits->tube, LIMITED_NOT);
	if (again)
		hold(store, permits->tube, again, seen);
	if (!number && again)
		permits->kind = -1;
	clear_doubts(store, permits->tube, of[GIVEN_DOUBTS]);
	return WW_OK;
}

int ww_redis_permit_take(struct redis_store *store, uint32_t shard, size_t most, uint64_t seen,
    struct redis_permits *permits, size_t count, redisReply **row)
{
	int error = look_at_rows(store, shard, most, permits, count, row);

	for (size_t i = 0; i < count && !error; i++)
		if (permits[i].kind)
			error = take(store, shard, most, seen, &permits[i]);
	for (size_t i = 0; i < count; i++)
		if (permits[i].kind < 0) {
			ww_redis_call_free(permits[i].given);
			permits[i].given = NULL;
		}
	return error;
}

void ww_redis_permit_free(struct redis_permits *permits, size_t count, redisReply *row)
{
	for (size_t i = 0; i < count; i++)
		ww_redis_call_free(permits[i].given);
	ww_redis_call_free(row);
}

/* ---- Said, and settled */

static size_t groups_of(const struct redis_permits *permits)
{
	return permits->row ? permits->row->elements / 2 : 0;
}

/* How many permits group i has, and until when it is held, or 0. */
static uint64_t number_of(const struct redis_permits *permits, size_t i, uint64_t *until)
{
	const redisReply *given = permits->given;
	size_t at = GIVEN_WORDS + 2 * i;

	*until = 0;
	if (!permits->first && permits->number)
		return (uint64_t)ww_redis_call_value(permits->row->element[2 * i + 1]);
	if (!given || at + 1 >= given->elements)
		return 0;
	*until = (uint64_t)ww_redis_call_value(given->element[at + 1]);
	return (uint64_t)ww_redis_call_value(given->element[at]);
}

size_t ww_redis_permit_words(const struct redis_permits *permits)
{
	return 3 * groups_of(permits);
}

void ww_redis_permit_fill(struct words *words, const struct redis_permits *permits)
{
	for (size_t i = 0; i < groups_of(permits); i++) {
		uint64_t until;
		uint64_t number = number_of(permits, i, &until);
		add_text(words, permits->row->element[2 * i]);
		ww_redis_words_number(words, number);
		ww_redis_words_number(words, until);
	}
}

/* Say a group, its permits and the leases that got them. `place`: of the group in the row from 1 on, or 0. */
static void add_used(struct words *words, const redisReply *group, uint64_t first, uint64_t number, int64_t place,
    const redisReply *used)
{
	size_t at = words->count + 3;

	ww_redis_words_bytes(words, group ? group->str : "", group ? group->len : 0);
	ww_redis_words_number(words, first);
	ww_redis_words_number(words, number);
	ww_redis_words_number(words, 0);
	for (size_t i = 0; i + 2 < used->elements; i += 3) {
		if (ww_redis_call_value(used->element[i]) != place)
			continue;
		add_text(words, used->element[i + 1]);
		add_text(words, used->element[i + 2]);
	}
	size_t count = (words->count - at - 1) / 2;
	words->lengths[at] = (size_t)snprintf(words->numbers[at], sizeof *words->numbers, "%zu", count);
}

/* So many starts of a mere rate have not taken place. If that is lost, they count as if they had. */
static void spare(struct redis_store *store, const char *tube, uint64_t number)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);
	redisReply *reply;

	ww_redis_words_text(words, "spare");
	ww_redis_words_text(words, tube);
	ww_redis_words_number(words, number);
	if (!ww_redis_call_list(
	        store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube), words, 0, 0, &reply))
		ww_redis_call_free(reply);
}

void ww_redis_permit_settle(struct redis_store *store, const struct redis_permits *permits, const redisReply *used)
{
	uint64_t first = permits->first;
	struct words *words;
	redisReply *reply;
	uint64_t until;

	if (ww_redis_call_array(store, used, 0))
		return;
	if (permits->is_rate && used->elements / 3 < permits->number)
		spare(store, permits->tube, permits->number - used->elements / 3);
	if (!first)
		return;
	words = ww_redis_words_many(store, 8 + 4 * groups_of(permits) + used->elements);
	/* Without memory the permits end by themselves. */
	if (!words)
		return;
	ww_redis_words_text(words, "settle");
	ww_redis_words_text(words, permits->tube);
	if (!permits->row)
		add_used(words, NULL, first, permits->number, 0, used);
	for (size_t i = 0; i < groups_of(permits); i++) {
		uint64_t number = number_of(permits, i, &until);
		if (number)
			add_used(words, permits->row->element[2 * i], first, number, (int64_t)i + 1, used);
		first += number;
	}
	/* Without an answer, those that were refused ask again by themselves. */
	int error = ww_redis_call_list(store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, permits->tube),
	    words, REDIS_CALL_AGAIN, 0, &reply);
	ww_redis_words_free(store, words);
	if (error)
		return;
	if (reply->elements)
		let_groups(store, permits->tube, reply);
	ww_redis_call_free(reply);
}

/* ---- Other leases, and their ends */

/* Begin a call about a job's permit, or not if `of` is no tube. */
static struct words *begin(struct redis_store *store, struct few_words *few, const char *what, const redisReply *of,
    char tube[WW_TUBE_MAX + 1])
{
	if (of->type != REDIS_REPLY_STRING || of->len > WW_TUBE_MAX)
		return NULL;
	memcpy(tube, of->str, of->len);
	tube[of->len] = 0;
	struct words *words = ww_redis_words_few(store, few);
	ww_redis_words_text(words, what);
	ww_redis_words_text(words, tube);
	return words;
}

void ww_redis_permit_add(struct redis_store *store, const struct ww_lease *lease, const redisReply *group)
{
	struct few_words few;
	struct words *words = ww_redis_words_few(store, &few);

	ww_redis_words_text(words, "add");
	ww_redis_words_text(words, lease->tube);
	ww_redis_words_number(words, lease->id);
	ww_redis_words_number(words, lease->ends / 1000);
	add_text(words, group);
	(void)ww_redis_call_number(
	    store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, lease->tube), words, 0);
}

void ww_redis_permit_end(
    struct redis_store *store, const redisReply *of, const redisReply *group, uint64_t id, const char *what)
{
	char tube[WW_TUBE_MAX + 1];
	struct few_words few;
	struct words *words = begin(store, &few, what, of, tube);
	redisReply *reply;

	if (words && !group)
		spare(store, tube, 1);
	if (!words || !group)
		return;
	ww_redis_words_number(words, id);
	add_text(words, group);
	if (ww_redis_call_list(store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube), words,
	        REDIS_CALL_AGAIN, 0, &reply))
		return;
	let_groups(store, tube, reply);
	ww_redis_call_free(reply);
}

void ww_redis_permit_touch(
    struct redis_store *store, const redisReply *of, const redisReply *group, uint64_t id, uint64_t end_us)
{
	char tube[WW_TUBE_MAX + 1];
	struct few_words few;
	struct words *words = begin(store, &few, "touch", of, tube);

	if (!words)
		return;
	ww_redis_words_number(words, id);
	ww_redis_words_number(words, end_us);
	add_text(words, group);
	(void)ww_redis_call_number(
	    store, &ww_redis_script_shard_permit, ww_redis_permit_home(store, tube), words, REDIS_CALL_AGAIN);
}
