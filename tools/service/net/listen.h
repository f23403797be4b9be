#ifndef TOOLS_SERVICE_NET_LISTEN_H
#define TOOLS_SERVICE_NET_LISTEN_H

/*
 * Listening for clients: on TCP, on a Unix socket, and on the sockets that systemd hands over. Each client that comes is a
 * descriptor, which does not block, for the server to keep. While there are no descriptors, clients wait in their listener,
 * and nobody looks at it for a moment.
 *
 * Idle clients must not take the descriptors that a journal needs. The highest numbers are therefore kept from them, and those
 * below from clients of the server's own protocol, for clients by HTTP:
 *
 *     0 ............................ | limit / 8, for HTTP | limit / 4, 64 at most | limit
 *       files, listeners, any client   files, HTTP           files
 *
 * All calls are made in the loop's thread.
 */

#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <uv.h>

struct listen_config {
	int is_http;              /* the option is --http, otherwise --listen */
	const char *const *where; /* HOST:PORT, or tls:HOST:PORT, of that option */
	size_t count;
	const char *otherwise; /* HOST:PORT: where to listen if nothing is set and nothing was handed over */
	const char *unix_path; /* NULL: no Unix socket */
	unsigned socket_mode;
	const char *socket_group; /* NULL: that of the server */

	const char *risk; /* the warning if other machines can connect; NULL: they may not, except with what follows */
	int has_tokens;
	int has_trusted;     /* clients are known by their TLS certificates */
	const char *passing; /* what would pass unencrypted, for messages */

	unsigned each;   /* how many descriptors a client takes: the one that is handed over, and others. 0: one */
	unsigned others; /* how many are kept from these clients for others (web_files) */
	unsigned most;   /* make room in the loop for this many clients in advance; 0: as they come */

	/* A client has come: close the descriptor when it goes. */
	void (*came)(void *context, int fd, const struct sockaddr *peer, int is_tls);
	void *context;
};

/* All zeros: not listening. */
struct listening {
	struct listen_config config;
	uv_loop_t *loop;
	int kept; /* descriptors from this number on are kept from clients */
	SLIST_HEAD(, listener) listeners;
	uv_timer_t again;     /* looks at the listeners again after a rest */
	uv_poll_t room;       /* never active */
	const char *bound;    /* a Unix socket that is removed at the end, or NULL */
	struct stat bound_as; /* what is there since */
	unsigned port;        /* of the first listener on TCP */
};

/* What `config` points to must outlive it. Returns 0, or -1 after a message; call listen_stop in either case. */
int listen_start(struct listening *listening, uv_loop_t *loop, const struct listen_config *config);

/*
 * Find where TCP is listened on, with TLS or not (-1: either): on an address that other machines reach, or else on one
 * that only this machine does.
 */
enum listen_reach { LISTEN_NOWHERE, LISTEN_HERE, LISTEN_BEYOND };
int listen_find(const struct listening *listening, int is_tls, struct sockaddr_storage *address);

/* Raise the limit of descriptors as far as possible, as each client takes one. Returns the limit. */
uint64_t listen_raise_limit(void);
/*
 * Whether a server finds files enough to begin with: where libuv finds none for what all its loops share, it aborts
 * without a word. Before the first loop. Returns 0, or -1 after a message.
 */
int listen_check_files(void);

/* Close the listeners; the loop closes the other handles. */
void listen_stop(struct listening *listening);

#endif
