/* Divides handshakes among turns: see shake.h. */
#include "tools/weekwheeld/shake.h"

#include "tools/weekwheeld/server.h"

enum { SHAKES_NS = 1000000 };

void shake_wait(struct server *server, struct shake *shake)
{
	if (shake->is_waiting)
		return;
	shake->is_waiting = 1;
	STAILQ_INSERT_TAIL(&server->shakes, shake, next);
	turn_again(server);
}

void shake_leave(struct server *server, struct shake *shake)
{
	if (!shake->is_waiting)
		return;
	shake->is_waiting = 0;
	STAILQ_REMOVE(&server->shakes, shake, shake, next);
}

void shake_turn(struct server *server)
{
	uint64_t begun = uv_hrtime();
	struct shake *shake;

	while ((shake = STAILQ_FIRST(&server->shakes)) != NULL) {
		shake_leave(server, shake);
		shake->go_on(shake);
		if (uv_hrtime() - begun >= SHAKES_NS)
			break;
	}
	if (!STAILQ_EMPTY(&server->shakes))
		turn_again(server);
}
