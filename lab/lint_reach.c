/* Checks for agents that are too similar, agents that cannot be reached,
 * bindings without effect, and cards that will not work. */
#include "lab/lint_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "model/keyword.h"

/* Twins. */

static const float *reach_vector(const struct lint_fleet *f, size_t i)
{
    return f->vectors + i * f->dims;
}

static void reach_report_twins(const struct lint_fleet *f, size_t a, size_t b,
                               double likeness, lint_fn *each, void *ctx)
{
    struct lint_finding found = {.check = "twins", .rule = "alike"};
    struct str x = f->agents[a].name, y = f->agents[b].name;

    lint_name(&found, x);
    lint_name(&found, y);
    lint_say(&found, "%.*s and %.*s have similar descriptions (%.2f)",
             STR_ARG(x), STR_ARG(y), likeness);
    lint_advise(&found,
                "describe in each what the other does not do, or merge the "
                "two");
    each(ctx, &found);
}

enum err lint_twins(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    const struct vec_ops *ops = vec_ops();

    if (!fleet->vectors)
        return OK;
    for (size_t a = 0; a < fleet->n; a++)
        for (size_t b = a + 1; b < fleet->n; b++) {
            double likeness = (double)ops->dot(
                reach_vector(fleet, a), reach_vector(fleet, b), fleet->dims);

            if (likeness >= fleet->twins &&
                !fleet->agents[a].routing.is_unroutable &&
                !fleet->agents[b].routing.is_unroutable)
                reach_report_twins(fleet, a, b, likeness, each, ctx);
        }
    return OK;
}

/* Reach. */

static bool reach_is_bound(const struct lint_fleet *f, struct str name)
{
    const struct choose_settings *s = f->settings;

    for (size_t i = 0; i < s->bindings.n; i++)
        if (str_eq_nocase(s->bindings.list[i].agent, name))
            return true;
    return false;
}

static bool reach_is_default(const struct lint_fleet *f, struct str name)
{
    return str_eq_nocase(f->settings->default_agent, name);
}

static void reach_report(lint_fn *each, void *ctx, const char *rule,
                         struct str agent, const char *text, const char *advice)
{
    struct lint_finding f = {.check = "reach", .rule = rule};

    lint_name(&f, agent);
    lint_say(&f, "%.*s %s", STR_ARG(agent), text);
    lint_advise(&f, "%s", advice);
    each(ctx, &f);
}

/* Whether an agent without a creator is hidden from users. */
static bool reach_is_hidden(const struct agent *a, const char **why)
{
    *why = NULL;
    if (a->creator.n)
        return false;
    if (a->visibility == VISIBILITY_PRIVATE)
        *why = "is private and has no owner: only admins see it";
    else if (a->visibility == VISIBILITY_SHARED && !a->org.n)
        *why = "is shared, but has no org: only admins see it";
    return *why != NULL;
}

static bool has_profile(const struct agent *a)
{
    return a->description.n || a->n_skills || a->routing.keywords.n ||
           a->routing.system_prompt.n;
}

static bool reach_has_no_layer(const struct lint_fleet *f,
                               const struct agent *a)
{
    const bool *off = f->settings->is_off;

    if (!off[LAYER_EXPLICIT] || !off[LAYER_PREFIX])
        return false;
    if (!off[LAYER_BINDING] && reach_is_bound(f, a->name))
        return false;
    if (!off[LAYER_DEFAULT] && reach_is_default(f, a->name))
        return false;
    return a->routing.is_unroutable ||
           (off[LAYER_SEMANTIC] && off[LAYER_INTENT]);
}

static bool reach_is_dead(const struct lint_fleet *f, size_t i)
{
    return f->known && f->known[i].state == AGENT_DEAD;
}

/* An agent that connects by itself only has to be started. Others are DEAD for
 * a reason that a start does not fix. */
static bool reach_connects_itself(const struct agent *a)
{
    struct agent_url url;

    return agent_url_read(a->url, &url, NULL) != OK ||
           url.transport == TRANSPORT_HUB;
}

static void reach_report_dead(const struct lint_fleet *f, size_t i,
                              lint_fn *each, void *ctx)
{
    struct str reason = f->known[i].reason;
    bool has_reason = reason.n > 0;
    char words[LINT_TEXT_MAX];

    if (!has_reason)
        reason = STR("it is not connected and cannot be woken");
    snprintf(words, sizeof(words), "is DEAD: %.*s", STR_ARG(reason));
    reach_report(
        each, ctx, "dead", f->agents[i].name, words,
        !has_reason || reach_connects_itself(&f->agents[i])
            ? "start it, or remove it"
            : "fix its card or the server's configuration, or remove it");
}

