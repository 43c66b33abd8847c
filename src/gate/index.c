/* Which rules could be for a message, without asking all of them.
 *
 * A rule says whom it is for in up to three ways: from, to and type. For each
 * of the eight sets of ways there is a key made of the hashes of what is said,
 * and under each key the rules that say just that. A message is looked up with
 * the keys that any rule has, eight at most, and the rules found are merged by
 * their place. A hash that two share costs a comparison and nothing else, since
 * whatever is found is compared with the message.
 *
 * A rule for many of each would have a key for every combination: beyond
 * KEYS_MAX the longest list is left out of the key. */
#include "gate/internal.h"

#include <stdlib.h>

#include "base/fault.h"

enum { WAY_FROM = 1, WAY_TO = 2, WAY_TYPE = 4, KEYS_MAX = 64 };

struct rule_bucket {
    uint64_t key; /* zero: the slot is free */
    const uint32_t *ids;
    uint32_t first[N_SECTIONS + 1];
};

struct rule_index {
    struct rule_bucket *slots;
    uint64_t mask;
    unsigned ways; /* a bit for each set of ways that any rule says */
};

struct entry {
    uint64_t key;
    uint32_t id;
};

struct entries {
    struct entry *list;
    size_t n, max;
};

/* FNV-1a: nobody outside can put keys into the table, so that it need not be
 * one that cannot be guessed. */
static uint64_t hash_of(struct str s, bool has_case)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)(has_case ? s.p[i] : str_lower(s.p[i]))) *
            UINT64_C(1099511628211);
    return h;
}

