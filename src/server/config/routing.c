/* The type of routing.layers, and checks of `routing` and `learning` across
 * rows.
 */
#include <stdio.h>

#include "server/config/internal.h"

/* The setting lists the layers that are on. The field has those that are off,
 * so that all zeroes mean all layers. */

static bool layer_can_be_set(size_t layer)
{
    return layer > 0 && layer != LAYER_NONE;
}

static enum err layers_read(const struct setting *s, struct arena *a,
                            const struct json *v, void *field)
{
    bool is_off[N_LAYERS];

    (void)s, (void)a;
    if (v->type != JSON_ARR || !v->kids.n)
        return ERR_BAD_CONFIG;
    for (size_t i = 0; i < N_LAYERS; i++)
        is_off[i] = layer_can_be_set(i);
    JSON_EACH(kid, v)
    {
        enum layer layer = layer_of(json_str_or(kid, STR("")));

        if (!layer || layer == LAYER_NONE || !is_off[layer])
            return ERR_BAD_CONFIG;
        is_off[layer] = false;
    }
    memcpy(field, is_off, sizeof(is_off));
    return OK;
}

static bool layers_is_same(const struct setting *s, const void *a,
                           const void *b)
{
    (void)s;
    return memcmp(a, b, N_LAYERS * sizeof(bool)) == 0;
}

static void layers_write(const struct setting *s, struct json_out *o,
                         const void *field)
{
    const bool *is_off = field;

    (void)s;
    json_open(o, '[');
    for (size_t i = 0; i < N_LAYERS; i++)
        if (layer_can_be_set(i) && !is_off[i])
            json_put_str(o, layer_name((enum layer)i));
    json_close(o, ']');
}

static void add_layer_names(struct buf *out)
{
    const char *before = "";

    for (size_t i = 0; i < N_LAYERS; i++) {
        if (!layer_can_be_set(i))
            continue;
        if (i == LAYER_DEFAULT) /* the last to be tried */
            before = " and ";
        buf_addf(out, "%s\"%.*s\"", before, STR_ARG(layer_name((enum layer)i)));
        before = ", ";
    }
}

static void layers_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("a list with one or more of "));
    add_layer_names(out);
}

static void complain_of_layer(const struct setting *s, const struct json *v,
                              struct why *why)
{
    struct str name = json_str_or(v, STR(""));
    struct str_guess g = str_guess(name);
    struct buf names;

    for (size_t i = 0; i < N_LAYERS; i++)
        if (layer_can_be_set(i))
            str_guess_offer(&g, layer_name((enum layer)i),
                            str_distance(name, layer_name((enum layer)i)));
    if (g.name.n) {
        why_err(why, ERR_BAD_CONFIG,
                "%s has %s, which is not a layer; did you mean \"%.*s\"?",
                s->path, value_words(v).text, STR_ARG(g.name));
        return;
    }
    buf_init(&names, 256);
    add_layer_names(&names);
    why_err(why, ERR_BAD_CONFIG,
            "%s has %s, which is not a layer; there are %.*s", s->path,
            value_words(v).text, STR_ARG(buf_str(&names)));
    buf_fini(&names);
}

void setting_complain_layers(const struct setting *s, const struct json *v,
                             struct why *why)
{
    bool has[N_LAYERS] = {false};

    if (v->type != JSON_ARR)
        return; /* `allowed` describes the list */
    if (!v->kids.n)
        why_err(why, ERR_BAD_CONFIG,
                "%s is empty, so no agent would get a message; leave it out "
                "for all layers",
                s->path);
    JSON_EACH(kid, v)
    {
        enum layer layer = layer_of(json_str_or(kid, STR("")));

        if (!layer || layer == LAYER_NONE) {
            complain_of_layer(s, kid, why);
            return;
        }
        if (has[layer])
            why_err(why, ERR_BAD_CONFIG, "%s has \"%.*s\" twice", s->path,
                    STR_ARG(layer_name(layer)));
        has[layer] = true;
    }
}

const struct setting_type type_layers = {
    .read = layers_read,
    .is_same = layers_is_same,
    .write = layers_write,
    .allowed = layers_allowed,
    .json = JSON_ARR,
};

/* Checks across rows. */

/* The position of the setting that was set last, for a problem that concerns
 * several. */
