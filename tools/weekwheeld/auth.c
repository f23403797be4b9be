/* Who may: turns away what does not belong here, and says so in the log. */
#include "tools/weekwheeld/auth.h"

#include "tools/weekwheeld/server.h"
#include "tools/weekwheeld/settings/address.h"

static const char *client_name(const struct connection *connection, char name[ADDRESS_TEXT])
{
	struct sockaddr_storage address = {0};
	int size = sizeof address;

	if (connection->io.handle.type != UV_TCP ||
	    uv_tcp_getpeername(&connection->io.tcp, (struct sockaddr *)&address, &size) != 0)
		return "a Unix socket";
	address_show((struct sockaddr *)&address, name);
	return name;
}

/* ---- Other protocols */

void auth_foreign(struct connection *connection)
{
	char name[ADDRESS_TEXT];

	state_seen("foreign",
	    "clients that speak HTTP or TLS to the port of the protocol are closed, as a web page may make a browser do; the "
	    "first came from %s",
	    client_name(connection, name));
	connection_close(connection);
}
