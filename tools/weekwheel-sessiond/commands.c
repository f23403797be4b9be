/* The table of commands, and carrying one out. */
#include "tools/weekwheel-sessiond/commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/weekwheel-sessiond/transaction.h"

enum {
	W = COMMAND_WRITE,
	R = COMMAND_READONLY,
	M = COMMAND_DENYOOM,
	F = COMMAND_FAST,
	ALL = COMMAND_ALL,
	NOAUTH = COMMAND_NO_AUTH,
	SUB = COMMAND_PUBSUB,
	ONCE = COMMAND_AT_ONCE,
	ADMIN = COMMAND_ADMIN,
	NOMULTI = COMMAND_NO_MULTI,
	WORDS = COMMAND_SUBCOMMANDS,
	L = COMMAND_LOADING | COMMAND_STALE
};

/* clang-format off */
static const struct command_entry table[] = {
    {"get", 2, R | F, 1, 1, 1, command_get, "string", "Returns the value of a key."},
    {"set", -3, W | M, 1, 1, 1, command_set, "string", "Sets the value of a key, and how long it lives."},
    {"setex", 4, W | M, 1, 1, 1, command_setex, "string", "Sets the value of a key that lives for so many seconds."},
    {"psetex", 4, W | M, 1, 1, 1, command_psetex, "string", "Sets the value of a key that lives for so many milliseconds."},
    {"setnx", 3, W | M | F, 1, 1, 1, command_setnx, "string", "Sets the value of a key that is not there."},
    {"getex", -2, W | F, 1, 1, 1, command_getex, "string", "Returns the value of a key, and lets it live for another time."},
    {"getdel", 2, W | F, 1, 1, 1, command_getdel, "string", "Returns the value of a key, and deletes it."},
    {"getset", 3, W | M | F, 1, 1, 1, command_getset, "string", "Sets the value of a key, and returns the former one."},
    {"mget", -2, R | F, 1, -1, 1, command_mget, "string", "Returns the values of keys."},
    {"mset", -3, W | M, 1, -1, 2, command_mset, "string", "Sets the values of keys."},
    {"msetnx", -3, W | M, 1, -1, 2, command_msetnx, "string", "Sets the values of keys if none of them is there."},
    {"append", 3, W | M | F, 1, 1, 1, command_append, "string", "Adds bytes to the end of a value."},
    {"strlen", 2, R | F, 1, 1, 1, command_strlen, "string", "Returns how many bytes a value has."},
    {"incr", 2, W | M | F, 1, 1, 1, command_incr, "string", "Adds one to a number."},
    {"decr", 2, W | M | F, 1, 1, 1, command_decr, "string", "Takes one from a number."},
    {"incrby", 3, W | M | F, 1, 1, 1, command_incrby, "string", "Adds to a number."},
    {"decrby", 3, W | M | F, 1, 1, 1, command_decrby, "string", "Takes from a number."},
    {"del", -2, W, 1, -1, 1, command_del, "generic", "Deletes keys."},
    {"unlink", -2, W | F, 1, -1, 1, command_del, "generic", "Deletes keys."},
    {"exists", -2, R | F, 1, -1, 1, command_exists, "generic", "Returns how many of the keys are there."},
    {"touch", -2, R | F, 1, -1, 1, command_touch, "generic", "Returns how many of the keys are there, which counts as a use."},
    {"type", 2, R | F, 1, 1, 1, command_type, "generic", "Returns string, or none."},
    {"rename", 3, W, 1, 2, 1, command_rename, "generic", "Gives a key another name."},
    {"renamenx", 3, W | F, 1, 2, 1, command_renamenx, "generic", "Gives a key another name that is not there."},
    {"persist", 2, W | F, 1, 1, 1, command_persist, "generic", "Takes the deadline of a key away."},
    {"expire", -3, W | F, 1, 1, 1, command_expire, "generic", "Lets a key expire in so many seconds."},
    {"pexpire", -3, W | F, 1, 1, 1, command_pexpire, "generic", "Lets a key expire in so many milliseconds."},
    {"expireat", -3, W | F, 1, 1, 1, command_expireat, "generic", "Lets a key expire at a Unix time."},
    {"pexpireat", -3, W | F, 1, 1, 1, command_pexpireat, "generic", "Lets a key expire at a Unix time in milliseconds."},
    {"ttl", 2, R | F, 1, 1, 1, command_ttl, "generic", "Returns the seconds that a key has left."},
    {"pttl", 2, R | F, 1, 1, 1, command_pttl, "generic", "Returns the milliseconds that a key has left."},
    {"expiretime", 2, R | F, 1, 1, 1, command_expiretime, "generic", "Returns the Unix time at which a key expires."},
    {"pexpiretime", 2, R | F, 1, 1, 1, command_pexpiretime, "generic", "Returns the Unix time in milliseconds at which a key expires."},
    {"scan", -2, R, 0, 0, 0, command_scan, "generic", "Returns some keys, and where to go on."},
    {"keys", 2, R, 0, 0, 0, command_keys, "generic", "Returns all keys that match a pattern."},
    {"dbsize", 1, R | F, 0, 0, 0, command_dbsize, "server", "Returns how many keys there are."},
    {"randomkey", 1, R, 0, 0, 0, command_randomkey, "generic", "Returns a key."},
    {"flushdb", -1, W | ALL, 0, 0, 0, command_flushdb, "server", "Deletes all keys of the database."},
    {"flushall", -1, W | ALL, 0, 0, 0, command_flushall, "server", "Deletes all keys."},
    {"multi", 1, F | L | ONCE, 0, 0, 0, command_multi, "transactions", "Begins a transaction."},
    {"exec", 1, ONCE | L, 0, 0, 0, command_exec, "transactions", "Carries out a transaction."},
    {"discard", 1, F | L | ONCE, 0, 0, 0, command_discard, "transactions", "Drops a transaction."},
    {"watch", -2, F | L | ONCE, 1, -1, 1, command_watch, "transactions", "Lets EXEC fail if the keys change."},
    {"unwatch", 1, F | L, 0, 0, 0, command_unwatch, "transactions", "Forgets the keys of WATCH."},
    {"subscribe", -2, SUB | L, 0, 0, 0, command_subscribe, "pubsub", "Hears the messages of channels."},
    {"unsubscribe", -1, SUB | L, 0, 0, 0, command_unsubscribe, "pubsub", "Hears the channels no more."},
    {"psubscribe", -2, SUB | L, 0, 0, 0, command_psubscribe, "pubsub", "Hears the channels that match patterns."},
    {"punsubscribe", -1, SUB | L, 0, 0, 0, command_punsubscribe, "pubsub", "Hears the patterns no more."},
    {"ssubscribe", -2, SUB | L, 1, -1, 1, command_ssubscribe, "pubsub", "Hears the messages of shard channels."},
    {"sunsubscribe", -1, SUB | L, 1, -1, 1, command_sunsubscribe, "pubsub", "Hears the shard channels no more."},
    {"publish", 3, F | L, 0, 0, 0, command_publish, "pubsub", "Sends a message to a channel."},
    {"spublish", 3, F | L, 1, 1, 1, command_spublish, "pubsub", "Sends a message to a shard channel."},
    {"pubsub", -2, L | WORDS, 0, 0, 0, command_pubsub, "pubsub", "Returns channels and their listeners."},
    {"ping", -1, F | SUB, 0, 0, 0, command_ping, "connection", "Answers PONG."},
    {"echo", 2, F, 0, 0, 0, command_echo, "connection", "Answers its argument."},
    {"quit", -1, F | L | NOAUTH | SUB | ONCE, 0, 0, 0, command_quit, "connection", "Closes the connection."},
    {"hello", -1, F | L | NOAUTH, 0, 0, 0, command_hello, "connection", "Chooses RESP2 or RESP3, and logs in."},
    {"auth", -2, F | L | NOAUTH, 0, 0, 0, command_auth, "connection", "Logs in."},
    {"select", 2, F | L, 0, 0, 0, command_select, "connection", "Chooses a database."},
    {"reset", 1, F | L | NOAUTH | SUB | ONCE, 0, 0, 0, command_reset, "connection", "Makes the connection as new."},
    {"client", -2, L | WORDS, 0, 0, 0, command_client, "connection", "Tells and changes what is known of clients."},
    {"command", -1, L | WORDS, 0, 0, 0, command_command, "server", "Returns the commands that there are."},
    {"info", -1, L, 0, 0, 0, command_info, "server", "Returns numbers of the server."},
    {"config", -2, L | ADMIN | WORDS, 0, 0, 0, command_config, "server", "Returns and sets parameters."},
    {"time", 1, F | L, 0, 0, 0, command_time, "server", "Returns the Unix time."},
    {"save", 1, ADMIN | NOMULTI, 0, 0, 0, command_save, "server", "Writes all sessions to disk anew."},
    {"bgsave", -1, ADMIN, 0, 0, 0, command_bgsave, "server", "Begins to write all sessions to disk anew."},
    {"lastsave", 1, F | L, 0, 0, 0, command_lastsave, "server", "Returns when all sessions were written last."},
    {"shutdown", -1, ADMIN | L | NOMULTI, 0, 0, 0, command_shutdown, "server", "Ends the server."},
    {"advance", 2, ADMIN | NOMULTI, 0, 0, 0, command_step, "server", "Moves a virtual clock by milliseconds."},
};
/* clang-format on */

