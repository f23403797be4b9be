/* Writes a job as a line of JSON. */
#include <inttypes.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/weekwheel/store/line.h"

static void write_seconds(FILE *out, const char *name, uint64_t ns)
{
	char text[DURATION_TEXT];

	fprintf(out, ", \"%s\": %s", name, duration_seconds(text, ns));
}

static void write_count(FILE *out, const char *name, uint64_t count)
{
	fprintf(out, ", \"%s\": %" PRIu64, name, count);
}

static void write_which(FILE *out, const struct ww_job_info *info)
{
	fprintf(out, "{\"id\": %" PRIu64 ", \"tube\": ", info->id);
	json_write_string(out, info->tube, strlen(info->tube));
	fputs(", \"key\": ", out);
	if (info->key_length)
		json_write_base64(out, info->key, info->key_length);
	else
		fputs("null", out);
	fprintf(out, ", \"state\": \"%s\"", info->state == WW_JOB_BURIED ? "buried" : "waiting");
}

static void write_when(FILE *out, const struct ww_job_info *info, int64_t shift)
{
	static const char *const missed[] = {"once", "all", "skip"};
	int is_wall = (info->flags & WW_JOB_WALL) != 0;

	fprintf(out, ", \"clock\": \"%s\"", is_wall ? "wall" : "elapsed");
	write_seconds(out, "due", is_wall ? info->due : info->due + (uint64_t)shift);
	/* For a reserved job info->left is the time of its lease. */
	write_seconds(out, "left", info->state == WW_JOB_DELAYED ? info->left : 0);
	write_seconds(out, "period", info->period);
	fprintf(out, ", \"missed\": \"%s\"", missed[info->missed <= WW_MISSED_SKIP ? info->missed : 0]);
	write_seconds(out, "skip", info->skip);
}

void line_write(FILE *out, const struct ww_job_info *info, int64_t shift)
{
	write_which(out, info);
	write_when(out, info, shift);
	write_count(out, "priority", info->priority);
	write_seconds(out, "run", info->run);
	write_count(out, "attempts", info->attempts);
	write_seconds(out, "backoff", info->backoff);
	write_seconds(out, "backoff_max", info->backoff_max);
	write_seconds(out, "delay", info->delay);
	write_seconds(out, "created", info->created);
	write_count(out, "version", info->version);
	write_count(out, "reserves", info->reserves);
	write_count(out, "timeouts", info->timeouts);
	write_count(out, "releases", info->releases);
	write_count(out, "buries", info->buries);
	write_count(out, "kicks", info->kicks);
	fputs(", \"error\": ", out);
	json_write_string(out, info->error, strlen(info->error));
	fputs(", \"body\": ", out);
	json_write_base64(out, info->body, info->body_length);
	fputs("}\n", out);
}
