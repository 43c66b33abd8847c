/* Hostile cards that are made of what users ask. A card that holds ordinary
 * questions is near to every message like them, whichever agent that message is
 * meant for; and an attacker can have many cards and many names.
 *
 * The questions come from --train, or from half of the test queries, and then
 * the other half is measured. Queries are asked in an order by chance, as a
 * share of the traffic depends on what came before, and at most ASKED_MAX of
 * them. Each construction is measured alone, and the first line is without any
 * hostile card. */
#include "cli/eval_route.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ASKED_MAX = 1000,
    ASKED_LEAST = 200, /* of few queries, all of them again */
    HONEST_MAX = 20,   /* agents that are strangers in turn */
    CHANCE = 1,
    PRAISES = 10, /* by each of the others, for each card */
};

enum material {
    NOTHING,  /* the line without hostile cards */
    SKILLS,   /* questions of all kinds, a skill each */
    EXAMPLES, /* questions of all kinds, examples of one skill */
    TOPIC,    /* questions to one of the set's agents, a skill each */
    REWORDED, /* what one of the set's agents says, its name and praise */
    VICTIMS,  /* what the set's agents say, a skill each */
};

struct plot {
    const char *how;
    enum material material;
    size_t n_owners, cards_each;
    size_t n_texts; /* of a card; zero: as many as the set's agents have */
    bool is_praised;
};

static const struct plot plots[] = {
    {"no hostile cards", NOTHING, 0, 0, 0, false},
    {"256 questions as skills", SKILLS, 1, 1, 256, false},
    {"256 questions as skills", SKILLS, 1, 3, 256, false},
    {"256 questions as skills", SKILLS, 1, 30, 256, false},
    {"256 questions as skills", SKILLS, 10, 3, 256, false},
    {"the same, and owners praise each other", SKILLS, 10, 3, 256, true},
    {"as many questions as honest examples", EXAMPLES, 1, 30, 0, false},
    {"16 questions to one agent", TOPIC, 1, 30, 16, false},
    {"16 questions to one agent", TOPIC, 10, 3, 16, false},
    {"16 questions to one agent", TOPIC, 30, 1, 16, false},
    {"an agent's words, name and praise", REWORDED, 10, 3, 0, false},
    {"a skill for each agent", VICTIMS, 1, 3, 256, false},
};

_Static_assert(sizeof(plots) / sizeof(plots[0]) + 3 <= EVAL_RAIDS_MAX,
               "there is room for every construction");

struct questions {
    struct eval_route *route;
    const struct eval_query *list; /* the material */
    const struct eval_vectors *vectors;
    uint32_t *order; /* of it, by chance */
    size_t n, at;
    uint32_t *victims; /* the set's agents, by chance */
    uint32_t *asked;
    size_t n_asked;
    size_t n_honest; /* examples of one of the set's agents */
};

static enum err no_memory(const struct questions *q)
{
    return why_err(q->route->why, ERR_NOMEM, "out of memory");
}

/* The material. */

static struct str next_question(struct questions *q)
{
    const struct eval_query *one = &q->list[q->order[q->at]];

    q->at = (q->at + 1) % q->n;
    return str_head(one->text, SKILL_EXAMPLE_MAX);
}

static size_t take_questions(struct questions *q, struct str *out, size_t max)
{
    size_t n = max < q->n ? max : q->n;

    for (size_t i = 0; i < n; i++)
        out[i] = next_question(q);
    return n;
}

static size_t take_topic(const struct questions *q, uint32_t agent,
                         struct str *out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < q->n && n < max; i++) {
        const struct eval_query *one = &q->list[q->order[i]];

        if (one->n_agents && one->agents[0] == agent)
            out[n++] = str_head(one->text, SKILL_EXAMPLE_MAX);
    }
    return n;
}

static size_t take_victims(const struct questions *q, size_t nth,
                           struct str *out, size_t max)
{
    const struct eval_set *s = q->route->plan->set;
    size_t n = max < s->n_agents ? max : s->n_agents;

    for (size_t i = 0; i < n; i++) {
        const struct eval_agent *a =
            &s->agents[q->victims[(nth * n + i) % s->n_agents]];

        out[i] = a->description.n ? a->description : a->name;
    }
    return n;
}

/* A card. */

