#ifndef LIB_BASE_XXH3_H
#define LIB_BASE_XXH3_H

/*
 * xxHash, all of it inline. Its functions have to be inlined, which gcc cannot do with all of them at -Og: they are
 * compiled as at -O2 whatever the level is. At -O2 nothing changes.
 */

#if defined __GNUC__ && !defined __clang__ && defined __OPTIMIZE__
#pragma GCC push_options
#pragma GCC optimize("O2")
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

#if defined __GNUC__ && !defined __clang__ && defined __OPTIMIZE__
#pragma GCC pop_options
#endif

#endif
