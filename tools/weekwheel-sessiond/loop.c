/* A loop: its turns, and the mail from other threads. */
#include <stdlib.h>

#include "tools/common/message.h"
#include "tools/service/state.h"
#include "tools/weekwheel-sessiond/bounds.h"
#include "tools/weekwheel-sessiond/http.h"

/* How long a client without a token may stay, and how often that is checked. */
enum { LOGIN_MS = 30000, SWEEP_MS = 2000 };

static _Thread_local struct loop *here;

struct loop *loop_here(void)
{
	return here;
}

/* ---- What other threads tell */

void loop_hand_over(struct loop *loop, const struct arrival *arrival)
{
	pthread_mutex_lock(&loop->lock);
	if (loop->arrived_count == loop->arrived_room) {
		size_t room = loop->arrived_room ? 2 * loop->arrived_room : 64;
		struct arrival *arrived = realloc(loop->arrived, room * sizeof *arrived);
		if (arrived) {
			loop->arrived = arrived;
			loop->arrived_room = room;
		}
	}
	if (loop->arrived_count < loop->arrived_room && !loop->is_stopping)
		loop->arrived[loop->arrived_count++] = *arrival;
	else
		doors_let_out(loop->server, arrival->fd, arrival->place);
	pthread_mutex_unlock(&loop->lock);
	uv_async_send(&loop->wake);
}

void loop_mail(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (conn->is_mailed)
		return;
	conn->is_mailed = 1;
	SLIST_INSERT_HEAD(&loop->mailed, conn, mailed);
	loop->has_mail = 1;
	uv_async_send(&loop->wake);
}

void loop_take_mail(struct loop *loop)
{
	struct conn *conn;

	if (!loop->has_mail)
		return;
	pthread_mutex_lock(&loop->lock);
	loop->has_mail = 0;
	while ((conn = SLIST_FIRST(&loop->mailed))) {
		SLIST_REMOVE_HEAD(&loop->mailed, mailed);
		conn->is_mailed = 0;
		if (conn->is_killed || conn->is_dead || conn->out.size + conn->mail.size > MAIL_MAX ||
		    buffer_append(&conn->out, conn->mail.data, conn->mail.size) != 0)
			conn->is_dead = 1;
		buffer_drop(&conn->mail, conn->mail.size);
		conn_flush(conn);
	}
	pthread_mutex_unlock(&loop->lock);
}

static void close_any(uv_handle_t *handle, void *context)
{
	(void)context;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void stop_here(struct loop *loop)
{
	struct conn *conn;

	loop->is_over = 1;
	conn_send_all(loop);
	if (loop->number == 0) {
		doors_stop(loop->server);
		http_stop(loop->server);
		teller_stop();
	}
	while ((conn = LIST_FIRST(&loop->conns)))
		conn_close(conn);
	uv_walk(&loop->uv, close_any, NULL);
}

static void woken(uv_async_t *async)
{
	struct loop *loop = async->data;
	int is_stopping;
	int is_to_check;

	loop_take_mail(loop);
	pthread_mutex_lock(&loop->lock);
	while (loop->arrived_count > 0) {
		struct arrival arrival = loop->arrived[--loop->arrived_count];
		pthread_mutex_unlock(&loop->lock);
		conn_begin(loop, &arrival);
		pthread_mutex_lock(&loop->lock);
	}
	is_stopping = loop->is_stopping;
	is_to_check = loop->is_to_check;
	loop->is_to_check = 0;
	pthread_mutex_unlock(&loop->lock);
	if (is_to_check)
		auth_check_all(loop);
	if (is_stopping)
		stop_here(loop);
}

void loop_check_all(struct sessiond *server)
{
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		pthread_mutex_lock(&loop->lock);
		loop->is_to_check = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}

void sessiond_stop(struct sessiond *server)
{
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		pthread_mutex_lock(&loop->lock);
		loop->is_stopping = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}

/* ---- Turns */

static void turn_end(uv_prepare_t *prepare)
{
	struct loop *loop = prepare->data;

	shake_turn(&loop->shakes);
	if (!SLIST_EMPTY(&loop->flush))
		conn_send_all(loop);
	bounds_keep(loop);
}

static void take_another_turn(void *context)
{
	struct loop *loop = context;

	uv_async_send(&loop->wake);
}

/* Whoever says no token, or does not finish the handshake of TLS. */
static void sweep(uv_timer_t *timer)
{
	struct loop *loop = timer->data;
	uint64_t now = uv_now(&loop->uv);
	struct conn *next;

	for (struct conn *conn = LIST_FIRST(&loop->conns); conn; conn = next) {
		int is_in = conn->is_known && (!conn->tls || tls_is_ready(conn->tls));
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
	if (uv_loop_init(&loop->uv) != 0 || uv_async_init(&loop->uv, &loop->wake, woken) != 0)
		return message_error("no event loop: the limit of open files (\"ulimit -n\") may be reached");
	uv_prepare_init(&loop->uv, &loop->prepare);
	uv_prepare_start(&loop->prepare, turn_end);
	loop->prepare.data = loop->wake.data = loop->sweep.data = loop;
	TAILQ_INIT(&loop->walks);
	uv_idle_init(&loop->uv, &loop->more);
	loop->more.data = loop;
	shakes_begin(&loop->shakes, take_another_turn, loop);
	uv_timer_init(&loop->uv, &loop->sweep);
	if (auth_is_needed(server) || server->settings->tls.certificate)
		uv_timer_start(&loop->sweep, sweep, SWEEP_MS, SWEEP_MS);
	return 0;
}

void loop_run(struct loop *loop)
{
	here = loop;
	(void)uv_run(&loop->uv, UV_RUN_DEFAULT);
	data_leave(loop->server->data);
}

void loop_free(struct loop *loop)
{
	(void)uv_loop_close(&loop->uv);
	pthread_mutex_destroy(&loop->lock);
	free(loop->arrived);
}
