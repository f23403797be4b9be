/* Jobs in JSON: what is written is read again, in every form, whatever the fields are. */
/* tier: quick */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/job/job.h"
#include "weekwheel/schedule.h"

enum { WHERE = JOB_SHOWN | JOB_BODY };

static const struct ww_job_info full = {
    .id = UINT64_MAX,
    .version = 7,
    .state = WW_JOB_DELAYED,
    .flags = WW_JOB_WALL,
    .priority = UINT32_MAX,
    .attempts = 3,
    .tube = "mail",
    .key = "a b/\xc3\xa4",
    .key_length = 6,
    .group = {0xff, 0, 'g'},
    .group_length = 3,
    .body = "x\0y",
    .body_length = 3,
    .created = 1796115600000000001,
    .due = 4102444800123456789,
    .left = 1500000000,
    .delay = 2000000000,
    .run = WW_SECOND,
    .period = WW_MILLISECOND,
    .skip = 7000000001,
    .backoff = 2,
    .backoff_max = 3,
    .hold = WW_MILLISECOND,
    .keep = 5,
    .expire = 8,
    .expired = WW_EXPIRED_BURY,
    .expires = 4102444860000000000,
    .code = 9,
    .debounce = 6,
    .missed = WW_MISSED_SKIP,
    .reserves = 1,
    .timeouts = 2,
    .releases = 3,
    .buries = 4,
    .kicks = 5,
    .tries = 6,
    .error = "\"no\"\n\xf0\x9f\x98\x80",
};

static void write(struct buffer *out, const struct ww_job_info *info, enum field_form form)
{
	const struct field_moment now = {.is_exact = 1};

	ck_assert_int_eq(buffer_append(out, "{", 1), 0);
	ck_assert_int_eq(field_write(out, job_fields, WHERE, info, form, &now), 0);
	ck_assert_int_eq(buffer_append(out, "}", 2), 0);
	out->size--;
}

/* The room has exactly the size that is promised to be enough. */
static int read(struct ww_job_info *info, const char *text, size_t size, enum field_form form, char *room)
{
	struct json_value name, value;
	size_t at = 0;
	int bad = 0;
	int more;

	while ((more = json_next(text, size, &at, &name, &value)) > 0) {
		int is_base64;
		const struct field *field = field_find(job_fields, WHERE, name, &is_base64);

		ck_assert_msg(field != NULL, "%.*s", (int)name.size, name.text);
		bad |= field_take(field, info, value, is_base64, form, &room);
	}
	ck_assert_int_eq(more, 0);
	return bad;
}

static void compare(const struct ww_job_info *is, const struct ww_job_info *wanted)
{
	ck_assert_uint_eq(is->body_length, wanted->body_length);
	ck_assert_int_eq(memcmp(is->body, wanted->body, is->body_length), 0);
	for (const struct field *field = job_fields; field->name; field++) {
		const char *one = (const char *)is + field->out.at;
		const char *other = (const char *)wanted + field->out.at;

		if (field->kind == FIELD_TEXT)
			ck_assert_str_eq(one, other);
		else if (field->kind != FIELD_BODY)
			ck_assert_msg(memcmp(one, other, field->out.size) == 0, "%s", field->name);
	}
}

START_TEST(what_is_written_is_read)
{
	static const enum field_form forms[] = {FIELD_PLAIN, FIELD_LINE};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct ww_job_info info = {0};
		struct buffer out = {0};
		char *room;

		write(&out, &full, forms[i]);
		room = malloc(out.size + 1);
		ck_assert_ptr_nonnull(room);
		ck_assert_int_eq(read(&info, out.data, out.size, forms[i], room), 0);
		compare(&info, &full);
		free(room);
		buffer_free(&out);
	}
}
END_TEST