enum { COMMANDS = sizeof table / sizeof *table };

const struct command_entry *command_at(size_t number)
{
	return number < COMMANDS ? &table[number] : NULL;
}

/* Twice as many places as commands. The search for a name begins at the name's own place. */
enum { PLACES = 256 };

static uint8_t places[PLACES]; /* 1 + the number of a command, or 0 */

static unsigned place_of(const char *name, size_t size)
{
	unsigned place = (unsigned)size;

	for (size_t i = 0; i < size; i++)
		place = place * 31 + ((unsigned char)name[i] | 0x20);
	return place % PLACES;
}

void commands_start(void)
{
	_Static_assert(COMMANDS < PLACES / 2, "the places have room");
	for (unsigned i = 0; i < COMMANDS; i++) {
		unsigned place = place_of(table[i].name, strlen(table[i].name));
		while (places[place])
			place = (place + 1) % PLACES;
		places[place] = (uint8_t)(i + 1);
	}
}

const struct command_entry *command_find(const struct resp_arg *name)
{
	const struct command_entry *found;

	if (name->size > 32)
		return NULL;
	for (unsigned place = place_of(name->data, name->size); places[place]; place = (place + 1) % PLACES) {
		found = &table[places[place] - 1];
		if (request_is_word(name, found->name))
			return found;
	}
	return NULL;
}

