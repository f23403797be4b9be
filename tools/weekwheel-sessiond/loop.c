/* A loop: its turns, and what it does with its mail. */
#include <stdlib.h>

#include "tools/common/message.h"
#include "tools/service/state/handles.h"
#include "tools/service/state/state.h"
#include "tools/weekwheel-sessiond/http/http.h"
#include "tools/weekwheel-sessiond/input.h"
#include "tools/weekwheel-sessiond/script/script.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/mail.h"

/* How long a client without a token may stay, and how often that is checked. */
enum { LOGIN_MS = 30000, SWEEP_MS = 2000 };

static void stop_here(struct loop *loop)
{
	struct conn *conn;

	loop->is_over = 1;
	conn_send_all(loop);
	if (loop->number == 0) {
		listen_stop(&loop->server->listening);
		http_stop(loop->server);
		reporter_stop();
	}
	while ((conn = LIST_FIRST(&loop->conns)))
		conn_close(conn);
	handles_close(&loop->uv);
}

/* Close a client whose token has changed: it may be subscribed to channels that only its former rights allowed. */
static void check_tokens(struct loop *loop)
{
	struct conn *next;

	for (struct conn *conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		next = LIST_NEXT(conn, next);
		if (!access_renew(&loop->server->access, &conn->auth))
			conn_close(conn);
	}
}

static void woken(uv_async_t *async)
{
	struct loop *loop = async->data;
	struct arrival arrival;
	unsigned notices = 0;

	mail_take(loop);
	while (mail_next(loop, &arrival, &notices))
		conn_begin(loop, &arrival);
	if (notices & MAIL_CHECK_TOKENS)
		check_tokens(loop);
	if (notices & MAIL_STOP)
		stop_here(loop);
}

/* ---- Turns */

static void turn_end(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;

	loop->is_long = 0;
	loop->turn_bytes = 0;
	shake_turn(&loop->shakes);
	if (!SLIST_EMPTY(&loop->flush))
		conn_send_all(loop);
	conn_keep_bounds(loop);
}

static void take_another_turn(void *context)
{
	struct loop *loop = context;

	uv_async_send(&loop->wake);
}

/* Close clients that send no token, or do not finish the handshake of TLS. */
static void sweep(uv_timer_t *timer)
{
	struct loop *loop = timer->data;
	uint64_t now = uv_now(&loop->uv);
	struct conn *next;

	for (struct conn *conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		int is_in = conn->auth.is_known && (!conn->stream.tls || tls_is_ready(conn->stream.tls));
		next = LIST_NEXT(conn, next);
		if (is_in || now - conn->since_ms < LOGIN_MS)
			continue;
		state_seen("tokens",
		    "clients that say no token, or do not finish the handshake of TLS, for %d s are closed",
		    LOGIN_MS / 1000);
		conn_close(conn);
	}
}

int loop_start(struct sessiond *server, struct loop *loop, unsigned number)
{
	loop->server = server;
	loop->number = number;
	pthread_mutex_init(&loop->lock, NULL);
	if (uv_loop_init(&loop->uv) != 0)
		return handles_not_made();
	if (uv_async_init(&loop->uv, &loop->wake, woken) != 0) {
		handles_end(&loop->uv);
		pthread_mutex_destroy(&loop->lock);
		return handles_not_made();
	}
	uv_prepare_init(&loop->uv, &loop->prepare);
	uv_prepare_start(&loop->prepare, turn_end);
	loop->prepare.data = loop->wake.data = loop->sweep.data = loop;
	walks_start(&loop->walks, &loop->uv, input_go_on);
	shakes_begin(&loop->shakes, take_another_turn, loop);
	uv_timer_init(&loop->uv, &loop->sweep);
	if (access_is_needed(&server->access) || server->settings->tls.certificate)
		uv_timer_start(&loop->sweep, sweep, SWEEP_MS, SWEEP_MS);
	return 0;
}

void loop_run(struct loop *loop)
{
	mail_begin_here(loop);
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
	data_leave(loop->server->data);
}

void loop_free(struct loop *loop)
{
#ifdef HAVE_LUA
	script_leave(loop);
#endif
	handles_end(&loop->uv);
	pthread_mutex_destroy(&loop->lock);
	free(loop->mail.arrived);
}
