#ifndef TOOLS_SERVICE_HTTP_METRIC_H
#define TOOLS_SERVICE_HTTP_METRIC_H

/*
 * Lines for Prometheus. A name has dashes, which become underscores behind the server's prefix; a counter ends in
 * _total. Each function returns 0, or another number if there is no memory.
 */

#include <stdint.h>

#include "tools/common/buffer.h"

enum { METRIC_NAME_MAX = 64 };

/* Write the two lines before a metric, and its whole name to `whole`. type: "gauge", "counter" or "histogram". */
int metric_head(struct buffer *out, char whole[METRIC_NAME_MAX], const char *prefix, const char *name, const char *type,
    const char *help);

/* Write a metric with one value. */
int metric_add(
    struct buffer *out, const char *prefix, const char *name, int is_counter, const char *help, uint64_t value);
int metric_add_seconds(
    struct buffer *out, const char *prefix, const char *name, int is_counter, const char *help, uint64_t ns);

/* Write NAME="VALUE". */
int metric_label(struct buffer *out, const char *name, const char *value);

/* Write the version, and all states (state.h). */
int metric_build(struct buffer *out, const char *prefix);
int metric_states(struct buffer *out, const char *prefix);

#endif
