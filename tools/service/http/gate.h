#ifndef TOOLS_SERVICE_HTTP_GATE_H
#define TOOLS_SERVICE_HTTP_GATE_H

/*
 * Whether an HTTP request may come in. A page of another site can make a browser send requests to any address. If the
 * site's own name then leads to this machine (DNS rebinding), the page may even read the answer. Such a request has the
 * site's name in its field Host.
 */

#include <stddef.h>

/*
 * Return 1 if the field Host names this server: no field at all, localhost, one of the names, or an address, which
 * is what the browser itself has connected to. A port is ignored.
 */
int gate_is_ours(const char *const *names, size_t count, const char *field);

#endif
