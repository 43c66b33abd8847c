/* Agents that are too alike to be told apart, agents that nobody can reach, and
 * bindings that never count. */
#include "cli/lint_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "model/keyword.h"

/* Twins. */

static const float *vector_of(const struct lint_fleet *f, size_t i)
{
    return f->vectors + i * f->dims;
}

static void say_twins(const struct lint_fleet *f, size_t a, size_t b,
                      double likeness, lint_fn *each, void *ctx)
{
    struct lint_finding found = {.check = "twins", .rule = "alike"};
    struct str x = f->agents[a].name, y = f->agents[b].name;

    lint_name(&found, x);
    lint_name(&found, y);
    lint_say(&found, "%.*s and %.*s say nearly the same of themselves (%.2f)",
             STR_ARG(x), STR_ARG(y), likeness);
    lint_advise(&found,
                "say in each what the other does not do, or make one of "
                "the two");
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
                vector_of(fleet, a), vector_of(fleet, b), fleet->dims);

            if (likeness >= fleet->twins &&
                !fleet->agents[a].routing.is_unroutable &&
                !fleet->agents[b].routing.is_unroutable)
                say_twins(fleet, a, b, likeness, each, ctx);
        }
    return OK;
}

/* Who can be reached. */

static bool is_bound(const struct lint_fleet *f, struct str name)
{
    const struct choose_settings *s = f->settings;

    for (size_t i = 0; i < s->bindings.n; i++)
        if (str_eq_nocase(s->bindings.list[i].agent, name))
            return true;
    return false;
}

static bool is_default(const struct lint_fleet *f, struct str name)
{
    return str_eq_nocase(f->settings->default_agent, name);
}

static void say(lint_fn *each, void *ctx, const char *rule, struct str agent,
                const char *text, const char *advice)
{
    struct lint_finding f = {.check = "reach", .rule = rule};

    lint_name(&f, agent);
    lint_say(&f, "%.*s %s", STR_ARG(agent), text);
    lint_advise(&f, "%s", advice);
    each(ctx, &f);
}

/* Of those that nobody has created. */
static bool is_hidden(const struct agent *a, const char **why)
{
    *why = NULL;
    if (a->creator.n)
        return false;
    if (a->visibility == VISIBILITY_PRIVATE)
        *why = "is private, and nobody's: only admins see it";
    else if (a->visibility == VISIBILITY_SHARED && !a->org.n)
        *why = "is shared with nobody: it has no org";
    return *why != NULL;
}

static bool has_profile(const struct agent *a)
{
    return a->description.n || a->n_skills || a->routing.keywords.n ||
           a->routing.system_prompt.n;
}

static bool no_layer_has_it(const struct lint_fleet *f, const struct agent *a)
{
    const bool *off = f->settings->is_off;

    if (!off[LAYER_EXPLICIT] || !off[LAYER_PREFIX])
        return false;
    if (!off[LAYER_BINDING] && is_bound(f, a->name))
        return false;
    if (!off[LAYER_DEFAULT] && is_default(f, a->name))
        return false;
    return a->routing.is_unroutable ||
           (off[LAYER_SEMANTIC] && off[LAYER_INTENT]);
}

static bool is_dead(const struct lint_fleet *f, size_t i)
{
    return f->known && f->known[i].state == AGENT_DEAD;
}

/* An agent that connects by itself only has to be started. Another one is DEAD
 * for a reason that a start does not mend. */
static bool is_to_connect(const struct agent *a)
{
    struct agent_url url;

    return agent_url_read(a->url, &url, NULL) != OK || url.road == ROAD_HUB;
}

static void say_dead(const struct lint_fleet *f, size_t i, lint_fn *each,
                     void *ctx)
{
    struct str reason = f->known[i].reason;
    bool is_told = reason.n > 0;
    char words[LINT_TEXT_MAX];

    if (!is_told)
        reason = STR("it is not connected and cannot be woken");
    snprintf(words, sizeof(words), "is DEAD: %.*s", STR_ARG(reason));
    say(each, ctx, "dead", f->agents[i].name, words,
        !is_told || is_to_connect(&f->agents[i])
            ? "start it, or remove it"
            : "mend its card or the server's configuration, or remove it");
}

