/* The sentences of ww_strerror: what went wrong, and what to do. */
#include "weekwheel/error.h"

const char *ww_strerror(int error)
{
	switch (error) {
	case WW_OK:
		return "The call succeeded; there is nothing to do.";
	case WW_EINVAL:
		return "An argument is not allowed: check for NULL, fill a configuration with its ..._config_default "
		       "before you change it, and compare each value with the range in the function's header.";
	case WW_ENOMEM:
		return "No memory was left: free some, or give the allocator more, and call again. Or pinned entries "
		       "fill a shard of a session map: set some without WW_SESSION_PINNED, or raise the limit.";
	case WW_ERANGE:
		return "The time is beyond the horizon of a bounded wheel: choose an earlier one, add a level, or "
		       "create the wheel without WW_WHEEL_BOUNDED.";
	case WW_EOVERFLOW:
		return "The time is beyond the last one, which is WW_TIME_MAX for a wheel, WW_CLOCK_MAX for a clock "
		       "and WW_DRIVER_TIME_MAX for a driver and what is made on it: pass a smaller delay or an "
		       "earlier deadline.";
	case WW_EBACKWARDS:
		return "The time is before the one already reached: pass a clock that never runs backwards, or a due time "
		       "that has not passed.";
	case WW_EBUSY:
		return "A callback that may not call this is running, or the object is still in use: call again after "
		       "the callback has returned, and destroy first what was made on it.";
	case WW_ECORRUPT:
		return "A structure or timer is broken: look for an object freed while its timer was pending, or a "
		       "timer used with another wheel; ww_wheel_check says more. Or saved sessions are damaged or cut "
		       "off, or are something else: the entries before the damage were loaded; keep the file before "
		       "you save over it.";
	case WW_ECLOSED:
		return "The object was stopped: make a new one; after a fork, make it in the child.";
	case WW_ESTALE:
		return "The timer has fired, was cancelled or replaced, or never existed, or the lease has ended: "
		       "forget its handle, version or token. Or another thread has changed a session's key: look it "
		       "up again and decide anew.";
	case WW_ESYSTEM:
		return "The system refused a thread, a file descriptor or random numbers: raise the limits (ulimit "
		       "-u, ulimit -n) or close some, check that getrandom is allowed, and call again.";
	case WW_ENOTFOUND:
		return "There is no such job, tube, limit, schedule or store: it has ended or was removed, or it has another "
		       "id, key or name.";
	case WW_EINUSE:
		return "It is already in use: a directory belongs to one process and a job to one lease; end that one "
		       "first. Or the new key of a rename has an entry: take another key, or pass WW_SESSION_REPLACE.";
	case WW_EDENIED:
		return "Access is denied: check that the directory exists, may be read and written and is not mounted read-only; for a server, "
		       "check the user, the password and their rights, and that it is not a replica.";
	case WW_EFULL:
		return "The disk, the quota or the server's memory is full: make room and call again; nothing has "
		       "changed.";
	case WW_EIO:
		return "A file could not be read or written, or a server could not be reached: check whether the disk "
		       "is full or broken, whether too many files are open (ulimit -n), or whether the server runs; the log says "
		       "more.";
	case WW_EVERSION:
		return "Another version wrote the file: open it with that version, or export it there and import it "
		       "here.";
	case WW_ETOOBIG:
		return "The body is longer than the configuration allows: raise body_max, or store the body "
		       "elsewhere. Or an entry weighs more than a shard of its session map may hold: raise "
		       "weight_limit, or take fewer shards.";
	case WW_EAGAIN:
		return "The server is not ready at the moment, because it is loading, electing or busy, or others changed too "
		       "much meanwhile: call again; nothing has changed.";
	case WW_ETIMEOUT:
		return "The time limit of the call has passed: wait longer, or go on without the result; what the "
		       "call waited for goes on.";
	default:
		return "This number is not an error of weekwheel: pass what a weekwheel function returned.";
	}
}
