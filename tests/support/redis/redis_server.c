/* Starts, freezes and ends real Redis servers and clusters for the tests. */
/* For nftw. */
#include "tests/support/redis/redis_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 60 * 100 }; /* times 10 ms */

/* The running servers, which end with the process. */
static struct redis_server *running[2 * REDIS_SERVERS_MAX];
static pid_t owner;

static void rest(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

int redis_server_is_there(void)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin");
	char name[512];
	char *rest_of;
	int is_there = 0;

	for (char *folder = strtok_r(path, ":", &rest_of); folder && !is_there;
	     folder = strtok_r(NULL, ":", &rest_of)) {
		(void)snprintf(name, sizeof name, "%s/redis-server", folder);
		is_there = access(name, X_OK) == 0;
	}
	free(path);
	if (!is_there)
		printf("skipped: there is no redis-server: Debian has it in the package redis-server\n");
	return is_there;
}

/* ---- One server */

static void end_all(void)
{
	/* A child that a test forked has no servers of its own. */
	if (getpid() != owner)
		return;
	for (size_t i = 0; i < sizeof running / sizeof *running; i++) {
		if (running[i])
			redis_server_stop(running[i]);
	}
}

static void remember(struct redis_server *server)
{
	size_t at = 0;

	if (owner != getpid()) {
		memset(running, 0, sizeof running);
		owner = getpid();
		ck_assert_int_eq(atexit(end_all), 0);
	}
	while (at < sizeof running / sizeof *running && running[at])
		at++;
	ck_assert_uint_lt(at, sizeof running / sizeof *running);
	running[at] = server;
}

static void forget(const struct redis_server *server)
{
	for (size_t i = 0; i < sizeof running / sizeof *running; i++) {
		if (running[i] == server)
			running[i] = NULL;
	}
}

/*
 * Below the ports that connections get, and kept by a socket of UDP while this program runs: else a test beside this one
 * could take it before the server does, or while it is being restarted.
 */
static int free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (;;) {
		int keeper = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		uint16_t port;
		int is_free;

		ck_assert_int_ge(keeper, 0);
		ck_assert_int_ge(probe, 0);
		ck_assert_int_eq(getrandom(&port, sizeof port, 0), sizeof port);
		port = (uint16_t)(10240 + port % (32768 - 10240));
		address.sin_port = htons(port);
		is_free = bind(keeper, (struct sockaddr *)&address, sizeof address) == 0 &&
		          bind(probe, (struct sockaddr *)&address, sizeof address) == 0;
		(void)close(probe);
		if (is_free)
			return port;
		(void)close(keeper);
	}
}

static void become(const struct redis_server *server, pid_t parent)
{
	char port[16], bus[16], log[96], path[96];
	const char *argv[32 + REDIS_OPTIONS_MAX] = {"redis-server", "--port", port, "--bind", "127.0.0.1", "--dir",
	    server->folder, "--save", "", "--logfile", log, "--unixsocket", path, "--cluster-port", bus,
	    "--enable-debug-command", "yes", "--repl-diskless-sync-delay", "0"};
	size_t count = 19;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	(void)snprintf(port, sizeof port, "%d", server->port);
	(void)snprintf(bus, sizeof bus, "%d", server->bus);
	(void)snprintf(log, sizeof log, "%s/log", server->folder);
	(void)snprintf(path, sizeof path, "%s/socket", server->folder);
	for (size_t i = 0; server->options[i]; i++)
		argv[count++] = server->options[i];
	argv[count] = NULL;
	(void)execvp("redis-server", (char *const *)(uintptr_t)argv);
	_exit(127);
}

/* Whether it answers a PING at all. Another server may have got its port, but never its socket. */
static int answers(const struct redis_server *server)
{
	char path[96];
	redisContext *context;
	redisReply *reply = NULL;
	int is_answer;

	(void)snprintf(path, sizeof path, "%s/socket", server->folder);
	context = redisConnectUnixWithTimeout(path, (struct timeval){.tv_sec = 5});
	if (context && !context->err)
		reply = redisCommand(context, "PING");
	is_answer = reply && (reply->type == REDIS_REPLY_STATUS || strncmp(reply->str, "NOAUTH", 6) == 0);
	if (reply)
		freeReplyObject(reply);
	if (context)
		redisFree(context);
	return is_answer;
}

