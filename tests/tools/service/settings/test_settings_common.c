/* What the options that every server has store, and who is let in. */
/* tier: quick */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/common/message.h"
#include "tools/service/net/certificate.h"
#include "tools/service/settings/settings.h"

static struct service_settings settings;

static int check(void *all)
{
	(void)all;
	return 0;
}

static const struct setting here[] = {{.name = NULL}};
static const struct settings_server server = {
    .usage = "", .example = "", .option = "--unix PATH", .passes = "tests", .here = here, .check = check};

/* Instead of the C library's: some names are known later, or never. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **found)
{
	static struct sockaddr_in four = {.sin_family = AF_INET};
	static struct sockaddr_in6 six = {.sin6_family = AF_INET6};
	static struct addrinfo one;

	(void)port;
	(void)hints;
	one = strchr(host, ':') ? (struct addrinfo){.ai_addr = (struct sockaddr *)&six, .ai_addrlen = sizeof six}
	                        : (struct addrinfo){.ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof four};
	*found = &one;
	if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1 || inet_pton(AF_INET, host, &four.sin_addr) == 1)
		return 0;
	errno = EMFILE;
	return strcmp(host, "later") == 0    ? EAI_AGAIN
	       : strcmp(host, "memory") == 0 ? EAI_MEMORY
	       : strcmp(host, "files") == 0  ? EAI_SYSTEM
	                                     : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *found)
{
	(void)found;
}

/* Instead of reading files. */
struct tls *certificate_read(const struct tls_files *files)
{
	static char some;

	return strcmp(files->certificate, "wrong") == 0 ? NULL : (struct tls *)(void *)&some;
}

/* Returns 1 if these options are fine. The words must outlive the settings. */
static int is_fine(const char *const *words)
{
	static char text[20][100];
	char *arguments[20] = {NULL};

	for (int i = 0; words[i]; i++)
		arguments[i] = strcpy(text[i], words[i]);
	settings = (struct service_settings){0};
	return service_settings_read(&server, &settings, arguments) == 0;
}

#define FINE(...) ck_assert(is_fine((const char *const[]){__VA_ARGS__, NULL}))
#define WRONG(...) ck_assert(!is_fine((const char *const[]){__VA_ARGS__, NULL}))

START_TEST(each_is_stored)
{
	FINE("-l", "127.0.0.1:1", "--unix=u", "--socket-mode=660", "--socket-group=g", "--http=[::1]:2",
	    "--http-host=a", "--http-host=b", "--max-connections-per-address=3", "--max-buffers=1M", "--sync=interval",
	    "--sync-interval=2ms", "--clock=virtual:1.5");
	ck_assert_uint_eq(settings.listen_count, 1);
	ck_assert_str_eq(settings.listen[0], "127.0.0.1:1");
	ck_assert_str_eq(settings.unix_path, "u");
	ck_assert_uint_eq(settings.socket_mode, 0660);
	ck_assert_str_eq(settings.socket_group, "g");
	ck_assert_str_eq(settings.http, "[::1]:2");
	ck_assert_uint_eq(settings.http_host_count, 2);
	ck_assert_str_eq(settings.http_hosts[1], "b");
	ck_assert_uint_eq(settings.max_per_address, 3);
	ck_assert_uint_eq(settings.max_buffers, 1 << 20);
	ck_assert_int_eq(settings.sync, SETTINGS_INTERVAL);
	ck_assert_uint_eq(settings.sync_interval, 2000000);
	ck_assert_int_eq(settings.is_virtual, 1);
	ck_assert_uint_eq(settings.ahead, 1500000000);
	FINE("--clock=real");
	ck_assert_int_eq(settings.is_virtual, 0);
}
END_TEST

START_TEST(messages_change_at_once)
{
	FINE("--log-level=error", "--log-format=json");
	ck_assert_int_eq(message_level, MESSAGE_ERROR);
	ck_assert_int_eq(message_form, MESSAGE_JSON);
	FINE("--verbose", "--log-format=text");
	ck_assert_int_eq(message_level, MESSAGE_DEBUG);
	ck_assert_int_ne(message_form, MESSAGE_JSON);
}
END_TEST

