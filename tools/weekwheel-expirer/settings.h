#ifndef TOOLS_WEEKWHEEL_EXPIRER_SETTINGS_H
#define TOOLS_WEEKWHEEL_EXPIRER_SETTINGS_H

/* The settings of the expirer, from the command line and a configuration file. */

#include "tools/service/outbox/options.h"
#include "tools/service/settings/settings.h"
#include "tools/weekwheel-expirer/masters/masters.h"

struct expirer_settings {
	SERVICE_SETTINGS;
	struct masters_config masters;
	unsigned database;
	uint64_t window; /* ns */
	uint64_t lead;   /* ns; 0: values are not read */
	struct outbox_options reporting;
	const char *folder; /* --data; NULL: nothing is kept over a restart */
};

/* Fill *settings from the arguments. Returns 0, or 1 + the status with which the program ends now. */
int expirer_settings_read(struct expirer_settings *settings, char **arguments);

#endif
