/* How an agent is chosen: the list of layers, and what no row of `routing` and
 * `learning` can know by itself. */
#include <stdio.h>

#include "config/internal.h"

/* Layers: those that are on, as a list of names; the field has those that are
 * off, so that all zeroes are all of them. */

static enum err layers_read(const struct setting *s, struct arena *a,
                            const struct json *v, void *field)
{
    bool is_off[N_LAYERS];

    (void)s, (void)a;
    if (v->type != JSON_ARR || !v->kids.n)
        return ERR_BAD_CONFIG;
    for (size_t i = 0; i < N_LAYERS; i++)
        is_off[i] = i > 0 && i != LAYER_NONE;
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
    for (unsigned i = 1; i < LAYER_NONE; i++)
        if (!is_off[i])
            json_put_str(o, layer_name((enum layer)i));
    json_close(o, ']');
}

static void add_layers(struct buf *out)
{
    for (unsigned i = 1; i < LAYER_NONE; i++)
        buf_addf(out, "%s\"%.*s\"",
                 i == 1                ? ""
                 : i + 1 == LAYER_NONE ? " and "
                                       : ", ",
                 STR_ARG(layer_name((enum layer)i)));
}

static void layers_allowed(const struct setting *s, struct buf *out)
{
    (void)s;
    buf_add_str(out, STR("a list with one or more of "));
    add_layers(out);
}

static void complain_of_one(const struct setting *s, const struct json *v,
                            struct why *why)
{
    struct str name = json_str_or(v, STR(""));
    struct str_guess g = str_guess(name);
    struct buf names;

    for (unsigned i = 1; i < LAYER_NONE; i++)
        str_guess_offer(&g, layer_name((enum layer)i),
                        str_distance(name, layer_name((enum layer)i)));
    if (g.name.n) {
        why_err(why, ERR_BAD_CONFIG,
                "%s has %s, which is no layer; did you mean \"%.*s\"?", s->path,
                value_words(v).text, STR_ARG(g.name));
        return;
    }
    buf_init(&names, 256);
    add_layers(&names);
    why_err(why, ERR_BAD_CONFIG, "%s has %s, which is no layer; there are %.*s",
            s->path, value_words(v).text, STR_ARG(buf_str(&names)));
    buf_fini(&names);
}

void setting_complain_layers(const struct setting *s, const struct json *v,
                             struct why *why)
{
    bool has[N_LAYERS] = {false};

    if (v->type != JSON_ARR)
        return; /* what is allowed says it */
    if (!v->kids.n)
        why_err(why, ERR_BAD_CONFIG,
                "%s is empty, so that nobody would get a message; leave it out "
                "for all of them",
                s->path);
    JSON_EACH(kid, v)
    {
        enum layer layer = layer_of(json_str_or(kid, STR("")));

        if (!layer || layer == LAYER_NONE) {
            complain_of_one(s, kid, why);
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

/* A number, or "auto": below zero then. */

static enum err real_or_auto_read(const struct setting *s, struct arena *a,
                                  const struct json *v, void *field)
{
    if (!str_eq(json_str_or(v, STR("")), STR("auto")))
        return type_real.read(s, a, v, field);
    *(double *)field = -1;
    return OK;
}

static void real_or_auto_write(const struct setting *s, struct json_out *o,
                               const void *field)
{
    if (*(const double *)field < 0)
        json_put_str(o, STR("auto"));
    else
        type_real.write(s, o, field);
}

static bool real_or_auto_is_same(const struct setting *s, const void *a,
                                 const void *b)
{
    return type_real.is_same(s, a, b);
}

static void real_or_auto_allowed(const struct setting *s, struct buf *out)
{
    type_real.allowed(s, out);
    buf_add_str(out, STR(", or \"auto\""));
}

const struct setting_type type_real_or_auto = {
    .read = real_or_auto_read,
    .is_same = real_or_auto_is_same,
    .write = real_or_auto_write,
    .allowed = real_or_auto_allowed,
    .json = JSON_REAL,
};

/* What does not fit together. */

/* Whoever was set last of some settings, to have a place for what is wrong with
 * all of them. */
static struct place last_of(const struct load *l, const char *const *names,
                            size_t n)
{
    struct place last = load_where(l, names[0]);

    for (size_t i = 1; i < n; i++) {
        struct place at = load_where(l, names[i]);

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
        report_error(&l->report, last_of(l, names, 4),
                     "routing.weights are all 0, so that everybody would have "
                     "the same score; set one of them, or leave \"semantic\" "
                     "out of routing.layers");
    else if (l->c->routing.threshold > sum)
        report_warning(&l->report, last_of(l, names, 5),
                       "routing.threshold is %g and the weights together are "
                       "%g, which no score can be above: nobody is ever chosen "
                       "by score",
                       l->c->routing.threshold, sum);
}

/* What is set and has no effect, since its layer is not asked. */
static void check_layers(struct load *l)
{
    const struct config *c = l->c;
    const bool *is_off = c->routing.layer_is_off;
    struct place at = load_where(l, "routing.layers");

    if (is_off[LAYER_EXPLICIT])
        report_warning(&l->report, at,
                       "routing.layers is without \"explicit\": a message that "
                       "names its agent goes to whomever the others choose");
    if (is_off[LAYER_BINDING] && c->bindings.n)
        report_warning(&l->report, at,
                       c->bindings.n == 1
                           ? "routing.layers is without \"binding\", and the "
                             "binding there is does not count"
                           : "routing.layers is without \"binding\", and the "
                             "bindings there are do not count");
    if (is_off[LAYER_DEFAULT] && c->default_agent.n)
        report_warning(&l->report, at,
                       "routing.layers is without \"default\", and "
                       "agents.default does not count");
    if (is_off[LAYER_INTENT] && c->routing.intent.is_on)
        report_warning(&l->report, at,
                       "routing.layers is without \"intent\", and "
                       "routing.intentClassifier is not asked");
}

static void check_intent(struct load *l)
{
    const struct config *c = l->c;

    if (!c->routing.intent.is_on)
        return;
    if (!c->routing.intent.endpoint.n || !c->routing.intent.model.n)
        report_error(&l->report,
                     load_where(l, "routing.intentClassifier.enabled"),
                     "routing.intentClassifier needs somebody to ask: set its "
                     "endpoint and its model");
    if (load_is_exposed(c->routing.intent.endpoint))
        report_warning(&l->report,
                       load_where(l, "routing.intentClassifier.endpoint"),
                       "%sall texts travel to "
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
            &l->report, last_of(l, names, 2),
            "learning.shortChars (%lld) is more than "
            "learning.substantialChars (%lld): an answer between them "
            "speaks against its agent, however substantial",
            (long long)c->learning.short_chars,
            (long long)c->learning.substantial_chars);
}

static bool is_set(const struct load *l, const char *path)
{
    return load_where(l, path).from != FROM_DEFAULT;
}

void load_routing(struct load *l)
{
    l->c->routing.threshold_is_set = is_set(l, "routing.threshold");
    l->c->routing.text_blend_is_set = is_set(l, "routing.textBlend");
    check_scores(l);
    check_layers(l);
    check_intent(l);
    check_learning(l);
    load_key(l, "routing.intentClassifier.keyVariable",
             l->c->routing.intent.key_variable, &l->c->routing.intent.key);
}
