/* TLS between two ends in memory and over a pair of sockets: whom they trust, what they say if not, and how they end. */
/* tier: quick, forks */

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tests/tools/common/tls/credentials.h"
#include "tools/common/tls/tls.h"
#include "weekwheel/error.h"

#define HOST "server.example"

static char folder[] = "/tmp/weekwheel-tls-XXXXXX";

/* ---- Certificates --------------------------------------------------------------------------------------------- */

static struct credential authority = {.name = "authority", .signs = 1, .from = -10, .until = 10};
static struct credential other_authority = {.name = "other", .signs = 1, .from = -10, .until = 10};
static struct credential old_authority = {.name = "old-authority", .signs = 1, .from = -10, .until = -2};
#define FOR_SERVER .for_hosts = "DNS:" HOST ",DNS:*.wide.example,IP:127.0.0.1,IP:::1"
static struct credential server = {.name = "server", FOR_SERVER, .by = &authority, .from = -5, .until = 5};
static struct credential expired = {.name = "expired", FOR_SERVER, .by = &authority, .from = -5, .until = -1};
static struct credential early = {.name = "early", FOR_SERVER, .by = &authority, .from = 1, .until = 5};
static struct credential by_old = {.name = "by-old", FOR_SERVER, .by = &old_authority, .from = -5, .until = 5};
static struct credential alone = {.name = "alone", FOR_SERVER, .from = -5, .until = 5};
static struct credential client = {.name = "client", .by = &authority, .from = -5, .until = 5};
static struct credential old_client = {.name = "old-client", .by = &authority, .from = -5, .until = -1};
static struct credential foreign_client = {.name = "foreign", .by = &other_authority, .from = -5, .until = 5};
static struct credential secret = {
    .name = "secret", FOR_SERVER, .by = &authority, .from = -5, .until = 5, .phrase = "phrase"};

static struct credential *const all[] = {&authority, &other_authority, &old_authority, &server, &expired, &early,
    &by_old, &alone, &client, &old_client, &foreign_client, &secret};

static void make_all(void)
{
	(void)memcpy(folder, "/tmp/weekwheel-tls-XXXXXX", sizeof folder);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		credential_make(all[i], folder);
}

static void free_all(void)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		credential_free(all[i]);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* ---- Two ends ------------------------------------------------------------------------------------------------- */

struct end {
	struct tls *tls;
	struct tls_link *link;
};

struct pair {
	struct end client, server;
	size_t piece; /* so many bytes move at a time */
};

static struct tls *make(
    struct tls *(*how)(const struct tls_files *, char *), const struct credential *own, const char *trusted)
{
	char reason[TLS_REASON] = "";
	struct tls_files files = {own ? own->path : NULL, own ? own->key : NULL, trusted};
	struct tls *tls = how(&files, reason);

	ck_assert_msg(tls != NULL, "%s", reason);
	return tls;
}

/* What differs from a client that trusts the authority of a server that takes everyone. */
struct plan {
	const struct credential *server, *client;
	const struct credential *client_trusts, *server_trusts;
	const char *host;
};

static void pair_make(struct pair *pair, struct plan plan)
{
	const struct credential *trusts = plan.client_trusts ? plan.client_trusts : &authority;

	pair->piece = 16384;
	pair->server.tls =
	    make(tls_server, plan.server ? plan.server : &server, plan.server_trusts ? plan.server_trusts->path : NULL);
	pair->client.tls = make(tls_client, plan.client, trusts->path);
	pair->server.link = tls_open(pair->server.tls, NULL);
	pair->client.link = tls_open(pair->client.tls, plan.host ? plan.host : HOST);
	ck_assert(pair->server.link && pair->client.link);
}

static void pair_end(struct pair *pair)
{
	tls_close(pair->client.link);
	tls_close(pair->server.link);
	tls_free(pair->client.tls);
	tls_free(pair->server.tls);
}

/* Move all that one end has to say. Returns whether that was anything. */
static int move(const struct pair *pair, struct tls_link *from, struct tls_link *to)
{
	char bytes[16384];
	size_t size;
	int moved = 0;

	while ((size = tls_drain(from, bytes, pair->piece)) > 0) {
		ck_assert_int_eq(tls_feed(to, bytes, size), TLS_OK);
		moved = 1;
	}
	ck_assert_uint_eq(tls_pending(from), 0);
	return moved;
}

