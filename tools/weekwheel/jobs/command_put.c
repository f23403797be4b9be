/* The command put: its options and what they may be combined with. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/duration.h"
#include "tools/common/message.h"
#include "tools/weekwheel/jobs/put.h"

enum {
	IN = 1,
	AT,
	SPREAD,
	EVERY,
	PRIORITY,
	RUN,
	ATTEMPTS,
	BACKOFF,
	KEEP,
	BACKOFF_MAX,
	MISSED,
	SKIP,
	EXPIRE,
	EXPIRED,
	CODE,
	VERSION,
	IF_ABSENT,
	KEEP_EARLIER,
	KEEP_LATER,
	DEBOUNCE,
	UNIQUE,
	GROUP,
	BODY_FILE,
	URL,
	METHOD,
	HEADER,
	THEN
};

static const struct option table[] = {
    JOBS_TUBE_OPTION("the tube to put it into (default 'default')"),
    JOBS_KEY_OPTION(
        "a name that is unique in the tube; the job that has it\nis replaced, or as the following options say"),
    {IF_ABSENT, 0, "if-absent", NULL, "with --key: keep the job that has it (idempotent put)"},
    {KEEP_EARLIER, 0, "keep-earlier", NULL, "with --key: of two due times, keep the earlier"},
    {KEEP_LATER, 0, "keep-later", NULL, "with --key: of two due times, keep the later"},
    {DEBOUNCE, 0, "debounce", "TIME",
        "with --key: each put moves the job to --in from now,\nbut at most TIME after the first put"},
    {UNIQUE, 0, "unique", "TIME", "with --key: keep the job that has it, and its key\nfor TIME after it was finished"},
    {GROUP, 'g', "group", "GROUP", "the groups of a tube take turns, and may have limits\n(see weekwheel limit)"},
    {IN, 'i', "in", "TIME", "due after: 90, 90s, 1.5h, 3d12h, 2w (default now)"},
    {AT, 'a', "at", "WHEN",
        "due at: '2026-12-01 09:00' (local), with an offset\n(2026-12-01T09:00:00+02:00), or @ and Unix seconds"},
    {SPREAD, 0, "spread", "TIME", "a part of TIME later, always the same for a key"},
    {EVERY, 'e', "every", "TIME",
        "again and again, this long after each due time;\n\"weekwheel schedule\" has times of the calendar"},
    {PRIORITY, 'p', "priority", "N", "lower is delivered first; below 1024 is urgent\n(default 1024)"},
    {RUN, 'r', "run", "TIME", "how long a worker may take (default 60s)"},
    {ATTEMPTS, 'n', "attempts", "N", "bury it after N deliveries (default 0: never)"},
    {BACKOFF, 'b', "backoff", "TIME", "delay after the first failure; doubles with each"},
    {KEEP, 0, "keep", "TIME", "keep how each run ended for TIME; 'weekwheel history'\nshows it"},
    {BACKOFF_MAX, 0, "backoff-max", "TIME", "the longest such delay (default 1h)"},
    {MISSED, 0, "missed", "WHICH", "with --every: deliver what was missed once, all of it,\nor skip it (default once)"},
    {SKIP, 0, "skip", "TIME", "with --missed skip: not those later than TIME"},
    {EXPIRE, 0, "expire", "TIME", "it expires this long after it is due if none has it"},
    {EXPIRED, 0, "expired", "WHICH", "with --expire: then drop it, or bury it (default drop)"},
    {CODE, 0, "code", "N", "for workers with --code N or more, or with none"},
    {VERSION, 0, "if-version", "N",
        "with --key: only if that job has this version;\n0: only if there is none, as --if-absent"},
    {BODY_FILE, 'f', "file", "FILE", "the body is the content of FILE"},
    {URL, 'u', "url", "URL",
        "the job is an HTTP request, for a server that delivers\nthe jobs of the tube (weekwheeld --push)"},
    {METHOD, 'm', "method", "METHOD", "of the request (default POST)"},
    {HEADER, 'H', "header", "NAME=VALUE",
        "goes with the body, as 'NAME: VALUE' too; with --url,\nof the request; can be given several times"},
    {THEN, 0, "then", "JSON",
        "the job to put when this one is finished, as /v1 takes\nit, or a FILE with it: {\"tube\": \"mail\", \"body\": \"done\"}"},
    {JOBS_FLAG(struct put_options, lines), 'l', "lines", NULL, "a job for each line of standard input"},
    JOBS_OPTIONS,
};

static const uint64_t second = DURATION_SECOND;

static int take_number(const struct options *options, const char *name, uint64_t most, uint64_t *number)
{
	char expected[60];

	snprintf(expected, sizeof expected, "a number from 0 to %" PRIu64, most);
	return jobs_whole(options, name, 0, most, number, expected);
}

static int take_mode(struct put_options *put, const struct options *options, enum ww_key_mode mode)
{
	if (put->mode != WW_KEY_REPLACE && put->mode != mode)
		return options_fail(options,
		    "--if-absent, --if-version 0, --keep-earlier, --keep-later, --debounce and "
		    "--unique are different ways to deal with a key; leave all but one out");
	put->mode = mode;
	return 0;
}

static int take_span(struct put_options *put, const struct options *options, int id, enum ww_key_mode mode)
{
	return take_mode(put, options, mode) || words_take(put->words, options, id, 0);
}

static int take_version(struct put_options *put, const struct options *options)
{
	int wrong = take_number(options, "if-version", UINT64_MAX, &put->version);

	return wrong || put->version ? wrong : take_mode(put, options, WW_KEY_IF_ABSENT);
}

static int take_body(struct put_options *put, const struct options *options)
{
	if (put->body || put->file)
		return options_fail(options, "one body is expected; put quotes around one with blanks, or use --lines");
	if (strcmp(options->value, "-") == 0)
		put->file = "-";
	else
		put->body = options->value;
	return 0;
}

static int take_file(struct put_options *put, const struct options *options)
{
	if (put->body || put->file)
		return options_fail(options, "one body is expected: leave --file or the other one out");
	put->file = options->value;
	return 0;
}

static int take_option(void *context, struct options *options, int id)
{
	struct put_options *put = context;

	switch (id) {
	case IN:
		put->has_delay = 1;
		return jobs_duration(options, "in", 0, DURATION_MAX, &put->delay);
	case AT:
		put->has_at = 1;
		return jobs_time(options, "at", &put->at);
	case PRIORITY:
		return take_number(options, "priority", UINT32_MAX, &put->priority);
	case RUN:
		return jobs_duration(options, "run", second, UINT32_MAX * second, &put->run);
	case SPREAD:
	case EVERY:
	case ATTEMPTS:
	case BACKOFF:
	case KEEP:
	case BACKOFF_MAX:
	case MISSED:
	case SKIP:
	case EXPIRE:
	case EXPIRED:
	case CODE:
	case GROUP:
		return words_take(put->words, options, id, id == KEEP ? second : 0);
	case VERSION:
		return take_version(put, options);
	case IF_ABSENT:
		return take_mode(put, options, WW_KEY_IF_ABSENT);
	case KEEP_EARLIER:
		return take_mode(put, options, WW_KEY_KEEP_EARLIER);
	case KEEP_LATER:
		return take_mode(put, options, WW_KEY_KEEP_LATER);
	case DEBOUNCE:
		return take_span(put, options, id, WW_KEY_DEBOUNCE);
	case UNIQUE:
		return take_span(put, options, id, WW_KEY_UNIQUE);
	case BODY_FILE:
		return take_file(put, options);
	case URL:
		put->url = options->value;
		return 0;
	case METHOD:
		put->method = options->value;
		return 0;
	case HEADER:
		return put_request_header(put, options);
	case THEN:
		put->then = options->value;
		return 0;
	default:
		return take_body(put, options);
	}
}

/* How the options of a key go together. */
static int check_key(const struct put_options *put, const struct options *options)
{
	static const char *const names[] = {[WW_KEY_IF_ABSENT] = "--if-absent",
	    [WW_KEY_KEEP_EARLIER] = "--keep-earlier",
	    [WW_KEY_KEEP_LATER] = "--keep-later",
	    [WW_KEY_DEBOUNCE] = "--debounce",
	    [WW_KEY_UNIQUE] = "--unique"};

	if (put->version && !*put->jobs.key)
		return options_fail(options, "--if-version is for the job with --key, which is missing");
	if (put->mode == WW_KEY_REPLACE)
		return 0;
	if (!*put->jobs.key)
		return options_fail(options, "%s is for the job with --key, which is missing", names[put->mode]);
	if (put->version)
		return options_fail(
		    options, "--if-version replaces a certain job; leave it or %s out", names[put->mode]);
	if (strstr(put->words, " every=") && put->mode >= WW_KEY_DEBOUNCE)
		return options_fail(options, "%s is for jobs that run once: leave it or --every out", names[put->mode]);
	return 0;
}

