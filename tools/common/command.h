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

/* arguments: those after the subcommand, ended by NULL. */
int command_replay(char **arguments);
void command_replay_help(FILE *out);
int command_put(char **arguments);
void command_put_help(FILE *out);
int command_move(char **arguments);
void command_move_help(FILE *out);
int command_cancel(char **arguments);
void command_cancel_help(FILE *out);
int command_list(char **arguments);
void command_list_help(FILE *out);
int command_peek(char **arguments);
void command_peek_help(FILE *out);
int command_kick(char **arguments);
void command_kick_help(FILE *out);
int command_stats(char **arguments);
void command_stats_help(FILE *out);
int command_forecast(char **arguments);
void command_forecast_help(FILE *out);
int command_work(char **arguments);
void command_work_help(FILE *out);
int command_top(char **arguments);
void command_top_help(FILE *out);
int command_advance(char **arguments);
void command_advance_help(FILE *out);
/* These open stores of jobs themselves: there are none where LMDB was not found. */
int command_fsck(char **arguments);
void command_fsck_help(FILE *out);
int command_export(char **arguments);
void command_export_help(FILE *out);
int command_import(char **arguments);
void command_import_help(FILE *out);

/*
 * Write out what is buffered for standard output and return `status`, or STATUS_FAILED after a message if that failed
 * now or before and `status` was STATUS_OK. A reader that closes the pipe early is no error.
 */
int command_finish_output(int status);

/* Remember the first reason (an errno, or 0) why a write to standard output failed. A later flush may not know it. */
void command_output_failed(int reason);

#endif