static enum err bring(struct questions *q, const struct plot *p, size_t nth)
{
    const struct eval_set *s = q->route->plan->set;
    uint32_t victim = q->victims[nth % s->n_agents];
    size_t max = p->n_texts ? p->n_texts : q->n_honest;
    struct str texts[AGENT_SKILLS_MAX];
    char name[AGENT_NAME_MAX + 1], words[AGENT_DESCRIPTION_MAX + 1];
    struct eval_card card = {.owner = nth / p->cards_each};
    size_t n = 0;

    snprintf(name, sizeof(name), "hostile-%zu", nth);
    if (p->material == SKILLS || p->material == EXAMPLES)
        n = take_questions(q, texts, max);
    else if (p->material == TOPIC)
        n = take_topic(q, victim, texts, max);
    else if (p->material == VICTIMS)
        n = take_victims(q, nth, texts, max);
    if (p->material == EXAMPLES)
        card.examples = (struct strs){texts, n};
    else
        card.skills = (struct strs){texts, n};
    card.description = n ? texts[0] : STR("helps with anything");
    if (p->material == REWORDED) {
        const struct eval_agent *a = &s->agents[victim];

        snprintf(words, sizeof(words), "%.*s: %.*s Better than %.*s, and fast.",
                 STR_ARG(a->name),
                 STR_ARG(str_head(a->description, sizeof(words) / 2)),
                 STR_ARG(a->name));
        card.description = str_of(words);
    }
    card.name = str_of(name);
    return eval_fleet_bring(q->route->fleet, &card, q->route->why);
}

static enum err praise(struct questions *q, const struct plot *p)
{
    enum err e = OK;

    for (size_t i = 0; i < p->n_owners * p->cards_each; i++)
        for (size_t by = 0; by < p->n_owners && !e; by++) {
            char name[32];

            if (by == i / p->cards_each)
                continue;
            snprintf(name, sizeof(name), "hostile-%zu", i);
            q->at = i * PRAISES % q->n; /* the same for all who praise */
            for (int k = 0; k < PRAISES && !e; k++) {
                uint32_t nth = q->order[q->at];

                e = eval_fleet_praise(
                    q->route->fleet, str_of(name), by, next_question(q),
                    eval_vector(q->vectors, nth), EVAL_BEGIN_MS);
            }
        }
    return e ? no_memory(q) : OK;
}

/* A raid. */

static bool is_for(const struct eval_query *q, uint32_t agent)
{
    for (size_t i = 0; i < q->n_agents; i++)
        if (q->agents[i] == agent)
            return true;
    return false;
}

/* Those for one agent are counted twice, also for themselves. */
static enum err ask_all(struct questions *q, struct eval_raid *out,
                        uint32_t agent, struct eval_raid *its)
{
    struct eval_route *route = q->route;
    size_t rounds = 1 + ASKED_LEAST / q->n_asked;

    for (size_t i = 0; i < rounds * q->n_asked; i++) {
        uint32_t nth = q->asked[i % q->n_asked];
        const struct eval_query *one = &route->plan->set->queries[nth];
        struct eval_choice c;

        if (eval_fleet_decide(route->fleet, eval_head(one->text),
                              eval_vector(&route->queries, nth), EVAL_BEGIN_MS,
                              &c))
            return no_memory(q);
        (void)eval_gate_count(&out->gate, one, &c);
        if (its && is_for(one, agent))
            (void)eval_gate_count(&its->gate, one, &c);
        out->n_captured += c.n && c.best[0].agent == EVAL_STRANGER;
    }
    return OK;
}

static enum err raid(struct questions *q, const struct plot *p)
{
    struct eval_run *run = q->route->run;
    struct eval_raid *out = &run->raids[run->n_raids++];
    size_t n = p->n_owners * p->cards_each;
    enum err e = eval_fleet_forget(q->route->fleet) ? no_memory(q) : OK;

    *out = (struct eval_raid){.how = p->how, .cards = n, .owners = p->n_owners};
    q->at = 0;
    for (size_t i = 0; i < n && !e; i++)
        e = bring(q, p, i);
    if (!e && p->is_praised)
        e = praise(q, p);
    if (!e)
        e = ask_all(q, out, EVAL_NOBODY, NULL);
    for (size_t i = 0; i < n && !e; i++) {
        char name[32];

        snprintf(name, sizeof(name), "hostile-%zu", i);
        e = eval_fleet_remove(q->route->fleet, i / p->cards_each, str_of(name),
                              q->route->why);
    }
    return e;
}

