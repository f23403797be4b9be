/* A hashed wheel with rounds, of 300 slots. */
#define ROUNDS_SLOTS 300
#define ROUNDS_STRUCTURE structure_rounds300
#define ROUNDS_NAME "rounds300"
#define ROUNDS_SUMMARY "a hashed wheel of 300 slots with a counter of rounds a timer"
#include "tools/bench/structures/rounds.h"