START_TEST(a_job_has_one_form)
{
	struct ww_job_info info = {
	    .id = 9007199254740993, .state = WW_JOB_BURIED, .tube = "t", .body = "\xff", .body_length = 1};
	const struct field_moment now = {0};
	struct buffer out = {0};

	ck_assert_int_eq(field_write(&out, job_fields, WHERE, &info, FIELD_PLAIN, &now), 0);
	ck_assert_int_eq(buffer_append(&out, "", 1), 0);
	ck_assert_str_eq(out.data,
	    "\"id\":\"9007199254740993\",\"tube\":\"t\",\"version\":0,\"state\":\"buried\",\"priority\":0,\"delay\":0,"
	    "\"left\":0,\"clock\":\"elapsed\",\"created\":null,\"run\":0,\"every\":0,\"missed\":\"once\",\"skip\":0,"
	    "\"attempts\":0,\"backoff\":0,\"backoff_max\":0,\"reserves\":0,\"timeouts\":0,\"releases\":0,\"buries\":0,"
	    "\"kicks\":0,\"tries\":0,\"error\":\"\",\"length\":1,\"body_base64\":\"/w==\"");
	buffer_drop(&out, out.size);
	write(&out, &full, FIELD_PLAIN);
	ck_assert_str_eq(out.data,
	    "{\"id\":\"18446744073709551615\",\"tube\":\"mail\",\"key\":\"a b/\xc3\xa4\",\"group_base64\":\"/wBn\","
	    "\"version\":7,\"state\":\"delayed\",\"priority\":4294967295,\"delay\":2,"
	    "\"due\":\"2100-01-01T00:00:00.123456789Z\",\"left\":1.5,\"clock\":\"wall\","
	    "\"created\":\"2026-12-01T09:00:00.000000001Z\",\"run\":1,\"every\":0.001,\"missed\":\"skip\","
	    "\"skip\":7.000000001,\"attempts\":3,\"backoff\":0.000000002,\"backoff_max\":0.000000003,"
	    "\"keep\":0.000000005,\"expire\":0.000000008,\"expired\":\"bury\","
	    "\"expires\":\"2100-01-01T00:01:00.000000000Z\",\"code\":9,\"debounced\":0.000000006,\"unique\":0.001,\"reserves\":1,\"timeouts\":2,"
	    "\"releases\":3,\"buries\":4,\"kicks\":5,\"tries\":6,\"error\":\"\\\"no\\\"\\u000a\xf0\x9f\x98\x80\","
	    "\"length\":3,\"body_base64\":\"eAB5\"}");
	buffer_drop(&out, out.size);
	write(&out, &full, FIELD_LINE);
	ck_assert_ptr_nonnull(strstr(out.data, "\"key\":\"a%20b%2F%C3%A4\",\"group\":\"%FF%00g\""));
	ck_assert_ptr_nonnull(strstr(out.data, "\"due\":\"4102444800.123456789\""));
	buffer_free(&out);
}
END_TEST

START_TEST(a_number_without_a_word_is_written_as_the_first)
{
	const struct ww_job_info info = {.state = (enum ww_job_state)6, .missed = (enum ww_missed)1000000};
	const struct field_moment now = {0};
	struct buffer out = {0};

	ck_assert_int_eq(field_write(&out, job_fields, JOB_SHOWN, &info, FIELD_PLAIN, &now), 0);
	ck_assert_int_eq(buffer_append(&out, "", 1), 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\"state\":\"invalid\""));
	ck_assert_ptr_nonnull(strstr(out.data, "\"missed\":\"once\""));
	buffer_free(&out);
}
END_TEST

START_TEST(a_name_of_bytes_ends_in_a_nul)
{
	static const char line[] = "{\"name\":\"my%20report\"}";
	struct ww_schedule_info info = {.spec = {.tube = "t"}};
	struct json_value name, value;
	char room[sizeof line];
	char *free = room;
	size_t at = 0;
	int is_base64;
	const struct field *field;

	memset(room, 'x', sizeof room);
	ck_assert_int_gt(json_next(line, sizeof line - 1, &at, &name, &value), 0);
	field = field_find(job_schedule_fields, ~0u, name, &is_base64);
	ck_assert_int_eq(field_take(field, &info, value, 0, FIELD_LINE, &free), 0);
	ck_assert_str_eq(info.spec.name, "my report");
	ck_assert_str_eq(info.spec.tube, "t");
	ck_assert_ptr_eq(free, room + sizeof "my report");
}
END_TEST

START_TEST(elapsed_times_are_shown_as_unix_time)
{
	const struct ww_job_info info = {.state = WW_JOB_DELAYED, .due = 70 * WW_SECOND};
	const struct field_moment now = {.wall = 1000 * WW_SECOND, .elapsed = 60 * WW_SECOND};
	struct buffer out = {0};

	ck_assert_int_eq(field_write(&out, job_fields, JOB_SHOWN, &info, FIELD_PLAIN, &now), 0);
	ck_assert_int_eq(buffer_append(&out, "", 1), 0);
	ck_assert_ptr_nonnull(strstr(out.data, "\"due\":\"1970-01-01T00:16:50.000Z\""));
	buffer_free(&out);
}
END_TEST

/* Read one member of the form; return what is expected instead, or NULL. */
static const char *refused(const char *member, enum field_form form)
{
	static char text[FIELD_EXPECTED];
	union {
		struct job_request request;
		struct ww_job_info info;
	} to = {0};
	struct json_value name, value;
	char room[2000];
	char *at = room;
	size_t from = 0;
	int is_base64;
	const struct field *field;

	ck_assert_int_eq(json_next(member, strlen(member), &from, &name, &value), 1);
	field = field_find(job_fields, form == FIELD_REQUEST ? JOB_PUT | JOB_RELEASE : WHERE, name, &is_base64);
	if (!field)
		return "no such field";
	return field_take(field, &to, value, is_base64, form, &at) ? field_expected(field, is_base64, form, text)
	                                                           : NULL;
}

