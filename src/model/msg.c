#include "model/msg.h"

#include <stdlib.h>

#include "base/fault.h"

/* The text may be there twice: parsed and unescaped. */
enum { MSG_BYTES_MAX = 4 * MSG_TEXT_MAX };

struct msg *msg_new(const struct caller *caller, int64_t at_ms)
{
    struct msg *m = FAULT("model.msg") ? NULL : calloc(1, sizeof(*m));

    if (!m)
        return NULL;
    m->in.caller = *caller;
    m->in.at_ms = at_ms;
    arena_init(&m->arena, MSG_BYTES_MAX);
    tx_init(&m->tx);
    return m;
}

void msg_free(struct msg *m)
{
    if (!m)
        return;
    tx_fini(&m->tx);
    arena_fini(&m->arena);
    free(m);
}
