/* Makes the loop and the masters, runs the loop, and takes both down again. */
#include <signal.h>
#include <stdlib.h>

#include "lib/base/time.h"
#include "tools/common/message.h"
#include "tools/service/net/listen.h"
#include "tools/service/state/handles.h"
#include "tools/service/state/notify.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-expirer/expirer.h"

static void on_signal(uv_signal_t *handle, int number)
{
	struct expirer *expirer = handle->data;

	if (number == SIGHUP) {
		certificate_reload(&expirer->certificate);
		(void)access_reload(&expirer->access);
		return;
	}
	notify_stop();
	numbers_stop(expirer);
	reporter_stop();
	handles_close(&expirer->loop);
}

static void start_signals(struct expirer *expirer)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		uv_signal_init(&expirer->loop, &expirer->signals[i]);
		expirer->signals[i].data = expirer;
		uv_signal_start(&expirer->signals[i], on_signal, numbers[i]);
	}
}

/* ---- Turns, for handshakes of TLS */

static void take_another_turn(void *context)
{
	uv_async_send(&((struct expirer *)context)->wake);
}

static void woken(uv_async_t *async)
{
	(void)async;
}

static void turn(uv_prepare_t *prepare)
{
	shake_turn(&((struct expirer *)prepare->data)->shakes);
}

static int start_loop(struct expirer *expirer)
{
	if (uv_async_init(&expirer->loop, &expirer->wake, woken) != 0)
		return handles_not_made();
	uv_prepare_init(&expirer->loop, &expirer->prepare);
	expirer->prepare.data = expirer;
	uv_prepare_start(&expirer->prepare, turn);
	shakes_begin(&expirer->shakes, take_another_turn, expirer);
	start_signals(expirer);
	return reporter_start(&expirer->reporter, &expirer->loop) == 0 ? 0 : handles_not_made();
}

/* ---- All of it */

static uint64_t now_ns(void *context)
{
	(void)context;
	return time_now(CLOCK_MONOTONIC);
}

static int start_masters(struct expirer *expirer)
{
	const struct expirer_settings *settings = expirer->settings;
	const struct ends_config ends = {
	    .options = &settings->reporting, .folder = settings->folder, .database = settings->database};
	struct masters_config masters = settings->masters;

	if (settings->reporting.is_reporting) {
		expirer->ends = ends_open(&ends, &masters.node.deadlines);
		if (!expirer->ends)
			return -1;
		masters.node.watch = ends_watch(expirer->ends);
	}
	expirer->masters = masters_start(&masters);
	return expirer->masters ? 0 : -1;
}

static int start(struct expirer *expirer)
{
	const struct expirer_settings *settings = expirer->settings;

	(void)listen_raise_limit();
	expirer->started = time_now(CLOCK_MONOTONIC);
	expirer->access.now = now_ns;
	access_start(&expirer->access, settings->auth_file, settings->tokens, NULL);
	certificate_start(&expirer->certificate, &settings->tls, settings->certificate);
	if (listen_check_files() != 0 || start_loop(expirer) != 0)
		return -1;
	if (start_masters(expirer) != 0 || numbers_start(expirer) != 0)
		return -1;
	notify_start(&expirer->loop, &expirer->watchdog);
	return 0;
}

int expirer_run(const struct expirer_settings *settings)
{
	struct expirer *expirer = calloc(1, sizeof *expirer);
	int status = 1;

	if (!expirer)
		return message_error("no memory") != 0;
	if (uv_loop_init(&expirer->loop) != 0) {
		free(expirer);
		return handles_not_made() != 0;
	}
	expirer->settings = settings;
	if (start(expirer) == 0) {
		(void)uv_run(&expirer->loop, UV_RUN_DEFAULT);
		status = 0;
	}
	numbers_stop(expirer);
	reporter_stop();
	masters_stop(expirer->masters);
	ends_close(expirer->ends);
	state_finish();
	handles_end(&expirer->loop);
	certificate_stop(&expirer->certificate);
	access_stop(&expirer->access);
	free(expirer);
	return status;
}
