/* The events and keys that still count, in memory: events by reference, keys by
 * themselves. The rows are the truth (event_table).
 *
 * A key has what is committed, `seen`, and the claims of messages that are not
 * committed yet, so that even an immediate repeat is recognized. A message that
 * is not committed leaves the key as it was. */
#include "gate/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

struct reference {
    struct list events; /* oldest first */
    size_t n;
    size_t key_bytes;
    char key[];
};

struct event {
    struct list_node node, age_node;
    struct reference *reference;
    int64_t until_ms;
    struct gate_event e;
    char strings[];
};

struct mark_seen {
    int64_t at_ms, until_ms;
    struct id message_id;
    struct str reference;
    char text[];
};

struct mark {
    struct gate_key key;
    struct timer end; /* the end of `seen` */
    struct mark_seen *seen;
    struct list claims;
};

void past_init(struct past *p, const uint64_t seed[2])
{
    *p =
        (struct past){.max_events = PAST_EVENTS_MAX, .max_keys = PAST_KEYS_MAX};
    map_init(&p->references, PAST_EVENTS_MAX, seed);
    map_init(&p->keys, PAST_KEYS_MAX + 1, seed);
    list_init(&p->events);
    timers_init(&p->ends);
}

static struct str reference_key(char *out, struct str scope,
                                struct str reference)
{
    if (scope.n)
        memcpy(out, scope.p, scope.n);
    out[scope.n] = '\0';
    if (reference.n)
        memcpy(out + scope.n + 1, reference.p, reference.n);
    return (struct str){out, scope.n + 1 + reference.n};
}

enum { KEY_BYTES = 2 * PRINCIPAL_NAME_MAX + ENVELOPE_REFERENCE_MAX };

enum err past_reserve(struct past *p)
{
    return map_reserve(&p->references, PAST_RESERVE);
}

/* NULL: none. */

static struct reference *find_reference(const struct past *p, struct str scope,
                                        struct str reference)
{
    char key[KEY_BYTES];

    if (scope.n + 1 + reference.n > sizeof(key))
        return NULL;
    return map_get(&p->references, reference_key(key, scope, reference));
}

static struct reference *get_reference(struct past *p, struct str scope,
                                       struct str reference)
{
    struct reference *r = find_reference(p, scope, reference);
    size_t n = scope.n + 1 + reference.n;

    if (r || n > KEY_BYTES)
        return r;
    r = mem_new(sizeof(*r) + n);
    list_init(&r->events);
    r->key_bytes = n;
    if (map_put(&p->references, reference_key(r->key, scope, reference), r) ==
        OK)
        return r;
    free(r);
    return NULL;
}

static void release_reference(struct past *p, struct reference *r)
{
    if (r->n)
        return;
    map_take(&p->references, (struct str){r->key, r->key_bytes});
    free(r);
}

static void forget_event(struct past *p, struct event *e)
{
    struct reference *r = e->reference;

    list_remove(&e->node);
    list_remove(&e->age_node);
    p->n_events--;
    r->n--;
    free(e);
    release_reference(p, r);
}

static struct event *event_new(const struct gate_event *g)
{
    size_t n = g->from.n + g->to.n + g->type.n + g->message_id.n + g->task_id.n;
    struct event *e = mem_new(sizeof(*e) + n);
    char *at = e->strings;

    e->e = *g;
    e->e.from = str_pack(&at, g->from);
    e->e.to = str_pack(&at, g->to);
    e->e.type = str_pack(&at, g->type);
    e->e.message_id = str_pack(&at, g->message_id);
    e->e.task_id = str_pack(&at, g->task_id);
    return e;
}

static struct event *oldest_event(const struct list *l, size_t offset)
{
    struct list_node *n = list_first(l);

    return n ? (struct event *)(void *)((char *)n - offset) : NULL;
}

static bool is_same_event(const struct gate_event *a,
                          const struct gate_event *b)
{
    return a->approved == b->approved && str_eq(a->type, b->type) &&
           str_eq_nocase(a->from, b->from) && str_eq_nocase(a->to, b->to);
}

/* The oldest event that a newer one replaces, since only the newest of each
 * kind is looked up. If all differ, the oldest. */
static struct event *find_replaceable(const struct reference *r)
{
    const struct list *l = &r->events;

    for (struct list_node *n = list_first(l); n; n = list_next(l, n)) {
        struct event *e = LIST_OF(n, struct event, node);

        for (struct list_node *m = list_next(l, n); m; m = list_next(l, m))
            if (is_same_event(&e->e, &LIST_OF(m, struct event, node)->e))
                return e;
    }
    return oldest_event(l, offsetof(struct event, node));
}