/* Returns 0 if it ended before it answered. */
static int run(struct redis_server *server)
{
	pid_t parent = getpid();

	(void)fflush(NULL);
	server->pid = fork();
	ck_assert_int_ge(server->pid, 0);
	if (server->pid == 0)
		become(server, parent);
	for (int i = 0; !answers(server); i++) {
		if (waitpid(server->pid, NULL, WNOHANG) != 0) {
			server->pid = 0;
			return 0;
		}
		ck_assert_int_lt(i, PATIENCE);
		rest();
	}
	return 1;
}

void redis_server_restart(struct redis_server *server)
{
	ck_assert_msg(run(server), "redis-server ended at once: see %s/log", server->folder);
}

void redis_server_start(struct redis_server *server, const char *const *options)
{
	size_t count = 0;

	memset(server, 0, sizeof *server);
	while (options && options[count]) {
		ck_assert_uint_lt(count, REDIS_OPTIONS_MAX - 1);
		server->options[count] = options[count];
		count++;
	}
	(void)snprintf(server->folder, sizeof server->folder, "/tmp/weekwheel-redis-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(server->folder));
	remember(server);
	/* The free port may be taken by now. */
	for (int i = 0; i < 5; i++) {
		server->port = free_port();
		server->bus = free_port();
		if (run(server))
			return;
	}
	ck_abort_msg("redis-server ends at once: see %s/log", server->folder);
}

void redis_server_kill(struct redis_server *server)
{
	if (server->pid <= 0)
		return;
	(void)kill(server->pid, SIGKILL);
	(void)waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

void redis_server_freeze(struct redis_server *server)
{
	int status;

	ck_assert_int_eq(kill(server->pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(server->pid, &status, WUNTRACED), server->pid);
}

void redis_server_thaw(struct redis_server *server)
{
	ck_assert_int_eq(kill(server->pid, SIGCONT), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
	(void)status;
	(void)type;
	(void)place;
	return remove(path);
}

void redis_server_stop(struct redis_server *server)
{
	redis_server_kill(server);
	forget(server);
	if (server->folder[0])
		(void)nftw(server->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	server->folder[0] = '\0';
}

void redis_server_url(const struct redis_server *server, char *url, size_t size)
{
	(void)snprintf(url, size, "redis://127.0.0.1:%d", server->port);
}

int redis_server_begin(struct redis_server *server, char *url, size_t size)
{
	if (!redis_server_is_there())
		return 0;
	redis_server_start(server, NULL);
	redis_server_url(server, url, size);
	return 1;
}

/* ---- Commands to a server */

static redisReply *ask(const struct redis_server *server, const char *format, va_list values)
{
	redisContext *context = redisConnect("127.0.0.1", server->port);
	redisReply *reply;
	char command[512];

	ck_assert_ptr_nonnull(context);
	ck_assert_msg(!context->err, "%s", context->errstr);
	/* Words without spaces: hiredis then splits the written text. */
	(void)vsnprintf(command, sizeof command, format, values);
	reply = redisCommand(context, command);
	ck_assert_msg(reply != NULL, "%s: %s", command, context->errstr);
	ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "%s: %s", command, reply->str);
	redisFree(context);
	return reply;
}

redisReply *redis_server_ask(const struct redis_server *server, const char *format, ...)
{
	va_list values;
	redisReply *reply;

	va_start(values, format);
	reply = ask(server, format, values);
	va_end(values);
	return reply;
}

void redis_server_tell(const struct redis_server *server, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	freeReplyObject(ask(server, format, values));
	va_end(values);
}

long long redis_server_number(const struct redis_server *server, const char *format, ...)
{
	va_list values;
	redisReply *reply;
	long long number;

	va_start(values, format);
	reply = ask(server, format, values);
	va_end(values);
	ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
	number = reply->integer;
	freeReplyObject(reply);
	return number;
}

static int has_words(const struct redis_server *server, const char *command, const char *words)
{
	redisReply *reply = redis_server_ask(server, "%s", command);
	int has = strstr(reply->str, words) != NULL;

	freeReplyObject(reply);
	return has;
}

static void wait_words(const struct redis_server *server, const char *command, const char *words)
{
	for (int i = 0; !has_words(server, command, words); i++) {
		ck_assert_msg(i < PATIENCE, "%s never has %s", command, words);
		rest();
	}
}

void redis_server_wait_info(const struct redis_server *server, const char *section, const char *words)
{
	char command[64];

	(void)snprintf(command, sizeof command, "INFO %s", section);
	wait_words(server, command, words);
}

static unsigned long long number_in(const struct redis_server *server, const char *command, const char *name)
{
	redisReply *reply = redis_server_ask(server, "%s", command);
	const char *at = strstr(reply->str, name);
	unsigned long long number;

	ck_assert_msg(at != NULL, "%s has no %s", command, name);
	number = strtoull(at + strlen(name), NULL, 10);
	freeReplyObject(reply);
	return number;
}

void redis_server_wait_replica(const struct redis_server *primary, const struct redis_server *replica)
{
	unsigned long long written = number_in(primary, "INFO replication", "master_repl_offset:");

	for (int i = 0; number_in(replica, "INFO replication", "slave_repl_offset:") < written; i++) {
		ck_assert_int_lt(i, PATIENCE);
		rest();
	}
}

/* ---- A cluster */

static int first_slot(const struct redis_cluster *cluster, int at)
{
	return 16384 * at / cluster->primaries;
}

int redis_cluster_owner(const struct redis_cluster *cluster, unsigned slot)
{
	redisReply *ranges = redis_server_ask(&cluster->servers[0], "CLUSTER SLOTS");
	long long port = 0;
	int at = 0;

	for (size_t i = 0; i < ranges->elements; i++) {
		redisReply *const *range = ranges->element[i]->element;
		if (slot >= (unsigned)range[0]->integer && slot <= (unsigned)range[1]->integer)
			port = range[2]->element[1]->integer;
	}
	freeReplyObject(ranges);
	while (at < cluster->count && cluster->servers[at].port != port)
		at++;
	ck_assert_msg(at < cluster->count, "nobody has the slot %u", slot);
	return at;
}

static void id_of(const struct redis_server *server, char id[48])
{
	redisReply *reply = redis_server_ask(server, "CLUSTER MYID");

	(void)snprintf(id, 48, "%s", reply->str);
	freeReplyObject(reply);
}

static void meet(struct redis_cluster *cluster)
{
	char known[64];

	for (int i = 0; i < cluster->count; i++)
		redis_server_tell(&cluster->servers[i], "CLUSTER SET-CONFIG-EPOCH %d", i + 1);
	for (int i = 1; i < cluster->count; i++)
		redis_server_tell(&cluster->servers[0], "CLUSTER MEET 127.0.0.1 %d %d", cluster->servers[i].port,
		    cluster->servers[i].bus);
	(void)snprintf(known, sizeof known, "cluster_known_nodes:%d", cluster->count);
	for (int i = 0; i < cluster->count; i++)
		wait_words(&cluster->servers[i], "CLUSTER INFO", known);
}

static void share_out(struct redis_cluster *cluster)
{
	for (int i = 0; i < cluster->primaries; i++)
		redis_server_tell(&cluster->servers[i], "CLUSTER ADDSLOTSRANGE %d %d", first_slot(cluster, i),
		    first_slot(cluster, i + 1) - 1);
	for (int i = cluster->primaries; i < cluster->count; i++) {
		char id[48];
		id_of(&cluster->servers[i % cluster->primaries], id);
		/* It must have heard that this one is there. */
		wait_words(&cluster->servers[i], "CLUSTER NODES", id);
		redis_server_tell(&cluster->servers[i], "CLUSTER REPLICATE %s", id);
	}
	for (int i = 0; i < cluster->count; i++) {
		wait_words(&cluster->servers[i], "CLUSTER INFO", "cluster_state:ok");
		wait_words(&cluster->servers[i], "CLUSTER INFO", "cluster_slots_ok:16384");
		if (i >= cluster->primaries)
			redis_server_wait_info(&cluster->servers[i], "replication", "master_link_status:up");
	}
}

void redis_cluster_start(struct redis_cluster *cluster, int primaries, int replicas, const char *const *options)
{
	const char *all[REDIS_OPTIONS_MAX] = {"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"};
	size_t count = 4;

	for (size_t i = 0; options && options[i]; i++) {
		ck_assert_uint_lt(count, REDIS_OPTIONS_MAX - 1);
		all[count++] = options[i];
	}
	cluster->is_ready = 0;
	cluster->primaries = primaries;
	cluster->count = primaries * (1 + replicas);
	ck_assert_int_le(cluster->count, REDIS_SERVERS_MAX);
	for (int i = 0; i < cluster->count; i++)
		redis_server_start(&cluster->servers[i], all);
	meet(cluster);
	share_out(cluster);
	cluster->is_ready = 1;
}

void redis_cluster_share(struct redis_cluster *cluster, int primaries)
{
	if (cluster->is_ready || !redis_server_is_there())
		return;
	/* Clean up after a failed start. */
	redis_cluster_stop(cluster);
	redis_cluster_start(cluster, primaries, 0, NULL);
}

void redis_cluster_stop(struct redis_cluster *cluster)
{
	cluster->is_ready = 0;
	for (int i = 0; i < cluster->count; i++)
		redis_server_stop(&cluster->servers[i]);
}

#define EPOCH "cluster_current_epoch:"

/*
 * Wait until all know the newest epoch. Two moves in faster succession get colliding epochs, and a slot may then end
 * with two nodes that each name the other.
 */
static void agree(const struct redis_cluster *cluster)
{
	char newest[64];
	unsigned long long highest = 0;

	for (int i = 0; i < cluster->primaries; i++) {
		unsigned long long epoch = number_in(&cluster->servers[i], "CLUSTER INFO", EPOCH);
		highest = epoch > highest ? epoch : highest;
	}
	(void)snprintf(newest, sizeof newest, EPOCH "%llu\r", highest);
	for (int i = 0; i < cluster->primaries; i++)
		wait_words(&cluster->servers[i], "CLUSTER INFO", newest);
}

/* A slot that is being moved stays where it is. */
static void settle_slots(const struct redis_server *server)
{
	redisReply *nodes = redis_server_ask(server, "CLUSTER NODES");

	/* A node's own line has [93->-id] for a slot that leaves, and [93-<-id] for one that comes. */
	for (const char *at = strchr(nodes->str, '['); at; at = strchr(at + 1, '['))
		redis_server_tell(server, "CLUSTER SETSLOT %lu STABLE", strtoul(at + 1, NULL, 10));
	freeReplyObject(nodes);
}

void redis_cluster_empty(struct redis_cluster *cluster)
{
	for (int i = 0; i < cluster->primaries; i++) {
		settle_slots(&cluster->servers[i]);
		redis_server_tell(&cluster->servers[i], "FLUSHALL");
		redis_server_tell(&cluster->servers[i], "SCRIPT FLUSH");
	}
	for (int i = 0; i < cluster->primaries; i++)
		wait_words(&cluster->servers[i], "CLUSTER INFO", "cluster_state:ok");
	agree(cluster);
}

void redis_cluster_move_begin(struct redis_cluster *cluster, unsigned slot, int from, int to)
{
	char id[48];

	id_of(&cluster->servers[from], id);
	redis_server_tell(&cluster->servers[to], "CLUSTER SETSLOT %u IMPORTING %s", slot, id);
	id_of(&cluster->servers[to], id);
	redis_server_tell(&cluster->servers[from], "CLUSTER SETSLOT %u MIGRATING %s", slot, id);
}

void redis_cluster_move_end(struct redis_cluster *cluster, unsigned slot, int from, int to)
{
	redisReply *keys = redis_server_ask(&cluster->servers[from], "CLUSTER GETKEYSINSLOT %u 10000", slot);
	char id[48];

	for (size_t i = 0; i < keys->elements; i++)
		redis_server_tell(&cluster->servers[from], "MIGRATE 127.0.0.1 %d %s 0 5000", cluster->servers[to].port,
		    keys->element[i]->str);
	freeReplyObject(keys);
	id_of(&cluster->servers[to], id);
	redis_server_tell(&cluster->servers[to], "CLUSTER SETSLOT %u NODE %s", slot, id);
	agree(cluster);
	for (int i = 0; i < cluster->primaries; i++) {
		if (i != to)
			redis_server_tell(&cluster->servers[i], "CLUSTER SETSLOT %u NODE %s", slot, id);
	}
}
