/* The turns of walks: see walk.h. */
#include "tools/weekwheel-sessiond/walk.h"

#include <stdlib.h>

#include "tools/weekwheel-sessiond/server.h"

static void take_turn(uv_idle_t *idle)
{
	struct loop *loop = idle->data;
	struct key_walk *walk = TAILQ_FIRST(&loop->walks);
	struct conn *conn;

	if (!walk) {
		uv_idle_stop(idle);
		return;
	}
	conn = walk->conn;
	TAILQ_REMOVE(&loop->walks, walk, next);
	TAILQ_INSERT_TAIL(&loop->walks, walk, next);
	if (walk->take_piece(walk)) {
		walk_leave(conn);
		conn_go_on(conn);
	}
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
	struct loop *loop = walk->conn->loop;

	walk->conn->walk = walk;
	TAILQ_INSERT_TAIL(&loop->walks, walk, next);
	uv_idle_start(&loop->more, take_turn);
}

void walk_leave(struct conn *conn)
{
	struct key_walk *walk = conn->walk;

	if (!walk)
		return;
	conn->walk = NULL;
	TAILQ_REMOVE(&conn->loop->walks, walk, next);
	if (walk->leave)
		walk->leave(walk);
	free(walk);
}
