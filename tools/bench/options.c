/* The options of weekwheel-bench, and its help. */
#include "tools/bench/options.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/options.h"
#include "tools/common/suggest.h"

enum { TIMERS = 1, WORKLOAD, STRUCTURE, REPETITIONS, SEED, CPU, LIMIT, JSON, SAVE, HELP };

static const struct option table[] = {
    {TIMERS, 'n', "timers", "LIST", "how many timers (default 1e4,1e5,1e6)"},
    {WORKLOAD, 'w', "workload", "LIST", "which workloads (default all)"},
    {STRUCTURE, 's', "structure", "LIST", "which structures (default all)"},
    {REPETITIONS, 'r', "repetitions", "N", "passes of each, after one that warms up (default 5)"},
    {SEED, 'S', "seed", "N", "what to draw delays and orders from (default 1)"},
    {CPU, 'c', "cpu", "N", "stay on this processor, counted from 0"},
    {LIMIT, 'l', "limit", "SECONDS", "give up a pass that takes longer (default 60)"},
    {JSON, 'j', "json", NULL, "write the results as JSON"},
    {SAVE, 'o', "save", "FILE", "also write the results as JSON to this file"},
    {HELP, 'h', "help", NULL, "show this help"},
};

enum { OPTION_COUNT = sizeof table / sizeof *table };
enum { TIMERS_MIN = 100, TIMERS_MAX = 100000000, REPETITIONS_MOST = 100, LIMIT_MOST = 86400 };
enum { WORD_ROOM = 64, EXPECTED_ROOM = 400 };

/* 1000000 or 1e6. */
static int parse_size(const char *text, uint64_t *number)
{
	char *end;
	double value;

	/* strtod would take 0x100 as well. */
	if (*text < '0' || *text > '9' || strpbrk(text, "xX"))
		return -1;
	value = strtod(text, &end);
	if (*end || !(value >= TIMERS_MIN && value <= TIMERS_MAX) || (double)(uint64_t)value != value)
		return -1;
	*number = (uint64_t)value;
	return 0;
}

/* ---- Lists: each take_ function adds one word to the plan, or returns -1 if it cannot -------------------------- */

static int take_size(struct plan *plan, const char *word)
{
	uint64_t n;

	if (parse_size(word, &n))
		return -1;
	for (size_t i = 0; i < plan->size_count; i++)
		if (plan->sizes[i] == n)
			return 0;
	if (plan->size_count == SIZES_MAX)
		return -1;
	plan->sizes[plan->size_count++] = n;
	return 0;
}

static int take_workload(struct plan *plan, const char *word)
{
	for (size_t i = 0; i < WORKLOADS; i++)
		if (strcmp(word, workload_words[i].name) == 0) {
			plan->workloads |= 1u << i;
			return 0;
		}
	return -1;
}

static int take_structure(struct plan *plan, const char *word)
{
	const struct structure *structure = structure_by_name(word);
	size_t i;

	if (!structure)
		return -1;
	for (i = 0; plan->chosen[i]; i++)
		if (plan->chosen[i] == structure)
			return 0;
	if (i + 1 == STRUCTURES_MAX)
		return -1;
	plan->chosen[i] = structure;
	plan->chosen[i + 1] = NULL;
	return 0;
}

/* Take each word of the option's value, which has commas between them. Return -1 after a message about a bad one. */
static int take_list(struct plan *plan, const struct options *options, const char *name,
    int (*take)(struct plan *, const char *), const char *expected)
{
	struct options of_word = *options;
	const char *text = options->value;
	char word[WORD_ROOM];
	size_t length;

	for (;; text += length + 1) {
		length = strcspn(text, ",");
		of_word.value = length ? text : options->value;
		if (length == 0 || length >= sizeof word)
			break;
		memcpy(word, text, length);
		word[length] = 0;
		of_word.value = word;
		if (take(plan, word))
			break;
		if (!text[length])
			return 0;
	}
	return options_bad_value(&of_word, name, expected);
}

static const char *workload_at(size_t i)
{
	return i < WORKLOADS ? workload_words[i].name : NULL;
}

static const char *structure_at(size_t i)
{
	return structures[i] ? structures[i]->name : NULL;
}

/* "some of", and all names with commas between them. */
static const char *some_of(char text[EXPECTED_ROOM], const char *(*name_at)(size_t))
{
	size_t used = 0;

	for (size_t i = 0; name_at(i) && used < EXPECTED_ROOM; i++)
		used += (size_t)snprintf(text + used, EXPECTED_ROOM - used, "%s%s", i ? "," : "some of ", name_at(i));
	return text;
}

/* ---- Options --------------------------------------------------------------------------------------------------- */

static int take_number(const struct options *options, const char *name, uint64_t least, uint64_t most,
    const char *expected, uint64_t *number)
{
	return options_whole(options->value, least, most, number) ? options_bad_value(options, name, expected) : 0;
}

