/* A binary heap with positions. */
#define HEAP_ARITY 2
#define HEAP_STRUCTURE structure_heap2
#define HEAP_NAME "heap2"
#define HEAP_SUMMARY "binary heap of 8-byte entries, with positions"
#include "tools/bench/structures/heap.h"
