/* The decision in an answer: with the result of a message, or from its row in
 * the store. */
#include "api/share.h"
#include "learn/fold/learn.h"

enum { DECISION_BYTES_MAX = 16 * 1024 };

static struct str decision_write_brief(struct arena *a,
                                       const struct decision *d)
{
    struct str kept = {NULL, 0};
    struct buf text;
    struct json_out o;

    buf_init(&text, DECISION_BYTES_MAX);
    o = json_out(&text);
    json_open(&o, '{');
    speak_decision(&o, d, SPEAK_BRIEF);
    json_close(&o, '}');
    if (text.over || !arena_keep(a, buf_str(&text), &kept))
        kept.n = 0;
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

struct str share_decision_keep(struct arena *a, const struct router *r,
                               const struct msg *m)
{
    struct decision d;

    route_decision(r, m, &d);
    return decision_write_brief(a, &d);
}

void share_decision_ask(struct query *q, bool *is_used, const struct id *id)
{
    if (*is_used)
        query_fini(q);
    query_init(q, &decision_table, 1);
    *is_used = true;
    query_if(q, DECISION_ID, IS, value_text(str_of(id->text)));
}

struct str share_decision_of(struct arena *a, const struct row *row,
                             struct arena *scratch)
{
    struct decision d;

    arena_reset(scratch);
    return decision_from_row(scratch, row, &d) == OK
               ? decision_write_brief(a, &d)
               : (struct str){NULL, 0};
}
