/* A line: one connection for a program that waits by itself (see line.h). */
#include "lib/redis/link/line.h"

#include <stdio.h>

#include <hiredis/hiredis.h>

#include "lib/redis/link/link_internal.h"

struct redis_line {
	const struct ww_allocator *allocator;
	struct redis_wire *wire;
	struct redis_tls *tls; /* NULL: none */
	struct redis_url url;
};

/* ---- Opening */

static int read_config(struct redis_line *line, const struct redis_line_config *config, char why[REDIS_LINE_WHY])
{
	const char *wrong;
	int error = ww_redis_url_parse(&line->url, config->url, &wrong);

	if (error) {
		(void)snprintf(why, REDIS_LINE_WHY, "%s", wrong);
		return error;
	}
	if (config->address)
		*line->url.hosts = *config->address;
	if (config->is_sentinel) {
		line->url.has_password = 0;
		line->url.user[0] = line->url.password[0] = '\0';
		line->url.db = 0;
	}
	error = ww_redis_url_login(&line->url, config->user, config->password);
	if (error)
		(void)snprintf(why, REDIS_LINE_WHY, "the user or the password is too long");
	return error;
}

int ww_redis_line_check_files(const struct redis_url *url, char why[REDIS_LINE_WHY])
{
	struct redis_tls *tls = NULL;
	int error = url->is_tls ? ww_redis_tls_make(&tls, url, why, REDIS_LINE_WHY) : WW_OK;

	if (error == WW_ENOMEM)
		(void)snprintf(why, REDIS_LINE_WHY, "no memory");
	ww_redis_tls_free(tls);
	return error;
}

static int connect_line(struct redis_line *line, size_t reply_max, uint64_t deadline, char why[REDIS_LINE_WHY])
{
	const struct redis_budget budget = {.allocator = line->allocator, .max = reply_max};
	int error = line->url.is_tls ? ww_redis_tls_make(&line->tls, &line->url, why, REDIS_LINE_WHY) : WW_OK;

	if (!error)
		error = ww_redis_wire_connect(
		    &line->wire, line->url.hosts, &budget, line->tls, deadline, why, REDIS_LINE_WHY);
	if (error)
		return error;
	error = ww_redis_greet(&line->url, line->wire, deadline);
	if (error)
		(void)snprintf(why, REDIS_LINE_WHY, "%s", line->wire->why);
	return error;
}

int ww_redis_line_open(
    struct redis_line **line, const struct redis_line_config *config, uint64_t deadline, char why[REDIS_LINE_WHY])
{
	struct redis_line *made = memory_take_zeroed(config->allocator, sizeof *made);
	int error;

	(void)snprintf(why, REDIS_LINE_WHY, "no memory");
	if (!made)
		return WW_ENOMEM;
	made->allocator = config->allocator;
	error = read_config(made, config, why);
	if (!error)
		error = connect_line(made, config->reply_max, deadline, why);
	if (error)
		ww_redis_line_close(made);
	else
		*line = made;
	return error;
}

void ww_redis_line_close(struct redis_line *line)
{
	if (!line)
		return;
	if (line->wire)
		ww_redis_wire_close(line->wire);
	ww_redis_tls_free(line->tls);
	memory_give(line->allocator, line, sizeof *line);
}

/* ---- Use */

int ww_redis_line_fd(const struct redis_line *line)
{
	return line->wire->context->fd;
}

short ww_redis_line_events(const struct redis_line *line)
{
	return ww_redis_wire_is_sent(line->wire) ? POLLIN : POLLIN | POLLOUT;
}

int ww_redis_line_append(struct redis_line *line, size_t argc, const char *const *argv, const size_t *lengths)
{
	return ww_redis_wire_append(line->wire, argc, argv, lengths);
}

int ww_redis_line_move(struct redis_line *line)
{
	int error = ww_redis_wire_send(line->wire);

	return error ? error : ww_redis_wire_receive(line->wire);
}

int ww_redis_line_is_amid(const struct redis_line *line)
{
	const struct redisReader *reader = line->wire->context->reader;

	/* hiredis waits for the first byte of a reply at 0, and is deeper within an array, as Redis's messages are. */
	return reader->ridx > 0 || reader->len > reader->pos || line->wire->has_more;
}

int ww_redis_line_reply(struct redis_line *line, struct redisReply **reply)
{
	return ww_redis_wire_reply(line->wire, reply);
}

int ww_redis_line_call(
    struct redis_line *line, size_t argc, const char *const *argv, uint64_t deadline, struct redisReply **reply)
{
	int error = ww_redis_wire_append(line->wire, argc, argv, NULL);

	return error ? error : ww_redis_wire_wait(line->wire, deadline, reply);
}

void ww_redis_line_free(struct redisReply *reply)
{
	ww_redis_reply_free(reply);
}

int ww_redis_line_judge(const struct redisReply *reply, char *text, size_t size)
{
	int error;

	(void)ww_redis_error_meaning(reply, &error);
	if (text && reply->type == REDIS_REPLY_ERROR)
		ww_redis_error_copy(text, size, reply);
	return error;
}

const char *ww_redis_line_why(const struct redis_line *line)
{
	return line->wire->why;
}
