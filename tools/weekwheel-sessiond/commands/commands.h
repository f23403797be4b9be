#ifndef TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMANDS_H
#define TOOLS_WEEKWHEEL_SESSIOND_COMMANDS_COMMANDS_H

/*
 * All commands. A function gets the client's command, with the number of arguments checked. If the table says that the
 * command writes, or that it has several keys, their stripes are held.
 */

#include "tools/weekwheel-sessiond/commands/request.h"

/* The version of Redis that clients are shown when they ask what the server can do. */
#define REDIS_VERSION "7.0.15"

/* Before all else. */
void commands_start(void);
/* Carry out a command, or queue it for EXEC. */
void command_carry_out(struct conn *conn, const struct resp_arg *arg, size_t count);
/* Whether it is about one key, and does not copy its value within the server. */
int command_is_short(const struct command_entry *command);

command_fn command_get, command_set, command_setex, command_setnx, command_getex, command_getdel, command_getset,
    command_mget, command_mset, command_msetnx, command_append, command_strlen, command_incr, command_incrby,
    command_decrby, command_delex, command_delifeq;
command_fn command_expire, command_ttl, command_persist;
command_fn command_del, command_exists, command_touch, command_type, command_rename, command_renamenx, command_scan,
    command_keys, command_dbsize, command_randomkey, command_flushdb, command_flushall;
command_fn command_multi, command_exec, command_discard, command_watch, command_unwatch;
command_fn command_subscribe, command_unsubscribe, command_publish, command_pubsub;
command_fn command_ping, command_echo, command_quit, command_hello, command_auth, command_select, command_reset,
    command_client, command_command, command_info, command_config, command_time, command_save, command_bgsave,
    command_lastsave, command_shutdown, command_step;

#endif
