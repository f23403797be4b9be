#ifndef WEEKWHEEL_EXPORT_H
#define WEEKWHEEL_EXPORT_H

/* The symbols that the shared library exports. Everything else is compiled with hidden visibility. */
#if defined(__GNUC__)
#define WW_API __attribute__((visibility("default")))
#else
#define WW_API
#endif

#endif
