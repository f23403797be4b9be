#ifndef LIB_POSTGRES_INTAKE_H
#define LIB_POSTGRES_INTAKE_H

/*
 * The thread that reads the inbox, by snapshots, and passes what it finds to the engine.
 *
 * A row counts from the commit of its transaction, and these come in no order of ids. Each reading has a snapshot: a
 * list of the transactions that it does not see. The next reading looks for rows of these alone.
 *
 * While there is nothing to read the thread sleeps, and holds a lock for as long. A put takes that lock shared until
 * its transaction ends; if it cannot, it notifies. A thread that is awake finds the lock taken by a put that has not
 * committed yet, and stays awake. So no put is missed, and none notifies while others come.
 */

struct postgres;

/* Connect, and start the thread. WW_ESYSTEM, and errors of link.h. */
int ww_postgres_intake_start(struct postgres *postgres);
/* End the thread, and wait until it has ended. */
void ww_postgres_intake_stop(struct postgres *postgres);

#endif
