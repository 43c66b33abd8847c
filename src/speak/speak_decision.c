/* Decisions as JSON in three lengths: with the answer to a message, in lists,
 * and whole. A whole decision can be decided again with the same result to the
 * last bit: numbers have the fewest digits that read back the same. */
#include "speak/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* 0.362, not 0.36199998855590820: both read back to the same float. */
static void decision_put_float(struct json_out *o, const char *key, float v)
{
    char digits[32];
    double d = (double)v;

    for (int n = 3; n <= 9; n++) {
        snprintf(digits, sizeof(digits), "%.*g", n, (double)v);
        d = strtod(digits, NULL);
        if ((float)d == v)
            break;
    }
    json_member_real(o, key, d);
}

/* For display, not for computing. */
static double decision_rounded(double v)
{
    return (double)(int64_t)(v * 1e6 + (v < 0 ? -0.5 : 0.5)) / 1e6;
}

static void decision_put_candidate(struct json_out *o,
                                   const struct candidate *c,
                                   enum speak_length length)
{
    bool is_whole = length == SPEAK_WHOLE;

    json_open(o, '{');
    json_member_text(o, "agent", c->agent);
    json_member_real(o, "score",
                     is_whole ? c->score : decision_rounded(c->score));
    decision_put_float(o, "semantic", c->signals.semantic);
    decision_put_float(o, "performance", c->signals.performance);
    decision_put_float(o, "keyword", c->signals.keyword);
    decision_put_float(o, "recency", c->signals.recency);
    json_member_str(o, "best_skill_id", c->skill);
    /* Null while the level of the card is unknown, and where the threshold is a
     * number. */
    json_member_real(o, "floor",
                     isfinite(c->floor) ? decision_rounded((double)c->floor)
                                        : (double)NAN);
    json_member_known(o, "price_micros", c->price_micros >= 0, c->price_micros);
    if (c->is_unpaid)
        json_member_bool(o, "unpaid", true);
    if (is_whole) {
        decision_put_float(o, "cosine", c->signals.cosine);
        decision_put_float(o, "text", c->signals.text);
        decision_put_float(o, "learned", c->signals.learned);
        decision_put_float(o, "discount", c->signals.discount);
        json_member_str(o, "matched_keyword", c->keyword);
        decision_put_float(o, "level_mid", c->level.mid);
        decision_put_float(o, "level_high", c->level.high);
        json_member_bool(o, "trusted", c->is_trusted);
        json_member_bool(o, "taught", c->is_taught);
        json_member_bool(o, "half_keyword", c->is_half);
    }
    json_close(o, '}');
}

void speak_candidates(struct json_out *o, const struct candidate *list,
                      size_t n, enum speak_length length)
{
    if (length != SPEAK_WHOLE && n > SPEAK_CANDIDATES)
        n = SPEAK_CANDIDATES;
    json_key(o, STR("candidates"));
    json_open(o, '[');
    for (size_t i = 0; i < n; i++)
        decision_put_candidate(o, &list[i], length);
    json_close(o, ']');
}

/* The semantic layer and the classifier have a score; the other layers have
 * none. */
static void decision_put_answer(struct json_out *o, const struct decision *d,
                                enum speak_length length)
{
    bool has_score = d->layer == LAYER_SEMANTIC || d->layer == LAYER_INTENT;
    bool is_whole = length == SPEAK_WHOLE;

    json_member_str(o, "id", str_of(d->id.text));
    json_member_text(o, "layer", layer_name(d->layer));
    json_member_str(o, "agent", d->agent);
    json_member_str(o, "skill", d->skill);
    json_member_real(o, "score",
                     !has_score ? (double)NAN
                     : is_whole ? d->score
                                : decision_rounded(d->score));
    json_member_real(o, "threshold",
                     is_whole ? d->threshold : decision_rounded(d->threshold));
    json_member_real(o, "margin",
                     d->layer != LAYER_SEMANTIC ? (double)NAN
                     : is_whole                 ? d->margin
                                                : decision_rounded(d->margin));
    if (d->is_explored)
        json_member_bool(o, "explored", true);
    json_member_str(o, "band", band_name(d->band));
    json_member_str(o, "tier", tier_name(d->tier));
    json_member_bool(o, "unsure", d->is_unsure);
    json_member_bool(o, "example", d->is_by_example);
    json_member_text(o, "reason", d->reason);
    if (d->is_by_price)
        json_member_bool(o, "by_price", true);
    json_member_known(o, "price_micros", d->price_micros >= 0, d->price_micros);
    json_member_known(o, "ceiling_micros", d->ceiling_micros >= 0,
                      d->ceiling_micros);
    if (!d->gate) /* it was not asked */
        return;
    json_member_text(o, "gate", gate_answer_name((enum gate_answer)d->gate));
    if (length == SPEAK_BRIEF)
        return;
    json_member_str(o, "gate_rule", d->gate_rule);
    json_member_str(o, "gate_reason", d->gate_reason);
}

