#include "model/decision.h"

static const struct str layers[N_LAYERS] = {
    [LAYER_EXPLICIT] = STR("explicit"), [LAYER_PREFIX] = STR("prefix"),
    [LAYER_STICKY] = STR("sticky"),     [LAYER_BINDING] = STR("binding"),
    [LAYER_INTENT] = STR("intent"),     [LAYER_SEMANTIC] = STR("semantic"),
    [LAYER_DEFAULT] = STR("default"),
};

static const struct str verdicts[] = {
    [VERDICT_OPEN] = STR("open"),
    [VERDICT_POSITIVE] = STR("positive"),
    [VERDICT_NEGATIVE] = STR("negative"),
    [VERDICT_NEUTRAL] = STR("neutral"),
};

struct str layer_name(enum layer l)
{
    return layers[l];
}

enum layer layer_of(struct str name)
{
    for (int i = 1; i < N_LAYERS; i++)
        if (str_eq(layers[i], name))
            return (enum layer)i;
    return (enum layer)0;
}

struct str verdict_name(enum verdict v)
{
    return verdicts[v];
}

const char *hindsight_word(enum hindsight h)
{
    static const char *const words[N_HINDSIGHTS] = {
        [HINDSIGHT_BETTER] = "better",   [HINDSIGHT_WORSE] = "worse",
        [HINDSIGHT_AS_BAD] = "as bad",   [HINDSIGHT_WAS_BAD] = "was bad",
        [HINDSIGHT_UNKNOWN] = "unknown",
    };

    return words[h];
}

enum hindsight hindsight_of(const struct decision *was, struct str to)
{
    if (was->overridden_to.n) {
        if (str_eq_nocase(was->overridden_to, to))
            return HINDSIGHT_BETTER;
        /* Somebody said that it was right after all. */
        return str_eq_nocase(was->overridden_to, was->agent) ? HINDSIGHT_WORSE
                                                             : HINDSIGHT_AS_BAD;
    }
    switch ((int)was->verdict) {
    case VERDICT_POSITIVE: return HINDSIGHT_WORSE;
    case VERDICT_NEGATIVE: return HINDSIGHT_WAS_BAD;
    default: return HINDSIGHT_UNKNOWN;
    }
}
