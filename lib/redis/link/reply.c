/*
 * Replies: making them, and what they mean. They are made with the link's allocator within a budget. A reply knows its
 * allocator, since it is freed far from here.
 *
 *     cell: | redisReply | allocator | text \0 |      an array has one more block: pointers to its cells
 */
#include <string.h>

#include "lib/redis/link/link_internal.h"

/* More than any expected reply has; bounds the memory that a few hostile bytes can claim. */
#define ELEMENTS_MAX (1024 * 1024)

struct cell {
	struct redisReply reply;
	const struct ww_allocator *allocator;
	char text[];
};

static void *take(struct redis_budget *budget, size_t size)
{
	void *block;

	if (size > budget->left) {
		budget->exceeded = 1;
		return NULL;
	}
	block = memory_take(budget->allocator, size);
	if (block)
		budget->left -= size;
	return block;
}

static struct cell *make(const redisReadTask *task, const char *text, size_t length)
{
	struct redis_budget *budget = task->privdata;
	struct cell *cell;

	if (!task->parent) {
		budget->left = budget->max;
		budget->exceeded = 0;
	}
	cell = take(budget, sizeof *cell + length + 1);
	if (!cell)
		return NULL;
	memset(&cell->reply, 0, sizeof cell->reply);
	cell->allocator = budget->allocator;
	cell->reply.type = task->type;
	cell->reply.len = length;
	if (length)
		memcpy(cell->text, text, length);
	cell->text[length] = '\0';
	return cell;
}

static void *attach(const redisReadTask *task, struct cell *cell)
{
	if (cell && task->parent) {
		struct redisReply *parent = task->parent->obj;
		parent->element[task->idx] = &cell->reply;
	}
	return cell;
}

static void *make_string(const redisReadTask *task, char *text, size_t length)
{
	struct cell *cell = make(task, text, length);

	if (cell)
		cell->reply.str = cell->text;
	return attach(task, cell);
}

static void *make_integer(const redisReadTask *task, long long value)
{
	struct cell *cell = make(task, NULL, 0);

	if (cell)
		cell->reply.integer = value;
	return attach(task, cell);
}

static void *make_nil(const redisReadTask *task)
{
	struct cell *cell = make(task, NULL, 0);

	/* The task has the type of the missing value. */
	if (cell)
		cell->reply.type = REDIS_REPLY_NIL;
	return attach(task, cell);
}

static void *make_array(const redisReadTask *task, int elements)
{
	struct redis_budget *budget = task->privdata;
	size_t count = elements > 0 ? (size_t)elements : 0;
	struct cell *cell = make(task, NULL, 0);

	if (!cell)
		return NULL;
	if (count > 0) {
		budget->exceeded |= count > ELEMENTS_MAX;
		cell->reply.element = count > ELEMENTS_MAX ? NULL : take(budget, count * sizeof *cell->reply.element);
		if (!cell->reply.element) {
			ww_redis_reply_free(&cell->reply);
			return NULL;
		}
		memset(cell->reply.element, 0, count * sizeof *cell->reply.element);
		cell->reply.elements = count;
	}
	return attach(task, cell);
}

/* Recurses no deeper than hiredis reads. */
void ww_redis_reply_free(struct redisReply *reply)
{
	struct cell *cell = (struct cell *)(void *)reply;
	const struct ww_allocator *allocator;

	if (!reply)
		return;
	allocator = cell->allocator;
	for (size_t i = 0; i < reply->elements; i++)
		ww_redis_reply_free(reply->element[i]);
	memory_give(allocator, reply->element, reply->elements * sizeof *reply->element);
	memory_give(allocator, cell, sizeof *cell + reply->len + 1);
}

static void free_object(void *reply)
{
	ww_redis_reply_free(reply);
}

struct redisReplyObjectFunctions ww_redis_reply_functions = {
    make_string, make_array, make_integer, make_nil, free_object};

/* ---- What a reply means */

/* By how an error begins. */
static const struct {
	const char *begins;
	enum redis_meaning meaning;
	int error;
} meanings[] = {
    {"MOVED ", REDIS_IS_MOVED, WW_EAGAIN},
    {"ASK ", REDIS_IS_ASK, WW_EAGAIN},
    {"NOSCRIPT ", REDIS_IS_UNKNOWN, WW_EAGAIN},
    {"READONLY ", REDIS_IS_READONLY, WW_EDENIED},
    {"LOADING ", REDIS_IS_LATER, WW_EAGAIN},
    {"TRYAGAIN ", REDIS_IS_LATER, WW_EAGAIN},
    {"CLUSTERDOWN ", REDIS_IS_LATER, WW_EAGAIN},
    {"MASTERDOWN ", REDIS_IS_LATER, WW_EAGAIN},
    {"BUSY ", REDIS_IS_LATER, WW_EAGAIN},
    {"NOREPLICAS ", REDIS_IS_LATER, WW_EAGAIN},
    {"ERR max number of clients", REDIS_IS_LATER, WW_EAGAIN},
    {"OOM ", REDIS_IS_ERROR, WW_EFULL},
    {"MISCONF ", REDIS_IS_ERROR, WW_EFULL},
    {"NOAUTH ", REDIS_IS_ERROR, WW_EDENIED},
    {"WRONGPASS ", REDIS_IS_ERROR, WW_EDENIED},
    {"NOPERM ", REDIS_IS_ERROR, WW_EDENIED},
    {"DENIED ", REDIS_IS_ERROR, WW_EDENIED},
};

enum redis_meaning ww_redis_error_meaning(const struct redisReply *reply, int *error)
{
	*error = WW_OK;
	if (reply->type != REDIS_REPLY_ERROR)
		return REDIS_IS_ANSWER;
	for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
		if (strncmp(reply->str, meanings[i].begins, strlen(meanings[i].begins)) == 0) {
			*error = meanings[i].error;
			return meanings[i].meaning;
		}
	}
	*error = WW_ECORRUPT;
	return REDIS_IS_ERROR;
}

void ww_redis_error_copy(char *to, size_t size, const struct redisReply *reply)
{
	size_t count = reply->len < size ? reply->len : size - 1;

	for (size_t i = 0; i < count; i++)
		to[i] = (unsigned char)reply->str[i] < ' ' || reply->str[i] == 0x7f ? '?' : reply->str[i];
	to[count] = '\0';
}