/* Let both ends talk until neither has anything to say. Store what the last step of each said. */
static void shake(const struct pair *pair, int *by_client, int *by_server)
{
	int moved = 1;

	*by_client = *by_server = 0;
	while (moved) {
		if (*by_client == 0)
			*by_client = tls_shake(pair->client.link);
		moved = move(pair, pair->client.link, pair->server.link);
		if (*by_server == 0)
			*by_server = tls_shake(pair->server.link);
		moved |= move(pair, pair->server.link, pair->client.link);
	}
}

static void pair_join(struct pair *pair, struct plan plan)
{
	int by_client, by_server;

	pair_make(pair, plan);
	shake(pair, &by_client, &by_server);
	ck_assert_int_eq(by_client, 1);
	ck_assert_int_eq(by_server, 1);
	ck_assert(tls_is_ready(pair->client.link) && tls_is_ready(pair->server.link));
	/* What the server says of later sessions is nothing to read. */
	ck_assert_int_eq(tls_read(pair->client.link, &(char){0}, 1), 0);
}

static void expect_reason(const struct tls_link *link, const char *part)
{
	char reason[TLS_REASON];

	tls_reason(link, reason);
	ck_assert_msg(strstr(reason, part) != NULL, "'%s', not '%s'", reason, part);
}

/* ---- Talking -------------------------------------------------------------------------------------------------- */

/* One end writes, in whatever pieces the bytes move and are read. */
static void tell(
    const struct pair *pair, struct tls_link *from, struct tls_link *to, const char *text, size_t size, int room)
{
	char *heard = malloc(size + 1);
	size_t have = 0;

	ck_assert_ptr_nonnull(heard);
	ck_assert_int_eq(tls_write(from, text, size), TLS_OK);
	while (have < size) {
		char bytes[16384];
		size_t got = tls_drain(from, bytes, pair->piece);
		int read;
		ck_assert_uint_gt(got, 0);
		ck_assert_uint_le(got, pair->piece);
		ck_assert_int_eq(tls_feed(to, bytes, got), TLS_OK);
		while (have < size && (read = tls_read(to, heard + have,
		                           size - have < (size_t)room ? size - have : (size_t)room)) > 0) {
			ck_assert_int_le(read, room);
			have += (size_t)read;
		}
	}
	ck_assert_mem_eq(heard, text, size);
	ck_assert_int_eq(tls_read(to, heard, 1), 0);
	free(heard);
}

START_TEST(each_end_hears_the_other_in_whatever_pieces)
{
	static const size_t pieces[] = {1, 7, 16384};
	static char text[50000];
	struct pair pair;

	make_all();
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * i % 251);
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
		int by_client, by_server;
		pair_make(&pair, (struct plan){0});
		pair.piece = pieces[i];
		ck_assert(!tls_is_ready(pair.client.link) && !tls_is_ready(pair.server.link));
		shake(&pair, &by_client, &by_server);
		ck_assert_int_eq(by_client, 1);
		ck_assert_int_eq(by_server, 1);
		tell(&pair, pair.client.link, pair.server.link, "put", 3, 16384);
		tell(&pair, pair.server.link, pair.client.link, "INSERTED", 8, 1);
		tell(&pair, pair.client.link, pair.server.link, text, sizeof text, 16384);
		tell(&pair, pair.server.link, pair.client.link, text, sizeof text, 3);
		/* Nothing is nothing to say. */
		ck_assert_int_eq(tls_write(pair.client.link, "", 0), TLS_OK);
		ck_assert_uint_eq(tls_pending(pair.client.link), 0);
		pair_end(&pair);
	}
	free_all();
}
END_TEST

static int says(const struct tls_link *link, const char *name)
{
	char bytes[16384];
	size_t size = tls_drain((struct tls_link *)(uintptr_t)link, bytes, sizeof bytes);

	return memmem(bytes, size, name, strlen(name)) != NULL;
}

START_TEST(a_client_says_which_name_it_means_and_no_address)
{
	struct pair pair;

	make_all();
	pair_make(&pair, (struct plan){.host = HOST});
	ck_assert_int_eq(tls_shake(pair.client.link), 0);
	ck_assert(says(pair.client.link, HOST));
	pair_end(&pair);
	pair_make(&pair, (struct plan){.host = "127.0.0.1"});
	ck_assert_int_eq(tls_shake(pair.client.link), 0);
	ck_assert(!says(pair.client.link, "127.0.0.1"));
	pair_end(&pair);
	free_all();
}
END_TEST

