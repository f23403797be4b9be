/* What each verb needs: which right, and in which tube. */
#include "tools/weekwheeld/engine/auth.h"

/* Where the right is needed. */
enum where {
	OPEN,    /* no token is needed */
	NOWHERE, /* any token will do */
	SOMEWHERE,
	USED,    /* in the tube that the client uses */
	WATCHED, /* in all tubes that it watches */
	NAMED,   /* in the tube that the command names, or without a name in all tubes */
	OF_JOB,  /* in the tube of the job; for a job that the client has reserved, the right to work was enough */
	LISTED,  /* OF_JOB if the command has an id, otherwise NAMED */
	EVERYWHERE
};

static const struct {
	unsigned rights; /* one of these */
	enum where where;
} needs[VERBS] = {
    [VERB_UNKNOWN] = {0, OPEN},
    [VERB_PUT] = {RIGHT_PUT, USED},
    [VERB_PEEK] = {RIGHT_READ, OF_JOB},
    [VERB_PEEK_READY] = {RIGHT_READ, USED},
    [VERB_PEEK_DELAYED] = {RIGHT_READ, USED},
    [VERB_PEEK_BURIED] = {RIGHT_READ, USED},
    [VERB_RESERVE] = {RIGHT_WORK, WATCHED},
    [VERB_RESERVE_TIMEOUT] = {RIGHT_WORK, WATCHED},
    [VERB_DELETE] = {RIGHT_WORK, OF_JOB},
    [VERB_RELEASE] = {RIGHT_WORK, OF_JOB},
    [VERB_USE] = {0, NOWHERE},
    [VERB_WATCH] = {0, NOWHERE},
    [VERB_IGNORE] = {0, NOWHERE},
    [VERB_BURY] = {RIGHT_WORK, OF_JOB},
    [VERB_KICK] = {RIGHT_WORK, USED},
    [VERB_TOUCH] = {RIGHT_WORK, OF_JOB},
    [VERB_STATS] = {RIGHT_READ, SOMEWHERE},
    [VERB_STATS_JOB] = {RIGHT_READ, OF_JOB},
    [VERB_STATS_TUBE] = {RIGHT_READ, NAMED},
    [VERB_LIST_TUBES] = {RIGHT_READ, EVERYWHERE},
    [VERB_LIST_TUBE_USED] = {0, NOWHERE},
    [VERB_LIST_TUBES_WATCHED] = {0, NOWHERE},
    [VERB_PAUSE_TUBE] = {RIGHT_ADMIN, NAMED},
    [VERB_RESERVE_JOB] = {RIGHT_WORK, OF_JOB},
    [VERB_KICK_JOB] = {RIGHT_WORK, OF_JOB},
    [VERB_QUIT] = {0, OPEN},
    [VERB_PUT_KEY] = {RIGHT_PUT, USED},
    [VERB_PUT_AT] = {RIGHT_PUT, USED},
    [VERB_MOVE] = {RIGHT_WORK, OF_JOB},
    [VERB_MOVE_KEY] = {RIGHT_PUT | RIGHT_WORK, USED},
    [VERB_DELETE_KEY] = {RIGHT_PUT | RIGHT_WORK, USED},
    [VERB_RELEASE_JOB] = {RIGHT_WORK, OF_JOB},
    [VERB_BURY_JOB] = {RIGHT_WORK, OF_JOB},
    [VERB_DELETE_JOB] = {RIGHT_WORK, OF_JOB},
    [VERB_PEEK_KEY] = {RIGHT_READ, USED},
    [VERB_STATS_KEY] = {RIGHT_READ, USED},
    [VERB_LIST_DELAYED] = {RIGHT_READ, LISTED},
    [VERB_FORECAST] = {RIGHT_READ, NAMED},
    [VERB_ADVANCE] = {RIGHT_ADMIN, EVERYWHERE},
    [VERB_AUTH] = {0, OPEN},
    [VERB_LIMIT_TUBE] = {RIGHT_ADMIN, NAMED},
    [VERB_LIST_LIMITS] = {RIGHT_READ, NAMED},
    [VERB_PUT_SCHEDULE] = {RIGHT_PUT, USED},
    [VERB_DELETE_SCHEDULE] = {RIGHT_PUT, USED},
    [VERB_PAUSE_SCHEDULE] = {RIGHT_PUT, USED},
    [VERB_RESUME_SCHEDULE] = {RIGHT_PUT, USED},
    [VERB_RUN_SCHEDULE] = {RIGHT_PUT, USED},
    [VERB_LIST_SCHEDULES] = {RIGHT_READ, NAMED},
    [VERB_REPORT] = {RIGHT_WORK, OF_JOB},
    [VERB_HISTORY] = {RIGHT_READ, NAMED},
    [VERB_HEADERS] = {0, NOWHERE},
    [VERB_CODE] = {0, NOWHERE},
};

/* Waiting for jobs of several tubes needs the right in each of them. */
static int in_watched(const struct rights_case *about, unsigned rights)
{
	for (size_t i = 0; i < about->watched_count; i++)
		if (!token_may(about->token, rights, about->watched[i]))
			return 0;
	return 1;
}

static const char *named(const struct command *command)
{
	return command->verb < VERB_OWN || *command->tube ? command->tube : NULL;
}

enum rights_answer rights_of(const struct rights_case *about, unsigned *rights)
{
	const struct command *command = about->command;
	enum where where = needs[command->verb].where;

	*rights = needs[command->verb].rights;
	if (where == LISTED)
		where = command->id ? OF_JOB : NAMED;
	if (where == OPEN)
		return RIGHTS_YES;
	if (!about->token)
		return RIGHTS_NO;
	switch (where) {
	case NOWHERE:
		return RIGHTS_YES;
	case SOMEWHERE:
		return token_may(about->token, *rights, "") ? RIGHTS_YES : RIGHTS_NO;
	case USED:
		return token_may(about->token, *rights, about->used) ? RIGHTS_YES : RIGHTS_NO;
	case WATCHED:
		return in_watched(about, *rights) ? RIGHTS_YES : RIGHTS_NO;
	case NAMED:
		return token_may(about->token, *rights, named(command)) ? RIGHTS_YES : RIGHTS_NO;
	case OF_JOB:
		if (about->has_lease || token_may(about->token, *rights, NULL))
			return RIGHTS_YES;
		return token_may(about->token, *rights, "") ? RIGHTS_BY_TUBE : RIGHTS_NO;
	default:
		return token_may(about->token, *rights, NULL) ? RIGHTS_YES : RIGHTS_NO;
	}
}
