/*
 * Random operations on a map and on an oracle: an array with one place for each key, searched from end to end. After
 * each operation the test compares the answer, the calls of gone, and who owns which value.
 *
 * WW_SEED chooses the seed, and WW_MODEL_OPS the number of operations, up to a million.
 */
/* tier: check, every-build, no-valgrind */

#include "tests/lib/core/session/oracle.h"

/* ---- Operations on both ------------------------------------------------------------------------------------------ */

static uint64_t some_ttl(void)
{
	static const uint64_t scale[] = {1000, 100000, 5 * MS, 100 * MS, 2 * SEC, 60 * SEC, 3600 * SEC, 700000 * SEC};

	return below(5) ? 1 + below(scale[below(8)]) : 0;
}

static uint64_t or_default(uint64_t ttl)
{
	return ttl ? ttl : o.rig.of_map.ttl;
}

/* A lookup found it. */
static void touched(size_t key)
{
	o.place[key].use = ++o.uses;
	if (renews())
		arrive_at_deadline(key, o.place[key].ttl);
}

static void assert_found(const struct ww_session_found *found, const struct place *place)
{
	ck_assert(found->value == (void *)place->value);
	ck_assert(found->version == place->version);
	ck_assert(found->ttl == place->ttl);
	ck_assert(found->left == (lives(place) ? place->deadline - o.now : 0));
	if (place->end == NO_END)
		ck_assert(found->end_left == NO_END);
	else
		ck_assert(found->end_left == (place->end > o.now ? place->end - o.now : 0));
}

static void gets_version(struct place *place, uint64_t version)
{
	ck_assert(version > 0 && version < o.versions && !o.seen[version]);
	o.seen[version] = 1;
	place->version = version;
}

static uint64_t end_of(const struct ww_session_order *order, const struct place *replaced)
{
	uint64_t lifetime = order->lifetime;
	uint64_t end = NO_END;

	if (replaced && lives(replaced) && order->flags & WW_SESSION_KEEP_END)
		return replaced->end;
	if (!lifetime)
		lifetime = o.rig.of_map.lifetime;
	if (lifetime && lifetime != NO_END)
		end = o.now + lifetime;
	return order->end && order->end < end ? order->end : end;
}

static struct ww_session_order some_order(const struct place *place)
{
	struct ww_session_order order = {.ttl = some_ttl()};
	uint64_t which = below(12);

	if (which >= 6)
		order.version = which < 8 ? WW_SESSION_ABSENT : which < 11 ? place->version : 1 + below(o.values + 1);
	if (!o.rig.of_map.lifetime && !(o.rig.of_map.flags & WW_SESSION_LIFETIMES))
		return order;
	if (below(3) == 0)
		order.lifetime = below(5) ? 1 + 2 * or_default(some_ttl()) : NO_END;
	which = below(12);
	if (which < 3)
		order.end = which == 0 ? NO_END : which == 1 ? o.now + some_ttl() : o.now - some_ttl() % o.now;
	return order;
}

/* A set or rename found something there. `before`: calls of gone by then. */
static void is_replaced(size_t key, size_t before, int want, const void *former)
{
	struct place *place = &o.place[key];

	if (place->used && !lives(place)) {
		/* With a full queue it may have left already. */
		if (o.exact || gone_count > before)
			hears(key, place->value, WW_GONE_EXPIRED);
		else {
			o.where[place->value] = QUEUED;
			o.queued++;
		}
		ck_assert(!want || former == NULL);
	} else if (place->used && want) {
		ck_assert(former == (void *)place->value);
		o.where[place->value] = OWNED;
	} else if (place->used)
		hears(key, place->value, WW_GONE_REPLACED);
	else
		ck_assert(!want || former == NULL);
}

static void is_set(size_t key, struct place content)
{
	struct place *place = &o.place[key];

	o.in_map += !place->used;
	*place = content;
	place->used = 1;
	place->use = ++o.uses;
	o.where[place->value] = IN_MAP;
	o.key_of[place->value] = (unsigned short)key;
	/* What is due when it is scheduled waits in the order of the calls. */
	o.disorder |= place->end <= o.now;
}

