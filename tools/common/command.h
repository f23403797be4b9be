#ifndef TOOLS_COMMON_COMMAND_H
#define TOOLS_COMMON_COMMAND_H

/* The exit status of a program, and the end of its standard output. */

enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1,   /* a file, a line or the output had a problem */
	STATUS_USAGE = 2,    /* the command line had one */
	STATUS_DIFFERENT = 3 /* the wheel did not do what it promises */
};

/*
 * Write out what is buffered for standard output and return `status`, or STATUS_FAILED after a message if that failed
 * now or before and `status` was STATUS_OK. A reader that closes the pipe early is no error.
 */
int command_finish_output(int status);

/* Remember the first reason (an errno, or 0) why a write to standard output failed. A later flush may not know it. */
void command_output_failed(int reason);

#endif
