/* Refuses commands: see refuse.h. */
#include "tools/weekwheel-sessiond/commands/refuse.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/commands/request.h"
#include "tools/weekwheel-sessiond/commands/rights.h"
#include "tools/weekwheel-sessiond/commands/transaction.h"

/* Commands of Redis 7 that this server does not have. */
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
		if (command_is_word(name, absent[i]))
			return 1;
	return 0;
}

void refuse_unknown(struct conn *conn, const struct resp_arg *arg, size_t count)
{
	char text[256] = "";
	size_t size = 0;
	int length = arg[0].size > 128 ? 128 : (int)arg[0].size;

	/* A web page can make its reader's browser send any body to this port: run nothing that follows. */
	if (command_is_word(&arg[0], "post") || command_is_word(&arg[0], "host:")) {
		conn_fail(conn);
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

/* Answer if the command does not have this word, or not with this many arguments. Returns 0 if it is right. */
static int refuse_word(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	const struct command_word *word = command_word(command, arg, count);
	char name[32];
	size_t size = strlen(command->name);

	if (word && command_has_arity(word->arity, count))
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

enum { REFUSAL = 256, WORDS_MOST = 1024 };

/* Nobody needs many words besides keys, channels and values, and some take long to parse. */
static int has_too_many_words(const struct command_entry *command, size_t count)
{
	return count > WORDS_MOST && !command->first && strcmp(command->group, "pubsub") != 0;
}

enum { KEYS_LONG = 4096, KEYS_FEW = 3 };

/* Few short keys take little time, however many hear of them. */
static int may_take_long(const struct command_entry *command, const struct resp_arg *arg, size_t count)
{
	size_t names = command->flags & COMMAND_WRITE ? command_names(command, count) : 0;
	size_t bytes = 0;

	if (names > KEYS_FEW)
		return 1;
	for (size_t i = 0; i < names; i++)
		bytes += arg[(size_t)command->first + i * (size_t)command->step].size;
	return bytes > KEYS_LONG;
}

/* Return why the command is refused now, which may be in `text`, or NULL. */
static const char *find_refusal(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg,
    size_t count, char text[REFUSAL])
{
	const struct command_word *word;
	const char *why;
	struct events_weight weight = {0};

	if (!command_has_arity(command->arity, count)) {
		(void)snprintf(text, REFUSAL, "ERR wrong number of arguments for '%s' command", command->name);
		return text;
	}
	if (has_too_many_words(command, count))
		return "ERR too many arguments";
	if (command_weight(command, count) > REQUEST_NAMES)
		return "ERR more than 100000 keys or channels in a command, or 33333 to set or subscribe: use several commands";
	if (!conn->auth.is_known && !(command->flags & COMMAND_NO_AUTH))
		return "NOAUTH Authentication required.";
	if ((why = rights_refuse(conn, command, arg, count)))
		return why;
	if (conn->queue && command->flags & COMMAND_NO_MULTI)
		return "ERR Command not allowed inside a transaction";
	if (command->flags & COMMAND_WRITE && (why = data_refuses(conn->loop->server->data, !command_adds(command))))
		return why;
	/* EXEC weighs a transaction as a whole. */
	if (!conn->queue && may_take_long(command, arg, count) &&
	    events_take_long(&weight, conn->database, command, arg, count))
		return "ERR " EVENTS_LONG;
	if (!conn_listens(conn) || conn->protocol != 2 || command->flags & COMMAND_PUBSUB)
		return NULL;
	word = command_word(command, arg, count);
	(void)snprintf(text, REFUSAL,
	    "ERR Can't execute '%s%s%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
	    "context",
	    command->name, word ? "|" : "", word ? word->name : "");
	return text;
}

int refuse_command(struct conn *conn, const struct command_entry *command, const struct resp_arg *arg, size_t count)
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
	/* EXEC cannot be retried: drop the transaction. */
	why += strncmp(why, plain, sizeof plain - 1) == 0 ? sizeof plain - 1 : 0;
	reply_error(conn, "EXECABORT Transaction discarded because of: %s", why);
	transaction_leave(conn);
	return 1;
}
