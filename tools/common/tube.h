#ifndef TOOLS_COMMON_TUBE_H
#define TOOLS_COMMON_TUBE_H

/* Names of tubes, as beanstalkd's protocol has them. */

#include <string.h>

#include "weekwheel/jobs.h"

#define TUBE_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

/* A name becomes part of a command: anything else could end that and begin another. Return 1 if it is one. */
static inline int tube_is_name(const char *name, size_t length)
{
	if (length == 0 || length > WW_TUBE_MAX || *name == '-')
		return 0;
	for (size_t i = 0; i < length; i++)
		if (!memchr(TUBE_BYTES, name[i], sizeof TUBE_BYTES - 1))
			return 0;
	return 1;
}

/* Return 1 if the text is a list of patterns that a token's line may have, of tubes or of keys. */
static inline int tube_are_patterns(const char *at)
{
	for (;; at++) {
		size_t length = strspn(at, TUBE_BYTES ":@*");

		if (length == 0 || length > WW_TUBE_MAX || (at[length] && at[length] != ','))
			return 0;
		at += length;
		if (!*at)
			return 1;
	}
}

#endif