START_TEST(what_is_wrong_is_refused_with_what_is_expected)
{
	static const struct {
		const char *member;
		enum field_form form;
		const char *expected; /* NULL: it is right */
	} cases[] = {
	    {"{\"delay\":\"1.5h\"}", FIELD_REQUEST, NULL},
	    {"{\"delay\":\"1.5h\"}", FIELD_PLAIN, "seconds"},
	    {"{\"delay\":-1}", FIELD_REQUEST, "seconds, or a text such as \"90s\" or \"1.5h\""},
	    {"{\"run\":0.5}", FIELD_REQUEST, "seconds, at least 1, or a text such as \"90s\" or \"1.5h\""},
	    {"{\"every\":0}", FIELD_REQUEST, NULL},
	    {"{\"every\":0.0001}", FIELD_PLAIN, "seconds, 0 or at least 0.001"},
	    {"{\"priority\":4294967296}", FIELD_REQUEST, "a whole number, 0 to 4294967295"},
	    {"{\"missed\":\"none\"}", FIELD_REQUEST, "\"once\", \"all\" or \"skip\""},
	    {"{\"key\":\"\"}", FIELD_REQUEST, "a text of 1 to 200 bytes"},
	    {"{\"key_base64\":\"/w==\"}", FIELD_REQUEST, NULL},
	    {"{\"key_base64\":\"x\"}", FIELD_REQUEST, "base64 of 1 to 200 bytes"},
	    {"{\"priority_base64\":1}", FIELD_REQUEST, "no such field"},
	    {"{\"key\":null}", FIELD_REQUEST, "a text of 1 to 200 bytes"},
	    {"{\"key\":null}", FIELD_OLD, NULL},
	    {"{\"key\":\"aw==\"}", FIELD_OLD, NULL},
	    {"{\"body\":\"x\"}", FIELD_OLD, "base64"},
	    {"{\"at\":\"2099-01-01 09:00\"}", FIELD_REQUEST, "a time with its zone, such as \"2026-12-01T09:00:00Z\""},
	    {"{\"due\":\"2160-01-01T00:00:00.5Z\"}", FIELD_PLAIN, NULL},
	    {"{\"due\":\"2160-01-01T00:00:00\"}", FIELD_PLAIN,
	        "a time with its zone, such as \"2026-12-01T09:00:00Z\""},
	    {"{\"due\":4102444800.5}", FIELD_OLD, NULL},
	    {"{\"id\":7}", FIELD_PLAIN, "a whole number as a string"},
	    {"{\"id\":7}", FIELD_OLD, NULL},
	    {"{\"state\":\"invalid\"}", FIELD_PLAIN, "\"delayed\", \"ready\", \"reserved\", \"buried\" or \"ended\""},
	    {"{\"clock\":\"sun\"}", FIELD_PLAIN, "\"elapsed\" or \"wall\""},
	    {"{\"debounced\":1}", FIELD_REQUEST, "no such field"},
	    {"{\"then\":{}}", FIELD_REQUEST, NULL},
	    {"{\"then\":{\"tube\":\"t\"}}", FIELD_PLAIN, NULL},
	    {"{\"then\":[]}", FIELD_REQUEST, "an object with the members of a job that is put"},
	    {"{\"then\":{\"delay\":-1}}", FIELD_PLAIN, "an object with the members of a job that is put"},
	    {"{\"mode\":\"replace\"}", FIELD_PLAIN, "no such field"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *said = refused(cases[i].member, cases[i].form);

		ck_assert_msg(
		    said == cases[i].expected || (said && cases[i].expected && strcmp(said, cases[i].expected) == 0),
		    "%s: %s", cases[i].member, said ? said : "taken");
	}
}
END_TEST

/* Take a follow-up, in the room that is promised to be enough; return what is wrong, or NULL. */
static const char *take(const char *text, struct ww_job_spec *spec)
{
	static char problem[JOB_PROBLEM];
	static char *room;
	const struct json_value value = {JSON_OTHER, text, strlen(text)};
	const void *bytes;
	size_t length;
	char *at;

	free(room);
	at = room = malloc(value.size + 1);
	ck_assert_ptr_nonnull(room);
	if (job_then_take(value, &at, &bytes, &length, problem) != 0)
		return problem;
	ck_assert_ptr_eq(bytes, room);
	ck_assert_ptr_eq(at, room + length);
	ck_assert_uint_le(length, value.size);
	ck_assert_int_eq(ww_job_then_read(spec, bytes, length), WW_OK);
	return NULL;
}

/* No member takes more bytes than its text. */
START_TEST(a_follow_up_needs_no_more_room_than_its_text)
{
	static const char *const texts[] = {"{}", "{\"tube\":\"default\"}", "{\"tube\":\"t\"}", "{\"key\":\"k\"}",
	    "{\"group\":\"g\"}", "{\"body\":\"b\"}", "{\"body_base64\":\"/w==\"}", "{\"headers\":{}}",
	    "{\"headers\":{\"a\":\"\"}}", "{\"headers\":{\"a\":\"\",\"b\":\"\",\"c\":\"x\"}}", "{\"then\":{}}",
	    "{\"then\":{\"then\":{\"then\":{}}}}", "{\"at\":\"@1\"}", "{\"at\":\"@9\",\"key\":\"k\",\"unique\":\"1d\"}",
	    "{\"delay\":1e9}", "{\"delay\":\"9w\"}", "{\"run\":4e9}", "{\"run\":\"9w\"}", "{\"every\":1}",
	    "{\"skip\":4e9}", "{\"keep\":9}", "{\"spread\":\"9w\",\"body\":\"\"}", "{\"expire\":1}",
	    "{\"key\":\"k\",\"mode\":\"keep-later\"}", "{\"key\":\"k\",\"debounce\":4e9}", "{\"priority\":0}",
	    "{\"priority\":4294967295}", "{\"attempts\":1}", "{\"backoff\":4e9}", "{\"backoff_max\":0}",
	    "{\"expired\":\"bury\"}", "{\"missed\":\"all\"}"};
	struct ww_job_spec spec;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const char *problem = take(texts[i], &spec);

		ck_assert_msg(!problem, "%s: %s", texts[i], problem);
	}
}
END_TEST

