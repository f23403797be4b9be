/* A hashed wheel with rounds, of 3600 slots. */
#define ROUNDS_SLOTS 3600
#define ROUNDS_STRUCTURE structure_rounds3600
#define ROUNDS_NAME "rounds3600"
#define ROUNDS_SUMMARY "a hashed wheel of 3600 slots with a counter of rounds a timer"
#include "tools/bench/structures/rounds.h"
