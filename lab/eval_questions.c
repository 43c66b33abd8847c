/* Hostile cards made of users' questions. A card with ordinary questions is
 * close to every similar message, whichever agent the message is meant for; and
 * an attacker can have many cards and many names.
 *
 * The questions come from --train, or from half of the test queries, and then
 * the other half is measured. At most MEASURED_MAX queries are decided, in
 * random order, since an agent's share of the traffic depends on earlier
 * messages. Each attack is measured alone; the first line is without hostile
 * cards. */
#include "lab/eval_route.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

enum {
    MEASURED_MAX = 1000,
    MEASURED_LEAST = 200, /* fewer queries are repeated */
    HONEST_MAX = 20,      /* agents that are strangers, one by one */
    CHANCE = 1,
    PRAISES = 10, /* by each other owner, for each card */
};

enum material {
    NOTHING,  /* the line without hostile cards */
    SKILLS,   /* questions of all kinds, a skill each */
    EXAMPLES, /* questions of all kinds, as examples of one skill */
    TOPIC,    /* questions for one of the set's agents, a skill each */
    REWORDED, /* the text of one of the set's agents, its name and praise */
    VICTIMS,  /* the texts of the set's agents, a skill each */
};

struct attack {
    const char *how;
    enum material material;
    size_t n_owners, cards_each;
    size_t n_texts; /* of a card; zero: the mean of the set's agents */
    bool is_praised;
};

