/* Tests the small parts of the program: times, keys, sorting, the histogram, hints. */
/* tier: quick */

#include "tests/support/seed.h"
#include "tests/tools/weekwheel/fixture.h"
#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/common/moment.h"
#include "tools/common/suggest.h"
#include "tools/weekwheel/replay/histogram.h"
#include "tools/weekwheel/replay/synthetic.h"
#include "weekwheel/wheel.h"

static enum number parse(const char *text, struct moment *moment)
{
	return moment_parse(text, strlen(text), moment);
}

START_TEST(times_are_read_exactly)
{
	static const struct {
		const char *text;
		uint64_t seconds;
		uint32_t ns;
	} good[] = {{"0", 0, 0}, {"-0", 0, 0}, {"007", 7, 0}, {"552.21", 552, 210000000}, {".5", 0, 500000000},
	    {"5.", 5, 0}, {"0.000000001", 0, 1}, {"0.0000000001", 0, 1}, {"0.9999999999", 1, 0}, {"1.0000000000", 1, 0},
	    {"9223372036854775807", INT64_MAX, 0}};
	struct moment moment;
	char text[MOMENT_TEXT];
	size_t i;

	for (i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_int_eq(parse(good[i].text, &moment), NUMBER_OK);
		ck_assert_uint_eq(moment.seconds, good[i].seconds);
		ck_assert_uint_eq(moment.ns, good[i].ns);
	}
	parse("120.500", &moment);
	ck_assert_str_eq(moment_format(text, moment), "120.5");
	parse("100", &moment);
	ck_assert_str_eq(moment_format(text, moment), "100");
}
END_TEST

START_TEST(what_is_no_time_is_refused_and_leaves_the_moment)
{
	static const char *const invalid[] = {
	    "", "-", ".", "-.", "+5", "1e3", "1,5", "1.2.3", " 1", "1 ", "0x10", "nan", "--1"};
	static const char *const large[] = {
	    "9223372036854775808", "99999999999999999999999", "9223372036854775807.9999999999"};
	struct moment moment = {7, 8};
	size_t i;

	for (i = 0; i < sizeof invalid / sizeof *invalid; i++)
		ck_assert_int_eq(parse(invalid[i], &moment), NUMBER_INVALID);
	for (i = 0; i < sizeof large / sizeof *large; i++)
		ck_assert_int_eq(parse(large[i], &moment), NUMBER_TOO_LARGE);
	ck_assert_int_eq(parse("-1", &moment), NUMBER_NEGATIVE);
	ck_assert_int_eq(parse("-0.1", &moment), NUMBER_NEGATIVE);
	ck_assert_int_eq(parse("-99999999999999999999999", &moment), NUMBER_NEGATIVE);
	ck_assert_uint_eq(moment.seconds, 7);
	ck_assert_uint_eq(moment.ns, 8);
}
END_TEST

START_TEST(durations_have_units)
{
	static const struct {
		const char *text;
		uint64_t seconds;
	} good[] = {{"30m", 1800}, {"90s", 90}, {"12h", 43200}, {"7d", 604800}, {"2w", 1209600}, {"45", 45},
	    {"1h30m", 5400}, {"1.5h", 5400}, {"3 m", 180}};
	static const char *const bad[] = {
	    "", "m", "30x", "30mm", "m30", "3 x", "99999999999999999999d", "-1m", "1h-1m", "1m30"};
	struct duration_problem problem;
	uint64_t ns;
	size_t i;

	for (i = 0; i < sizeof good / sizeof *good; i++) {
		ck_assert_int_eq(duration_parse(good[i].text, &ns, &problem), 0);
		ck_assert_uint_eq(ns, good[i].seconds * DURATION_SECOND);
	}
	for (i = 0; i < sizeof bad / sizeof *bad; i++)
		ck_assert_int_eq(duration_parse(bad[i], &ns, &problem), -1);
}
END_TEST

START_TEST(sums_of_times_carry_and_never_overflow)
{
	struct moment last = {WW_TIME_MAX, 0};
	struct moment half = {0, 500000000};
	struct moment one = {1, 0};
	struct moment sum;

	ck_assert_int_eq(moment_add(half, half, &sum), 0);
	ck_assert_int_eq(moment_compare(sum, one), 0);
	ck_assert_int_eq(moment_add(last, half, &sum), -1);
	ck_assert_int_eq(moment_add(last, one, &sum), -1);
	ck_assert_int_eq(moment_add(last, last, &sum), -1);
	sum = moment_subtract(one, half);
	ck_assert_int_eq(moment_compare(sum, half), 0);
	ck_assert_int_lt(moment_compare(half, one), 0);
}
END_TEST

START_TEST(spans_are_readable)
{
	static const struct {
		uint64_t seconds;
		const char *text;
	} spans[] = {{0, "0 s"}, {59, "59 s"}, {60, "1 min"}, {61, "1 min 1 s"}, {3600, "1 h"}, {7260, "2 h 1 min"},
	    {90000, "1 d 1 h"}, {604800, "7 d"}};
	char text[MOMENT_TEXT];
	size_t i;

	for (i = 0; i < sizeof spans / sizeof *spans; i++) {
		struct moment length = {spans[i].seconds, 0};

		ck_assert_str_eq(moment_format_span(text, length), spans[i].text);
	}
}
END_TEST

