/* The table of weekwheel-expirer's own options. */
#include "tools/weekwheel-expirer/settings.h"

#include "lib/redis/link/line.h"
#include "tools/common/message.h"

#define SECONDS(number) ((number)*UINT64_C(1000000000))
#define AT(member) SETTING_AT(expirer_settings, member)

static int read_redis(void *to, const struct given *given)
{
	struct expirer_settings *settings = to;
	struct redis_url url;
	char reason[REDIS_LINE_WHY];
	const char *why;

	settings->masters.node.url = given->value;
	/* The url may contain a password, which no message shows. */
	if (ww_redis_url_parse(&url, given->value, &why))
		return message_error("URL: %s", why);
	if (ww_redis_line_check_files(&url, reason) != WW_OK)
		return message_error("URL: %s", reason);
	settings->database = settings->masters.node.db = url.db;
	return 0;
}

static const char *const changes[] = {"auto", "tracking", "events", NULL};

static const struct setting table[] = {
    {'r', "redis", "URL", "where Redis is: the same as URL without --redis", .read = read_redis},
    {0, "user", "NAME", "log in as this user of its access control list", NULL, SETTING_TEXT, AT(masters.node.user),
        .needs = "password-file"},
    {0, "password-file", "FILE", "log in with the password in the first line of this file", NULL, SETTING_SECRET,
        AT(masters.node.password)},
    {0, "sentinel-user", "NAME", "log in to the Sentinels as this user", NULL, SETTING_TEXT, AT(masters.sentinel_user),
        .needs = "sentinel-password-file"},
    {0, "sentinel-password-file", "FILE", "log in to the Sentinels with the password in the first line of this file",
        NULL, SETTING_SECRET, AT(masters.sentinel_password)},
    {'m', "match", "PATTERN", "only keys that match, such as 'sess:*', as SCAN has patterns", NULL, SETTING_TEXT,
        AT(masters.node.match)},
    {0, "only-later", NULL,
        "deadlines only move on, as those of sessions do: a change of a known key\ncosts nothing, and at its old deadline the new one is looked up",
        NULL, SETTING_FLAG, AT(masters.node.only_later)},
    {0, "changes", "HOW",
        "hear of changes by client \"tracking\", by \"events\" (notify-keyspace-events),\nor by what suits this Redis (%s)",
        "auto", SETTING_WORD, AT(masters.node.changes), .words = changes},
    {'w', "window", "TIME",
        "keep in memory only the keys that are due within it, such as 1h, and go\nthrough all keys again whenever half of it has passed",
        NULL, SETTING_TIME, AT(window), SECONDS(1), SECONDS(30 * 86400)},
    OUTBOX_OPTIONS(expirer_settings, reporting, "make a job of each key that ends"),
    {0, "with-value", "TIME", "read a string's value this long before its end, such as 50ms, for the job", NULL,
        SETTING_TIME, AT(lead), SECONDS(1) / 1000, SECONDS(60), .needs = "expired-to"},
    {0, "most-value", "BYTES", "the longest value that is read (%s)", "64K", SETTING_BYTES, AT(masters.node.value_max),
        1, 64 << 20, .needs = "with-value"},
    {'d', "data", "DIR", "keep in this directory what is known, and report what ends during a downtime", NULL,
        SETTING_TEXT, AT(folder), .needs = "expired-to"},
};

static const struct setting here[] = {
    {.name = "http", .help = "a page, /metrics, /livez and /readyz; tls:HOST:PORT with TLS"},
    {.name = NULL},
};

static const char *const without[] = {"listen", "unix", "socket-mode", "socket-group", "max-connections-per-address",
    "max-buffers", "sync", "sync-interval", "clock", "http-auth-file", NULL};

static int check(void *of)
{
	struct expirer_settings *settings = of;

	if (!settings->masters.node.url)
		return message_error("URL: expected where Redis is, such as redis://127.0.0.1:6379");
	if (settings->reporting.is_reporting && settings->masters.node.only_later)
		return settings_refuse("only-later",
		    "and --expired-to exclude each other: without a lookup, a key that was deleted seems to have ended");
	settings->masters.node.window_ms = settings->window / 1000000;
	settings->masters.node.lead_ms = settings->lead / 1000000;
	/* Above this size the outbox leaves values out. */
	settings->masters.node.values_max = settings->reporting.max / 4 * 3;
	return outbox_options_complete(&settings->reporting);
}

static const struct settings_server server = {
    .usage = "Usage: weekwheel-expirer [OPTION]... URL\n"
             "\n"
             "Let the keys of a Redis expire when they should: ask for each in the millisecond after its deadline.\n"
             "URL: redis://[USER[:PASSWORD]@]HOST[:PORT][/DB], rediss:// with TLS, or unix:///PATH[?db=DB]\n"
             "Cluster: redis:// with some of its nodes, HOST[:PORT][,HOST[:PORT]]...\n"
             "Sentinel: redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]].../NAME[/DB]\n",
    .example = "Example, with health and metrics over HTTP:\n"
               "  weekwheel-expirer --match 'sess:*' --http 127.0.0.1:6382 redis://127.0.0.1:6379 &\n",
    .option = "--match 'sess:*'",
    .operand = "redis",
    .passes = "tokens and numbers",
    .table = table,
    .count = sizeof table / sizeof *table,
    .here = here,
    .without = without,
    .check = check,
};

int expirer_settings_read(struct expirer_settings *settings, char **arguments)
{
	*settings = (struct expirer_settings){.max_buffers = 16 << 20};
	return service_settings_read(&server, settings, arguments);
}
