/* Commands about deadlines. */

#include "tools/weekwheel-sessiond/commands/commands.h"
#include "tools/weekwheel-sessiond/commands/times.h"

enum { IF_NX = 1, IF_XX = 2, IF_GT = 4, IF_LT = 8 };

/* Read the conditions after a deadline. Returns 0, or -1 after an answer. */
static int read_conditions(struct request *request, unsigned *conditions)
{
	static const char *const names[] = {"NX", "XX", "GT", "LT"};

	*conditions = 0;
	for (size_t i = 3; i < request->count; i++) {
		unsigned bit = 0;
		for (unsigned n = 0; n < 4; n++)
			if (request_is(request, i, names[n]))
				bit = 1U << n;
		if (!bit) {
			reply_error(request->conn, "ERR Unsupported option %.*s", (int)request->arg[i].size,
			    request->arg[i].data);
			return -1;
		}
		*conditions |= bit;
	}
	if (*conditions & IF_NX && *conditions & ~(unsigned)IF_NX)
		reply_error(request->conn, "ERR NX and XX, GT or LT options at the same time are not compatible");
	else if ((*conditions & (IF_GT | IF_LT)) == (IF_GT | IF_LT))
		reply_error(request->conn, "ERR GT and LT options at the same time are not compatible");
	else
		return 0;
	return -1;
}

/* ms, rounded as Redis does: its clock has no finer unit. */
static int64_t left_ms(const struct request *request, const struct data_entry *entry)
{
	int64_t left = data_to_steady_ms(request->data, entry->deadline) - data_steady_ms(request->data);

	return left > 0 ? left : 0;
}

/* Whether the conditions hold for a deadline. No deadline counts as the latest of all. */
static int conditions_hold(
    const struct request *request, unsigned conditions, const struct data_entry *entry, const struct times *times)
{
	int has = entry->deadline != DATA_NEVER;
	int64_t present = 0;
	int64_t ms = times->ms;

	if (has && times->is_absolute)
		present = data_to_wall_ms(request->data, entry->deadline);
	else if (has)
		present = left_ms(request, entry);
	return !((conditions & IF_NX && has) || (conditions & IF_XX && !has) ||
	         (conditions & IF_GT && (!has || ms <= present)) || (conditions & IF_LT && has && ms >= present));
}

/* -1: it was answered. */
static void reply_done(struct request *request, int result)
{
	if (result >= 0)
		reply_integer(request->conn, result);
}

void command_expire(struct request *request)
{
	const char *name = request->command->name;
	int64_t unit_ms = request->command->way & COMMAND_MS ? 1 : 1000;
	int is_absolute = (request->command->way & COMMAND_AT) != 0;
	struct data_key key = request_key(request, 1);
	int64_t base = is_absolute ? 0 : data_steady_ms(request->data);
	struct times times = {.name = name, .is_absolute = is_absolute};
	struct data_entry entry;
	unsigned conditions;
	int64_t value;

	if (read_conditions(request, &conditions) != 0 || request_whole(request, 2, &value) != 0)
		return;
	if (value > INT64_MAX / unit_ms || value < INT64_MIN / unit_ms || value * unit_ms > INT64_MAX - base) {
		reply_error(request->conn, "ERR invalid expire time in '%s' command", name);
		return;
	}
	times.ms = value * unit_ms;
	if (data_inspect(request->data, &key, &entry, NULL, NULL) != 1 ||
	    !conditions_hold(request, conditions, &entry, &times)) {
		reply_integer(request->conn, 0);
		return;
	}
	reply_done(request, times_move(request, &key, &entry, &times));
}

/* Answer -2 without the key and -1 without a deadline. Returns 0 then. */
static int find_deadline(struct request *request, struct data_entry *entry)
{
	struct data_key key = request_key(request, 1);

	if (data_inspect(request->data, &key, entry, NULL, NULL) != 1)
		reply_integer(request->conn, -2);
	else if (entry->deadline == DATA_NEVER)
		reply_integer(request->conn, -1);
	else
		return 1;
	return 0;
}

void command_ttl(struct request *request)
{
	struct data_entry entry;
	int64_t ms;

	if (!find_deadline(request, &entry))
		return;
	ms = request->command->way & COMMAND_AT ? data_to_wall_ms(request->data, entry.deadline)
	                                        : left_ms(request, &entry);
	reply_integer(request->conn, request->command->way & COMMAND_MS ? ms : (ms + 500) / 1000);
}

void command_persist(struct request *request)
{
	struct data_key key = request_key(request, 1);
	struct data_entry entry;
	int found = data_inspect(request->data, &key, &entry, NULL, NULL);

	reply_done(request, found == 1 ? times_persist(request, &key, &entry) : 0);
}
