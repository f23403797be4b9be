#ifndef TOOLS_WEEKWHEEL_SESSIOND_SETTINGS_SETTINGS_H
#define TOOLS_WEEKWHEEL_SESSIOND_SETTINGS_SETTINGS_H

/* The settings of the server, from the command line and a configuration file. */

#include <stddef.h>
#include <stdint.h>

#include "tools/service/outbox/options.h"
#include "tools/service/settings/settings.h"
#include "tools/weekwheel-sessiond/data/data.h"
#include "tools/weekwheel-sessiond/keep/keep.h"

enum { LOOPS_MAX = 256 };

struct sessiond_settings {
	SERVICE_SETTINGS;
	uint64_t threads; /* 0: one for each processor */
	uint64_t databases;
	uint64_t lifetime; /* ns; 0: none */
	int has_lifetimes;
	int keeps_lifetimes;
	uint64_t stays_ended; /* ns */
	uint64_t memory;      /* bytes; 0: any */
	int policy;           /* enum data_policy */
	uint64_t bulk_max;
	uint64_t patterns_max;
	uint64_t clients_max;
	uint64_t script_time; /* ns */
	uint64_t script_memory;
	const char *events; /* NULL: none */
	const char *folder; /* NULL: nothing outlasts the server */
	uint64_t max_downtime;
	int recovers;
	int takes_stale;
	const char *password; /* NULL: none */
	struct outbox_options reporting;
};

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program ends now. */
int sessiond_settings_read(struct sessiond_settings *settings, char **arguments);

#endif
