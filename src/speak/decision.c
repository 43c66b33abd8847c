/* Decisions as JSON, in three lengths: with the answer to a message, in lists,
 * and whole. Whole is enough to decide again from it, with the same answer to
 * the last bit: numbers are written with the fewest digits that read back the
 * same. */
#include "speak/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* 0.362 and not 0.36199998855590820: whoever reads it back into a float has
 * the same one. */
static void put_float(struct json_out *o, const char *key, float v)
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

/* To be looked at, not to be computed with. */
static double rounded(double v)
{
    return (double)(int64_t)(v * 1e6 + (v < 0 ? -0.5 : 0.5)) / 1e6;
}

/* Null while the card's level is not known, and where a number counts. */
static void put_cutoffs(struct json_out *o, const struct candidate *c)
{
    bool is_known = isfinite(c->floor);

    json_key(o, STR("floor"));
    if (is_known)
        json_put_real(o, rounded((double)c->floor));
    else
        json_put_null(o);
}

static void put_candidate(struct json_out *o, const struct candidate *c,
                          enum speak_length length)
{
    bool is_whole = length == SPEAK_WHOLE;

    json_open(o, '{');
    json_member_text(o, "agent", c->agent);
    json_member_real(o, "score", is_whole ? c->score : rounded(c->score));
    put_float(o, "semantic", c->signals.semantic);
    put_float(o, "performance", c->signals.performance);
    put_float(o, "keyword", c->signals.keyword);
    put_float(o, "recency", c->signals.recency);
    json_member_str(o, "best_skill_id", c->skill);
    put_cutoffs(o, c);
    json_member_known(o, "price_micros", c->price_micros >= 0, c->price_micros);
    if (c->is_unpaid)
        json_member_bool(o, "unpaid", true);
    if (is_whole) {
        put_float(o, "cosine", c->signals.cosine);
        put_float(o, "text", c->signals.text);
        put_float(o, "learned", c->signals.learned);
        put_float(o, "discount", c->signals.discount);
        json_member_str(o, "matched_keyword", c->keyword);
        put_float(o, "level_mid", c->level.mid);
        put_float(o, "level_high", c->level.high);
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
        put_candidate(o, &list[i], length);
    json_close(o, ']');
}

/* The answer to the second question, where it was asked. */
static void put_gate(struct json_out *o, const struct decision *d,
                     enum speak_length length)
{
    if (!d->gate)
        return;
    json_member_text(o, "gate", gate_answer_name((enum gate_answer)d->gate));
    if (length == SPEAK_BRIEF)
        return;
    json_member_str(o, "gate_rule", d->gate_rule);
    json_member_str(o, "gate_reason", d->gate_reason);
}

/* A score is that of the semantic layer, or the classifier's confidence; the
 * others have none. */
static void put_answer(struct json_out *o, const struct decision *d,
                       enum speak_length length)
{
    bool has_score = d->layer == LAYER_SEMANTIC || d->layer == LAYER_INTENT;
    bool is_whole = length == SPEAK_WHOLE;

    json_member_str(o, "id", str_of(d->id.text));
    json_member_text(o, "layer", layer_name(d->layer));
    json_member_str(o, "agent", d->agent);
    json_member_str(o, "skill", d->skill);
    json_key(o, STR("score"));
    if (has_score)
        json_put_real(o, is_whole ? d->score : rounded(d->score));
    else
        json_put_null(o);
    json_member_real(o, "threshold",
                     is_whole ? d->threshold : rounded(d->threshold));
    json_key(o, STR("margin"));
    if (d->layer == LAYER_SEMANTIC)
        json_put_real(o, is_whole ? d->margin : rounded(d->margin));
    else
        json_put_null(o);
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
    put_gate(o, d, length);
}

static void put_asked(struct json_out *o, const struct decision *d)
{
    json_member_int(o, "at_ms", d->at_ms);
    json_member_str(o, "task_id", str_of(d->task_id.text));
    json_member_known(o, "turn", d->turn > 0, d->turn);
    json_member_str(o, "conversation_id", d->conversation_id);
    json_member_text(o, "requester", d->requester);
    json_member_str(o, "org", d->org);
    json_member_text(o, "text", d->text);
}

static void put_outcome(struct json_out *o, const struct decision *d)
{
    bool is_judged = d->verdict != VERDICT_OPEN;

    json_member_text(o, "verdict", verdict_name(d->verdict));
    json_member_known(o, "verdict_ms", is_judged, d->verdict_ms);
    json_member_str(o, "overridden_to", d->overridden_to);
    json_member_str(o, "overridden_by", d->overridden_by);
    json_member_known(o, "overridden_ms", d->overridden_to.n, d->overridden_ms);
    json_member_known(o, "answer_chars", d->answer_chars >= 0, d->answer_chars);
    json_member_known(o, "latency_ms", d->latency_ms >= 0, d->latency_ms);
    json_member_str(o, "error_code", d->error_code);
    json_member_bool(o, "followed", d->is_followed);
}

static void put_intent(struct json_out *o, const struct intent_answer *i)
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

static void put_rules(struct json_out *o, const struct decision *d)
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

static void put_versions(struct json_out *o, const struct decision *d)
{
    json_key(o, STR("versions"));
    json_open(o, '{');
    json_member_str(o, "config", d->config_version);
    json_member_known(o, "registry", d->registry_version >= 0,
                      d->registry_version);
    json_member_known(o, "learning", d->learn_version >= 0, d->learn_version);
    json_member_str(o, "model", d->model);
    json_member_str(o, "model_hash", d->model_hash);
    json_close(o, '}');
}

static void put_vector(struct json_out *o, struct str packed)
{
    char *hex = packed.n ? malloc(2 * packed.n + 1) : NULL;

    json_key(o, STR("vector"));
    if (packed.n && !hex)
        o->out->over = true;
    if (!hex) {
        json_put_null(o);
        return;
    }
    str_hex(hex, packed.p, packed.n);
    json_put_str(o, (struct str){hex, 2 * packed.n});
    free(hex);
}

static void put_inputs(struct json_out *o, const struct decision *d)
{
    json_member_bool(o, "by_agent", d->is_by_agent);
    json_member_known(o, "decide_us", d->decide_us >= 0, d->decide_us);
    json_member_str(o, "executor", d->executor);
    json_member_raw(o, "source", d->source.n ? d->source : STR("{}"));
    json_member_str(o, "stuck_to", d->stuck_to);
    put_intent(o, &d->intent);
    json_member_int(o, "type", d->type);
    put_rules(o, d);
    put_versions(o, d);
    json_member_str(o, "tier_note", d->tier_note);
    put_vector(o, d->vector);
}

void speak_decision(struct json_out *o, const struct decision *d,
                    enum speak_length length)
{
    put_answer(o, d, length);
    if (length != SPEAK_BRIEF) {
        put_asked(o, d);
        put_outcome(o, d);
    }
    if (length == SPEAK_WHOLE)
        put_inputs(o, d);
    if (length == SPEAK_LISTED)
        return;
    json_member_int(o, "considered", d->n_considered);
    speak_candidates(o, d->candidates, d->n_candidates, length);
}
