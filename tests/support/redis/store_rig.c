/* A store of jobs in real Redis, and the processes that share it with the test. */
/* For putenv. */
#include "tests/support/redis/store_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *const store_kinds[] = {[STORE_SINGLE] = "single", [STORE_CLUSTER] = "cluster"};

const char *store_kind_name(size_t i)
{
	return store_kinds[i];
}

/* ---- The store */

static void report(const char *sentence, void *context)
{
	struct store_rig *rig = context;

	pthread_mutex_lock(&rig->lock);
	if (rig->said < STORE_SAID_MAX)
		(void)snprintf(rig->sentences[rig->said++], STORE_SENTENCE_MAX, "%s", sentence);
	pthread_mutex_unlock(&rig->lock);
}

/* The cluster that tests share. It lives as long as the program. */
static struct redis_cluster shared;

void store_rig_share(void)
{
	redis_cluster_share(&shared, 3);
}

static int begin(struct store_rig *rig)
{
	memset(rig, 0, sizeof *rig);
	if (!redis_server_is_there())
		return 0;
	ck_assert_int_eq(pthread_mutex_init(&rig->lock, NULL), 0);
	return 1;
}

static void fill_config(struct store_rig *rig)
{
	redis_server_url(&rig->servers.servers[0], rig->url, sizeof rig->url);
	OK(ww_jobs_redis_config_default(&rig->config));
	rig->config.url = rig->url;
	/* A loaded machine is no reason to fail. */
	rig->config.timeout = 30 * WW_SECOND;
	rig->config.report = report;
	rig->config.context = rig;
}

int store_rig_make_cluster(struct store_rig *rig, int primaries, int replicas, const char *const *options)
{
	if (!begin(rig))
		return 0;
	redis_cluster_start(&rig->servers, primaries, replicas, options);
	fill_config(rig);
	return 1;
}

static int make_shared(struct store_rig *rig)
{
	if (!begin(rig))
		return 0;
	redis_cluster_empty(&shared);
	rig->servers = shared;
	rig->is_shared = 1;
	fill_config(rig);
	return 1;
}

int store_rig_make(struct store_rig *rig, int kind, const char *const *options)
{
	if (kind == STORE_CLUSTER)
		return options ? store_rig_make_cluster(rig, 3, 0, options) : make_shared(rig);
	if (!begin(rig))
		return 0;
	redis_server_start(&rig->servers.servers[0], options);
	rig->servers.primaries = rig->servers.count = 1;
	fill_config(rig);
	return 1;
}

static uint64_t now_of(void *context)
{
	return ((struct store_rig *)context)->now;
}

void store_rig_own_time(struct store_rig *rig)
{
	rig->now = UINT64_C(1700000000) * WW_SECOND;
	rig->config.now = now_of;
}

void store_rig_open(struct store_rig *rig)
{
	OK(ww_jobs_redis_open(&rig->jobs, &rig->config));
}

void store_rig_close(struct store_rig *rig)
{
	OK(ww_jobs_close(rig->jobs));
	rig->jobs = NULL;
}

void store_rig_end(struct store_rig *rig)
{
	if (rig->jobs)
		store_rig_close(rig);
	if (!rig->is_shared)
		redis_cluster_stop(&rig->servers);
	pthread_mutex_destroy(&rig->lock);
}

int store_rig_said(struct store_rig *rig, const char *words)
{
	int count = 0;

	pthread_mutex_lock(&rig->lock);
	for (int i = 0; i < rig->said; i++)
		count += strstr(rig->sentences[i], words) != NULL;
	pthread_mutex_unlock(&rig->lock);
	return count;
}

int store_rig_keys_without(struct store_rig *rig, const char *const *words, size_t count)
{
	int found = 0;

	for (int i = 0; i < rig->servers.primaries; i++) {
		redisReply *keys = redis_server_ask(&rig->servers.servers[i], "KEYS *");
		for (size_t k = 0; k < keys->elements; k++) {
			int is_known = 0;
			for (size_t w = 0; w < count; w++)
				is_known |= strstr(keys->element[k]->str, words[w]) != NULL;
			if (!is_known)
				(void)fprintf(stderr, "left behind: %s\n", keys->element[k]->str);
			found += !is_known;
		}
		freeReplyObject(keys);
	}
	return found;
}

static void print(const char *problem, void *context)
{
	(void)context;
	(void)fprintf(stderr, "%s\n", problem);
}

void store_rig_check(struct store_rig *rig)
{
	ck_assert_int_eq(ww_jobs_check(rig->jobs, print, NULL), 0);
}

struct ww_job_spec store_spec(const char *tube, const char *body)
{
	struct ww_job_spec spec;

	OK(ww_job_spec_default(&spec));
	spec.tube = tube;
	spec.body = body;
	spec.body_length = strlen(body);
	return spec;
}

