/* Commands about the server: its numbers, its parameters, ending it. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/glob.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/server/mail.h"
#include "weekwheel/version.h"

/* ---- INFO */

static struct sessiond *server_of(const struct request *request)
{
	return request->conn->loop->server;
}

static const char *policy_name(const struct sessiond_settings *settings)
{
	static const char *const names[] = {
	    [DATA_NOEVICTION] = "noeviction", [DATA_ALLKEYS_LRU] = "allkeys-lru", [DATA_VOLATILE_LRU] = "volatile-lru"};

	return names[settings->policy];
}

static void line(struct buffer *out, const char *name, uint64_t value)
{
	(void)buffer_format(out, "%s:%llu\r\n", name, (unsigned long long)value);
}

static void about_server(struct request *request, struct buffer *out)
{
	const struct sessiond *server = server_of(request);
	uint64_t uptime = (uint64_t)(data_steady_ms(request->data) - server->started_ms) / 1000;

	(void)buffer_format(out,
	    "redis_version:%s\r\nredis_mode:standalone\r\nweekwheel_version:%s\r\nmultiplexing_api:epoll\r\n"
	    "run_id:%s\r\n",
	    REDIS_VERSION, ww_version(), server->run_id);
	line(out, "arch_bits", 8 * sizeof(void *));
	line(out, "process_id", (uint64_t)getpid());
	line(out, "tcp_port", server->listening.port);
	line(out, "uptime_in_seconds", uptime);
	line(out, "uptime_in_days", uptime / 86400);
	line(out, "io_threads", server->loop_count);
}

static void about_clients(struct request *request, struct buffer *out)
{
	const struct sessiond *server = server_of(request);

	line(out, "connected_clients", server->clients);
	line(out, "maxclients", server->settings->clients_max);
	line(out, "blocked_clients", 0);
}

static void about_memory(struct request *request, struct buffer *out)
{
	const struct sessiond_settings *settings = server_of(request)->settings;
	struct ww_session_stats stats;

	data_stats(request->data, &stats);
	/* The weight counts values, too. Without a bound nothing is weighed. */
	line(out, "used_memory", settings->memory ? stats.weight : stats.bytes);
	line(out, "used_memory_maps", stats.bytes);
	line(out, "used_memory_clients", buffer_all());
	line(out, "maxmemory", settings->memory);
	(void)buffer_format(out, "maxmemory_policy:%s\r\n", policy_name(settings));
}

static void about_persistence(struct request *request, struct buffer *out)
{
	int64_t last = server_of(request)->started_ms / 1000;

	line(out, "loading", 0);
	line(out, "rdb_bgsave_in_progress", (uint64_t)data_saving(request->data, &last));
	line(out, "rdb_last_save_time", (uint64_t)last);
	data_keep_info(request->data, out);
}

static const char *const counts[SESSIOND_COUNTS] = {"total_connections_received", "total_commands_processed",
    "total_net_input_bytes", "total_net_output_bytes", "rejected_connections", "expired_keys", "evicted_keys",
    "keyspace_hits", "keyspace_misses"};

/* Since the start, in the order of their names. */
static void count(struct request *request, uint64_t now[SESSIOND_COUNTS])
{
	const struct sessiond *server = server_of(request);
	struct ww_session_stats stats;
	struct traffic traffic = sessiond_traffic(server);

	data_stats(request->data, &stats);
	const uint64_t all[SESSIOND_COUNTS] = {server->clients_total, traffic.commands, traffic.in, traffic.out,
	    server->refused, stats.expired, stats.evicted, stats.hits, stats.misses};
	memcpy(now, all, sizeof all);
}

static void about_stats(struct request *request, struct buffer *out)
{
	const struct sessiond *server = server_of(request);
	uint64_t now[SESSIOND_COUNTS];

	count(request, now);
	for (size_t i = 0; i < SESSIOND_COUNTS; i++)
		line(out, counts[i], now[i] - server->forgotten[i]);
}

static void forget_counts(struct request *request)
{
	uint64_t now[SESSIOND_COUNTS];

	count(request, now);
	for (size_t i = 0; i < SESSIOND_COUNTS; i++)
		server_of(request)->forgotten[i] = now[i];
	reply_ok(request->conn);
}