static void check_one(const struct lint_fleet *f, size_t i, lint_fn *each,
                      void *ctx)
{
    const struct agent *a = &f->agents[i];
    const char *why;

    if (is_hidden(a, &why))
        say(each, ctx, "hidden", a->name, why,
            "make it public, or give it an org");
    if (is_dead(f, i))
        say_dead(f, i, each, ctx);
    if (no_layer_has_it(f, a))
        say(each, ctx, "layers", a->name,
            "cannot be chosen by any layer that is on",
            "see routing.layers, bindings and agents.default");
    else if (!has_profile(a) && !a->routing.is_unroutable &&
             !is_bound(f, a->name) && !is_default(f, a->name))
        say(each, ctx, "profile", a->name,
            "says nothing of itself: only who knows its name can reach it",
            "give it a description, and skills with examples");
}

/* "/name" stands for one of them only. */
static void check_command(const struct lint_fleet *f, size_t i, lint_fn *each,
                          void *ctx)
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
                 "\"/%.*s\" stands for %.*s and %.*s alike, and reaches "
                 "one of them",
                 STR_ARG(word), STR_ARG(b), STR_ARG(a));
        lint_advise(&found, "let their names differ in more than case, \"-\", "
                            "\"_\" and \".\"");
        each(ctx, &found);
    }
}

/* Tries. */

struct won {
    uint32_t agent;
    double score;  /* of that agent */
    double own;    /* of the one whose text it is; below zero: not routable */
    float meaning; /* the latter's signal, and */
    float floor;   /* where it is confident */
    enum band band;
};

static bool is_candidate(const struct lint_fleet *f, uint32_t i)
{
    return !f->agents[i].routing.is_unroutable && !is_dead(f, i);
}

/* The cutoffs of a requester who sees all of them. */
static struct decision_rules rules_of(const struct lint_fleet *f)
{
    const struct choose_settings *s = f->settings;
    struct decision_rules r = {.is_auto = s->is_auto,
                               .is_centred = s->is_centred,
                               .threshold = s->threshold,
                               .alpha = s->alpha,
                               .text_blend = s->text_blend};

    for (uint32_t i = 0; i < f->n; i++)
        r.n += is_candidate(f, i);
    return r;
}

/* Those that could get it, nothing being learnt yet, into `out`: room for all.
 * `who` says whose each is. */
static enum err list_candidates(const struct lint_fleet *f,
                                const struct lint_try *t, struct candidate *out,
                                uint32_t *who, size_t *n)
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

        if (!is_candidate(f, i))
            continue;
        *c = (struct candidate){
            .keyword = keyword_find(f->agents[i].routing.keywords, t->text),
            .level = near[i].level};
        *sig = (struct signals){.cosine = near[i].cosine,
                                .text = near[i].text,
                                .performance = 0.5F,
                                .keyword = c->keyword.n ? 1 : 0};
        if (sig->cosine < 0)
            sig->cosine = 0; /* there is nothing to compare */
        sig->semantic = choose_semantic(s, sig, &c->level);
        c->score = choose_score(&s->weights, sig);
        who[(*n)++] = i;
    }
    return e;
}

