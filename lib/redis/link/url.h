#ifndef LIB_REDIS_LINK_URL_H
#define LIB_REDIS_LINK_URL_H

/*
 * Where Redis is:
 *
 *     redis://[user[:password]@]host[:port][,host[:port]...][/db]     several hosts: seeds of a cluster
 *     rediss://...[/[db]][?ca=FILE&cert=FILE&key=FILE]                the same with TLS
 *     unix://[user[:password]@]/path[?db=number]
 *     redis+sentinel://[user[:password]@]host[:port][,host[:port]...]/name[/db]    Sentinels, and the name of a master
 *     rediss+sentinel://.../name[/[db]][?...]                                      the same with TLS
 *
 * user, password, path and files are percent-decoded. An IPv6 address stands in brackets. The default port is 6379,
 * and a Sentinel's 26379; user and password are the master's. A password without a user belongs to the user "default".
 */

#include <stddef.h>

#define REDIS_HOSTS_MAX 64
#define REDIS_HOST_MAX 255
/* "host:port", for sentences. */
#define REDIS_PLACE_MAX (REDIS_HOST_MAX + 16)

/* A server's place. port 0: host is the path of a socket. */
struct redis_address {
	char host[REDIS_HOST_MAX + 1];
	unsigned port;
};

struct redis_url {
	struct redis_address hosts[REDIS_HOSTS_MAX];
	size_t count;
	char master[256]; /* "": the hosts are no Sentinels */
	char user[256];   /* "": none was named */
	char password[1024];
	int has_password; /* or a user alone */
	unsigned db;
	int is_tls;
	char ca[256];          /* PEM, of the authorities to trust; "": those of the system */
	char certificate[256]; /* PEM, of this client; "": none */
	char key[256];         /* "": in the certificate's file */
};

/* Errors: WW_EINVAL: *why is a constant sentence that says what is wrong and never contains the password. */
int ww_redis_url_parse(struct redis_url *url, const char *text, const char **why);

/* Let another user and password count than those of the url; NULL: the url's. WW_EINVAL: one is too long. */
int ww_redis_url_login(struct redis_url *url, const char *user, const char *password);

/* Write an address for people. */
void ww_redis_address_write(const struct redis_address *address, char place[REDIS_PLACE_MAX]);

#endif
