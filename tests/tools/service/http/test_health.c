/* Whether a server is ready, as text and as an object: from states, and from what it adds. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tools/service/http/health.h"
#include "tools/service/state/state.h"

static struct buffer out;

static int written(struct health health)
{
	int ready;

	buffer_free(&out);
	health_states(&health);
	ready = health_write(&health, "jobs", &out);
	ck_assert_int_eq(buffer_append(&out, "", 1), 0);
	ck_assert_ptr_null(health.reasons.data);
	ck_assert_ptr_null(health.more.data);
	return ready;
}

START_TEST(what_stops_is_told)
{
	static const struct {
		unsigned stops;
		const char *text;
	} cases[] = {{STATE_STOPS_READING, "not ready: jobs cannot be read:\na state\n"},
	    {STATE_STOPS_WRITING, "not ready: jobs cannot be written:\na state\n"},
	    {STATE_STOPS_READING | STATE_STOPS_WRITING, "not ready: jobs can be neither read nor written:\na state\n"},
	    {0, "ok\na state\n"}};

	ck_assert_int_eq(written((struct health){.stops = 0}), 1);
	ck_assert_str_eq(out.data, "ok\n");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		state_begin("it", cases[i].stops, "a state");
		ck_assert_int_eq(written((struct health){.stops = 0}), cases[i].stops == 0);
		ck_assert_str_eq(out.data, cases[i].text);
		state_end("it", "it is over");
	}
	/* It is over. */
	ck_assert_int_eq(written((struct health){.stops = 0}), 1);
	buffer_free(&out);
}
END_TEST

START_TEST(as_an_object)
{
	struct health health = {.is_json = 1};

	ck_assert_int_eq(written(health), 1);
	ck_assert_str_eq(out.data, "{\"ready\":true,\"reads\":true,\"writes\":true,\"reasons\":[]}\n");
	health.stops = STATE_STOPS_WRITING;
	health_reason(&health, "a \"node\"");
	health_reason(&health, "another");
	ck_assert_int_eq(buffer_format(&health.more, ",\"nodes\":[]"), 0);
	ck_assert_int_eq(written(health), 0);
	ck_assert_str_eq(out.data,
	    "{\"ready\":false,\"reads\":true,\"writes\":false,\"reasons\":[\"a \\\"node\\\"\",\"another\"],\"nodes\":[]}\n");
	buffer_free(&out);
}
END_TEST

START_TEST(without_memory_nobody_knows)
{
	ck_assert_int_eq(written((struct health){.bad = 1}), -1);
	buffer_free(&out);
}
END_TEST

TEST_MAIN("service/health", what_stops_is_told, as_an_object, without_memory_nobody_knows)
