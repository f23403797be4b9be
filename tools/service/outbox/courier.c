/* The thread that reports expiries to another server: see courier.h. */
#include "tools/service/outbox/courier.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/base/random.h"
#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/state/state.h"
#include "weekwheel/error.h"

enum {
	FLIGHT_MAX = 256,
	FLIGHT_BYTES = 256 * 1024, /* when stopping: items from here on are not sent */
	CONNECT_MS = 5000,
	TIMEOUT_MS = 10000, /* for an answer */
	REST_LEAST_MS = 100,
	REST_MOST_MS = 10000
};

struct courier {
	struct outbox *outbox;
	const struct courier_config *config;
	struct letter_form form;
	pthread_t thread;
	int wake;                /* an eventfd */
	_Atomic int64_t stop_by; /* ms of the monotonic clock; 0: it is not stopping */
	struct beanstalk link;
	struct buffer body;
	unsigned flight;
	int64_t answer_by;
	int64_t rest_until; /* 0: it does not rest */
	int rest_ms;
	uint64_t random;
};

static void wake(void *context)
{
	struct courier *courier = context;
	uint64_t one = 1;

	(void)!write(courier->wake, &one, sizeof one);
}

/* ---- Failures */

/* Wait before the next attempt: twice as long each time, and shorter by chance, so that many servers do not come at once. */
static void rest(struct courier *courier)
{
	int ms = courier->rest_ms ? courier->rest_ms : REST_LEAST_MS;

	courier->rest_until = time_ms() + ms - (int)random_below(&courier->random, (uint64_t)ms / 2);
	courier->rest_ms = 2 * ms < REST_MOST_MS ? 2 * ms : REST_MOST_MS;
}

static void fail(struct courier *courier, const char *reason)
{
	state_begin("expired-to", 0, "expiries wait to be reported: %s: %s", courier->config->address.server, reason);
	rest(courier);
}

static void lose(struct courier *courier, const char *reason)
{
	beanstalk_close(&courier->link);
	outbox_recall(courier->outbox);
	courier->flight = 0;
	fail(courier, reason);
}

static void recover(struct courier *courier)
{
	state_end("expired-to", "expiries are reported to %s again", courier->config->address.server);
}

/* ---- Answers */

/* The answers that make an item wait, and what they mean. */
static const struct {
	const char *word;
	const char *meaning;
} refusals[] = {
    {"DRAINING", "it takes no new jobs until its restart (DRAINING)"},
    {"OUT_OF_MEMORY", "it is out of memory, or its disk is full (OUT_OF_MEMORY)"},
    {"INTERNAL_ERROR", "it could not write the job: see its log (INTERNAL_ERROR)"},
    {"DENIED", "its token does not grant the right to put into the tube (DENIED)"},
    {"BAD_FORMAT",
        "it refuses the job: a tube that it delivers over HTTP takes only requests; name another (BAD_FORMAT)"},
};

static int is_word(const char *line, const char *word)
{
	size_t length = strlen(word);

	return strncmp(line, word, length) == 0 && (line[length] == 0 || line[length] == ' ');
}

