/* The program weekwheeld. */
#include <signal.h>

#include "tools/weekwheeld/server.h"

int main(int count, char **arguments)
{
	static struct settings settings;
	int status;

	/* A write to a client that has left fails with an error instead. */
	signal(SIGPIPE, SIG_IGN);
	message_program = "weekwheeld";
	status = settings_read(&settings, arguments + (count > 0));
	return status != 0 ? status - 1 : server_run(&settings);
}
