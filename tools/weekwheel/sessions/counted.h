#ifndef TOOLS_WEEKWHEEL_SESSIONS_COUNTED_H
#define TOOLS_WEEKWHEEL_SESSIONS_COUNTED_H

/*
 * What a server has counted itself, asked for over HTTP: weekwheel-expirer of the keys of a Redis, or weekwheel-sessiond.
 * The forecasts and the sum may be of two counts, so a session that ends between them may be left out.
 */

#include "tools/common/survey.h"
#include "tools/weekwheel/jobs/client.h"

/*
 * Ask the client's server, to which it is connected, and fill the survey, whose `largest_most` is set. token: "" for none.
 * Return 0, or -1 after a message.
 */
int counted_ask(struct client *client, const char *token, struct survey *survey);

/* What a weekwheel-expirer knows of a key. */
struct counted_key {
	char how[16];      /* "": it does not keep the key. "sure", "unsure", "asked" or "unknown" */
	char deadline[40]; /* by Redis's clock; "": unknown */
	char left[32];     /* seconds */
	char node[300];
	int is_exact; /* it keeps each key with a deadline */
};

/* Ask about a key, as above. */
int counted_ask_key(struct client *client, const char *token, const char *key, struct counted_key *known);

#endif
