/* Step 3 of a round (redis_link_run.c): sending and receiving on all nodes side by side. */
#include <poll.h>
#include <stdio.h>

#include "lib/redis/link/run.h"

static int is_error(const struct redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR;
}

/*
 * Take the next reply of a group. Replies to an ASKING or a SCRIPT LOAD come before that of their call. The first error
 * among them is kept in place of the call's own error, which it caused.
 */
static void take_reply(struct link_run *run, struct node_calls *group, struct redisReply *reply)
{
	size_t i = group->head;
	struct errand *errand = &run->errands[i];
	struct redis_call *call = &run->calls[i];

	if (errand->before > 0) {
		errand->before--;
		if (is_error(reply) && !call->reply)
			call->reply = reply;
		else
			ww_redis_reply_free(reply);
		return;
	}
	if (call->reply && is_error(reply)) {
		ww_redis_reply_free(reply);
	} else {
		ww_redis_reply_free(call->reply);
		call->reply = reply;
	}
	group->head = errand->next;
}

static void take_replies(struct link_run *run, struct node_calls *group)
{
	struct redisReply *reply;
	int result = 0;

	while (group->head != REDIS_NO_CALL) {
		result = ww_redis_wire_reply(group->wire, &reply);
		if (result <= 0)
			break;
		take_reply(run, group, reply);
	}
	if (result < 0)
		group->error = result;
}

static void step(struct link_run *run, struct node_calls *group, short events)
{
	int error = WW_OK;

	if (events & ~POLLOUT) {
		error = ww_redis_wire_receive(group->wire);
		/* What came before the connection broke is good. */
		take_replies(run, group);
	}
	if (!error && !group->error && group->head != REDIS_NO_CALL && events & POLLOUT)
		error = ww_redis_wire_send(group->wire);
	if (error && !group->error && group->head != REDIS_NO_CALL)
		group->error = error;
}

static void fall_silent(struct link_run *run)
{
	for (size_t g = 0; g < run->group_count; g++) {
		struct node_calls *group = &run->groups[g];
		if (group->error || group->head == REDIS_NO_CALL)
			continue;
		group->error = WW_EIO;
		group->is_silent = 1;
		(void)snprintf(group->wire->why, sizeof group->wire->why, "the server does not answer in time");
	}
}

void ww_redis_exchange(struct link_run *run)
{
	for (;;) {
		size_t open = 0;
		int ready;
		int left = time_left_ms(run->deadline);
		for (size_t g = 0; g < run->group_count; g++) {
			struct node_calls *group = &run->groups[g];
			int is_open = !group->error && group->head != REDIS_NO_CALL;
			open += is_open != 0;
			run->polled[g] =
			    (struct pollfd){.fd = is_open ? group->wire->context->fd : -1, .events = POLLIN};
			if (is_open && !ww_redis_wire_is_sent(group->wire))
				run->polled[g].events |= POLLOUT;
		}
		if (open == 0)
			return;
		ready = poll(run->polled, run->group_count, left);
		/* A reply that came in time counts, even if this thread looks late. */
		if (ready == 0 && left == 0) {
			fall_silent(run);
			return;
		}
		if (ready < 0)
			continue;
		for (size_t g = 0; g < run->group_count; g++) {
			if (run->polled[g].fd >= 0 && run->polled[g].revents)
				step(run, &run->groups[g], run->polled[g].revents);
		}
	}
}
