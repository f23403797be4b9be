/* The table of weekwheeld's own options. */
#include <stdlib.h>

#include "tools/service/settings/settings.h"
#include "tools/weekwheeld/settings/read.h"
#include "weekwheel/driver.h"
#include "weekwheel/jobs_redis.h"

#define AT(member) SETTING_AT(settings, member)
#define PUSH(member) SETTING_AT(settings, push.config.member)
#define DAYS (86400 * WW_SECOND)
#define PIB (UINT64_C(1) << 50)

_Static_assert((int)WW_SYNC_ALWAYS == SETTINGS_ALWAYS && (int)WW_SYNC_INTERVAL == SETTINGS_INTERVAL &&
                   (int)WW_SYNC_SYSTEM == SETTINGS_SYSTEM,
    "open.c hands --sync to the store");

/* What an option needs. */
#define FOR_REDIS                                                                                                      \
	.needs = "store", .or_one = "store-file",                                                                      \
	.why = "is for jobs in Redis: --store is missing; give that too, or leave it out"
#define FOR_PUSH                                                                                                       \
	.needs = "push",                                                                                               \
	.why = "is for jobs that are delivered over HTTP: --push TUBE is missing; give that too, or leave it out"
#define FOR_QUOTA                                                                                                      \
	.needs = "data", .or_one = "memory",                                                                           \
	.why =                                                                                                         \
	    "is for --data and --memory: other servers put into Redis, too, and its own limit is maxmemory; leave it out"

