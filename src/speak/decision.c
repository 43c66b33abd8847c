/* Decisions as JSON, in three lengths: with the answer to a message, in lists,
 * and whole. Whole is enough to decide again from it, with the same answer to
 * the last bit: numbers are written with the fewest digits that read back the
 * same. */
#include "speak/internal.h"

#include <stdio.h>
#include <stdlib.h>

static void put_int(struct json_out *o, struct str key, int64_t v)
{
    json_key(o, key);
    json_put_int(o, v);
}

static void put_int_or_null(struct json_out *o, struct str key, int64_t v,
                            bool is_known)
{
    json_key(o, key);
    if (is_known)
        json_put_int(o, v);
    else
        json_put_null(o);
}

static void put_bool(struct json_out *o, struct str key, bool v)
{
    json_key(o, key);
    json_put_bool(o, v);
}

static void put_real(struct json_out *o, struct str key, double v)
{
    json_key(o, key);
    json_put_real(o, v);
}

/* 0.362 and not 0.36199998855590820: whoever reads it back into a float has
 * the same one. */
static void put_float(struct json_out *o, struct str key, float v)
{
    char digits[32];
    double d = (double)v;

    for (int n = 3; n <= 9; n++) {
        snprintf(digits, sizeof(digits), "%.*g", n, (double)v);
        d = strtod(digits, NULL);
        if ((float)d == v)
            break;
    }
    put_real(o, key, d);
}

/* To be looked at, not to be computed with. */
static double rounded(double v)
{
    return (double)(int64_t)(v * 1e6 + (v < 0 ? -0.5 : 0.5)) / 1e6;
}

static void put_candidate(struct json_out *o, const struct candidate *c,
                          enum speak_length length)
{
    bool is_whole = length == SPEAK_WHOLE;

    json_open(o, '{');
    put_str(o, STR("agent"), c->agent);
    put_real(o, STR("score"), is_whole ? c->score : rounded(c->score));
    put_float(o, STR("semantic"), c->signals.semantic);
    put_float(o, STR("performance"), c->signals.performance);
    put_float(o, STR("keyword"), c->signals.keyword);
    put_float(o, STR("recency"), c->signals.recency);
    put_str_or_null(o, STR("best_skill_id"), c->skill);
    if (is_whole) {
        put_float(o, STR("cosine"), c->signals.cosine);
        put_float(o, STR("text"), c->signals.text);
        put_float(o, STR("learned"), c->signals.learned);
        put_float(o, STR("discount"), c->signals.discount);
        put_str_or_null(o, STR("matched_keyword"), c->keyword);
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
    put_str(o, STR("gate"), gate_answer_name((enum gate_answer)d->gate));
    if (length == SPEAK_BRIEF)
        return;
    put_str_or_null(o, STR("gate_rule"), d->gate_rule);
    put_str_or_null(o, STR("gate_reason"), d->gate_reason);
}

/* A score is that of the semantic layer, or the classifier's confidence; the
 * others have none. */
static void put_answer(struct json_out *o, const struct decision *d,
                       enum speak_length length)
{
    bool has_score = d->layer == LAYER_SEMANTIC || d->layer == LAYER_INTENT;
    bool is_whole = length == SPEAK_WHOLE;

