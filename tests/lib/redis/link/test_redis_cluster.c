/* The link to a cluster: slots, grouping, redirections, moving slots, a primary that dies. */
/* tier: long, waits, no-valgrind */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/redis/fixture.h"
#include "tests/support/redis/redis_server.h"
#include "tests/support/seed.h"
#include "weekwheel/error.h"

static struct link_rig rig;
static struct redis_script count;
/* The cluster that tests share, until the program ends. Tests that kill a server start a cluster of their own. */
static struct redis_cluster shared;
static struct redis_cluster cluster;

static void start_shared(void)
{
	redis_cluster_share(&shared, 3);
}

static void open_link(void)
{
	char url[64];

	count = script_of("count", "return redis.call('INCR', KEYS[1])");
	redis_server_url(&cluster.servers[0], url, sizeof url);
	link_rig_open(&rig, url);
}

static int open_shared(void)
{
	if (!redis_server_is_there())
		return 0;
	redis_cluster_empty(&shared);
	cluster = shared;
	open_link();
	return 1;
}

static int open_own(int replicas, const char *const *options)
{
	if (!redis_server_is_there())
		return 0;
	redis_cluster_start(&cluster, 3, replicas, options);
	open_link();
	return 1;
}

static void close_own(void)
{
	link_rig_close(&rig);
	redis_cluster_stop(&cluster);
}

/* ---- Slots */

static unsigned slot_of(const char *key)
{
	return ww_redis_link_slot(key, strlen(key));
}

