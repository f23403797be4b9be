/* Reading the url that says where Redis is. */
#include "lib/redis/link/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "weekwheel/error.h"

enum { PORT = 6379, SENTINEL_PORT = 26379, SOCKET_PATH_MAX = 107 };

struct part {
	const char *at;
	size_t length;
};

static int refuse(const char **why, const char *sentence)
{
	*why = sentence;
	return WW_EINVAL;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int decode(struct part part, char *to, size_t size, const char **why)
{
	size_t length = 0;

	for (size_t i = 0; i < part.length; i++) {
		int byte = (unsigned char)part.at[i];
		if (byte == '%') {
			int high = i + 2 < part.length ? digit_of(part.at[i + 1]) : -1;
			int low = i + 2 < part.length ? digit_of(part.at[i + 2]) : -1;
			if (high < 0 || low < 0)
				return refuse(
				    why, "After a % of the url stand two hexadecimal digits; write % itself as %25.");
			byte = high * 16 + low;
			i += 2;
		}
		if (byte == 0)
			return refuse(why, "The url may not have a NUL, %00.");
		if (length + 1 >= size)
			return refuse(why, "The user, the password or the path of the url is too long.");
		to[length++] = (char)byte;
	}
	to[length] = '\0';
	return WW_OK;
}

static int read_number(struct part part, unsigned max, unsigned *number)
{
	unsigned long long value = 0;

	if (part.length == 0 || part.length > 10)
		return WW_EINVAL;
	for (size_t i = 0; i < part.length; i++) {
		if (part.at[i] < '0' || part.at[i] > '9')
			return WW_EINVAL;
		value = value * 10 + (unsigned long long)(part.at[i] - '0');
	}
	if (value > max)
		return WW_EINVAL;
	*number = (unsigned)value;
	return WW_OK;
}

static int read_db(struct redis_url *url, struct part part, const char **why)
{
	if (read_number(part, 0x7fffffff, &url->db))
		return refuse(why,
		    "The database of the url is not a number: after the host and a slash stands one such as 0, or nothing.");
	return WW_OK;
}

/* Take the user and password before the last @ off the part. */
static int read_user(struct redis_url *url, struct part *part, const char **why)
{
	const char *end = memrchr(part->at, '@', part->length);
	const char *colon;
	struct part user = *part;
	struct part password = {"", 0};
	int error;

	if (!end)
		return WW_OK;
	user.length = (size_t)(end - part->at);
	part->length -= user.length + 1;
	part->at = end + 1;
	colon = memchr(user.at, ':', user.length);
	if (colon) {
		password.at = colon + 1;
		password.length = user.length - (size_t)(colon + 1 - user.at);
		user.length = (size_t)(colon - user.at);
	}
	if (user.length == 0 && password.length == 0)
		return refuse(
		    why, "Before the @ of the url stands neither a user nor a password: leave out the @ too.");
	url->has_password = 1;
	error = decode(user, url->user, sizeof url->user, why);
	return error ? error : decode(password, url->password, sizeof url->password, why);
}

static int copy_host(struct redis_address *address, struct part host, int is_ipv6, const char **why)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
	unsigned char bytes[16];

	if (host.length == 0 && !is_ipv6)
		return refuse(why,
		    "A host of the url is empty: after redis:// stands at least a host, such as redis://localhost.");
	if (host.length > REDIS_HOST_MAX)
		return refuse(why, "A host's name of the url is too long.");
	memcpy(address->host, host.at, host.length);
	address->host[host.length] = '\0';
	if (is_ipv6 && inet_pton(AF_INET6, address->host, bytes) != 1)
		return refuse(why, "What stands in brackets in the url is no IPv6 address.");
	if (!is_ipv6 && strspn(address->host, allowed) != host.length)
		return refuse(why,
		    "A host of the url has a character that no host's name has; an IPv6 address stands in brackets.");
	return WW_OK;
}

/* host, host:port, [address] or [address]:port */
static int read_host(struct redis_address *address, struct part part, unsigned port_else, const char **why)
{
	struct part host = part;
	struct part port = {NULL, 0};
	const char *end;
	int error;

	if (part.length > 0 && *part.at == '[') {
		end = memchr(part.at, ']', part.length);
		if (!end)
			return refuse(why, "A bracket of the url is not closed.");
		host = (struct part){part.at + 1, (size_t)(end - part.at) - 1};
		end++;
		if (end < part.at + part.length && *end != ':')
			return refuse(why, "After an address in brackets stands a colon and the port, or nothing.");
		error = copy_host(address, host, 1, why);
	} else {
		end = memchr(part.at, ':', part.length);
		if (end)
			host.length = (size_t)(end - part.at);
		else
			end = part.at + part.length;
		error = copy_host(address, host, 0, why);
	}
	if (error)
		return error;
	address->port = port_else;
	if (end == part.at + part.length)
		return WW_OK;
	port = (struct part){end + 1, part.length - (size_t)(end + 1 - part.at)};
	if (read_number(port, 65535, &address->port) || address->port == 0)
		return refuse(
		    why, "A port of the url is not a number from 1 to 65535; an IPv6 address stands in brackets.");
	return WW_OK;
}

static int read_hosts(struct redis_url *url, struct part part, unsigned port, const char **why)
{
	for (;;) {
		const char *comma = memchr(part.at, ',', part.length);
		struct part host = {part.at, comma ? (size_t)(comma - part.at) : part.length};
		int error;
		if (url->count == REDIS_HOSTS_MAX)
			return refuse(why, "The url has too many hosts: some of a cluster's nodes are enough.");
		error = read_host(&url->hosts[url->count++], host, port, why);
		if (error || !comma)
			return error;
		part.length -= host.length + 1;
		part.at = comma + 1;
	}
}