static const struct attack attacks[] = {
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

_Static_assert(sizeof(attacks) / sizeof(attacks[0]) + 3 <= EVAL_RAIDS_MAX,
               "there is room for every attack");

struct questions {
    struct eval_route *route;
    const struct eval_query *list; /* the material */
    const struct eval_vectors *vectors;
    uint32_t *order; /* of it, random */
    size_t n, at;
    uint32_t *victims; /* the set's agents, in random order */
    uint32_t *measured;
    size_t n_measured;
    size_t n_honest; /* mean number of examples of the set's agents */
};

/* The material. */

static struct str questions_next(struct questions *q)
{
    const struct eval_query *one = &q->list[q->order[q->at]];

    q->at = (q->at + 1) % q->n;
    return str_head(one->text, SKILL_EXAMPLE_MAX);
}

static size_t questions_take(struct questions *q, struct str *out, size_t max)
{
    size_t n = max < q->n ? max : q->n;

    for (size_t i = 0; i < n; i++)
        out[i] = questions_next(q);
    return n;
}

static size_t questions_take_topic(const struct questions *q, uint32_t agent,
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

static size_t questions_take_victims(const struct questions *q, size_t nth,
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

static enum err questions_add_newcomer(struct questions *q,
                                       const struct attack *p, size_t nth)
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
        n = questions_take(q, texts, max);
    else if (p->material == TOPIC)
        n = questions_take_topic(q, victim, texts, max);
    else if (p->material == VICTIMS)
        n = questions_take_victims(q, nth, texts, max);
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

static enum err questions_praise(struct questions *q, const struct attack *p)
{
    enum err e = OK;

    for (size_t i = 0; i < p->n_owners * p->cards_each; i++)
        for (size_t by = 0; by < p->n_owners && !e; by++) {
            char name[32];

            if (by == i / p->cards_each)
                continue;
            snprintf(name, sizeof(name), "hostile-%zu", i);
            q->at = i * PRAISES % q->n; /* the same for all owners */
            for (int k = 0; k < PRAISES && !e; k++) {
                uint32_t nth = q->order[q->at];

                e = eval_fleet_praise(
                    q->route->fleet, str_of(name), by, questions_next(q),
                    eval_vector(q->vectors, nth), EVAL_BEGIN_MS);
            }
        }
    return e ? why_err(q->route->why, ERR_NOMEM, "out of memory") : OK;
}

/* Queries for `agent` are also counted in `its`. */
static enum err questions_run(struct questions *q, struct eval_raid *out,
                              uint32_t agent, struct eval_raid *its)
{
    struct eval_route *route = q->route;
    size_t rounds = 1 + MEASURED_LEAST / q->n_measured;

    for (size_t i = 0; i < rounds * q->n_measured; i++) {
        uint32_t nth = q->measured[i % q->n_measured];
        const struct eval_query *one = &route->plan->set->queries[nth];
        struct eval_choice c;

        if (eval_fleet_decide(route->fleet, eval_head(one->text),
                              eval_vector(&route->queries, nth), EVAL_BEGIN_MS,
                              &c))
            return why_err(q->route->why, ERR_NOMEM, "out of memory");
        (void)eval_gate_count(&out->gate, one, &c);
        if (its && eval_query_names(one, agent))
            (void)eval_gate_count(&its->gate, one, &c);
        out->n_captured += c.n && c.best[0].agent == EVAL_STRANGER;
    }
    return OK;
}

static enum err questions_run_attack(struct questions *q,
                                     const struct attack *p)
{
    struct eval_run *run = q->route->run;
    struct eval_raid *out = &run->raids[run->n_raids++];
    size_t n = p->n_owners * p->cards_each;
    enum err e = OK;

    eval_fleet_forget(q->route->fleet);
    *out = (struct eval_raid){.how = p->how, .cards = n, .owners = p->n_owners};
    q->at = 0;
    for (size_t i = 0; i < n && !e; i++)
        e = questions_add_newcomer(q, p, i);
    if (!e && p->is_praised)
        e = questions_praise(q, p);
    if (!e)
        e = questions_run(q, out, EVAL_NOBODY, NULL);
    for (size_t i = 0; i < n && !e; i++) {
        char name[32];

        snprintf(name, sizeof(name), "hostile-%zu", i);
        e = eval_fleet_remove(q->route->fleet, i / p->cards_each, str_of(name),
                              q->route->why);
    }
    return e;
}

/* The cost of the defence: an honest agent that the org has not rated, among
 * others that it has. Measured for one agent after the other, with all messages
 * and with its own; the latter also while it is trusted, for comparison. */
static enum err questions_honest_strangers(struct questions *q)
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

        eval_fleet_forget(q->route->fleet);
        eval_fleet_distrust(q->route->fleet, i % 2 ? one : EVAL_NOBODY);
        e = i % 2 ? questions_run(q, all, one, its)
                  : questions_run(q, &rest, one, trusted);
    }
    eval_fleet_distrust(q->route->fleet, EVAL_NOBODY);
    return e;
}

static void questions_count_honest(struct questions *q)
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

static enum err questions_prepare(struct questions *q)
{
    const struct eval_set *s = q->route->plan->set;
    bool is_halved = !s->n_examples;
    size_t n = is_halved ? s->n_queries : s->n_examples, kept = 0;

    q->list = is_halved ? s->queries : s->examples;
    q->order = mem_array(n, sizeof(*q->order));
    q->victims = mem_array(s->n_agents, sizeof(*q->victims));
    q->measured = mem_array(s->n_queries, sizeof(*q->measured));
    eval_shuffle(q->order, n, CHANCE);
    eval_shuffle(q->victims, s->n_agents, CHANCE);
    eval_shuffle(q->measured, s->n_queries, CHANCE + 1);
    for (size_t i = 0; i < n; i++)
        if (q->list[q->order[i]].n_agents &&
            (!is_halved || q->order[i] % 2 == 0))
            q->order[kept++] = q->order[i];
    q->n = kept;
    for (size_t i = 0; i < s->n_queries && q->n_measured < MEASURED_MAX; i++)
        if (s->queries[q->measured[i]].n_agents &&
            (!is_halved || q->measured[i] % 2 == 1))
            q->measured[q->n_measured++] = q->measured[i];
    questions_count_honest(q);
    q->vectors = is_halved ? &q->route->queries : &q->route->examples;
    if (!is_halved && !q->route->examples.n) {
        enum err e = eval_route_embed_examples(q->route);

        if (e)
            return e;
    }
    return q->n && q->n_measured ? OK
                                 : why_err(q->route->why, ERR_USAGE,
                                           "--capture questions needs queries "
                                           "in scope");
}

enum err eval_capture_questions(struct eval_route *route)
{
    struct questions q = {.route = route};
    enum err e = questions_prepare(&q);

    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]) && !e; i++)
        e = questions_run_attack(&q, &attacks[i]);
    if (!e && route->plan->relation == EVAL_RATED)
        e = questions_honest_strangers(&q);
    free(q.order);
    free(q.victims);
    free(q.measured);
    return e;
}
