#ifndef TOOLS_WEEKWHEELD_SETTINGS_SETTINGS_H
#define TOOLS_WEEKWHEELD_SETTINGS_SETTINGS_H

/* The settings of the server, from the command line, a configuration file and the environment. */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/tls/tls.h"
#include "tools/service/tokens.h"
#include "weekwheel/callback.h"
#include "weekwheel/jobs.h"

enum {
	SETTINGS_LISTEN_MAX = 16,
	SETTINGS_TUBES_MAX = 64,  /* pushed ones */
	SETTINGS_RANGES_MAX = 64, /* of addresses */
	SETTINGS_STATUSES_MAX = 64
};

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
	const char *data;
	const char *unix_path;
	const char *http;
	const char *http_hosts[SETTINGS_LISTEN_MAX]; /* names of this server, beside its addresses */
	size_t http_host_count;
	const char *auth_file;    /* NULL: everybody may do everything */
	struct tokens *tokens;    /* what it said at the start */
	const char *socket_group; /* of unix_path; NULL: not changed */
	unsigned socket_mode;
	int is_insecure; /* other machines may reach what has no TLS or asks for no token */
	const char *listen[SETTINGS_LISTEN_MAX];
	size_t listen_count;
	struct tls_files tls; /* for addresses that begin with "tls:" */
	enum ww_jobs_sync sync;
	uint64_t sync_ns;
	uint64_t max_downtime;
	uint64_t max_disk; /* bytes; 0: any */
	uint64_t max_job_size;
	uint64_t max_connections; /* 0: as many as the system allows */
	uint64_t max_per_address; /* clients; 0: any */
	uint64_t max_buffers;     /* bytes of commands and answers of all clients */
	uint64_t max_memory;      /* bytes; 0: three quarters of the machine's */
	uint64_t max_watched;     /* tubes that a client watches */
	uint64_t max_tubes;
	uint64_t max_jobs;      /* in all; 0: any */
	uint64_t max_history;   /* runs that are kept */
	uint64_t max_tube_jobs; /* of a tube; 0: any */
	uint64_t max_output;    /* how many bytes of answers a client may leave unread */
	uint64_t ahead;         /* with virtual clocks: ns that have passed before the start */
	struct settings_redis redis;
	struct settings_push push;
	int is_memory;
	int is_virtual;
	uint64_t given; /* 1 << OPTION_... for each option on the command line or in a file */
};

/* Return 0 if clients of the address may be let in, or -1 after a message: other machines need TLS, and a token or a certificate. */
struct sockaddr;
int settings_let_in(const struct settings *settings, const struct sockaddr *address, int is_tls);

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program ends now. */
int settings_read(struct settings *settings, char **arguments);

#endif
