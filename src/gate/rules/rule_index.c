/* Finds the rules that could be for a message without looking at all of them.
 *
 * A rule restricts messages in up to three ways: from, to and type. For each of
 * the eight combinations of ways there is a key made of the hashes of the
 * names, and under each key the rules with exactly these restrictions. A
 * message is looked up with every combination that some rule uses, at most
 * eight, and the rules found are merged in the order of the file. A hash
 * collision costs one comparison and nothing else, since every rule found is
 * compared with the message.
 *
 * A rule with long lists would need a key for every combination of their
 * elements: beyond KEYS_MAX the longest list is left out of the key. */
#include "gate/rules/internal.h"

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
    unsigned ways; /* a bit for each combination of ways in use */
};

struct entry {
    uint64_t key;
    uint32_t id;
};

struct entries {
    struct entry *list;
    size_t n, max;
};

/* FNV-1a: only the rules file puts keys into the table, so the hash need not
 * resist attacks. */
static uint64_t hash_name(struct str s, bool has_case)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)(has_case ? s.p[i] : str_lower(s.p[i]))) *
            UINT64_C(1099511628211);
    return h;
}

static uint64_t ways_key(unsigned ways, uint64_t from, uint64_t to,
                         uint64_t type)
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

/* The ways by which a rule is found. */
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

static uint64_t hash_element(const struct strs *list, unsigned is_used,
                             size_t i, bool has_case)
{
    return is_used ? hash_name(list->list[i], has_case) : 0;
}

/* Without out->list they are only counted. */
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
                    ways_key(ways,
                             hash_element(&m->from, ways & WAY_FROM, f, false),
                             hash_element(&m->to, ways & WAY_TO, t, false),
                             hash_element(&m->type, ways & WAY_TYPE, k, true)),
                    id};
}

static int compare_entries(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static struct rule_bucket *index_slot(const struct rule_index *x, uint64_t key)
{
    uint64_t at = key & x->mask;

    while (x->slots[at].key && x->slots[at].key != key)
        at = (at + 1) & x->mask;
    return &x->slots[at];
}

/* Entries are sorted; each run of one key becomes a bucket, without doubles. */
static void fill_buckets(const struct gate_rules *r, struct rule_index *x,
                         const struct entries *all, uint32_t *ids)
{
    size_t n = 0;

    for (size_t i = 0; i < all->n;) {
        struct rule_bucket *b = index_slot(x, all->list[i].key);
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

enum err rules_index(struct gate_rules *r)
{
    struct rule_index *x = arena_alloc(&r->arena, sizeof(*x));
    struct entries all = {0};
    size_t n_slots = 16;
    uint32_t *ids;
    enum err e = ERR_NOMEM;

    if (!r->n_rules)
        return OK;
    for (size_t i = 0; i < r->n_rules; i++)
        add_keys(&all, &r->rules[i].match, (uint32_t)i);
    while (n_slots < 2 * all.max)
        n_slots *= 2;
    ids = arena_array(&r->arena, all.max + 1, sizeof(*ids));
    if (x)
        x->slots = arena_array(&r->arena, n_slots, sizeof(*x->slots));
    if (!FAULT("gate.index"))
        all.list = calloc(all.max, sizeof(*all.list));
    if (x && x->slots && ids && all.list) {
        x->mask = n_slots - 1;
        for (size_t i = 0; i < r->n_rules; i++) {
            add_keys(&all, &r->rules[i].match, (uint32_t)i);
            x->ways |= 1u << ways_of(&r->rules[i].match);
        }
        qsort(all.list, all.n, sizeof(*all.list), compare_entries);
        fill_buckets(r, x, &all, ids);
        r->index = x;
        e = OK;
    }
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
    from = hash_name(e->from, false);
    to = hash_name(e->to, false);
    type = hash_name(e->type, true);
    for (unsigned ways = 0; ways < RULE_WAYS; ways++)
        if (x->ways & 1u << ways) {
            struct rule_bucket *b =
                index_slot(x, ways_key(ways, from, to, type));

            if (b->key)
                p->ways[p->n_ways++] = b;
        }
}

bool rule_fits(const struct rule *rule, const struct envelope *e,
               enum task_priority priority)
{
    const struct match *m = &rule->match;

    return (!m->priorities || m->priorities & 1u << priority) &&
           (!m->type.n || match_has(m->type, e->type)) &&
           (!m->to.n || match_has_name(m->to, e->to)) &&
           (!m->from.n || match_has_name(m->from, e->from));
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
