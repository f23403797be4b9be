/* A server's certificate: see certificate.h. */
#include "tools/service/net/certificate.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tools/common/message.h"

/* How early to warn: an expired certificate stops all clients at once, and nobody looks at it before. */
enum { WARN_DAYS = 14, DATE_TEXT = 40 };

static const char *date(char text[DATE_TEXT], int64_t seconds)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&time, &tm) || !strftime(text, DATE_TEXT, "%Y-%m-%d %H:%M:%S UTC", &tm))
		(void)snprintf(text, DATE_TEXT, "@%" PRId64, seconds);
	return text;
}

/* OpenSSL and the clients use the system's clock, even if the server's is virtual. */
static void warn_of_time(const struct tls *tls, const char *file)
{
	int64_t now = (int64_t)time(NULL);
	int64_t from, until;
	char when[DATE_TEXT];

	tls_validity(tls, &from, &until);
	if (until <= now)
		message_warning("%s: a certificate in it expired at %s, so clients refuse this server: put a new one "
		                "there, and send SIGHUP",
		    file, date(when, until));
	else if (from > now)
		message_warning("%s: a certificate in it is valid only from %s on, so clients refuse this server: put "
		                "another one there and send SIGHUP, or set the clock",
		    file, date(when, from));
	else if (until - now < WARN_DAYS * 86400)
		message_warning("%s: a certificate in it expires at %s; put a new one there before, and send SIGHUP",
		    file, date(when, until));
}

struct tls *certificate_read(const struct tls_files *files)
{
	char reason[TLS_REASON];
	struct tls *made = tls_server(files, reason);

	if (made)
		warn_of_time(made, files->certificate);
	else
		message_error("%s", reason);
	return made;
}

void certificate_start(struct certificate *certificate, const struct tls_files *files, struct tls *now)
{
	certificate->files = files;
	certificate->now = now;
	pthread_mutex_init(&certificate->lock, NULL);
}

void certificate_stop(struct certificate *certificate)
{
	tls_free(certificate->now);
	certificate->now = NULL;
	pthread_mutex_destroy(&certificate->lock);
}

void certificate_reload(struct certificate *certificate)
{
	struct tls *made, *former;

	if (!certificate->now)
		return;
	made = certificate_read(certificate->files);
	if (!made) {
		message_warning("the certificate of before stays in use");
		return;
	}
	message_info("the certificate was read again");
	/* Open connections keep the certificate that they have. */
	pthread_mutex_lock(&certificate->lock);
	former = certificate->now;
	certificate->now = made;
	pthread_mutex_unlock(&certificate->lock);
	tls_free(former);
}

struct tls_link *certificate_open(struct certificate *certificate)
{
	struct tls_link *link;

	pthread_mutex_lock(&certificate->lock);
	link = tls_open(certificate->now, NULL);
	pthread_mutex_unlock(&certificate->lock);
	return link;
}
