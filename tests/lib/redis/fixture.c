/* A rig for the tests of the link to Redis: it counts the link's memory and stops its clock. */
#include "tests/lib/redis/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *allocate(void *user, size_t size)
{
	struct link_rig *rig = user;
	void *block = NULL;

	pthread_mutex_lock(&rig->lock);
	if (++rig->calls != rig->fail_at)
		block = aligned_alloc(64, (size + 63) & ~(size_t)63);
	if (block) {
		rig->blocks++;
		rig->bytes += size;
		if (rig->bytes > rig->most)
			rig->most = rig->bytes;
		/* Fill freed memory, lest anybody relies on its content. */
		memset(block, 0xa5, size);
	}
	pthread_mutex_unlock(&rig->lock);
	return block;
}

static void give(void *user, void *block, size_t size)
{
	struct link_rig *rig = user;

	pthread_mutex_lock(&rig->lock);
	rig->blocks--;
	rig->bytes -= size;
	pthread_mutex_unlock(&rig->lock);
	free(block);
}

static void report(const char *sentence, void *context)
{
	struct link_rig *rig = context;

	pthread_mutex_lock(&rig->lock);
	if (rig->said < SAID_MAX)
		(void)snprintf(rig->sentences[rig->said++], SENTENCE_MAX, "%s", sentence);
	pthread_mutex_unlock(&rig->lock);
}

uint64_t link_rig_now(struct link_rig *rig)
{
	uint64_t now;

	pthread_mutex_lock(&rig->lock);
	now = rig->now;
	pthread_mutex_unlock(&rig->lock);
	return now;
}

static uint64_t now_of(void *context)
{
	return link_rig_now(context);
}

void link_rig_pass(struct link_rig *rig, uint64_t ns)
{
	pthread_mutex_lock(&rig->lock);
	rig->now += ns;
	pthread_mutex_unlock(&rig->lock);
}

void link_rig_make(struct link_rig *rig, const char *url)
{
	memset(rig, 0, sizeof *rig);
	ck_assert_int_eq(pthread_mutex_init(&rig->lock, NULL), 0);
	(void)snprintf(rig->url, sizeof rig->url, "%s", url);
	rig->allocator = (struct ww_allocator){allocate, give, rig};
	rig->now = 1000 * SECOND;
	rig->config = (struct redis_link_config){.timeout = UINT64_C(5000000000),
	    .backoff_max = UINT64_C(2000000000),
	    .connections = 16,
	    .reply_max = (size_t)256 << 20,
	    .allocator = ww_allocator_default()};
	rig->config.url = rig->url;
	rig->config.timeout = 60 * SECOND;
	rig->config.allocator = &rig->allocator;
	rig->config.report = report;
	rig->config.now = now_of;
	rig->config.context = rig;
}

void link_rig_open(struct link_rig *rig, const char *url)
{
	int error;

	link_rig_make(rig, url);
	error = ww_redis_link_open(&rig->link, &rig->config);
	ck_assert_msg(error == WW_OK, "%d: %s", error, rig->sentences[0]);
}

void link_rig_close(struct link_rig *rig)
{
	ww_redis_link_close(rig->link);
	rig->link = NULL;
	ck_assert_uint_eq(rig->blocks, 0);
	ck_assert_uint_eq(rig->bytes, 0);
	pthread_mutex_destroy(&rig->lock);
}

int link_rig_said(struct link_rig *rig, const char *words)
{
	int count = 0;

	pthread_mutex_lock(&rig->lock);
	for (int i = 0; i < rig->said; i++)
		count += strstr(rig->sentences[i], words) != NULL;
	pthread_mutex_unlock(&rig->lock);
	return count;
}

struct redis_link_stats link_rig_stats(struct link_rig *rig)
{
	struct redis_link_stats stats;

	ww_redis_link_stats(rig->link, &stats);
	return stats;
}

struct redis_script script_of(const char *name, const char *text)
{
	struct redis_script script = {.name = name, .text = text, .length = strlen(text)};
	char name_of_file[] = "/tmp/weekwheel-script-XXXXXX";
	char command[64];
	FILE *pipe;

	/* The library's own scripts get their hashes from the same program in the build. */
	int file = mkstemp(name_of_file);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(write(file, text, script.length), (ssize_t)script.length);
	close(file);
	snprintf(command, sizeof command, "sha1sum %s", name_of_file);
	pipe = popen(command, "r");
	ck_assert_ptr_nonnull(pipe);
	ck_assert_uint_eq(fread(script.sha, 1, 40, pipe), 40);
	pclose(pipe);
	unlink(name_of_file);
	return script;
}

static int call(struct link_rig *rig, struct redis_call *one, long long *number)
{
	int error = ww_redis_link_run(rig->link, one, 1);

	ck_assert_int_eq(error, one->error);
	ck_assert_int_eq(error == WW_OK, one->reply != NULL);
	if (number && one->reply)
		*number = one->reply->type == REDIS_REPLY_INTEGER ? one->reply->integer : (long long)one->reply->len;
	ww_redis_link_free(one, 1);
	ck_assert_ptr_null(one->reply);
	return error;
}

int call_script(
    struct link_rig *rig, const struct redis_script *script, const char *key, const char *argument, long long *number)
{
	struct redis_call one = {.script = script, .key = key, .argc = argument != NULL, .argv = &argument};

	return call(rig, &one, number);
}

int call_again(struct link_rig *rig, const struct redis_script *script, const char *key)
{
	struct redis_call one = {.script = script, .key = key, .flags = REDIS_CALL_AGAIN};

	return call(rig, &one, NULL);
}

int call_words(struct link_rig *rig, const char *one, const char *two, const char *three, const char *four)
{
	const char *const words[] = {one, two, three, four};
	struct redis_call command = {.argv = words};

	while (command.argc < 4 && words[command.argc])
		command.argc++;
	return call(rig, &command, NULL);
}