    put_str_or_null(o, STR("id"), str_of(d->id.text));
    put_str(o, STR("layer"), layer_name(d->layer));
    put_str(o, STR("agent"), d->agent);
    put_str_or_null(o, STR("skill"), d->skill);
    json_key(o, STR("score"));
    if (has_score)
        json_put_real(o, is_whole ? d->score : rounded(d->score));
    else
        json_put_null(o);
    put_real(o, STR("threshold"), d->threshold);
    json_key(o, STR("margin"));
    if (d->layer == LAYER_SEMANTIC)
        json_put_real(o, is_whole ? d->margin : rounded(d->margin));
    else
        json_put_null(o);
    if (d->is_explored)
        put_bool(o, STR("explored"), true);
    put_str(o, STR("reason"), d->reason);
    put_gate(o, d, length);
}

static void put_asked(struct json_out *o, const struct decision *d)
{
    put_int(o, STR("at_ms"), d->at_ms);
    put_str_or_null(o, STR("task_id"), str_of(d->task_id.text));
    put_int_or_null(o, STR("turn"), d->turn, d->turn > 0);
    put_str_or_null(o, STR("conversation_id"), d->conversation_id);
    put_str(o, STR("requester"), d->requester);
    put_str_or_null(o, STR("org"), d->org);
    put_str(o, STR("text"), d->text);
}

static void put_outcome(struct json_out *o, const struct decision *d)
{
    bool is_judged = d->verdict != VERDICT_OPEN;

    put_str(o, STR("verdict"), verdict_name(d->verdict));
    put_int_or_null(o, STR("verdict_ms"), d->verdict_ms, is_judged);
    put_str_or_null(o, STR("overridden_to"), d->overridden_to);
    put_str_or_null(o, STR("overridden_by"), d->overridden_by);
    put_int_or_null(o, STR("overridden_ms"), d->overridden_ms,
                    d->overridden_to.n);
    put_int_or_null(o, STR("answer_chars"), d->answer_chars,
                    d->answer_chars >= 0);
    put_int_or_null(o, STR("latency_ms"), d->latency_ms, d->latency_ms >= 0);
    put_str_or_null(o, STR("error_code"), d->error_code);
    put_bool(o, STR("followed"), d->is_followed);
}

static void put_intent(struct json_out *o, const struct intent_answer *i)
{
    json_key(o, STR("intent"));
    if (!i->is_asked) {
        json_put_null(o);
        return;
    }
    json_open(o, '{');
    put_bool(o, STR("good"), i->is_good);
    put_str_or_null(o, STR("agent"), i->agent);
    put_real(o, STR("confidence"), i->confidence);
    put_str(o, STR("reasoning"), i->reasoning);
    put_str_or_null(o, STR("why"), i->why);
    put_int(o, STR("took_ms"), i->took_ms);
    json_close(o, '}');
}

static void put_rules(struct json_out *o, const struct decision *d)
{
    const struct decision_rules *r = &d->rules;

    json_key(o, STR("weights"));
    json_open(o, '{');
    put_real(o, STR("semantic"), d->weights.semantic);
    put_real(o, STR("performance"), d->weights.performance);
    put_real(o, STR("keyword"), d->weights.keyword);
    put_real(o, STR("recency"), d->weights.recency);
    json_close(o, '}');
    json_key(o, STR("rules"));
    json_open(o, '{');
    json_key(o, STR("layers_off"));
    json_open(o, '[');
    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++)
        if (r->layers_off >> i & 1)
            json_put_str(o, layer_name((enum layer)i));
    json_close(o, ']');
    put_str_or_null(o, STR("default_agent"), r->default_agent);
    put_real(o, STR("threshold"), r->threshold);
    put_real(o, STR("text_blend"), r->text_blend);
    put_real(o, STR("close_margin"), r->close_margin);
    put_real(o, STR("explore"), r->explore);
    put_real(o, STR("chance"), r->chance);
    put_bool(o, STR("intent"), r->has_intent);
    put_bool(o, STR("intent_if_ambiguous"), r->intent_is_ambiguous);
    put_bool(o, STR("intent_over_bindings"), r->intent_is_over_bindings);
    put_real(o, STR("intent_threshold"), r->intent_threshold);
    json_close(o, '}');
}

static void put_versions(struct json_out *o, const struct decision *d)
{
    json_key(o, STR("versions"));
    json_open(o, '{');
    put_str_or_null(o, STR("config"), d->config_version);
    put_int(o, STR("registry"), d->registry_version);
    put_int(o, STR("learning"), d->learn_version);
    put_str_or_null(o, STR("model"), d->model);
    put_str_or_null(o, STR("model_hash"), d->model_hash);
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
    put_bool(o, STR("by_agent"), d->is_by_agent);
    put_str_or_null(o, STR("executor"), d->executor);
    json_key(o, STR("source"));
    json_put_raw(o, d->source.n ? d->source : STR("{}"));
    put_str_or_null(o, STR("stuck_to"), d->stuck_to);
    put_intent(o, &d->intent);
    put_int(o, STR("type"), d->type);
    put_rules(o, d);
    put_versions(o, d);
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
    put_int(o, STR("considered"), d->n_considered);
    speak_candidates(o, d->candidates, d->n_candidates, length);
}
