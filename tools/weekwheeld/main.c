/* The program weekwheeld. */
#include "tools/common/program.h"
#include "tools/common/tls/tls.h"
#include "tools/weekwheeld/run.h"

/*
 * For jemalloc: give unused memory back within a second instead of ten. A burst of puts takes and frees some megabytes
 * each time that the index takes jobs over.
 */
extern const char *malloc_conf;
const char *malloc_conf = "dirty_decay_ms:1000,muzzy_decay_ms:0";

int main(int count, char **arguments)
{
	static struct settings settings;
	int status;

	program_begin("weekwheeld", PROGRAM_CHILDLESS);
	tls_count_memory();
	message_form = message_form_found();
	status = settings_read(&settings, arguments + (count > 0));
	return status != 0 ? status - 1 : server_run(&settings);
}
