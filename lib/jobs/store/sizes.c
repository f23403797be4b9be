/* The sizes of the store on disk, below all that keeps to them. */
#include "lib/jobs/store/store.h"

struct store_sizes ww_store_sizes = {
    .active = (size_t)1024 << 10, .journal = (uint64_t)8 << 20, .view = 8192, .few = 5000};
