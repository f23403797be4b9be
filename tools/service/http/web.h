#ifndef TOOLS_SERVICE_HTTP_WEB_H
#define TOOLS_SERVICE_HTTP_WEB_H

/*
 * HTTP in a server's own loop, by libmicrohttpd. This part admits and removes visitors (visitors.h). The server
 * answers requests:
 *
 *     listener -> [ relay: TLS ] -> visitors -> libmicrohttpd -> Host -> begin -> visit: go_on ... end
 *
 * All calls are made in the loop's thread.
 */

#include <microhttpd.h>
#include <stddef.h>
#include <uv.h>

#include "tools/common/buffer.h"
#include "tools/service/http/visitors.h"
#include "tools/service/net/certificate.h"
#include "tools/service/net/listen.h"
#include "tools/service/net/shake.h"

/*
 * A request under way: how it continues when more of its body has come, or when its answer is known, and how it ends.
 */
struct web_visit {
	struct MHD_Connection *client;
	enum MHD_Result (*go_on)(struct web_visit *visit, const char *data, size_t *size);
	void (*end)(struct web_visit *visit);
};

/*
 * A request has begun. Its path is still encoded. A GET or HEAD of a path that takes no bodies is complete; has_body
 * says whether it had one. To answer later, store in *visit what to call then.
 */
typedef enum MHD_Result web_begin_fn(void *context, struct MHD_Connection *client, const char *path, const char *method,
    int has_body, struct web_visit **visit);

/* What it points to must outlive the call of web_start. */
struct web_config {
	const char *where;               /* HOST:PORT, or tls:HOST:PORT */
	struct listening *listening;     /* the loop closes its handles after web_stop */
	struct listen_config listen;     /* risk, has_tokens, has_trusted, passing: see listen.h */
	struct shakes *shakes;           /* with TLS: of the loop */
	struct certificate *certificate; /* and the server's */
	const char *const *hosts;        /* names of this server, beside its addresses (gate.h) */
	size_t host_count;
	int (*takes_bodies)(void *context, const char *path);
	web_begin_fn *begin;
	/* A client has come. Return 1 to take it; web_admit may give it back. NULL: all are let in. */
	int (*divert)(void *context, int fd, const struct sockaddr *peer, int is_tls);
	void *context; /* for all three */
};

struct web;

/* Serve. Returns NULL after a message. */
struct web *web_start(uv_loop_t *loop, const struct web_config *config);

/* End all requests, and close the handles: it is freed when the loop has gone on. */
void web_stop(struct web *web);

/* Let in a client that was diverted. */
void web_admit(struct web *web, int fd, const struct sockaddr *peer, int is_tls);

/* The answer of a suspended request is known: resume it in the loop's next turn. */
void web_resume(struct web *web, struct web_visit *visit);

/* Report how many bytes this client sends or is sent. The one with the most can be made to leave. */
void web_owe(struct web *web, struct MHD_Connection *client, const struct buffer *buffer);

/* Return 1 if the client has to leave: what it still sends is useless. */
int web_is_leaving(struct web *web, struct MHD_Connection *client);

/* The client has read a part of its answer: its time begins anew. */
void web_note(struct web *web, struct MHD_Connection *client);

struct visitors *web_visitors(struct web *web);

/* Return how many descriptors its clients may take. */
unsigned web_files(const struct web *web);

#endif
