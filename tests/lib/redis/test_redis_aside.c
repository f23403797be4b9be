/* Nodes of a real cluster that refuse or fall silent, and slots that move: jobs of all other shards go on. */
/* tier: check, waits, threads */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "lib/redis/link/link.h"
#include "tests/support/redis/store_rig.h"
#include "weekwheel/error.h"

#define MS WW_MILLISECOND

enum { SHARDS = 12, PUTS = 600 };

static struct store_rig rig;

static int open_cluster(const char *const *options, uint64_t timeout)
{
	if (!store_rig_make(&rig, STORE_CLUSTER, options))
		return 0;
	rig.config.shards = SHARDS;
	rig.config.timeout = timeout;
	store_rig_open(&rig);
	return 1;
}

static uint64_t commands(void)
{
	struct ww_jobs_redis_stats stats;

	OK(ww_jobs_redis_stats(rig.jobs, &stats));
	return stats.commands;
}

static struct ww_jobs_redis_node node_at(int port)
{
	struct ww_jobs_redis_node nodes[8];
	char end[16];
	size_t count;

	(void)snprintf(end, sizeof end, ":%d", port);
	OK(ww_jobs_redis_nodes(rig.jobs, nodes, 8, &count));
	ck_assert_uint_eq(count, 3);
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(nodes[i].address);
		if (strcmp(nodes[i].address + length - strlen(end), end) == 0)
			return nodes[i];
	}
	ck_abort_msg("no node has port %d", port);
	return nodes[0];
}

/* Puts without a key; returns how many commands each took on average. */
static double put_without_keys(int count)
{
	const struct ww_job_spec spec = store_spec("t", "x");
	uint64_t before = commands();

	for (int i = 0; i < count; i++)
		ck_assert_int_eq(ww_jobs_put(rig.jobs, &spec, NULL, NULL), 0);
	return (double)(commands() - before) / count;
}

/* Puts with keys: returns how many were refused. All others must succeed. */
static int put_with_keys(int count)
{
	struct ww_job_spec spec = store_spec("t", "x");
	int refused = 0;

	spec.key = &count;
	spec.key_length = sizeof count;
	for (; count > 0; count--) {
		int result = ww_jobs_put(rig.jobs, &spec, NULL, NULL);
		ck_assert_msg(result >= 0 || result == WW_EAGAIN, "%d", result);
		refused += result == WW_EAGAIN;
	}
	return refused;
}

static int deliver_all(void)
{
	const char *tube = "t";
	struct ww_lease lease;
	int count = 0;

	while (ww_jobs_reserve(rig.jobs, &tube, 1, &lease) == 1) {
		ww_jobs_free(rig.jobs, lease.body);
		count += ww_jobs_finish(rig.jobs, lease.id, lease.token) == WW_OK;
	}
	return count;
}

