/* Keeps the places of HTTP's clients, and their time. */
#include "tools/service/visitors.h"

#include <stdlib.h>

#include "tools/service/state.h"

void visitors_begin(struct visitors *visitors)
{
	*visitors = (struct visitors){.count = 0};
	TAILQ_INIT(&visitors->list);
}

static struct visitor *find(const struct visitors *visitors, int fd)
{
	struct visitor *visitor;

	TAILQ_FOREACH(visitor, &visitors->list, next)
	if (visitor->fd == fd)
		return visitor;
	return NULL;
}

/* libmicrohttpd closes the connection when it finds that nothing more can be read or sent. */
static void dismiss(struct visitors *visitors, struct visitor *visitor)
{
	visitor->is_leaving = 1;
	visitors->count--;
	(void)shutdown(visitor->fd, SHUT_RDWR);
}

/* Return the oldest of the same address if that has its share, of all if all places are taken, or NULL. */
static struct visitor *find_oldest(struct visitors *visitors, const struct visitor *guest)
{
	struct visitor *of_all = NULL;
	struct visitor *of_address = NULL;
	struct visitor *visitor;
	unsigned same = 0;

	TAILQ_FOREACH(visitor, &visitors->list, next)
	{
		if (visitor->is_leaving)
			continue;
		if (!of_all)
			of_all = visitor;
		if (!address_key_equal(&visitor->from, &guest->from))
			continue;
		if (!of_address)
			of_address = visitor;
		same++;
	}
	if (same >= VISITORS_EACH)
		return of_address;
	return visitors->count >= VISITORS_MAX ? of_all : NULL;
}

int visitors_enter(struct visitors *visitors, int fd, const struct sockaddr *address, uint64_t now)
{
	struct visitor *visitor = calloc(1, sizeof *visitor);
	struct visitor *oldest;

	if (!visitor)
		return -1;
	visitor->fd = fd;
	visitor->since = now;
	visitor->from = address_key(address);
	oldest = find_oldest(visitors, visitor);
	if (oldest) {
		visitors->replaced++;
		dismiss(visitors, oldest);
		state_seen("http places",
		    "HTTP has no place left: connections that made no request for the longest time "
		    "are closed");
	}
	visitors->count++;
	visitors->total++;
	TAILQ_INSERT_TAIL(&visitors->list, visitor, next);
	return 0;
}

void visitors_note(struct visitors *visitors, int fd, int is_answered, uint64_t now)
{
	struct visitor *visitor = find(visitors, fd);

	if (!visitor || visitor->is_leaving)
		return;
	visitor->is_answered = is_answered;
	visitor->owed = 0;
	visitor->since = now;
	TAILQ_REMOVE(&visitors->list, visitor, next);
	TAILQ_INSERT_TAIL(&visitors->list, visitor, next);
}

void visitors_owe(struct visitors *visitors, int fd, size_t bytes)
{
	struct visitor *visitor = find(visitors, fd);

	if (visitor)
		visitor->owed = bytes;
}

static struct visitor *find_worst(const struct visitors *visitors)
{
	struct visitor *worst = NULL;
	struct visitor *visitor;

	TAILQ_FOREACH(visitor, &visitors->list, next)
	if (!visitor->is_leaving && (!worst || visitor->owed > worst->owed))
		worst = visitor;
	return worst;
}

size_t visitors_worst(const struct visitors *visitors)
{
	const struct visitor *worst = find_worst(visitors);

	return worst ? worst->owed : 0;
}

void visitors_end_worst(struct visitors *visitors)
{
	struct visitor *worst = find_worst(visitors);

	if (worst)
		dismiss(visitors, worst);
}

void visitors_leave(struct visitors *visitors, int fd)
{
	struct visitor *visitor = find(visitors, fd);

	if (!visitor)
		return;
	visitors->count -= !visitor->is_leaving;
	TAILQ_REMOVE(&visitors->list, visitor, next);
	free(visitor);
}

int64_t visitors_sweep(struct visitors *visitors, uint64_t now)
{
	struct visitor *visitor;
	int64_t wait = -1;

	TAILQ_FOREACH(visitor, &visitors->list, next)
	{
		uint64_t end = visitor->since + (visitor->is_answered ? ANSWER_MS : REQUEST_MS);

		if (visitor->is_leaving)
			continue;
		if (now >= end) {
			visitors->slow++;
			dismiss(visitors, visitor);
		} else if (wait < 0 || (int64_t)(end - now) < wait) {
			wait = (int64_t)(end - now);
		}
	}
	return wait;
}