/* A full map puts out one of the first that wait for the driver, else the least recently used. */
static void evicts(void)
{
	size_t first = KEYS;
	size_t least = KEYS;

	if (!o.rig.of_map.limit || o.in_map <= o.rig.of_map.limit)
		return;
	size_t out = o.key_of[gone_log[o.heard].value];
	for (size_t i = 0; i < KEYS; i++) {
		struct place *place = &o.place[i];
		if (!place->used)
			continue;
		/* That of the one just set is not known yet. */
		if (!place->deadline)
			place->deadline = place->end > o.now ? NO_END / 2 : place->end;
		if (least == KEYS || place->use < o.place[least].use)
			least = i;
		if (tick_of(place) <= o.now / o.rig.of_driver.tick_ns &&
		    (first == KEYS || tick_of(place) < tick_of(&o.place[first])))
			first = i;
	}
	if (first == KEYS)
		ck_assert(out == least);
	else if (!o.disorder)
		ck_assert(tick_of(&o.place[out]) == tick_of(&o.place[first]));
	else
		/* The wheel may be ahead of the time, and then has what is due in the order of the calls. */
		ck_assert(out == least || tick_of(&o.place[out]) <= o.now / o.rig.of_driver.tick_ns);
	hears(out, o.place[out].value, lives(&o.place[out]) ? WW_GONE_EVICTED : WW_GONE_EXPIRED);
	leave(&o.place[out]);
}

static void op_set(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	uintptr_t value = ++o.values;
	uint64_t ttl = some_ttl();
	struct ww_session_found found;
	void *former = &o;
	int want = (int)below(2);
	size_t before = gone_count;

	ck_assert(ww_session_set(o.rig.map, bytes, length, (void *)value, ttl, want ? &former : NULL) == WW_OK);
	is_replaced(key, before, want, former);
	is_set(key, (struct place){.value = value, .end = end_of(&(struct ww_session_order){0}, NULL)});
	evicts();
	ck_assert(ww_session_find(o.rig.map, bytes, length, &found) == 1);
	gets_version(place, found.version);
	arrive_at_deadline(key, renews() ? in_us(or_default(ttl)) : or_default(ttl));
	assert_found(&found, place);
}

static void op_put(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	struct ww_session_order order = some_order(place);
	uintptr_t value = ++o.values;
	struct ww_session_found found;
	void *former = &o;
	int want = (int)below(2);
	size_t before = gone_count;

	order.flags = below(3) ? 0 : WW_SESSION_KEEP_END;
	int wanted = !order.version || order.version == (lives(place) ? place->version : WW_SESSION_ABSENT);
	int answer = ww_session_put(o.rig.map, bytes, length, (void *)value, &order, &found, want ? &former : NULL);
	ck_assert(answer == (wanted ? WW_OK : WW_ESTALE));
	if (!wanted) {
		if (lives(place))
			assert_found(&found, place);
		ck_assert(former == &o && (lives(place) || (!found.version && !found.value)));
		o.where[value] = OWNED;
		o.stale++;
		return;
	}
	uint64_t end = end_of(&order, place);
	is_replaced(key, before, want, former);
	is_set(key, (struct place){.value = value, .end = end});
	evicts();
	gets_version(place, found.version);
	arrive_at_deadline(key, or_default(order.ttl));
	assert_found(&found, place);
}

static void op_rename(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	struct ww_session_order order = below(3) ? (struct ww_session_order){0} : some_order(place);
	size_t to = below(below(3) ? KEYS : 12);
	unsigned char to_bytes[512];
	size_t to_length = key_bytes(to, to_bytes);
	struct ww_session_found found;
	void *former = &o;
	int want = (int)below(2);
	size_t before = gone_count;
	int wanted = WW_OK;

	order.flags = below(2) ? 0 : WW_SESSION_REPLACE;
	if (key == to)
		wanted = WW_EINVAL;
	else if (!lives(place) || (order.version && order.version != place->version))
		wanted = WW_ESTALE;
	else if (lives(&o.place[to]) && !order.flags)
		wanted = WW_EINUSE;
	ck_assert(ww_session_rename(
	              o.rig.map, bytes, length, to_bytes, to_length, &order, &found, want ? &former : NULL) == wanted);
	if (wanted != WW_OK) {
		ck_assert(former == &o);
		o.stale += wanted == WW_ESTALE;
		return;
	}
	struct place moved = *place;
	is_replaced(to, before, want, former);
	leave(place);
	is_set(to, moved);
	evicts();
	place = &o.place[to];
	gets_version(place, found.version);
	if (order.lifetime || order.end)
		place->end = end_of(&order, NULL);
	if (order.lifetime || order.end || order.ttl)
		arrive_at_deadline(to, order.ttl ? order.ttl : moved.ttl);
	assert_found(&found, place);
}

