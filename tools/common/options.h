#ifndef TOOLS_COMMON_OPTIONS_H
#define TOOLS_COMMON_OPTIONS_H

/*
 * Parses the options of a subcommand by a table, which also makes their help. --name VALUE and --name=VALUE are the same,
 * options and operands can be mixed, and "--" ends the options. An option with a value is refused the second time, unless it
 * repeats: of two values one would silently not count.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option {
	int id;               /* that options_next returns, 1 or more */
	char letter;          /* of the short form, or 0 */
	const char *name;     /* without the dashes */
	const char *argument; /* the name of its value, or NULL if it takes none */
	const char *help;     /* lines separated by \n */
};

struct options {
	const char *command; /* for messages: "weekwheel replay" */
	const struct option *table;
	size_t count;
	char **arguments;    /* still unread, ended by NULL */
	const char *cluster; /* the unread letters of "-abc" */
	int operands_only;
	const char *value; /* of the option that options_next returned, or the operand */
	uint64_t given;    /* a bit for each option with a value that was given */
	const char *const
	    *hints; /* names that no option has, each followed by what to write instead, ended by NULL; or NULL */
	const int *repeats; /* the ids of options that may be given several times, ended by 0; NULL: none */
};

enum { OPTIONS_END = 0, OPTIONS_OPERAND = -1, OPTIONS_ERROR = -2 };

/* Return the id of the next option, OPTIONS_OPERAND, OPTIONS_END, or OPTIONS_ERROR after a message with a hint. */
int options_next(struct options *options);

/* Say what is wrong with the command line, and how to get help. Return OPTIONS_ERROR. */
int options_fail(const struct options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Say what is wrong with the value of an option, in the same way. */
int options_bad_value(const struct options *options, const char *name, const char *expected);

/* Store the whole number that the text is. Return 0, or -1 if it is no number from least to most. */
int options_whole(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* The same with K, M, G or T behind it, which are powers of 1024. */
int options_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *number);

/* Write the table as help. */
void options_help(FILE *out, const struct option *table, size_t count);

#endif