void command_stripes(
    const struct command_entry *command, const struct resp_arg *arg, size_t count, struct data_stripes *stripes)
{
	size_t last;

	if (command->flags & COMMAND_ALL)
		data_stripes_all(stripes);
	if (command->first == 0)
		return;
	last = command->last < 0 ? count + (size_t)(ptrdiff_t)command->last : (size_t)command->last;
	for (size_t i = (size_t)command->first; i <= last && i < count; i += (size_t)command->step)
		data_stripes_add(stripes, arg[i].data, arg[i].size);
}

void command_call(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct request request = {conn, conn->loop->server->data, arg, count};

	atomic_store_explicit(&conn->last, command, memory_order_relaxed);
	atomic_fetch_add_explicit(&conn->loop->commands, 1, memory_order_relaxed);
	command->run(&request);
}

/* Look at one key. */
static void run_reader(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct data *data = conn->loop->server->data;
	size_t before = conn->out.size;
	struct data_reading reading;

	do {
		conn->out.size = before;
		data_read_begin(data, arg[1].data, arg[1].size, &reading);
		command_call(conn, command, arg, count);
	} while (data_read_end(data, &reading) && !conn->is_dead);
}

/* With the stripes that it needs. */
static void run_locked(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	struct data *data = conn->loop->server->data;
	struct data_stripes stripes = {0};

	if (command->first && command->first == command->last) {
		if (command->flags & COMMAND_WRITE) {
			unsigned stripe = data_lock_key(data, arg[1].data, arg[1].size);
			command_call(conn, command, arg, count);
			data_unlock_key(data, stripe);
		} else if (command->flags & COMMAND_READONLY) {
			run_reader(conn, command, arg, count);
		} else {
			command_call(conn, command, arg, count);
		}
		return;
	}
	if (!command->first && !(command->flags & COMMAND_ALL)) {
		command_call(conn, command, arg, count);
		return;
	}
	command_stripes(command, arg, count, &stripes);
	data_lock(data, &stripes);
	data_begin(data);
	command_call(conn, command, arg, count);
	data_commit(data);
	data_unlock(data, &stripes);
}

