/* The page and the plots: what is in them, that their tags close, and that nothing missing is drawn. */

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/suite.h"
#include "tools/bench/page.h"
#include "tools/bench/plot_axis.h"
#include "tools/bench/plot_style.h"

enum { TICKS = 90000 };

static size_t a_byte_a_tick(uint64_t horizon)
{
	return horizon;
}

static size_t always_nothing(uint64_t horizon)
{
	(void)horizon;
	return 0;
}

static size_t as_much_for_any(uint64_t horizon)
{
	(void)horizon;
	return 4000;
}

static size_t a_header(uint64_t horizon)
{
	(void)horizon;
	return 48;
}

static const struct structure ours = {.name = "weekwheel", .summary = "this", .fixed_bytes = a_byte_a_tick};
static const struct structure other = {.name = "linked", .summary = "that", .fixed_bytes = always_nothing};
static const struct structure odd = {.name = "<b>&\"\x1b\xff", .summary = "a < b && c"};

static const struct structure header = {.name = "heap4", .summary = "little", .fixed_bytes = a_header};
static const struct structure bounded = {
    .name = "linked-clocks", .summary = "a week", .longest = BENCH_WEEK, .fixed_bytes = as_much_for_any};
static const struct structure flat = {
    .name = "flat", .summary = "a slot a tick", .longest = BENCH_WEEK, .fixed_bytes = a_byte_a_tick, .any_horizon = 1};

static struct result result_rows[64];
static struct results results;

static void begin(void)
{
	memset(&results, 0, sizeof results);
	results.result = result_rows;
	strcpy(results.command, "bench <script>alert(1)</script> \"&\"");
	strcpy(results.machine, "a machine");
}

static void put(
    const struct structure *structure, enum workload workload, uint64_t n, enum metric metric, double median)
{
	struct result result = {structure, workload, n, metric, median, median / 2, median * 2, 3};

	ck_assert_uint_lt(results.count, sizeof result_rows / sizeof *result_rows);
	result_rows[results.count++] = result;
}

/* Return the whole file from its beginning, to be freed. */
static char *contents(FILE *file)
{
	long size;
	char *text;

	ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
	size = ftell(file);
	ck_assert_int_gt(size, 0);
	rewind(file);
	text = calloc(1, (size_t)size + 1);
	ck_assert_ptr_nonnull(text);
	ck_assert_uint_eq(fread(text, 1, (size_t)size, file), (size_t)size);
	return text;
}

static char *page(void)
{
	FILE *file = tmpfile();
	char *text;

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(page_write(file, &results), 0);
	text = contents(file);
	fclose(file);
	return text;
}

static size_t count_of(const char *text, const char *what)
{
	size_t count = 0;

	while ((text = strstr(text, what))) {
		count++;
		text += strlen(what);
	}
	return count;
}

/* Fail if a tag is closed that is not the last opened, or stays open. */
static void expect_closed(const char *text)
{
	const char *open[64];
	size_t depth = 0;

	while ((text = strchr(text, '<'))) {
		const char *end = strchr(text, '>');
		size_t size;

		ck_assert_ptr_nonnull(end);
		if (text[1] == '/') {
			size = (size_t)(end - text) - 2;
			ck_assert_uint_gt(depth, 0);
			depth--;
			ck_assert_msg(strncmp(open[depth], text + 2, size) == 0 && strcspn(open[depth], " >") == size,
			    "<%.20s closed by %.20s", open[depth], text);
		} else if (text[1] != '!' && end[-1] != '/') {
			ck_assert_uint_lt(depth, sizeof open / sizeof *open);
			open[depth++] = text + 1;
		}
		text = end;
	}
	ck_assert_uint_eq(depth, 0);
}

static void expect_finite(const char *text)
{
	ck_assert_ptr_null(strstr(text, "nan "));
	ck_assert_ptr_null(strstr(text, "nan\""));
	ck_assert_ptr_null(strstr(text, "inf"));
}

static void put_sizes(enum workload workload, enum metric metric)
{
	put(&ours, workload, 1000000, metric, 15);
	put(&ours, workload, 10000, metric, 2);
	put(&other, workload, 10000, metric, 3);
	put(&other, workload, 1000000, metric, 30);
}

START_TEST(a_page_has_the_plots_that_there_are_results_for)
{
	char *text;

	begin();
	put_sizes(WORKLOAD_A, NS_PER_OP);
	text = page();
	expect_closed(text);
	expect_finite(text);
	ck_assert_uint_eq(count_of(text, "<figure"), 1);
	ck_assert_uint_eq(count_of(text, "<h3>Schedule</h3>"), 1);
	ck_assert_ptr_nonnull(strstr(text, "At 1 million timers: weekwheel 15 ns; linked, 30 ns (2.0 times)."));
	ck_assert_ptr_nonnull(strstr(text, "weekwheel at 10,000: 2 ns (1 ns to 4 ns)"));
	ck_assert_ptr_null(strstr(text, "Left out"));
	free(text);
}
END_TEST

