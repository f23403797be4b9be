#ifndef TOOLS_WEEKWHEELD_SCHEDULES_H
#define TOOLS_WEEKWHEELD_SCHEDULES_H

/* Schedules, where the server is built with their library. */

#include "tools/weekwheeld/server.h"

struct call;

/* Begin to work at what is due. Returns 0, or -1 after a message. */
int schedules_start(struct server *server);
/* After the tasks have ended. */
void schedules_stop(struct server *server);

/* Some may be due. In the loop; the store may be locked. */
void schedules_ready(struct server *server);

/* In each turn of a store in this process: work at what is due. */
void schedules_turn(struct server *server);

struct ww_schedule;
struct ww_schedule_info;

/* All of them; NULL: the server has none. */
struct ww_schedule *schedules_all(struct server *server);

/* Call fn with up to ten of its next times, and how many seconds its zone's clocks are ahead of UTC then. */
void schedules_times(
    const struct ww_schedule_info *info, void (*fn)(uint64_t time, int32_t offset, void *context), void *context);

int schedules_numbers(struct server *server, struct buffer *out, number_fn *add);

/* The steps of their verbs. */
int schedules_put_prepare(struct call *call);
void schedules_put_run(struct call *call);
void schedules_put_answer(struct call *call);
int schedules_run_prepare(struct call *call);
void schedules_change_run(struct call *call);
void schedules_change_answer(struct call *call);
void schedules_list_run(struct call *call);
void schedules_list_answer(struct call *call);

/* Write schedules as lines of JSON, and a line {"next":N} if there may be more. Returns 0 or a WW_E*. */
int schedules_list(struct server *server, const struct command *command, struct buffer *out);

#endif
