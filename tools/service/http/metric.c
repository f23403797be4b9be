/* Lines for Prometheus: see metric.h. */
#include "tools/service/http/metric.h"

#include <stdio.h>
#include <string.h>

#include "tools/service/state/state.h"
#include "weekwheel/driver.h"
#include "weekwheel/version.h"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "GCC " __VERSION__
#endif

#define LLU unsigned long long

int metric_head(struct buffer *out, char whole[METRIC_NAME_MAX], const char *prefix, const char *name, const char *type,
    const char *help)
{
	char *dash;

	snprintf(whole, METRIC_NAME_MAX, "%s_%s%s", prefix, name, strcmp(type, "counter") == 0 ? "_total" : "");
	while ((dash = strchr(whole, '-')) != NULL)
		*dash = '_';
	return buffer_format(out, "# HELP %s %s\n# TYPE %s %s\n", whole, help, whole, type);
}

int metric_add(
    struct buffer *out, const char *prefix, const char *name, int is_counter, const char *help, uint64_t value)
{
	char whole[METRIC_NAME_MAX];

	return metric_head(out, whole, prefix, name, is_counter ? "counter" : "gauge", help) ||
	       buffer_format(out, "%s %llu\n", whole, (LLU)value);
}

int metric_add_seconds(
    struct buffer *out, const char *prefix, const char *name, int is_counter, const char *help, uint64_t ns)
{
	char whole[METRIC_NAME_MAX];

	return metric_head(out, whole, prefix, name, is_counter ? "counter" : "gauge", help) ||
	       buffer_format(out, "%s %llu.%09llu\n", whole, (LLU)(ns / WW_SECOND), (LLU)(ns % WW_SECOND));
}

/* Escape the bytes that would end the value. */
int metric_label(struct buffer *out, const char *name, const char *value)
{
	int bad = buffer_format(out, "%s=\"", name);

	for (; *value; value++)
		bad |= *value == '"' || *value == '\\' ? buffer_format(out, "\\%c", *value)
		       : *value == '\n'                ? buffer_append(out, "\\n", 2)
		                                       : buffer_append(out, value, 1);
	return bad | buffer_append(out, "\"", 1);
}

int metric_build(struct buffer *out, const char *prefix)
{
	char whole[METRIC_NAME_MAX];

	return metric_head(out, whole, prefix, "build-info", "gauge", "Always 1, with the version.") ||
	       buffer_format(out, "%s{version=\"%s\",compiler=\"%s\"} 1\n", whole, ww_version(), COMPILER);
}

/* ---- States */

struct state_lines {
	const char *prefix;
	struct buffer on;
	struct buffer begun;
	struct buffer seconds;
	int bad;
};

static int add_state_line(
    struct buffer *out, const char *prefix, const char *name, const char *key, uint64_t whole, unsigned thousandths)
{
	return buffer_format(out, "%s_%s{", prefix, name) || metric_label(out, "state", key) ||
	       buffer_format(out, "} %llu.%03u\n", (LLU)whole, thousandths);
}

static void add_state(const struct state_info *state, void *context)
{
	struct state_lines *lines = context;
	const char *prefix = lines->prefix;
	uint64_t ms = state_lasted(state);

	lines->bad |= add_state_line(&lines->on, prefix, "state", state->key, (uint64_t)state->is_on, 0) ||
	              add_state_line(&lines->begun, prefix, "state_begun_total", state->key, state->begun, 0) ||
	              add_state_line(
	                  &lines->seconds, prefix, "state_seconds_total", state->key, ms / 1000, (unsigned)(ms % 1000));
}

int metric_states(struct buffer *out, const char *prefix)
{
	struct state_lines lines = {.prefix = prefix};
	char whole[METRIC_NAME_MAX];
	int bad;

	state_each(add_state, &lines);
	bad = lines.bad ||
	      metric_head(out, whole, prefix, "state", "gauge",
	          "1: in this state something waits or is refused; the log has the details.") ||
	      buffer_append(out, lines.on.data, lines.on.size) ||
	      metric_head(out, whole, prefix, "state-begun", "counter", "How often the state has begun.") ||
	      buffer_append(out, lines.begun.data, lines.begun.size) ||
	      metric_head(out, whole, prefix, "state-seconds", "counter", "How long the state has lasted in all.") ||
	      buffer_append(out, lines.seconds.data, lines.seconds.size);
	buffer_free(&lines.on);
	buffer_free(&lines.begun);
	buffer_free(&lines.seconds);
	return bad;
}
