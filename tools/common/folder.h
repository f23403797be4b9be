#ifndef TOOLS_COMMON_FOLDER_H
#define TOOLS_COMMON_FOLDER_H

/*
 * Open the folder of --data, which is made if it is new, and lock it: no other program has it until the descriptor is
 * closed. Return the descriptor, or -1 after a message.
 */
int folder_take(const char *path);

#endif