enum err past_add_event(struct past *p, const struct past_event *event,
                        int64_t until_ms)
{
    struct reference *r;
    struct event *e;

    if (p->n_events == p->max_events) {
        forget_event(
            p, oldest_event(&p->events, offsetof(struct event, age_node)));
        p->forgotten_total++;
    }
    r = get_reference(p, event->scope, event->reference);
    if (!r)
        return ERR_NOMEM;
    e = event_new(&event->e);
    e->reference = r;
    e->until_ms = until_ms;
    list_append(&r->events, &e->node);
    list_append(&p->events, &e->age_node);
    p->n_events++;
    if (++r->n > GATE_EVENTS_MAX)
        forget_event(p, find_replaceable(r));
    return OK;
}

/* Merge two lists that are in order of time. */
static size_t merge_events(const struct reference *a, const struct reference *b,
                           struct gate_event *out)
{
    struct list_node *x = a ? list_first(&a->events) : NULL;
    struct list_node *y = b ? list_first(&b->events) : NULL;
    size_t n = 0;

    while (x || y) {
        const struct event *e = x ? LIST_OF(x, struct event, node) : NULL;
        const struct event *f = y ? LIST_OF(y, struct event, node) : NULL;

        if (e && (!f || e->e.at_ms <= f->e.at_ms)) {
            out[n++] = e->e;
            x = list_next(&a->events, x);
        } else {
            out[n++] = f->e;
            y = list_next(&b->events, y);
        }
    }
    return n;
}

/* Drop the event that find_replaceable would choose if all had one
 * reference. */
static size_t drop_replaceable(struct gate_event *all, size_t n)
{
    size_t i = 0, k;

    for (; i < n; i++) {
        for (k = i + 1; k < n && !is_same_event(&all[i], &all[k]); k++)
            ;
        if (k < n)
            break;
    }
    i = i < n ? i : 0;
    memmove(all + i, all + i + 1, (n - i - 1) * sizeof(*all));
    return n - 1;
}

size_t past_events(const struct past *p, struct str scope, struct str reference,
                   struct gate_event *out, size_t max)
{
    const struct reference *own =
        scope.n ? find_reference(p, scope, reference) : NULL;
    const struct reference *all = find_reference(p, STR(""), reference);
    struct gate_event both[2 * GATE_EVENTS_MAX];
    size_t n = merge_events(own, all, both);

    while (n > max)
        n = drop_replaceable(both, n);
    if (n)
        memcpy(out, both, n * sizeof(*out));
    return n;
}

static struct str key_bytes_of(const struct gate_key *k)
{
    return (struct str){(const char *)k->bits, sizeof(k->bits)};
}

static void mark_free(struct past *p, struct mark *m)
{
    timers_cancel(&p->ends, &m->end);
    map_take(&p->keys, key_bytes_of(&m->key));
    free(m->seen);
    free(m);
}

static void on_mark_end(struct timer *t)
{
    (void)t; /* past_forget removes it */
}

/* Make room by forgetting the key that ends first. */
static bool make_mark_room(struct past *p)
{
    struct mark *m;

    if (p->keys.n < p->max_keys)
        return true;
    if (!p->ends.n)
        return false; /* no key is committed */
    m = LIST_OF(p->ends.heap[0], struct mark, end);
    timers_cancel(&p->ends, &m->end);
    p->forgotten_total++;
    free(m->seen);
    m->seen = NULL;
    if (list_is_empty(&m->claims))
        mark_free(p, m);
    return p->keys.n < p->max_keys;
}

static struct mark *get_mark(struct past *p, const struct gate_key *key)
{
    struct mark *m = map_get(&p->keys, key_bytes_of(key));

    if (m || !make_mark_room(p))
        return m;
    m = mem_new(sizeof(*m));
    m->key = *key;
    m->end.fire = on_mark_end;
    list_init(&m->claims);
    if (map_put(&p->keys, key_bytes_of(&m->key), m) == OK)
        return m;
    free(m);
    return NULL;
}

static void release_mark(struct past *p, struct mark *m)
{
    if (!m->seen && list_is_empty(&m->claims))
        mark_free(p, m);
}

static struct mark_seen *seen_new(int64_t at_ms, int64_t until_ms,
                                  struct str reference)
{
    struct mark_seen *s = mem_new(sizeof(*s) + reference.n);

    s->at_ms = at_ms;
    s->until_ms = until_ms;
    s->reference = (struct str){s->text, reference.n};
    if (reference.n)
        memcpy(s->text, reference.p, reference.n);
    return s;
}

static void set_seen(struct past *p, struct mark *m, struct mark_seen *s)
{
    free(m->seen);
    m->seen = s;
    timers_set(&p->ends, &m->end, s->until_ms);
}