/* The price of it: an honest agent that the org has not rated yet, among others
 * that it has. Each in turn, with all messages, and with those that are meant
 * for it, which is compared with them while it is trusted. */
static enum err honest_strangers(struct questions *q)
{
    const struct eval_set *s = q->route->plan->set;
    struct eval_raid *all = &q->route->run->raids[q->route->run->n_raids];
    struct eval_raid *its = all + 1, *trusted = all + 2;
    size_t n = s->n_agents < HONEST_MAX ? s->n_agents : HONEST_MAX;
    struct eval_raid rest = {.how = ""};
    enum err e = OK;

    *all = (struct eval_raid){.how = "an honest stranger, all messages"};
    *its = (struct eval_raid){.how = "an honest stranger, its messages"};
    *trusted =
        (struct eval_raid){.how = "the same messages, and it is trusted"};
    q->route->run->n_raids += 3;
    for (size_t i = 0; i < 2 * n && !e; i++) {
        uint32_t one = q->victims[i / 2];

        if (eval_fleet_forget(q->route->fleet))
            return no_memory(q);
        eval_fleet_distrust(q->route->fleet, i % 2 ? one : EVAL_NOBODY);
        e = i % 2 ? ask_all(q, all, one, its) : ask_all(q, &rest, one, trusted);
    }
    eval_fleet_distrust(q->route->fleet, EVAL_NOBODY);
    return e;
}

/* The questions that are asked, and those that the cards are made of. */

static void count_honest(struct questions *q)
{
    const struct eval_set *s = q->route->plan->set;
    size_t n = s->n_agents * q->route->plan->shots;

    for (size_t i = 0; i < s->n_agents; i++)
        for (size_t k = 0; k < s->agents[i].n_skills; k++)
            n += s->agents[i].skills[k].examples.n;
    q->n_honest = s->n_agents ? n / s->n_agents : 0;
    q->n_honest = q->n_honest > SKILL_EXAMPLES_MAX ? SKILL_EXAMPLES_MAX
                  : q->n_honest                    ? q->n_honest
                                                   : 1;
}

static enum err prepare(struct questions *q)
{
    const struct eval_set *s = q->route->plan->set;
    bool is_halved = !s->n_examples;
    size_t n = is_halved ? s->n_queries : s->n_examples, kept = 0;

    q->list = is_halved ? s->queries : s->examples;
    q->order = calloc(n + 1, sizeof(*q->order));
    q->victims = calloc(s->n_agents + 1, sizeof(*q->victims));
    q->asked = calloc(s->n_queries + 1, sizeof(*q->asked));
    if (!q->order || !q->victims || !q->asked)
        return no_memory(q);
    eval_shuffle(q->order, n, CHANCE);
    eval_shuffle(q->victims, s->n_agents, CHANCE);
    eval_shuffle(q->asked, s->n_queries, CHANCE + 1);
    for (size_t i = 0; i < n; i++)
        if (q->list[q->order[i]].n_agents &&
            (!is_halved || q->order[i] % 2 == 0))
            q->order[kept++] = q->order[i];
    q->n = kept;
    for (size_t i = 0; i < s->n_queries && q->n_asked < ASKED_MAX; i++)
        if (s->queries[q->asked[i]].n_agents &&
            (!is_halved || q->asked[i] % 2 == 1))
            q->asked[q->n_asked++] = q->asked[i];
    count_honest(q);
    q->vectors = is_halved ? &q->route->queries : &q->route->examples;
    if (!is_halved && !q->route->examples.n) {
        enum err e = eval_route_embed_examples(q->route);

        if (e)
            return e;
    }
    return q->n && q->n_asked ? OK
                              : why_err(q->route->why, ERR_USAGE,
                                        "--capture questions needs queries "
                                        "that are in scope");
}

enum err eval_capture_questions(struct eval_route *route)
{
    struct questions q = {.route = route};
    enum err e = prepare(&q);

    for (size_t i = 0; i < sizeof(plots) / sizeof(plots[0]) && !e; i++)
        e = raid(&q, &plots[i]);
    if (!e && route->plan->relation == EVAL_RATED)
        e = honest_strangers(&q);
    free(q.order);
    free(q.victims);
    free(q.asked);
    return e;
}
