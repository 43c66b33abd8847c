#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

static const struct err_row rows[N_ERR] = {
#define ERR_ROW(name, code, http, rpc, exit, wording) \
    [ERR_##name] = {code, http, rpc, exit, wording},
    ERR_TABLE(ERR_ROW)
#undef ERR_ROW
};

const struct err_row *err_row(enum err e)
{
    if (e <= OK || e >= N_ERR)
        e = ERR_INTERNAL;
    return &rows[e];
}

enum err why_err(struct why *w, enum err e, const char *fmt, ...)
{
    va_list ap;

    if (!w)
        return e;
    va_start(ap, fmt);
    vsnprintf(w->text, sizeof(w->text), fmt, ap);
    va_end(ap);
    return e;
}