static void op_find(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	struct ww_session_found found = {.version = 4711};

	ck_assert(ww_session_find(o.rig.map, bytes, length, &found) == lives(place));
	ck_assert(lives(place) || found.version == 4711);
	if (!lives(place))
		return;
	touched(key);
	assert_found(&found, place);
}

static void op_get(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	void *value = &o;

	ck_assert(ww_session_get(o.rig.map, bytes, length, &value) == lives(place));
	ck_assert(value == (lives(place) ? (void *)place->value : &o));
	if (lives(place))
		touched(key);
}

static void op_refresh(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	uint64_t ttl = some_ttl();
	void *value = &o;

	ck_assert(ww_session_refresh(o.rig.map, bytes, length, ttl, &value) == lives(place));
	ck_assert(value == (lives(place) ? (void *)place->value : &o));
	if (!lives(place))
		return;
	place->use = ++o.uses;
	arrive_at_deadline(key, ttl ? ttl : place->ttl);
}

static void op_delete(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	void *value = &o;
	int want = (int)below(2);
	uint64_t version = below(4) ? below(2) * place->version : 1 + below(o.values + 1);
	int stale = lives(place) && version && version != place->version;

	if (version)
		ck_assert(ww_session_delete_if(o.rig.map, bytes, length, version, want ? &value : NULL) ==
		          (stale ? WW_ESTALE : lives(place)));
	else
		ck_assert(ww_session_delete(o.rig.map, bytes, length, want ? &value : NULL) == lives(place));
	if (stale) {
		ck_assert(value == &o);
		o.stale++;
		return;
	}
	ck_assert(value == (want && lives(place) ? (void *)place->value : &o));
	if (!lives(place))
		return;
	if (want)
		o.where[place->value] = OWNED;
	else
		hears(key, place->value, WW_GONE_DELETED);
	leave(place);
}

static void remember(void *value, void *context)
{
	*(void **)context = value;
}

static void op_look(size_t key, const unsigned char *bytes, size_t length)
{
	struct place *place = &o.place[key];
	uint64_t ns = 4711;
	void *value = &o;

	ck_assert(ww_session_time_left(o.rig.map, bytes, length, &ns) == lives(place));
	ck_assert(ns == (lives(place) ? place->deadline - o.now : 4711));
	ck_assert(ww_session_look(o.rig.map, bytes, length, remember, &value) == lives(place));
	ck_assert(value == (lives(place) ? (void *)place->value : &o));
	if (lives(place))
		touched(key);
}

/* More keys than go into one batch, some of them twice, and some that are refused. */
static void op_many(void)
{
	enum { MANY = 80 };
	static unsigned char bytes[MANY][512];
	struct ww_session_item items[MANY];
	size_t keys[MANY];
	size_t count = below(below(2) ? 5 : MANY + 1);
	size_t found = 4711;
	size_t hits = 0;
	uint64_t ttl = some_ttl();
	uint64_t which = below(5);
	int error = WW_OK;
	int answer;

	for (size_t i = 0; i < count; i++) {
		keys[i] = below(below(3) ? KEYS : 12);
		items[i] = (struct ww_session_item){bytes[i], key_bytes(keys[i], bytes[i]), &o, 4711};
		if (below(80) == 0)
			items[i].length = WW_SESSION_KEY_MAX + 1;
	}
	if (which < 2)
		answer = ww_session_get_many(o.rig.map, items, count, &found);
	else if (which < 4)
		answer = ww_session_refresh_many(o.rig.map, items, count, ttl, &found);
	else
		answer = ww_session_delete_many(o.rig.map, items, count, &found);
	for (size_t i = 0; i < count; i++) {
		struct place *place = &o.place[keys[i]];
		if (items[i].length > WW_SESSION_KEY_MAX) {
			ck_assert(items[i].result == WW_EINVAL && items[i].value == &o);
			error = WW_EINVAL;
			continue;
		}
		ck_assert(items[i].result == lives(place));
		ck_assert(items[i].value == (lives(place) ? (void *)place->value : &o));
		if (!lives(place))
			continue;
		hits++;
		if (which < 2)
			touched(keys[i]);
		else if (which < 4) {
			place->use = ++o.uses;
			arrive_at_deadline(keys[i], ttl ? ttl : place->ttl);
		} else {
			o.where[place->value] = OWNED;
			leave(place);
		}
	}
	ck_assert(answer == error && found == hits);
}

