/* The mail of loops: see mail.h. */
#include "tools/weekwheel-sessiond/server/mail.h"

#include <stdlib.h>

#include "tools/weekwheel-sessiond/server/reply.h"

static _Thread_local struct loop *here;

struct loop *mail_here(void)
{
	return here;
}

void mail_begin_here(struct loop *loop)
{
	here = loop;
}

int mail_arrival(struct loop *loop, const struct arrival *arrival)
{
	int is_taken;

	pthread_mutex_lock(&loop->lock);
	if (loop->arrived_count == loop->arrived_room) {
		size_t room = loop->arrived_room ? 2 * loop->arrived_room : 64;
		struct arrival *arrived = realloc(loop->arrived, room * sizeof *arrived);
		if (arrived) {
			loop->arrived = arrived;
			loop->arrived_room = room;
		}
	}
	is_taken = loop->arrived_count < loop->arrived_room && !loop->is_stopping;
	if (is_taken)
		loop->arrived[loop->arrived_count++] = *arrival;
	pthread_mutex_unlock(&loop->lock);
	uv_async_send(&loop->wake);
	return is_taken ? 0 : -1;
}

void mail_post(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (conn->is_mailed)
		return;
	conn->is_mailed = 1;
	SLIST_INSERT_HEAD(&loop->mailed, conn, mailed);
	loop->has_mail = 1;
	uv_async_send(&loop->wake);
}

void mail_take(struct loop *loop)
{
	struct conn *conn;

	if (!loop->has_mail)
		return;
	pthread_mutex_lock(&loop->lock);
	loop->has_mail = 0;
	while ((conn = SLIST_FIRST(&loop->mailed))) {
		SLIST_REMOVE_HEAD(&loop->mailed, mailed);
		conn->is_mailed = 0;
		if (conn->is_killed || conn->life >= CONN_DEAD || conn->out.size + conn->mail.size > MAIL_MAX ||
		    buffer_append(&conn->out, conn->mail.data, conn->mail.size) != 0)
			conn_fail(conn);
		buffer_drop(&conn->mail, conn->mail.size);
		reply_flush(conn);
	}
	pthread_mutex_unlock(&loop->lock);
}

void mail_check_tokens(struct sessiond *server)
{
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		pthread_mutex_lock(&loop->lock);
		loop->is_to_check = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}

void mail_stop(struct sessiond *server)
{
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		pthread_mutex_lock(&loop->lock);
		loop->is_stopping = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}
