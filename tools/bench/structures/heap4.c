/* A 4-ary heap with positions. */
#define HEAP_ARITY 4
#define HEAP_STRUCTURE structure_heap4
#define HEAP_NAME "heap4"
#define HEAP_SUMMARY "4-ary heap of 8-byte entries, with positions"
#include "tools/bench/structures/heap.h"