static void about_replication(struct request *request, struct buffer *out)
{
	(void)request;
	(void)buffer_format(out, "role:master\r\nconnected_slaves:0\r\n");
}

static void about_cluster(struct request *request, struct buffer *out)
{
	(void)request;
	line(out, "cluster_enabled", 0);
}

/* Keys to look at, and pieces of a map, which may be empty. */
enum { SAMPLE_KEYS = 4096, SAMPLE_PIECES = 4096 };

struct keys_sample {
	uint64_t keys;
	uint64_t expiring;
	uint64_t left_ms; /* of all of these */
};

static int sample_one(const void *key, size_t length, const struct ww_session_found *found, void *context)
{
	struct keys_sample *sample = context;
	struct data_entry entry;

	(void)key;
	(void)length;
	data_entry_fill(&entry, found);
	sample->keys++;
	if (entry.deadline == DATA_NEVER)
		return 0;
	sample->expiring++;
	sample->left_ms += found->left / WW_MILLISECOND;
	return 0;
}

/* A transaction cannot be divided, and all other clients wait for it: its later samples are smaller. */
static int may_look(struct conn *conn, uint64_t keys)
{
	if (!conn->is_in_exec)
		return 1;
	conn->exec_looks -= keys < conn->exec_looks ? keys : conn->exec_looks;
	return conn->exec_looks > 0;
}

/*
 * All keys of a small database, and a sample of a large one from a random place on: counting all would slow each set.
 */
static void take_sample(const struct request *request, unsigned database, uint64_t count, struct keys_sample *sample)
{
	struct ww_session *session = data_map(request->data, database);
	uint64_t cursor = count > SAMPLE_KEYS ? data_cursor(request->data, database) : 0;
	uint64_t before = 0;
	int is_around = !cursor;

	for (int i = 0; session && i < SAMPLE_PIECES && sample->keys < SAMPLE_KEYS; i++) {
		if (!may_look(request->conn, 1 + sample->keys - before))
			return;
		before = sample->keys;
		if (ww_session_scan(session, &cursor, sample_one, sample) != WW_OK || (!cursor && is_around))
			return;
		is_around |= !cursor;
	}
}

static void about_keys(struct request *request, struct buffer *out)
{
	for (unsigned i = 0; i < data_databases(request->data); i++) {
		struct keys_sample sample = {0};
		uint64_t count = data_count(request->data, i);
		uint64_t expires = count;
		if (!count)
			continue;
		take_sample(request, i, count, &sample);
		if (sample.expiring < sample.keys)
			expires = (uint64_t)((double)sample.expiring / (double)sample.keys * (double)count);
		(void)buffer_format(out, "db%u:keys=%llu,expires=%llu,avg_ttl=%llu\r\n", i, (unsigned long long)count,
		    (unsigned long long)expires,
		    (unsigned long long)(sample.expiring ? sample.left_ms / sample.expiring : 0));
	}
}

static const struct {
	const char *name;
	void (*add)(struct request *request, struct buffer *out);
} sections[] = {
    {"Server", about_server},
    {"Clients", about_clients},
    {"Memory", about_memory},
    {"Persistence", about_persistence},
    {"Stats", about_stats},
    {"Replication", about_replication},
    {"Cluster", about_cluster},
    {"Keyspace", about_keys},
};

static int is_wanted(const struct request *request, const char *name)
{
	for (size_t i = 1; i < request->count; i++)
		if (request_is(request, i, name) || request_is(request, i, "ALL") ||
		    request_is(request, i, "DEFAULT") || request_is(request, i, "EVERYTHING"))
			return 1;
	return request->count == 1;
}

void command_info(struct request *request)
{
	struct buffer text = {0};

	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!is_wanted(request, sections[i].name))
			continue;
		(void)buffer_format(&text, "%s# %s\r\n", text.size ? "\r\n" : "", sections[i].name);
		sections[i].add(request, &text);
	}
	reply_verbatim(request->conn, text.data ? text.data : "", text.size);
	buffer_free(&text);
}

