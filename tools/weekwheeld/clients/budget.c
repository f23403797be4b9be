/*
 * Divides a turn among the connections, so that none holds up the others: each has a share of its time and of its
 * commands. What it has not done by then it goes on with in the next turn, behind those that came before it.
 */
#include "tools/weekwheeld/clients/clients.h"

enum {
	TURN_NS = 2000000,      /* what connections take of a turn together */
	SHARE_LEAST_NS = 20000, /* what one takes at least, so that all of them get on */
	SHARE_BYTES = 262144,   /* of answers */
	SHARE_COMMANDS = 1000   /* also if a clock stands still */
};

void budget_turn(struct server *server)
{
	server->turn.number++;
	server->turn.spent = 0;
	server->turn.bytes = 0;
}

void budget_begin(struct connection *connection)
{
	struct server *server = connection->server;
	uint64_t left = server->turn.spent < TURN_NS ? TURN_NS - server->turn.spent : 0;
	uint64_t share = left / (1 + server->clients->resuming);

	if (connection->share.turn != server->turn.number)
		connection->share = (struct share){
		    .turn = server->turn.number, .commands = SHARE_COMMANDS, .unsent = connection->stream.out.size};
	connection->share.begun = uv_hrtime();
	connection->share.ends = connection->share.begun + (share > SHARE_LEAST_NS ? share : SHARE_LEAST_NS);
}

int budget_take(struct connection *connection)
{
	struct share *share = &connection->share;

	if (share->commands == 0)
		return 0;
	/* The first command of a turn is carried out in any case. To send large answers takes time as well. */
	if (share->commands < SHARE_COMMANDS &&
	    (uv_hrtime() >= share->ends || connection->stream.out.size >= share->unsent + SHARE_BYTES))
		return 0;
	share->commands--;
	return 1;
}

void budget_end(struct connection *connection)
{
	connection->server->turn.spent += uv_hrtime() - connection->share.begun;
}

void budget_note(struct server *server, uint64_t *since)
{
	uint64_t now = uv_hrtime();

	server->turn.spent += now - *since;
	*since = now;
}

int budget_is_spent(const struct server *server)
{
	return server->turn.spent >= TURN_NS;
}