START_TEST(a_key_has_one_number)
{
	struct keys *keys = keys_new();
	char text[32];
	uint32_t i;

	for (i = 0; i < 20000; i++) {
		int size = snprintf(text, sizeof text, "key %u", i);

		ck_assert_uint_eq(keys_intern(keys, text, (size_t)size), i);
	}
	for (i = 0; i < 20000; i++) {
		int size = snprintf(text, sizeof text, "key %u", i);

		ck_assert_uint_eq(keys_intern(keys, text, (size_t)size), i);
	}
	ck_assert_uint_eq(keys_intern(keys, "a\0b", 3), 20000);
	ck_assert_uint_eq(keys_intern(keys, "a\0c", 3), 20001);
	ck_assert_int_eq(keys_known(keys, "a", 1), 0);
	ck_assert_int_eq(keys_known(keys, "key 7", 5), 1);
	ck_assert_uint_eq(keys_count(keys), 20002);
	keys_free(keys);
}
END_TEST

START_TEST(sorting_keeps_events_of_one_time_in_their_order)
{
	uint64_t seed = seed_of_run("sorting_keeps_events_of_one_time_in_their_order");
	struct events events;
	size_t i;

	events_init(&events);
	for (i = 0; i < 5000; i++)
		add(&events, EVENT_SET, 'k', seed_below(&seed, 50), i);
	ck_assert_uint_gt(events_sort(&events), 0);
	for (i = 1; i < events.count; i++) {
		const struct event *event = &events.at[i];

		ck_assert_uint_le(event[-1].time_seconds, event->time_seconds);
		if (event[-1].time_seconds == event->time_seconds)
			ck_assert_uint_lt(event[-1].due_seconds, event->due_seconds);
	}
	ck_assert_uint_eq(events_sort(&events), 0);
	events_free(&events);
}
END_TEST

START_TEST(the_histogram_is_right_to_three_percent)
{
	struct histogram *histogram = calloc(1, sizeof *histogram);
	uint64_t i;

	ck_assert_uint_eq(histogram_quantile(histogram, 0.9999), 0);
	for (i = 1; i <= 100000; i++)
		histogram_add(histogram, i * 1000);
	ck_assert_uint_eq(histogram_quantile(histogram, 1.0), 100000000);
	for (i = 1; i <= 9; i++) {
		uint64_t exact = i * 10000 * 1000;
		uint64_t told = histogram_quantile(histogram, (double)i / 10);

		ck_assert_uint_ge(told, exact - exact / 100000);
		ck_assert_uint_le(told, exact + exact / 32);
	}
	histogram_add(histogram, UINT64_MAX);
	histogram_add(histogram, 0);
	ck_assert_uint_eq(histogram_quantile(histogram, 1.0), UINT64_MAX);
	ck_assert_uint_eq(histogram_quantile(histogram, 0.0), 0);
	free(histogram);
}
END_TEST

START_TEST(small_values_are_exact_in_the_histogram)
{
	uint64_t value;

	for (value = 0; value < 64; value++) {
		struct histogram *histogram = calloc(1, sizeof *histogram);

		histogram_add(histogram, value);
		histogram_add(histogram, 1000);
		ck_assert_uint_eq(histogram_quantile(histogram, 0.5), value);
		free(histogram);
	}
}
END_TEST

START_TEST(the_same_seed_makes_the_same_week)
{
	struct events a, b, c;

	events_init(&a);
	events_init(&b);
	events_init(&c);
	synthetic_generate(&a, 5, 1000);
	synthetic_generate(&b, 5, 1000);
	synthetic_generate(&c, 6, 1000);
	ck_assert_uint_eq(keys_count(a.keys), 1000);
	ck_assert_uint_eq(a.count, b.count);
	ck_assert_mem_eq(a.at, b.at, a.count * sizeof *a.at);
	ck_assert(a.count != c.count || memcmp(a.at, c.at, a.count * sizeof *a.at) != 0);
	events_sort(&a);
	ck_assert_uint_lt(a.at[a.count - 1].time_seconds, 604800);
	events_free(&a);
	events_free(&b);
	events_free(&c);
}
END_TEST

START_TEST(a_mistyped_word_gets_a_hint)
{
	static const char *const words[] = {"replay", "help", "verify", "write-csv"};

	ck_assert_str_eq(suggest("repaly", words, 4), "replay");
	ck_assert_str_eq(suggest("verfy", words, 4), "verify");
	ck_assert_str_eq(suggest("write", words, 4), "write-csv");
	ck_assert_ptr_null(suggest("banana", words, 4));
	ck_assert_ptr_null(suggest("", words, 4));
	ck_assert_uint_eq(suggest_distance("ab", "ba"), 1);
	ck_assert_uint_eq(suggest_distance("kitten", "sitting"), 3);
}
END_TEST

START_TEST(an_excerpt_fits_and_is_safe_on_a_terminal)
{
	char out[20];

	ck_assert_str_eq(message_excerpt(out, sizeof out, "ab\033[1m", 6), "'ab?[1m'");
	ck_assert_str_eq(
	    message_excerpt(out, sizeof out, "0123456789012345678901234567890", 31), "'01234567890123...'");
	ck_assert_str_eq(message_excerpt(out, sizeof out, "", 0), "''");
}
END_TEST

TEST_MAIN("weekwheel/parts", times_are_read_exactly, what_is_no_time_is_refused_and_leaves_the_moment,
    durations_have_units, sums_of_times_carry_and_never_overflow, spans_are_readable, a_key_has_one_number,
    sorting_keeps_events_of_one_time_in_their_order, the_histogram_is_right_to_three_percent,
    small_values_are_exact_in_the_histogram, the_same_seed_makes_the_same_week, a_mistyped_word_gets_a_hint,
    an_excerpt_fits_and_is_safe_on_a_terminal)
