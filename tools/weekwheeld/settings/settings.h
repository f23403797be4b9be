#ifndef TOOLS_WEEKWHEELD_SETTINGS_SETTINGS_H
#define TOOLS_WEEKWHEELD_SETTINGS_SETTINGS_H

/* The settings of the server, from the command line, a configuration file and the environment. */

#include <stddef.h>
#include <stdint.h>

#include "tools/service/settings/settings.h"
#include "weekwheel/callback.h"
#include "weekwheel/jobs.h"

enum { SETTINGS_TUBES_MAX = 64 /* pushed ones */, SETTINGS_RANGES_MAX = 64, SETTINGS_STATUSES_MAX = 64 };

/* Jobs in Redis. */
struct settings_redis {
	const char *url; /* NULL: jobs are in a folder or in memory */
	const char *prefix;
	uint64_t shards; /* 0: not given */
	uint64_t replicas;
	uint64_t lease;
	uint64_t timeout;
};

/* Jobs that are delivered over HTTP. */
struct settings_push {
	struct ww_callback_config config; /* its lists are these arrays; no tube: none is pushed */
	const char *tubes[SETTINGS_TUBES_MAX];
	uint16_t success[SETTINGS_STATUSES_MAX];
	const char *allow[SETTINGS_RANGES_MAX];
	const char *deny[SETTINGS_RANGES_MAX];
	uint64_t grace; /* for requests under way when the server ends */
};

struct settings {
	SERVICE_SETTINGS;
	const char *data;
	int is_memory;
	uint64_t max_downtime;
	uint64_t max_disk; /* bytes; 0: any */
	uint64_t max_job_size;
	uint64_t max_connections; /* 0: as many as the system allows */
	uint64_t max_memory;      /* bytes; 0: three quarters of the machine's */
	uint64_t max_watched;     /* tubes that a client watches */
	uint64_t max_tubes;
	uint64_t max_jobs;      /* in all; 0: any */
	uint64_t max_tube_jobs; /* of a tube; 0: any */
	uint64_t max_history;   /* runs that are kept */
	uint64_t max_output;    /* how many bytes of answers a client may leave unread */
	struct settings_redis redis;
	const char *postgres; /* the URL of PostgreSQL; NULL: jobs are not there */
	uint64_t postgres_replicas;
	const char *advertise; /* the host by which other servers on it reach this one, or NULL */
	struct settings_push push;
};

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program ends now. */
int settings_read(struct settings *settings, char **arguments);

#endif
