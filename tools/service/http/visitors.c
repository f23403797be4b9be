/* Keeps the places of HTTP's clients, and their time. */
#include "tools/service/http/visitors.h"

#include <stdlib.h>

#include "tools/service/state/state.h"

void visitors_begin(struct visitors *visitors, unsigned places)
{
	*visitors = (struct visitors){.places = places};
	TAILQ_INIT(&visitors->asking);
	TAILQ_INIT(&visitors->answered);
	TAILQ_INIT(&visitors->idle);
	TAILQ_INIT(&visitors->leaving);
}

void visitors_end(struct visitors *visitors)
{
	free(visitors->by_fd);
}

struct visitor *visitors_find(const struct visitors *visitors, int fd)
{
	return fd >= 0 && fd < visitors->fd_room ? visitors->by_fd[fd] : NULL;
}

/* Returns 0, or -1 without memory. */
static int make_room(struct visitors *visitors, int fd)
{
	int room = visitors->fd_room;
	struct visitor **by_fd;

	if (fd < room)
		return 0;
	room = 2 * fd + 64;
	by_fd = realloc(visitors->by_fd, (size_t)room * sizeof(struct visitor *));
	if (!by_fd)
		return -1;
	for (int i = visitors->fd_room; i < room; i++)
		by_fd[i] = NULL;
	visitors->by_fd = by_fd;
	visitors->fd_room = room;
	return 0;
}

static void move(struct visitor *visitor, struct visitor_list *list)
{
	TAILQ_REMOVE(visitor->list, visitor, next);
	visitor->list = list;
	TAILQ_INSERT_TAIL(list, visitor, next);
}

/* libmicrohttpd closes the connection when it finds that nothing more can be read or sent. */
static void dismiss(struct visitors *visitors, struct visitor *visitor)
{
	move(visitor, &visitors->leaving);
	visitors->count--;
	(void)shutdown(visitor->fd, SHUT_RDWR);
}

static struct visitor *older(struct visitor *one, struct visitor *other)
{
	if (!one || !other)
		return one ? one : other;
	return other->since < one->since ? other : one;
}

/* Count those of the address, and remember the first. */
static unsigned count_same(const struct visitor_list *list, const struct address_key *address, struct visitor **first)
{
	struct visitor *visitor;
	unsigned same = 0;

	TAILQ_FOREACH(visitor, list, next)
	{
		if (!address_key_equal(&visitor->from, address))
			continue;
		if (!*first)
			*first = visitor;
		same++;
	}
	return same;
}

/*
 * Return the visitor that must leave, or NULL: the oldest of the same address if that has its share, of all if all
 * places are taken.
 */
static struct visitor *find_oldest(struct visitors *visitors, const struct address_key *address)
{
	struct visitor *first = NULL;
	struct visitor *idle = NULL;
	unsigned same = 0;

	if (visitors->count < visitors->places / 2)
		return NULL;
	same = count_same(&visitors->asking, address, &first);
	same += count_same(&visitors->idle, address, &idle);
	first = older(first, idle);
	same += count_same(&visitors->answered, address, &first);
	if (same >= visitors->places / 2)
		return first;
	if (visitors->count < visitors->places)
		return NULL;
	first = older(TAILQ_FIRST(&visitors->asking), TAILQ_FIRST(&visitors->idle));
	return first ? first : TAILQ_FIRST(&visitors->answered);
}

int visitors_enter(struct visitors *visitors, int fd, const struct sockaddr *address, uint64_t now)
{
	struct visitor *visitor = make_room(visitors, fd) ? NULL : calloc(1, sizeof *visitor);
	struct visitor *oldest;

	if (!visitor)
		return -1;
	visitor->fd = fd;
	visitor->since = now;
	visitor->from = address_key(address);
	oldest = find_oldest(visitors, &visitor->from);
	if (oldest) {
		visitors->replaced++;
		dismiss(visitors, oldest);
		state_seen("http places",
		    "HTTP has no place left: connections that made no request for the longest time "
		    "are closed");
	}
	visitors->count++;
	visitors->total++;
	visitors->by_fd[fd] = visitor;
	visitor->list = &visitors->asking;
	TAILQ_INSERT_TAIL(visitor->list, visitor, next);
	return 0;
}

void visitors_note(struct visitors *visitors, int fd, int is_answered, uint64_t now)
{
	struct visitor *visitor = visitors_find(visitors, fd);

	if (!visitor || visitor->list == &visitors->leaving)
		return;
	visitor->owed = 0;
	visitor->since = now;
	move(visitor, is_answered ? &visitors->answered : &visitors->idle);
}

void visitors_owe(struct visitors *visitors, int fd, size_t bytes)
{
	struct visitor *visitor = visitors_find(visitors, fd);

	if (visitor)
		visitor->owed = bytes;
}

int visitors_is_leaving(const struct visitors *visitors, int fd)
{
	const struct visitor *visitor = visitors_find(visitors, fd);

	return visitor && visitor->list == &visitors->leaving;
}

size_t visitors_going(const struct visitors *visitors)
{
	const struct visitor *visitor;
	size_t going = 0;

	TAILQ_FOREACH(visitor, &visitors->leaving, next)
	going += visitor->owed;
	return going;
}

/* Only a complete request is owed an answer. */
static struct visitor *find_worst(const struct visitors *visitors)
{
	struct visitor *worst = NULL;
	struct visitor *visitor;

	TAILQ_FOREACH(visitor, &visitors->answered, next)
	if (!worst || visitor->owed > worst->owed)
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
	struct visitor *visitor = visitors_find(visitors, fd);

	if (!visitor)
		return;
	visitors->count -= visitor->list != &visitors->leaving;
	TAILQ_REMOVE(visitor->list, visitor, next);
	visitors->by_fd[fd] = NULL;
	free(visitor);
}

/*
 * Let those leave that have been in the list for this long. Returns in how many ms the next one will have, or
 * INT64_MAX.
 */
static int64_t sweep(struct visitors *visitors, struct visitor_list *list, uint64_t most, uint64_t now)
{
	struct visitor *visitor;

	while ((visitor = TAILQ_FIRST(list)) && now >= visitor->since + most) {
		visitors->slow++;
		dismiss(visitors, visitor);
	}
	return visitor ? (int64_t)(visitor->since + most - now) : INT64_MAX;
}

int64_t visitors_sweep(struct visitors *visitors, uint64_t now)
{
	int64_t asking = sweep(visitors, &visitors->asking, REQUEST_MS, now);
	int64_t answered = sweep(visitors, &visitors->answered, ANSWER_MS, now);
	int64_t idle = sweep(visitors, &visitors->idle, IDLE_MS, now);
	int64_t wait = asking < answered ? asking : answered;

	wait = idle < wait ? idle : wait;

	return wait == INT64_MAX ? -1 : wait;
}
