#ifndef API_WEB_INTERNAL_H
#define API_WEB_INTERNAL_H

#include "api/web/web.h"

/* Written by tools/web_pack.py, sorted by path in byte order. */
extern const char web_packed_folder[];
extern const struct web_file web_packed[];
extern const size_t n_web_packed;

#endif
