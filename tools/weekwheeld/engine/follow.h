#ifndef TOOLS_WEEKWHEELD_ENGINE_FOLLOW_H
#define TOOLS_WEEKWHEELD_ENGINE_FOLLOW_H

/*
 * The follow-ups of a job that a client puts. Nobody asks for rights, and nobody can be told what is wrong, when they are put.
 * So all that is asked of a put is asked of them at once.
 */

#include <stddef.h>

struct server;
struct token;
struct ww_job_spec;

enum follow_answer {
	FOLLOW_YES,
	FOLLOW_SHARED, /* jobs of a shared store have none */
	FOLLOW_DENIED, /* the token does not grant a put into the tube of one */
	FOLLOW_BAD     /* what does not suit a follow-up, or its tube */
};

enum { FOLLOW_WHY = 300 };

/* Whether a client with this token, or NULL where none is used, may put the job with what follows it. If not, say why. */
enum follow_answer follow_check(
    struct server *server, const struct token *token, const struct ww_job_spec *job, char why[FOLLOW_WHY]);

#endif