static void reach_check_agent(const struct lint_fleet *f, size_t i,
                              lint_fn *each, void *ctx)
{
    const struct agent *a = &f->agents[i];
    const char *why;

    if (reach_is_hidden(a, &why))
        reach_report(each, ctx, "hidden", a->name, why,
                     "make it public, or give it an org");
    if (reach_is_dead(f, i))
        reach_report_dead(f, i, each, ctx);
    if (reach_has_no_layer(f, a))
        reach_report(each, ctx, "layers", a->name,
                     "cannot be chosen by any layer that is on",
                     "check routing.layers, bindings and agents.default");
    else if (!has_profile(a) && !a->routing.is_unroutable &&
             !reach_is_bound(f, a->name) && !reach_is_default(f, a->name))
        reach_report(each, ctx, "profile", a->name,
                     "has no description: it can be reached only by name",
                     "give it a description, and skills with examples");
}

/* "/name" reaches only one agent. */
static void reach_check_command(const struct lint_fleet *f, size_t i,
                                lint_fn *each, void *ctx)
{
    char mine[AGENT_NAME_MAX + 1], other[AGENT_NAME_MAX + 1];
    struct str a = f->agents[i].name;
    struct str word = choose_command(a, mine);

    for (size_t k = 0; k < i; k++) {
        struct lint_finding found = {.check = "reach", .rule = "command"};
        struct str b = f->agents[k].name;

        if (!str_eq(word, choose_command(b, other)))
            continue;
        lint_name(&found, b);
        lint_name(&found, a);
        lint_say(&found,
                 "\"/%.*s\" is the command of both %.*s and %.*s, and reaches "
                 "only one of them",
                 STR_ARG(word), STR_ARG(b), STR_ARG(a));
        lint_advise(&found, "choose names that differ in more than case, "
                            "\"-\", \"_\" and \".\"");
        each(ctx, &found);
    }
}

/* Tries. */

struct try_result {
    uint32_t agent; /* the winner */
    double score;   /* of the winner */
    double own;     /* of the agent of the text; below zero: not routable */
    float meaning;  /* the semantic signal of that agent, */
    float floor;    /* and from where on it is confident */
    enum band band;
};

static bool reach_is_candidate(const struct lint_fleet *f, uint32_t i)
{
    return !f->agents[i].routing.is_unroutable && !reach_is_dead(f, i);
}

/* The cutoffs of a requester who sees all of them. */
static struct decision_rules reach_rules(const struct lint_fleet *f)
{
    const struct choose_settings *s = f->settings;
    struct decision_rules r = {.is_auto = s->is_auto,
                               .is_centred = s->is_centred,
                               .threshold = s->threshold,
                               .alpha = s->alpha,
                               .text_blend = s->text_blend};

    for (uint32_t i = 0; i < f->n; i++)
        r.n += reach_is_candidate(f, i);
    return r;
}

/* Lists the candidates for a text, without anything learnt. `out` and `who`,
 * the candidates' agents, have room for all. */
static enum err reach_list_candidates(const struct lint_fleet *f,
                                      const struct lint_try *t,
                                      struct candidate *out, uint32_t *who,
                                      size_t *n)
{
    struct index_query q = {.text = t->text, .sees_all = true};
    const struct choose_settings *s = f->settings;
    const struct index_near *near;
    size_t n_near;
    enum err e = index_near(f->index, &q, t->vector, &near, &n_near);

    *n = 0;
    for (uint32_t i = 0; !e && i < f->n && i < n_near; i++) {
        struct candidate *c = &out[*n];
        struct signals *sig = &c->signals;

        if (!reach_is_candidate(f, i))
            continue;
        *c = (struct candidate){
            .keyword = keyword_find(f->agents[i].routing.keywords, t->text),
            .level = near[i].level};
        *sig = (struct signals){.cosine = near[i].cosine,
                                .text = near[i].text,
                                .performance = 0.5F,
                                .keyword = c->keyword.n ? 1 : 0};
        if (sig->cosine < 0)
            sig->cosine = 0; /* there is no vector */
        sig->semantic = choose_semantic(s, sig, &c->level);
        c->score = choose_score(&s->weights, sig);
        who[(*n)++] = i;
    }
    return e;
}

