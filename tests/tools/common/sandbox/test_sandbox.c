/* Tests the sandbox of scripts: its bounds, what it leaves out, and that no script sees another. */
/* tier: quick */
#include <string.h>
#include <time.h>

#include "tests/support/suite.h"
#include "tools/common/sandbox/sandbox.h"

enum { MEMORY = 8 << 20 };
#define TIME_NS UINT64_C(20000000)

/* What a script returned, as text, and how often it asked for more time. */
struct outcome {
	char text[256];
	unsigned asked;
	uint64_t more;
};

static int answer(lua_State *lua)
{
	lua_pushinteger(lua, 42);
	return 1;
}

static int give_up(lua_State *lua)
{
	return sandbox_end(lua);
}

static unsigned spins;

/* Is called once the time is over, from the second call on. */
static int spin(lua_State *lua)
{
	clock_t began = clock();

	(void)lua;
	while (spins == 0 && clock() - began < CLOCKS_PER_SEC / 10)
		;
	spins++;
	return 0;
}

static void install(lua_State *lua)
{
	lua_newtable(lua);
	lua_pushcfunction(lua, answer);
	lua_setfield(lua, -2, "answer");
	lua_pushcfunction(lua, give_up);
	lua_setfield(lua, -2, "give_up");
	lua_pushcfunction(lua, spin);
	lua_setfield(lua, -2, "spin");
	sandbox_protect(lua);
	lua_setfield(lua, -2, "program");
}

static void begin(lua_State *lua, void *context)
{
	(void)context;
	lua_pushliteral(lua, "given");
	lua_setfield(lua, -2, "ARGUMENT");
}

static void take(lua_State *lua, void *context)
{
	struct outcome *outcome = context;
	const char *text = lua_tostring(lua, -1);

	(void)snprintf(outcome->text, sizeof outcome->text, "%s", text ? text : lua_typename(lua, lua_type(lua, -1)));
}

static uint64_t over(void *context)
{
	struct outcome *outcome = context;
	uint64_t more = outcome->more;

	outcome->asked++;
	outcome->more = 0;
	return more;
}

/* A name of its own for each text, as a digest would be. */
static enum sandbox_end run_for(struct sandbox *box, const char *text, uint64_t time_ns, struct outcome *outcome)
{
	const struct sandbox_task task = {{text, text, strlen(text)}, time_ns, over, begin, take, outcome};

	return sandbox_run(box, &task);
}

static enum sandbox_end run(struct sandbox *box, const char *text, struct outcome *outcome)
{
	*outcome = (struct outcome){.asked = 0};
	return run_for(box, text, 1000 * TIME_NS, outcome);
}

START_TEST(scripts_return_values)
{
	static const struct {
		const char *script, *value;
	} pairs[] = {
	    {"return 1 + 1", "2"},
	    {"return ARGUMENT .. program.answer()", "given42"},
	    {"return nil", "nil"},
	    {"return type(_G)", "table"},
	    {"return ('x'):rep(3, 4)", "xxx"},
	    {"return (('a,b'):gsub(',', ';'))", "a;b"},
	    {"return (('hello'):gsub('(l)(.)', {l = 'L'}):gsub('%w', {h = 1, e = false}))", "1eLo"},
	    {"local n = 0 for w in ('a bc d'):gmatch('%a+') do n = n + #w end return n", "4"},
	    {"local t = {5, 2, 9, 1} table.sort(t) return table.concat(t, ' ')", "1 2 5 9"},
	    {"local t = {5, 2, 9, 1} table.sort(t, function(a, b) return a > b end) return table.concat(t)", "9521"},
	    {"local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) return table.concat(t) .. table.remove(t, 1)",
	        "12341"},
	    {"local t = {} table.insert(t, 3, 'x') table.insert(t, '1', 'y') return t[1] .. t[3]", "yx"},
	    {"return select(2, pcall(error, {err = 'E'}))", "E"},
	    {"return select(2, xpcall(function() error('x', 0) end, function(e) return e .. 'y' end))", "xy"},
	    {"return math.random(1000)", "171"},
	    {"math.randomseed(7) local a = math.random() math.randomseed(7) return tostring(a == math.random())",
	        "true"},
	};
	struct sandbox *box = sandbox_open(MEMORY, install);

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct outcome outcome;
		ck_assert_msg(
		    run(box, pairs[i].script, &outcome) == SANDBOX_OK, "%s: %s", pairs[i].script, sandbox_error(box));
		ck_assert_str_eq(outcome.text, pairs[i].value);
	}
	sandbox_close(box);
}
END_TEST

