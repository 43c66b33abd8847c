/* A whole decision from its JSON (speak_decision.c), for programs that decide
 * again elsewhere. A missing member is zero or empty. Only a member that every
 * decision needs is an error, so that an earlier program can read the decisions
 * of a later server. The vector is left out: the signals hold everything that
 * it decides. */
#include "speak/internal.h"

enum { SOURCE_BYTES = 64 * 1024 };

static struct str text_in(const struct json *v, struct str key)
{
    return json_str_or(json_get(v, key), STR(""));
}

static double real_in(const struct json *v, struct str key)
{
    return json_real_or(json_get(v, key), 0);
}

static float float_in(const struct json *v, struct str key)
{
    return (float)real_in(v, key);
}

static int64_t int_in(const struct json *v, struct str key, int64_t fallback)
{
    return json_int_or(json_get(v, key), fallback);
}

static bool bool_in(const struct json *v, struct str key)
{
    return json_bool_or(json_get(v, key), false);
}

static struct candidate candidate_in(const struct json *v)
{
    return (struct candidate){
        .agent = text_in(v, STR("agent")),
        .skill = text_in(v, STR("best_skill_id")),
        .keyword = text_in(v, STR("matched_keyword")),
        .signals = {.semantic = float_in(v, STR("semantic")),
                    .cosine = float_in(v, STR("cosine")),
                    .text = float_in(v, STR("text")),
                    .learned = float_in(v, STR("learned")),
                    .discount = float_in(v, STR("discount")),
                    .performance = float_in(v, STR("performance")),
                    .keyword = float_in(v, STR("keyword")),
                    .recency = float_in(v, STR("recency"))},
        .level = {(float)json_real_or(json_get(v, STR("level_mid")), -1),
                  (float)json_real_or(json_get(v, STR("level_high")), -1)},
        .is_trusted = bool_in(v, STR("trusted")),
        .is_taught = bool_in(v, STR("taught")),
        .is_half = bool_in(v, STR("half_keyword")),
        .is_unpaid = bool_in(v, STR("unpaid")),
        .price_micros = int_in(v, STR("price_micros"), -1),
        .score = real_in(v, STR("score")),
    };
}

static enum err decision_read_candidates(struct arena *a, const struct json *v,
                                         struct decision *out)
{
    const struct json *list = json_get(v, STR("candidates"));
    struct candidate *to;

    out->n_considered = int_in(v, STR("considered"), 0);
    if (!list || list->type != JSON_ARR)
        return OK;
    to = arena_array(a, DECISION_CANDIDATES_MAX, sizeof(*to));
    if (!to)
        return ERR_NOMEM;
    JSON_EACH(c, list)
    {
        if (out->n_candidates == DECISION_CANDIDATES_MAX)
            return ERR_BAD_REQUEST;
        to[out->n_candidates++] = candidate_in(c);
    }
    out->candidates = to;
    return OK;
}

static void decision_read_intent(const struct json *v,
                                 struct intent_answer *out)
{
    if (!v || v->type != JSON_OBJ)
        return;
    *out = (struct intent_answer){
        .is_asked = true,
        .is_good = bool_in(v, STR("good")),
        .agent = text_in(v, STR("agent")),
        .confidence = real_in(v, STR("confidence")),
        .reasoning = text_in(v, STR("reasoning")),
        .why = text_in(v, STR("why")),
        .took_ms = int_in(v, STR("took_ms"), 0),
    };
}

static enum unsure_policy policy_in(const struct json *r)
{
    struct str name = text_in(r, STR("unsure"));

    for (int i = UNSURE_AUTO; i <= UNSURE_REFUSE; i++)
        if (str_eq(unsure_policy_name((enum unsure_policy)i), name))
            return (enum unsure_policy)i;
    return UNSURE_AUTO;
}

static enum band band_in(const struct json *v)
{
    struct str name = text_in(v, STR("band"));

    for (int i = BAND_NOT_ASKED; i <= BAND_OUT_OF_SCOPE; i++)
        if (str_eq(band_name((enum band)i), name))
            return (enum band)i;
    return BAND_NOT_ASKED;
}