/* The winner: the best confident agent, or else the best. */
static struct try_result reach_decide(const struct decision_rules *rules,
                                      const struct lint_try *t,
                                      struct candidate *list,
                                      const uint32_t *who, size_t n)
{
    struct try_result out = {
        .agent = t->agent, .score = -1, .own = -1, .band = BAND_OUT_OF_SCOPE};

    choose_cutoffs(rules, list, n);
    for (size_t i = 0; i < n; i++) {
        const struct candidate *c = &list[i];
        enum band band = choose_band(rules, c);
        bool is_better =
            (band == BAND_CONFIDENT) == (out.band == BAND_CONFIDENT)
                ? c->score > out.score
                : band == BAND_CONFIDENT;

        if (who[i] == t->agent) {
            out.own = c->score;
            out.meaning = c->signals.semantic;
            out.floor = c->floor;
        }
        if (is_better) {
            out.score = c->score;
            out.agent = who[i];
            out.band = band;
        }
    }
    return out;
}

/* Without reference texts no choice is confident, whatever the card. */
static bool reach_is_reached(const struct lint_fleet *f,
                             const struct lint_try *t,
                             const struct try_result *won)
{
    bool has_cutoff = !f->settings->is_auto || isfinite(won->floor);

    return won->agent == t->agent &&
           (won->band == BAND_CONFIDENT || !has_cutoff);
}

struct try_count {
    uint32_t n, lost;
    const struct lint_try *first; /* lost */
    struct try_result won;
};

static void reach_report_lost(const struct lint_fleet *f, uint32_t i,
                              const struct try_count *t, lint_fn *each,
                              void *ctx)
{
    struct lint_finding found = {.check = "reach", .rule = "lost"};
    struct str name = f->agents[i].name;
    bool is_low = t->won.agent == i; /* best, but below the threshold */
    struct str winner = f->agents[t->won.agent].name;
    struct str text = str_head(t->first->text, 64);
    char *end;
    size_t left;

    found.is_note = t->lost < t->n;
    lint_name(&found, name);
    if (!is_low)
        lint_name(&found, winner);
    if (t->n == 1)
        lint_say(&found, "%.*s does not get its own %s: ", STR_ARG(name),
                 t->first->is_description ? "description" : "example");
    else
        lint_say(&found,
                 "%.*s does not get %u of its own %u examples: ", STR_ARG(name),
                 t->lost, t->n);
    end = found.text + strlen(found.text);
    left = sizeof(found.text) - strlen(found.text);
    if (!is_low)
        snprintf(end, left, "\"%.*s\" scores %.3f, and %.3f for %.*s",
                 STR_ARG(text), t->won.own, t->won.score, STR_ARG(winner));
    else if (f->settings->is_auto)
        snprintf(end, left,
                 "\"%.*s\" is %s, with %.3f by meaning where %.3f is "
                 "confident",
                 STR_ARG(text),
                 t->won.band == BAND_UNSURE ? "unsure" : "out of scope",
                 (double)t->won.meaning, (double)t->won.floor);
    else
        snprintf(end, left, "\"%.*s\" scores %.3f and %.3f is needed",
                 STR_ARG(text), t->won.own, f->settings->threshold);
    if (!is_low)
        lint_advise(&found, "describe more of what only it does, or give it a "
                            "keyword that such texts contain");
    else
        lint_advise(&found, "describe the subject of such texts in its card%s",
                    f->settings->is_auto ? "" : ", or lower routing.threshold");
    each(ctx, &found);
}

static enum err reach_check_tries(const struct lint_fleet *f, lint_fn *each,
                                  void *ctx)
{
    struct try_count *counts = mem_array(f->n, sizeof(*counts));
    struct candidate *list = mem_array(f->n, sizeof(*list));
    uint32_t *who = mem_array(f->n, sizeof(*who));
    struct decision_rules rules = reach_rules(f);
    enum err e = OK;

    for (size_t i = 0; !e && i < f->n_tries; i++) {
        const struct lint_try *t = &f->tries[i];
        struct try_count *mine = &counts[t->agent];
        struct try_result won;
        size_t n;

        e = reach_list_candidates(f, t, list, who, &n);
        if (e)
            break;
        won = reach_decide(&rules, t, list, who, n);
        if (won.own < 0)
            continue; /* the agent is not chosen by score */
        mine->n++;
        if (reach_is_reached(f, t, &won))
            continue;
        if (!mine->lost++) {
            mine->first = t;
            mine->won = won;
        }
    }
    for (uint32_t i = 0; !e && i < f->n; i++)
        if (counts[i].lost)
            reach_report_lost(f, i, &counts[i], each, ctx);
    free(counts);
    free(list);
    free(who);
    return e;
}