static int check(void *context, const struct options *options)
{
	struct put_options *put = context;
	int is_repeated = strstr(put->words, " every=") != NULL;
	int has_skip = strstr(put->words, " skip=") != NULL;

	if (has_skip && !strstr(put->words, " missed="))
		jobs_add(put->words, sizeof put->words, "missed", "skip");
	if (put->lines && (put->body || put->file))
		return options_fail(options, "--lines reads standard input: leave the other body out");
	if (!put->lines && !put->body && !put->file && !put->url)
		return options_fail(options, "a body is missing: give one ('' is empty), --file, - or --lines");
	if (put->lines && *put->jobs.key)
		return options_fail(options, "with one --key each of the --lines would replace the previous one");
	if (put->has_delay && put->has_at)
		return options_fail(options, "--in and --at both say when; leave one out");
	if (check_key(put, options))
		return OPTIONS_ERROR;
	if (put->mode == WW_KEY_DEBOUNCE && !put->has_delay && !put->has_at)
		message_warning(
		    "put: with --debounce and no --in the job is due at once; --in 10m lets it wait for more");
	if (strstr(put->words, " backoff-max=") && !strstr(put->words, " backoff="))
		return options_fail(options, "--backoff-max bounds the --backoff, which is missing");
	if (strstr(put->words, " expired=") && !strstr(put->words, " expire="))
		return options_fail(
		    options, "--expired says what becomes of a job after --expire TIME, which is missing");
	if (!is_repeated && strstr(put->words, " missed="))
		return options_fail(options, "--missed and --skip are for jobs that repeat: --every is missing");
	if ((strstr(put->words, " missed=skip") != NULL) != has_skip)
		return options_fail(options, "--missed skip and --skip TIME go together");
	return put_request_check(put, options) ? OPTIONS_ERROR : put_then_check(put, options);
}