START_TEST(slots_agree_with_the_specification)
{
	/* The check value of CRC16/XMODEM. */
	ck_assert_uint_eq(slot_of("123456789"), 0x31c3 % 16384);
	ck_assert_uint_eq(slot_of(""), 0);
	ck_assert_uint_eq(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
	ck_assert_uint_eq(slot_of("{user1000}.following"), slot_of("user1000"));
	ck_assert_uint_ne(slot_of("foo{}{bar}"), slot_of("bar"));
	ck_assert_uint_eq(slot_of("foo{{bar}}zap"), slot_of("{bar"));
	ck_assert_uint_eq(slot_of("foo{bar}{zap}"), slot_of("bar"));
}
END_TEST

START_TEST(slots_agree_with_the_server)
{
	static const char letters[] = "ab{}:";
	uint64_t seed = seed_of_run("test_redis_cluster");

	if (!open_shared())
		return;
	for (int i = 0; i < 500; i++) {
		char key[16];
		const char *argv[3] = {"CLUSTER", "KEYSLOT", key};
		struct redis_call call = {.argc = 3, .argv = argv};
		size_t length = 1 + seed_below(&seed, sizeof key - 1);
		for (size_t at = 0; at < length; at++)
			key[at] = letters[seed_below(&seed, 5)];
		key[length - 1] = '\0';
		OK(ww_redis_link_run(rig.link, &call, 1));
		ck_assert_int_eq(call.reply->integer, slot_of(key));
		ww_redis_link_free(&call, 1);
	}
	link_rig_close(&rig);
}
END_TEST

/* Make a key whose slot this primary owns. */
static void key_at(int primary, char key[32])
{
	for (int i = 0;; i++) {
		(void)snprintf(key, 32, "{tag%d}x", i);
		if (redis_cluster_owner(&cluster, slot_of(key)) == primary)
			return;
	}
}

/* ---- Calls */

START_TEST(calls_to_all_nodes_share_a_round_trip)
{
	enum { CALLS = 300 };
	struct redis_call calls[CALLS];
	char keys[CALLS][32];
	struct redis_link_stats before, after;

	if (!open_shared())
		return;
	ck_assert_uint_eq(link_rig_stats(&rig).nodes, 3);
	ck_assert_int_eq(link_rig_stats(&rig).is_cluster, 1);
	for (int turn = 1; turn <= 3; turn++) {
		before = link_rig_stats(&rig);
		for (int i = 0; i < CALLS; i++) {
			(void)snprintf(keys[i], sizeof keys[i], "{%d}", i);
			calls[i] = (struct redis_call){.script = &count, .key = keys[i]};
		}
		OK(ww_redis_link_run(rig.link, calls, CALLS));
		for (int i = 0; i < CALLS; i++)
			ck_assert_int_eq(calls[i].reply->integer, turn);
		ww_redis_link_free(calls, CALLS);
		after = link_rig_stats(&rig);
		ck_assert_uint_eq(after.round_trips - before.round_trips, turn == 1 ? 2 : 1);
		ck_assert_uint_eq(after.loads - before.loads, turn == 1 ? 3 : 0);
	}
	ck_assert_uint_eq(after.redirections, 0);
	ck_assert_uint_eq(after.connections, 3);
	OK(call_words(&rig, "PING", NULL, NULL, NULL));
	link_rig_close(&rig);
}
END_TEST

START_TEST(a_cluster_has_one_database_and_one_node_is_enough_of_a_seed)
{
	char url[128];

	if (!open_shared())
		return;
	link_rig_close(&rig);
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:%d/1", cluster.servers[0].port);
	link_rig_make(&rig, url);
	ck_assert_int_eq(ww_redis_link_open(&rig.link, &rig.config), WW_EINVAL);
	ck_assert_int_eq(link_rig_said(&rig, "SELECT is not allowed in cluster mode"), 1);
	link_rig_close(&rig);
	/* Missing seeds do not matter. */
	(void)snprintf(url, sizeof url, "redis://127.0.0.1:1,127.0.0.1:2,127.0.0.1:%d", cluster.servers[2].port);
	link_rig_open(&rig, url);
	ck_assert_uint_eq(link_rig_stats(&rig).nodes, 3);
	link_rig_close(&rig);
}
END_TEST

/* ---- Moving slots */

START_TEST(a_slot_that_moved_is_followed_once)
{
	char key[32];
	unsigned slot;
	long long number;
	struct redis_link_stats before;

	if (!open_shared())
		return;
	key_at(1, key);
	slot = slot_of(key);
	OK(call_script(&rig, &count, key, NULL, &number));
	redis_cluster_move_begin(&cluster, slot, 1, 2);
	redis_cluster_move_end(&cluster, slot, 1, 2);
	before = link_rig_stats(&rig);
	for (int i = 2; i < 6; i++) {
		OK(call_script(&rig, &count, key, NULL, &number));
		ck_assert_int_eq(number, i);
	}
	ck_assert_uint_eq(link_rig_stats(&rig).redirections - before.redirections, 1);
	ck_assert_int_eq(rig.said, 0);
	link_rig_close(&rig);
}
END_TEST

static int owner_of(const struct redis_map *map, unsigned slot)
{
	for (int i = 0; i < cluster.primaries; i++)
		if (map->slots[slot] < map->count &&
		    map->nodes[map->slots[slot]].port == (unsigned)cluster.servers[i].port)
			return i;
	return -1;
}

static int is_doubted(const struct redis_address *address, void *port)
{
	return address->port == *(unsigned *)port;
}

START_TEST(the_map_can_be_read)
{
	static struct redis_map map;
	unsigned doubted, slot;
	redisReply *info;
	char key[32];

	if (!open_shared())
		return;
	OK(ww_redis_link_map(rig.link, &map, NULL, NULL));
	ck_assert_uint_eq(map.count, 3);
	for (unsigned i = 0; i < REDIS_SLOTS; i += 1000)
		ck_assert_int_eq(owner_of(&map, i), redis_cluster_owner(&cluster, i));
	key_at(1, key);
	slot = slot_of(key);
	redis_cluster_move_begin(&cluster, slot, 1, 2);
	redis_cluster_move_end(&cluster, slot, 1, 2);
	OK(ww_redis_link_map(rig.link, &map, NULL, NULL));
	ck_assert_int_eq(owner_of(&map, slot), 2);
	redis_cluster_move_begin(&cluster, slot, 2, 1);
	redis_cluster_move_end(&cluster, slot, 2, 1);
	/* One that is doubted is asked only if the others do not answer. */
	doubted = (unsigned)cluster.servers[0].port;
	redis_server_tell(&cluster.servers[0], "CONFIG RESETSTAT");
	OK(ww_redis_link_map(rig.link, &map, is_doubted, &doubted));
	ck_assert_int_eq(owner_of(&map, slot), 1);
	info = redis_server_ask(&cluster.servers[0], "INFO commandstats");
	ck_assert_ptr_null(strstr(info->str, "cluster|slots"));
	freeReplyObject(info);
	link_rig_close(&rig);
}
END_TEST

START_TEST(a_moving_slot_is_asked_for)
{
	char key[32];
	unsigned slot;
	long long number;
	struct redis_link_stats before;

	if (!open_shared())
		return;
	key_at(0, key);
	slot = slot_of(key);
	/* A key that does not exist yet belongs to the new owner. */
	redis_cluster_move_begin(&cluster, slot, 0, 1);
	before = link_rig_stats(&rig);
	for (int i = 1; i < 4; i++) {
		OK(call_script(&rig, &count, key, NULL, &number));
		ck_assert_int_eq(number, i);
		ck_assert_uint_eq(link_rig_stats(&rig).redirections - before.redirections, (uint64_t)i);
	}
	redis_cluster_move_end(&cluster, slot, 0, 1);
	OK(call_script(&rig, &count, key, NULL, &number));
	ck_assert_int_eq(number, 4);
	before = link_rig_stats(&rig);
	OK(call_script(&rig, &count, key, NULL, &number));
	ck_assert_uint_eq(link_rig_stats(&rig).redirections, before.redirections);
	link_rig_close(&rig);
}
END_TEST

/* Each slot moves once while calls go on. No call is lost, and none is done twice. */
START_TEST(calls_go_on_while_slots_move)
{
	enum { KEYS = 40 };
	struct redis_call calls[KEYS];
	char keys[KEYS][32];

	if (!open_shared())
		return;
	for (int i = 0; i < KEYS; i++)
		(void)snprintf(keys[i], sizeof keys[i], "{%d}", i);
	for (int turn = 1; turn <= KEYS; turn++) {
		unsigned slot = slot_of(keys[turn - 1]);
		int from = redis_cluster_owner(&cluster, slot);
		redis_cluster_move_begin(&cluster, slot, from, (from + 1) % 3);
		for (int i = 0; i < KEYS; i++)
			calls[i] = (struct redis_call){.script = &count, .key = keys[i]};
		OK(ww_redis_link_run(rig.link, calls, KEYS));
		for (int i = 0; i < KEYS; i++)
			ck_assert_int_eq(calls[i].reply->integer, turn);
		ww_redis_link_free(calls, KEYS);
		redis_cluster_move_end(&cluster, slot, from, (from + 1) % 3);
		link_rig_pass(&rig, turn % 3 ? 0 : SECOND);
	}
	link_rig_close(&rig);
}
END_TEST

/* ---- Losing nodes */

/* Call until it succeeds, while the time of backing off passes. Returns how many tries failed. */
static int call_until(const char *key, long long *number)
{
	for (int i = 0; i < 3000; i++) {
		if (call_script(&rig, &count, key, NULL, number) == WW_OK)
			return i;
		link_rig_pass(&rig, 100 * MS);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10 * (long)MS}, NULL);
	}
	ck_abort_msg("nobody takes the slot");
	return 0;
}