/* ---- Whom a client trusts ------------------------------------------------------------------------------------- */

START_TEST(a_client_takes_a_certificate_that_is_right)
{
	static const char *const hosts[] = {HOST, "SERVER.example", "a.wide.example", "127.0.0.1", "::1"};
	struct pair pair;

	make_all();
	for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
		pair_join(&pair, (struct plan){.host = hosts[i]});
		ck_assert_int_eq(tls_is_out_of_time(pair.client.link), 0);
		pair_end(&pair);
	}
	pair_join(&pair, (struct plan){.server = &alone, .client_trusts = &alone});
	pair_end(&pair);
	free_all();
}
END_TEST

START_TEST(a_client_refuses_a_certificate_that_is_wrong_and_says_why)
{
	static const struct {
		struct plan plan;
		const char *reason;
		const char *told; /* to the server */
		int is_out_of_time;
	} wrong[] = {{{.client_trusts = &other_authority}, "unable to get local issuer certificate", "unknown ca", 0},
	    {{.server = &alone}, "self-signed certificate", "unknown ca", 0},
	    {{.host = "server.example.org"}, "hostname mismatch", "bad certificate", 0},
	    {{.host = "example"}, "hostname mismatch", "bad certificate", 0},
	    {{.host = "a.b.wide.example"}, "hostname mismatch", "bad certificate", 0},
	    {{.host = "127.0.0.2"}, "IP address mismatch", "bad certificate", 0},
	    {{.host = "::2"}, "IP address mismatch", "bad certificate", 0},
	    {{.server = &expired}, "certificate has expired", "certificate expired", 1},
	    {{.server = &early}, "certificate is not yet valid", "bad certificate", 1},
	    {{.server = &by_old, .client_trusts = &old_authority}, "certificate has expired", "certificate expired", 1},
	    /* A client's certificate is for no host. */
	    {{.server = &client}, "hostname mismatch", "bad certificate", 0}};
	int by_client, by_server;
	struct pair pair;

	make_all();
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		pair_make(&pair, wrong[i].plan);
		shake(&pair, &by_client, &by_server);
		ck_assert_int_eq(by_client, TLS_BROKEN);
		expect_reason(pair.client.link, wrong[i].reason);
		ck_assert_int_eq(tls_is_out_of_time(pair.client.link), wrong[i].is_out_of_time);
		ck_assert_int_eq(by_server, TLS_BROKEN);
		expect_reason(pair.server.link, wrong[i].told);
		ck_assert_int_eq(tls_is_out_of_time(pair.server.link), 0);
		/* A link that is broken says no farewell. */
		tls_end(pair.client.link);
		ck_assert_uint_eq(tls_pending(pair.client.link), 0);
		pair_end(&pair);
	}
	free_all();
}
END_TEST

/* ---- Whom a server trusts ------------------------------------------------------------------------------------- */

START_TEST(a_server_that_asks_for_a_certificate_takes_the_right_one)
{
	struct pair pair;

	make_all();
	pair_join(&pair, (struct plan){.server_trusts = &authority, .client = &client});
	tell(&pair, pair.client.link, pair.server.link, "put", 3, 100);
	pair_end(&pair);
	/* One that does not ask takes any, and none. */
	pair_join(&pair, (struct plan){.client = &foreign_client});
	pair_end(&pair);
	pair_join(&pair, (struct plan){0});
	pair_end(&pair);
	free_all();
}
END_TEST