START_TEST(every_workload_has_its_plot)
{
	char *text;

	begin();
	put_sizes(WORKLOAD_A, NS_PER_OP);
	put_sizes(WORKLOAD_B, NS_PER_OP);
	put_sizes(WORKLOAD_C30, NS_PER_OP);
	put_sizes(WORKLOAD_C1800, NS_PER_OP);
	put_sizes(WORKLOAD_CWEEK, NS_PER_OP);
	put_sizes(WORKLOAD_D, NS_PER_TIMER);
	put_sizes(WORKLOAD_D, MAX_TICK_US);
	put_sizes(WORKLOAD_R, NS_PER_TIMER);
	put_sizes(WORKLOAD_F, NS_PER_OP);
	put_sizes(WORKLOAD_G, BYTES_PER_TIMER);
	put(&ours, WORKLOAD_E, 1, NS_PER_TICK, 1.5);
	put(&ours, WORKLOAD_E, 1, JUMP_NS, 300);
	text = page();
	expect_closed(text);
	expect_finite(text);
	/* The fixed memory, too; not the two of ticks. */
	ck_assert_uint_eq(count_of(text, "<figure"), 13);
	ck_assert_uint_lt(strlen(text), 100000);
	free(text);
}
END_TEST

START_TEST(the_empty_structure_is_shown_for_what_it_can_hold)
{
	char *text;

	begin();
	put(&ours, WORKLOAD_G, 10000, BYTES_PER_TIMER, 48);
	put(&header, WORKLOAD_G, 10000, BYTES_PER_TIMER, 13);
	put(&bounded, WORKLOAD_G, 10000, BYTES_PER_TIMER, 24);
	put(&flat, WORKLOAD_G, 10000, BYTES_PER_TIMER, 24);
	text = page();
	ck_assert_uint_eq(count_of(text, "<figure"), 2);
	ck_assert_ptr_nonnull(strstr(text, "linked-clocks at 1 week: 4 kB"));
	ck_assert_ptr_null(strstr(text, "linked-clocks at 1 month"));
	ck_assert_ptr_nonnull(strstr(text, "flat at 1 year: 32 MB"));
	ck_assert_ptr_null(strstr(text, "heap4 at 1 min"));
	ck_assert_ptr_null(strstr(text, "0.00 times"));
	free(text);
}
END_TEST

START_TEST(what_is_wrong_is_on_the_page)
{
	struct checked checked[] = {{&ours, NULL, 0}, {&other, NULL, 3}, {&odd, "it <never> expired", 0}};
	char *text;

	begin();
	put(&ours, WORKLOAD_A, 1000, NS_PER_OP, 5);
	results.checked = checked;
	results.checked_count = 3;
	text = page();
	expect_closed(text);
	ck_assert_ptr_nonnull(strstr(text, "<b>weekwheel</b>: never early, never late</li>"));
	ck_assert_ptr_nonnull(strstr(text, "<b>linked</b>: never early, up to 3 s late</li>"));
	ck_assert_ptr_nonnull(strstr(text, "<b>&lt;b&gt;&amp;&quot;?"
	                                   "?</b>: <b>WRONG</b>, so not timed: it &lt;never&gt; expired"));
	free(text);
}
END_TEST

/* Return how many captions say that stalls are in the ticks. */
static size_t stalls(unsigned repetitions)
{
	size_t count;
	char *text;

	begin();
	put(&ours, WORKLOAD_D, 1000, NS_PER_TIMER, 5);
	put(&ours, WORKLOAD_D, 1000, MAX_TICK_US, 5);
	result_rows[1].repetitions = repetitions;
	text = page();
	count = count_of(text, "fewer than 3 repetitions");
	free(text);
	return count;
}

START_TEST(a_caption_says_that_too_few_repetitions_filter_nothing)
{
	ck_assert_uint_eq(stalls(1), 1);
	ck_assert_uint_eq(stalls(2), 1);
	ck_assert_uint_eq(stalls(3), 0);
}
END_TEST

