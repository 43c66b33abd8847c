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