START_TEST(a_server_that_asks_for_a_certificate_refuses_others_and_says_why)
{
	static const struct {
		const struct credential *client;
		const char *reason;
		const char *told; /* to the client */
		int is_out_of_time;
	} wrong[] = {{NULL, "peer did not return a certificate", "certificate required", 0},
	    {&foreign_client, "unable to get local issuer certificate", "unknown ca", 0},
	    {&alone, "self-signed certificate", "unknown ca", 0},
	    {&old_client, "certificate has expired", "certificate expired", 1}};
	int by_client, by_server;
	struct pair pair;

	make_all();
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		pair_make(&pair, (struct plan){.server_trusts = &authority, .client = wrong[i].client});
		shake(&pair, &by_client, &by_server);
		ck_assert_int_eq(by_server, TLS_BROKEN);
		expect_reason(pair.server.link, wrong[i].reason);
		ck_assert_int_eq(tls_is_out_of_time(pair.server.link), wrong[i].is_out_of_time);
		ck_assert(!tls_is_ready(pair.server.link));
		/* In TLS 1.3 the client's handshake is done by then. */
		ck_assert_int_eq(by_client, 1);
		ck_assert_int_eq(tls_read(pair.client.link, &(char){0}, 1), TLS_BROKEN);
		expect_reason(pair.client.link, wrong[i].told);
		pair_end(&pair);
	}
	free_all();
}
END_TEST

/* ---- How a connection ends ------------------------------------------------------------------------------------ */

START_TEST(an_end_in_order_is_known_from_a_cut)
{
	char bytes[16384];
	struct pair pair;
	size_t size;

	make_all();
	for (int by_client = 0; by_client < 2; by_client++) {
		pair_join(&pair, (struct plan){0});
		struct tls_link *from = by_client ? pair.client.link : pair.server.link;
		struct tls_link *to = by_client ? pair.server.link : pair.client.link;
		ck_assert_int_eq(tls_write(from, "last words", 10), TLS_OK);
		tls_end(from);
		size = tls_drain(from, bytes, sizeof bytes);
		/* Whatever part of it has come, the other end waits for the rest. */
		for (size_t i = 0; i + 1 < size; i++) {
			ck_assert_int_eq(tls_feed(to, bytes + i, 1), TLS_OK);
			char words[16];
			int got = tls_read(to, words, sizeof words);
			ck_assert(got == 0 || (got == 10 && memcmp(words, "last words", 10) == 0));
		}
		ck_assert_int_eq(tls_feed(to, bytes + size - 1, 1), TLS_OK);
		ck_assert_int_eq(tls_read(to, bytes, sizeof bytes), TLS_ENDED);
		ck_assert_int_eq(tls_read(to, bytes, sizeof bytes), TLS_ENDED);
		/* It may still answer. */
		ck_assert_int_eq(tls_write(to, "bye", 3), TLS_OK);
		(void)move(&pair, to, from);
		ck_assert_int_eq(tls_read(from, bytes, sizeof bytes), 3);
		pair_end(&pair);
	}
	/* Amid a handshake there is nothing to end. */
	pair_make(&pair, (struct plan){0});
	tls_end(pair.client.link);
	tls_end(pair.server.link);
	ck_assert_uint_eq(tls_pending(pair.client.link) + tls_pending(pair.server.link), 0);
	pair_end(&pair);
	tls_close(NULL);
	tls_free(NULL);
	free_all();
}
END_TEST

START_TEST(each_changed_byte_breaks_the_connection)
{
	enum { TRIED = 40 };
	char bytes[1024];
	char words[16];
	struct pair pair;
	size_t size = TRIED;

	make_all();
	for (size_t at = 0; at < size; at++) {
		pair_join(&pair, (struct plan){0});
		ck_assert_int_eq(tls_write(pair.client.link, "put", 3), TLS_OK);
		size = tls_drain(pair.client.link, bytes, sizeof bytes);
		/* A record with another length may be waited for. */
		if (at == 3 || at == 4)
			goto next;
		bytes[at] ^= 0x40;
		ck_assert_int_eq(tls_feed(pair.server.link, bytes, size), TLS_OK);
		ck_assert_int_eq(tls_read(pair.server.link, words, sizeof words), TLS_BROKEN);
		ck_assert_int_eq(tls_read(pair.server.link, words, sizeof words), TLS_BROKEN);
		ck_assert_int_eq(tls_write(pair.server.link, "x", 1), TLS_BROKEN);
		/* The first step's, whatever was tried since. */
		if (at > 4)
			expect_reason(pair.server.link, "bad record mac");
	next:
		pair_end(&pair);
	}
	ck_assert_uint_gt(size, 5 + 3);
	free_all();
}
END_TEST

/* ---- Others --------------------------------------------------------------------------------------------------- */

