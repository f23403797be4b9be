#ifndef TOOLS_COMMON_OPTIONS_H
#define TOOLS_COMMON_OPTIONS_H

/*
 * The options of a subcommand, from a table that is also their help. --name VALUE and --name=VALUE are the same,
 * options and operands can be mixed, and "--" ends the options.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option {
	int id;               /* what options_next returns for it, 1 or more */
	char letter;          /* for the short form, or 0 */
	const char *name;     /* without the dashes */
	const char *argument; /* what to call its value, or NULL if it takes none */
	const char *help;     /* lines separated by \n */
};

struct options {
	const char *command; /* for messages: "weekwheel replay" */
	const struct option *table;
	size_t count;
	char **arguments;    /* that are still to be read, ended by NULL */
	const char *cluster; /* letters that are still to be read of "-abc" */
	int operands_only;
	const char *value; /* of the option or the operand that options_next returned */
};

enum { OPTIONS_END = 0, OPTIONS_OPERAND = -1, OPTIONS_ERROR = -2 };

/* Return the id of the next option, OPTIONS_OPERAND, OPTIONS_END, or OPTIONS_ERROR after a message with a hint. */
int options_next(struct options *options);

/* Say what is wrong with the value of an option and return OPTIONS_ERROR. */
int options_bad_value(const struct options *options, const char *name, const char *expected);

/* Store the whole number that text is in *number and return 0, or return -1 if it is none from least to most. */
int options_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* Write the table as help. */
void options_help(FILE *out, const struct option *table, size_t count);

#endif
