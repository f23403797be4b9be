#ifndef TOOLS_JOB_FIELD_H
#define TOOLS_JOB_FIELD_H

/*
 * Objects of JSON by tables. A table says what an object has as members, where structs have them, and what they may be. One
 * writer and one reader serve all tables, and scripts/make-openapi takes the schemas of /v1 from them.
 *
 * Ids are strings, because numbers of JavaScript end at 2^53; lengths of time are seconds, times are those of RFC 3339 in
 * UTC. Bytes that are no text stand in base64 under the member's name with "_base64" behind it.
 */

#include <stddef.h>
#include <stdint.h>

#include "tools/common/buffer.h"
#include "tools/common/json.h"

enum field_kind {
	FIELD_ID,      /* a uint64_t */
	FIELD_COUNT,   /* a uint32_t or a uint64_t */
	FIELD_SPAN,    /* uint64_t, ns */
	FIELD_TIME,    /* uint64_t, ns of Unix time; 0: none */
	FIELD_ENDS,    /* the same of elapsed time */
	FIELD_DUE,     /* of struct ww_job_info: on the job's own clock; OPTIONAL: a time that it may not have */
	FIELD_CLOCK,   /* a uint32_t of flags, which have WW_JOB_WALL or not */
	FIELD_TEXT,    /* a char array, or a const char * */
	FIELD_BYTES,   /* an array, or a const void *; and their number, a size_t, or a NUL behind them */
	FIELD_BODY,    /* the same, of any length; in base64 where a key is percent-encoded */
	FIELD_HEADERS, /* an object of texts; a const char * as ww_job_headers_add writes it, and its length */
	FIELD_JOB,     /* an object as a put takes it; a const void * as ww_job_then_write writes it, and its length */
	FIELD_WORD,    /* an enum, or an int */
	FIELD_TRUTH    /* an int */
};

/* Where a struct has it. Size 0: nowhere. */
struct field_place {
	uint16_t at, size, length;
};

#define FIELD_PLACE(type, name)                                                                                        \
	{                                                                                                              \
		offsetof(type, name), sizeof(((type *)0)->name), 0                                                     \
	}
#define FIELD_PLACE_OF(type, name)                                                                                     \
	{                                                                                                              \
		offsetof(type, name), sizeof(((type *)0)->name), offsetof(type, name##_length)                         \
	}

enum {
	FIELD_OPTIONAL = 1, /* left out of an answer where it is 0 or empty */
	FIELD_MISSING = 2,  /* the same, but null in lines of the protocol */
	FIELD_OR_NONE = 4,  /* 0, or null for a time, may stand for none, whatever `least` is */
	FIELD_CUT = 8       /* a text that is too long is cut */
};

/* What a table does not say of a field is 0. It ends with a field without a name. */
struct field {
	const char *name;
	enum field_kind kind;
	struct field_place in;  /* of the struct that a request fills */
	struct field_place out; /* of the struct that is shown */
	uint32_t where;         /* the objects that have it: a bit each, as the table says; 0: all */
	uint32_t flags;
	uint64_t least, most;     /* a number, ns, or bytes; most 0: what the struct can hold */
	const char *initial;      /* in JSON, what a request without it means; NULL: none */
	const char *since;        /* the version that had it first; NULL: 0.1 */
	const char *const *words; /* up to NULL */
	const char *says;         /* a sentence; NULL: its name says it all */
};

enum field_form {
	FIELD_PLAIN,   /* as above */
	FIELD_REQUEST, /* the same, read into `in`: a length of time may also be a text such as "1.5h" */
	FIELD_LINE,    /* lines of the protocol: numbers as ids, percent-encoded keys, times in seconds as strings */
	FIELD_OLD      /* lines that 0.1 exported: numbers as ids and times, all bytes in base64 */
};

/* The same moment on two clocks. */
struct field_moment {
	uint64_t wall; /* Unix time */
	uint64_t elapsed;
	int is_exact; /* times are written to the nanosecond, not to the millisecond */
};

/* ---- write.c. Not 0: there is no memory. */

/* Write the members of these objects, with commas between them. */
int field_write(struct buffer *out, const struct field *fields, uint32_t where, const void *from, enum field_form form,
    const struct field_moment *now);

/* Write a member: a time, or null for 0; text, or bytes in base64 under a name that says so; seconds. */
int field_write_time(struct buffer *out, const char *name, uint64_t unix_ns, int is_exact);
int field_write_bytes(struct buffer *out, const char *name, const void *bytes, size_t size);
int field_write_seconds(struct buffer *out, const char *name, uint64_t ns);

/* ---- read.c */

/* Return the field of that name, or NULL. *is_base64: the name ends so. */
const struct field *field_find(const struct field *fields, uint32_t where, struct json_value name, int *is_base64);

/*
 * Take a value. What it points to is written to *room, which moves on; it needs no more room than the text of the value
 * and one byte. Return 0, or -1 if the value is not what is expected.
 */
int field_take(
    const struct field *field, void *to, struct json_value value, int is_base64, enum field_form form, char **room);

/* Store a number in that place of a struct, whatever its range. Return 0, or -1 if it has too many bits. */
int field_store(const struct field_place *place, void *to, uint64_t number);

enum { FIELD_EXPECTED = 200 };

/* Write what is expected. Returns text. */
const char *field_expected(const struct field *field, int is_base64, enum field_form form, char text[FIELD_EXPECTED]);

#endif
