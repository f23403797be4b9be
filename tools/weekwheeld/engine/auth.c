/* Who may: what the access of this server stands on, and what a token grants about a job. */
#include "tools/weekwheeld/engine/auth.h"

#include "tools/weekwheeld/engine/server.h"

static uint64_t auth_now(void *context)
{
	const struct server *server = context;
	uint64_t now = 0;

	(void)ww_driver_now(server->elapsed, &now);
	return now;
}

void auth_start(struct server *server)
{
	server->access.now = auth_now;
	server->access.context = server;
	server->access.is_http_only = server->settings->is_http_only;
	access_start(&server->access, server->settings->auth_file, server->settings->tokens, NULL);
}

int auth_may(struct ww_jobs *jobs, const struct token *token, unsigned rights, uint64_t id)
{
	struct ww_job_ref job = {.id = id};
	struct ww_job_info info;
	int error = id ? ww_jobs_peek(jobs, &job, &info, NULL) : WW_ENOTFOUND;

	return error == WW_OK && !token_may(token, rights, info.tube) ? WW_ENOTFOUND : error;
}
