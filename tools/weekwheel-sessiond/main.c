/* The program weekwheel-sessiond. */
#include <signal.h>

#include "tools/common/message.h"
#include "tools/weekwheel-sessiond/serve.h"

int main(int count, char **arguments)
{
	static struct sessiond_settings settings;
	int status;

	/* A write to a client that has left fails with an error instead. */
	signal(SIGPIPE, SIG_IGN);
	message_program = "weekwheel-sessiond";
	message_form = message_form_found();
	status = sessiond_settings_read(&settings, arguments + (count > 0));
	return status != 0 ? status - 1 : sessiond_run(&settings);
}
