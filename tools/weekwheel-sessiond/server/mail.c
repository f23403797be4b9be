/* The mail of loops: see mail.h. */
#include "tools/weekwheel-sessiond/server/mail.h"

#include <stdlib.h>

#include "tools/weekwheel-sessiond/server/reply.h"
#include "tools/weekwheel-sessiond/server/server.h"

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
	if (loop->mail.arrived_count == loop->mail.arrived_room) {
		size_t room = loop->mail.arrived_room ? 2 * loop->mail.arrived_room : 64;
		struct arrival *arrived = realloc(loop->mail.arrived, room * sizeof *arrived);
		if (arrived) {
			loop->mail.arrived = arrived;
			loop->mail.arrived_room = room;
		}
	}
	is_taken = loop->mail.arrived_count < loop->mail.arrived_room && !loop->mail.is_stopping;
	if (is_taken)
		loop->mail.arrived[loop->mail.arrived_count++] = *arrival;
	pthread_mutex_unlock(&loop->lock);
	uv_async_send(&loop->wake);
	return is_taken ? 0 : -1;
}

int mail_next(struct loop *loop, struct arrival *arrival, unsigned *notices)
{
	int is_there;

	pthread_mutex_lock(&loop->lock);
	is_there = loop->mail.arrived_count > 0;
	if (is_there) {
		*arrival = loop->mail.arrived[--loop->mail.arrived_count];
	} else {
		*notices = (loop->mail.is_stopping ? MAIL_STOP : 0) | (loop->mail.is_to_check ? MAIL_CHECK_TOKENS : 0);
		loop->mail.is_to_check = 0;
	}
	pthread_mutex_unlock(&loop->lock);
	return is_there;
}

void mail_post(struct conn *conn)
{
	struct loop *loop = conn->loop;

	if (conn->is_mailed)
		return;
	conn->is_mailed = 1;
	SLIST_INSERT_HEAD(&loop->mail.clients, conn, mailed);
	loop->mail.has_mail = 1;
	uv_async_send(&loop->wake);
}

void mail_take(struct loop *loop)
{
	struct conn *conn;

	if (!loop->mail.has_mail)
		return;
	pthread_mutex_lock(&loop->lock);
	loop->mail.has_mail = 0;
	while ((conn = SLIST_FIRST(&loop->mail.clients))) {
		SLIST_REMOVE_HEAD(&loop->mail.clients, mailed);
		conn->is_mailed = 0;
		if (conn->is_killed || conn->life >= CONN_DEAD || conn->stream.out.size + conn->mail.size > MAIL_MAX ||
		    buffer_append(&conn->stream.out, conn->mail.data, conn->mail.size) != 0)
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
		loop->mail.is_to_check = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}

void mail_stop(struct sessiond *server)
{
	for (unsigned i = 0; i < server->loop_count; i++) {
		struct loop *loop = &server->loop[i];
		pthread_mutex_lock(&loop->lock);
		loop->mail.is_stopping = 1;
		pthread_mutex_unlock(&loop->lock);
		uv_async_send(&loop->wake);
	}
}