static void reach_check_default(const struct lint_fleet *f, lint_fn *each,
                                void *ctx)
{
    struct lint_finding found = {
        .check = "reach", .rule = "default", .is_note = true};

    if (!f->is_configured || f->settings->default_agent.n || !f->n)
        return;
    lint_say(&found,
             "there is no default: a message that fits no agent is rejected");
    lint_advise(&found, "set agents.default to the agent for all other "
                        "messages");
    each(ctx, &found);
}

enum err lint_reach(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    for (size_t i = 0; i < fleet->n; i++) {
        reach_check_agent(fleet, i, each, ctx);
        reach_check_command(fleet, i, each, ctx);
    }
    reach_check_default(fleet, each, ctx);
    if (!fleet->index || fleet->settings->is_off[LAYER_SEMANTIC])
        return OK;
    return reach_check_tries(fleet, each, ctx);
}

/* Bindings. */

static bool binding_kind_is_same(struct str a, struct str b)
{
    static const struct str same[][2] = {{{"dm", 2}, {"direct", 6}},
                                         {{"group", 5}, {"channel", 7}}};

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 2; k++)
            if (str_eq_nocase(a, same[i][k]) &&
                str_eq_nocase(b, same[i][1 - k]))
                return true;
    return str_eq_nocase(a, b);
}

static bool binding_account_is_same(struct str a, struct str b)
{
    bool any_a = !a.n || str_eq(a, STR("*")),
         any_b = !b.n || str_eq(b, STR("*"));

    return any_a || any_b ? any_a == any_b : str_eq_nocase(a, b);
}

static bool binding_roles_are_same(struct strs a, struct strs b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (!str_eq(a.list[i], b.list[i]))
            return false;
    return true;
}

static bool binding_match_is_same(const struct binding *a,
                                  const struct binding *b)
{
    return str_eq(a->peer.id, b->peer.id) && str_eq(a->guild_id, b->guild_id) &&
           str_eq(a->team_id, b->team_id) &&
           str_eq_nocase(a->channel, b->channel) &&
           binding_account_is_same(a->account_id, b->account_id) &&
           binding_kind_is_same(a->peer.kind, b->peer.kind) &&
           binding_roles_are_same(a->roles, b->roles);
}

enum err lint_bindings(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    const struct bindings *b = &fleet->settings->bindings;

    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < i; k++) {
            struct lint_finding f = {.check = "bindings", .rule = "shadowed"};

            if (!binding_match_is_same(&b->list[k], &b->list[i]))
                continue;
            lint_name(&f, b->list[i].agent);
            lint_say(&f,
                     "bindings[%zu] to %.*s has no effect: bindings[%zu], to "
                     "%.*s, matches the same messages",
                     i, STR_ARG(b->list[i].agent), k,
                     STR_ARG(b->list[k].agent));
            lint_advise(&f, "remove one of the two");
            each(ctx, &f);
            break;
        }
    return OK;
}

/* Cards. */

/* The message is the problem and, after the first semicolon, the remedy. */
static void reach_report_card(const struct agent *a,
                              const struct advice_warning *w, lint_fn *each,
                              void *ctx)
{
    struct lint_finding f = {.check = "cards", .rule = w->code};
    const char *advice = strstr(w->message, "; ");
    size_t n = advice ? (size_t)(advice - w->message) : strlen(w->message);

    lint_name(&f, a->name);
    lint_say(&f, "%.*s: %.*s", STR_ARG(a->name), (int)n, w->message);
    lint_advise(&f, "%s", advice ? advice + 2 : "");
    each(ctx, &f);
}

/* lint_reach reports empty cards, and lint_twins similar ones. */
static bool reach_card_is_reported(const struct agent *a,
                                   const struct advice_warning *w)
{
    return (!a->description.n && strcmp(w->code, "thin_card") == 0) ||
           strcmp(w->code, "close_card") == 0;
}

/* The server's own warnings, if there are any, since it knows its models and
 * the addresses that it may connect to. */
static void card_advice(const struct lint_fleet *f, size_t i,
                        struct advice *out)
{
    struct agent a = f->agents[i];

    a.is_configured |= f->is_configured;
    if (f->known && f->known[i].advice)
        *out = *f->known[i].advice;
    else if (f->against)
        advice_of(&a, f->against, out);
    else
        advice_of_card(&a, out);
}

enum err lint_cards(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    for (size_t i = 0; i < fleet->n; i++) {
        const struct agent *a = &fleet->agents[i];
        struct advice advice;

        card_advice(fleet, i, &advice);
        for (size_t k = 0; k < advice.n; k++)
            if (!reach_card_is_reported(a, &advice.list[k]))
                reach_report_card(a, &advice.list[k], each, ctx);
    }
    return OK;
}
