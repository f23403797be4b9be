/* HTTPS, with a certificate that the test makes. */
/* tier: check, threads */

#include <openssl/ssl.h>
#include <string.h>

#include "tests/support/callback/certificate.h"
#include "tests/support/callback/pushing.h"

static struct pushing pushing;

static uint64_t put_https(const char *host, struct receiver *receiver)
{
	return pushing_put(&pushing, NULL, "https://%s:%u/\n\nhello", host, receiver_port(receiver));
}

START_TEST(a_receiver_is_called_over_tls_if_it_is_trusted)
{
	struct certificate certificate = certificate_make();
	struct receiver *receiver = receiver_start(certificate.context);

	pushing_make(&pushing);
	pushing.config.ca_file = certificate.file;
	pushing.config.per_host = 1;
	pushing_open(&pushing);
	expect_finished(&pushing, put_https("127.0.0.1", receiver));
	expect_finished(&pushing, put_https("127.0.0.1", receiver));
	ck_assert_str_eq(strstr(receiver_got(receiver, 0), "\r\n\r\n") + 4, "hello");
	ck_assert_uint_eq(receiver_connections(receiver), 1);
	/* The certificate has another name. */
	expect_backoff(&pushing, put_https("127.0.0.2", receiver), "no answer: ");
	expect_backoff(&pushing, put_https("localhost", receiver), "no answer: ");
	ck_assert_uint_eq(receiver_count(receiver), 2);
	pushing_end(&pushing);
	receiver_stop(receiver);
	certificate_free(&certificate);
}
END_TEST

START_TEST(nothing_is_sent_to_a_receiver_that_is_not_trusted)
{
	struct certificate certificate = certificate_make();
	struct receiver *receiver = receiver_start(certificate.context);

	pushing_make(&pushing);
	pushing_open(&pushing);
	expect_backoff(&pushing, put_https("127.0.0.1", receiver), "certificate");
	ck_assert_uint_eq(receiver_count(receiver), 0);
	pushing_end(&pushing);
	receiver_stop(receiver);
	certificate_free(&certificate);
}
END_TEST

TEST_MAIN(
    "callback/tls", a_receiver_is_called_over_tls_if_it_is_trusted, nothing_is_sent_to_a_receiver_that_is_not_trusted)
