/* The clocks of the server and the drivers that they move. Virtual clocks stand still until they are moved. */
#include "tools/weekwheeld/engine/server.h"

static int driver_make(struct ww_driver **driver, struct ww_clock *clock)
{
	struct ww_driver_config config;

	(void)ww_driver_config_default(&config);
	config.clock = clock;
	config.flags = WW_DRIVER_THREADLESS;
	return ww_driver_create(driver, &config);
}

/*
 * Virtual clocks begin at a whole second, so that jobs come due on a tick of the driver. Wall time begins now. Elapsed
 * time may begin anywhere, since the store's continues from the last run.
 */
int clock_start(struct server *server)
{
	int is_virtual = server->settings->is_virtual;
	uint64_t now = 0;
	int error = ww_clock_now(ww_clock_wall(), &now);

	if (is_virtual && error == WW_OK)
		error = ww_clock_virtual_create(&server->elapsed_clock, 0, NULL);
	if (is_virtual && error == WW_OK)
		error = ww_clock_virtual_create(&server->wall_clock, now - now % WW_SECOND, NULL);
	if (error == WW_OK)
		error = driver_make(&server->elapsed, is_virtual ? server->elapsed_clock : ww_clock_elapsed());
	if (error == WW_OK)
		error = driver_make(&server->wall, is_virtual ? server->wall_clock : ww_clock_wall());
	if (error != WW_OK)
		message_error("cannot make clocks and drivers: %s", ww_strerror(error));
	return error == WW_OK ? 0 : -1;
}

void clock_stop(struct server *server)
{
	(void)ww_driver_destroy(server->elapsed);
	(void)ww_driver_destroy(server->wall);
	(void)ww_clock_virtual_destroy(server->elapsed_clock);
	(void)ww_clock_virtual_destroy(server->wall_clock);
}

int clock_advance(struct server *server, uint64_t ns)
{
	int error = ww_clock_virtual_advance(server->elapsed_clock, ns);

	if (error == WW_OK)
		error = ww_clock_virtual_advance(server->wall_clock, ns);
	if (error == WW_OK)
		error = ww_driver_settle(server->elapsed);
	return error == WW_OK ? ww_driver_settle(server->wall) : error;
}

/* With virtual clocks, let the time pass that went by while the store was closed. */
int clock_pass_ahead(struct server *server)
{
	uint64_t ahead = server->settings->ahead;

	if (ahead == 0 || !server->elapsed_clock || clock_advance(server, ahead) == WW_OK)
		return 0;
	return message_error("the virtual clock cannot be set ahead so far");
}
