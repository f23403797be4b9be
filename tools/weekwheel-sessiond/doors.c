/* Lets clients in, or turns them away when there are too many, and hands them to the loops in turn. */
#include <unistd.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/serve.h"
#include "tools/weekwheel-sessiond/server/mail.h"

static const char too_many[] = "-ERR max number of clients reached\r\n";

/* Returns 0, or -1 if there are too many clients, or too many of its address. */
static int let_in(struct sessiond *server, const struct sockaddr *peer, struct crowd_address **place)
{
	if (server->clients >= server->settings->clients_max || crowd_enter(&server->crowd, peer, place) != 0)
		return -1;
	server->clients++;
	server->clients_total++;
	message_debug("a client has connected, %u in all", (unsigned)server->clients);
	return 0;
}

void doors_let_out(struct sessiond *server, struct crowd_address *place)
{
	crowd_leave(&server->crowd, place);
	server->clients--;
	message_debug("a client has left, %u remain", (unsigned)server->clients);
}

static void came(void *context, int fd, const struct sockaddr *peer, int is_tls)
{
	struct sessiond *server = context;
	struct arrival arrival = {.fd = fd, .is_tls = is_tls};

	if (let_in(server, peer, &arrival.place) == 0) {
		if (mail_arrival(&server->loop[server->next_loop++ % server->loop_count], &arrival) == 0)
			return;
		doors_let_out(server, arrival.place);
	} else {
		server->refused++;
		if (!is_tls)
			(void)!write(fd, too_many, sizeof too_many - 1);
	}
	(void)close(fd);
}

int doors_start(struct sessiond *server)
{
	const struct sessiond_settings *settings = server->settings;
	const struct listen_config config = {.where = settings->listen,
	    .count = settings->listen_count,
	    .otherwise = "127.0.0.1:6380",
	    .unix_path = settings->unix_path,
	    .socket_mode = settings->socket_mode,
	    .socket_group = settings->socket_group,
	    .risk = settings->is_insecure ? "--insecure lets them in" : NULL,
	    .has_tokens = access_is_needed(&server->access),
	    .has_trusted = settings->tls.trusted != NULL,
	    .passing = "tokens and sessions",
	    .others = site_files(&server->site),
	    .came = came,
	    .context = server};

	return listen_start(&server->listening, &server->loop[0].uv, &config);
}
