/* The table of weekwheel-sessiond's own options. */
#include "tools/weekwheel-sessiond/settings/settings.h"

#include <string.h>

#include "tools/common/duration.h"

#define AT(member) SETTING_AT(sessiond_settings, member)
#define DAYS (86400 * WW_SECOND)
#define WHERE "127.0.0.1:6380"

_Static_assert((int)KEEP_ALWAYS == SETTINGS_ALWAYS && (int)KEEP_INTERVAL == SETTINGS_INTERVAL &&
                   (int)KEEP_SYSTEM == SETTINGS_SYSTEM,
    "run.c hands --sync to the journal");

/* commands/events.h parses it. An empty one means none. */
static int read_events(void *to, const struct given *given)
{
	struct sessiond_settings *settings = to;

	settings->events = given->value;
	return given->value[strspn(given->value, "KEg$lshzxetdA")] ? settings_bad(given, "letters of KEg$lshzxetdA")
	                                                           : 0;
}

static const char *const policies[] = {
    [DATA_NOEVICTION] = "noeviction", [DATA_ALLKEYS_LRU] = "allkeys-lru", [DATA_VOLATILE_LRU] = "volatile-lru", NULL};

static const struct setting table[] = {
    {'t', "threads", "N", "loops that serve clients (0: one for each processor)", NULL, SETTING_WHOLE, AT(threads),
        .most = LOOPS_MAX},
    {0, "databases", "N", "databases for SELECT (16; 1 with --maxmemory)", NULL, SETTING_WHOLE, AT(databases), 1,
        DATA_DATABASES_MAX},
    {0, "lifetime", "TIME",
        "how long a key with a deadline lives at most, whatever touches it: 12h;\nSET ... LIFETIME SECONDS says another",
        NULL, SETTING_TIME, AT(lifetime), DURATION_SECOND / 1000, DURATION_MAX},
    {0, "lifetimes", NULL, "only keys with a LIFETIME of their own have one", NULL, SETTING_FLAG, AT(has_lifetimes)},
    {0, "keep-lifetimes", NULL,
        "a SET of a key that is there goes on with its lifetime: most libraries\nset a session again when it changes",
        NULL, SETTING_FLAG, AT(keeps_lifetimes), .needs = "lifetime", .or_one = "lifetimes"},
    {0, "stay-ended", "TIME",
        "how long a key whose lifetime has ended stays ended, whoever sets it: a\nrequest in flight would bring it back (1m with --keep-lifetimes, else 0)",
        NULL, SETTING_TIME, AT(stays_ended), .most = DAYS, .needs = "lifetime", .or_one = "lifetimes"},
    {0, "maxmemory", "BYTES", "the most that sessions take, such as 2G, divided among the databases", NULL,
        SETTING_BYTES, AT(memory), 1 << 20, UINT64_C(1) << 50},
    {0, "maxmemory-policy", "POLICY",
        "at that bound: noeviction refuses sets (the default), allkeys-lru evicts\nwhat is used least, volatile-lru only keys with deadlines",
        NULL, SETTING_WORD, AT(policy), .words = policies, .needs = "maxmemory"},
    {0, "proto-max-bulk-len", "BYTES", "the longest value (%s)", "512M", SETTING_BYTES, AT(bulk_max), 1 << 20,
        VALUE_MAX},
    {0, "maxclients", "N", "the most clients at a time (%s)", "10000", SETTING_WHOLE, AT(clients_max), 1, 10000000},
    {0, "max-patterns", "N",
        "the most patterns of PSUBSCRIBE (%s): each message is compared with all.\nA client may take an eighth of those that are left",
        "10000", SETTING_WHOLE, AT(patterns_max), 1, 10000000},
#ifdef HAVE_LUA
    {0, "script-time", "TIME",
        "how long a script of EVAL may take (%s): then it is ended, or if it has\nwritten, after ten times as much, and undone",
        "5ms", SETTING_TIME, AT(script_time), WW_MILLISECOND, 10 * WW_SECOND},
    {0, "script-memory", "BYTES", "the most that a script takes, in each thread (%s)", "32M", SETTING_BYTES,
        AT(script_memory), 1 << 20, UINT64_C(1) << 32},
#endif
    {0, "notify-keyspace-events", "EVENTS",
        "publish these events from the start, such as Ex; CONFIG SET changes them later", .read = read_events},
    {'d', "data", "DIR", "keep sessions in this directory over a restart", NULL, SETTING_TEXT, AT(folder)},
    {0, "max-downtime", "TIME", "how long the clock may say that the machine was off (%s)", "30d", SETTING_TIME,
        AT(max_downtime), .most = 3650 * DAYS, .needs = "data"},
    {0, "recover", NULL,
        "of a damaged directory load what is whole and not stale; the files as\nthey were go to DIR/damaged", NULL,
        SETTING_FLAG, AT(recovers), .needs = "data"},
    {0, "recover-stale", NULL,
        "load also sessions that what is lost may have deleted or changed: users\nwho logged out may be logged in again",
        NULL, SETTING_FLAG, AT(takes_stale), .needs = "data"},
    OUTBOX_OPTIONS(sessiond_settings, reporting, "make a job of each key that expires or is evicted"),
    {0, "requirepass-file", "FILE", "clients must say the password in the first line of this file", NULL,
        SETTING_SECRET, AT(password)},
};

static const struct setting here[] = {
    {.name = "listen", .preset = WHERE},
    {.name = "max-buffers", .preset = "1G"},
    {.name = "sync", .preset = "interval", .needs = "data"},
    {.name = "sync-interval", .preset = "1s", .needs = "data"},
    {.name = NULL},
};

/* Check these options, and set the defaults that depend on others. */
static int complete(void *of)
{
	struct sessiond_settings *settings = of;

	if (settings->password && settings->auth_file)
		return settings_refuse("requirepass-file",
		    "and a file of tokens exclude each other: leave one out; HTTP takes the password, too");
	if (outbox_options_complete(&settings->reporting) != 0)
		return -1;
	settings->has_password = settings->password != NULL;
	settings->recovers |= settings->takes_stale;
	settings->has_lifetimes |= settings->lifetime > 0;
	if (settings->keeps_lifetimes && !settings_has(settings, "stay-ended"))
		settings->stays_ended = 60 * WW_SECOND;
	if (!settings->databases)
		settings->databases = settings->memory ? 1 : 16;
	return 0;
}

static const struct settings_server server = {
    .usage = "Usage: weekwheel-sessiond [OPTION]...\n"
             "\n"
             "Keep sessions: values that expire exactly when they should. Every client of Redis can use it.\n",
    .example = "Example, a server of your own, and a session that ends after half an hour without use:\n"
               "  weekwheel-sessiond --lifetime 12h &\n"
               "  redis-cli -p 6380 set sess:1 '{\"user\":17}' EX 1800\n",
    .option = "--listen " WHERE,
    .passes = "tokens and sessions",
    .table = table,
    .count = sizeof table / sizeof *table,
    .here = here,
    .check = complete,
};

int sessiond_settings_read(struct sessiond_settings *settings, char **arguments)
{
	*settings = (struct sessiond_settings){.databases = 0};
	return service_settings_read(&server, settings, arguments);
}