/* ---- Words behind a command's name, each with an arity of its own */

static const struct command_word {
	const char *command;
	const char *name;
	int arity;
} words[] = {
    {"client", "getname", 2},
    {"client", "getredir", 2},
    {"client", "help", 2},
    {"client", "id", 2},
    {"client", "info", 2},
    {"client", "kill", -3},
    {"client", "list", -2},
    {"client", "no-evict", 3},
    {"client", "no-touch", 3},
    {"client", "reply", 3},
    {"client", "setinfo", 4},
    {"client", "setname", 3},
    {"command", "count", 2},
    {"command", "docs", -2},
    {"command", "getkeys", -4},
    {"command", "help", 2},
    {"command", "info", -2},
    {"command", "list", -2},
    {"config", "get", -3},
    {"config", "help", 2},
    {"config", "resetstat", 2},
    {"config", "rewrite", 2},
    {"config", "set", -4},
    {"pubsub", "channels", -2},
    {"pubsub", "help", 2},
    {"pubsub", "numpat", 2},
    {"pubsub", "numsub", -2},
    {"pubsub", "shardchannels", -2},
    {"pubsub", "shardnumsub", -2},
};

enum { WORDS_ALL = sizeof words / sizeof *words };

static int has_arity(int arity, size_t count)
{
	return arity > 0 ? count == (size_t)arity : count >= (size_t)-arity;
}

/* The word behind the command's name; NULL: it has none, or that is not one of its words. */
static const struct command_word *find_word(
    const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	for (size_t i = 0; command->flags & COMMAND_SUBCOMMANDS && count > 1 && i < WORDS_ALL; i++)
		if (strcmp(words[i].command, command->name) == 0 && request_is_word(&arg[1], words[i].name))
			return &words[i];
	return NULL;
}

int command_has_word(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	return !(command->flags & COMMAND_SUBCOMMANDS) || find_word(command, arg, count);
}

/* Answer if the word is none of the command, or has too few or many behind it. Returns 0 if it is right. */
static int refuse_word(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	const struct command_word *word = find_word(command, arg, count);
	char name[32];
	size_t size = strlen(command->name);

	if (word && has_arity(word->arity, count))
		return 0;
	if (word) {
		reply_error(conn, "ERR wrong number of arguments for '%s|%s' command", command->name, word->name);
		return 1;
	}
	for (size_t i = 0; i <= size; i++)
		name[i] = (char)toupper((unsigned char)command->name[i]);
	reply_error(conn, "ERR unknown subcommand '%.*s'. Try %s HELP.", (int)(arg[1].size > 128 ? 128 : arg[1].size),
	    arg[1].data, name);
	return 1;
}

