/* The program weekwheel-expirer. */
#include "tools/common/message.h"
#include "tools/common/program.h"
#include "tools/weekwheel-expirer/expirer.h"

int main(int count, char **arguments)
{
	static struct expirer_settings settings;
	int status;

	program_begin("weekwheel-expirer", PROGRAM_CHILDLESS);
	message_form = message_form_found();
	status = expirer_settings_read(&settings, arguments + (count > 0));
	return status != 0 ? status - 1 : expirer_run(&settings);
}
