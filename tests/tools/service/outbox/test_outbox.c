/* Tests the queue of what is told to another server, beside a model that is slow and plain. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/seed.h"
#include "tests/support/suite.h"
#include "tools/service/outbox/outbox.h"
#include "weekwheel/error.h"

enum { MODEL_MAX = 4096, STEPS = 60000, BOUND = 64 * 1024 };

/* ---- The model: all that waits, in order; some of it is in flight. */

struct model_item {
	uint64_t id;
	unsigned number; /* its key and value say it */
	int has_value;
	int is_in_flight;
};

static struct model {
	struct model_item item[MODEL_MAX];
	size_t count;
	int is_again;
	uint64_t told;
	uint64_t given_up;
} model;

/* ---- What the journal has heard */

static struct journal_heard {
	uint64_t last;
	uint64_t told;
	unsigned settled;
} heard;

static void waiting(void *context, const struct outbox_item *item)
{
	(void)context;
	ck_assert_uint_gt(item->id, heard.last);
	heard.last = item->id;
}

static void delivered(void *context, uint64_t id)
{
	(void)context;
	ck_assert_uint_gt(id, heard.told);
	ck_assert_uint_le(id, heard.last);
	heard.told = id;
}

static int settle(void *context)
{
	(void)context;
	heard.settled++;
	return WW_OK;
}

static const struct outbox_journal journal = {.waiting = waiting, .delivered = delivered, .settle = settle};

/* ---- Steps */

static struct outbox_item item_of(unsigned number, char key[16], char value[400])
{
	struct outbox_item item = {.why = number % 2 ? WW_GONE_EXPIRED : WW_GONE_EVICTED,
	    .database = number % 16,
	    .deadline_ms = 1000 + number,
	    .since_ms = 2000 + number,
	    .key = key,
	    .value = value,
	    .size = number % 400};

	item.length = (size_t)snprintf(key, 16, "k%u", number);
	memset(value, 'a' + (int)(number % 26), item.size);
	return item;
}

static void is_item(const struct outbox_item *item, const struct model_item *expected)
{
	char key[16];
	char value[400];
	struct outbox_item whole = item_of(expected->number, key, value);

	ck_assert_uint_eq(item->id, expected->id);
	ck_assert_int_eq(item->why, whole.why);
	ck_assert_uint_eq(item->database, whole.database);
	ck_assert_int_eq(item->deadline_ms, whole.deadline_ms);
	ck_assert_int_eq(item->since_ms, whole.since_ms);
	ck_assert_mem_eq(item->key, whole.key, whole.length);
	ck_assert_uint_eq(item->length, whole.length);
	ck_assert_uint_eq(item->size, whole.size);
	ck_assert_int_eq(item->value != NULL, expected->has_value);
	if (item->value)
		ck_assert_mem_eq(item->value, whole.value, whole.size);
}

static void forget(size_t at)
{
	memmove(&model.item[at], &model.item[at + 1], (model.count - at - 1) * sizeof model.item[0]);
	model.count--;
}

static size_t flights(size_t *first)
{
	size_t count = 0;

	for (size_t i = model.count; i-- > 0;)
		if (model.item[i].is_in_flight) {
			*first = i;
			count++;
		}
	return count;
}

/* The bound is the outbox's: the model takes over how many it dropped, and that they were the oldest that were not taken. */
static void drop(struct outbox *outbox, uint64_t dropped_before, size_t taken)
{
	struct outbox_stats stats;

	outbox_stats(outbox, &stats);
	ck_assert_uint_le(stats.bytes, BOUND);
	for (uint64_t i = dropped_before; i < stats.dropped; i++)
		forget(taken);
}

static void step_add(struct outbox *outbox, unsigned number, size_t taken)
{
	char key[16];
	char value[400];
	struct outbox_item item = item_of(number, key, value);
	struct outbox_stats before;
	struct outbox_stats after;
	uint64_t id;

	outbox_stats(outbox, &before);
	id = outbox_add(outbox, &item);
	outbox_stats(outbox, &after);
	ck_assert_uint_eq(id, heard.last);
	model.item[model.count++] = (struct model_item){id, number, after.shortened == before.shortened, 0};
	drop(outbox, before.dropped, taken);
}

static void step_answer(struct outbox *outbox, uint64_t random)
{
	size_t first = 0;
	struct model_item *item;
	enum outbox_answer answer = random % 8 == 0   ? OUTBOX_AGAIN
	                            : random % 8 == 1 ? OUTBOX_TOO_BIG
	                                              : OUTBOX_DELIVERED;

	if (flights(&first) == 0)
		return;
	item = &model.item[first];
	item->is_in_flight = 0;
	ck_assert_int_eq(outbox_answered(outbox, answer), answer == OUTBOX_TOO_BIG && !item->has_value);
	if (answer == OUTBOX_AGAIN || (answer == OUTBOX_TOO_BIG && item->has_value)) {
		item->has_value &= answer == OUTBOX_AGAIN;
		model.is_again = 1;
		return;
	}
	model.told += answer == OUTBOX_DELIVERED;
	model.given_up += answer == OUTBOX_TOO_BIG;
	forget(first);
}

