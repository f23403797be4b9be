#ifndef TOOLS_WEEKWHEELD_VERBS_VERBS_H
#define TOOLS_WEEKWHEELD_VERBS_VERBS_H

/* The verbs of the protocol: the steps of each, in files by subject, and the table of all. */

#include "tools/weekwheeld/clients/call.h"

/* table.c: for each verb */
extern const struct steps *const verbs_table[VERBS];

/* put.c */
extern const struct steps verb_put, verb_move, verb_delete_key;

/* What a command says of the job that it puts, but for its tube. It points into the command. */
void put_spec(struct ww_job_spec *spec, const struct command *command);

/* look.c */
extern const struct steps verb_peek, verb_peek_next, verb_list;

/* reserve.c */
extern const struct steps verb_reserve, verb_reserve_job;

/* end.c */
extern const struct steps verb_delete, verb_delete_job, verb_release, verb_touch;

/* Take the token of the lease that the client has of the command's job, or had. */
int end_prepare(struct call *call);

/* kick.c */
extern const struct steps verb_kick, verb_kick_job;

/* tubes.c */
extern const struct steps verb_use, verb_list_used, verb_watch, verb_ignore, verb_pause;

/* stats.c */
extern const struct steps verb_list_tubes, verb_list_watched, verb_stats, verb_stats_job, verb_stats_tube;

/* Find out about the command's tube, which exists if it has jobs, or a client uses or watches it. */
int stats_tube_prepare(struct call *call);
void stats_tube_run(struct call *call);

/* limits.c */
extern const struct steps verb_limit, verb_list_limits;

/* history.c */
extern const struct steps verb_report, verb_history;

/* schedule.c */
extern const struct steps verb_put_schedule, verb_change_schedule, verb_run_schedule, verb_list_schedules;

/* ---- job.c: what those that name a job have in common */

/* A job must be named, by its id or its key. */
int job_prepare(struct call *call);

/* A client names a job by an id that may be a schedule's: then it does not exist for it. Any thread. */
int job_is_schedule(struct call *call);

/* The store says of a job that cannot be had that it is in use, or that its id is invalid: then it is not found. */
int job_result(int error);

#endif
