/* Checks that the options of a command line go together. */
#include <stdlib.h>

#include "tools/common/message.h"
#include "tools/service/address.h"
#include "tools/weekwheeld/settings/read.h"

/* Options that need another option, or exclude it. */
enum need { A_FOLDER = 1, NO_REDIS, REDIS, PUSH, INTERVALS, TLS, CERTIFICATE, SOCKET, HTTP, OWN_STORE };

static const struct {
	int first, last; /* the options */
	enum need need;
	const char *why;
} needs[] = {
    {OPTION_SYNC, OPTION_SYNC_INTERVAL, A_FOLDER,
        "is for --data: Redis writes when its own configuration says (appendonly, appendfsync), and --memory writes "
        "nothing; leave it out"},
    {OPTION_DOWNTIME, OPTION_DOWNTIME, A_FOLDER,
        "is for --data: Redis keeps its own time, and --memory keeps nothing; leave it out"},
    {OPTION_DISK, OPTION_DISK, A_FOLDER,
        "is for --data: Redis has its own limit (maxmemory), and --memory writes nothing; leave it out"},
    {OPTION_JOBS, OPTION_TUBE_JOBS, OWN_STORE,
        "is for --data and --memory: other servers put into Redis, too, and its own limit is maxmemory; leave it out"},
    {OPTION_HISTORY, OPTION_HISTORY, OWN_STORE,
        "is for --data and --memory: a store in Redis keeps 10,000 runs; leave it out"},
    {OPTION_HTTP, OPTION_HTTP, CERTIFICATE, "tls:HOST:PORT needs a certificate: give --tls-cert FILE, too"},
    {OPTION_LISTEN, OPTION_LISTEN, CERTIFICATE, "tls:HOST:PORT needs a certificate: give --tls-cert FILE, too"},
    {OPTION_TLS_CERT, OPTION_TLS_CLIENT_CA, TLS,
        "is for TLS: --listen tls:HOST:PORT or --http tls:HOST:PORT is missing; give that too, or leave it out"},
    {OPTION_SYNC_INTERVAL, OPTION_SYNC_INTERVAL, INTERVALS, "is for --sync interval: give that too, or leave it out"},
    {OPTION_CLOCK, OPTION_CLOCK, NO_REDIS,
        "virtual is for --data and --memory: with --store, time is that of Redis; leave it out"},
    {OPTION_SOCKET_MODE, OPTION_SOCKET_GROUP, SOCKET, "is for --unix PATH: give that too, or leave it out"},
    {OPTION_HTTP_HOST, OPTION_HTTP_HOST, HTTP, "is for --http: give that too, or leave it out"},
    {OPTION_REDIS_PREFIX, OPTION_REDIS_TIMEOUT, REDIS,
        "is for jobs in Redis: --store is missing; give that too, or leave it out"},
    {OPTION_PUSH_IN_FLIGHT, OPTION_PUSH_CA_FILE, PUSH,
        "is for jobs that are delivered over HTTP: --push TUBE is missing; give that too, or leave it out"},
};

static int listens_with_tls(const struct settings *settings)
{
	for (size_t i = 0; i < settings->listen_count; i++)
		if (address_is_tls(settings->listen[i]))
			return 1;
	return settings->http && address_is_tls(settings->http);
}

static int is_met(const struct settings *settings, enum need need)
{
	switch (need) {
	case A_FOLDER:
		return settings->data != NULL;
	case NO_REDIS:
		return !settings->redis.url || !settings->is_virtual;
	case OWN_STORE:
		return settings->redis.url == NULL;
	case REDIS:
		return settings->redis.url != NULL;
	case PUSH:
		return settings->push.config.tube_count > 0;
	case SOCKET:
		return settings->unix_path != NULL;
	case HTTP:
		return settings->http != NULL;
	case TLS:
		return listens_with_tls(settings);
	case CERTIFICATE:
		return settings->tls.certificate || !listens_with_tls(settings);
	default:
		return settings->sync == WW_SYNC_INTERVAL;
	}
}

int settings_check(struct settings *settings)
{
	const char *secret = getenv("WEEKWHEELD_PUSH_SECRET");

	if (settings_store_check(settings) != 0)
		return -1;
	for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
		for (int id = needs[i].first; id <= needs[i].last; id++) {
			if (settings_has(settings, id) && !is_met(settings, needs[i].need))
				return message_error(
				    "--%s %s\nTry 'weekwheeld --help'.", settings_name(id), needs[i].why);
		}
	}
	if (settings_access_check(settings) != 0)
		return -1;
	if (!settings->push.config.secret && secret && *secret)
		settings->push.config.secret = secret;
	return 0;
}