const struct jobs_command command_put = {
    .name = "weekwheel put",
    JOBS_TABLE(table),
    .context = &(struct put_options){.priority = 1024, .run = 60 * DURATION_SECOND},
    .server = JOBS_ADDRESS,
    .repeats = (const int[]){HEADER, 0},
    .needs = {"put", "the tube default"},
    .take = take_option,
    .check = check,
    .run = put_run,
    .usage = "Usage: weekwheel put [OPTION]... BODY\n"
             "       weekwheel put [OPTION]... --file FILE\n"
             "       weekwheel put [OPTION]... -\n"
             "       weekwheel put [OPTION]... --lines\n"
             "       weekwheel put [OPTION]... --url URL [BODY]\n"
             "\n"
             "Put a job, which a worker gets when it is due, and show its id. The body is any\n"
             "bytes; '-' reads it from standard input.\n",
    .examples = "Examples:\n"
                "  weekwheel put --tube mail --in 3d12h 'remind ada'\n"
                "  weekwheel put --key mail-ada --in 10m --debounce 1h 'a digest for ada'\n"
                "  weekwheel put --key order-7 --unique 1d 'charge order 7'\n"
                "  weekwheel put --key refresh --every 6h 'refresh the cache'\n"
                "  weekwheel put --tube resize --lines <files\n"
                "  weekwheel put --tube resize --then '{\"tube\": \"mail\", \"body\": \"ada\"}' ada.png\n"
                "  weekwheel put -t hooks --url https://example.org/hook --in 1h '{\"order\": 7}'\n",
};
