/* The program weekwheel-sessiond. */
#include "tools/common/message.h"
#include "tools/common/program.h"
#include "tools/weekwheel-sessiond/serve.h"

int main(int count, char **arguments)
{
	static struct sessiond_settings settings;
	int status;

	program_begin("weekwheel-sessiond", PROGRAM_CHILDLESS);
	message_form = message_form_found();
	status = sessiond_settings_read(&settings, arguments + (count > 0));
	return status != 0 ? status - 1 : sessiond_run(&settings);
}
