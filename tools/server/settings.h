#ifndef TOOLS_SERVER_SETTINGS_H
#define TOOLS_SERVER_SETTINGS_H

/* What the command line and a configuration file say. */

#include <stddef.h>
#include <stdint.h>

#include "weekwheel/jobs.h"

enum { SETTINGS_LISTEN_MAX = 16 };

struct settings {
	const char *data;
	const char *unix_path;
	const char *http;
	const char *listen[SETTINGS_LISTEN_MAX];
	size_t listen_count;
	enum ww_jobs_sync sync;
	uint64_t sync_ns;
	uint64_t max_job_size;
	uint64_t max_connections; /* 0: as many as the system allows */
	uint64_t max_output;      /* bytes of answers that a client may leave unread */
	uint64_t ahead;           /* with virtual clocks: how much time has passed at the start, in ns */
	int is_memory;
	int is_virtual;
	int is_verbose;
};

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program is to end now. */
int settings_read(struct settings *settings, char **arguments);

#endif
