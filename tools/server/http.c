/* HTTP: numbers for Prometheus, whether it lives, and read-only JSON. */
#include "server.h"

int http_start(struct server *server)
{
	if (!server->settings->http)
		return 0;
	server_say("--http: this build has no libmicrohttpd; install libmicrohttpd-dev and configure again");
	return -1;
}

void http_stop(struct server *server)
{
	(void)server;
}
