#ifndef TOOLS_WEEKWHEELD_ENGINE_SCHEDULES_H
#define TOOLS_WEEKWHEELD_ENGINE_SCHEDULES_H

/* The clock of schedules, where the server is built with their library. */

#include "tools/weekwheeld/engine/server.h"

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
struct ww_schedule_spec;

/* All of them; NULL: the server has none. */
struct ww_schedule *schedules_all(struct server *server);

/*
 * ww_schedule_put has refused it, and neither for its expression nor for its zone. Return what is wrong, and whether it is the
 * name.
 */
const char *schedules_refusal(const struct ww_schedule_spec *schedule, int *is_name);

/* Call fn with up to ten of its next times, and how many seconds its zone's clocks are ahead of UTC then. */
void schedules_times(
    const struct ww_schedule_info *info, void (*fn)(uint64_t time, int32_t offset, void *context), void *context);

int schedules_numbers(struct server *server, struct buffer *out, number_fn *add);

#endif
