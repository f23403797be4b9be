/* The bounds of memory know clients only through the faces of the server: the one with the most loses what it has. */
/* tier: quick */
#include "tests/support/suite.h"
#include "tools/weekwheeld/engine/server.h"

enum { MOST = 100000 };

/* Of each face: its largest client, and what it has. */
static size_t has[2];
static int ended[2];
static uint64_t leaving;
static const void *asked_to_spare;

static struct server server;
static struct settings settings;

static void settle(struct server *of, int error)
{
	(void)of;
	(void)error;
}

static uint64_t takes(const struct server *of)
{
	(void)of;
	return 0;
}

static uint64_t going(const struct server *of)
{
	(void)of;
	return leaving;
}

static uint64_t none_going(const struct server *of)
{
	(void)of;
	return 0;
}

static struct face_client first_worst(const struct server *of, const void *spared)
{
	(void)of;
	asked_to_spare = spared;
	return (struct face_client){has[0], &has[0]};
}

static struct face_client second_worst(const struct server *of, const void *spared)
{
	(void)of;
	(void)spared;
	return (struct face_client){has[1], &has[1]};
}

static void end(struct server *of, void *client)
{
	size_t *which = client;

	(void)of;
	buffer_count_out(*which);
	*which = 0;
	ended[which - has]++;
}

static const struct face first = {settle, takes, going, first_worst, end};
static const struct face second = {settle, takes, none_going, second_worst, end};
static const struct face *const faces[] = {&first, &second, NULL};

/* Two clients have so many bytes. */
static void begin(size_t one, size_t other)
{
	settings = (struct settings){.max_memory = 10 * MOST, .max_buffers = MOST};
	server.settings = &settings;
	server.faces = faces;
	ck_assert_int_eq(uv_loop_init(&server.loop), 0);
	ck_assert_int_eq(uv_idle_init(&server.loop, &server.idle), 0);
	bounds_start(&server);
	leaving = 0;
	has[0] = one;
	has[1] = other;
	ended[0] = ended[1] = 0;
	buffer_count(one + other);
}

static void finish(void)
{
	buffer_count_out(has[0] + has[1]);
	uv_close((uv_handle_t *)&server.idle, NULL);
	(void)uv_run(&server.loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&server.loop), 0);
}

START_TEST(the_largest_of_all_faces_loses)
{
	begin(MOST / 2, MOST / 2 + 1);
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0], 0);
	ck_assert_int_eq(ended[1], 1);
	/* Somebody may wait for the room, and is woken by nothing else. */
	ck_assert(uv_is_active((uv_handle_t *)&server.idle));
	ck_assert_uint_eq(server.bounds.ended, 1);
	finish();
	begin(MOST / 2 + 1, MOST / 2 + 1);
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0], 1);
	ck_assert_int_eq(ended[1], 0);
	finish();
}
END_TEST

START_TEST(within_the_bound_nobody_loses)
{
	begin(MOST / 2, MOST / 2);
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0] + ended[1], 0);
	ck_assert(!uv_is_active((uv_handle_t *)&server.idle));
	finish();
}
END_TEST

START_TEST(what_is_leaving_makes_room)
{
	begin(MOST, 1000);
	leaving = 1000;
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0] + ended[1], 0);
	leaving = 999;
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0], 1);
	finish();
}
END_TEST

START_TEST(who_carries_out_a_command_is_spared)
{
	begin(MOST / 2, MOST);
	bounds_hold_but(&server, &server, MOST + 1);
	ck_assert_ptr_eq(asked_to_spare, &server);
	ck_assert_int_eq(ended[0] + ended[1], 0);
	bounds_hold_but(&server, &server, MOST);
	ck_assert_int_eq(ended[0], 0);
	ck_assert_int_eq(ended[1], 1);
	finish();
}
END_TEST

START_TEST(clients_with_little_are_not_at_fault)
{
	begin(4095, 4095);
	buffer_count(MOST);
	bounds_hold_input(&server);
	ck_assert_int_eq(ended[0] + ended[1], 0);
	buffer_count_out(MOST);
	finish();
}
END_TEST

TEST_MAIN("weekwheeld/faces", the_largest_of_all_faces_loses, within_the_bound_nobody_loses, what_is_leaving_makes_room,
    who_carries_out_a_command_is_spared, clients_with_little_are_not_at_fault)
