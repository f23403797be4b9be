/* Divides handshakes among turns: see shake.h. */
#include "tools/service/net/shake.h"

#include <stddef.h>
#include <uv.h>

enum { SHAKES_NS = 1000000 };

void shakes_begin(struct shakes *shakes, void (*wake)(void *context), void *context)
{
	STAILQ_INIT(&shakes->waiting);
	shakes->wake = wake;
	shakes->context = context;
}

void shake_wait(struct shakes *shakes, struct shake *shake)
{
	if (shake->is_waiting)
		return;
	shake->is_waiting = 1;
	STAILQ_INSERT_TAIL(&shakes->waiting, shake, next);
	shakes->wake(shakes->context);
}

void shake_leave(struct shakes *shakes, struct shake *shake)
{
	if (!shake->is_waiting)
		return;
	shake->is_waiting = 0;
	STAILQ_REMOVE(&shakes->waiting, shake, shake, next);
}

void shake_turn(struct shakes *shakes)
{
	uint64_t begun = uv_hrtime();
	struct shake *shake;

	while ((shake = STAILQ_FIRST(&shakes->waiting)) != NULL) {
		shake_leave(shakes, shake);
		shake->go_on(shake);
		if (uv_hrtime() - begun >= SHAKES_NS)
			break;
	}
	if (!STAILQ_EMPTY(&shakes->waiting))
		shakes->wake(shakes->context);
}
