/* Makes the maps and the loops, runs the loops, and takes everything down again. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/net/address.h"
#include "tools/service/state/notify.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/events.h"
#include "tools/weekwheel-sessiond/http/http.h"
#include "tools/weekwheel-sessiond/keep/keep.h"
#include "tools/weekwheel-sessiond/script/script.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/mail.h"

/* An image is written when the journal has become so large, and larger than the image. */
#define GROWS (UINT64_C(64) << 20)

static void on_signal(uv_signal_t *handle, int number)
{
	struct sessiond *server = handle->data;

	if (number == SIGHUP) {
		certificate_reload(&server->certificate);
		auth_reload(server);
		return;
	}
	notify_stop();
	mail_stop(server);
}

static void start_signals(struct sessiond *server)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uv_signal_init(&server->loop[0].uv, &server->signals[i]);
		server->signals[i].data = server;
		uv_signal_start(&server->signals[i], on_signal, numbers[i]);
	}
}

static int start_data(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	struct data_config config = {.databases = (unsigned)settings->databases,
	    .lifetime = settings->lifetime,
	    .has_lifetimes = settings->has_lifetimes,
	    .keeps_lifetimes = settings->keeps_lifetimes,
	    .stays_ended = settings->stays_ended,
	    .memory = settings->memory,
	    .policy = (enum data_policy)settings->policy,
	    .is_virtual = settings->is_virtual,
	    .gone = event_gone,
	    .context = server};
	int error = data_open(&server->data, &config);

	return error == WW_OK ? 0 : message_error("cannot make the maps of sessions: %s", ww_strerror(error));
}

static int start_outbox(struct sessiond *server)
{
	/* Without --expired-to, the load reports what an earlier server could not deliver. */
	server->outbox = outbox_open(server->settings->reporting.max);
	return server->outbox ? 0 : message_error("no memory");
}

static int64_t wall_ms(void *context, int64_t ms)
{
	return data_steady_to_wall_ms(context, ms);
}

static int start_courier(struct sessiond *server)
{
	const struct letter_form form = {.wall_ms = wall_ms, .context = server->data};

	if (!server->settings->reporting.is_reporting)
		return 0;
	server->courier = courier_start(server->outbox, &form, &server->settings->reporting.courier);
	return server->courier ? 0 : -1;
}

static int start_keep(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;

	const struct keep_config config = {.folder = settings->folder,
	    .sync = (enum keep_sync)settings->sync,
	    .interval = settings->sync_interval,
	    .grows = GROWS,
	    .downtime_max = (int64_t)(settings->max_downtime / WW_MILLISECOND),
	    .knows_downtime = settings->is_ahead_given,
	    .outbox = server->outbox,
	    .reports = settings->reporting.is_reporting,
	    .recovers = settings->recovers,
	    .takes_stale = settings->takes_stale};

	if (!settings->folder)
		return 0;
	server->keep = keep_open(server->data, &config);
	return server->keep ? 0 : -1;
}

/* With --clock virtual:SECONDS, let the time pass that went by while nobody served. */
static int pass_ahead(struct sessiond *server)
{
	uint64_t ahead = server->settings->ahead;

	return ahead == 0 || data_advance(server->data, ahead) == WW_OK
	           ? 0
	           : message_error("the virtual clock cannot be set ahead so far");
}

static int start_loops(struct sessiond *server)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned count = server->settings->threads ? (unsigned)server->settings->threads
	                 : processors < 1          ? 1
	                 : processors > LOOPS_MAX  ? LOOPS_MAX
	                                           : (unsigned)processors;

	server->loop = aligned_alloc(64, count * sizeof *server->loop);
	if (!server->loop)
		return message_error("no memory");
	for (; server->loop_count < count; server->loop_count++) {
		struct loop *loop = &server->loop[server->loop_count];
		*loop = (struct loop){0};
		if (loop_start(server, loop, server->loop_count) != 0)
			return -1;
	}
	return 0;
}

static int start(struct sessiond *server)
{
	uint64_t random[3] = {0};

	unsigned events = 0;

	(void)listen_raise_limit();
	commands_start();
#ifdef HAVE_LUA
	script_start();
#endif
	if (server->settings->events &&
	    events_read(server->settings->events, strlen(server->settings->events), &events) == 0)
		events_set(events);
	(void)uv_random(NULL, NULL, random, sizeof random, 0, NULL);
	(void)snprintf(server->run_id, sizeof server->run_id, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32, random[0],
	    random[1], (uint32_t)random[2]);
	auth_start(server);
	crowd_begin(&server->crowd, "max-connections-per-address", server->settings->max_per_address);
	certificate_start(&server->certificate, &server->settings->tls, server->settings->certificate);
	if (listen_check_files() != 0 || start_outbox(server) != 0 || start_data(server) != 0 ||
	    start_keep(server) != 0 || start_courier(server) != 0 || start_loops(server) != 0 ||
	    pass_ahead(server) != 0)
		return -1;
	/* A script that waits for the line "listening" may end the server at once. */
	start_signals(server);
	if (reporter_start(&server->reporter, &server->loop[0].uv) != 0 || http_start(server) != 0 ||
	    doors_start(server) != 0)
		return -1;
	server->started_ms = data_steady_ms(server->data);
	notify_start(&server->loop[0].uv, &server->watchdog);
	return 0;
}

static void *run_thread(void *loop)
{
	loop_run(loop);
	return NULL;
}

/* Loop 0 is this thread's. */
static int run(struct sessiond *server)
{
	unsigned running = 1;

	while (running < server->loop_count &&
	       pthread_create(&server->loop[running].thread, NULL, run_thread, &server->loop[running]) == 0)
		running++;
	if (running < server->loop_count) {
		server->failed = 1;
		message_error("cannot start a thread for each loop: give fewer --threads");
		mail_stop(server);
	}
	loop_run(&server->loop[0]);
	for (unsigned i = 1; i < running; i++)
		pthread_join(server->loop[i].thread, NULL);
	return server->failed;
}

int sessiond_run(const struct sessiond_settings *settings)
{
	struct sessiond *server = calloc(1, sizeof *server);
	int status = 1;

	if (!server)
		return message_error("no memory") != 0;
	server->settings = settings;
	if (start(server) == 0) {
		status = run(server);
	} else {
		listen_stop(&server->listening);
		http_stop(server);
		reporter_stop();
	}
	courier_stop(server->courier);
	if (keep_close(server->keep) != 0)
		status = 1;
	state_finish();
	data_close(server->data);
	outbox_close(server->outbox);
	for (unsigned i = 0; i < server->loop_count; i++)
		loop_free(&server->loop[i]);
	free(server->loop);
#ifdef HAVE_LUA
	script_stop();
#endif
	certificate_stop(&server->certificate);
	access_stop(&server->access);
	free(server);
	return status;
}