/* What would be false of other results than the author's. */
START_TEST(captions_claim_nothing_of_results)
{
	static const char *const claims[] = {"the least to do", "Every line", "A line that rises", "Most of it",
	    "flat wheel", "ordinary cascade", "A heap", "nothing to speak of"};
	char *text;

	begin();
	for (int workload = 0; workload < WORKLOADS; workload++) {
		put(&ours, (enum workload)workload, 1000, workload == WORKLOAD_G ? BYTES_PER_TIMER : NS_PER_OP, 5);
		put(&ours, (enum workload)workload, 1000, MAX_TICK_US, 5);
		put(&ours, (enum workload)workload, 1000, NS_PER_TICK, 5);
		put(&ours, (enum workload)workload, 1000, JUMP_NS, 5);
	}
	text = page();
	ck_assert_uint_ge(count_of(text, "<figcaption"), 12);
	for (size_t i = 0; i < sizeof claims / sizeof *claims; i++)
		ck_assert_msg(!strstr(text, claims[i]), "%s", claims[i]);
	free(text);
}
END_TEST

START_TEST(nothing_is_a_page_too)
{
	char *text;

	begin();
	text = page();
	expect_closed(text);
	ck_assert_uint_eq(count_of(text, "<figure"), 0);
	ck_assert_uint_eq(count_of(text, "<table"), 0);
	free(text);
}
END_TEST

START_TEST(values_that_have_no_place_are_left_out)
{
	char *text;

	begin();
	put(&ours, WORKLOAD_A, 10000, NS_PER_OP, 0);
	put(&other, WORKLOAD_A, 10000, NS_PER_OP, -1);
	put(&ours, WORKLOAD_B, 10000, NS_PER_OP, 0);
	put(&other, WORKLOAD_B, 10000, NS_PER_OP, 5);
	put(&other, WORKLOAD_G, 10000, BYTES_PER_TIMER, 24);
	text = page();
	expect_closed(text);
	expect_finite(text);
	ck_assert_uint_eq(count_of(text, "<figure"), 2);
	ck_assert_ptr_null(strstr(text, "Memory of the empty structure"));
	free(text);
}
END_TEST

START_TEST(what_was_not_measured_with_the_most_timers_is_not_at_a_glance)
{
	const char *at_a_glance = "<tr><th>heap4</th>";
	char *text, *end;

	begin();
	put_sizes(WORKLOAD_A, NS_PER_OP);
	put(&header, WORKLOAD_A, 10000, NS_PER_OP, 7);
	text = page();
	end = strstr(text, "</table>");
	ck_assert_ptr_nonnull(end);
	*end = 0;
	ck_assert_uint_eq(count_of(text, "<tr><th>linked</th>"), 1);
	ck_assert_uint_eq(count_of(text, at_a_glance), 0);
	free(text);
	put(&header, WORKLOAD_A, 1000000, NS_PER_OP, 9);
	text = page();
	ck_assert_uint_ge(count_of(text, at_a_glance), 1);
	expect_closed(text);
	free(text);
}
END_TEST

START_TEST(text_is_escaped)
{
	struct left_out left = {&odd, WORKLOAD_D, 1000, "not <done> in 5 s"};
	char *text;

	begin();
	put(&odd, WORKLOAD_A, 1000, NS_PER_OP, 5);
	results.left_out = &left;
	results.left_out_count = 1;
	text = page();
	expect_closed(text);
	ck_assert_ptr_null(strstr(text, "<script"));
	ck_assert_ptr_null(strstr(text, odd.name));
	ck_assert_ptr_null(strstr(text, odd.summary));
	ck_assert_ptr_null(strpbrk(text, "\x1b\xff"));
	ck_assert_ptr_nonnull(strstr(text, "&lt;script&gt;alert(1)&lt;/script&gt; &quot;&amp;&quot;"));
	ck_assert_ptr_nonnull(strstr(text, "&lt;b&gt;&amp;&quot;??"));
	ck_assert_ptr_nonnull(strstr(text, "D, 1,000 timers: not &lt;done&gt; in 5 s"));
	free(text);
	left.n = 1;
	text = page();
	ck_assert_ptr_nonnull(strstr(text, "D, 1 timer: not"));
	free(text);
}
END_TEST

START_TEST(only_utf8_that_xml_can_hold_is_written)
{
	static const struct {
		const char *text, *written;
	} cases[] = {{"\xc2\xb5s", "\xc2\xb5s"}, {"\xe2\x82\xac", "\xe2\x82\xac"},
	    {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"}, {"\xc0\xaf", "??"}, {"\xed\xa0\x80", "???"}, {"\xe2\x82", "??"},
	    {"\xf4\x90\x80\x80", "????"}, {"\xef\xbf\xbf", "???"}, {"a\x01\nb", "a?\nb"}};
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		FILE *file = tmpfile();
		char *text;

		ck_assert_ptr_nonnull(file);
		style_write_text(file, cases[i].text);
		text = contents(file);
		ck_assert_str_eq(text, cases[i].written);
		free(text);
		fclose(file);
	}
}
END_TEST

