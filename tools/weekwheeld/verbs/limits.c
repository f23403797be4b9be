/* The verbs of limits: set one, list them. */

#include <inttypes.h>

#include "tools/common/duration.h"
#include "tools/common/percent.h"
#include "tools/weekwheeld/verbs/list.h"
#include "tools/weekwheeld/verbs/verbs.h"

static int limits_set_begin(struct call *call)
{
	if (call->connection->server->is_shared && call->command->own.limit.weight > 1)
		call->text = "NO_WEIGHTS\r\n";
	return !call->text;
}

static void limits_set_run(struct call *call)
{
	const struct command_own *own = &call->command->own;
	const struct ww_limit *asked = &own->limit;
	const struct ww_limit_ref ref = {
	    .tube = call->command->tube, .group = own->group, .group_length = own->group_length, .each = own->each};
	struct ww_limit limit;

	(void)ww_jobs_limit_default(&limit);
	limit.running = asked->running;
	limit.starts = asked->starts;
	if (asked->per)
		limit.per = asked->per;
	if (asked->burst)
		limit.burst = asked->burst;
	if (asked->weight)
		limit.weight = asked->weight;
	call->result = call_begin(call);
	if (call->result == WW_OK)
		call->result = ww_jobs_limit_set(call_jobs(call), &ref, &limit);
}

static void limits_set_answer(struct call *call)
{
	answer_result(call->connection, call->result, "LIMITED\r\n");
}

static int add_whose(struct buffer *out, const struct ww_limit_ref *ref)
{
	char encoded[3 * WW_JOB_GROUP_MAX + 1];

	if (!ref->group_length)
		return buffer_format(out, ",\"group\":null,\"each\":%s", ref->each ? "true" : "false");
	(void)percent_encode(ref->group, ref->group_length, encoded, sizeof encoded);
	return buffer_format(out, ",\"group\":\"%s\",\"each\":false", encoded);
}

static int add_limit(const struct ww_limit_info *info, void *context)
{
	struct buffer *out = context;
	const struct ww_limit *limit = &info->limit;
	char per[DURATION_TEXT];
	char left[DURATION_TEXT];
	int bad;

	bad = buffer_format(out, "%s{\"tube\":", out->size ? "\n" : "") || list_string(out, info->ref.tube) ||
	      add_whose(out, &info->ref) ||
	      buffer_format(out,
	          ",\"running\":%" PRIu64 ",\"starts\":%" PRIu64 ",\"per\":%s,\"burst\":%" PRIu64 ",\"weight\":%" PRIu64
	          ",\"leases\":%" PRIu64 ",\"held\":%" PRIu64 ",\"left\":%s}",
	          limit->running, limit->starts, duration_seconds(per, limit->per), limit->burst, limit->weight,
	          info->running, info->held, duration_seconds(left, info->left));
	return bad ? 1 : 0;
}

/* Write the limits of a tube, or of all for NULL, as lines of JSON. Returns 0 or a WW_E*. */
static int limits_list(struct server *server, const char *tube, struct buffer *out)
{
	int result = ww_jobs_limit_list(server->jobs, tube, add_limit, out);

	return result > 0 ? WW_ENOMEM : result;
}

static void limits_list_run(struct call *call)
{
	const struct command *command = call->command;

	call->result = limits_list(call->connection->server, command->own.has_tube ? command->tube : NULL, &call->made);
}

static void limits_list_answer(struct call *call)
{
	answer_block(call->connection, call->result, &call->made);
}

const struct steps verb_limit = {limits_set_begin, limits_set_run, limits_set_answer, NULL};
const struct steps verb_list_limits = {NULL, limits_list_run, limits_list_answer, NULL};