START_TEST(a_replica_takes_the_place_of_its_primary)
{
	char key[32], other[32];
	long long number;

	if (!open_own(1,
	        (const char *const[]){"--cluster-node-timeout", "500", "--cluster-replica-validity-factor", "0", NULL}))
		return;
	key_at(1, key);
	key_at(2, other);
	OK(call_script(&rig, &count, key, NULL, &number));
	redis_server_wait_replica(&cluster.servers[1], &cluster.servers[4]);
	redis_server_kill(&cluster.servers[1]);
	/* The slots of others are served, unless the cluster says otherwise. */
	ck_assert_int_ge(call_until(key, &number), 0);
	ck_assert_int_eq(number, 2);
	ck_assert_int_eq(link_rig_said(&rig, "cannot be reached"), 1);
	OK(call_script(&rig, &count, other, NULL, NULL));
	/* It comes back as a replica, which takes no calls. */
	redis_server_restart(&cluster.servers[1]);
	redis_server_wait_info(&cluster.servers[1], "replication", "role:slave");
	link_rig_pass(&rig, 60 * SECOND);
	OK(call_script(&rig, &count, key, NULL, &number));
	ck_assert_int_eq(number, 3);
	ck_assert_uint_eq(link_rig_stats(&rig).nodes, 3);
	close_own();
}
END_TEST

START_TEST(a_primary_that_no_replica_replaces)
{
	struct link_rig hasty;
	char key[32], other[32], url[64];
	int error = WW_OK;

	if (!open_own(0, (const char *const[]){"--cluster-node-timeout", "500", NULL}))
		return;
	redis_server_url(&cluster.servers[0], url, sizeof url);
	link_rig_make(&hasty, url);
	hasty.config.timeout = 300 * MS;
	OK(ww_redis_link_open(&hasty.link, &hasty.config));
	key_at(1, key);
	key_at(2, other);
	redis_server_kill(&cluster.servers[1]);
	ck_assert_int_eq(call_script(&hasty, &count, key, NULL, NULL), WW_EIO);
	/* In the end the other nodes report that the cluster is down. */
	for (int i = 0; i < 3000 && error == WW_OK; i++) {
		error = call_script(&hasty, &count, other, NULL, NULL);
		(void)nanosleep(&(struct timespec){.tv_nsec = 10 * (long)MS}, NULL);
	}
	ck_assert_int_eq(error, WW_EAGAIN);
	redis_server_restart(&cluster.servers[1]);
	(void)call_until(key, NULL);
	(void)call_until(other, NULL);
	link_rig_close(&hasty);
	close_own();
}
END_TEST

START_TEST(a_cluster_without_slots_is_not_ready)
{
	char url[64];

	if (!redis_server_is_there())
		return;
	redis_server_start(&cluster.servers[0], (const char *const[]){"--cluster-enabled", "yes", NULL});
	redis_server_url(&cluster.servers[0], url, sizeof url);
	link_rig_make(&rig, url);
	ck_assert_int_eq(ww_redis_link_open(&rig.link, &rig.config), WW_EAGAIN);
	ck_assert_int_eq(link_rig_said(&rig, "no slots yet"), 1);
	link_rig_close(&rig);
	redis_server_stop(&cluster.servers[0]);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {slots_agree_with_the_specification, slots_agree_with_the_server,
	    calls_to_all_nodes_share_a_round_trip, a_cluster_has_one_database_and_one_node_is_enough_of_a_seed,
	    a_slot_that_moved_is_followed_once, the_map_can_be_read, a_moving_slot_is_asked_for,
	    calls_go_on_while_slots_move, a_replica_takes_the_place_of_its_primary, a_primary_that_no_replica_replaces,
	    a_cluster_without_slots_is_not_ready};

	return suite_run_with("redis/cluster", tests, sizeof tests / sizeof tests[0], start_shared);
}
