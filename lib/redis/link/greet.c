/* What a new connection begins with: who it is, its database, and whether that is Redis. */
#include <stdio.h>
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* A command that a new connection begins with, and the error when Redis refuses it. */
struct hello {
	size_t argc;
	const char *argv[3];
	int refusal; /* 0: forbidding it is harmless */
};

/* Whether the reply to a hello leaves a usable connection. */
static int judge_hello(struct redis_wire *wire, const struct redisReply *reply, int refusal)
{
	int error;

	if (reply->type != REDIS_REPLY_ERROR && reply->type != REDIS_REPLY_STATUS) {
		(void)snprintf(wire->why, sizeof wire->why, "it answers otherwise than Redis does");
		return WW_ECORRUPT;
	}
	/* A server that is not ready is one all the same, and so is one that forbids PING. */
	if (ww_redis_error_meaning(reply, &error) == REDIS_IS_LATER && strncmp(reply->str, "ERR ", 4) != 0)
		return WW_OK;
	if (!refusal && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM ", 7) == 0)
		return WW_OK;
	ww_redis_error_copy(wire->why, sizeof wire->why, reply);
	return error == WW_ECORRUPT && refusal ? refusal : error;
}

int ww_redis_greet(const struct redis_url *url, struct redis_wire *wire, uint64_t deadline)
{
	struct hello hellos[3];
	struct redisReply *reply;
	char db[16];
	int count = 0;
	int error = WW_OK;

	(void)snprintf(db, sizeof db, "%u", url->db);
	if (url->has_password && url->user[0])
		hellos[count++] = (struct hello){3, {"AUTH", url->user, url->password}, WW_EDENIED};
	else if (url->has_password)
		hellos[count++] = (struct hello){2, {"AUTH", url->password}, WW_EDENIED};
	if (url->db > 0)
		hellos[count++] = (struct hello){2, {"SELECT", db}, WW_EINVAL};
	hellos[count++] = (struct hello){1, {"PING"}, WW_OK};
	for (int i = 0; i < count && !error; i++)
		error = ww_redis_wire_append(wire, hellos[i].argc, hellos[i].argv, NULL);
	for (int i = 0; i < count && !error; i++) {
		error = ww_redis_wire_wait(wire, deadline, &reply);
		if (error)
			break;
		error = judge_hello(wire, reply, hellos[i].refusal);
		ww_redis_reply_free(reply);
	}
	return error;
}
