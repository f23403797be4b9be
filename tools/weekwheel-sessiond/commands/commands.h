#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMANDS_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMANDS_H

/*
 * All commands. A function gets the client's command, with the number of arguments checked. If the table says that the
 * command writes, or that it has several keys, their stripes are held.
 */

#include "tools/weekwheel-sessiond/commands/request.h"

/* What this server says it is, for clients that ask what Redis can do. */
#define REDIS_VERSION "7.0.15"

/* Before all else. */
void commands_start(void);
/* Carry out a command, or queue it for EXEC. */
void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count);
/* Whether it is about one key, and does not copy its value within the server. */
int command_is_short(const struct command_entry *command);

#define COMMAND(name) void command_##name(struct request *request)

COMMAND(get);
COMMAND(set);
COMMAND(setex);
COMMAND(psetex);
COMMAND(setnx);
COMMAND(getex);
COMMAND(getdel);
COMMAND(getset);
COMMAND(mget);
COMMAND(mset);
COMMAND(msetnx);
COMMAND(append);
COMMAND(strlen);
COMMAND(incr);
COMMAND(decr);
COMMAND(incrby);
COMMAND(decrby);

COMMAND(expire);
COMMAND(pexpire);
COMMAND(expireat);
COMMAND(pexpireat);
COMMAND(ttl);
COMMAND(pttl);
COMMAND(expiretime);
COMMAND(pexpiretime);
COMMAND(persist);

COMMAND(del);
COMMAND(exists);
COMMAND(touch);
COMMAND(type);
COMMAND(rename);
COMMAND(renamenx);
COMMAND(scan);
COMMAND(keys);
COMMAND(dbsize);
COMMAND(randomkey);
COMMAND(flushdb);
COMMAND(flushall);

COMMAND(multi);
COMMAND(exec);
COMMAND(discard);
COMMAND(watch);
COMMAND(unwatch);

COMMAND(subscribe);
COMMAND(unsubscribe);
COMMAND(psubscribe);
COMMAND(punsubscribe);
COMMAND(ssubscribe);
COMMAND(sunsubscribe);
COMMAND(publish);
COMMAND(spublish);
COMMAND(pubsub);

COMMAND(ping);
COMMAND(echo);
COMMAND(quit);
COMMAND(hello);
COMMAND(auth);
COMMAND(select);
COMMAND(reset);
COMMAND(client);
COMMAND(command);
COMMAND(info);
COMMAND(config);
COMMAND(time);
COMMAND(save);
COMMAND(bgsave);
COMMAND(lastsave);
COMMAND(shutdown);
COMMAND(step);

#endif