static void decision_put_outcome(struct json_out *o, const struct decision *d)
{
    json_member_int(o, "at_ms", d->at_ms);
    json_member_str(o, "task_id", str_of(d->task_id.text));
    json_member_known(o, "turn", d->turn > 0, d->turn);
    json_member_str(o, "conversation_id", d->conversation_id);
    json_member_text(o, "requester", d->requester);
    json_member_str(o, "org", d->org);
    json_member_text(o, "text", d->text);
    json_member_text(o, "verdict", verdict_name(d->verdict));
    json_member_known(o, "verdict_ms", d->verdict != VERDICT_OPEN,
                      d->verdict_ms);
    json_member_str(o, "overridden_to", d->overridden_to);
    json_member_str(o, "overridden_by", d->overridden_by);
    json_member_known(o, "overridden_ms", d->overridden_to.n, d->overridden_ms);
    json_member_known(o, "answer_chars", d->answer_chars >= 0, d->answer_chars);
    json_member_known(o, "latency_ms", d->latency_ms >= 0, d->latency_ms);
    json_member_str(o, "error_code", d->error_code);
    json_member_bool(o, "followed", d->is_followed);
}

static void decision_put_intent(struct json_out *o,
                                const struct intent_answer *i)
{
    json_key(o, STR("intent"));
    if (!i->is_asked) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    json_member_bool(o, "good", i->is_good);
    json_member_str(o, "agent", i->agent);
    json_member_real(o, "confidence", i->confidence);
    json_member_text(o, "reasoning", i->reasoning);
    json_member_str(o, "why", i->why);
    json_member_int(o, "took_ms", i->took_ms);
    json_close(o, '}');
}

static void decision_put_rules(struct json_out *o, const struct decision *d)
{
    const struct decision_rules *r = &d->rules;

    json_key(o, STR("weights"));
    json_open(o, '{');
    json_member_real(o, "semantic", d->weights.semantic);
    json_member_real(o, "performance", d->weights.performance);
    json_member_real(o, "keyword", d->weights.keyword);
    json_member_real(o, "recency", d->weights.recency);
    json_close(o, '}');
    json_key(o, STR("rules"));
    json_open(o, '{');
    json_key(o, STR("layers_off"));
    json_open(o, '[');
    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++)
        if (r->layers_off >> i & 1)
            json_put_str(o, layer_name((enum layer)i));
    json_close(o, ']');
    json_member_str(o, "default_agent", r->default_agent);
    json_member_bool(o, "auto", r->is_auto);
    json_member_real(o, "threshold", r->threshold);
    json_member_bool(o, "centred", r->is_centred);
    json_member_real(o, "alpha", r->alpha);
    json_member_int(o, "n", r->n);
    json_member_bool(o, "small_talk", r->is_small_talk);
    json_member_text(o, "unsure", unsure_policy_name(r->unsure));
    json_member_bool(o, "seed", r->is_seed);
    json_member_bool(o, "trust_all", r->trusts_all);
    json_member_real(o, "text_blend", r->text_blend);
    json_member_real(o, "close_margin", r->close_margin);
    json_member_real(o, "explore", r->explore);
    json_member_real(o, "second_margin", r->second_margin);
    json_member_real(o, "chance", r->chance);
    json_member_bool(o, "intent", r->has_intent);
    json_member_bool(o, "intent_if_ambiguous", r->intent_is_ambiguous);
    json_member_bool(o, "intent_over_bindings", r->intent_is_over_bindings);
    json_member_real(o, "intent_threshold", r->intent_threshold);
    json_close(o, '}');
}

static void decision_put_inputs(struct json_out *o, const struct decision *d)
{
    char *hex;

    json_member_bool(o, "by_agent", d->is_by_agent);
    json_member_known(o, "decide_us", d->decide_us >= 0, d->decide_us);
    json_member_str(o, "executor", d->executor);
    json_member_raw(o, "source", d->source.n ? d->source : STR("{}"));
    json_member_str(o, "stuck_to", d->stuck_to);
    decision_put_intent(o, &d->intent);
    json_member_int(o, "type", d->type);
    decision_put_rules(o, d);
    json_key(o, STR("versions"));
    json_open(o, '{');
    json_member_str(o, "config", d->config_version);
    json_member_known(o, "registry", d->registry_version >= 0,
                      d->registry_version);
    json_member_known(o, "learning", d->learn_version >= 0, d->learn_version);
    json_member_str(o, "model", d->model);
    json_member_str(o, "model_hash", d->model_hash);
    json_close(o, '}');
    json_member_str(o, "tier_note", d->tier_note);
    hex = mem_new(2 * d->vector.n + 1);
    str_hex(hex, d->vector.p, d->vector.n);
    json_member_str(o, "vector", (struct str){hex, 2 * d->vector.n});
    free(hex);
}

void speak_decision(struct json_out *o, const struct decision *d,
                    enum speak_length length)
{
    decision_put_answer(o, d, length);
    if (length != SPEAK_BRIEF)
        decision_put_outcome(o, d);
    if (length == SPEAK_WHOLE)
        decision_put_inputs(o, d);
    if (length == SPEAK_LISTED)
        return;
    json_member_int(o, "considered", d->n_considered);
    speak_candidates(o, d->candidates, d->n_candidates, length);
}
