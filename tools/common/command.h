#ifndef TOOLS_COMMON_COMMAND_H
#define TOOLS_COMMON_COMMAND_H

/* The subcommands. Each returns the exit status of the program. */

#include <stdio.h>

enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,   /* a file, a line or the output had a problem */
	STATUS_USAGE = 2,    /* the command line had one */
	STATUS_DIFFERENT = 3 /* the wheel did not do what it promises */
};

/* arguments: those after the subcommand, ended by NULL. With --help it shows its help. */
int command_replay(char **arguments);
int command_put(char **arguments);
int command_move(char **arguments);
int command_cancel(char **arguments);
int command_list(char **arguments);
int command_peek(char **arguments);
int command_kick(char **arguments);
int command_stats(char **arguments);
int command_forecast(char **arguments);
int command_work(char **arguments);
int command_top(char **arguments);
int command_advance(char **arguments);
/* These open stores of jobs themselves: there are none where LMDB was not found. */
int command_fsck(char **arguments);
int command_export(char **arguments);
int command_import(char **arguments);

/*
 * Write out what is buffered for standard output and return `status`, or STATUS_FAILED after a message if that failed
 * now or before and `status` was STATUS_OK. A reader that closes the pipe early is no error.
 */
int command_finish_output(int status);

/* Remember why a write to standard output failed (an errno, or 0), for whoever has seen it before it is flushed. */
void command_output_failed(int reason);

#endif