START_TEST(numbers_have_a_point_in_every_locale)
{
	static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "es_ES.UTF-8"};
	char *plain, *text;
	size_t i;

	begin();
	put_sizes(WORKLOAD_D, NS_PER_TIMER);
	plain = page();
	for (i = 0; i < sizeof commas / sizeof *commas; i++) {
		if (!setlocale(LC_ALL, commas[i]))
			continue;
		text = page();
		ck_assert_str_eq(text, plain);
		free(text);
	}
	setlocale(LC_ALL, "C");
	free(plain);
}
END_TEST

/* Ticks of a microsecond, one of them long. */
static struct ticks ticks_with_peak(const struct structure *structure, size_t peak, uint32_t ns)
{
	struct ticks ticks = {structure, 1000000, TICKS, calloc(TICKS, sizeof(uint32_t))};
	size_t i;

	ck_assert_ptr_nonnull(ticks.ns);
	for (i = 0; i < TICKS; i++)
		ticks.ns[i] = 1000;
	ticks.ns[peak - 1] = ns;
	return ticks;
}

START_TEST(the_ticks_around_the_end_of_a_day_are_shown)
{
	struct ticks ticks[2] = {ticks_with_peak(&ours, 86399, 60000), ticks_with_peak(&other, 86400, 200000000)};
	char *text;

	begin();
	ticks[0].ns[5] = 999000000; /* far from there */
	ticks[1].ns[80000] = 0;     /* shorter than the clock can tell */
	results.ticks = ticks;
	results.ticks_count = 2;
	text = page();
	expect_closed(text);
	expect_finite(text);
	ck_assert_uint_eq(count_of(text, "<figure"), 2);
	ck_assert_ptr_nonnull(strstr(text, "longest: 60 µs"));
	ck_assert_ptr_nonnull(strstr(text, "longest: 200 ms"));
	free(text);
	ticks[0].count = ticks[1].count = 80000; /* the boundary is not reached */
	text = page();
	ck_assert_uint_eq(count_of(text, "<figure"), 0);
	free(text);
	free(ticks[0].ns);
	free(ticks[1].ns);
}
END_TEST

static char *file_in(const char *folder, const char *name)
{
	char path[200];
	FILE *file;
	char *text;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "r");
	if (!file)
		return NULL;
	text = contents(file);
	fclose(file);
	unlink(path);
	return text;
}

START_TEST(plots_stand_alone)
{
	static const char *const names[] = {"heartbeat.svg", "life.svg", "memory.svg"};
	char folder[] = "/tmp/weekwheel-page-XXXXXX";
	size_t i;

	begin();
	put_sizes(WORKLOAD_C30, NS_PER_OP);
	put_sizes(WORKLOAD_D, NS_PER_TIMER);
	put_sizes(WORKLOAD_G, BYTES_PER_TIMER);
	memset(results.machine, 'm', sizeof results.machine - 1); /* one word that is longer than a line */
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(page_plots_possible(folder), 0);
	ck_assert_int_eq(page_plots(folder, &results), 3);
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		char *text = file_in(folder, names[i]);

		ck_assert_msg(text != NULL, "%s is missing", names[i]);
		expect_closed(text);
		expect_finite(text);
		ck_assert_int_eq(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
		ck_assert_ptr_nonnull(strstr(text, "bench &lt;script&gt;"));
		free(text);
	}
	/* The folder is empty but for them, since there are no ticks. */
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_an_error)
{
	begin();
	ck_assert_int_eq(page_plots_possible("/nowhere/at/all"), -1);
	ck_assert_int_eq(page_plots_possible("/dev/null"), -1);
	ck_assert_int_eq(page_plots("/nowhere/at/all", &results), 0); /* nothing to write */
	put_sizes(WORKLOAD_D, NS_PER_TIMER);
	ck_assert_int_eq(page_plots("/nowhere/at/all", &results), -1);
}
END_TEST

START_TEST(a_full_disk_is_an_error)
{
	FILE *full = fopen("/dev/full", "w");

	begin();
	put_sizes(WORKLOAD_D, NS_PER_TIMER);
	if (full) {
		ck_assert_int_eq(page_write(full, &results), -1);
		fclose(full);
	}
}
END_TEST

