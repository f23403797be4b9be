/* Checks the follow-ups of a job when that is put. */
#include "tools/weekwheeld/engine/follow.h"

#include <stdio.h>
#include <string.h>

#include "tools/weekwheeld/engine/server.h"
#include "tools/weekwheeld/protocol/words.h"

static enum follow_answer check_one(
    struct server *server, const struct token *token, const struct ww_job_spec *job, char why[FOLLOW_WHY])
{
	const struct span name = {job->tube, job->tube + strlen(job->tube)};
	char tube[WW_TUBE_MAX + 1];

	if (words_tube(name, tube) != 0) {
		snprintf(why, FOLLOW_WHY,
		    "its tube must be 1 to 200 of A-Z a-z 0-9 - + / ; . $ _ ( ), and no - at its beginning");
		return FOLLOW_BAD;
	}
	if (token && !token_may(token, RIGHT_PUT, tube)) {
		snprintf(why, FOLLOW_WHY, "the token does not grant 'put' in the tube %s", tube);
		return FOLLOW_DENIED;
	}
	if (push_refuses(server, tube, job)) {
		snprintf(why, FOLLOW_WHY, "jobs of the tube %s are pushed, and it is not a request", tube);
		return FOLLOW_BAD;
	}
	return FOLLOW_YES;
}

enum follow_answer follow_check(
    struct server *server, const struct token *token, const struct ww_job_spec *job, char why[FOLLOW_WHY])
{
	struct ww_job_spec next = *job;
	enum follow_answer answer = FOLLOW_YES;

	if (server->is_shared && job->then_length) {
		snprintf(why, FOLLOW_WHY, "jobs in Redis have no follow-ups");
		return FOLLOW_SHARED;
	}
	for (int i = 0; answer == FOLLOW_YES && i < WW_JOB_CHAIN && next.then_length; i++) {
		if (next.period) {
			snprintf(why, FOLLOW_WHY, "a job with \"every\" has no end that it could follow");
			return FOLLOW_BAD;
		}
		if (ww_job_then_read(&next, next.then, next.then_length) != WW_OK)
			return FOLLOW_BAD;
		answer = check_one(server, token, &next, why);
	}
	return answer;
}