START_TEST(what_is_no_tls_is_refused_with_a_reason)
{
	static const struct {
		int to_server;
		const char *text;
		const char *reason;
	} others[] = {{1, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "http request"},
	    {1, "put 0 0 60 5\r\nhello\r\n", "wrong version number"},
	    {1, "*1\r\n$4\r\nPING\r\n", "wrong version number"},
	    {0, "HTTP/1.1 400 Bad Request\r\n\r\n", "wrong version number"},
	    {0, "BAD_FORMAT\r\n", "wrong version number"}, {0, "-ERR unknown command\r\n", "wrong version number"}};
	struct pair pair;

	make_all();
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		pair_make(&pair, (struct plan){0});
		struct tls_link *link = others[i].to_server ? pair.server.link : pair.client.link;
		ck_assert_int_eq(tls_shake(link), 0);
		ck_assert_int_eq(tls_feed(link, others[i].text, strlen(others[i].text)), TLS_OK);
		ck_assert_int_eq(tls_shake(link), TLS_BROKEN);
		expect_reason(link, others[i].reason);
		ck_assert_int_eq(tls_is_out_of_time(link), 0);
		ck_assert_int_eq(tls_read(link, &(char){0}, 1), TLS_BROKEN);
		pair_end(&pair);
	}
	free_all();
}
END_TEST

/* A client of OpenSSL alone, with its oldest and latest version. Returns what the server says of its first words. */
static int greet(struct tls_link *link, int oldest, int latest)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	BIO *out = BIO_new(BIO_s_mem());
	char bytes[4096];
	SSL *ssl;
	int size;

	ck_assert_int_eq(SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0"), 1);
	ck_assert_int_eq(SSL_CTX_set_min_proto_version(context, oldest), 1);
	ck_assert_int_eq(SSL_CTX_set_max_proto_version(context, latest), 1);
	ssl = SSL_new(context);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), out);
	ck_assert_int_eq(SSL_connect(ssl), -1);
	size = BIO_read(out, bytes, sizeof bytes);
	ck_assert_int_gt(size, 0);
	ck_assert_int_eq(tls_feed(link, bytes, (size_t)size), TLS_OK);
	SSL_free(ssl);
	SSL_CTX_free(context);
	return tls_shake(link);
}

START_TEST(versions_before_1_2_are_refused)
{
	struct pair pair;

	make_all();
	for (int version = TLS1_VERSION; version <= TLS1_3_VERSION; version++) {
		pair_make(&pair, (struct plan){0});
		ck_assert_int_eq(greet(pair.server.link, version, version), version < TLS1_2_VERSION ? TLS_BROKEN : 0);
		if (version < TLS1_2_VERSION)
			expect_reason(pair.server.link, "unsupported protocol");
		pair_end(&pair);
	}
	free_all();
}
END_TEST

/* ---- Files ---------------------------------------------------------------------------------------------------- */

static const char *refusal(
    struct tls *(*how)(const struct tls_files *, char *), const char *certificate, const char *key, const char *trusted)
{
	static char reason[TLS_REASON];

	reason[0] = 0;
	ck_assert_ptr_null(how(&(struct tls_files){certificate, key, trusted}, reason));
	return reason;
}

static void expect_refusal(const char *reason, const char *file, const char *part)
{
	char expected[400];

	(void)snprintf(expected, sizeof expected, "%s: %s (", file, part);
	ck_assert_msg(strncmp(reason, expected, strlen(expected)) == 0, "'%s', not '%s'", reason, expected);
}

