#ifndef TOOLS_WEEKWHEEL_SESSIOND_SCRIPT_SCRIPT_H
#define TOOLS_WEEKWHEEL_SESSIOND_SCRIPT_SCRIPT_H

/*
 * EVAL and its kin: a script is a transaction whose commands come from Lua.
 *
 *     eval.c ---> cache.c    the texts, by their digests
 *        \------> run.c ---> common/sandbox ---> call.c ---> commands/ ---> data/
 *                 stripes,   Lua, bounded        redis.call
 *                 undo.c                         convert.c
 */

struct loop;

/* Add the commands to the table, before clients come. */
void script_start(void);
/* Forget the scripts. */
void script_stop(void);
/* Free what a loop has of Lua. */
void script_leave(struct loop *loop);

#endif
