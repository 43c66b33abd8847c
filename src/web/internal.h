#ifndef WEB_INTERNAL_H
#define WEB_INTERNAL_H

#include "web/web.h"

/* What tools/web_pack.py writes, by path in the order of bytes. */
extern const char web_packed_folder[];
extern const struct web_file web_packed[];
extern const size_t n_web_packed;

#endif
