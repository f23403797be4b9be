/* What a request's head may not be: see framing.h. */
#include "tools/service/http/framing.h"

#include <string.h>
#include <strings.h>

struct framing_head {
	const char *wrong;
	int hosts;
	int lengths;
	int codings;
	int is_chunked;
};

static int is_name(const char *text, size_t size, const char *name)
{
	return size == strlen(name) && strncasecmp(text, name, size) == 0;
}

static int is_token(const char *text, size_t size)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < size; i++)
		if (!text[i] || !strchr(allowed, text[i]))
			return 0;
	return size > 0;
}

static enum MHD_Result look(
    void *context, enum MHD_ValueKind kind, const char *name, size_t size, const char *value, size_t length)
{
	struct framing_head *head = context;

	(void)kind;
	if (!is_token(name, size))
		head->wrong = "the name of a field is none\n";
	head->hosts += is_name(name, size, MHD_HTTP_HEADER_HOST);
	head->lengths += is_name(name, size, MHD_HTTP_HEADER_CONTENT_LENGTH);
	if (is_name(name, size, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
		head->codings++;
		head->is_chunked = is_name(value, length, "chunked");
	}
	return MHD_YES;
}

static const char *check(const struct framing_head *head, int is_1_0)
{
	if (head->wrong)
		return head->wrong;
	if (head->codings > 0 && (head->codings > 1 || !head->is_chunked || is_1_0))
		return "Transfer-Encoding has to be chunked, once, and of HTTP/1.1\n";
	if (head->lengths + head->codings > 1)
		return "a request has one Content-Length or one Transfer-Encoding\n";
	if (head->hosts > 1 || (head->hosts == 0 && !is_1_0))
		return "a request has one Host\n";
	return NULL;
}

/* Split "http://HOST/PATH". Returns -1 if it is not of this form. */
static int split(const char **path, const char **host, char room[FRAMING_HOST])
{
	const char *start = strstr(*path, "://");
	size_t length = start ? strcspn(start += strlen("://"), "/") : 0;

	if (!start || (strncasecmp(*path, "http:", 5) != 0 && strncasecmp(*path, "https:", 6) != 0) || length == 0 ||
	    length >= FRAMING_HOST)
		return -1;
	memcpy(room, start, length);
	room[length] = 0;
	*host = room;
	*path = start[length] ? start + length : "/";
	return 0;
}

const char *framing_read(
    struct MHD_Connection *client, const char *version, const char **path, const char **host, char room[FRAMING_HOST])
{
	struct framing_head head = {.wrong = NULL};
	const char *wrong;

	(void)MHD_get_connection_values_n(client, MHD_HEADER_KIND, look, &head);
	wrong = check(&head, strcmp(version, MHD_HTTP_VERSION_1_0) == 0);
	if (wrong)
		return wrong;
	*host = MHD_lookup_connection_value(client, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	if (strchr(*path, ' ') || (**path != '/' && strcmp(*path, "*") != 0 && split(path, host, room) != 0))
		return "what is asked has to be a path or a URL, without a space\n";
	return NULL;
}
