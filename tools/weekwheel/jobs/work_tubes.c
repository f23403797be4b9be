/*
 * From which tubes a runner takes its next job. Without weights it watches all of them, and the server takes the job that
 * is first by priority. With weights a runner asks one tube after the other, in an order drawn by weight, and waits for
 * all of them only when each was empty.
 */
#include <inttypes.h>
#include <string.h>

#include "lib/base/random.h"
#include "tools/common/number.h"
#include "tools/weekwheel/jobs/work.h"

int work_take_tube(struct work *work, const struct options *options)
{
	struct work_tube *tube = &work->tubes[work->tube_count];
	size_t length = strcspn(options->value, "=");
	const char *weight = options->value + length;
	struct options name = *options;

	if (work->tube_count == WORK_TUBES_MAX)
		return options_fail(options, "--tube '%s': at most %d tubes", options->value, WORK_TUBES_MAX);
	tube->weight = 1;
	if (*weight &&
	    (length > WW_TUBE_MAX || number_whole(weight + 1, strlen(weight + 1), 1, 1000000, &tube->weight)))
		return options_bad_value(options, "tube", "a tube, or one with a weight from 1 on, such as mail=3");
	if (length <= WW_TUBE_MAX) {
		memcpy(tube->name, options->value, length);
		tube->name[length] = 0;
		name.value = tube->name;
	}
	if (jobs_tube(&work->jobs, &name))
		return OPTIONS_ERROR;
	for (size_t i = 0; i < work->tube_count; i++)
		if (strcmp(work->tubes[i].name, tube->name) == 0)
			return options_fail(options, "--tube '%s' is given twice", tube->name);
	work->has_weights |= *weight != 0;
	work->tube_count++;
	/* Messages name the tube if there is but one. */
	if (work->tube_count > 1)
		work->jobs.tube = NULL;
	return 0;
}

int work_watch(struct work *work, struct runner *runner)
{
	int keeps_default = work->tube_count == 0;
	struct reply reply;

	if (work->own && client_take_headers(&runner->client))
		return -1;
	if (work->has_code &&
	    client_expect(&runner->client, &reply, "CODE", "work: --code", "code %" PRIu64, work->code))
		return -1;
	for (size_t i = 0; i < work->tube_count; i++) {
		if (client_expect(&runner->client, &reply, "WATCHING", "work", "watch %s", work->tubes[i].name))
			return -1;
		keeps_default |= strcmp(work->tubes[i].name, "default") == 0;
		runner->watches[i] = 1;
	}
	runner->tried = 0;
	runner->skips = 0;
	return keeps_default ? 0 : client_expect(&runner->client, &reply, "WATCHING", "work", "ignore default");
}

/* Draw an order in which a tube comes first as often as its weight says. */
static void draw(struct work *work, struct runner *runner)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < work->tube_count; i++) {
		runner->order[i] = (unsigned char)i;
		sum += work->tubes[i].weight;
	}
	for (size_t i = 0; i + 1 < work->tube_count; i++) {
		uint64_t at = random_below(&work->seed, sum);
		unsigned char tube;
		size_t j = i;

		for (; at >= work->tubes[runner->order[j]].weight; j++)
			at -= work->tubes[runner->order[j]].weight;
		tube = runner->order[j];
		runner->order[j] = runner->order[i];
		runner->order[i] = tube;
		sum -= work->tubes[tube].weight;
	}
}

/* Queue what makes the runner watch this tube only, or for WORK_TUBES_MAX all. A client always watches one. */
static void watch_only(const struct work *work, struct runner *runner, size_t tube)
{
	for (int watch = 1; watch >= 0; watch--)
		for (size_t i = 0; i < work->tube_count; i++) {
			if ((tube == WORK_TUBES_MAX || tube == i) != watch || runner->watches[i] == watch)
				continue;
			client_line(&runner->client, "%s %s", watch ? "watch" : "ignore", work->tubes[i].name);
			runner->watches[i] = (unsigned char)watch;
			runner->skips++;
		}
}

int64_t work_ask(struct work *work, struct runner *runner)
{
	int is_last = !work->has_weights || runner->tried == work->tube_count;

	if (work->has_weights) {
		if (runner->tried == 0)
			draw(work, runner);
		watch_only(work, runner, is_last ? WORK_TUBES_MAX : runner->order[runner->tried]);
		runner->tried = is_last ? 0 : runner->tried + 1;
	}
	if (is_last && !work->drain) {
		/* A server that never answers must not look like one without jobs. */
		client_line(&runner->client, "reserve-with-timeout %d", WORK_WAIT_S);
		return WORK_WAIT_S * INT64_C(1000);
	}
	client_line(&runner->client, "reserve-with-timeout 0");
	return 0;
}

size_t work_look(struct work *work, struct runner *runner)
{
	size_t count = work->tube_count ? work->tube_count : 1;

	for (size_t i = 0; i < count; i++)
		client_line(&runner->client, "stats-tube %s", work->tube_count ? work->tubes[i].name : "default");
	return count;
}
