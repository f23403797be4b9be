/* What the replies of a round mean for its calls (steps 4 and 5 of run.c). */
#include <string.h>

#include "lib/redis/link/run.h"

/* Broken connections that a call survives. */
enum { BREAKS = 2 };

static void refuse(struct link_run *run, size_t i, const struct redis_node *node, int error)
{
	const struct redis_call *call = &run->calls[i];

	if (error == WW_EDENIED && strncmp(call->reply->str, "READONLY ", 9) == 0)
		ww_redis_link_complain(
		    run->link, "Redis at %s is a replica: give the address of the primary.", node->place);
	else if (error == WW_EDENIED || error == WW_ECORRUPT)
		ww_redis_link_report(run->link, node, call->script ? call->script->name : call->argv[0], call->reply);
	ww_redis_run_end(run, i, error);
}

static void move(struct link_run *run, size_t i, const struct node_calls *group, int is_asking)
{
	struct errand *errand = &run->errands[i];

	run->redirections++;
	errand->node = ww_redis_cluster_follow(run->link, group->node, run->calls[i].reply->str);
	if (!errand->node) {
		refuse(run, i, group->node, WW_ECORRUPT);
		return;
	}
	errand->is_asking = (uint8_t)is_asking;
	/* Two nodes that each name the other are asked more slowly. */
	run->is_later |= run->round > 4;
}

/* The call has a reply: step 4. */
static void judge(struct link_run *run, struct node_calls *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	struct redis_call *call = &run->calls[i];
	int error;
	enum redis_meaning meaning = ww_redis_error_meaning(call->reply, &error);
	int was_loading = errand->is_loading;
	uint8_t was_asking = errand->is_asking;

	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	if (meaning == REDIS_IS_MOVED || meaning == REDIS_IS_ASK) {
		move(run, i, group, meaning == REDIS_IS_ASK);
	} else if (meaning == REDIS_IS_UNKNOWN && call->script && !was_loading) {
		errand->is_loading = 1;
		errand->is_asking = was_asking;
		errand->node = group->node;
	} else if (meaning == REDIS_IS_READONLY && errand->readonly++ == 0) {
		group->is_stale = 1;
	} else if (meaning == REDIS_IS_LATER &&
	           !ww_redis_aside_later(run->link, group->node, errand->slot, call->flags, call->reply->str)) {
		ww_redis_run_end(run, i, WW_EAGAIN);
	} else if (meaning == REDIS_IS_LATER || meaning == REDIS_IS_UNKNOWN) {
		run->is_later = 1;
	} else if (meaning == REDIS_IS_ANSWER) {
		ww_redis_aside_serves(run->link, group->node, errand->slot, call->flags);
		call->is_sent = run->link->config.replicas && call->flags & REDIS_CALL_SAFE && !group->is_safe;
		ww_redis_run_end(run, i, call->is_sent ? WW_ETIMEOUT : WW_OK);
	} else {
		refuse(run, i, group->node, error);
	}
	if (!errand->is_done)
		ww_redis_run_forget(call);
}

/* The call has no reply: step 5. */
static void lose(struct link_run *run, struct node_calls *group, size_t i)
{
	struct errand *errand = &run->errands[i];
	int is_untouched = !group->wire || !group->wire->has_sent;
	int may_repeat = is_untouched || run->calls[i].flags & REDIS_CALL_AGAIN;

	ww_redis_run_forget(&run->calls[i]);
	run->calls[i].is_sent |= !is_untouched;
	errand->is_asking = 0;
	errand->is_loading = 0;
	errand->node = NULL;
	if (group->error == WW_EIO && !group->is_silent && may_repeat && (group->wire || run->link->slots) &&
	    errand->breaks++ < BREAKS)
		return;
	ww_redis_run_end(run, i, group->error);
}

static void judge_group(struct link_run *run, struct node_calls *group)
{
	void (*take)(struct link_run *, struct node_calls *, size_t) = judge;
	size_t next;

	for (size_t i = group->first; i != REDIS_NO_CALL; i = next) {
		next = run->errands[i].next;
		/* The calls from head on have no reply. */
		if (i == group->head)
			take = lose;
		take(run, group, i);
	}
}

static void release(struct link_run *run, struct node_calls *group)
{
	int is_bad = group->is_silent || group->error == WW_ECORRUPT;

	if (!group->wire)
		return;
	if (group->is_suspect) {
		ww_redis_aside_silent(run->link, group->node);
		ww_redis_node_close(run->link, group->wire);
		return;
	}
	if (group->error == WW_ECORRUPT)
		ww_redis_link_complain(
		    run->link, "What Redis at %s answers cannot be read: %s.", group->node->place, group->wire->why);
	if (group->error || group->is_stale)
		ww_redis_node_drop(run->link, group->wire, is_bad, group->error);
	else
		ww_redis_node_give(run->link, group->wire);
}

void ww_redis_judge(struct link_run *run)
{
	for (size_t g = 0; g < run->group_count; g++) {
		judge_group(run, &run->groups[g]);
		release(run, &run->groups[g]);
	}
}
