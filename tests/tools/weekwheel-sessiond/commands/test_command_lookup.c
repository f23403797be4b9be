/* Tests how a command is found by its name, and the stripes of its keys. */
/* tier: quick */
#include <ctype.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tools/weekwheel-sessiond/commands/command.h"

enum { NAME = 16 };

static const struct command_entry table[] = {
    {.name = "get", .arity = 2, .first = 1, .last = 1, .step = 1},
    {.name = "getex", .arity = -2, .first = 1, .last = 1, .step = 1},
    {.name = "mset", .arity = -3, .first = 1, .last = -1, .step = 2},
    {.name = "rename", .arity = 3, .first = 1, .last = 2, .step = 1},
    {.name = "flushall", .arity = -1, .flags = COMMAND_ALL},
    {.name = "ping", .arity = -1},
};

enum { COMMANDS = sizeof table / sizeof *table };

static void index_table(void)
{
	command_index(table, COMMANDS);
}

static struct resp_arg arg_of(const char *text)
{
	return (struct resp_arg){.data = text, .size = strlen(text)};
}

static const struct command_entry *find(const char *name)
{
	struct resp_arg arg = arg_of(name);

	return command_find(&arg);
}

START_TEST(each_is_found_in_any_case)
{
	char upper[NAME] = "";

	for (size_t i = 0; i < COMMANDS; i++) {
		for (size_t n = 0; n <= strlen(table[i].name); n++)
			upper[n] = (char)toupper((unsigned char)table[i].name[n]);
		ck_assert_ptr_eq(find(table[i].name), &table[i]);
		ck_assert_ptr_eq(find(upper), &table[i]);
		ck_assert_ptr_eq(command_at(i), &table[i]);
	}
	ck_assert_ptr_null(command_at(COMMANDS));
}
END_TEST

/* The search goes on from a name's place while places are taken: a full index would never end it. */
START_TEST(no_other_name_is_found)
{
	static const char *const others[] = {"", "g", "ge", "gets", "getexx", "set", "pin", "pingx", "flushdb",
	    "a-name-that-is-longer-than-any-command-can-be"};
	const struct resp_arg with_nul = {.data = "get\0", .size = 4};

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		ck_assert_msg(!find(others[i]), "'%s' is found", others[i]);
	ck_assert_ptr_null(command_find(&with_nul));
}
END_TEST

/* As many as there may be, in one index. */
START_TEST(a_full_table_has_room)
{
	static char names[COMMANDS_MAX - 1][NAME];
	static struct command_entry full[COMMANDS_MAX - 1];

	for (size_t i = 0; i < COMMANDS_MAX - 1; i++) {
		(void)snprintf(names[i], NAME, "command%zu", i);
		full[i].name = names[i];
	}
	command_index(full, COMMANDS_MAX - 1);
	for (size_t i = 0; i < COMMANDS_MAX - 1; i++)
		ck_assert_ptr_eq(find(names[i]), &full[i]);
	ck_assert_ptr_null(find("get"));
	index_table();
	ck_assert_ptr_eq(find("get"), &table[0]);
	ck_assert_ptr_null(find("command0"));
}
END_TEST

START_TEST(an_arity_is_exact_or_a_least)
{
	ck_assert(command_has_arity(2, 2));
	ck_assert(!command_has_arity(2, 1));
	ck_assert(!command_has_arity(2, 3));
	ck_assert(!command_has_arity(-3, 2));
	ck_assert(command_has_arity(-3, 3));
	ck_assert(command_has_arity(-3, 100));
}
END_TEST

static void check_stripes(const char *name, size_t count, const char *const *words, const char *const *keys)
{
	struct resp_arg arg[8];
	struct data_stripes expected = {0};
	struct data_stripes stripes = {0};

	for (size_t i = 0; i < count; i++)
		arg[i] = arg_of(words[i]);
	for (; *keys; keys++)
		data_stripes_add(&expected, *keys, strlen(*keys));
	command_stripes(find(name), arg, count, &stripes);
	ck_assert_msg(memcmp(&stripes, &expected, sizeof stripes) == 0, "%s has other stripes", name);
}

/* With words that share no stripe, or a stripe too many would not be seen. */
START_TEST(the_stripes_are_those_of_the_keys)
{
	static const char *const words[] = {"", "a", "b", "c", "d"};
	struct data_stripes distinct = {0};
	struct data_stripes all = {0};
	struct data_stripes stripes = {0};
	int count = 0;

	for (size_t i = 1; i < 5; i++)
		data_stripes_add(&distinct, words[i], 1);
	for (size_t i = 0; i < sizeof distinct.bits / sizeof *distinct.bits; i++)
		count += __builtin_popcountll(distinct.bits[i]);
	ck_assert_int_eq(count, 4);
	check_stripes("get", 2, words, (const char *const[]){"a", NULL});
	check_stripes("getex", 4, words, (const char *const[]){"a", NULL});
	check_stripes("mset", 5, words, (const char *const[]){"a", "c", NULL});
	check_stripes("rename", 3, words, (const char *const[]){"a", "b", NULL});
	check_stripes("ping", 2, words, (const char *const[]){NULL});
	data_stripes_all(&all);
	command_stripes(find("flushall"), NULL, 1, &stripes);
	ck_assert_mem_eq(&stripes, &all, sizeof all);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {each_is_found_in_any_case, no_other_name_is_found, a_full_table_has_room,
	    an_arity_is_exact_or_a_least, the_stripes_are_those_of_the_keys};

	return suite_run_with("sessiond/commands/lookup", tests, sizeof tests / sizeof *tests, index_table);
}
