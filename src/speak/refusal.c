/* Details of the error that rejects a message. */
#include <math.h>

#include "speak/speak.h"

enum { SUGGESTIONS = 3 }; /* candidates for the sender to choose from */

/* The price that would have been enough. If no agent was chosen for lack of
 * consent, the sender agreed to max_cost_micros, or to nothing. */
static void refusal_put_cost(struct json_out *o, const struct msg *m)
{
    const struct candidate *c =
        m->choice.layer == LAYER_NONE ? m->choice.unpaid : NULL;
    int64_t price = c ? c->price_micros : m->ledger.price_micros;
    int64_t needed = c ? price : m->ledger.needed_micros;
    int64_t ceiling = c ? m->call.max_cost_micros : m->ledger.ceiling_micros;

    json_open(o, '{');
    if (c)
        json_member_str(o, "decision_id", str_of(m->choice.id.text));
    json_member_text(o, "agent", c ? c->agent : m->choice.agent);
    json_member_int(o, "price_micros", price);
    json_member_int(o, "ceiling_micros", ceiling);
    json_member_known(o, "needed_micros", needed > 0, needed);
    json_close(o, '}');
}

void speak_refusal_details(struct buf *out, const struct msg *m)
{
    struct json_out o = json_out(out);
    size_t n = m->choice.n_candidates;

    if (m->err == ERR_CEILING)
        refusal_put_cost(&o, m);
    if (m->err != ERR_AGENT_NOT_FOUND && m->err != ERR_NO_ROUTE)
        return;
    if (m->choice.band == BAND_UNSURE && m->choice.unsure == UNSURE_ASK &&
        n > SUGGESTIONS)
        n = SUGGESTIONS;
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
        /* Null if each candidate has a floor of its own, or will have one. */
        bool is_number = isfinite(m->choice.threshold);

        json_member_str(&o, "band", band_name(m->choice.band));
        json_member_str(&o, "unsure",
                        m->choice.band == BAND_UNSURE
                            ? unsure_policy_name(m->choice.unsure)
                            : STR(""));
        for (size_t i = 0; i < m->choice.n_candidates; i++)
            is_number = is_number && !isfinite(m->choice.candidates[i].floor);
        json_member_real(&o, "threshold",
                         is_number ? m->choice.threshold : (double)NAN);
        json_member_int(&o, "considered", m->choice.n_considered);
        speak_candidates(&o, m->choice.candidates, n, SPEAK_BRIEF);
        json_member_str(&o, "note",
                        str_of(m->known.no_vector.text[0]
                                   ? m->known.no_vector.text
                                   : m->known.no_full.text));
    }
    json_close(&o, '}');
}