/* The agent that would get it: the best confident one, or else the best. */
static struct won decide(const struct decision_rules *rules,
                         const struct lint_try *t, struct candidate *list,
                         const uint32_t *who, size_t n)
{
    struct won out = {
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

/* Without reference texts no choice is confident; that says nothing about the
 * card. */
static bool is_reached(const struct lint_fleet *f, const struct lint_try *t,
                       const struct won *won)
{
    bool has_cutoff = !f->settings->is_auto || isfinite(won->floor);

    return won->agent == t->agent &&
           (won->band == BAND_CONFIDENT || !has_cutoff);
}

struct tally {
    uint32_t n, lost;
    const struct lint_try *first; /* that was lost */
    struct won won;
};

static void say_lost(const struct lint_fleet *f, uint32_t i,
                     const struct tally *t, lint_fn *each, void *ctx)
{
    struct lint_finding found = {.check = "reach", .rule = "lost"};
    struct str name = f->agents[i].name;
    bool is_low = t->won.agent == i; /* best, and not good enough */
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
        lint_advise(&found, "say more of what it alone does, or give it a "
                            "keyword that such texts have");
    else
        lint_advise(&found,
                    "say in its description what such texts are about%s",
                    f->settings->is_auto ? "" : ", or lower routing.threshold");
    each(ctx, &found);
}

static enum err check_tries(const struct lint_fleet *f, lint_fn *each,
                            void *ctx)
{
    struct tally *tallies = calloc(f->n + 1, sizeof(*tallies));
    struct candidate *list = calloc(f->n + 1, sizeof(*list));
    uint32_t *who = calloc(f->n + 1, sizeof(*who));
    struct decision_rules rules = rules_of(f);
    enum err e = tallies && list && who ? OK : ERR_NOMEM;

    for (size_t i = 0; !e && i < f->n_tries; i++) {
        const struct lint_try *t = &f->tries[i];
        struct tally *mine = &tallies[t->agent];
        struct won won;
        size_t n;

        e = list_candidates(f, t, list, who, &n);
        if (e)
            break;
        won = decide(&rules, t, list, who, n);
        if (won.own < 0)
            continue; /* it is not to be chosen by its score */
        mine->n++;
        if (is_reached(f, t, &won))
            continue;
        if (!mine->lost++) {
            mine->first = t;
            mine->won = won;
        }
    }
    for (uint32_t i = 0; !e && i < f->n; i++)
        if (tallies[i].lost)
            say_lost(f, i, &tallies[i], each, ctx);
    free(tallies);
    free(list);
    free(who);
    return e;
}

static void check_default(const struct lint_fleet *f, lint_fn *each, void *ctx)
{
    struct lint_finding found = {
        .check = "reach", .rule = "default", .is_note = true};

    if (!f->is_configured || f->settings->default_agent.n || !f->n)
        return;
    lint_say(&found,
             "there is no default: a message that fits no agent is refused");
    lint_advise(&found, "set agents.default to the one that is best at "
                        "everything else");
    each(ctx, &found);
}

enum err lint_reach(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    for (size_t i = 0; i < fleet->n; i++) {
        check_one(fleet, i, each, ctx);
        check_command(fleet, i, each, ctx);
    }
    check_default(fleet, each, ctx);
    if (!fleet->index || fleet->settings->is_off[LAYER_SEMANTIC])
        return OK;
    return check_tries(fleet, each, ctx);
}

/* Bindings. */

static bool same_kind(struct str a, struct str b)
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

static bool same_account(struct str a, struct str b)
{
    bool any_a = !a.n || str_eq(a, STR("*")),
         any_b = !b.n || str_eq(b, STR("*"));

    return any_a || any_b ? any_a == any_b : str_eq_nocase(a, b);
}

static bool same_roles(struct strs a, struct strs b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (!str_eq(a.list[i], b.list[i]))
            return false;
    return true;
}

static bool same_match(const struct binding *a, const struct binding *b)
{
    return str_eq(a->peer.id, b->peer.id) && str_eq(a->guild_id, b->guild_id) &&
           str_eq(a->team_id, b->team_id) &&
           str_eq_nocase(a->channel, b->channel) &&
           same_account(a->account_id, b->account_id) &&
           same_kind(a->peer.kind, b->peer.kind) &&
           same_roles(a->roles, b->roles);
}

enum err lint_bindings(const struct lint_fleet *fleet, lint_fn *each, void *ctx)
{
    const struct bindings *b = &fleet->settings->bindings;

    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < i; k++) {
            struct lint_finding f = {.check = "bindings", .rule = "shadowed"};

            if (!same_match(&b->list[k], &b->list[i]))
                continue;
            lint_name(&f, b->list[i].agent);
            lint_say(&f,
                     "bindings[%zu] to %.*s never counts: bindings[%zu], to "
                     "%.*s, matches the same",
                     i, STR_ARG(b->list[i].agent), k,
                     STR_ARG(b->list[k].agent));
            lint_advise(&f, "take one of the two out");
            each(ctx, &f);
            break;
        }
    return OK;
}

/* Cards. */

/* The message names what is wrong and, behind the first semicolon, what to do.
 */
static void say_card(const struct agent *a, const struct advice_warning *w,
                     lint_fn *each, void *ctx)
{
    struct lint_finding f = {.check = "cards", .rule = w->code};
    const char *advice = strstr(w->message, "; ");
    size_t n = advice ? (size_t)(advice - w->message) : strlen(w->message);

    lint_name(&f, a->name);
    lint_say(&f, "%.*s: %.*s", STR_ARG(a->name), (int)n, w->message);
    lint_advise(&f, "%s", advice ? advice + 2 : "");
    each(ctx, &f);
}

/* lint_reach reports agents that say nothing at all, lint_twins close ones. */
static bool is_found_elsewhere(const struct agent *a,
                               const struct advice_warning *w)
{
    return (!a->description.n && strcmp(w->code, "thin_card") == 0) ||
           strcmp(w->code, "close_card") == 0;
}

/* The warnings of the agent's server where there are any: it knows its models
 * and which addresses it may connect to. */
static void advice_for(const struct lint_fleet *f, size_t i, struct advice *out)
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

        advice_for(fleet, i, &advice);
        for (size_t k = 0; k < advice.n; k++)
            if (!is_found_elsewhere(a, &advice.list[k]))
                say_card(a, &advice.list[k], each, ctx);
    }
    return OK;
}