/* The job is there, by this or an earlier put. A buried one is there, too. */
static int is_taken(const char *line)
{
	static const char *const words[] = {"INSERTED", "KEPT", "ENDED", "REPLACED", "BURIED"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (is_word(line, words[i]))
			return 1;
	return 0;
}

static void answered(struct courier *courier, enum outbox_answer answer)
{
	courier->flight--;
	courier->answer_by = time_ms() + TIMEOUT_MS;
	if (outbox_answered(courier->outbox, answer))
		state_seen("expired-too-big", "%s refuses a job as long as a key: the key's expiry is not reported",
		    courier->config->address.server);
}

/* Returns 0, or -1 if the line answers no put. */
static int judge(struct courier *courier, const char *line)
{
	if (courier->flight == 0)
		return -1;
	if (is_taken(line)) {
		if (is_word(line, "BURIED"))
			state_seen("expired-buried",
			    "%s has buried what it was told, for lack of memory: \"kick\" brings it back",
			    courier->config->address.server);
		answered(courier, OUTBOX_DELIVERED);
		courier->rest_ms = 0;
		recover(courier);
		return 0;
	}
	if (is_word(line, "JOB_TOO_BIG")) {
		answered(courier, OUTBOX_TOO_BIG);
		return 0;
	}
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (is_word(line, refusals[i].word)) {
			answered(courier, OUTBOX_AGAIN);
			if (!courier->rest_until)
				fail(courier, refusals[i].meaning);
			return 0;
		}
	return -1;
}

static void receive(struct courier *courier)
{
	char line[BEANSTALK_LINE];
	int got;

	errno = 0;
	if (channel_pull(&courier->link.channel) != 0) {
		lose(courier, errno ? strerror(errno) : "it has closed the connection");
		return;
	}
	while ((got = beanstalk_line(&courier->link, line)) == 1)
		if (judge(courier, line) != 0)
			break;
	if (got != 0)
		lose(courier, "its answer is none to a put: is this the port of another server?");
}

/* ---- Sending */

static int send_one(struct courier *courier, const struct outbox_item *item)
{
	char id[LETTER_ID];

	buffer_drop(&courier->body, courier->body.size);
	if (letter_write(&courier->body, item, &courier->form) != 0)
		return -1;
	return beanstalk_put(&courier->link, letter_id(item, &courier->form, id), &courier->body);
}

/* Take what fits, note it in the journal, and send it. */
static void send_more(struct courier *courier)
{
	struct outbox_item item;
	unsigned before = courier->flight;
	int bad = 0;

	while (!bad && courier->flight < FLIGHT_MAX && courier->link.channel.out.size < FLIGHT_BYTES &&
	       outbox_take(courier->outbox, &item)) {
		courier->flight++;
		bad = send_one(courier, &item);
	}
	if (bad) {
		lose(courier, "there is no memory to send it");
		return;
	}
	if (courier->flight > before) {
		courier->answer_by = time_ms() + TIMEOUT_MS;
		if (outbox_settle(courier->outbox) != WW_OK)
			lose(courier, "the journal cannot be written");
	} else if (courier->flight == 0) {
		(void)outbox_settle(courier->outbox);
	}
}

static void connect_again(struct courier *courier)
{
	const struct courier_config *config = courier->config;
	char reason[BEANSTALK_REASON];

	if (beanstalk_open(&courier->link, &config->address, &config->tls, config->token, CONNECT_MS, reason) != 0) {
		fail(courier, reason);
		return;
	}
	recover(courier);
}

static void send_bytes(struct courier *courier)
{
	errno = 0;
	if (courier->link.channel.fd >= 0 && channel_push(&courier->link.channel) != 0)
		lose(courier, errno ? strerror(errno) : "the connection is lost");
}

/* ---- The thread */

static int64_t earlier(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* Sleep until an item comes, or one is due. */
static void sleep_on(struct courier *courier)
{
	struct pollfd both[2] = {{courier->wake, POLLIN, 0}, {courier->link.channel.fd, POLLIN, 0}};
	int64_t until = earlier(courier->rest_until, courier->flight ? courier->answer_by : 0);
	int64_t now = time_ms();
	uint64_t count;

	until = earlier(until, courier->stop_by);
	if (channel_is_pending(&courier->link.channel))
		both[1].events |= POLLOUT;
	(void)poll(both, 2, until == 0 ? -1 : until <= now ? 0 : (int)(until - now));
	if (both[0].revents)
		(void)!read(courier->wake, &count, sizeof count);
	if (both[1].revents & ~POLLOUT)
		receive(courier);
}

/* A courier that is stopping does not wait for the other server to return. */
static int is_over(struct courier *courier)
{
	struct outbox_stats stats;

	if (!courier->stop_by)
		return 0;
	outbox_stats(courier->outbox, &stats);
	return stats.waiting == 0 || time_ms() >= courier->stop_by || (courier->rest_until && !courier->flight);
}

static void turn(struct courier *courier)
{
	int64_t now = time_ms();

	if (courier->rest_until && now >= courier->rest_until)
		courier->rest_until = 0;
	if (courier->flight && now >= courier->answer_by)
		lose(courier, "it does not answer");
	/* Items that wait for long have meanwhile been journaled. */
	if (courier->link.channel.fd < 0)
		(void)outbox_settle(courier->outbox);
	if (courier->link.channel.fd < 0 && !courier->rest_until)
		connect_again(courier);
	if (courier->link.channel.fd >= 0 && !courier->rest_until)
		send_more(courier);
	send_bytes(courier);
}

static void *run(void *context)
{
	struct courier *courier = context;

	do {
		turn(courier);
		if (!is_over(courier))
			sleep_on(courier);
	} while (!is_over(courier));
	beanstalk_close(&courier->link);
	outbox_recall(courier->outbox);
	(void)outbox_settle(courier->outbox);
	return NULL;
}

/* ---- Beginning and end */

struct courier *courier_start(
    struct outbox *outbox, const struct letter_form *form, const struct courier_config *config)
{
	struct courier *courier = calloc(1, sizeof *courier);

	if (!courier) {
		message_error("no memory");
		return NULL;
	}
	courier->outbox = outbox;
	courier->config = config;
	courier->form = *form;
	courier->link.channel.fd = -1;
	courier->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (getrandom(&courier->random, sizeof courier->random, GRND_NONBLOCK) != (ssize_t)sizeof courier->random)
		courier->random = time_now(CLOCK_MONOTONIC);
	outbox_set_wake(outbox, wake, courier);
	if (courier->wake >= 0 && pthread_create(&courier->thread, NULL, run, courier) == 0)
		return courier;
	message_error("--expired-to: cannot start the thread that reports expiries: %s", strerror(errno));
	outbox_set_wake(outbox, NULL, NULL);
	if (courier->wake >= 0)
		(void)close(courier->wake);
	free(courier);
	return NULL;
}

static void log_what_is_left(struct courier *courier)
{
	struct outbox_stats stats;

	outbox_stats(courier->outbox, &stats);
	if (stats.waiting == 0)
		return;
	if (outbox_has_journal(courier->outbox))
		message_info(
		    "%" PRIu64
		    " expiries could not be reported to %s yet: they are kept, and reported after the next start",
		    stats.waiting, courier->config->address.server);
	else
		message_warning(
		    "%" PRIu64 " expiries could not be reported to %s: they are lost; --data keeps them over a restart",
		    stats.waiting, courier->config->address.server);
}

void courier_stop(struct courier *courier)
{
	if (!courier)
		return;
	courier->stop_by = time_ms() + COURIER_STOP_MS;
	wake(courier);
	pthread_join(courier->thread, NULL);
	outbox_set_wake(courier->outbox, NULL, NULL);
	log_what_is_left(courier);
	buffer_free(&courier->body);
	(void)close(courier->wake);
	free(courier);
}