START_TEST(files_that_are_wrong_are_named)
{
	static const char of_pair[] = "is not a readable key in PEM, without a pass phrase, of that certificate";
	static const char none[] = "is not a readable certificate in PEM";
	static const char has_none[] =
	    "has no key in PEM, without a pass phrase, of its certificate; --tls-key names a file of its own";
	static const char trusted[] = "has no readable certificates in PEM";
	struct tls *(*const hows[])(const struct tls_files *, char *) = {tls_server, tls_client};
	struct tls_files files = {.certificate = server.both};
	char reason[TLS_REASON];

	make_all();
	for (size_t i = 0; i < 2; i++) {
		expect_refusal(refusal(hows[i], "/none", NULL, NULL), "/none", none);
		ck_assert_ptr_nonnull(strstr(refusal(hows[i], "/none", NULL, NULL), "(No such file or directory)"));
		expect_refusal(refusal(hows[i], server.key, NULL, NULL), server.key, none);
		expect_refusal(refusal(hows[i], server.path, NULL, NULL), server.path, has_none);
		expect_refusal(refusal(hows[i], server.path, "/none", NULL), "/none", of_pair);
		expect_refusal(refusal(hows[i], server.path, client.key, NULL), client.key, of_pair);
		expect_refusal(refusal(hows[i], server.path, server.path, NULL), server.path, of_pair);
		expect_refusal(refusal(hows[i], secret.path, secret.key, NULL), secret.key, of_pair);
		expect_refusal(refusal(hows[i], secret.both, NULL, NULL), secret.both, has_none);
		expect_refusal(refusal(hows[i], server.path, server.key, "/none"), "/none", trusted);
		expect_refusal(refusal(hows[i], server.path, server.key, server.key), server.key, trusted);
	}
	/* A file may have both. */
	struct tls *tls = tls_server(&files, reason);
	ck_assert_msg(tls != NULL, "%s", reason);
	tls_free(tls);
	/* A client without files trusts those of the system. */
	tls = tls_client(&(struct tls_files){0}, reason);
	ck_assert_msg(tls != NULL, "%s", reason);
	tls_free(tls);
	free_all();
}
END_TEST

static void append_file(const char *to, const char *from)
{
	FILE *out = fopen(to, "a");
	FILE *in = fopen(from, "r");
	int c;

	ck_assert(out && in);
	while ((c = getc(in)) != EOF)
		(void)putc(c, out);
	ck_assert_int_eq(fclose(out) | fclose(in), 0);
}

START_TEST(the_validity_is_that_of_the_whole_file)
{
	enum { DAY = 86400, SLACK = 3600 };
	int64_t now = time(NULL);
	int64_t from, until;

	make_all();
	struct tls *tls = make(tls_server, &server, NULL);
	tls_validity(tls, &from, &until);
	ck_assert_int_lt(llabs(from - (now - 5 * DAY)), SLACK);
	ck_assert_int_lt(llabs(until - (now + 5 * DAY)), SLACK);
	ck_assert_int_eq(until - from, 10 * DAY);
	tls_free(tls);
	/* One of those that signed it has less time, at either end. */
	append_file(server.path, early.path);
	append_file(server.path, client.path);
	tls = make(tls_server, &server, NULL);
	tls_validity(tls, &from, &until);
	ck_assert_int_lt(llabs(from - (now + DAY)), SLACK);
	ck_assert_int_lt(llabs(until - (now + 5 * DAY)), SLACK);
	tls_free(tls);
	append_file(server.path, expired.path);
	tls = make(tls_server, &server, NULL);
	tls_validity(tls, &from, &until);
	ck_assert_int_lt(llabs(from - (now + DAY)), SLACK);
	ck_assert_int_lt(llabs(until - (now - DAY)), SLACK);
	tls_free(tls);
	/* No certificate is always valid. */
	tls = make(tls_client, NULL, authority.path);
	tls_validity(tls, &from, &until);
	ck_assert(from == INT64_MIN && until == INT64_MAX);
	tls_free(tls);
	free_all();
}
END_TEST

START_TEST(memory_is_counted)
{
	struct pair pair;
	size_t before;

	tls_count_memory();
	make_all();
	before = tls_memory();
	ck_assert_uint_gt(before, 0);
	for (int i = 0; i < 3; i++) {
		size_t joined;
		pair_join(&pair, (struct plan){0});
		joined = tls_memory();
		ck_assert_uint_gt(joined, before);
		pair_end(&pair);
		ck_assert_uint_lt(tls_memory(), joined);
	}
	/* What is counted in is counted out: more rounds leave no more. */
	before = tls_memory();
	for (int i = 0; i < 5; i++) {
		pair_join(&pair, (struct plan){0});
		pair_end(&pair);
	}
	ck_assert_uint_le(tls_memory(), before);
	free_all();
}
END_TEST

/* ---- Over sockets --------------------------------------------------------------------------------------------- */

/* The other end, in a thread: what a server does with its socket. */
struct serving {
	pthread_t thread;
	struct tls_link *link;
	int fd;
	int said; /* the last step's */
};