enum err past_claim(struct past *p, struct mark_claim *c,
                    const struct gate_key *key, const struct msg *m,
                    int64_t until_ms)
{
    struct mark *mark = get_mark(p, key);

    *c = (struct mark_claim){.m = m, .mark = mark};
    if (!mark)
        return ERR_NOMEM;
    c->seen = seen_new(m->in.at_ms, until_ms, m->gate.envelope.reference);
    list_append(&mark->claims, &c->node);
    return OK;
}

void past_confirm(struct past *p, struct mark_claim *c)
{
    c->seen->message_id = c->m->task.message_id;
    list_remove(&c->node);
    set_seen(p, c->mark, c->seen);
    c->seen = NULL;
    c->mark = NULL;
}

void past_give_up(struct past *p, struct mark_claim *c)
{
    list_remove(&c->node);
    free(c->seen);
    c->seen = NULL;
    release_mark(p, c->mark);
    c->mark = NULL;
}

static const struct mark_claim *newest_claim(const struct mark *m)
{
    if (!m || list_is_empty(&m->claims))
        return NULL;
    return LIST_OF(m->claims.head.prev, struct mark_claim, node);
}

const struct msg *past_claimant(const struct past *p,
                                const struct gate_key *key)
{
    const struct mark_claim *c =
        newest_claim(map_get(&p->keys, key_bytes_of(key)));

    return c ? c->m : NULL;
}

bool past_seen(const struct past *p, const struct gate_key *key, int64_t now_ms,
               struct gate_seen *out)
{
    const struct mark *m = map_get(&p->keys, key_bytes_of(key));
    const struct mark_claim *c = newest_claim(m);

    if (c)
        *out =
            (struct gate_seen){.at_ms = c->seen->at_ms,
                               .message_id = str_of(c->m->task.message_id.text),
                               .reference = c->seen->reference};
    else if (m && m->seen && m->seen->until_ms > now_ms)
        *out =
            (struct gate_seen){.at_ms = m->seen->at_ms,
                               .message_id = str_of(m->seen->message_id.text),
                               .reference = m->seen->reference};
    else
        return false;
    return true;
}

enum err past_mark(struct past *p, const struct gate_key *key, int64_t at_ms,
                   int64_t until_ms, struct str message_id,
                   struct str reference)
{
    struct mark *m = get_mark(p, key);

    if (!m)
        return ERR_NOMEM;
    set_seen(p, m, seen_new(at_ms, until_ms, reference));
    m->seen->message_id = id_from(message_id);
    return OK;
}

void past_forget(struct past *p, int64_t now_ms, size_t limit)
{
    for (size_t i = 0; i < limit; i++) {
        struct event *e =
            oldest_event(&p->events, offsetof(struct event, age_node));

        if (!e || e->until_ms > now_ms)
            break;
        forget_event(p, e);
    }
    for (size_t i = 0; i < limit && timers_next_ms(&p->ends) <= now_ms; i++) {
        struct mark *m = LIST_OF(p->ends.heap[0], struct mark, end);

        timers_cancel(&p->ends, &m->end);
        free(m->seen);
        m->seen = NULL;
        release_mark(p, m);
    }
}

void past_fini(struct past *p)
{
    struct event *e;
    size_t at = 0;
    const struct map_slot *slot;

    while ((e = oldest_event(&p->events, offsetof(struct event, age_node))))
        forget_event(p, e);
    timers_fini(&p->ends);
    while ((slot = map_next(&p->keys, &at))) {
        struct mark *m = slot->value;

        assert(list_is_empty(&m->claims));
        free(m->seen);
        free(m);
    }
    map_fini(&p->keys);
    map_fini(&p->references);
}

bool past_check(const struct past *p)
{
    size_t at = 0, n_events = 0;
    const struct map_slot *slot;

    while ((slot = map_next(&p->references, &at))) {
        const struct reference *r = slot->value;
        size_t n = 0;

        for (struct list_node *node = list_first(&r->events); node;
             node = list_next(&r->events, node), n++)
            if (LIST_OF(node, struct event, node)->reference != r)
                return false;
        if (n != r->n || !n || n > GATE_EVENTS_MAX)
            return false;
        n_events += n;
    }
    for (at = 0; (slot = map_next(&p->keys, &at));) {
        const struct mark *m = slot->value;

        if (!m->seen && list_is_empty(&m->claims))
            return false;
        if ((m->seen != NULL) != timer_is_set(&m->end))
            return false;
    }
    return n_events == p->n_events && n_events <= p->max_events &&
           timers_check(&p->ends) && map_check(&p->keys) &&
           map_check(&p->references);
}
