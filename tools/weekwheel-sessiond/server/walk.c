/* The turns of walks: see walk.h. */
#include "tools/weekwheel-sessiond/server/walk.h"

#include <stdlib.h>

#include "tools/weekwheel-sessiond/server/server.h"

static void walk_on(struct walks *walks, struct key_walk *walk)
{
	struct conn *conn = walk->conn;

	TAILQ_REMOVE(&walks->all, walk, next);
	TAILQ_INSERT_TAIL(&walks->all, walk, next);
	if (walk->take_piece(walk)) {
		walk_leave(conn);
		walks->go_on(conn);
	}
}

/* Many walks may only rest: those that together take no longer than a piece share a turn. */
static void take_turn(uv_idle_t *idle)
{
	struct walks *walks = idle->data;
	uint64_t end = uv_hrtime() + WALK_PIECE;

	do {
		if (TAILQ_EMPTY(&walks->all)) {
			uv_idle_stop(idle);
			return;
		}
		walk_on(walks, TAILQ_FIRST(&walks->all));
	} while (uv_hrtime() < end);
}

void walks_start(struct walks *walks, uv_loop_t *uv, void (*go_on)(struct conn *conn))
{
	TAILQ_INIT(&walks->all);
	walks->go_on = go_on;
	uv_idle_init(uv, &walks->more);
	walks->more.data = walks;
}

static int is_rested(struct key_walk *walk)
{
	(void)walk;
	return 1;
}

int walk_rest(struct conn *conn)
{
	return walk_do(conn, is_rested);
}

int walk_do(struct conn *conn, int (*take_piece)(struct key_walk *walk))
{
	struct key_walk *walk = malloc(sizeof *walk);

	if (!walk)
		return -1;
	*walk = (struct key_walk){.conn = conn, .take_piece = take_piece};
	walk_begin(walk);
	return 0;
}

void walk_begin(struct key_walk *walk)
{
	struct walks *walks = &walk->conn->loop->walks;

	walk->conn->walk = walk;
	TAILQ_INSERT_TAIL(&walks->all, walk, next);
	uv_idle_start(&walks->more, take_turn);
}

void walk_leave(struct conn *conn)
{
	struct key_walk *walk = conn->walk;

	if (!walk)
		return;
	conn->walk = NULL;
	TAILQ_REMOVE(&conn->loop->walks.all, walk, next);
	if (walk->leave)
		walk->leave(walk);
	free(walk);
}