START_TEST(errors_say_the_script_and_the_line)
{
	struct sandbox *box = sandbox_open(MEMORY, install);
	struct outcome outcome;

	ck_assert_int_eq(run(box, "\n\nerror('x')", &outcome), SANDBOX_FAILED);
	ck_assert_str_eq(sandbox_error(box), "ERR user_script:3: x script: \n\nerror('x'), on @user_script:3.");
	ck_assert_int_eq(run(box, "error({err = 'CODE x'})", &outcome), SANDBOX_FAILED);
	ck_assert(strncmp(sandbox_error(box), "CODE x script: ", 15) == 0);
	ck_assert_int_eq(run(box, "error({})", &outcome), SANDBOX_FAILED);
	ck_assert_str_eq(sandbox_error(box), "ERR table script: error({}), on @user_script:1.");
	ck_assert_int_eq(run(box, "\nlocal x = ('x'):find('[')", &outcome), SANDBOX_FAILED);
	ck_assert_ptr_nonnull(strstr(sandbox_error(box), ", on @user_script:2."));
	ck_assert_int_eq(run(box, "\ntable.sort({1, 'x'})", &outcome), SANDBOX_FAILED);
	ck_assert_ptr_nonnull(strstr(sandbox_error(box), ", on @user_script:2."));
	ck_assert(!sandbox_compiles(box, &(struct sandbox_script){"bad", "return return", 13}, 1000 * TIME_NS));
	ck_assert_str_eq(sandbox_error(box), "user_script:1: unexpected symbol near 'return'");
	ck_assert(!sandbox_compiles(box, &(struct sandbox_script){"code", "\033Lua", 4}, 1000 * TIME_NS));
	ck_assert(!sandbox_compiles(box, &(struct sandbox_script){"good", "return 1", 8}, 0));
	ck_assert_str_eq(sandbox_error(box), "it took too long");
	ck_assert(sandbox_compiles(box, &(struct sandbox_script){"good", "return 1", 8}, 1000 * TIME_NS));
	sandbox_close(box);
}
END_TEST

/* Each begins as the first did, whatever the one before has tried. */
START_TEST(no_script_sees_another)
{
	static const char *const scripts[] = {"x = 1", "_G.x = 1", "rawset(_G, 'x', 1)", "rawset(string, 'rep', 1)",
	    "string.rep = 1", "table.insert(string, 1)", "setmetatable(string, {})", "program.answer = nil",
	    "getmetatable('').__index = nil", "ARGUMENT = 1", "pcall = nil", "setmetatable(_G, {__index = {}})",
	    "getmetatable(_G).__index = {}"};
	struct sandbox *box = sandbox_open(MEMORY, install);
	struct outcome outcome;

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		ck_assert_msg(run(box, scripts[i], &outcome) == SANDBOX_FAILED, "%s", scripts[i]);
		ck_assert_int_eq(run(box, "return x", &outcome), SANDBOX_FAILED);
		ck_assert_int_eq(run(box,
		                     "return ('x'):rep(2) .. program.answer() .. ARGUMENT .. tostring(string[1]) .. "
		                     "tostring(pcall(error))",
		                     &outcome),
		    SANDBOX_OK);
		ck_assert_str_eq(outcome.text, "xx42givennilfalse");
	}
	sandbox_close(box);
}
END_TEST

START_TEST(time_is_bounded)
{
	static const char *const scripts[] = {"while true do end",
	    "while true do pcall(function() while true do end end) end",
	    "xpcall(function() while true do end end, function() while true do end end)",
	    "local s = ('x'):rep(2 ^ 20) while true do local t = s .. 1 < s end",
	    "local t = {} for i = 1, 5000 do t[i] = i end while true do table.sort(t, rawequal) end",
	    "while true do ('x'):rep(2000):find('.-y') end", "pcall(program.give_up) return 1"};
	struct sandbox *box = sandbox_open(MEMORY, install);

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		struct outcome outcome = {.asked = 0};
		ck_assert_msg(run_for(box, scripts[i], TIME_NS, &outcome) == SANDBOX_ENDED, "%s", scripts[i]);
		ck_assert_str_eq(sandbox_error(box), "it took too long");
		ck_assert_int_eq(run(box, "return 1", &outcome), SANDBOX_OK);
	}
	sandbox_close(box);
}
END_TEST