/* How many of the first were taken already, in flight or answered by "again". */
static void step_take(struct outbox *outbox, size_t *taken)
{
	struct outbox_item item;
	int has = *taken < model.count && !model.is_again;

	ck_assert_int_eq(outbox_take(outbox, &item), has);
	if (!has)
		return;
	is_item(&item, &model.item[*taken]);
	model.item[(*taken)++].is_in_flight = 1;
}

static void compare(struct outbox *outbox)
{
	struct outbox_stats stats;
	size_t first;

	outbox_stats(outbox, &stats);
	ck_assert_uint_eq(stats.waiting, model.count);
	ck_assert_uint_eq(stats.in_flight, flights(&first));
	ck_assert_uint_eq(stats.delivered, model.told);
	ck_assert_uint_eq(stats.given_up, model.given_up);
	ck_assert_uint_eq(outbox_delivered(outbox), model.count ? model.item[0].id - 1 : heard.last);
	if (model.count)
		ck_assert_int_eq(stats.oldest_ms, 2000 + (int64_t)model.item[0].number);
}

static size_t walked;

static void walk(const struct outbox_item *item, void *context)
{
	(void)context;
	is_item(item, &model.item[walked++]);
}

static void step_walk(struct outbox *outbox)
{
	uint64_t after = 0;

	walked = 0;
	while (outbox_walk(outbox, &after, walk, NULL) > 0)
		;
	ck_assert_uint_eq(walked, model.count);
}

START_TEST(it_does_as_the_model)
{
	uint64_t random = seed_of_run("outbox");
	struct outbox *outbox = outbox_open(BOUND);
	size_t taken = 0;
	size_t first;

	heard.last = heard.told = outbox_delivered(outbox);
	outbox_set_journal(outbox, &journal);
	ck_assert_int_eq(outbox_has_journal(outbox), 1);
	for (unsigned i = 0; i < STEPS; i++) {
		/* For a while more comes than goes, and then the other way round. */
		uint64_t what = seed_below(&random, 100);
		uint64_t adds = i / 5000 % 2 ? 20 : 50;
		size_t before = model.count;
		if (what < adds) {
			step_add(outbox, i, taken);
		} else if (what < 70) {
			step_take(outbox, &taken);
		} else if (what < 98) {
			step_answer(outbox, seed_next(&random));
			taken -= before - model.count;
		} else if (what < 99) {
			outbox_recall(outbox);
			taken = 0;
			model.is_again = 0;
			for (size_t n = 0; n < model.count; n++)
				model.item[n].is_in_flight = 0;
		} else {
			step_walk(outbox);
			ck_assert_int_eq(outbox_settle(outbox), WW_OK);
			ck_assert_uint_eq(heard.told, outbox_delivered(outbox));
		}
		if (flights(&first) == 0 && model.is_again) {
			model.is_again = 0;
			taken = 0;
		}
		compare(outbox);
	}
	outbox_close(outbox);
}
END_TEST

/* ---- Over a restart */

static void copy(const struct outbox_item *item, void *context)
{
	ck_assert_int_eq(outbox_restore(context, item), WW_OK);
}

START_TEST(what_waited_comes_before_what_has_come_since)
{
	struct outbox *old = outbox_open(BOUND);
	struct outbox *outbox;
	struct outbox_item item;
	uint64_t after = 0;
	uint64_t last = 0;
	char key[16];
	char value[400];

	for (unsigned i = 0; i < 100; i++) {
		item = item_of(i, key, value);
		last = outbox_add(old, &item);
	}
	ck_assert_int_eq(outbox_take(old, &item), 1);
	ck_assert_int_eq(outbox_answered(old, OUTBOX_DELIVERED), 0);
	/* A restart takes more than a millisecond. */
	while (outbox = outbox_open(BOUND), outbox_delivered(outbox) <= last)
		outbox_close(outbox);
	/* This one expires while the journal is still being read. */
	item = item_of(100, key, value);
	ck_assert_uint_gt(outbox_add(outbox, &item), last);
	while (outbox_walk(old, &after, copy, outbox) > 0)
		;
	for (unsigned i = 1; i <= 100; i++) {
		struct model_item expected = {0, i, 1, 0};
		ck_assert_int_eq(outbox_take(outbox, &item), 1);
		expected.id = item.id;
		is_item(&item, &expected);
	}
	ck_assert_int_eq(outbox_take(outbox, &item), 0);
	outbox_close(old);
	outbox_close(outbox);
}
END_TEST

TEST_MAIN("service/outbox", it_does_as_the_model, what_waited_comes_before_what_has_come_since)
