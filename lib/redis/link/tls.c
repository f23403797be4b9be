/* TLS under a connection to Redis. */
#include "lib/redis/link/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "lib/base/time.h"
#include "weekwheel/error.h"

struct redis_tls {
	SSL_CTX *context;
	BIO_METHOD *method;
};

struct redis_tls_wire {
	SSL *ssl;
	int fd;
};

/* ---- The socket below: OpenSSL's own would raise SIGPIPE */

static int result_of(BIO *bio, ssize_t count)
{
	BIO_clear_retry_flags(bio);
	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return (int)count;
}

static int write_socket(BIO *bio, const char *bytes, int count)
{
	const struct redis_tls_wire *wire = BIO_get_data(bio);

	return result_of(bio, send(wire->fd, bytes, (size_t)count, MSG_NOSIGNAL));
}

static int read_socket(BIO *bio, char *bytes, int count)
{
	const struct redis_tls_wire *wire = BIO_get_data(bio);
	int result = result_of(bio, recv(wire->fd, bytes, (size_t)count, 0));

	if (BIO_should_retry(bio)) {
		BIO_clear_retry_flags(bio);
		BIO_set_retry_read(bio);
	}
	return result;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

/* ---- What connections share */

static int refuse(char *why, size_t size, const char *what, const char *file)
{
	unsigned long first = ERR_peek_error();
	const char *reason =
	    ERR_SYSTEM_ERROR(first) ? strerror(ERR_GET_REASON(first)) : ERR_reason_error_string(ERR_peek_last_error());

	(void)snprintf(why, size, "%s %s: %s", what, file, reason ? reason : "it cannot be read");
	ERR_clear_error();
	return WW_EINVAL;
}

/* OpenSSL would wait for the writer of a pipe. */
static int check(const char *file, char *why, size_t size)
{
	struct stat about;

	if (!file[0] || stat(file, &about) != 0 || S_ISREG(about.st_mode))
		return WW_OK;
	(void)snprintf(why, size, "%s is not a file", file);
	return WW_EINVAL;
}

static int load(SSL_CTX *context, const struct redis_url *url, char *why, size_t size)
{
	const char *key = url->key[0] ? url->key : url->certificate;

	if (check(url->ca, why, size) || check(url->certificate, why, size) || check(key, why, size))
		return WW_EINVAL;
	if (url->ca[0] && SSL_CTX_load_verify_locations(context, url->ca, NULL) != 1)
		return refuse(why, size, "the file of authorities", url->ca);
	if (!url->ca[0] && SSL_CTX_set_default_verify_paths(context) != 1)
		return refuse(why, size, "the authorities of", "the system");
	if (!url->certificate[0])
		return WW_OK;
	if (SSL_CTX_use_certificate_chain_file(context, url->certificate) != 1)
		return refuse(why, size, "the certificate", url->certificate);
	if (SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return refuse(why, size, "the key", key);
	return WW_OK;
}

int ww_redis_tls_make(struct redis_tls **tls, const struct redis_url *url, char *why, size_t size)
{
	struct redis_tls *made = calloc(1, sizeof *made);
	int error;

	if (!made)
		return WW_ENOMEM;
	made->context = SSL_CTX_new(TLS_client_method());
	made->method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "redis");
	if (!made->context || !made->method || !BIO_meth_set_write(made->method, write_socket) ||
	    !BIO_meth_set_read(made->method, read_socket) || !BIO_meth_set_ctrl(made->method, control)) {
		ww_redis_tls_free(made);
		return WW_ENOMEM;
	}
	(void)SSL_CTX_set_min_proto_version(made->context, TLS1_2_VERSION);
	(void)SSL_CTX_set_mode(made->context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(made->context, SSL_VERIFY_PEER, NULL);
	error = load(made->context, url, why, size);
	if (error) {
		ww_redis_tls_free(made);
		return error;
	}
	*tls = made;
	return WW_OK;
}

void ww_redis_tls_free(struct redis_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	BIO_meth_free(tls->method);
	free(tls);
}

/* ---- A connection */

/* The certificate must be for this host. */
static int expect(SSL *ssl, const char *host)
{
	unsigned char bytes[16];

	if (inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	return SSL_set1_host(ssl, host) && SSL_set_tlsext_host_name(ssl, host);
}

static int prepare(struct redis_tls_wire *wire, struct redis_tls *tls, const char *host)
{
	BIO *bio;

	wire->ssl = SSL_new(tls->context);
	bio = wire->ssl ? BIO_new(tls->method) : NULL;
	if (!bio)
		return WW_ENOMEM;
	BIO_set_data(bio, wire);
	BIO_set_init(bio, 1);
	SSL_set_bio(wire->ssl, bio, bio);
	return expect(wire->ssl, host) == 1 ? WW_OK : WW_ENOMEM;
}

static int fail(const struct redis_tls_wire *wire, char *why, size_t size)
{
	long verified = SSL_get_verify_result(wire->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	if (verified != X509_V_OK)
		reason = X509_verify_cert_error_string(verified);
	(void)snprintf(why, size, "TLS: %s", reason ? reason : "the server closed the connection");
	ERR_clear_error();
	return WW_EIO;
}

static int shake(struct redis_tls_wire *wire, uint64_t deadline, char *why, size_t size)
{
	for (;;) {
		struct pollfd waited = {.fd = wire->fd, .events = POLLIN};
		int left = time_left_ms(deadline);
		int result, wish;
		ERR_clear_error();
		result = SSL_connect(wire->ssl);
		if (result == 1)
			return WW_OK;
		wish = SSL_get_error(wire->ssl, result);
		if (wish == SSL_ERROR_WANT_WRITE)
			waited.events = POLLOUT;
		else if (wish != SSL_ERROR_WANT_READ)
			return fail(wire, why, size);
		if (left == 0) {
			(void)snprintf(why, size, "TLS: the server does not answer in time");
			return WW_EIO;
		}
		(void)poll(&waited, 1, left);
	}
}

int ww_redis_tls_begin(struct redis_tls_wire **wire, struct redis_tls *tls, int fd, const char *host, uint64_t deadline,
    char *why, size_t size)
{
	struct redis_tls_wire *made = calloc(1, sizeof *made);
	int error;

	(void)snprintf(why, size, "no memory");
	if (!made)
		return WW_ENOMEM;
	made->fd = fd;
	error = prepare(made, tls, host);
	if (!error)
		error = shake(made, deadline, why, size);
	if (error)
		ww_redis_tls_end(made);
	else
		*wire = made;
	return error;
}

void ww_redis_tls_end(struct redis_tls_wire *wire)
{
	if (!wire)
		return;
	SSL_free(wire->ssl);
	free(wire);
}

static ssize_t settle(struct redis_tls_wire *wire, int result)
{
	if (result > 0)
		return result;
	switch (SSL_get_error(wire->ssl, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	default:
		errno = ECONNRESET;
		return -1;
	}
}

ssize_t ww_redis_tls_send(struct redis_tls_wire *wire, const void *bytes, size_t count)
{
	ERR_clear_error();
	return settle(wire, SSL_write(wire->ssl, bytes, count > 1 << 20 ? 1 << 20 : (int)count));
}

ssize_t ww_redis_tls_receive(struct redis_tls_wire *wire, void *bytes, size_t count)
{
	ERR_clear_error();
	return settle(wire, SSL_read(wire->ssl, bytes, (int)count));
}
