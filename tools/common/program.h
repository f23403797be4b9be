#ifndef TOOLS_COMMON_PROGRAM_H
#define TOOLS_COMMON_PROGRAM_H

/* How a program begins: what it inherits or lacks from its parent does not change what it does. */

enum program_children {
	PROGRAM_CHILDLESS, /* it starts none */
	PROGRAM_PARENT     /* it starts some, and waits for them */
};

/*
 * To be called first in main, with the program's name (message_program).
 *
 * - Descriptors 0, 1 and 2 are open afterwards. Otherwise a file or a socket would get one of these numbers, and
 *   messages would go into it. One that was closed cannot be read or written, so that a program whose output is lost
 *   says so.
 * - A write to a reader that has left, or beyond the limit of a file's size (ulimit -f), fails with an error and does
 *   not end the program.
 * - No signal is blocked, as all are in a program that a thread of a server has started.
 * - The first process of a container ends on SIGINT and SIGTERM, which it would not do otherwise. What its children
 *   leave behind becomes its child, too: a childless program does not keep these as zombies, and a parent waits for
 *   any.
 *
 * A program that starts others gives them what they expect by program_give_back, between fork and exec.
 */
void program_begin(const char *name, enum program_children children);
void program_give_back(void);

#endif
