/* Commands about the connection and the server. */
#include <stdio.h>

#include "tools/weekwheel-sessiond/commands.h"
#include "weekwheel/version.h"

void command_ping(struct request *request)
{
	if (request->count > 2)
		reply_error(request->conn, "ERR wrong number of arguments for 'ping' command");
	else if (request->count == 2)
		reply_bulk(request->conn, request->arg[1].data, request->arg[1].size);
	else
		reply_text(request->conn, "+PONG\r\n");
}

void command_info(struct request *request)
{
	struct buffer text = {0};

	(void)buffer_format(&text, "# Server\r\nredis_version:7.0.15\r\nweekwheel_version:%s\r\n", ww_version());
	(void)buffer_format(
	    &text, "\r\n# Keyspace\r\ndb0:keys=%llu\r\n", (unsigned long long)data_count(request->data, 0));
	reply_verbatim(request->conn, text.data, text.size);
	buffer_free(&text);
}
