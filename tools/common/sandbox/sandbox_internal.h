#ifndef TOOLS_COMMON_SANDBOX_SANDBOX_INTERNAL_H
#define TOOLS_COMMON_SANDBOX_SANDBOX_INTERNAL_H

/* Shared by the files of sandbox.h. */

#include "tools/common/sandbox/sandbox.h"

/* Whether the table at this index is one of sandbox_protect's. */
int sandbox_is_protected(lua_State *lua, int index);
/* The state of math.random, of the script that runs. */
unsigned short *sandbox_random(lua_State *lua);

/* Put the libraries into the table on top of the stack. */
void library_open(lua_State *lua);

/* string.find, match, gmatch and gsub: call those of Lua, which are in the table on top of the stack, within bounds. */
void pattern_open(lua_State *lua);

#endif