/* ---- CONFIG */

enum { PARAMETER_TEXT = 64 };

static void show_number(char *text, uint64_t number)
{
	(void)snprintf(text, PARAMETER_TEXT, "%llu", (unsigned long long)number);
}

/* Write the value of a parameter. Returns 0, or -1 if no parameter has this number. */
static int show_parameter(
    const struct sessiond_settings *settings, size_t number, const char **name, char text[PARAMETER_TEXT])
{
	static const char *const names[] = {"appendonly", "databases", "maxclients", "maxmemory", "maxmemory-policy",
	    "notify-keyspace-events", "proto-max-bulk-len", "save", "timeout"};

	if (number >= sizeof names / sizeof *names)
		return -1;
	*name = names[number];
	switch (number) {
	case 0:
		strcpy(text, "no");
		return 0;
	case 1:
		show_number(text, settings->databases);
		return 0;
	case 2:
		show_number(text, settings->clients_max);
		return 0;
	case 3:
		show_number(text, settings->memory);
		return 0;
	case 4:
		strcpy(text, policy_name(settings));
		return 0;
	case 5:
		events_show(events_get(), text);
		return 0;
	case 6:
		show_number(text, settings->bulk_max);
		return 0;
	case 7:
		*text = 0;
		return 0;
	default:
		show_number(text, 0);
		return 0;
	}
}

/* A pattern longer than any name has many stars: matching it is not worth the time. */
static int is_pattern_of(const struct resp_arg *word, const char *name)
{
	char lower[PARAMETER_TEXT];

	if (word->size > sizeof lower)
		return 0;
	for (size_t n = 0; n < word->size; n++)
		lower[n] = (char)tolower((unsigned char)word->data[n]);
	return glob_matches(lower, word->size, name, strlen(name));
}

/* Return the word that selects this parameter, or NULL. An exact name wins over a pattern. */
static const struct resp_arg *find_word(const struct request *request, const char *name)
{
	const struct resp_arg *found = NULL;

	for (size_t i = 2; i < request->count; i++) {
		if (request_is(request, i, name))
			return &request->arg[i];
		if (!found && is_pattern_of(&request->arg[i], name))
			found = &request->arg[i];
	}
	return found;
}

static void get_parameters(struct request *request)
{
	const struct sessiond_settings *settings = server_of(request)->settings;
	const struct resp_arg *word;
	char text[PARAMETER_TEXT];
	const char *name;
	size_t count = 0;

	for (size_t i = 0; show_parameter(settings, i, &name, text) == 0; i++)
		count += find_word(request, name) != NULL;
	reply_map(request->conn, count);
	for (size_t i = 0; show_parameter(settings, i, &name, text) == 0; i++) {
		word = find_word(request, name);
		if (!word)
			continue;
		/* As in Redis, a name comes back as the client wrote it. */
		if (command_is_word(word, name))
			reply_bulk(request->conn, word->data, word->size);
		else
			reply_string(request->conn, name);
		reply_string(request->conn, text);
	}
}

static int is_parameter(const struct request *request, size_t number)
{
	char text[PARAMETER_TEXT];
	const char *name;

	for (size_t i = 0; show_parameter(server_of(request)->settings, i, &name, text) == 0; i++)
		if (request_is(request, number, name))
			return 1;
	return 0;
}

static void set_parameters(struct request *request)
{
	unsigned events = events_get();

	if (request->count % 2 == 1) {
		request_syntax_error(request);
		return;
	}
	for (size_t i = 2; i < request->count; i += 2) {
		const struct resp_arg *name = &request->arg[i];
		if (!is_parameter(request, i)) {
			reply_error(request->conn, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
			    (int)name->size, name->data);
			return;
		}
		if (!request_is(request, i, "NOTIFY-KEYSPACE-EVENTS")) {
			reply_error(request->conn,
			    "ERR CONFIG SET failed (possibly related to argument '%.*s') - can't set immutable config: it is an "
			    "option of the command line",
			    (int)name->size, name->data);
			return;
		}
		if (events_read(request->arg[i + 1].data, request->arg[i + 1].size, &events) != 0) {
			reply_error(request->conn,
			    "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event "
			    "class character. Use 'Ag$lshzxeKEtmdn'.");
			return;
		}
	}
	events_set(events);
	reply_ok(request->conn);
}

