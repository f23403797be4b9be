#ifndef LIB_CALLBACK_TEXT_H
#define LIB_CALLBACK_TEXT_H

/* The rules for a request's method, URL and headers, for reading and for writing one. */

#include <stddef.h>

#include "weekwheel/callback.h"

/* Bytes of a text, without a NUL at the end. */
struct text_span {
	const char *data;
	size_t size;
};

/* Parts of a valid URL. */
struct callback_url {
	struct text_span scheme;
	struct text_span host;      /* an IPv6 address without its brackets */
	struct text_span authority; /* host, and port if there is one */
	unsigned port;              /* also if the URL has none */
};

/* Each returns NULL, or a phrase that says what is wrong. */
const char *ww_callback_text_method(struct text_span method);
const char *ww_callback_text_url(struct text_span url, struct callback_url *parts);
const char *ww_callback_text_header(const struct ww_callback_header *header);

/* Whether the text is that word, ignoring case. */
int ww_callback_text_is(struct text_span text, const char *word);
/* Whether a redirection to another host takes this header of a job along. */
int ww_callback_text_is_plain(struct text_span name);

static inline int text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline int text_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

#endif
