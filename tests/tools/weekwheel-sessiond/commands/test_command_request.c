/* What the functions of commands share: numbers, errors of the maps, and what a transaction may still do. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tests/tools/weekwheel-sessiond/commands/served.h"
#include "tools/weekwheel-sessiond/commands/request.h"

/* A client, and its request with these words. */
static struct loop loop;
static struct conn conn;
static struct sessiond_settings settings = {.max_buffers = 1 << 20};
static struct sessiond server = {.settings = &settings};

static struct request request_of(const struct resp_arg *arg, size_t count)
{
	loop = (struct loop){.server = &server};
	conn = (struct conn){.loop = &loop, .protocol = 2};
	return (struct request){.conn = &conn, .arg = arg, .count = count};
}

/* What was answered since the last time. */
static void expect(const char *answer)
{
	ck_assert_int_eq(buffer_append(&conn.stream.out, "", 1), 0);
	ck_assert_str_eq(conn.stream.out.data, answer);
	buffer_free(&conn.stream.out);
}

START_TEST(numbers_are_read_or_answered)
{
	static const struct {
		struct resp_arg arg;
		int64_t value; /* 0: it is none */
	} cases[] = {{{"12", 2}, 12}, {{"-9223372036854775808", 20}, INT64_MIN},
	    {{"9223372036854775807", 19}, INT64_MAX}, {{"9223372036854775808", 19}, 0}, {{"", 0}, 0}, {{"+1", 2}, 0},
	    {{"1 ", 2}, 0}, {{"01", 2}, 0}, {{"1\0", 2}, 0}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct request request = request_of(&cases[i].arg, 1);
		int64_t value = 0;
		ck_assert_int_eq(request_whole(&request, 0, &value), cases[i].value ? 0 : -1);
		ck_assert_int_eq(value, cases[i].value);
		expect(cases[i].value ? "" : "-ERR value is not an integer or out of range\r\n");
	}
}
END_TEST

START_TEST(errors_are_answered_as_clients_know_them)
{
	static const struct {
		int error;
		const char *answer;
	} cases[] = {{WW_ENOMEM, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
	    {WW_ETOOBIG, "-OOM command not allowed when used memory > 'maxmemory'.\r\n"},
	    {WW_EFULL, "-ERR a command or transaction cannot change so many bytes at once\r\n"},
	    {WW_EINVAL, "-ERR a key has at most 65535 bytes\r\n"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct request request = request_of(NULL, 0);
		ck_assert_int_eq(request_failed(&request, cases[i].error), 1);
		expect(cases[i].answer);
	}
	struct request request = request_of(NULL, 0);
	ck_assert_int_eq(request_failed(&request, WW_OK), 0);
	expect("");
	request_syntax_error(&request);
	expect("-ERR syntax error\r\n");
}
END_TEST

/* Others wait for it, whatever is in it; outside of it nothing is used up. */
START_TEST(a_transaction_has_so_much)
{
	(void)request_of(NULL, 0);
	ck_assert_int_eq(request_may_look(&conn, SIZE_MAX), 1);
	ck_assert_int_eq(request_may_copy(&conn, SIZE_MAX), 1);
	conn.is_in_exec = 1;
	conn.exec_looks = 10;
	conn.exec_bytes = 10;
	ck_assert_int_eq(request_may_look(&conn, 7), 1);
	ck_assert_int_eq(request_may_look(&conn, 3), 1);
	expect("");
	ck_assert_int_eq(request_may_look(&conn, 0), 1);
	ck_assert_int_eq(request_may_look(&conn, 1), 0);
	expect("-ERR this looks at too many keys, channels or clients for a transaction: use it outside of MULTI\r\n");
	ck_assert_int_eq(request_may_copy(&conn, 9), 1);
	ck_assert_int_eq(request_may_copy(&conn, 1000), 1);
	expect("");
	ck_assert_int_eq(request_may_copy(&conn, 1), 0);
	expect("-ERR this copies too many bytes for a transaction: use it outside of MULTI\r\n");
	conn.exec_steps = SIZE_MAX;
	ck_assert_int_eq(request_took_long(&conn), 1);
	ck_assert_int_eq(request_may_look(&conn, 0), 0);
	buffer_free(&conn.stream.out);
	conn.is_in_exec = 0;
	ck_assert_int_eq(request_took_long(&conn), 0);
}
END_TEST

START_TEST(a_long_command_waits_for_another_turn)
{
	(void)request_of(NULL, 0);
	ck_assert_int_eq(request_waits(&conn), 0);
	loop.is_long = 1;
	ck_assert_int_eq(request_waits(&conn), 1);
	ck_assert_int_eq(conn.is_again, 1);
	conn.is_in_exec = 1;
	ck_assert_int_eq(request_waits(&conn), 0);
	ck_assert_int_eq(conn.is_again, 0);
}
END_TEST

TEST_MAIN("weekwheel-sessiond/commands/request", numbers_are_read_or_answered, errors_are_answered_as_clients_know_them,
    a_transaction_has_so_much, a_long_command_waits_for_another_turn)