static struct value_pos last_position(const struct load *l,
                                      const char *const *names, size_t n)
{
    struct value_pos last = load_where(l, names[0]);

    for (size_t i = 1; i < n; i++) {
        struct value_pos at = load_where(l, names[i]);

        if (at.from > last.from || (at.from == last.from && at.at > last.at))
            last = at;
    }
    return last;
}

static void check_scores(struct load *l)
{
    static const char *const names[] = {
        "routing.weights.semantic", "routing.weights.performance",
        "routing.weights.keyword", "routing.weights.recency",
        "routing.threshold"};
    struct signal_weights w = l->c->routing.weights;
    double sum = w.semantic + w.performance + w.keyword + w.recency;

    if (l->c->routing.layer_is_off[LAYER_SEMANTIC])
        return;
    if (sum == 0)
        report_error(
            &l->report, last_position(l, names, 4),
            "routing.weights are all 0, so all agents would have the "
            "same score; set one of them, or leave \"semantic\" out of "
            "routing.layers");
    else if (l->c->routing.threshold > sum)
        report_warning(&l->report, last_position(l, names, 5),
                       "routing.threshold is %g, and the sum of the weights, "
                       "which no score can exceed, is %g: no agent is ever "
                       "chosen by score",
                       l->c->routing.threshold, sum);
}

/* Settings without effect, because their layer is off. */
static void check_layers_in_use(struct load *l)
{
    const struct config *c = l->c;
    const bool *is_off = c->routing.layer_is_off;
    struct value_pos at = load_where(l, "routing.layers");

    if (is_off[LAYER_EXPLICIT])
        report_warning(&l->report, at,
                       "routing.layers is without \"explicit\": a message that "
                       "names its agent is routed by the other layers");
    if (is_off[LAYER_BINDING] && c->bindings.n)
        report_warning(&l->report, at,
                       c->bindings.n == 1
                           ? "routing.layers is without \"binding\", so the "
                             "binding has no effect"
                           : "routing.layers is without \"binding\", so the "
                             "bindings have no effect");
    if (is_off[LAYER_DEFAULT] && c->default_agent.n)
        report_warning(&l->report, at,
                       "routing.layers is without \"default\", so "
                       "agents.default has no effect");
    if (is_off[LAYER_INTENT] && c->routing.intent.is_on)
        report_warning(&l->report, at,
                       "routing.layers is without \"intent\", so "
                       "routing.intentClassifier is not used");
}

static void check_intent(struct load *l)
{
    const struct config *c = l->c;

    if (!c->routing.intent.is_on)
        return;
    if (!c->routing.intent.endpoint.n || !c->routing.intent.model.n)
        report_error(&l->report,
                     load_where(l, "routing.intentClassifier.enabled"),
                     "routing.intentClassifier needs a provider: set its "
                     "endpoint and its model");
    if (load_is_exposed(c->routing.intent.endpoint))
        report_warning(&l->report,
                       load_where(l, "routing.intentClassifier.endpoint"),
                       "%sall texts are sent to "
                       "routing.intentClassifier.endpoint in plain text; use "
                       "https",
                       c->routing.intent.key_variable.n ? "the key and " : "");
}

static void check_learning(struct load *l)
{
    static const char *const names[] = {"learning.shortChars",
                                        "learning.substantialChars"};
    const struct config *c = l->c;

    if (c->learning.short_chars > c->learning.substantial_chars)
        report_warning(
            &l->report, last_position(l, names, 2),
            "learning.shortChars (%lld) is more than "
            "learning.substantialChars (%lld): an answer between them "
            "counts against its agent",
            (long long)c->learning.short_chars,
            (long long)c->learning.substantial_chars);
}

static bool setting_is_set(const struct load *l, const char *path)
{
    return load_where(l, path).from != FROM_DEFAULT;
}

void load_routing(struct load *l)
{
    l->c->routing.threshold_is_set = setting_is_set(l, "routing.threshold");
    l->c->routing.text_blend_is_set = setting_is_set(l, "routing.textBlend");
    check_scores(l);
    check_layers_in_use(l);
    check_intent(l);
    check_learning(l);
    load_secret(l, "routing.intentClassifier.keyVariable",
                l->c->routing.intent.key_variable, &l->c->routing.intent.key);
}
