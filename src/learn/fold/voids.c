/* Voided verdicts stay in the store, for auditors; a fold leaves them out. A
 * fold goes forward, so voids, which come later than the verdicts they cover,
 * are collected first.
 *
 * The first verdict about a decision counts, and later ones were recorded as
 * COUNTS_NOT. If the first is voided, the next takes its place, provided that
 * it was given before the void: so the state is as if the voided verdicts had
 * never been given. Verdicts after the void stay as they were recorded;
 * otherwise a later fold would differ from the running server's state. */
#include "learn/fold/internal.h"

#include <stdlib.h>

#include "base/mem.h"

struct void_target {
    struct str name; /* "user:bob", lower case; allocated behind it */
    int64_t seq;     /* its latest void */
};

/* A decision with a voided verdict. */
struct void_decision {
    struct str id; /* into `bytes` */
    struct id bytes;
    int64_t upto; /* the void's number */
    enum outcome_counts counts;
};

struct learn_voids {
    struct map targets, decisions;
};

struct learn_voids *learn_voids_new(const uint64_t seed[2])
{
    struct learn_voids *v = mem_new(sizeof(*v));

    map_init(&v->targets, LEARN_VOIDS_MAX, seed);
    map_init(&v->decisions, LEARN_VOIDED_MAX, seed);
    return v;
}

void learn_voids_free(struct learn_voids *v)
{
    const struct map_slot *slot;
    size_t at;

    if (!v)
        return;
    for (at = 0; (slot = map_next(&v->targets, &at));)
        free(slot->value);
    for (at = 0; (slot = map_next(&v->decisions, &at));)
        free(slot->value);
    map_fini(&v->targets);
    map_fini(&v->decisions);
    free(v);
}

enum err learn_voids_add(struct learn_voids *v, const struct outcome *o)
{
    char lower[SCOPE_MAX];
    struct str name = str_lowered(o->scope, lower, sizeof(lower));
    struct void_target *t = map_get(&v->targets, name);
    enum err e;

    if (o->kind != OUTCOME_VOID || o->scope.n > SCOPE_MAX ||
        (!str_starts(o->scope, STR("user:")) &&
         !str_starts(o->scope, STR("owner:"))))
        return ERR_SYNTAX;
    if (t) {
        t->seq = o->seq > t->seq ? o->seq : t->seq;
        return OK;
    }
    t = mem_new(sizeof(*t) + name.n);
    memcpy(t + 1, name.p, name.n);
    t->name = (struct str){(char *)(t + 1), name.n};
    t->seq = o->seq;
    e = map_put(&v->targets, t->name, t);
    if (e)
        free(t);
    return e;
}

/* The number of the void that covers a verdict by this name; zero: none. */
static int64_t covered_upto(const struct learn_voids *v, struct str kind,
                            struct str name, int64_t seq)
{
    char key[SCOPE_MAX];
    const struct void_target *t;

    if (!name.n || kind.n + name.n > sizeof(key))
        return 0;
    memcpy(key, kind.p, kind.n);
    (void)str_lowered(name, key + kind.n, sizeof(key) - kind.n);
    t = map_get(&v->targets, (struct str){key, kind.n + name.n});
    return t && t->seq > seq ? t->seq : 0;
}

/* A user's verdicts are those that they gave, and those that the job derived
 * from their messages. An owner's include those about the owner's agents. */
static int64_t voided_upto(const struct learn_voids *v, const struct outcome *o)
{
    struct str by = o->by.n ? o->by : o->requester;
    const int64_t upto[] = {
        covered_upto(v, STR("user:"), by, o->seq),
        covered_upto(v, STR("owner:"), by, o->seq),
        covered_upto(v, STR("owner:"), o->owner, o->seq),
        covered_upto(v, STR("owner:"), o->right_owner, o->seq),
    };
    int64_t most = 0;

    if (o->kind != OUTCOME_VERDICT && o->kind != OUTCOME_CORRECTION &&
        o->kind != OUTCOME_FEEDBACK)
        return 0;
    for (size_t i = 0; i < sizeof(upto) / sizeof(*upto); i++)
        most = upto[i] > most ? upto[i] : most;
    return most;
}

bool learn_voids_cover(const struct learn_voids *v, const struct outcome *o)
{
    return voided_upto(v, o) > 0;
}

static bool is_verdict(const struct outcome *o)
{
    return o->verdict == VERDICT_POSITIVE || o->verdict == VERDICT_NEGATIVE;
}

/* The next verdict about that decision counts instead. Above the limit it stays
 * one that does not count. */
static enum err voids_remember(struct learn_voids *v, const struct outcome *o,
                               int64_t upto)
{
    struct void_decision *d;
    enum err e;

    if (o->counts == COUNTS_NOT || !is_verdict(o) ||
        v->decisions.n == LEARN_VOIDED_MAX || !o->decision_id.text[0] ||
        map_get(&v->decisions, str_of(o->decision_id.text)))
        return OK;
    d = mem_new(sizeof(*d));
    d->bytes = o->decision_id;
    d->id = str_of(d->bytes.text);
    d->upto = upto;
    d->counts = o->counts;
    e = map_put(&v->decisions, d->id, d);
    if (e)
        free(d);
    return e;
}

enum err learn_voids_judge(struct learn_voids *v, struct outcome *o,
                           bool *is_void)
{
    int64_t upto = v->targets.n ? voided_upto(v, o) : 0;
    struct void_decision *d;

    *is_void = upto > 0;
    if (*is_void)
        return voids_remember(v, o, upto);
    if (o->counts != COUNTS_NOT || !is_verdict(o) || !v->decisions.n)
        return OK;
    d = map_get(&v->decisions, str_of(o->decision_id.text));
    if (d && o->seq < d->upto) {
        o->counts = d->counts;
        map_take(&v->decisions, d->id);
        free(d);
    }
    return OK;
}