static int take_option(struct bench_request *request, const struct options *options, int id)
{
	struct plan *plan = &request->plan;
	char expected[EXPECTED_ROOM];

	switch (id) {
	case TIMERS:
		plan->size_count = 0;
		return take_list(plan, options, "timers", take_size,
		    "at most 16 numbers from 100 to 1e8, with commas between: 1e4,1000000");
	case WORKLOAD:
		plan->workloads = 0;
		return take_list(plan, options, "workload", take_workload, some_of(expected, workload_at));
	case STRUCTURE:
		plan->chosen[0] = NULL;
		return take_list(plan, options, "structure", take_structure, some_of(expected, structure_at));
	case REPETITIONS:
		return take_number(
		    options, "repetitions", 1, REPETITIONS_MOST, "a number from 1 to 100", &plan->repetitions);
	case SEED:
		return take_number(
		    options, "seed", 0, UINT64_MAX, "a number from 0 to 18446744073709551615", &plan->seed);
	case CPU:
		return take_number(options, "cpu", 0, 4095, "the number of a processor, from 0", &request->cpu);
	case LIMIT:
		if (take_number(options, "limit", 1, LIMIT_MOST, "seconds, from 1 to 86400", &plan->limit_ns))
			return -1;
		plan->limit_ns *= 1000000000;
		return 0;
	case SAVE:
		request->save = options->value;
		return 0;
	case JSON:
		request->json = 1;
		return 0;
	default:
		message_line("%s: '%s' is not expected here: there are options only\nTry '%s --help'.",
		    options->command, options->value, options->command);
		return -1;
	}
}

static void set_defaults(struct bench_request *request, char **arguments)
{
	size_t used = (size_t)snprintf(request->command, sizeof request->command, "weekwheel-bench");

	for (size_t i = 0; arguments[i] && used < sizeof request->command; i++)
		used += (size_t)snprintf(request->command + used, sizeof request->command - used, " %s", arguments[i]);
	request->plan = (struct plan){.sizes = {10000, 100000, 1000000},
	    .size_count = 3,
	    .workloads = (1u << WORKLOADS) - 1,
	    .repetitions = 5,
	    .seed = 1,
	    .limit_ns = UINT64_C(60000000000)};
	for (size_t i = 0; structures[i] && i + 1 < STRUCTURES_MAX; i++)
		request->plan.chosen[i] = structures[i];
	request->cpu = BENCH_ANY_CPU;
}

enum bench_request_kind bench_request_parse(struct bench_request *request, char **arguments)
{
	struct options options = {
	    .command = "weekwheel-bench", .table = table, .count = OPTION_COUNT, .arguments = arguments};
	int id;

	memset(request, 0, sizeof *request);
	set_defaults(request, arguments);
	while ((id = options_next(&options)) != OPTIONS_END) {
		if (id == HELP)
			return BENCH_REQUEST_HELP;
		if (id == OPTIONS_ERROR || take_option(request, &options, id))
			return BENCH_REQUEST_WRONG;
	}
	return BENCH_REQUEST_RUN;
}

static void help_lists(FILE *out)
{
	fputs("\nWorkloads (a tick is a second, n timers are pending):\n", out);
	for (int i = 0; i < WORKLOADS; i++)
		fprintf(out, "  %-14s %s\n", workload_words[i].name, workload_words[i].summary);
	fputs("\nStructures:\n", out);
	for (size_t i = 0; structures[i]; i++)
		fprintf(out, "  %-14s %s\n", structures[i]->name, structures[i]->summary);
}

void bench_request_help(FILE *out)
{
	fputs("Usage: weekwheel-bench [OPTION]...\n"
	      "\n"
	      "Compare this library with other ways of keeping timers, on workloads through an\n"
	      "array of objects of 64 bytes, as an application has them. Each structure is\n"
	      "checked first; then they take turns. Shown are median, minimum and maximum, and\n"
	      "the ratio of the median to weekwheel's: above 1 is slower, or larger.\n"
	      "\n"
	      "Options:\n",
	    out);
	options_help(out, table, OPTION_COUNT);
	help_lists(out);
	fputs("\n"
	      "Interrupted (Ctrl-C, SIGTERM), it shows what it has measured so far; a second\n"
	      "time, it ends at once.\n"
	      "\n"
	      "Status: 0 done; 1 a structure is wrong, or the output had a problem; 2 the\n"
	      "command line had one; 130 or 143 interrupted.\n"
	      "\n"
	      "Examples:\n"
	      "  weekwheel-bench -n 1e4,1e5 -s weekwheel,linked,flat -w A,B,C30\n"
	      "  weekwheel-bench --timers 1e6,1e7 --workload A,D --structure weekwheel,linked\n"
	      "  weekwheel-bench --cpu 1 --json | scripts/bench-plots --html bench.html\n",
	    out);
}
