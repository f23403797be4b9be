/* Reads a limit from a line of JSON, and writes one. */
#include "tools/weekwheel/store/limit_line.h"

#include <inttypes.h>
#include <string.h>

#include "tools/common/base64.h"
#include "tools/common/duration.h"
#include "tools/common/json.h"
#include "tools/common/number.h"

void limit_line_write(FILE *out, const struct ww_limit_info *info)
{
	const struct ww_limit *limit = &info->limit;
	char text[DURATION_TEXT];

	fprintf(out, "{\"limit\": \"%s\", \"tube\": ",
	    info->ref.group_length ? "group"
	    : info->ref.each       ? "each"
	                           : "tube");
	json_write_string(out, info->ref.tube, strlen(info->ref.tube));
	if (info->ref.group_length) {
		fputs(", \"group\": ", out);
		json_write_base64(out, info->ref.group, info->ref.group_length);
	}
	fprintf(out, ", \"running\": %" PRIu64 ", \"starts\": %" PRIu64 ", \"per\": %s, \"burst\": %" PRIu64 "}\n",
	    limit->running, limit->starts, duration_seconds(text, limit->per), limit->burst);
}

int limit_line_is(const char *text, size_t size)
{
	struct json_value name;
	struct json_value value;
	size_t at = 0;

	return json_next(text, size, &at, &name, &value) > 0 && json_is(name, "limit");
}

static int read_count(const char *text, size_t size, const char *name, uint64_t most, uint64_t *number)
{
	struct json_value value = json_member(text, size, name);

	if (value.kind == JSON_NONE)
		return 0;
	return value.kind == JSON_NUMBER ? number_whole(value.text, value.size, 0, most, number) : -1;
}

static int read_group(struct limit_line *line, struct json_value value)
{
	long length = -1;

	if (value.kind == JSON_STRING && value.size <= (WW_JOB_GROUP_MAX + 2) / 3 * 4)
		length = base64_decode(line->group, value.text, value.size);
	line->group_length = length > 0 ? (size_t)length : 0;
	return length > 0 && length <= WW_JOB_GROUP_MAX ? 0 : -1;
}

const char *limit_line_read(struct limit_line *line, const char *text, size_t size)
{
	struct json_value whose = json_member(text, size, "limit");
	struct json_value tube = json_member(text, size, "tube");
	struct json_value per = json_member(text, size, "per");

	memset(line, 0, sizeof *line);
	(void)ww_jobs_limit_default(&line->limit);
	line->is_each = json_is(whose, "each");
	if (!line->is_each && !json_is(whose, "tube") && !json_is(whose, "group"))
		return "expected \"tube\", \"each\" or \"group\" as 'limit'";
	if (tube.kind != JSON_STRING || json_decode(tube, line->tube, sizeof line->tube) || !line->tube[0])
		return "expected the name of a tube, of 1 to 200 bytes in UTF-8, as 'tube' of a limit";
	if (json_is(whose, "group") && read_group(line, json_member(text, size, "group")))
		return "expected 1 to 200 bytes in base64 as 'group' of a limit";
	if (read_count(text, size, "running", UINT64_MAX, &line->limit.running) ||
	    read_count(text, size, "starts", UINT64_MAX, &line->limit.starts) ||
	    read_count(text, size, "burst", WW_LIMIT_BURST_MAX, &line->limit.burst) || !line->limit.burst)
		return "expected whole numbers as 'running', 'starts' and 'burst' of a limit, the last from 1 to 1000000";
	if (per.kind != JSON_NONE &&
	    (per.kind != JSON_NUMBER || number_seconds(per.text, per.size, 7 * 24 * 3600, &line->limit.per)))
		return "expected seconds from 0.001 to 604800 as 'per' of a limit";
	if (line->limit.per < WW_MILLISECOND || line->limit.starts > line->limit.per / 1000)
		return "expected a limit of at most a million starts a second, and 'per' from 0.001 to 604800";
	return NULL;
}
