/* HTTP in a server's own loop: see web.h. */
#include "tools/service/http/web.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/service/http/framing.h"
#include "tools/service/http/gate.h"
#include "tools/service/http/recv.h"
#include "tools/service/http/reply.h"
#include "tools/service/net/address.h"
#include "tools/service/net/relay.h"
#include "tools/service/state/handles.h"

/*
 * Clients that leave keep their connections for a moment. An accepted client can then send its request before enough
 * others come to take its place.
 */
enum {
	CONNECTIONS_MAX = 2 * VISITORS_MAX,
	PLACES_MIN = 4,
	PART = 8, /* of all files; the others are for clients of the protocol */
	HANDLES = 3
};

struct web {
	struct web_config config;
	uv_loop_t *loop;
	struct MHD_Daemon *daemon;
	struct visitors visitors;
	struct relays relays; /* of connections that have TLS */
	uv_poll_t poll;
	uv_timer_t timer; /* a slow client has to leave */
	uv_idle_t again;  /* it wants to be run again at once */
	int closed;       /* how many of the handles */
};

/* ---- Who visits */

/* Path segments are split before they are decoded, so libmicrohttpd must not decode. */
static size_t keep_encoded(void *context, struct MHD_Connection *client, char *text)
{
	(void)context;
	(void)client;
	return strlen(text);
}

static void deferred_end(struct web_visit *visit)
{
	(void)visit;
}

/*
 * libmicrohttpd closes the connection of a request that is answered when only its head is known, and takes no answer while
 * a body comes. Its last call comes when all of the request is there, and what answers at once waits for that.
 */
static struct web_visit deferred = {NULL, NULL, deferred_end};
static struct web_visit deferred_with_body = {NULL, NULL, deferred_end};

static int is_answered_at_once(const struct web_config *config, const char *path, const char *method)
{
	return !config->takes_bodies(config->context, path) &&
	       (strcmp(method, MHD_HTTP_METHOD_GET) == 0 || strcmp(method, MHD_HTTP_METHOD_HEAD) == 0);
}

static int was_looked_at(const struct web *web, struct MHD_Connection *client)
{
	struct visitor *visitor = visitors_find(&web->visitors, reply_descriptor(client));

	return visitor && head_take(&visitor->head);
}

static enum MHD_Result web_serve(void *context, struct MHD_Connection *client, const char *path, const char *method,
    const char *version, const char *data, size_t *size, void **state)
{
	struct web *web = context;
	struct web_visit *visit = *state;
	const struct web_config *config = &web->config;
	char room[FRAMING_HOST];
	const char *host;
	const char *wrong;

	if (visit && visit->go_on)
		return visit->go_on(visit, data, size);
	if (visit && *size > 0) {
		*state = &deferred_with_body;
		*size = 0;
		return MHD_YES;
	}
	wrong = framing_read(client, version, &path, &host, room);
	if (!visit && !was_looked_at(web, client))
		wrong = "nobody has looked at this head: HTTP is not for this libmicrohttpd\n";
	if (!wrong && !visit && is_answered_at_once(config, path, method)) {
		*state = &deferred;
		return MHD_YES;
	}
	*state = NULL;
	visitors_note(&web->visitors, reply_descriptor(client), 1, uv_now(web->loop));
	if (wrong)
		return reply_last(client, MHD_HTTP_BAD_REQUEST, wrong);
	if (!gate_is_ours(config->hosts, config->host_count, host))
		return reply_text(client, MHD_HTTP_MISDIRECTED_REQUEST,
		    "this server does not have this name: use its address, or start it with --http-host NAME\n");
	return config->begin(
	    config->context, client, path, method, visit == &deferred_with_body, (struct web_visit **)state);
}

static void web_completed(
    void *context, struct MHD_Connection *client, void **state, enum MHD_RequestTerminationCode how)
{
	struct web *web = context;
	struct web_visit *visit = *state;

	(void)how;
	if (visit)
		visit->end(visit);
	*state = NULL;
	visitors_note(&web->visitors, reply_descriptor(client), 0, uv_now(web->loop));
}

static void web_notified(
    void *context, struct MHD_Connection *client, void **state, enum MHD_ConnectionNotificationCode code)
{
	struct web *web = context;

	(void)state;
	if (code == MHD_CONNECTION_NOTIFY_CLOSED)
		visitors_leave(&web->visitors, reply_descriptor(client));
}

static void web_enter(struct web *web, int fd, const struct sockaddr *peer)
{
	socklen_t size = peer->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

	if (visitors_enter(&web->visitors, fd, peer, uv_now(web->loop)) != 0)
		(void)close(fd);
	else if (MHD_add_connection(web->daemon, fd, peer, size) != MHD_YES)
		visitors_leave(&web->visitors, fd);
}

void web_owe(struct web *web, struct MHD_Connection *client, const struct buffer *buffer)
{
	visitors_owe(&web->visitors, reply_descriptor(client), buffer_takes(buffer));
}

int web_is_leaving(struct web *web, struct MHD_Connection *client)
{
	return visitors_is_leaving(&web->visitors, reply_descriptor(client));
}

void web_note(struct web *web, struct MHD_Connection *client)
{
	visitors_note(&web->visitors, reply_descriptor(client), 1, uv_now(web->loop));
}

struct visitors *web_visitors(struct web *web)
{
	return &web->visitors;
}

