/* Commands about keys. */
#include "tools/weekwheel-sessiond/commands.h"
#include "tools/weekwheel-sessiond/events.h"

void command_del(struct request *request)
{
	int64_t count = 0;

	for (size_t i = 1; i < request->count; i++) {
		struct data_key key = request_key(request, i);
		if (data_delete(request->data, &key)) {
			event_tell(request, EVENT_GENERIC, "del", &key);
			count++;
		}
	}
	reply_integer(request->conn, count);
}
