/* The stream of events (server-sent events): the operation, and its answer, which goes on. */
#include <stdlib.h>
#include <string.h>

#include "tools/weekwheeld/v1/events.h"
#include "tools/weekwheeld/v1/v1.h"

/* What libmicrohttpd asks for at once. */
enum { BLOCK = 16384 };

/* The names of the query, with commas behind them, become those of the request. */
static int take_tubes(struct v1_request *request)
{
	char name[WW_TUBE_MAX + 1];
	char *at = request->decoded.data;
	char *end;

	/* Without names it has no memory either. */
	if (request->decoded.size == 0)
		return 0;
	end = at + request->decoded.size;
	for (; at < end; at += strlen(at) + 1) {
		char *comma = memchr(at, ',', (size_t)(end - at));

		*comma = '\0';
		if (words_tube((struct span){at, comma}, name) != 0)
			return v1_problem(
			    request, 400, "tube", NULL, "this must be names of tubes with commas between them");
		if (request->tube_count == V1_TUBES_MAX)
			return v1_problem(request, 400, "tube", NULL, "a stream has %d tubes at most", V1_TUBES_MAX);
		if (!v1_may(request, name))
			return v1_refuse_tube(request, name);
		request->tubes[request->tube_count++] = at;
	}
	return 0;
}

static int prepare_events(struct v1_request *request)
{
	struct server *server = request->task.server;
	struct events_stream *stream;

	if (take_tubes(request) != 0)
		return -1;
	stream = calloc(1, sizeof *stream);
	if (!stream)
		return v1_failed(request, WW_ENOMEM);
	stream->visit = &request->visit;
	stream->who = request->who.token;
	stream->tokens = request->who.tokens;
	stream->tubes = request->tubes;
	stream->tube_count = request->tube_count;
	if (server->is_stopping || events_join(server, stream, request->last_event) != 0) {
		buffer_free(&stream->out);
		free(stream);
		return v1_problem(request, 503, NULL, "ask from time to time instead, and try again",
		    "%d clients read events already, or the server ends", EVENTS_STREAMS);
	}
	request->stream = stream;
	/* It has its answer, which needs no task. */
	return -1;
}

static ssize_t read_more(void *context, uint64_t position, char *to, size_t room)
{
	struct v1_request *request = context;
	long size = events_take(request->task.server, request->stream, to, room);

	(void)position;
	if (size == 0)
		MHD_suspend_connection(request->visit.client);
	return size < 0 ? MHD_CONTENT_READER_END_OF_STREAM : size;
}

enum MHD_Result v1_stream_reply(struct v1_request *request)
{
	struct MHD_Response *response =
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_more, request, NULL);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	result = MHD_queue_response(request->visit.client, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}

void v1_stream_end(struct v1_request *request)
{
	if (!request->stream)
		return;
	events_leave(request->task.server, request->stream);
	free(request->stream);
}

const struct v1_operation v1_stream_operations[] = {
    {"GET", "events", RIGHT_READ, V1_OF_EVENTS | V1_BY_TUBE, 0, prepare_events, NULL},
    {NULL, NULL, 0, 0, 0, NULL, NULL},
};
