/* A put that a replica has confirmed survives the end of its primary. */
/* tier: check, waits */

#include <string.h>
#include <time.h>

#include "tests/support/redis/store_rig.h"
#include "weekwheel/error.h"

#define MS WW_MILLISECOND

enum { SHARDS = 12, PUTS = 600 };

static struct store_rig rig;

static int put_numbered(uint32_t number)
{
	struct ww_job_spec spec = store_spec("t", "");

	spec.body = spec.key = &number;
	spec.body_length = spec.key_length = sizeof number;
	return ww_jobs_put(rig.jobs, &spec, NULL, NULL);
}

static void take_numbers(char *delivered)
{
	const char *tube = "t";
	struct ww_lease lease;
	int got;

	while ((got = ww_jobs_wait(rig.jobs, &tube, 1, WW_SECOND, &lease)) != 0) {
		uint32_t number;
		if (got != 1) {
			(void)nanosleep(&(struct timespec){.tv_nsec = 10 * (long)MS}, NULL);
			continue;
		}
		ck_assert_uint_eq(lease.body_length, sizeof number);
		memcpy(&number, lease.body, sizeof number);
		delivered[number] = 1;
		ww_jobs_free(rig.jobs, lease.body);
		(void)ww_jobs_finish(rig.jobs, lease.id, lease.token);
	}
}

/*
 * The replica hears nothing of the last puts, and takes over. Puts that it was to confirm are answered with an error,
 * and those that were acknowledged are there.
 */
START_TEST(what_a_replica_has_confirmed_survives_its_primary)
{
	static char acknowledged[PUTS], delivered[PUTS];
	int late = 0;

	if (!redis_server_is_there() || !store_rig_make_cluster(&rig, 3, 1, NULL))
		return;
	rig.config.shards = SHARDS;
	rig.config.timeout = WW_SECOND;
	rig.config.replicas = 1;
	store_rig_open(&rig);
	struct redis_server *primary = &rig.servers.servers[0];
	struct redis_server *replica = &rig.servers.servers[3];
	for (int i = 0; i < 3; i++)
		redis_server_wait_replica(&rig.servers.servers[i], &rig.servers.servers[3 + i]);
	for (uint32_t i = 0; i < PUTS - 12; i++)
		acknowledged[i] = put_numbered(i) >= 0;
	redis_server_freeze(replica);
	redis_server_tell(primary, "CLIENT KILL TYPE replica");
	for (uint32_t i = PUTS - 12; i < PUTS; i++) {
		int result = put_numbered(i);
		ck_assert_msg(result >= 0 || result == WW_ETIMEOUT, "%d", result);
		acknowledged[i] = result >= 0;
		late += result < 0;
	}
	ck_assert_int_gt(late, 0);
	ck_assert_int_lt(late, 12);
	ck_assert_int_eq(store_rig_said(&rig, "fewer than 1 replicas confirm"), 1);
	redis_server_kill(primary);
	redis_server_thaw(replica);
	redis_server_tell(replica, "CLUSTER FAILOVER TAKEOVER");
	redis_server_wait_info(replica, "replication", "role:master");
	take_numbers(delivered);
	for (int i = 0; i < PUTS; i++)
		ck_assert_msg(delivered[i] || !acknowledged[i], "job %d is lost", i);
	store_rig_end(&rig);
}
END_TEST

int main(int argc, char **argv)
{
	const TTest *const tests[] = {what_a_replica_has_confirmed_survives_its_primary};

	if (argc > 1)
		return actor_main(argc, argv);
	return suite_run_with("redis/replicas", tests, sizeof tests / sizeof tests[0], NULL);
}