static const struct setting table[] = {
    {'d', "data", "DIR", "the folder in which jobs are kept; made if missing", NULL, SETTING_TEXT, AT(data)},
    {'m', "memory", NULL, "keep jobs only in memory, until the server ends", NULL, SETTING_FLAG, AT(is_memory)},
    {'s', "store", "URL",
        "keep jobs in Redis, for several servers: redis://HOST:PORT/,\nredis://HOST:PORT,HOST:PORT for a cluster, or unix:///PATH;\nor in PostgreSQL: postgresql://HOST/DATABASE",
        .read = settings_store_url},
    {0, "store-file", "FILE", "read that URL from a file, to hide its password", .read = settings_store_file},
    {0, "advertise", "HOST",
        "with PostgreSQL: by which name or address the other servers reach\nthis one (that at which it listens)",
        .read = settings_store_advertise},
    {0, "postgres-replicas", "N", "start only if PostgreSQL waits for N standbys before a put is answered (0)", NULL,
        SETTING_WHOLE, AT(postgres_replicas), .most = 1000},
    {0, "max-downtime", "TIME", "how long the clock may say that the machine was off (%s)", "30d", SETTING_TIME,
        AT(max_downtime), .most = 3650 * DAYS, .needs = "data",
        .why = "is for --data: Redis keeps its own time, and --memory keeps nothing; leave it out"},
    {0, "max-disk", "BYTES", "refuse new jobs when the folder takes so much, such as 10G (a full disk)", "0",
        SETTING_BYTES_OR_0, AT(max_disk), WW_JOBS_DISK_LEAST, PIB, .needs = "data",
        .why = "is for --data: Redis has its own limit (maxmemory), and --memory writes nothing; leave it out"},
    {'z', "max-job-size", "BYTES", "the longest body of a job (%s)", "65535", SETTING_BYTES, AT(max_job_size), 1,
        WW_JOB_BODY_MAX},
    {0, "max-connections", "N", "the most clients at a time (0: as \"ulimit -n\" allows)", NULL, SETTING_WHOLE,
        AT(max_connections), .most = 10000000},
    {0, "max-memory", "BYTES",
        "refuse new jobs and tubes when jobs and clients take this much memory\n(three quarters of the machine's)",
        NULL, SETTING_BYTES, AT(max_memory), 16 << 20, PIB},
    {0, "max-watched", "N", "the most tubes that a client watches (%s)", "10000", SETTING_WHOLE, AT(max_watched), 1,
        1000000},
    {0, "max-tubes", "N", "the most tubes in all (%s)", "100000", SETTING_WHOLE, AT(max_tubes), 1, 10000000},
    {0, "max-jobs", "N", "refuse new jobs when there are this many (0: any number)", NULL, SETTING_WHOLE, AT(max_jobs),
        .most = PIB, FOR_QUOTA},
    {0, "max-tube-jobs", "N", "refuse new jobs of a tube that has this many (0: any number)", NULL, SETTING_WHOLE,
        AT(max_tube_jobs), .most = PIB, FOR_QUOTA},
    {0, "max-history", "N", "keep this many runs of jobs that ask for it, then forget the oldest\n(%s); 0: none",
        "10000", SETTING_WHOLE, AT(max_history), .most = 10000000, .needs = "data", .or_one = "memory",
        .why = "is for --data and --memory: a store in Redis keeps 10,000 runs; leave it out"},
    {0, "max-output", "BYTES", "the most answers a client may leave unread (%s)", "4M", SETTING_BYTES, AT(max_output),
        4096, WW_JOB_BODY_MAX},
    {0, "redis-prefix", "NAME", "the beginning of each key in Redis (%s)", "weekwheel", .read = settings_store_prefix,
        FOR_REDIS},
    {0, "redis-shards", "N", "the number of parts of a new store (16)", NULL, SETTING_WHOLE, AT(redis.shards), 1,
        WW_REDIS_SHARDS_MAX, FOR_REDIS},
    {0, "redis-replicas", "N", "replicas that must have a job before its put is answered (0)", NULL, SETTING_WHOLE,
        AT(redis.replicas), .most = WW_REDIS_REPLICAS_MAX, FOR_REDIS},
    {0, "redis-lease", "TIME", "after this silence others take over a server's work (%s)", "6s", SETTING_TIME,
        AT(redis.lease), WW_SECOND, 3600 * WW_SECOND, FOR_REDIS},
    {0, "redis-timeout", "TIME", "how long to wait for an answer of Redis (%s)", "2s", SETTING_TIME, AT(redis.timeout),
        10 * WW_MILLISECOND, 3600 * WW_SECOND, FOR_REDIS},
    {'p', "push", "TUBE,...", "deliver the jobs of these tubes as HTTP requests", NULL, SETTING_LIST, .repeats = 1,
        .read = settings_push_tube},
    {0, "push-in-flight", "N", "the most requests at a time (%s)", "256", SETTING_WHOLE, PUSH(in_flight), 1, 65536,
        FOR_PUSH},
    {0, "push-per-host", "N", "the most of these to one address (%s)", "16", SETTING_WHOLE, PUSH(per_host), 1, 65536,
        FOR_PUSH},
    {0, "push-timeout", "TIME", "how long a request may take, or the job's time to run (%s)", "30s", SETTING_TIME,
        PUSH(timeout), WW_MILLISECOND, DAYS, FOR_PUSH},
    {0, "push-attempts", "N", "attempts of a job without a limit of its own (%s); 0: no limit", "25", SETTING_WHOLE,
        PUSH(attempts), .most = 1000000, FOR_PUSH},
    {0, "push-rest-after", "N", "let a host rest after this many requests without an answer (%s); 0: never", "5",
        SETTING_WHOLE, PUSH(rest_after), .most = 1000000, FOR_PUSH},
    {0, "push-connect-timeout", "TIME", "how long a connection may take (%s)", "5s", SETTING_TIME,
        PUSH(connect_timeout), WW_MILLISECOND, 3600 * WW_SECOND, FOR_PUSH},
    {0, "push-grace", "TIME", "how long requests may still take when the server ends (%s)", "10s", SETTING_TIME,
        AT(push.grace), .most = 3600 * WW_SECOND, FOR_PUSH},
    {0, "push-success", "STATUS,...", "statuses that count as success, in addition to 2xx", NULL, SETTING_LIST,
        .repeats = 1, .read = settings_push_status, FOR_PUSH},
    {0, "push-networks", "WHICH,...",
        "what may be called in addition to public addresses: loopback,\nprivate, link-local, special, ranges such as 10.1.0.0/16",
        NULL, SETTING_LIST, .repeats = 1, .read = settings_push_network, FOR_PUSH},
    {0, "push-deny", "RANGE,...", "what may not be called, whatever other options say", NULL, SETTING_LIST,
        .repeats = 1, .read = settings_push_deny, FOR_PUSH},
    {0, "push-schemes", "SCHEME,...", "http, https (both)", NULL, SETTING_LIST, .repeats = 1,
        .read = settings_push_scheme, FOR_PUSH},
    {0, "push-secret-file", "FILE", "sign requests with the secret in this file", NULL, SETTING_SECRET, PUSH(secret),
        FOR_PUSH},
    {0, "push-ca-file", "FILE", "certificates to trust instead of the system's", .read = settings_push_certificates,
        FOR_PUSH},
};

static const struct setting here[] = {
    {.name = "listen", .preset = "127.0.0.1:11300"},
    {.name = "sync", .preset = "always"},
    {.name = "sync-interval", .preset = "50ms"},
    {.name = NULL},
};

static const struct settings_server server = {
    .usage = "Usage: weekwheeld --data DIR [OPTION]...\n"
             "       weekwheeld --store redis://HOST:PORT/ [OPTION]...\n"
             "       weekwheeld --store postgresql://HOST/DATABASE [OPTION]...\n"
             "\n"
             "Keep jobs until they are due, in a second or in six months, and give them to workers, in the protocol\n"
             "of beanstalkd 1.12.\n",
    .example = "Example, a server of your own, and a job for it:\n"
               "  weekwheeld --data jobs &\n"
               "  printf 'put 0 3 60 5\\r\\nhello\\r\\nreserve\\r\\n' | nc -q 5 127.0.0.1 11300\n",
    .option = "--data DIR",
    .passes = "tokens and jobs",
    .table = table,
    .count = sizeof table / sizeof *table,
    .here = here,
    .check = settings_store_check,
};

int settings_read(struct settings *settings, char **arguments)
{
	const char *secret = getenv("WEEKWHEELD_PUSH_SECRET");

	*settings = (struct settings){0};
	settings_push_default(&settings->push);
	settings->push.config.secret = secret && *secret ? secret : NULL;
	return service_settings_read(&server, settings, arguments);
}
