#ifndef TOOLS_WEEKWHEEL_EXPIRER_EXPIRER_H
#define TOOLS_WEEKWHEEL_EXPIRER_EXPIRER_H

/* The program as a whole: a loop for signals and HTTP, and the masters with their threads. */

#include <uv.h>

#include "tools/service/access/access.h"
#include "tools/service/census/view.h"
#include "tools/service/http/site.h"
#include "tools/service/net/certificate.h"
#include "tools/service/net/shake.h"
#include "tools/service/state/reporter.h"
#include "tools/weekwheel-expirer/ends/ends.h"
#include "tools/weekwheel-expirer/settings.h"

struct expirer {
	const struct expirer_settings *settings;
	uv_loop_t loop;
	uv_signal_t signals[3];
	uv_timer_t watchdog;
	uv_async_t wake;      /* for another turn */
	uv_prepare_t prepare; /* between turns */
	struct shakes shakes;
	struct reporter reporter;
	struct access access;
	struct certificate certificate;
	struct web_site site;
	struct viewer *view; /* NULL: nothing is served */
	struct ends *ends;   /* NULL: nobody is told */
	struct expirer_masters *masters;
	uint64_t started; /* ns */
};

/* ---- run.c */

/* Serve until a signal ends it. Returns the exit status. */
int expirer_run(const struct expirer_settings *settings);

/* ---- numbers.c: health and metrics, and all that is served */

/* The numbers of all nodes. */
struct all_numbers {
	struct node_numbers *of;
	size_t count;
};

/* Returns 0, or -1 without memory. The caller frees them. */
int numbers_read_all(struct expirer_masters *masters, struct all_numbers *all);

int numbers_start(struct expirer *expirer);
void numbers_stop(struct expirer *expirer);

/* ---- page.c: for a census (census.h), and the routes of the page (view.h) */

void page_walk(void *context, struct takes *takes);
uint64_t page_now(void *context);
enum MHD_Result page_stats(const struct site_request *request);
enum MHD_Result page_forecast(const struct site_request *request);
enum MHD_Result page_sessions(const struct site_request *request);
enum MHD_Result page_key(const struct site_request *request);

#endif