void command_config(struct request *request)
{
	if (request_is(request, 1, "GET"))
		get_parameters(request);
	else if (request_is(request, 1, "SET"))
		set_parameters(request);
	else if (request_is(request, 1, "RESETSTAT"))
		forget_counts(request);
	else if (request_is(request, 1, "REWRITE"))
		reply_error(request->conn, "ERR The server is running without a config file");
	else
		request_help(request);
}

/* ---- Time, saving, ending */

void command_time(struct request *request)
{
	struct timespec now;
	char text[24];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	if (server_of(request)->settings->is_virtual) {
		int64_t ms = data_wall_ms(request->data);
		now = (struct timespec){ms / 1000, ms % 1000 * 1000000};
	}
	reply_array(request->conn, 2);
	reply_bulk(request->conn, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)now.tv_sec));
	reply_bulk(request->conn, text, (size_t)snprintf(text, sizeof text, "%ld", now.tv_nsec / 1000));
}

static void save(struct request *request, int wait)
{
	int error = data_save(request->data, wait);

	if (error == WW_OK && wait)
		reply_ok(request->conn);
	else if (error == WW_OK)
		reply_text(request->conn, "+Background saving started\r\n");
	else if (error == WW_EBUSY)
		reply_error(request->conn, "ERR Background save already in progress");
	else if (error == WW_ENOTFOUND)
		reply_error(request->conn, "ERR there is no folder to save to: start the server with --data DIR");
	else
		reply_error(request->conn, "ERR %s", ww_strerror(error));
}

void command_save(struct request *request)
{
	save(request, 1);
}

void command_bgsave(struct request *request)
{
	if (request->count > 2 || (request->count == 2 && !request_is(request, 1, "SCHEDULE")))
		request_syntax_error(request);
	else
		save(request, 0);
}

void command_lastsave(struct request *request)
{
	int64_t last = server_of(request)->started_ms / 1000;

	(void)data_saving(request->data, &last);
	reply_integer(request->conn, last);
}

enum { SHUTDOWN_SAVE = 1, SHUTDOWN_NOSAVE = 2, SHUTDOWN_NOW = 4, SHUTDOWN_FORCE = 8, SHUTDOWN_ABORT = 16 };

/* Return the flags of these words, or 0 if they contradict each other or one is unknown. */
static unsigned read_shutdown(const struct request *request)
{
	static const char *const words[] = {"SAVE", "NOSAVE", "NOW", "FORCE", "ABORT"};
	unsigned given = 0;

	for (size_t i = 1; i < request->count; i++) {
		unsigned word = 0;
		for (size_t n = 0; n < sizeof words / sizeof *words; n++)
			word |= (unsigned)request_is(request, i, words[n]) << n;
		if (!word)
			return 0;
		given |= word;
	}
	if ((given & SHUTDOWN_SAVE && given & SHUTDOWN_NOSAVE) || (given & SHUTDOWN_ABORT && given != SHUTDOWN_ABORT))
		return 0;
	return given;
}

/* SAVE and NOSAVE change nothing: the journal has all that was acknowledged. */
void command_shutdown(struct request *request)
{
	unsigned given = read_shutdown(request);

	if (request->count > 1 && !given)
		request_syntax_error(request);
	else if (given == SHUTDOWN_ABORT)
		reply_error(request->conn, "ERR No shutdown in progress.");
	else
		mail_stop(server_of(request));
}

void command_step(struct request *request)
{
	int64_t ms;

	if (request_whole(request, 1, &ms) != 0)
		return;
	if (ms < 0 || (uint64_t)ms > DATA_LAST / WW_MILLISECOND ||
	    data_advance(request->data, (uint64_t)ms * WW_MILLISECOND) != WW_OK)
		reply_error(request->conn, "ERR ADVANCE needs --clock virtual and milliseconds that it can go");
	else
		reply_ok(request->conn);
}