static void *serve(void *argument)
{
	struct serving *serving = argument;
	char bytes[4096];
	ssize_t got;

	while ((serving->said = tls_shake(serving->link)) >= 0) {
		size_t size;
		while ((size = tls_drain(serving->link, bytes, 100)) > 0)
			if (send(serving->fd, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
				break;
		if (serving->said == 1)
			break;
		/* It comes in pieces. */
		got = recv(serving->fd, bytes, 50, 0);
		if (got <= 0 || tls_feed(serving->link, bytes, (size_t)got) != TLS_OK)
			break;
	}
	return NULL;
}

/* Returns what the client's handshake says, and leaves errno. */
static int handshake(struct pair *pair, struct serving *serving)
{
	int fds[2];
	int done;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	*serving = (struct serving){.link = pair->server.link, .fd = fds[1]};
	OK(pthread_create(&serving->thread, NULL, serve, serving));
	done = tls_handshake(pair->client.link, fds[0], 60000);
	close(fds[0]);
	OK(pthread_join(serving->thread, NULL));
	close(fds[1]);
	return done;
}

START_TEST(a_client_makes_its_handshake_over_a_socket)
{
	struct serving serving;
	struct pair pair;

	make_all();
	pair_make(&pair, (struct plan){.server_trusts = &authority, .client = &client});
	ck_assert_int_eq(handshake(&pair, &serving), 1);
	ck_assert(tls_is_ready(pair.client.link));
	/* Its last words go with what the client writes first. */
	ck_assert(move(&pair, pair.client.link, pair.server.link));
	ck_assert_int_eq(tls_shake(pair.server.link), 1);
	pair_end(&pair);
	pair_make(&pair, (struct plan){.host = "elsewhere.example"});
	ck_assert_int_eq(handshake(&pair, &serving), TLS_BROKEN);
	expect_reason(pair.client.link, "hostname mismatch");
	ck_assert_int_ne(serving.said, 1);
	pair_end(&pair);
	free_all();
}
END_TEST

START_TEST(a_peer_that_is_silent_gone_or_speaks_plainly_is_told_apart)
{
	/* What it does before the client begins. */
	static const struct {
		const char *says;
		int is_done, is_gone;
		int timeout_ms;
		int answer, error;
	} peers[] = {{"", 0, 0, 1, 0, ETIMEDOUT}, {"", 1, 0, 60000, 0, ECONNRESET},
	    {"\x16\x03", 1, 0, 60000, 0, ECONNRESET}, {"", 0, 1, 60000, 0, EPIPE},
	    {"BAD_FORMAT\r\n", 0, 0, 60000, TLS_BROKEN, 0}};
	struct pair pair;
	int fds[2];

	make_all();
	for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
		pair_make(&pair, (struct plan){0});
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
		ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
		ck_assert_int_eq(send(fds[1], peers[i].says, strlen(peers[i].says), 0), (ssize_t)strlen(peers[i].says));
		if (peers[i].is_done)
			ck_assert_int_eq(shutdown(fds[1], SHUT_WR), 0);
		if (peers[i].is_gone)
			close(fds[1]);
		int answer = tls_handshake(pair.client.link, fds[0], peers[i].timeout_ms);
		int error = errno;
		ck_assert_int_eq(answer, peers[i].answer);
		if (peers[i].answer == TLS_BROKEN)
			expect_reason(pair.client.link, "wrong version number");
		else
			ck_assert_int_eq(error, peers[i].error);
		ck_assert(!tls_is_ready(pair.client.link));
		close(fds[0]);
		if (!peers[i].is_gone)
			close(fds[1]);
		pair_end(&pair);
	}
	free_all();
}
END_TEST

TEST_MAIN("common/tls_link", each_end_hears_the_other_in_whatever_pieces,
    a_client_says_which_name_it_means_and_no_address, a_client_takes_a_certificate_that_is_right,
    a_client_refuses_a_certificate_that_is_wrong_and_says_why, a_server_that_asks_for_a_certificate_takes_the_right_one,
    a_server_that_asks_for_a_certificate_refuses_others_and_says_why, an_end_in_order_is_known_from_a_cut,
    each_changed_byte_breaks_the_connection, what_is_no_tls_is_refused_with_a_reason, versions_before_1_2_are_refused,
    files_that_are_wrong_are_named, the_validity_is_that_of_the_whole_file, memory_is_counted,
    a_client_makes_its_handshake_over_a_socket, a_peer_that_is_silent_gone_or_speaks_plainly_is_told_apart)