static uint64_t key_of(unsigned ways, uint64_t from, uint64_t to, uint64_t type)
{
    uint64_t h = ways + 1;

    if (ways & WAY_FROM)
        h = (h ^ from) * UINT64_C(0x9e3779b97f4a7c15);
    if (ways & WAY_TO)
        h = (h ^ to ^ (h >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    if (ways & WAY_TYPE)
        h = (h ^ type ^ (h >> 31)) * UINT64_C(0x94d049bb133111eb);
    h ^= h >> 32;
    return h ? h : 1;
}

/* The ways that a rule is found by. */
static unsigned ways_of(const struct match *m)
{
    size_t from = m->from.n, to = m->to.n, type = m->type.n;

    while ((from ? from : 1) * (to ? to : 1) * (type ? type : 1) > KEYS_MAX) {
        if (from >= to && from >= type)
            from = 0;
        else if (to >= type)
            to = 0;
        else
            type = 0;
    }
    return (from ? WAY_FROM : 0u) | (to ? WAY_TO : 0u) | (type ? WAY_TYPE : 0u);
}

static uint64_t hash_at(const struct strs *list, unsigned is_used, size_t i,
                        bool has_case)
{
    return is_used ? hash_of(list->list[i], has_case) : 0;
}

/* Without a place to put them they are only counted. */
static void add_keys(struct entries *out, const struct match *m, uint32_t id)
{
    unsigned ways = ways_of(m);
    size_t n_from = ways & WAY_FROM ? m->from.n : 1;
    size_t n_to = ways & WAY_TO ? m->to.n : 1;
    size_t n_type = ways & WAY_TYPE ? m->type.n : 1;

    if (!out->list) {
        out->max += n_from * n_to * n_type;
        return;
    }
    for (size_t f = 0; f < n_from; f++)
        for (size_t t = 0; t < n_to; t++)
            for (size_t k = 0; k < n_type; k++)
                out->list[out->n++] = (struct entry){
                    key_of(ways, hash_at(&m->from, ways & WAY_FROM, f, false),
                           hash_at(&m->to, ways & WAY_TO, t, false),
                           hash_at(&m->type, ways & WAY_TYPE, k, true)),
                    id};
}

static int by_key(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static struct rule_bucket *slot_of(const struct rule_index *x, uint64_t key)
{
    uint64_t at = key & x->mask;

    while (x->slots[at].key && x->slots[at].key != key)
        at = (at + 1) & x->mask;
    return &x->slots[at];
}

/* Sorted, each once: one bucket for each run of a key. */
static void fill(const struct gate_rules *r, struct rule_index *x,
                 const struct entries *all, uint32_t *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n;) {
        struct rule_bucket *b = slot_of(x, all->list[i].key);
        size_t section = 0, begin = n;

        b->key = all->list[i].key;
        b->ids = ids + begin;
        for (; i < all->n && all->list[i].key == b->key; i++) {
            uint32_t id = all->list[i].id;

            if (n > begin && ids[n - 1] == id)
                continue; /* "Z" and "z" */
            while (section <= r->rules[id].section)
                b->first[section++] = (uint32_t)(n - begin);
            ids[n++] = id;
        }
        while (section <= N_SECTIONS)
            b->first[section++] = (uint32_t)(n - begin);
    }
}

static enum err make(struct gate_rules *r, struct entries *all)
{
    struct rule_index *x = arena_alloc(&r->arena, sizeof(*x));
    uint32_t *ids = arena_array(&r->arena, all->max + 1, sizeof(*ids));
    size_t n_slots = 16;

    while (n_slots < 2 * all->max)
        n_slots *= 2;
    if (!x || !ids)
        return ERR_NOMEM;
    x->slots = arena_array(&r->arena, n_slots, sizeof(*x->slots));
    if (!x->slots)
        return ERR_NOMEM;
    x->mask = n_slots - 1;
    for (size_t i = 0; i < r->n_rules; i++) {
        add_keys(all, &r->rules[i].match, (uint32_t)i);
        x->ways |= 1u << ways_of(&r->rules[i].match);
    }
    qsort(all->list, all->n, sizeof(*all->list), by_key);
    fill(r, x, all, ids);
    r->index = x;
    return OK;
}

enum err rules_index(struct gate_rules *r)
{
    struct entries all = {0};
    enum err e = ERR_NOMEM;

    if (!r->n_rules)
        return OK;
    for (size_t i = 0; i < r->n_rules; i++)
        add_keys(&all, &r->rules[i].match, (uint32_t)i);
    if (!FAULT("gate.index"))
        all.list = calloc(all.max, sizeof(*all.list));
    if (all.list)
        e = make(r, &all);
    free(all.list);
    return e;
}

void rules_pick(struct rule_pick *p, const struct gate_rules *r,
                const struct envelope *e)
{
    const struct rule_index *x = r->index;
    uint64_t from, to, type;

    p->rules = r;
    p->e = e;
    p->priority = e->priority;
    p->n_ways = 0;
    if (!x)
        return;
    from = hash_of(e->from, false);
    to = hash_of(e->to, false);
    type = hash_of(e->type, true);
    for (unsigned ways = 0; ways < RULE_WAYS; ways++)
        if (x->ways & 1u << ways) {
            struct rule_bucket *b = slot_of(x, key_of(ways, from, to, type));

            if (b->key)
                p->ways[p->n_ways++] = b;
        }
}

static bool has_name(const struct strs *list, struct str name)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq_nocase(list->list[i], name))
            return true;
    return list->n == 0;
}

static bool has_kind(const struct strs *list, struct str type)
{
    for (size_t i = 0; i < list->n; i++)
        if (str_eq(list->list[i], type))
            return true;
    return list->n == 0;
}

bool rule_fits(const struct rule *rule, const struct envelope *e,
               enum task_priority priority)
{
    const struct match *m = &rule->match;

    return (!m->priorities || m->priorities & 1u << priority) &&
           has_kind(&m->type, e->type) && has_name(&m->to, e->to) &&
           has_name(&m->from, e->from);
}

const struct rule *rules_next(struct rule_pick *p)
{
    for (;;) {
        size_t best = RULE_WAYS;
        const struct rule *rule;

        for (size_t i = 0; i < p->n_ways; i++)
            if (p->at[i] < p->end[i] &&
                (best == RULE_WAYS || *p->at[i] < *p->at[best]))
                best = i;
        if (best == RULE_WAYS)
            return NULL;
        rule = &p->rules->rules[*p->at[best]++];
        if (rule_fits(rule, p->e, p->priority))
            return rule;
    }
}

const struct rule *rules_first(struct rule_pick *p, enum section s)
{
    for (size_t i = 0; i < p->n_ways; i++) {
        p->at[i] = p->ways[i]->ids + p->ways[i]->first[s];
        p->end[i] = p->ways[i]->ids + p->ways[i]->first[s + 1];
    }
    return rules_next(p);
}