uint64_t store_put(struct store_rig *rig, const struct ww_job_spec *spec)
{
	uint64_t id;

	ck_assert_int_ge(ww_jobs_put(rig->jobs, spec, &id, NULL), 0);
	return id;
}

static void take_body(struct store_rig *rig, struct ww_lease *lease, char *body)
{
	if (body)
		(void)snprintf(body, 64, "%.*s", (int)lease->body_length, lease->body ? (char *)lease->body : "");
	ww_jobs_free(rig->jobs, lease->body);
	lease->body = NULL;
}

struct ww_lease store_take(struct store_rig *rig, const char *tube, char *body)
{
	struct ww_lease lease;

	ck_assert_int_eq(ww_jobs_reserve(rig->jobs, &tube, 1, &lease), 1);
	take_body(rig, &lease, body);
	return lease;
}

struct ww_lease store_wait(struct store_rig *rig, const char *tube, char *body)
{
	struct ww_lease lease;

	int got = WW_EIO;

	/* Just after a restart of Redis, a first call may still find it gone. */
	for (int i = 0; i < 600 && (got == WW_EIO || got == WW_EAGAIN); i++) {
		if (i)
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		got = ww_jobs_wait(rig->jobs, &tube, 1, 60 * WW_SECOND, &lease);
	}
	ck_assert_int_eq(got, 1);
	take_body(rig, &lease, body);
	return lease;
}

void store_none(struct store_rig *rig, const char *tube)
{
	struct ww_lease lease;
	int got = WW_EAGAIN;

	/* A node that was replaced just now may still be set aside: nobody knows whether it has a job. */
	for (int i = 0; i < 600 && got == WW_EAGAIN; i++) {
		if (i)
			nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
		got = ww_jobs_reserve(rig->jobs, &tube, 1, &lease);
	}
	ck_assert_int_eq(got, 0);
}

/* ---- Actors, seen from the test */

static void become(const struct store_rig *rig, const char *const *environment, const int to[2], const int from[2])
{
	char lease[24];

	(void)snprintf(lease, sizeof lease, "%llu", (unsigned long long)(rig->config.lease / WW_MILLISECOND));
	for (size_t i = 0; environment && environment[i]; i++)
		(void)putenv((char *)(uintptr_t)environment[i]);
	(void)dup2(to[0], 0);
	(void)dup2(from[1], 1);
	(void)close(to[1]);
	(void)close(from[0]);
	(void)execl("/proc/self/exe", "actor", "actor", rig->url, rig->config.prefix, lease, (char *)NULL);
	_exit(127);
}

void actor_start(struct actor *actor, const struct store_rig *rig, const char *const *environment)
{
	char line[64];
	int to[2];
	int from[2];

	ck_assert_int_eq(pipe(to), 0);
	ck_assert_int_eq(pipe(from), 0);
	(void)fflush(NULL);
	actor->pid = fork();
	ck_assert_int_ge(actor->pid, 0);
	if (actor->pid == 0)
		become(rig, environment, to, from);
	(void)close(to[0]);
	(void)close(from[1]);
	/* The next actor must not keep this one's input open. */
	(void)fcntl(to[1], F_SETFD, FD_CLOEXEC);
	(void)fcntl(from[0], F_SETFD, FD_CLOEXEC);
	actor->to = to[1];
	actor->from = fdopen(from[0], "r");
	ck_assert_ptr_nonnull(actor->from);
	/* It ends when its input does. */
	actor_hear(actor, line, sizeof line);
	ck_assert_str_eq(line, "ok");
}

static void tell(struct actor *actor, const char *format, va_list values)
{
	char line[512];
	int length = vsnprintf(line, sizeof line - 1, format, values);

	line[length++] = '\n';
	ck_assert_int_eq(write(actor->to, line, (size_t)length), length);
}

void actor_tell(struct actor *actor, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	tell(actor, format, values);
	va_end(values);
}

void actor_hear(struct actor *actor, char *line, size_t size)
{
	ck_assert_msg(fgets(line, (int)size, actor->from) != NULL, "the actor has ended");
	line[strcspn(line, "\n")] = '\0';
}

long long actor_ask(struct actor *actor, const char *format, ...)
{
	char line[512];
	va_list values;

	va_start(values, format);
	tell(actor, format, values);
	va_end(values);
	actor_hear(actor, line, sizeof line);
	return strtoll(line, NULL, 10);
}

void actor_kill(struct actor *actor)
{
	(void)kill(actor->pid, SIGKILL);
	ck_assert_int_eq(waitpid(actor->pid, NULL, 0), actor->pid);
	(void)fclose(actor->from);
	(void)close(actor->to);
	actor->pid = 0;
}

void actor_end(struct actor *actor)
{
	int status;

	(void)close(actor->to);
	ck_assert_int_eq(waitpid(actor->pid, &status, 0), actor->pid);
	ck_assert_int_eq(status, 0);
	(void)fclose(actor->from);
	actor->pid = 0;
}