/* gsub calls it for each byte, without an instruction in between. */
START_TEST(time_is_bounded_in_functions)
{
	static const char *const scripts[] = {"('x'):rep(1000):gsub('.', program.spin)",
	    "('x'):rep(1000):gsub('.', setmetatable({}, {__index = program.spin}))"};
	struct sandbox *box = sandbox_open(MEMORY, install);
	struct outcome outcome = {.asked = 0};

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		spins = 0;
		ck_assert_int_eq(run_for(box, scripts[i], TIME_NS, &outcome), SANDBOX_ENDED);
		ck_assert_int_eq(spins, 1);
	}
	sandbox_close(box);
}
END_TEST

START_TEST(a_script_may_get_more_time)
{
	struct sandbox *box = sandbox_open(MEMORY, install);
	struct outcome outcome = {.more = TIME_NS};

	ck_assert_int_eq(run_for(box, "while true do end", TIME_NS, &outcome), SANDBOX_ENDED);
	ck_assert_int_eq(outcome.asked, 2);
	sandbox_close(box);
}
END_TEST

/* Wherever memory ends, the script ends, and never the program. */
START_TEST(memory_may_end_anywhere)
{
	static const char *const scripts[] = {
	    "local t = {} for i = 1, 200 do t[i] = ('x'):rep(i) .. i end table.sort(t) return table.concat(t)",
	    "local t = {} for i = 1, 100 do pcall(function() t[i] = {tostring(i), function() return t end} end) end return #t",
	    "error({err = ('x'):rep(3000)})"};
	struct outcome outcome;
	int is_enough = 0;

	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
		for (size_t memory = 0; memory < 120000; memory += 97) {
			struct sandbox *box = sandbox_open(memory, install);
			ck_assert_int_ne(run(box, scripts[i], &outcome), -1);
			is_enough = run(box, "return 1", &outcome) == SANDBOX_OK;
			sandbox_close(box);
		}
		ck_assert(is_enough);
	}
}
END_TEST

START_TEST(a_large_state_is_given_up)
{
	struct sandbox *box = sandbox_open(MEMORY, install);
	struct outcome outcome;

	for (int i = 0; i < 2000; i++) {
		char text[1200];
		(void)snprintf(text, sizeof text, "return '%01000d'", i);
		ck_assert_int_eq(run(box, text, &outcome), SANDBOX_OK);
	}
	ck_assert_int_eq(run(box, "local t = {} while true do t[#t + 1] = {} end", &outcome), SANDBOX_ENDED);
	ck_assert_str_eq(sandbox_error(box), "not enough memory");
	ck_assert_int_eq(run(box, "return 1", &outcome), SANDBOX_OK);
	sandbox_close(box);
}
END_TEST

START_TEST(patterns_are_bounded)
{
	static const struct {
		const char *script;
		int is_refused;
	} pairs[] = {
	    {"return ('x'):rep(100000):find('%s+')", 0},
	    {"return (('x y'):rep(30000):gsub('%s+', ''))", 0},
	    {"return ('12:34:56'):match('^(%d+):(%d+):(%d+)$')", 0},
	    {"return ('x'):rep(100000):gmatch('[^,]+')()", 0},
	    {"return ('x'):rep(1000000):find('needle', 1, true)", 0},
	    {"return ('x'):rep(100000):find('.-y')", 1},
	    {"return ('x'):rep(300):find('[.-]-[^]-]*x?y')", 1},
	    {"return ('('):rep(30000):find('%b()x')", 1},
	    {"return (''):find(('a*'):rep(1000))", 1},
	    {"return (('x'):rep(2 ^ 20):gsub('x', ''))", 0},
	    {"return (('x'):rep(2 ^ 20 + 1):gsub('x', ''))", 1},
	    {"return (('x'):rep(2 ^ 20 + 1):gsub('x', function() return '' end))", 0},
	    {"return ('^'):rep(5000):find('^.-b')", 0},
	    {"return ('^'):rep(5000):gmatch('^.-b')()", 1},
	    {"return ('x'):find('[')", 1},
	    {"return ('x'):find('[^')", 1},
	    {"return ('x'):find('[%')", 1},
	    {"return ('x'):find('%')", 1},
	    {"return ('x'):find('%b')", 1},
	};
	struct sandbox *box = sandbox_open(MEMORY, install);

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct outcome outcome;
		ck_assert_msg(
		    run(box, pairs[i].script, &outcome) == (pairs[i].is_refused ? SANDBOX_FAILED : SANDBOX_OK),
		    "%s: %s", pairs[i].script, sandbox_error(box));
	}
	sandbox_close(box);
}
END_TEST

TEST_MAIN("common/sandbox", scripts_return_values, errors_say_the_script_and_the_line, no_script_sees_another,
    time_is_bounded, time_is_bounded_in_functions, a_script_may_get_more_time, memory_may_end_anywhere,
    a_large_state_is_given_up, patterns_are_bounded)
