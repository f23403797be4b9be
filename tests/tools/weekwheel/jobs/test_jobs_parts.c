/* Tests of the parts of the commands for jobs: answers of a server that may send anything, JSON, stats, tables, keys. */
/* tier: quick */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/common/json.h"
#include "tools/common/percent.h"
#include "tools/weekwheel/jobs/client.h"
#include "tools/weekwheel/jobs/jobs.h"
#include "tools/weekwheel/jobs/table.h"
#include "tools/weekwheel/jobs/tubes.h"
#include "tools/weekwheel/jobs/yaml.h"

/* Make a client whose server has sent `text` and closed the connection. */
static void said(struct client *client, const char *text, size_t size)
{
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_eq(write(ends[1], text, size), (ssize_t)size);
	close(ends[1]);
	*client = (struct client){.channel.fd = ends[0], .server = "test", .timeout_ms = 5000};
}

START_TEST(answers_are_taken_apart)
{
	static const char text[] = "INSERTED 7\r\nRESERVED 8 5\r\na\r\nb\n\r\nRESERVED\r\nOK 0\r\n\r\nMOVED 3\r\n";
	struct reply reply;
	struct client client;

	said(&client, text, sizeof text - 1);
	ck_assert_int_eq(client_read(&client, &reply), 0);
	ck_assert(reply_is(&reply, "INSERTED"));
	ck_assert_uint_eq(reply.words, 2);
	ck_assert_str_eq(reply.word[1], "7");
	ck_assert_ptr_null(reply.body);
	ck_assert_int_eq(client_read(&client, &reply), 0);
	ck_assert_uint_eq(reply.body_size, 5);
	ck_assert_mem_eq(reply.body, "a\r\nb\n", 5);
	ck_assert_int_eq(client_read(&client, &reply), 0);
	ck_assert(reply_is(&reply, "RESERVED"));
	ck_assert_ptr_null(reply.body);
	ck_assert_int_eq(client_read(&client, &reply), 0);
	ck_assert_uint_eq(reply.body_size, 0);
	ck_assert_int_eq(client_read(&client, &reply), 0);
	ck_assert_str_eq(reply.word[1], "3");
	ck_assert_str_eq(reply.word[5], "");
	ck_assert_int_eq(client_read(&client, &reply), -1);
	client_close(&client);
}
END_TEST

START_TEST(what_is_no_answer_is_refused)
{
	static const char *const bad[] = {"OK\r\n", "OK x\r\n", "OK -1\r\n", "OK 1073741825\r\n",
	    "OK 99999999999999999999\r\n", "OK 2\r\nabc\r\n", "RESERVED 1\r\n", "FOUND 1 2 3\r\n", "INSERTED 1\n",
	    "\n"};
	char line[CLIENT_LINE + 10];
	struct reply reply;
	struct client client;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		said(&client, bad[i], strlen(bad[i]));
		if (strcmp(bad[i], "OK\r\n") != 0) {
			ck_assert_int_eq(channel_pull(&client.channel), 0);
			ck_assert_msg(client_take(&client, &reply) == -1, "%s", bad[i]);
		}
		client_close(&client);
	}
	memset(line, 'x', sizeof line);
	said(&client, line, sizeof line);
	ck_assert_int_eq(channel_pull(&client.channel), 0);
	ck_assert_int_eq(client_take(&client, &reply), -1);
	client_close(&client);
	said(&client, "A\0B\r\n", 5);
	ck_assert_int_eq(channel_pull(&client.channel), 0);
	ck_assert_int_eq(client_take(&client, &reply), -1);
	client_close(&client);
}
END_TEST

START_TEST(an_answer_comes_in_any_pieces)
{
	static const char text[] = "FOUND 12 3\r\nxyz\r\nDELETED\r\n";
	int ends[2];
	struct client client = {.server = "test"};
	struct reply reply;
	int taken = 0;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	client.channel.fd = ends[0];
	for (size_t i = 0; i < sizeof text - 1; i++) {
		ck_assert_int_eq(write(ends[1], text + i, 1), 1);
		ck_assert_int_eq(channel_pull(&client.channel), 0);
		if (client_take(&client, &reply) == 1)
			taken++;
		ck_assert_int_eq(taken, (i >= 16) + (i >= 25));
	}
	client_close(&client);
	close(ends[1]);
}
END_TEST

/* Copy the text without its NUL, so that an access checker notices a reader that looks too far. */
static char *copy(const char *text)
{
	char *bytes = malloc(strlen(text) + !*text);

	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, text, strlen(text));
	return bytes;
}

START_TEST(members_of_json_are_found)
{
	static const char text[] =
	    "{\"id\":12, \"a\" : {\"id\":[1,\"}\"]}, \"s\":\"x\\\"\\u00e4\\n\", \"n\":null,\"c\":[1, 2,3]}";
	char *json = copy(text);
	size_t size = strlen(text);
	uint64_t numbers[4];
	char out[20];

	ck_assert_uint_eq(json_whole(json, size, "id"), 12);
	ck_assert_int_eq(json_member(json, size, "a").kind, JSON_OTHER);
	ck_assert_str_eq(json_text(json, size, "s", out, sizeof out), "x\"\xc3\xa4\n");
	ck_assert_str_eq(json_text(json, size, "s", out, 4), "x\"");
	ck_assert_int_eq(json_member(json, size, "n").kind, JSON_NULL);
	ck_assert_str_eq(json_text(json, size, "n", out, sizeof out), "");
	ck_assert_int_eq(json_member(json, size, "none").kind, JSON_NONE);
	ck_assert_uint_eq(json_array(json_member(json, size, "c"), numbers, 4), 3);
	ck_assert_uint_eq(numbers[2], 3);
	free(json);
}
END_TEST