static unsigned files_each(const struct web *web)
{
	return address_is_tls(web->config.where) ? RELAY_FILES : 1;
}

unsigned web_files(const struct web *web)
{
	return web->visitors.places * files_each(web);
}

/* ---- In the loop */

/* Run libmicrohttpd, and wake when a slow client has to leave. */
static void web_run(struct web *web);

static void web_timer(uv_timer_t *timer)
{
	web_run(timer->data);
}

static void web_again(uv_idle_t *idle)
{
	web_run(idle->data);
}

/*
 * libmicrohttpd has work but no event on its sockets. Run it in the loop's next turn: a 0 ms timer restarted by its
 * own callback would run before the loop looks at other clients.
 */
static void go_on_soon(struct web *web)
{
	uv_idle_start(&web->again, web_again);
}

static void web_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	web_run(poll->data);
}

static void web_run(struct web *web)
{
	MHD_UNSIGNED_LONG_LONG wait;
	int64_t slow;

	uv_update_time(web->loop);
	slow = visitors_sweep(&web->visitors, uv_now(web->loop));
	recv_look_at(&web->visitors);
	(void)MHD_run(web->daemon);
	recv_look_at(NULL);
	if (MHD_get_timeout(web->daemon, &wait) != MHD_YES)
		wait = UINT64_MAX;
	if (wait == 0) {
		go_on_soon(web);
		return;
	}
	uv_idle_stop(&web->again);
	if (slow >= 0 && (uint64_t)slow < wait)
		wait = (uint64_t)slow;
	if (wait != UINT64_MAX)
		uv_timer_start(&web->timer, web_timer, wait, 0);
	else
		uv_timer_stop(&web->timer);
}

/* Without threads of its own, libmicrohttpd has nothing to wake the loop with. */
void web_resume(struct web *web, struct web_visit *visit)
{
	MHD_resume_connection(visit->client);
	go_on_soon(web);
}

void web_admit(struct web *web, int fd, const struct sockaddr *peer, int is_tls)
{
	if (is_tls)
		fd = relay_begin(&web->relays, fd);
	if (fd >= 0)
		web_enter(web, fd, peer);
	/* Others may come with it. */
	go_on_soon(web);
}

static void web_came(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	struct web *web = context;
	const struct web_config *config = &web->config;

	if (!config->divert || !config->divert(config->context, fd, peer, is_tls))
		web_admit(web, fd, peer, is_tls);
}

/* ---- Beginning and end */

static struct MHD_Daemon *daemon_start(struct web *web)
{
	struct MHD_Daemon *daemon =
	    MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
	        web_serve, web, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_NOTIFY_COMPLETED,
	        web_completed, web, MHD_OPTION_NOTIFY_CONNECTION, web_notified, web, MHD_OPTION_UNESCAPE_CALLBACK,
	        keep_encoded, NULL, MHD_OPTION_END);

	if (!daemon)
		message_error("cannot serve HTTP: no memory");
	return daemon;
}

static unsigned count_places(const struct web *web)
{
	struct rlimit files = {0, 0};

	(void)getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur /= PART * files_each(web);
	if (files.rlim_cur >= VISITORS_MAX)
		return VISITORS_MAX;
	return files.rlim_cur > PLACES_MIN ? (unsigned)files.rlim_cur : PLACES_MIN;
}

/* Returns 0, or -1 after a message. */
static int handles_start(struct web *web)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	if (!info || uv_poll_init(web->loop, &web->poll, info->epoll_fd) != 0)
		return handles_not_made();
	uv_timer_init(web->loop, &web->timer);
	uv_idle_init(web->loop, &web->again);
	web->poll.data = web->timer.data = web->again.data = web;
	uv_poll_start(&web->poll, UV_READABLE, web_readable);
	return 0;
}

static void web_closed(uv_handle_t *handle)
{
	struct web *web = handle->data;

	if (++web->closed < HANDLES)
		return;
	visitors_end(&web->visitors);
	free(web);
}

void web_stop(struct web *web)
{
	uv_close((uv_handle_t *)&web->poll, web_closed);
	uv_close((uv_handle_t *)&web->timer, web_closed);
	uv_close((uv_handle_t *)&web->again, web_closed);
	MHD_stop_daemon(web->daemon);
	relay_stop(&web->relays);
	listen_stop(web->config.listening);
}

struct web *web_start(uv_loop_t *loop, const struct web_config *config)
{
	struct web *web = calloc(1, sizeof *web);

	if (!web) {
		message_error("no memory");
		return NULL;
	}
	web->config = *config;
	web->loop = loop;
	web->relays = (struct relays){.loop = loop, .shakes = config->shakes, .certificate = config->certificate};
	visitors_begin(&web->visitors, count_places(web));
	web->daemon = daemon_start(web);
	if (!web->daemon) {
		visitors_end(&web->visitors);
		free(web);
		return NULL;
	}
	if (handles_start(web) != 0) {
		MHD_stop_daemon(web->daemon);
		visitors_end(&web->visitors);
		free(web);
		return NULL;
	}
	web->config.listen.where = &web->config.where;
	web->config.listen.count = 1;
	web->config.listen.is_http = 1;
	web->config.listen.each = files_each(web);
	web->config.listen.came = web_came;
	web->config.listen.context = web;
	if (listen_start(config->listening, loop, &web->config.listen) == 0)
		return web;
	web_stop(web);
	return NULL;
}