START_TEST(a_node_without_its_replicas_refuses_alone)
{
	double calls;
	int refused;

	if (!open_cluster(NULL, 2 * WW_SECOND))
		return;
	(void)put_without_keys(SHARDS);
	redis_server_tell(&rig.servers.servers[1], "CONFIG SET min-replicas-to-write 1");
	calls = put_without_keys(PUTS);
	ck_assert_msg(calls < 2, "%.1f commands a put", calls);
	refused = put_with_keys(PUTS);
	ck_assert_int_gt(refused, 0);
	ck_assert_int_lt(refused, PUTS / 2);
	ck_assert_int_eq(store_rig_said(&rig, "is set aside: NOREPLICAS"), 1);
	ck_assert_int_eq(node_at(rig.servers.servers[1].port).state, WW_REDIS_NODE_ASIDE);
	ck_assert_uint_gt(node_at(rig.servers.servers[1].port).refused, (uint64_t)refused);
	ck_assert_uint_gt(node_at(rig.servers.servers[1].port).shards, 0);
	ck_assert_int_eq(node_at(rig.servers.servers[0].port).state, WW_REDIS_NODE_SERVES);
	redis_server_tell(&rig.servers.servers[1], "CONFIG SET min-replicas-to-write 0");
	while (store_rig_said(&rig, "is back after") == 0)
		(void)put_without_keys(SHARDS);
	ck_assert_int_eq(put_with_keys(PUTS), 0);
	ck_assert_int_eq(store_rig_said(&rig, "is set aside"), 1);
	(void)deliver_all();
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

START_TEST(a_slot_that_moves_holds_up_its_calls_alone)
{
	char tag[32];
	double calls;
	int refused;
	unsigned slot;
	int from;

	if (!open_cluster(NULL, 2 * WW_SECOND))
		return;
	(void)put_without_keys(SHARDS);
	(void)snprintf(tag, sizeof tag, "{%s:0}", rig.config.prefix);
	slot = ww_redis_link_slot(tag, strlen(tag));
	from = redis_cluster_owner(&rig.servers, slot);
	redis_cluster_move_begin(&rig.servers, slot, from, (from + 1) % 3);
	calls = put_without_keys(PUTS);
	ck_assert_msg(calls < 2, "%.1f commands a put", calls);
	refused = put_with_keys(PUTS);
	ck_assert_int_gt(refused, 0);
	ck_assert_int_lt(refused, PUTS / 4);
	ck_assert_int_eq(node_at(rig.servers.servers[from].port).state, WW_REDIS_NODE_SERVES);
	redis_cluster_move_end(&rig.servers, slot, from, (from + 1) % 3);
	while (store_rig_said(&rig, "that moved are back") == 0)
		(void)put_without_keys(SHARDS);
	ck_assert_int_eq(put_with_keys(PUTS), 0);
	(void)deliver_all();
	store_rig_check(&rig);
	store_rig_end(&rig);
}
END_TEST

/* ---- A frozen node */

enum { THREADS = 24 };
static _Atomic int stops, put_since;
static _Atomic int unknown; /* puts that may have happened */
static _Atomic int done;

static void *put_on(void *argument)
{
	const struct ww_job_spec spec = store_spec("t", "x");

	(void)argument;
	while (!atomic_load(&stops)) {
		int result = ww_jobs_put(rig.jobs, &spec, NULL, NULL);
		ck_assert_msg(result >= 0 || result == WW_EIO, "%d", result);
		atomic_fetch_add(result >= 0 ? &done : &unknown, 1);
		if (result >= 0)
			atomic_fetch_add(&put_since, 1);
	}
	return NULL;
}

/* The node catches some threads, and lets go of the others: they put on, long before a call to it has timed out. */
START_TEST(a_frozen_node_catches_few_threads)
{
	pthread_t threads[THREADS];

	if (!open_cluster((const char *const[]){"--cluster-node-timeout", "60000", NULL}, 6 * WW_SECOND))
		return;
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, put_on, NULL), 0);
	while (atomic_load(&done) < PUTS)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
	redis_server_freeze(&rig.servers.servers[2]);
	while (node_at(rig.servers.servers[2].port).state == WW_REDIS_NODE_SERVES)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
	/* No call has timed out yet, and puts go on. */
	atomic_store(&put_since, 0);
	while (atomic_load(&put_since) < PUTS)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
	ck_assert_int_eq(atomic_load(&unknown), 0);
	redis_server_thaw(&rig.servers.servers[2]);
	while (node_at(rig.servers.servers[2].port).state != WW_REDIS_NODE_SERVES)
		(void)nanosleep(&(struct timespec){.tv_nsec = (long)MS}, NULL);
	atomic_store(&stops, 1);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	store_rig_end(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const tests[] = {a_node_without_its_replicas_refuses_alone,
	    a_slot_that_moves_holds_up_its_calls_alone, a_frozen_node_catches_few_threads};

	if (argc > 1)
		return actor_main(argc, argv);
	return suite_run_with("redis/aside", tests, sizeof tests / sizeof tests[0], store_rig_share);
}