void request_help(struct request *request)
{
	const struct command_entry *command = command_find(&request->arg[0]);
	size_t count = 0;

	for (size_t i = 0; i < WORDS_ALL; i++)
		count += strcmp(words[i].command, command->name) == 0;
	reply_array(request->conn, count);
	for (size_t i = 0; i < WORDS_ALL; i++)
		if (strcmp(words[i].command, command->name) == 0)
			reply_format(
			    request->conn, "%s %s%s", command->name, words[i].name, words[i].arity == 2 ? "" : " ...");
}

/* ---- What is refused */

/* What Redis 7 has, and this server has not. */
static const char *const absent[] = {"acl", "asking", "bgrewriteaof", "bitcount", "bitfield", "bitfield_ro", "bitop",
    "bitpos", "blmove", "blmpop", "blpop", "brpop", "brpoplpush", "bzmpop", "bzpopmax", "bzpopmin", "cluster", "copy",
    "debug", "dump", "eval", "eval_ro", "evalsha", "evalsha_ro", "failover", "fcall", "fcall_ro", "function", "geoadd",
    "geodist", "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro",
    "geosearch", "geosearchstore", "getbit", "getrange", "hdel", "hexists", "hget", "hgetall", "hincrby",
    "hincrbyfloat", "hkeys", "hlen", "hmget", "hmset", "hrandfield", "hscan", "hset", "hsetnx", "hstrlen", "hvals",
    "incrbyfloat", "latency", "lcs", "lindex", "linsert", "llen", "lmove", "lmpop", "lolwut", "lpop", "lpos", "lpush",
    "lpushx", "lrange", "lrem", "lset", "ltrim", "memory", "migrate", "module", "monitor", "move", "object", "pfadd",
    "pfcount", "pfdebug", "pfmerge", "pfselftest", "psync", "readonly", "readwrite", "replconf", "replicaof", "restore",
    "restore-asking", "role", "rpop", "rpoplpush", "rpush", "rpushx", "sadd", "scard", "script", "sdiff", "sdiffstore",
    "setbit", "setrange", "sinter", "sintercard", "sinterstore", "sismember", "slaveof", "slowlog", "smembers",
    "smismember", "smove", "sort", "sort_ro", "spop", "srandmember", "srem", "sscan", "substr", "sunion", "sunionstore",
    "swapdb", "sync", "wait", "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xgroup", "xinfo", "xlen", "xpending",
    "xrange", "xread", "xreadgroup", "xrevrange", "xsetid", "xtrim", "zadd", "zcard", "zcount", "zdiff", "zdiffstore",
    "zincrby", "zinter", "zintercard", "zinterstore", "zlexcount", "zmpop", "zmscore", "zpopmax", "zpopmin",
    "zrandmember", "zrange", "zrangebylex", "zrangebyscore", "zrangestore", "zrank", "zrem", "zremrangebylex",
    "zremrangebyrank", "zremrangebyscore", "zrevrange", "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan",
    "zscore", "zunion", "zunionstore"};

static int is_absent(const struct resp_arg *name)
{
	for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
		if (request_is_word(name, absent[i]))
			return 1;
	return 0;
}

int command_is_short(const struct command_entry *command)
{
	return command->first == 1 && command->last == 1 && command->run != command_append;
}

static void refuse_unknown(struct conn *conn, const struct resp_arg *arg, size_t count)
{
	char text[256] = "";
	size_t size = 0;
	int length = arg[0].size > 128 ? 128 : (int)arg[0].size;

	/* A web page can make its reader's browser send any body to this port: nothing behind it may be carried out. */
	if (request_is_word(&arg[0], "post") || request_is_word(&arg[0], "host:")) {
		conn->is_dead = 1;
		return;
	}
	if (is_absent(&arg[0])) {
		reply_error(conn,
		    "ERR unknown command '%.*s': weekwheel-sessiond keeps strings with deadlines and has not all of Redis; "
		    "see DIFFERENCES in its manual",
		    length, arg[0].data);
		return;
	}
	for (size_t i = 1; i < count && size < 128; i++)
		size += (size_t)snprintf(text + size, sizeof text - size, "'%.*s' ",
		    (int)(arg[i].size < 128 - size ? arg[i].size : 128 - size), arg[i].data);
	reply_error(conn, "ERR unknown command '%.*s', with args beginning with: %s", length, arg[0].data, text);
}