START_TEST(axes_end_at_round_values)
{
	static const struct {
		double low, high, axis_low, axis_high;
	} cases[] = {{6.1, 700, 5, 1000}, {1, 100, 1, 100}, {0.02, 0.3, 0.02, 0.5}, {1e6, 1e7, 1e6, 1e7}};
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct axis axis = {.at_low = 100, .at_high = 20};

		axis_fit(&axis, cases[i].low, cases[i].high);
		ck_assert_double_eq_tol(axis.low, cases[i].axis_low, axis.low * 1e-9);
		ck_assert_double_eq_tol(axis.high, cases[i].axis_high, axis.high * 1e-9);
		ck_assert_double_eq_tol(axis_place(&axis, axis.low), 100, 1e-9);
		ck_assert_double_eq_tol(axis_place(&axis, axis.high), 20, 1e-9);
	}
}
END_TEST

START_TEST(an_axis_has_ticks_whatever_its_range)
{
	double low, span;

	for (low = 1e-6; low < 1e9; low *= 3.7)
		for (span = 1; span < 1e12; span *= 5.3) {
			struct axis axis = {.unit = AXIS_TIME, .at_low = 0, .at_high = 300};
			struct axis_tick ticks[AXIS_TICKS];
			size_t count, labelled = 0, i;

			axis_fit(&axis, low, low * span);
			ck_assert(axis.low <= low * (1 + 1e-9) && axis.high >= low * span * (1 - 1e-9));
			count = axis_ticks(&axis, 40, ticks);
			ck_assert_uint_lt(count, AXIS_TICKS);
			for (i = 0; i < count; i++)
				labelled += ticks[i].labelled != 0;
			ck_assert_uint_ge(labelled, 2);
		}
}
END_TEST

START_TEST(an_axis_too_short_for_round_values_has_its_ends)
{
	struct axis axis = {.unit = AXIS_COUNT, .low = 30000, .high = 40000, .at_low = 0, .at_high = 300};
	struct axis_tick ticks[AXIS_TICKS];

	ck_assert_uint_eq(axis_ticks(&axis, 72, ticks), 2);
	ck_assert_double_eq(ticks[0].value, 30000);
	ck_assert_double_eq(ticks[1].value, 40000);
}
END_TEST

START_TEST(values_read_well)
{
	static const struct {
		enum axis_unit unit;
		double value;
		const char *text;
	} cases[] = {{AXIS_TIME, 6.83, "6.8 ns"}, {AXIS_TIME, 7.0, "7 ns"}, {AXIS_TIME, 0.5, "0.5 ns"},
	    {AXIS_TIME, 120, "120 ns"}, {AXIS_TIME, 999.9, "1 µs"}, {AXIS_TIME, 2e8, "200 ms"}, {AXIS_TIME, 3e9, "3 s"},
	    {AXIS_BYTES, 4.8e6, "4.8 MB"}, {AXIS_COUNT, 10000, "10,000"}, {AXIS_COUNT, 1e7, "10 million"},
	    {AXIS_COUNT, 2.5e6, "2.5 million"}, {AXIS_SHARE, 0.0005, "0.05 %"}, {AXIS_SHARE, 1, "100 %"},
	    {AXIS_SPAN, 86400, "1 day"}, {AXIS_SPAN, 60, "1 min"}};
	char text[AXIS_TEXT];
	size_t i;

	for (i = 0; i < sizeof cases / sizeof *cases; i++)
		ck_assert_str_eq(axis_text(text, cases[i].unit, cases[i].value), cases[i].text);
	ck_assert_str_eq(axis_text_count(text, 12345678), "12,345,678");
	ck_assert_str_eq(axis_text_ratio(text, 3004.2), "3,004");
	ck_assert_str_eq(axis_text_ratio(text, 0.68), "0.7");
	ck_assert_str_eq(axis_text_ratio(text, 0.02), "0.02");
	ck_assert_str_eq(axis_text_ratio(text, 0.0023), "0.002");
}
END_TEST

TEST_MAIN("bench/page", a_page_has_the_plots_that_there_are_results_for, every_workload_has_its_plot,
    the_empty_structure_is_shown_for_what_it_can_hold, what_is_wrong_is_on_the_page,
    a_caption_says_that_too_few_repetitions_filter_nothing, captions_claim_nothing_of_results, nothing_is_a_page_too,
    values_that_have_no_place_are_left_out, what_was_not_measured_with_the_most_timers_is_not_at_a_glance,
    text_is_escaped, only_utf8_that_xml_can_hold_is_written, numbers_have_a_point_in_every_locale,
    the_ticks_around_the_end_of_a_day_are_shown, plots_stand_alone, a_folder_that_is_not_there_is_an_error,
    a_full_disk_is_an_error, axes_end_at_round_values, an_axis_has_ticks_whatever_its_range,
    an_axis_too_short_for_round_values_has_its_ends, values_read_well)
