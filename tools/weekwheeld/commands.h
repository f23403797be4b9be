#ifndef TOOLS_WEEKWHEELD_COMMANDS_H
#define TOOLS_WEEKWHEELD_COMMANDS_H

/* What commands.c, stats.c, list.c and metrics.c offer: carry out a command, and tell numbers. */

#include "tools/weekwheeld/server.h"

/* Carry out a command, or refuse it, and answer. */
void command_run(struct connection *connection, const struct command *command);

/* ---- stats.c: commands that tell about the server, tubes and jobs */

void stats_server(struct connection *connection, const struct command *command);
void stats_job(struct connection *connection, const struct command *command);
void stats_tube(struct connection *connection, const struct command *command);
void stats_list_tubes(struct connection *connection, const struct command *command);
void stats_list_watched(struct connection *connection, const struct command *command);

/* Return the job that a command names by its id or its key. Without either, id and key_length are 0. */
struct ww_job_ref command_job(const struct connection *connection, const struct command *command);

/*
 * Fill *stats, with zeros if the tube has no jobs. Returns WW_OK if a client uses or watches the tube or it has jobs,
 * otherwise WW_ENOTFOUND or another WW_E*.
 */
int stats_of(struct server *server, const char *name, struct ww_tube_stats *stats);

/* ---- kick.c */

/* Kick jobs of the used tube, and answer when that is done. */
void kick_begin(struct connection *connection, const struct command *command);

/* ---- list.c: lists and forecasts in JSON */

/* Write jobs as lines of JSON, and a line {"next":ID} if there may be more. Returns 0 or a WW_E*. */
int list_jobs(struct server *server, const struct command *command, struct buffer *out);
int list_forecast(struct server *server, const struct command *command, struct buffer *out);

/* ---- metrics.c: numbers for Prometheus */

/* Write what the server and its store count in the text format of Prometheus. Returns 0 or a WW_E*. */
int metrics_write(struct server *server, struct buffer *out);

#endif
