/* The decision in an answer: with the result of a message, or from its row in
 * the store. */
#include <stdlib.h>

#include "api/share.h"
#include "base/mem.h"
#include "learn/fold/learn.h"

enum { DECISION_BYTES_MAX = 16 * 1024 };

static char *decision_write_brief(const struct decision *d)
{
    struct buf text;
    struct json_out o;
    char *kept;

    buf_init(&text, DECISION_BYTES_MAX);
    o = json_out(&text);
    json_open(&o, '{');
    speak_decision(&o, d, SPEAK_BRIEF);
    json_close(&o, '}');
    kept = text.over ? NULL : mem_copy(text.p, text.n);
    buf_fini(&text);
    return kept;
}

void share_decision_for(struct decision *d, const struct caller *c)
{
    if (caller_is_admin(c))
        return;
    d->registry_version = d->learn_version = -1;
    if (d->type < LEARN_TYPE_FIRST)
        d->type = 0;
}

char *share_decision_keep(const struct router *r, const struct msg *m)
{
    struct decision d;

    route_decision(r, m, &d);
    return decision_write_brief(&d);
}

void share_decision_ask(struct query *q, bool *is_used, const struct id *id)
{
    if (*is_used)
        query_fini(q);
    query_init(q, &decision_table, 1);
    *is_used = true;
    query_if(q, DECISION_ID, IS, value_text(str_of(id->text)));
}

char *share_decision_of(const struct row *row, struct arena *scratch)
{
    struct decision d;

    arena_reset(scratch);
    return decision_from_row(scratch, row, &d) == OK ? decision_write_brief(&d)
                                                     : NULL;
}