START_TEST(broken_json_ends_nowhere_else)
{
	static const char text[] = "{\"id\":12,\"s\":\"a\\u12\\\",\"b\":[[{\"x\":\"]";
	char out[20];

	for (size_t size = 0; size <= sizeof text - 1; size++) {
		char *json = malloc(size ? size : 1);

		ck_assert_ptr_nonnull(json);
		memcpy(json, text, size);
		json_text(json, size, "s", out, sizeof out);
		json_whole(json, size, "id");
		ck_assert_int_eq(json_member(json, size, "missing").kind, JSON_NONE);
		free(json);
	}
}
END_TEST

START_TEST(stats_are_read_and_written)
{
	static const char text[] =
	    "---\nname: \"a tube\"\ncurrent-jobs-ready: 17\nversion: 1.2.3\nrate: 0.5\nzip: 007\nlast: 5";
	char *yaml = copy(text);
	size_t size = strlen(text);
	char *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);
	char value[8];

	ck_assert_ptr_nonnull(out);
	ck_assert_uint_eq(yaml_whole(yaml, size, "current-jobs-ready"), 17);
	ck_assert_uint_eq(yaml_whole(yaml, size, "last"), 5);
	ck_assert_uint_eq(yaml_whole(yaml, size, "none"), 0);
	ck_assert_str_eq(yaml_text(yaml, size, "name", value, sizeof value), "a tube");
	ck_assert_str_eq(yaml_text(yaml, size, "name", value, 4), "a t");
	yaml_write_json(out, yaml, size);
	fclose(out);
	ck_assert_str_eq(written,
	    "\"name\": \"a tube\", \"current-jobs-ready\": 17, \"version\": \"1.2.3\", \"rate\": 0.5, "
	    "\"zip\": \"007\", \"last\": 5");
	free(written);
	free(yaml);
}
END_TEST

START_TEST(a_list_has_items_without_names)
{
	static const char text[] = "---\n- default\n- mail\n";
	struct yaml_field field;
	size_t at = 0;

	ck_assert_int_eq(yaml_next(text, sizeof text - 1, &at, &field), 1);
	ck_assert_uint_eq(field.name_size, 0);
	ck_assert_mem_eq(field.value, "default", field.value_size);
	ck_assert_int_eq(yaml_next(text, sizeof text - 1, &at, &field), 1);
	ck_assert_mem_eq(field.value, "mail", field.value_size);
	ck_assert_int_eq(yaml_next(text, sizeof text - 1, &at, &field), 0);
}
END_TEST

START_TEST(strings_of_json_are_valid_whatever_the_bytes)
{
	static const char bytes[] = "a\"\\\n\x1b\x7f\xc3\xa4\xff\xe2\x82";
	char *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);

	ck_assert_ptr_nonnull(out);
	json_write_string(out, bytes, sizeof bytes - 1);
	fclose(out);
	ck_assert_str_eq(written, "\"a\\\"\\\\\\u000a\\u001b\\u007f\xc3\xa4\\ufffd\\ufffd\\ufffd\"");
	free(written);
}
END_TEST

START_TEST(keys_are_encoded_and_shown)
{
	char out[JOBS_KEY_TEXT], key[WW_JOB_KEY_MAX];

	percent_encode("a b/~-._Z9", 10, out, sizeof out);
	ck_assert_str_eq(out, "a%20b%2F~-._Z9");
	percent_encode("-", 1, out, sizeof out);
	ck_assert_str_eq(out, "%2D");
	memset(key, 0xff, sizeof key);
	percent_encode(key, sizeof key, out, sizeof out);
	ck_assert_uint_eq(strlen(out), sizeof out - 1);
	percent_encode("ab%", 3, out, 5);
	ck_assert_str_eq(out, "ab");
	ck_assert_str_eq(jobs_key_show("a%20b%1B%4", out, sizeof out), "a b?%4");
	ck_assert_str_eq(jobs_key_show("abcdef", out, 4), "abc");
}
END_TEST

START_TEST(tables_are_aligned)
{
	static const struct table_column columns[] = {{"N", 1}, {"NAME", 0}, {"LAST", 0}};
	char *written = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&written, &length);
	struct text_table table;

	ck_assert_ptr_nonnull(out);
	table_begin(&table, columns, 3);
	table_cell(&table, "%d", 100);
	table_cell(&table, "a\033[1m");
	table_cell(&table, "x");
	table_write(&table, out);
	table_cell(&table, "1");
	table_cell(&table, "b");
	table_cell(&table, "yy");
	table_write(&table, out);
	table_free(&table);
	fclose(out);
	ck_assert_str_eq(written, "  N  NAME   LAST\n100  a?[1m  x\n  1  b      yy\n");
	free(written);
}
END_TEST

START_TEST(bars_are_seen_and_fit)
{
	char bar[11];

	ck_assert_str_eq(forecast_bar(bar, 10, 0, 5), "");
	ck_assert_str_eq(forecast_bar(bar, 10, 1, 1000000), "#");
	ck_assert_str_eq(forecast_bar(bar, 10, 5, 10), "#####");
	ck_assert_str_eq(forecast_bar(bar, 10, 10, 10), "##########");
	ck_assert_str_eq(forecast_bar(bar, 10, UINT64_MAX, UINT64_MAX), "##########");
}
END_TEST

TEST_MAIN("weekwheel/jobs_parts", answers_are_taken_apart, what_is_no_answer_is_refused, an_answer_comes_in_any_pieces,
    members_of_json_are_found, broken_json_ends_nowhere_else, stats_are_read_and_written,
    a_list_has_items_without_names, strings_of_json_are_valid_whatever_the_bytes, keys_are_encoded_and_shown,
    tables_are_aligned, bars_are_seen_and_fit)
