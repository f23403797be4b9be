/* The options of a program that has an outbox: see options.h. */
#include "tools/service/outbox/options.h"

#include <string.h>

#include "tools/common/message.h"

int outbox_options_read(void *to, const struct given *given)
{
	struct outbox_options *options = (void *)((char *)to + given->setting->at);
	const char *expected = beanstalk_read(given->value, &options->courier.address);

	options->is_reporting = 1;
	return expected ? settings_bad(given, expected) : 0;
}

/* Check them now: each connection reads them again, too late for a message. */
static int check_trusted(const struct tls_files *files)
{
	char why[TLS_REASON];
	struct tls *tls = files->trusted ? tls_client(files, why) : NULL;

	if (files->trusted && !tls)
		return message_error("--expired-ca: %s", why);
	tls_free(tls);
	return 0;
}

int outbox_options_complete(struct outbox_options *options)
{
	if (!options->courier.token)
		options->courier.token = "";
	/* A blank could end the command. */
	if (options->courier.token[strcspn(options->courier.token, " \t")])
		return settings_refuse(
		    "expired-token-file", "names a file whose first line is no token: it has a blank");
	return check_trusted(&options->courier.tls);
}