enum { REFUSAL = 256 };

/* Return why the command is refused now, which may be in `text`, or NULL. */
static const char *find_refusal(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg,
    size_t count, char text[REFUSAL])
{
	const struct command_word *word = find_word(command, arg, count);
	const char *why;

	if (!has_arity(command->arity, count)) {
		(void)snprintf(text, REFUSAL, "ERR wrong number of arguments for '%s' command", command->name);
		return text;
	}
	if (!conn->is_known && !(command->flags & COMMAND_NO_AUTH))
		return "NOAUTH Authentication required.";
	if ((why = auth_refuses(conn, command, arg, count)))
		return why;
	if (conn->queue && command->flags & COMMAND_NO_MULTI)
		return "ERR Command not allowed inside a transaction";
	if (command->flags & COMMAND_WRITE && (why = data_refuses(conn->loop->server->data)))
		return why;
	if (!conn->subscriptions || conn->protocol != 2 || command->flags & COMMAND_PUBSUB)
		return NULL;
	(void)snprintf(text, REFUSAL,
	    "ERR Can't execute '%s%s%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
	    "context",
	    command->name, word ? "|" : "", word ? word->name : "");
	return text;
}

/* Answer why the command is refused now. Returns 0 if it is not. */
static int refuse(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	static const char plain[] = "ERR ";
	char text[REFUSAL];
	const char *why;

	if (command->flags & COMMAND_SUBCOMMANDS && count > 1 && refuse_word(conn, command, arg, count)) {
		transaction_spoil(conn);
		return 1;
	}
	why = find_refusal(conn, command, arg, count, text);
	if (!why)
		return 0;
	if (command->run != command_exec) {
		reply_error(conn, "%s", why);
		transaction_spoil(conn);
		return 1;
	}
	/* There is nothing that EXEC would be said again for. */
	why += strncmp(why, plain, sizeof plain - 1) == 0 ? sizeof plain - 1 : 0;
	reply_error(conn, "EXECABORT Transaction discarded because of: %s", why);
	transaction_leave(conn);
	return 1;
}

void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count)
{
	const struct command_entry *command = command_find(&arg[0]);

	if (!command) {
		refuse_unknown(conn, arg, count);
		transaction_spoil(conn);
	} else if (refuse(conn, command, arg, count)) {
		return;
	} else if (conn->queue && !(command->flags & COMMAND_AT_ONCE)) {
		transaction_queue(conn, command, arg, count);
	} else {
		run_locked(conn, command, arg, count);
	}
}

/* ---- What the files of commands share */

int request_is_word(const struct resp_arg *arg, const char *word)
{
	/* A client's word may have a NUL where this one ends, and be longer. */
	return strncasecmp(arg->data, word, arg->size) == 0 && strlen(word) == arg->size;
}

int request_is(const struct request *request, size_t number, const char *word)
{
	return request_is_word(&request->arg[number], word);
}

int request_whole(struct request *request, size_t number, int64_t *value)
{
	if (resp_whole(request->arg[number].data, request->arg[number].size, value) == 0)
		return 0;
	reply_error(request->conn, "ERR value is not an integer or out of range");
	return -1;
}

void request_syntax_error(struct request *request)
{
	reply_error(request->conn, "ERR syntax error");
}

int request_failed(struct request *request, int error)
{
	if (error == WW_OK)
		return 0;
	if (error == WW_ENOMEM || error == WW_ETOOBIG)
		reply_error(request->conn, "OOM command not allowed when used memory > 'maxmemory'.");
	else if (error == WW_EINVAL)
		reply_error(request->conn, "ERR a key has at most 65535 bytes");
	else
		reply_error(request->conn, "ERR %s", ww_strerror(error));
	return 1;
}
