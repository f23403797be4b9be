#ifndef TOOLS_WEEKWHEELD_ENGINE_FACE_H
#define TOOLS_WEEKWHEELD_ENGINE_FACE_H

/*
 * The faces of the server, which clients see: the protocol and HTTP. Both stand above what they share, the write of a turn
 * and the bounds of memory, which know a face by its functions alone.
 */

#include <stddef.h>
#include <stdint.h>

struct server;

/* The client of a face whose buffers take most. */
struct face_client {
	size_t bytes;
	void *client; /* what the face knows it by */
};

struct face {
	/* The turn's write has been committed, or `error` says why not: answers that wait for it are sent, or become errors. */
	void (*settle)(struct server *server, int error);

	/* Return the bytes that its clients take beside their buffers. NULL: none that count. */
	uint64_t (*takes)(const struct server *server);

	/* Return the bytes of buffers that closed clients still take. NULL: none. */
	uint64_t (*going)(const struct server *server);

	/* Return the client with the most, other than the one that is spared. */
	struct face_client (*worst)(const struct server *server, const void *spared);

	/* Take its body or its connection from that client. */
	void (*end)(struct server *server, void *client);
};

#endif