/* Expiries are told in any order. */
static void hear_expired(void)
{
	while (o.heard < gone_count) {
		uintptr_t value = gone_log[o.heard].value;
		struct place *place = &o.place[o.key_of[value]];
		if (!o.exact && o.where[value] == IN_MAP) {
			ck_assert(place->value == value && !lives(place));
			leave(place);
		}
		ck_assert(o.where[value] != OWNED);
		hears(o.key_of[value], value, WW_GONE_EXPIRED);
	}
}

static void op_dispatch(uint32_t budget)
{
	int ran;

	if (o.exact)
		leave_in_tick();
	size_t due = o.queued;
	ran = ww_driver_dispatch(o.rig.driver, budget);
	ck_assert(ran >= 0 && (uint32_t)ran <= budget && (size_t)ran == gone_count - o.heard);
	hear_expired();
	ck_assert(!o.exact || (size_t)ran == (due < budget ? due : budget));
}

static void op_time(void)
{
	static const uint64_t scale[] = {1, 1000, MS, 30 * MS, SEC, 60 * SEC, 3600 * SEC, 100000 * SEC};

	/*
	 * With a full queue the oracle does not know which entries are queued, nor which would live again after a step
	 * back.
	 */
	if (o.exact && below(50) == 0) {
		o.now -= below(scale[below(7)]) % (o.now / 2);
		o.disorder = 1;
	} else
		o.now += below(scale[below(8)]) + below(2);
	o.latest = o.now > o.latest ? o.now : o.latest;
	OK(ww_clock_virtual_set(o.rig.clock, o.now));
}

static void op_clear(void)
{
	size_t count = 0;

	ck_assert(ww_session_clear(o.rig.map, &count) == WW_OK);
	ck_assert(count == gone_count - o.heard);
	ck_assert(!o.exact || count == o.in_map);
	while (o.heard < gone_count) {
		uintptr_t value = gone_log[o.heard].value;
		ck_assert(o.place[o.key_of[value]].value == value);
		ck_assert(o.place[o.key_of[value]].used);
		leave(&o.place[o.key_of[value]]);
		hears(o.key_of[value], value, WW_GONE_CLEARED);
	}
	/* With a full queue, the entries left had expired and are queued. */
	for (size_t i = 0; i < KEYS; i++)
		if (o.place[i].used) {
			ck_assert(!o.exact && !lives(&o.place[i]));
			o.where[o.place[i].value] = QUEUED;
			o.queued++;
			leave(&o.place[i]);
		}
}

static void operate(void)
{
	unsigned char bytes[512];
	size_t key = below(below(3) ? KEYS : 12); /* some keys are popular */
	size_t length = key_bytes(key, bytes);
	uint64_t which = below(1000);

	if (which < 180)
		op_set(key, bytes, length);
	else if (which < 300)
		op_put(key, bytes, length);
	else if (which < 360)
		op_rename(key, bytes, length);
	else if (which < 400)
		op_find(key, bytes, length);
	else if (which < 450)
		op_get(key, bytes, length);
	else if (which < 620)
		op_refresh(key, bytes, length);
	else if (which < 700)
		op_delete(key, bytes, length);
	else if (which < 770)
		op_look(key, bytes, length);
	else if (which < 800)
		op_many();
	else if (which < 900)
		op_time();
	else if (which < 998)
		op_dispatch(below(3) ? INT32_MAX : 1 + (uint32_t)below(3));
	else
		op_clear();
	hears_no_more();
	if (o.exact && which % 8 == 0) {
		leave_in_tick();
		ck_assert(stats(&o.rig).entries == o.in_map && stats(&o.rig).stale == o.stale);
	}
}