static void decision_read_rules(const struct json *v, struct decision *out)
{
    const struct json *w = json_get(v, STR("weights"));
    const struct json *r = json_get(v, STR("rules"));
    const struct json *off = json_get(r, STR("layers_off"));

    out->weights = (struct signal_weights){
        real_in(w, STR("semantic")), real_in(w, STR("performance")),
        real_in(w, STR("keyword")), real_in(w, STR("recency"))};
    out->rules = (struct decision_rules){
        .default_agent = text_in(r, STR("default_agent")),
        .is_auto = bool_in(r, STR("auto")),
        .threshold = real_in(r, STR("threshold")),
        .is_centred = bool_in(r, STR("centred")),
        .alpha = real_in(r, STR("alpha")),
        .n = int_in(r, STR("n"), 0),
        .is_small_talk = bool_in(r, STR("small_talk")),
        .unsure = policy_in(r),
        .is_seed = bool_in(r, STR("seed")),
        .trusts_all = bool_in(r, STR("trust_all")),
        .text_blend = real_in(r, STR("text_blend")),
        .close_margin = real_in(r, STR("close_margin")),
        .explore = real_in(r, STR("explore")),
        .second_margin = real_in(r, STR("second_margin")),
        .chance = real_in(r, STR("chance")),
        .has_intent = bool_in(r, STR("intent")),
        .intent_is_ambiguous = bool_in(r, STR("intent_if_ambiguous")),
        .intent_is_over_bindings = bool_in(r, STR("intent_over_bindings")),
        .intent_threshold = real_in(r, STR("intent_threshold")),
    };
    if (off && off->type == JSON_ARR)
        JSON_EACH(l, off)
    out->rules.layers_off |= 1U << layer_of(json_str_or(l, STR("")));
    out->rules.layers_off &= ~1U; /* names that are not a layer */
}

/* As in the document, but for the whitespace. */
static enum err decision_read_source(struct arena *a, const struct json *v,
                                     struct decision *out)
{
    const struct json *source = json_get(v, STR("source"));
    struct json_out o;
    struct buf text;
    enum err e = ERR_NOMEM;

    if (!source || source->type != JSON_OBJ || !source->kids.n)
        return OK;
    buf_init(&text, SOURCE_BYTES);
    o = json_out(&text);
    json_put(&o, source);
    if (!text.over && arena_keep(a, buf_str(&text), &out->source))
        e = OK;
    buf_fini(&text);
    return e;
}

static enum verdict verdict_in(const struct json *v)
{
    struct str name = text_in(v, STR("verdict"));

    for (int i = VERDICT_OPEN; i <= VERDICT_NEUTRAL; i++)
        if (str_eq(verdict_name((enum verdict)i), name))
            return (enum verdict)i;
    return VERDICT_OPEN;
}

static void decision_read_versions(const struct json *v, struct decision *out)
{
    out->config_version = text_in(v, STR("config"));
    out->registry_version = int_in(v, STR("registry"), 0);
    out->learn_version = int_in(v, STR("learning"), 0);
    out->model = text_in(v, STR("model"));
    out->model_hash = text_in(v, STR("model_hash"));
}

enum err speak_decision_read(struct arena *a, const struct json *v,
                             struct decision *out)
{
    enum err e;

    *out = (struct decision){
        .id = id_from(text_in(v, STR("id"))),
        .at_ms = int_in(v, STR("at_ms"), 0),
        .task_id = id_from(text_in(v, STR("task_id"))),
        .turn = int_in(v, STR("turn"), 0),
        .conversation_id = text_in(v, STR("conversation_id")),
        .requester = text_in(v, STR("requester")),
        .org = text_in(v, STR("org")),
        .text = text_in(v, STR("text")),
        .is_by_agent = bool_in(v, STR("by_agent")),
        .executor = text_in(v, STR("executor")),
        .stuck_to = text_in(v, STR("stuck_to")),
        .layer = layer_of(text_in(v, STR("layer"))),
        .agent = text_in(v, STR("agent")),
        .skill = text_in(v, STR("skill")),
        .reason = text_in(v, STR("reason")),
        .score = real_in(v, STR("score")),
        .margin = real_in(v, STR("margin")),
        .threshold = real_in(v, STR("threshold")),
        .is_explored = bool_in(v, STR("explored")),
        .band = band_in(v),
        .tier = tier_of(text_in(v, STR("tier"))),
        .tier_note = text_in(v, STR("tier_note")),
        .is_unsure = bool_in(v, STR("unsure")),
        .is_by_example = bool_in(v, STR("example")),
        .is_by_price = bool_in(v, STR("by_price")),
        .decide_us = int_in(v, STR("decide_us"), -1),
        .type = int_in(v, STR("type"), 0),
        .price_micros = int_in(v, STR("price_micros"), -1),
        .ceiling_micros = int_in(v, STR("ceiling_micros"), -1),
    };
    if (!out->layer || (!out->agent.n && out->layer != LAYER_NONE) ||
        !json_get(v, STR("rules")))
        return ERR_BAD_REQUEST;
    decision_read_intent(json_get(v, STR("intent")), &out->intent);
    decision_read_rules(v, out);
    decision_read_versions(json_get(v, STR("versions")), out);
    out->verdict = verdict_in(v);
    out->verdict_ms = int_in(v, STR("verdict_ms"), 0);
    out->overridden_to = text_in(v, STR("overridden_to"));
    out->overridden_by = text_in(v, STR("overridden_by"));
    out->overridden_ms = int_in(v, STR("overridden_ms"), 0);
    out->answer_chars = int_in(v, STR("answer_chars"), -1);
    out->latency_ms = int_in(v, STR("latency_ms"), -1);
    out->error_code = text_in(v, STR("error_code"));
    out->is_followed = bool_in(v, STR("followed"));
    e = decision_read_source(a, v, out);
    return e ? e : decision_read_candidates(a, v, out);
}