START_TEST(a_follow_up_is_written_as_it_is_read)
{
	static const char text[] =
	    "{\"tube\":\"t\",\"key_base64\":\"/wBr\",\"group\":\"g\",\"headers\":{\"a\":\"b\"},\"then\":{\"at\":"
	    "\"2099-01-01T00:00:00.500000000Z\",\"debounce\":1.5,\"key\":\"k\",\"then\":{\"every\":0.001,\"missed\":\"skip\","
	    "\"skip\":4}},\"priority\":0,\"delay\":90,\"run\":1,\"attempts\":4294967295,\"backoff\":2,\"backoff_max\":0,"
	    "\"keep\":5,\"expire\":8,\"expired\":\"bury\",\"unique\":86400,\"body\":\"a \\\"b\\\"\"}";
	struct buffer out = {0};
	struct buffer again = {0};
	struct ww_job_spec spec;
	char *room = malloc(sizeof text);
	const void *bytes;
	size_t length;
	char problem[JOB_PROBLEM];
	char *at = room;

	ck_assert_ptr_nonnull(room);
	ck_assert_int_eq(
	    job_then_take((struct json_value){JSON_OTHER, text, strlen(text)}, &at, &bytes, &length, problem), 0);
	ck_assert_int_eq(job_then_write(&out, bytes, length), 0);
	ck_assert_int_eq(buffer_append(&out, "", 1), 0);
	ck_assert_ptr_null(take(out.data, &spec));
	ck_assert_uint_eq(spec.key_span, 86400 * WW_SECOND);
	ck_assert_int_eq(spec.key_mode, WW_KEY_UNIQUE);
	ck_assert_uint_eq(spec.due, 90 * WW_SECOND);
	ck_assert_int_eq(ww_job_then_read(&spec, spec.then, spec.then_length), WW_OK);
	ck_assert_uint_eq(spec.flags, WW_JOB_WALL | WW_JOB_AT);
	ck_assert_uint_eq(spec.due, 4070908800500000000);
	/* Written again it is the same. */
	at = room;
	ck_assert_int_eq(
	    job_then_take((struct json_value){JSON_OTHER, out.data, strlen(out.data)}, &at, &bytes, &length, problem),
	    0);
	ck_assert_int_eq(job_then_write(&again, bytes, length), 0);
	ck_assert_int_eq(buffer_append(&again, "", 1), 0);
	ck_assert_str_eq(out.data, again.data);
	ck_assert_int_ne(job_then_write(&again, "x", 1), 0);
	buffer_free(&out);
	buffer_free(&again);
	free(room);
}
END_TEST

TEST_MAIN("job", a_follow_up_needs_no_more_room_than_its_text, a_follow_up_is_written_as_it_is_read,
    what_is_written_is_read, a_job_has_one_form, a_number_without_a_word_is_written_as_the_first,
    a_name_of_bytes_ends_in_a_nul, elapsed_times_are_shown_as_unix_time, what_is_wrong_is_refused_with_what_is_expected)
