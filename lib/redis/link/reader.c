/* Bounds a reader of hiredis: it makes replies by its own functions, as long as they fit. */
#include "lib/redis/link/reader.h"

#include "weekwheel/error.h"

/* What hiredis takes for a value beside its bytes, roughly. */
enum { CELL = 64 };

static int takes(const redisReadTask *task, size_t size)
{
	struct redis_reader_bound *bound = task->privdata;

	if (!task->parent)
		bound->left = bound->max;
	if (bound->left < CELL || size > bound->left - CELL)
		return 0;
	bound->left -= CELL + size;
	return 1;
}

static const redisReplyObjectFunctions *own(const redisReadTask *task)
{
	return &((const struct redis_reader_bound *)task->privdata)->own;
}

static void *make_string(const redisReadTask *task, char *text, size_t length)
{
	return takes(task, length) ? own(task)->createString(task, text, length) : NULL;
}

static void *make_array(const redisReadTask *task, int elements)
{
	size_t count = elements > 0 ? (size_t)elements : 0;

	if (count > REDIS_READER_ELEMENTS || !takes(task, count * sizeof(void *)))
		return NULL;
	return own(task)->createArray(task, elements);
}

static void *make_integer(const redisReadTask *task, long long value)
{
	return takes(task, 0) ? own(task)->createInteger(task, value) : NULL;
}

static void *make_nil(const redisReadTask *task)
{
	return takes(task, 0) ? own(task)->createNil(task) : NULL;
}

void ww_redis_reader_bound(struct redis_reader_bound *bound, redisReader *reader, size_t max)
{
	*bound = (struct redis_reader_bound){.own = *reader->fn, .max = max, .left = max};
	bound->within =
	    (redisReplyObjectFunctions){make_string, make_array, make_integer, make_nil, reader->fn->freeObject};
	reader->fn = &bound->within;
	reader->privdata = bound;
}

int ww_redis_reader_reply(const struct redis_reader_bound *bound, redisReader *reader, void **reply)
{
	*reply = NULL;
	if (redisReaderGetReply(reader, reply) != REDIS_OK)
		return WW_ECORRUPT;
	if (*reply)
		return 1;
	return reader->len - reader->pos > bound->max ? WW_ECORRUPT : 0;
}
