#ifndef TOOLS_WEEKWHEEL_MOVING_LIBRARY_H
#define TOOLS_WEEKWHEEL_MOVING_LIBRARY_H

/*
 * Libraries that keep their delayed jobs in Redis in a way of their own. What has to be known of each is here, as
 * scripts in Lua that its Redis carries out. A set is the key of a sorted set or of a list with jobs.
 */
struct library {
	const char *scheme;
	const char *prefix;         /* of its keys, unless the URL has one */
	const char *pattern, *type; /* of the names of its sets, behind the prefix */
	const char *held;           /* the set of what its workers have, which moves once they are stopped; or NULL */
	const char *count;          /* the command that counts a set whose members are all jobs; or NULL: not all are */
	int ends_in_digits;         /* the names of its sets: others that the pattern fits are not its own */
	int id_is_all;              /* id and mark together are of one job, whatever set it is in */
	/*
	 * Answers how many members of KEYS[1] there are from ARGV[1] on, at most ARGV[2]; and then of each that is a job the
	 * id, mark, body, tube, due time, priority, why it must stay, or "", the words of its schedule, or "", and those of its
	 * put, each behind a space, or "". ARGV[3] is the zone of a schedule that has none, if there is one.
	 */
	const char *take;
	/* Removes the job of the set KEYS[1] with the id, mark and body ARGV, and answers 1, or 0 if it is not there as it was. */
	const char *drop;
};

enum {
	LIBRARY_ID,
	LIBRARY_MARK,
	LIBRARY_BODY,
	LIBRARY_TUBE,
	LIBRARY_DUE,
	LIBRARY_PRIORITY,
	LIBRARY_REASON,
	LIBRARY_SCHEDULE,
	LIBRARY_WORDS,
	LIBRARY_ROW
};

/* Return the library of this scheme, or NULL. */
const struct library *library_find(const char *scheme);

#endif
