/* The rules for a request's method, URL and headers. */
#include <string.h>
#include <strings.h>

#include "lib/callback/text.h"

enum { METHOD_MAX = 32, HOST_MAX = 253, PORT_MAX = 65535 };

int ww_callback_text_is(struct text_span text, const char *word)
{
	return text.size == strlen(word) && strncasecmp(text.data, word, text.size) == 0;
}

static int begins(struct text_span text, const char *word)
{
	size_t size = strlen(word);

	return text.size >= size && strncasecmp(text.data, word, size) == 0;
}

/* A token of RFC 9110. */
static int is_token(struct text_span text)
{
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];
		if (!text_is_letter(c) && !text_is_digit(c) && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return 0;
	}
	return text.size > 0;
}

const char *ww_callback_text_method(struct text_span method)
{
	if (!is_token(method) || method.size > METHOD_MAX)
		return "the method is not a word such as POST";
	if (ww_callback_text_is(method, "CONNECT") || ww_callback_text_is(method, "TRACE"))
		return "this method cannot be used";
	return NULL;
}

/* ---- URLs */

static int has_other_characters(struct text_span url)
{
	for (size_t i = 0; i < url.size; i++)
		if (url.data[i] <= ' ' || url.data[i] > '~' || strchr("\"<>\\^`{|}", url.data[i]))
			return 1;
	return 0;
}

/* An international name is another name on the network. */
static int has_name_beyond_ascii(struct text_span url)
{
	const char *end = url.data + url.size;
	const char *at = memmem(url.data, url.size, "://", 3);

	for (at = at ? at + 3 : end; at < end && !strchr("/?#", *at); at++)
		if ((unsigned char)*at >= 0x80)
			return 1;
	return 0;
}

static const char *check_host(struct text_span host, int is_ipv6)
{
	if (!host.size || host.size > HOST_MAX)
		return "the URL has no host, or one that is too long";
	for (size_t i = 0; i < host.size; i++) {
		char c = host.data[i];
		int hexadecimal = text_is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		if (is_ipv6 ? !hexadecimal && c != ':' && c != '.'
		            : !text_is_letter(c) && !text_is_digit(c) && c != '-' && c != '.' && c != '_')
			return "the URL's host has a character that a host cannot have";
	}
	return NULL;
}

static const char *read_port(struct text_span text, unsigned *port)
{
	unsigned long number = 0;

	for (size_t i = 0; i < text.size; i++) {
		if (!text_is_digit(text.data[i]))
			return "the URL's port is not a number";
		number = number * 10 + (unsigned long)(text.data[i] - '0');
		if (number > PORT_MAX)
			return "the URL's port is above 65535";
	}
	if (!number)
		return "the URL's port is missing after its colon, or 0";
	*port = (unsigned)number;
	return NULL;
}

/* host, host:port, [address], [address]:port */
static const char *read_authority(struct callback_url *parts)
{
	struct text_span text = parts->authority;
	int is_ipv6 = text.size && text.data[0] == '[';
	const char *end = is_ipv6 ? memchr(text.data, ']', text.size) : memchr(text.data, ':', text.size);
	const char *reason;

	if (is_ipv6 && !end)
		return "the URL's address has no ] at its end";
	if (!end)
		end = text.data + text.size;
	parts->host = (struct text_span){text.data + is_ipv6, (size_t)(end - text.data) - (size_t)is_ipv6};
	reason = check_host(parts->host, is_ipv6);
	if (reason)
		return reason;
	end += is_ipv6;
	text.size -= (size_t)(end - text.data);
	if (!text.size)
		return NULL;
	if (*end != ':')
		return "the URL has something between its address and the port";
	return read_port((struct text_span){end + 1, text.size - 1}, &parts->port);
}

const char *ww_callback_text_url(struct text_span url, struct callback_url *parts)
{
	size_t skip;
	size_t size = 0;

	if (has_name_beyond_ascii(url))
		return "the URL's host is beyond ASCII: write it as DNS has it, such as xn--bcher-kva.example";
	if (has_other_characters(url))
		return "the URL has a character that must be written as %XX";
	if (begins(url, "https://")) {
		skip = 8;
		parts->port = 443;
	} else if (begins(url, "http://")) {
		skip = 7;
		parts->port = 80;
	} else {
		return "the URL does not begin with http:// or https://";
	}
	parts->scheme = (struct text_span){url.data, skip - 3};
	url.data += skip;
	url.size -= skip;
	while (size < url.size && !strchr("/?#", url.data[size]))
		size++;
	parts->authority = (struct text_span){url.data, size};
	if (memchr(url.data, '@', size))
		return "the URL has a user's name; use a header Authorization";
	if (memchr(url.data, '#', url.size))
		return "the URL has a fragment, which is not sent";
	return read_authority(parts);
}

/* ---- Headers */

/* Whether a name begins with that word, or with `whole` is that word. To many servers, _ is the same as -. */
static int is_named(struct text_span name, const char *word, int whole)
{
	size_t size = strlen(word);

	if (name.size < size || (whole && name.size != size))
		return 0;
	for (size_t i = 0; i < size; i++) {
		char c = name.data[i] == '_' ? '-' : name.data[i];
		if (strncasecmp(&c, &word[i], 1) != 0)
			return 0;
	}
	return 1;
}

static int is_ours(struct text_span name)
{
	static const char *const names[] = {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive",
	    "TE", "Trailer", "Upgrade", "Expect"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (is_named(name, names[i], 1))
			return 1;
	return is_named(name, "Proxy-", 0) || is_named(name, "Weekwheel-", 0);
}

int ww_callback_text_is_plain(struct text_span name)
{
	static const char *const names[] = {"Accept", "Accept-Language", "Content-Type", "Content-Encoding",
	    "Content-Language", "Idempotency-Key", "User-Agent"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (ww_callback_text_is(name, names[i]))
			return 1;
	return 0;
}

const char *ww_callback_text_header(const struct ww_callback_header *header)
{
	struct text_span name = {header->name, header->name_length};

	if (!is_token(name))
		return "a header's name is not a word such as Content-Type";
	if (is_ours(name))
		return "this header is not the job's to set";
	for (size_t i = 0; i < header->value_length; i++) {
		unsigned char c = (unsigned char)header->value[i];
		if ((c < ' ' && c != '\t') || c == 0x7f)
			return "a header's value has a control character";
	}
	return NULL;
}
