#ifndef LIB_CALLBACK_TEXT_H
#define LIB_CALLBACK_TEXT_H

/* What may stand in a request: shared by reading and writing it. */

#include <stddef.h>

#include "weekwheel/callback.h"

/* Bytes of a text; not ended by NUL. */
struct span {
	const char *data;
	size_t size;
};

/* Parts of a URL that is allowed. */
struct callback_url {
	struct span scheme;
	struct span host;      /* an IPv6 address without its brackets */
	struct span authority; /* host, and port if there is one */
	unsigned port;         /* that is meant, also if it is not said */
};

/* Each answers NULL, or a phrase that says what is wrong. */
const char *ww_callback_text_method(struct span method);
const char *ww_callback_text_url(struct span url, struct callback_url *parts);
const char *ww_callback_text_header(const struct ww_callback_header *header);

/* Whether it is that word, in capitals or not. */
int ww_callback_text_is(struct span text, const char *word);
/* Whether another host may get this header of a job. */
int ww_callback_text_is_plain(struct span name);

static inline int text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline int text_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#endif
