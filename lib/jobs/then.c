/* The follow-up of a job as bytes: written, read and checked. */
#include "lib/jobs/then.h"

#include <string.h>

enum member_kind { NUMBER, TEXT, BYTES };

struct member {
	enum member_kind kind;
	size_t at, size;  /* of struct ww_job_spec */
	size_t length_at; /* BYTES */
};

#define PLACE(name) offsetof(struct ww_job_spec, name), sizeof(((struct ww_job_spec *)0)->name)
#define A_NUMBER(name)                                                                                                 \
	{                                                                                                              \
		NUMBER, PLACE(name), 0                                                                                 \
	}
#define SOME_BYTES(name)                                                                                               \
	{                                                                                                              \
		BYTES, PLACE(name), offsetof(struct ww_job_spec, name##_length)                                        \
	}

/* In order of their tags, which are in stores: a new one comes at the end. */
static const struct member members[] = {
    {TEXT, PLACE(tube), 0},
    SOME_BYTES(key),
    SOME_BYTES(group),
    SOME_BYTES(body),
    SOME_BYTES(headers),
    SOME_BYTES(then),
    A_NUMBER(due),
    A_NUMBER(run),
    A_NUMBER(period),
    A_NUMBER(skip),
    A_NUMBER(backoff),
    A_NUMBER(backoff_max),
    A_NUMBER(keep),
    A_NUMBER(expire),
    A_NUMBER(key_span),
    A_NUMBER(priority),
    A_NUMBER(attempts),
    A_NUMBER(flags),
    A_NUMBER(missed),
    A_NUMBER(expired),
    A_NUMBER(key_mode),
    A_NUMBER(code),
};

enum { MEMBERS = sizeof members / sizeof *members };

/* ---- Writing */

/* Where bytes are written, as far as there is room for them. */
struct output {
	unsigned char *to;
	size_t room;
	size_t size; /* of all, also of what had no room */
};

static void add(struct output *out, const void *bytes, size_t size)
{
	if (out->to && size && size <= out->room && out->size <= out->room - size)
		memcpy(out->to + out->size, bytes, size);
	out->size += size;
}

static void add_byte(struct output *out, size_t byte)
{
	const unsigned char one = (unsigned char)byte;

	add(out, &one, 1);
}

static void add_value(struct output *out, size_t tag, const void *bytes, size_t size)
{
	size_t length = size;

	add_byte(out, tag);
	for (; length >= 0x80; length >>= 7)
		add_byte(out, length | 0x80);
	add_byte(out, length);
	add(out, bytes, size);
}

static uint64_t number_of(const struct ww_job_spec *spec, const struct member *member)
{
	uint64_t large;
	uint32_t small;

	if (member->size == sizeof small) {
		memcpy(&small, (const char *)spec + member->at, sizeof small);
		return small;
	}
	memcpy(&large, (const char *)spec + member->at, sizeof large);
	return large;
}

static void add_number(struct output *out, size_t tag, uint64_t number)
{
	unsigned char bytes[sizeof number];
	size_t at = sizeof bytes;

	for (; number; number >>= 8)
		bytes[--at] = (unsigned char)number;
	add_value(out, tag, bytes + at, sizeof bytes - at);
}

static void add_member(struct output *out, const struct ww_job_spec *spec, const struct ww_job_spec *initial, size_t i)
{
	const struct member *member = &members[i];
	const void *bytes;
	size_t length;

	if (member->kind == NUMBER) {
		if (number_of(spec, member) != number_of(initial, member))
			add_number(out, i + 1, number_of(spec, member));
		return;
	}
	memcpy(&bytes, (const char *)spec + member->at, sizeof bytes);
	if (member->kind == TEXT) {
		if (strcmp(bytes, initial->tube) != 0)
			add_value(out, i + 1, bytes, strlen(bytes) + 1);
		return;
	}
	memcpy(&length, (const char *)spec + member->length_at, sizeof length);
	if (length)
		add_value(out, i + 1, bytes, length);
}

int ww_job_then_write(void *bytes, size_t *length, const struct ww_job_spec *spec)
{
	struct output out = {bytes, length ? *length : 0, 0};
	struct ww_job_spec initial;

	if (!length || !spec || !spec->tube || (spec->key_length && !spec->key) ||
	    (spec->group_length && !spec->group) || (spec->body_length && !spec->body) ||
	    (spec->headers_length && !spec->headers) || (spec->then_length && !spec->then))
		return WW_EINVAL;
	(void)ww_job_spec_default(&initial);
	for (size_t i = 0; i < MEMBERS; i++)
		add_member(&out, spec, &initial, i);
	/* A job of which nothing is said is a follow-up, too: its last number is 0. */
	if (!out.size)
		add_number(&out, MEMBERS, 0);
	*length = out.size;
	return out.size > out.room || !bytes ? WW_ETOOBIG : WW_OK;
}

/* ---- Reading */

/* Take a length. Returns where it ends, or NULL. */
static const unsigned char *take_length(const unsigned char *at, const unsigned char *end, size_t *length)
{
	*length = 0;
	for (unsigned shift = 0; at < end && shift < 35; shift += 7) {
		*length |= (size_t)(*at & 0x7f) << shift;
		if (!(*at++ & 0x80))
			return at;
	}
	return NULL;
}

static int take_number(struct ww_job_spec *spec, const struct member *member, const unsigned char *value, size_t length)
{
	uint64_t number = 0;
	uint32_t small;

	if (length > sizeof number)
		return WW_EINVAL;
	for (size_t i = 0; i < length; i++)
		number = number << 8 | value[i];
	if (member->size == sizeof small && number > UINT32_MAX)
		return WW_EINVAL;
	small = (uint32_t)number;
	memcpy((char *)spec + member->at, member->size == sizeof small ? (const void *)&small : &number, member->size);
	return WW_OK;
}

static int take_value(struct ww_job_spec *spec, const struct member *member, const unsigned char *value, size_t length)
{
	if (member->kind == NUMBER)
		return take_number(spec, member, value, length);
	if (member->kind == TEXT && (!length || memchr(value, 0, length) != value + length - 1))
		return WW_EINVAL;
	memcpy((char *)spec + member->at, &value, sizeof value);
	if (member->kind == BYTES)
		memcpy((char *)spec + member->length_at, &length, sizeof length);
	return WW_OK;
}

int ww_job_then_read(struct ww_job_spec *spec, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	const unsigned char *end = at ? at + length : at;
	struct ww_job_spec read;
	uint64_t seen = 0;
	int error = spec && at && length ? WW_OK : WW_EINVAL;

	(void)ww_job_spec_default(&read);
	while (!error && at < end) {
		const size_t i = (size_t)*at - 1;
		size_t size;

		at = take_length(at + 1, end, &size);
		if (!at || i >= MEMBERS || seen >> i & 1 || size > (size_t)(end - at))
			return WW_EINVAL;
		seen |= UINT64_C(1) << i;
		error = take_value(&read, &members[i], at, size);
		at += size;
	}
	if (!error)
		*spec = read;
	return error;
}

/* ---- Chains */

static int has_key_of(const struct ww_job_spec *job, const struct ww_job_spec *other)
{
	return job->key_length && job->key_length == other->key_length &&
	       memcmp(job->key, other->key, job->key_length) == 0 && strcmp(job->tube, other->tube) == 0;
}

int ww_job_then_follow(struct ww_job_spec *job)
{
	const uint32_t clock = WW_JOB_WALL | WW_JOB_AT;
	const struct ww_job_spec before = *job;
	int error = before.period ? WW_EINVAL : ww_job_then_read(job, before.then, before.then_length);

	if (error)
		return error;
	/* A time of elapsed clocks would mean nothing in another store, and one that has passed is no error later. */
	if (job->flags && job->flags != clock)
		return WW_EINVAL;
	/* The former one's end takes the key. */
	return before.key_mode == WW_KEY_UNIQUE && has_key_of(job, &before) ? WW_EINVAL : WW_OK;
}
