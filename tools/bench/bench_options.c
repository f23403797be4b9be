/* The options of weekwheel-bench, and its help. */
#include "tools/bench/bench_options.h"

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
enum { WORD_ROOM = 64 };

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

/*
 * Call take for each word of the option's value, which has commas between them. Return NULL, or the word for which take
 * returned -1, or the whole value if a word is empty. `word` is where a word is put.
 */
static const char *for_each_word(struct bench_request *request, const char *value, char word[WORD_ROOM],
    int (*take)(struct bench_request *, const char *))
{
	const char *text = value;

	for (;;) {
		size_t length = strcspn(text, ",");

		if (length == 0)
			return value;
		if (length >= WORD_ROOM)
			return text;
		memcpy(word, text, length);
		word[length] = 0;
		if (take(request, word))
			return word;
		if (!text[length])
			return NULL;
		text += length + 1;
	}
}

/* Say what is wrong with a word of a list. */
static int bad_word(const struct options *options, const char *name, const char *word, const char *expected)
{
	struct options of_word = *options;

	of_word.value = word;
	return options_bad_value(&of_word, name, expected);
}

static int take_one_size(struct bench_request *request, const char *word)
{
	struct plan *plan = &request->plan;
	uint64_t n;
	size_t i;

	if (parse_size(word, &n))
		return -1;
	for (i = 0; i < plan->size_count; i++)
		if (plan->sizes[i] == n)
			return 0;
	if (plan->size_count == SIZES_MAX)
		return -1;
	plan->sizes[plan->size_count++] = n;
	return 0;
}

static int take_sizes(struct bench_request *request, const struct options *options)
{
	char word[WORD_ROOM];
	const char *bad;

	request->plan.size_count = 0;
	bad = for_each_word(request, options->value, word, take_one_size);
	return bad ? bad_word(
	                 options, "timers", bad, "at most 16 numbers from 100 to 1e8, with commas between: 1e4,1000000")
	           : 0;
}

static int take_one_workload(struct bench_request *request, const char *word)
{
	int i;

	for (i = 0; i < WORKLOADS; i++)
		if (strcmp(word, workload_name((enum workload)i)) == 0) {
			request->plan.workloads |= 1u << i;
			return 0;
		}
	return -1;
}

static int take_workloads(struct bench_request *request, const struct options *options)
{
	char word[WORD_ROOM];
	const char *bad;

	request->plan.workloads = 0;
	bad = for_each_word(request, options->value, word, take_one_workload);
	return bad ? bad_word(options, "workload", bad, "some of A,B,C30,C1800,Cweek,D,R,E,F,G,K,T,L,H") : 0;
}

static int take_one_structure(struct bench_request *request, const char *word)
{
	const struct structure *structure = structure_by_name(word);
	const struct structure **chosen = request->plan.chosen;
	size_t i;

	if (!structure)
		return -1;
	for (i = 0; chosen[i]; i++)
		if (chosen[i] == structure)
			return 0;
	if (i + 1 == STRUCTURES_MAX)
		return -1;
	chosen[i] = structure;
	chosen[i + 1] = NULL;
	return 0;
}

static int take_structures(struct bench_request *request, const struct options *options)
{
	char expected[400] = "some of ", word[WORD_ROOM];
	size_t i, used = strlen(expected);
	const char *bad;

	request->plan.chosen[0] = NULL;
	bad = for_each_word(request, options->value, word, take_one_structure);
	if (!bad)
		return 0;
	for (i = 0; structures[i] && used < sizeof expected; i++)
		used += (size_t)snprintf(expected + used, sizeof expected - used, "%s,", structures[i]->name);
	for (i = 0; layer_structures[i] && used < sizeof expected; i++)
		used += (size_t)snprintf(
		    expected + used, sizeof expected - used, "%s%s", i ? "," : "", layer_structures[i]->name);
	return bad_word(options, "structure", bad, expected);
}

static int take_number(const struct options *options, const char *name, uint64_t least, uint64_t most,
    const char *expected, uint64_t *number)
{
	return options_whole(options->value, least, most, number) ? options_bad_value(options, name, expected) : 0;
}

static int take_option(struct bench_request *request, const struct options *options, int id)
{
	uint64_t number = 0;
	int status = 0;

	switch (id) {
	case TIMERS:
		return take_sizes(request, options);
	case WORKLOAD:
		return take_workloads(request, options);
	case STRUCTURE:
		return take_structures(request, options);
	case REPETITIONS:
		status = take_number(options, "repetitions", 1, REPETITIONS_MOST, "a number from 1 to 100", &number);
		request->plan.repetitions = (unsigned)number;
		return status;
	case SEED:
		return take_number(
		    options, "seed", 0, UINT64_MAX, "a number from 0 to 18446744073709551615", &request->plan.seed);
	case CPU:
		status = take_number(options, "cpu", 0, 4095, "the number of a processor, from 0", &number);
		request->cpu = (long)number;
		return status;
	case LIMIT:
		status = take_number(options, "limit", 1, LIMIT_MOST, "seconds, from 1 to 86400", &number);
		request->plan.limit_ns = number * 1000000000;
		return status;
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
	size_t i, chosen = 0;

	for (i = 0; arguments[i] && used < sizeof request->command; i++)
		used += (size_t)snprintf(request->command + used, sizeof request->command - used, " %s", arguments[i]);
	request->plan = (struct plan){.sizes = {10000, 100000, 1000000},
	    .size_count = 3,
	    .workloads = (1u << WORKLOADS) - 1,
	    .repetitions = 5,
	    .seed = 1,
	    .limit_ns = UINT64_C(60000000000)};
	for (i = 0; structures[i] && chosen + 1 < STRUCTURES_MAX; i++)
		request->plan.chosen[chosen++] = structures[i];
	for (i = 0; layer_structures[i] && chosen + 1 < STRUCTURES_MAX; i++)
		request->plan.chosen[chosen++] = layer_structures[i];
	request->cpu = -1;
}

enum bench_request_kind bench_request_parse(struct bench_request *request, char **arguments)
{
	struct options options = {"weekwheel-bench", table, OPTION_COUNT, arguments, NULL, 0, NULL};
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
	size_t i;

	fputs("\nWorkloads (a tick is a second, n timers are pending):\n", out);
	for (i = 0; i < WORKLOADS; i++)
		fprintf(out, "  %-14s %s\n", workload_name((enum workload)i), workload_summary((enum workload)i));
	fputs("\nStructures:\n", out);
	for (i = 0; structures[i]; i++)
		fprintf(out, "  %-14s %s\n", structures[i]->name, structures[i]->summary);
	for (i = 0; layer_structures[i]; i++)
		fprintf(out, "  %-14s %s\n", layer_structures[i]->name, layer_structures[i]->summary);
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
