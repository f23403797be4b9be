#ifndef TOOLS_WEEKWHEEL_SESSIOND_SETTINGS_SETTINGS_H
#define TOOLS_WEEKWHEEL_SESSIOND_SETTINGS_SETTINGS_H

/* The settings of the server, from the command line and a configuration file. */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/tls/tls.h"
#include "tools/service/tokens.h"
#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/keep/keep.h"
#include "tools/weekwheel-sessiond/outbox/courier.h"

enum { SETTINGS_LISTEN_MAX = 16, LOOPS_MAX = 256 };

struct sessiond_settings {
	const char *listen[SETTINGS_LISTEN_MAX];
	size_t listen_count;
	const char *unix_path;
	const char *http; /* NULL: none */
	const char *http_hosts[SETTINGS_LISTEN_MAX];
	size_t http_host_count;
	uint64_t threads; /* 0: one for each processor */
	uint64_t databases;
	uint64_t lifetime; /* ns; 0: none */
	int has_lifetimes;
	int keeps_lifetimes;
	uint64_t memory; /* bytes; 0: any */
	enum data_policy policy;
	uint64_t bulk_max;
	uint64_t clients_max;
	uint64_t per_address_max; /* 0: any number */
	uint64_t buffers_max;     /* bytes */
	const char *folder;       /* NULL: nothing outlasts the server */
	enum keep_sync sync;
	uint64_t sync_interval; /* ns */
	int recovers;
	const char *password;  /* NULL: none */
	const char *auth_file; /* NULL: none */
	struct tokens *tokens; /* of that; the server's from its start */
	struct tls_files tls;
	int has_tls_listener;
	int is_telling; /* --expired-to */
	struct courier_config courier;
	uint64_t outbox_max; /* bytes */
	int is_insecure;
	int is_virtual;
	uint64_t given; /* 1 << OPTION_... */
};

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program ends now. */
int sessiond_settings_read(struct sessiond_settings *settings, char **arguments);

#endif
