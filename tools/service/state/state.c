/* Reports when a state in which something waits begins and ends. */
#include "tools/service/state/state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/time.h"
#include "tools/common/message.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct state_info states[STATES_MAX];
static size_t states_count;
static uint64_t states_due; /* the first `due` that state_settle has given to the loop, or 0 */
static void (*states_wake)(void *context);
static void *states_context;

/* 0 stands for never. */
static uint64_t now_ms(void)
{
	return (uint64_t)time_ms() + 1;
}

static struct state_info *find(const char *key)
{
	for (size_t i = 0; i < states_count; i++)
		if (strncmp(states[i].key, key, STATE_KEY_MAX - 1) == 0)
			return &states[i];
	return NULL;
}

/* Return a free place, or that of the state which ended first, or NULL. */
static struct state_info *place(void)
{
	struct state_info *oldest = NULL;

	if (states_count < STATES_MAX)
		return &states[states_count++];
	for (size_t i = 0; i < STATES_MAX; i++)
		if (!states[i].is_logged && !states[i].is_on && (!oldest || states[i].ended < oldest->ended))
			oldest = &states[i];
	return oldest;
}

static struct state_info *make(const char *key)
{
	struct state_info *state = find(key);

	if (!state && (state = place()) != NULL) {
		memset(state, 0, sizeof *state);
		snprintf(state->key, sizeof state->key, "%s", key);
	}
	return state;
}

/* Have state_settle called at that time. */
static void wait_until(struct state_info *state, uint64_t due)
{
	state->due = due;
	if (states_wake && (!states_due || due < states_due)) {
		states_due = due;
		states_wake(states_context);
	}
}

static void log_begin(struct state_info *state, uint64_t now)
{
	state->is_flapping = state->ended && now - state->ended < STATE_QUIET_MS;
	state->is_logged = 1;
	state->since = now;
	state->count = 0;
	message_log(MESSAGE_WARNING, MESSAGE_FIELDS({"state", state->key, 0}, {"event", "begin", 0}), "%s%s",
	    state->text, state->is_flapping ? " (again: from now on, only its last end is logged)" : "");
}

static void log_end(struct state_info *state)
{
	uint64_t ms = state->ended - state->since;
	char met[80];

	state->is_logged = state->is_flapping = 0;
	state->due = 0;
	/* A state that was seen only once has no duration. */
	if (state->is_seen && state->count == 1)
		snprintf(met, sizeof met, "met once");
	else
		snprintf(met, sizeof met, "after %llu.%03llu s, met %llu time%s", (unsigned long long)(ms / 1000),
		    (unsigned long long)(ms % 1000), (unsigned long long)state->count, state->count == 1 ? "" : "s");
	message_log(MESSAGE_INFO,
	    MESSAGE_FIELDS({"state", state->key, 0}, {"event", "end", 0}, {"milliseconds", NULL, ms},
	        {"count", NULL, state->count}),
	    "%s%s (%s)", state->is_seen ? "it is over: " : "", state->text, met);
}

static void begin(const char *key, unsigned stops, int is_seen, const char *format, va_list arguments)
{
	uint64_t now = now_ms();
	struct state_info *state;

	pthread_mutex_lock(&lock);
	state = make(key);
	if (state) {
		if (!state->is_on) {
			state->is_on = 1;
			state->begun++;
			state->started = now;
			state->due = 0;
		}
		/* The reason may have changed. */
		if (!is_seen || !state->is_logged)
			vsnprintf(state->text, sizeof state->text, format, arguments);
		if (!state->is_logged)
			log_begin(state, now);
		state->stops = stops;
		state->is_seen = is_seen;
		state->count++;
		if (is_seen) {
			state->ended = now;
			if (!state->due)
				wait_until(state, now + STATE_QUIET_MS);
		}
	}
	pthread_mutex_unlock(&lock);
}

void state_begin(const char *key, unsigned stops, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	begin(key, stops, 0, format, arguments);
	va_end(arguments);
}

void state_seen(const char *key, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	begin(key, 0, 1, format, arguments);
	va_end(arguments);
}

void state_met(const char *key)
{
	struct state_info *state;

	pthread_mutex_lock(&lock);
	state = find(key);
	if (state && state->is_on)
		state->count++;
	pthread_mutex_unlock(&lock);
}

static void switch_off(struct state_info *state, uint64_t ended)
{
	state->is_on = 0;
	state->stops = 0;
	state->ended = ended;
	state->lasted += ended - state->started;
}

void state_end(const char *key, const char *format, ...)
{
	va_list arguments;
	struct state_info *state;

	va_start(arguments, format);
	pthread_mutex_lock(&lock);
	state = find(key);
	if (state && state->is_on) {
		switch_off(state, now_ms());
		vsnprintf(state->text, sizeof state->text, format, arguments);
		if (state->is_flapping)
			wait_until(state, state->ended + STATE_QUIET_MS);
		else
			log_end(state);
	}
	pthread_mutex_unlock(&lock);
	va_end(arguments);
}

void state_each(void (*each)(const struct state_info *state, void *context), void *context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < states_count; i++)
		each(&states[i], context);
	pthread_mutex_unlock(&lock);
}

uint64_t state_lasted(const struct state_info *state)
{
	return state->lasted + (state->is_on ? now_ms() - state->started : 0);
}

void state_watch(void (*wake)(void *context), void *context)
{
	pthread_mutex_lock(&lock);
	states_wake = wake;
	states_context = context;
	states_due = 0;
	pthread_mutex_unlock(&lock);
}

/* `ended` is when a state that ends by itself was met last. */
static void settle(struct state_info *state, uint64_t now)
{
	if (state->is_seen && state->is_on) {
		state->due = state->ended + STATE_QUIET_MS;
		if (now >= state->due)
			switch_off(state, state->ended);
	}
	if (!state->is_on && now >= state->due)
		log_end(state);
}

int64_t state_settle(void)
{
	uint64_t now = now_ms();
	uint64_t due = 0;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < states_count; i++) {
		if (states[i].due && now >= states[i].due)
			settle(&states[i], now);
		if (states[i].due && (!due || states[i].due < due))
			due = states[i].due;
	}
	states_due = due;
	pthread_mutex_unlock(&lock);
	return due ? (int64_t)(due - now) : -1;
}

void state_finish(void)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < states_count; i++)
		if (states[i].is_logged && !states[i].is_on)
			log_end(&states[i]);
	memset(states, 0, sizeof states);
	states_count = 0;
	states_due = 0;
	pthread_mutex_unlock(&lock);
}
