/* Answers of a server that may send anything: they are parsed, and their content is read as JSON and as stats. */
/* tier: quick */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/json.h"
#include "tools/weekwheel/jobs/client.h"
#include "tools/weekwheel/jobs/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_body(const struct reply *reply)
{
	uint64_t counts[8];
	char out[16];
	struct json_value name, value;
	struct yaml_field field;
	size_t member = 0;
	size_t at = 0;

	/* A copy of exactly that size: a sanitizer sees a reader that looks too far. */
	char *body = malloc(reply->body_size + !reply->body_size);

	if (!body)
		abort();
	if (reply->body_size)
		memcpy(body, reply->body, reply->body_size);
	while (json_next(body, reply->body_size, &member, &name, &value) > 0)
		json_decode(value, out, sizeof out);
	json_text(body, reply->body_size, "key", out, sizeof out);
	json_array(json_member(body, reply->body_size, "counts"), counts, 8);
	yaml_text(body, reply->body_size, "name", out, sizeof out);
	while (yaml_next(body, reply->body_size, &at, &field))
		if (field.value + field.value_size > body + reply->body_size)
			abort();
	free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client client = {.channel.fd = -1, .server = "fuzz"};
	struct reply reply;

	if (buffer_append(&client.channel.in, data, size))
		abort();
	while (client_take(&client, &reply) > 0)
		if (reply.body)
			read_body(&reply);
	if (client.channel.in.size > size)
		abort();
	client_close(&client);
	return 0;
}
