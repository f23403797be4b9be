#ifndef TOOLS_SERVICE_HTTP_REPLY_H
#define TOOLS_SERVICE_HTTP_REPLY_H

/* Answers by HTTP. Parts that are not sent yet take memory of the server. */

#include <microhttpd.h>

#include "tools/common/buffer.h"

#define REPLY_TEXT "text/plain; charset=utf-8"

/* Answer with the body, which becomes empty, and with a field of the head unless its name is NULL. type NULL: no type. */
enum MHD_Result reply_with(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body,
    const char *name, const char *value);

enum MHD_Result reply_body(struct MHD_Connection *client, unsigned status, const char *type, struct buffer *body);

enum MHD_Result reply_text(struct MHD_Connection *client, unsigned status, const char *text);

/* And close the connection. */
enum MHD_Result reply_last(struct MHD_Connection *client, unsigned status, const char *text);

/* Answer with a file that stays in memory, which a browser may use as the policy says (Content-Security-Policy). */
enum MHD_Result reply_file(
    struct MHD_Connection *client, const char *type, const char *data, size_t size, const char *policy);

/* The client may try again after this many seconds. */
enum MHD_Result reply_later(struct MHD_Connection *client, unsigned seconds, const char *text);

int reply_descriptor(struct MHD_Connection *client);

#endif
