#ifndef TOOLS_WEEKWHEELD_SETTINGS_READ_H
#define TOOLS_WEEKWHEELD_SETTINGS_READ_H

/* What the table of options needs of the files beside it: functions that read the value of an option. */

#include "tools/service/settings/settings.h"
#include "tools/weekwheeld/settings/settings.h"

/* ---- store.c */

int settings_store_url(void *settings, const struct given *given);
int settings_store_file(void *settings, const struct given *given);
int settings_store_prefix(void *settings, const struct given *given);
int settings_store_advertise(void *settings, const struct given *given);

/* Check that one option, or the environment, says where jobs are kept. Returns 0, or -1 after a message. */
int settings_store_check(void *settings);

/* ---- push.c */

void settings_push_default(struct settings_push *push);
int settings_push_tube(void *settings, const struct given *given);
int settings_push_status(void *settings, const struct given *given);
int settings_push_network(void *settings, const struct given *given);
int settings_push_deny(void *settings, const struct given *given);
int settings_push_scheme(void *settings, const struct given *given);
int settings_push_certificates(void *settings, const struct given *given);

#endif
