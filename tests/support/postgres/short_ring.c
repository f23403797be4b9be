/*
 * For LD_PRELOAD: weekwheeld opens a store in PostgreSQL with a ring whose parts follow each other after RING_MS, so that all
 * that becomes of a row happens in seconds.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "weekwheel/jobs_postgres.h"

int ww_jobs_postgres_config_default(struct ww_jobs_postgres_config *config)
{
	int (*original)(struct ww_jobs_postgres_config *);
	int error;

	*(void **)&original = dlsym(RTLD_NEXT, "ww_jobs_postgres_config_default");
	error = original(config);
	if (!error)
		config->ring = strtoull(getenv("RING_MS"), NULL, 10) * 1000000;
	return error;
}