START_TEST(tls_needs_a_certificate_and_a_certificate_tls)
{
	WRONG("--listen=tls:127.0.0.1:1");
	WRONG("--http=tls:127.0.0.1:1");
	WRONG("--tls-cert=a");
	WRONG("--tls-key=a", "--listen=127.0.0.1:1");
	FINE("--listen=tls:127.0.0.1:1", "--tls-cert=a", "--tls-key=b", "--tls-client-ca=c");
	ck_assert_str_eq(settings.tls.certificate, "a");
	ck_assert_str_eq(settings.tls.key, "b");
	ck_assert_str_eq(settings.tls.trusted, "c");
	ck_assert_ptr_nonnull(settings.certificate);
	FINE("--http=tls:127.0.0.1:1", "--tls-cert=a");
	WRONG("--http=tls:127.0.0.1:1", "--tls-cert=wrong");
	WRONG("--listen=tls:0.0.0.0:1", "--insecure", "--tls-cert=wrong");
	FINE("--listen=127.0.0.1:1");
	ck_assert_ptr_null(settings.certificate);
	WRONG("--sync=always", "--sync-interval=1s");
}
END_TEST

START_TEST(other_machines_need_tls_and_an_identity)
{
	struct sockaddr_in any = {.sin_family = AF_INET};

	WRONG("--listen=0.0.0.0:1");
	WRONG("--http=0.0.0.0:1");
	WRONG("--listen=127.0.0.1:1", "--listen=tls:0.0.0.0:1", "--tls-cert=a");
	FINE("--listen=tls:0.0.0.0:1", "--tls-cert=a", "--tls-client-ca=c");
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 1, 0), 0);
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 0, 0), -1);
	FINE("--listen=0.0.0.0:1", "--http=[::]:1", "--insecure");
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 0, 0), 0);
	settings = (struct service_settings){.server = &server, .auth_file = "tokens", .is_http_only = 1};
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 1, 1), 0);
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 0, 1), -1);
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 1, 0), -1);
	settings = (struct service_settings){.server = &server, .has_password = 1};
	ck_assert_int_eq(settings_let_in(&settings, (struct sockaddr *)&any, 1, 0), 0);
}
END_TEST

START_TEST(a_name_may_be_known_later)
{
	static const struct {
		const char *option;
		int status;
	} cases[] = {{"--listen=later:1", 1 + 1}, {"--listen=memory:1", 1 + 1}, {"--http=files:1", 1 + 1},
	    {"--http=never:1", 1 + 2}, {"--listen=127.0.0.1:1", 0}};
	char option[40];

	/* Nor does a server that lets everybody in come up later by an address that is none. */
	for (int insecure = 0; insecure < 2; insecure++)
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			char *arguments[] = {
			    strcpy(option, cases[i].option), insecure ? (char[]){"--insecure"} : NULL, NULL};
			settings = (struct service_settings){0};
			ck_assert_int_eq(service_settings_read(&server, &settings, arguments), cases[i].status);
		}
}
END_TEST

START_TEST(at_most_16_of_each)
{
	const char *listen[18] = {NULL};
	const char *hosts[19] = {"--http=127.0.0.1:1"};

	for (int i = 0; i < 16; i++) {
		listen[i] = "--listen=127.0.0.1:0";
		hosts[i + 1] = "--http-host=a";
	}
	ck_assert(is_fine(listen));
	ck_assert(is_fine(hosts));
	listen[16] = listen[0];
	hosts[17] = hosts[1];
	ck_assert(!is_fine(listen));
	ck_assert(!is_fine(hosts));
}
END_TEST

TEST_MAIN("service/settings/common", each_is_stored, messages_change_at_once,
    tls_needs_a_certificate_and_a_certificate_tls, other_machines_need_tls_and_an_identity, a_name_may_be_known_later,
    at_most_16_of_each)
