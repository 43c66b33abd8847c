/* What is said of a decision beside something else: with the answer to a
 * message, and in the details of a refusal. */
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "calls/share.h"
#include "learn/learn.h"

enum { DECISION_BYTES_MAX = 16 * 1024 };

enum { ASKED_ABOUT = 3 }; /* candidates for the sender to choose from */

/* The number that every score was held against. Null where each candidate has a
 * floor of its own, or will have one once its level is known. */
static void put_threshold(struct json_out *o, const struct msg *m)
{
    bool is_number = isfinite(m->choice.threshold);

    for (size_t i = 0; i < m->choice.n_candidates; i++)
        is_number = is_number && !isfinite(m->choice.candidates[i].floor);
    json_key(o, STR("threshold"));
    if (is_number)
        json_put_real(o, m->choice.threshold);
    else
        json_put_null(o);
}

/* What would have been enough. */
static void put_cost(struct json_out *o, const struct msg *m)
{
    const struct candidate *c =
        m->choice.layer == LAYER_NONE ? m->choice.unpaid : NULL;
    int64_t price = c ? c->price_micros : m->ledger.price_micros;
    int64_t needed = c ? price : m->ledger.needed_micros;

    json_open(o, '{');
    if (c)
        json_member_str(o, "decision_id", str_of(m->choice.id.text));
    json_member_text(o, "agent", c ? c->agent : m->choice.agent);
    json_member_int(o, "price_micros", price);
    json_member_known(o, "ceiling_micros", !c, m->ledger.ceiling_micros);
    json_member_known(o, "needed_micros", needed > 0, needed);
    json_close(o, '}');
}

void share_message_details(struct buf *out, const struct msg *m)
{
    struct json_out o = json_out(out);
    size_t n = m->choice.n_candidates;

    if (m->err == ERR_CEILING)
        put_cost(&o, m);
    if (m->err != ERR_AGENT_NOT_FOUND && m->err != ERR_NO_ROUTE)
        return;
    if (m->choice.band == BAND_UNSURE && m->choice.unsure == UNSURE_ASK &&
        n > ASKED_ABOUT)
        n = ASKED_ABOUT;
    json_open(&o, '{');
    if (m->choice.layer == LAYER_NONE)
        json_member_str(&o, "decision_id", str_of(m->choice.id.text));
    if (m->err == ERR_AGENT_NOT_FOUND) {
        json_key(&o, STR("nearest"));
        json_open(&o, '[');
        for (size_t i = 0; i < m->choice.n_nearest; i++)
            json_put_str(&o, m->choice.nearest[i]);
        json_close(&o, ']');
    } else {
        json_member_str(&o, "band", band_name(m->choice.band));
        json_member_str(&o, "unsure",
                        m->choice.band == BAND_UNSURE
                            ? unsure_policy_name(m->choice.unsure)
                            : STR(""));
        put_threshold(&o, m);
        json_member_int(&o, "considered", m->choice.n_considered);
        speak_candidates(&o, m->choice.candidates, n, SPEAK_BRIEF);
        json_key(&o, STR("note"));
        if (m->known.no_vector.text[0])
            json_put_str(&o, str_of(m->known.no_vector.text));
        else if (m->known.no_full.text[0])
            json_put_str(&o, str_of(m->known.no_full.text));
        else
            json_put_null(&o);
    }
    json_close(&o, '}');
}

static char *write_brief(const struct decision *d)
{
    struct buf text;
    struct json_out o;
    char *kept = NULL;

    buf_init(&text, DECISION_BYTES_MAX);
    o = json_out(&text);
    json_open(&o, '{');
    speak_decision(&o, d, SPEAK_BRIEF);
    json_close(&o, '}');
    buf_add_char(&text, '\0');
    if (!text.over && !FAULT("share.decision"))
        kept = strdup(text.p);
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
    return write_brief(&d);
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
    return decision_from_row(scratch, row, &d) == OK ? write_brief(&d) : NULL;
}