/* ca=FILE&cert=FILE&key=FILE, in any order */
static int read_files(struct redis_url *url, const char *text, const char **why)
{
	const struct {
		const char *name;
		char *file;
	} files[] = {{"ca=", url->ca}, {"cert=", url->certificate}, {"key=", url->key}};
	int error = WW_OK;

	while (*text && !error) {
		size_t length = strcspn(text, "&");
		size_t i = 0;
		while (i < 3 && strncmp(text, files[i].name, strlen(files[i].name)) != 0)
			i++;
		if (i == 3)
			return refuse(
			    why, "After the ? of rediss:// stand ca=FILE, cert=FILE and key=FILE, with & between.");
		size_t skip = strlen(files[i].name);
		error = decode((struct part){text + skip, length - skip}, files[i].file, sizeof url->ca, why);
		text += length + (text[length] == '&');
	}
	if (!error && url->key[0] && !url->certificate[0])
		return refuse(why, "The url has a key= without its cert=.");
	return error;
}

/* What stands between the hosts and the database: /name */
static int read_master(struct redis_url *url, const char **rest, const char **why)
{
	struct part name = {*rest + (**rest == '/'), 0};

	name.length = strcspn(name.at, "/?");
	*rest = name.at + name.length;
	if (name.length == 0)
		return refuse(why,
		    "After the Sentinels of the url stands a slash and the name of the master, such as /mymaster.");
	return decode(name, url->master, sizeof url->master, why);
}

static int parse_tcp(struct redis_url *url, const char *text, int is_sentinel, const char **why)
{
	const char *query = url->is_tls ? strchr(text, '?') : NULL;
	size_t length = query ? (size_t)(query - text) : strlen(text);
	struct part part = {text, strcspn(text, "/?")};
	const char *rest;
	int error;

	if (memchr(text, '#', length) || memchr(text, '?', length))
		return refuse(why, "The url of Redis has no ? and no #: write those of a password as %3F and %23.");
	rest = text + part.length;
	error = query ? read_files(url, query + 1, why) : WW_OK;
	if (!error)
		error = read_user(url, &part, why);
	if (!error)
		error = read_hosts(url, part, is_sentinel ? SENTINEL_PORT : PORT, why);
	if (!error && is_sentinel)
		error = read_master(url, &rest, why);
	if (error || (size_t)(rest - text) + 1 >= length)
		return error;
	return read_db(url, (struct part){rest + 1, length - (size_t)(rest - text) - 1}, why);
}

static int parse_unix(struct redis_url *url, const char *text, const char **why)
{
	struct part part = {text, strcspn(text, "/")};
	struct part path = {text + part.length, strcspn(text + part.length, "?")};
	const char *rest = path.at + path.length;
	int error = read_user(url, &part, why);

	if (error)
		return error;
	if (part.length > 0 || path.length < 2)
		return refuse(
		    why, "After unix:// stands the whole path of a socket, such as unix:///run/redis/redis.sock.");
	url->count = 1;
	error = decode(path, url->hosts[0].host, SOCKET_PATH_MAX + 1, why);
	if (error || rest[0] == '\0')
		return error;
	if (strncmp(rest, "?db=", 4) != 0)
		return refuse(why, "After the path of a socket stands ?db= and a number, or nothing.");
	return read_db(url, (struct part){rest + 4, strlen(rest + 4)}, why);
}

int ww_redis_url_parse(struct redis_url *url, const char *text, const char **why)
{
	static const struct {
		const char *begins;
		int is_tls;
		int is_sentinel;
	} schemes[] = {
	    {"redis://", 0, 0}, {"rediss://", 1, 0}, {"redis+sentinel://", 0, 1}, {"rediss+sentinel://", 1, 1}};

	*url = (struct redis_url){.count = 0};
	if (!text)
		return refuse(why, "No url is given: name one such as redis://localhost.");
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at <= ' ' || *at == 0x7f)
			return refuse(why,
			    "The url has a space or a control character; write those of a password as %20 and the like.");
	}
	if (strncmp(text, "unix://", 7) == 0)
		return parse_unix(url, text + 7, why);
	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		size_t length = strlen(schemes[i].begins);
		if (strncmp(text, schemes[i].begins, length) != 0)
			continue;
		url->is_tls = schemes[i].is_tls;
		return parse_tcp(url, text + length, schemes[i].is_sentinel, why);
	}
	return refuse(why, "The url of Redis begins with redis://, rediss:// or unix://.");
}

/* ---- Beside the text */

static int fits(char *to, size_t size, const char *from)
{
	if (!from)
		return WW_OK;
	if (strlen(from) >= size)
		return WW_EINVAL;
	memcpy(to, from, strlen(from) + 1);
	return WW_OK;
}

int ww_redis_url_login(struct redis_url *url, const char *user, const char *password)
{
	int error = fits(url->user, sizeof url->user, user);

	error = error ? error : fits(url->password, sizeof url->password, password);
	url->has_password |= password != NULL;
	return error;
}

void ww_redis_address_write(const struct redis_address *address, char place[REDIS_PLACE_MAX])
{
	(void)snprintf(place, REDIS_PLACE_MAX,
	    address->port == 0                   ? "%s"
	    : strchr(address->host, ':') != NULL ? "[%s]:%u"
	                                         : "%s:%u",
	    address->host, address->port);
}