/* After destroy each value that was set has been handed over exactly once. hears() checks "at most once". */
static void end(void)
{
	rig_close(&o.rig);
	while (o.heard < gone_count) {
		uintptr_t value = gone_log[o.heard].value;
		enum ww_gone why = gone_log[o.heard].why;
		ck_assert(why == WW_GONE_CLEARED || why == WW_GONE_EXPIRED);
		ck_assert(!o.exact || (why == WW_GONE_EXPIRED) == (o.where[value] == QUEUED));
		hears(o.key_of[value], value, why);
	}
	hears_no_more();
	for (uintptr_t value = 1; value <= o.values; value++)
		ck_assert(o.where[value] == OWNED);
	free(o.where);
	free(o.key_of);
	free(o.seen);
}

static unsigned operations(void)
{
	const char *text = getenv("WW_MODEL_OPS");
	unsigned long ops = text && *text ? strtoul(text, NULL, 10) : OPS;

	return ops < OPS ? (unsigned)ops : OPS;
}

static void run(uint32_t shards, uint64_t tick, size_t limit, uint32_t jitter, size_t queue, unsigned ops,
    uint64_t lifetime, uint32_t flags)
{
	o = (struct oracle){.random = seed_of_run("test_session_oracle"), .exact = queue > KEYS * 100};
	rig_plan(&o.rig);
	o.rig.of_driver.tick_ns = tick;
	o.rig.of_driver.queue = queue;
	o.rig.of_map.shards = shards;
	o.rig.of_map.limit = limit;
	o.rig.of_map.jitter = jitter;
	o.rig.of_map.jitter_max = SEC;
	o.rig.of_map.lifetime = lifetime;
	o.rig.of_map.flags = flags;
	rig_open(&o.rig);
	o.now = START;
	o.where = calloc(ops + 2, 1);
	o.key_of = calloc(ops + 2, sizeof *o.key_of);
	o.versions = (ops + 2) * (size_t)shards;
	o.seen = calloc(o.versions, 1);
	for (unsigned i = 0; i < ops; i++)
		operate();
	end();
}

START_TEST(the_oracle_agrees_with_one_shard_and_a_limit)
{
	run(1, MS, 12, 0, 65536, operations(), 0, 0);
}
END_TEST

START_TEST(the_oracle_agrees_with_many_shards)
{
	run(7, MS, 0, 0, 65536, operations(), 0, WW_SESSION_LIFETIMES);
}
END_TEST

START_TEST(the_oracle_agrees_with_a_coarse_tick_jitter_and_a_limit)
{
	run(1, SEC, 7, 300, 65536, operations() / 4, 5000 * SEC, 0);
}
END_TEST

START_TEST(the_oracle_agrees_with_an_odd_tick_and_a_full_queue)
{
	run(3, 1700 * MS + 1, 0, 0, 3, operations() / 4, 0, 0);
}
END_TEST

START_TEST(the_oracle_agrees_with_lifetimes_and_lookups_that_renew)
{
	run(5, MS, 0, 0, 65536, operations() / 2, 300 * SEC, WW_SESSION_RENEW);
}
END_TEST

START_TEST(the_oracle_agrees_with_all_of_it)
{
	run(1, 30 * MS, 9, 700, 65536, operations() / 2, 40 * SEC, WW_SESSION_RENEW | WW_SESSION_LIFETIMES);
}
END_TEST

START_TEST(the_oracle_agrees_with_lifetimes_and_a_full_queue)
{
	run(3, 1700 * MS + 1, 0, 100, 3, operations() / 4, 100 * SEC, WW_SESSION_RENEW);
}
END_TEST

TEST_MAIN("session/oracle", the_oracle_agrees_with_one_shard_and_a_limit, the_oracle_agrees_with_many_shards,
    the_oracle_agrees_with_a_coarse_tick_jitter_and_a_limit, the_oracle_agrees_with_an_odd_tick_and_a_full_queue,
    the_oracle_agrees_with_lifetimes_and_lookups_that_renew, the_oracle_agrees_with_all_of_it,
    the_oracle_agrees_with_lifetimes_and_a_full_queue)
