/* Takes the samples that the command top shows. */
#include <string.h>

#include "tools/weekwheel/jobs/fields.h"
#include "tools/weekwheel/jobs/top.h"

static int read_server(struct jobs *jobs, struct top_sample *sample)
{
	struct reply reply;
	const char *text;
	size_t size;

	if (client_expect(&jobs->client, &reply, "OK", "top", "stats"))
		return -1;
	text = reply.body;
	size = reply.body_size;
	tube_fill(&sample->all, &reply);
	field_text(text, size, "version", sample->all.name, sizeof sample->all.name);
	field_text(text, size, "oldest-ready", sample->oldest, sizeof sample->oldest);
	sample->uptime = field_whole(text, size, "uptime");
	sample->workers = field_whole(text, size, "current-workers");
	return 0;
}

int top_sample(struct jobs *jobs, struct top_sample *sample, struct top_wheels *wheels)
{
	memset(sample, 0, sizeof *sample);
	sample->taken = client_now();
	if (read_server(jobs, sample) || tubes_read(jobs, &sample->tubes))
		return -1;
	wheels->overdue = sample->all.ready;
	wheels->reserved = sample->all.reserved;
	return top_wheels_read(jobs, wheels);
}

void top_sample_free(struct top_sample *sample)
{
	tubes_free(&sample->tubes);
}
