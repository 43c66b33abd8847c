/* Delegations in memory: found by their key, their task and their request,
 * counted for who asked, standing with their parent. */
#include "hire/internal.h"

#include <assert.h>
#include <stdlib.h>

#include "model/agent.h"

enum { REQUEST_MAX = AGENT_NAME_MAX + 1 + DELEGATION_ID_MAX };

struct hires *hire_new(const struct hire_opts *opts)
{
    struct hires *h = FAULT("hire.new") ? NULL : calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->opts = *opts;
    map_init(&h->by_key, HIRES_MAX, opts->seed);
    map_init(&h->by_task, HIRES_MAX, opts->seed);
    map_init(&h->by_request, HIRES_MAX, opts->seed);
    map_init(&h->hirers, HIRES_MAX, opts->seed);
    map_init(&h->kids, HIRES_MAX, opts->seed);
    for (int i = 0; i <= DELEGATION_HAD; i++)
        list_init(&h->by_state[i]);
    list_init(&h->ending);
    h->end_job.run = hire_on_ending;
    return h;
}

void hire_set(struct hires *h, const struct hire_settings *s)
{
    h->opts.settings = *s;
}

/* Who asks. */

struct hirer *hirer_of(struct hires *h, struct str agent)
{
    char low[AGENT_NAME_MAX];
    struct str name = str_lowered(agent, low, sizeof(low));
    struct hirer *r = map_get(&h->hirers, name);

    if (r)
        return r;
    r = FAULT("hire.hirer") ? NULL : calloc(1, sizeof(*r) + name.n);
    if (!r)
        return NULL;
    r->name_bytes = name.n;
    memcpy(r->name, name.p, name.n);
    if (map_put(&h->hirers, (struct str){r->name, name.n}, r) == OK)
        return r;
    free(r);
    return NULL;
}

void hirer_look(struct hires *h, struct hirer *r)
{
    if (r->n_open || r->n_claimed)
        return;
    map_take(&h->hirers, (struct str){r->name, r->name_bytes});
    free(r);
}

/* Whose child it is. */

static struct kids *kids_of(struct hires *h, struct str id)
{
    struct kids *k = map_get(&h->kids, id);

    if (k)
        return k;
    k = FAULT("hire.kids") ? NULL : calloc(1, sizeof(*k) + id.n);
    if (!k)
        return NULL;
    list_init(&k->list);
    k->id_bytes = id.n;
    memcpy(k->id, id.p, id.n);
    if (map_put(&h->kids, (struct str){k->id, id.n}, k) == OK)
        return k;
    free(k);
    return NULL;
}

static void kids_look(struct hires *h, struct kids *k)
{
    if (!list_is_empty(&k->list) || k->n_claimed)
        return;
    map_take(&h->kids, (struct str){k->id, k->id_bytes});
    free(k);
}

/* One delegation. */

static struct str keep(char **at, struct str s)
{
    struct str kept = {*at, s.n};

    if (s.n)
        memcpy(*at, s.p, s.n);
    *at += s.n;
    return kept;
}

static struct str request_key(struct str agent, struct str id,
                              char out[REQUEST_MAX])
{
    struct str low = str_lowered(agent, out, AGENT_NAME_MAX);

    out[low.n] = '\n';
    if (id.n)
        memcpy(out + low.n + 1, id.p, id.n);
    return (struct str){out, low.n + 1 + id.n};
}

struct hire *hire_make(struct hires *h, const struct delegation *d)
{
    size_t n =
        2 * (d->agent.n + d->original_id.n) + d->parent_id.n + d->root_id.n + 1;
    char key[REQUEST_MAX];
    struct hire *x = FAULT("hire.make") ? NULL : calloc(1, sizeof(*x) + n);
    char *at;

    if (!x)
        return NULL;
    at = x->strings;
    x->h = h;
    x->d = *d;
    x->d.agent = keep(&at, d->agent);
    x->d.original_id = keep(&at, d->original_id);
    x->d.parent_id = keep(&at, d->parent_id);
    x->d.root_id = keep(&at, d->root_id);
    x->request = keep(&at, request_key(d->agent, d->original_id, key));
    return x;
}

struct hire *hire_of_task(const struct hires *h, struct str task_id)
{
    return map_get(&h->by_task, task_id);
}

struct hire *hire_of_request(const struct hires *h, struct str agent,
                             struct str original_id)
{
    char key[REQUEST_MAX];

    return original_id.n
               ? map_get(&h->by_request, request_key(agent, original_id, key))
               : NULL;
}

/* No longer with its parent, nor counted. */
static void stand_down(struct hire *x)
{
    struct hires *h = x->h;

    if (x->kids) {
        list_remove(&x->kid_node);
        kids_look(h, x->kids);
        x->kids = NULL;
    }
    if (x->hirer) {
        x->hirer->n_open--;
        hirer_look(h, x->hirer);
        x->hirer = NULL;
    }
}

enum err hire_claim(struct hire *x)
{
    struct hires *h = x->h;
    size_t n = h->n_claimed + 1;
    struct hirer *r = hirer_of(h, x->d.agent);
    struct kids *k = NULL;

    if (!r)
        return ERR_NOMEM;
    r->n_claimed++;
    x->hirer = r;
    if (x->d.parent_id.n) {
        k = kids_of(h, x->d.parent_id);
        if (!k)
            return ERR_NOMEM;
        k->n_claimed++;
        x->kids = k;
    }
    if (map_reserve(&h->by_key, n) || map_reserve(&h->by_task, n) ||
        map_reserve(&h->by_request, n))
        return ERR_NOMEM;
    h->n_claimed++;
    x->is_claimed = true;
    return OK;
}

void hire_unclaim(struct hire *x)
{
    if (x->is_claimed)
        x->h->n_claimed--;
    if (x->kids) {
        x->kids->n_claimed--;
        kids_look(x->h, x->kids);
    }
    if (x->hirer) {
        x->hirer->n_claimed--;
        hirer_look(x->h, x->hirer);
    }
    free(x);
}

/* What was reserved cannot fail. */
static void put(struct map *m, struct str key, struct hire *x)
{
    enum err e = map_put(m, key, x);

    assert(!e);
    (void)e;
}

void hire_enter(struct hire *x)
{
    struct hires *h = x->h;

    h->n_claimed--;
    x->is_claimed = false;
    x->hirer->n_claimed--;
    x->hirer->n_open++;
    if (x->kids) {
        x->kids->n_claimed--;
        list_append(&x->kids->list, &x->kid_node);
    }
    put(&h->by_key, str_of(x->d.key.text), x);
    put(&h->by_task, str_of(x->d.task_id.text), x);
    if (x->d.original_id.n)
        put(&h->by_request, x->request, x);
    h->n++;
    list_append(&h->by_state[x->d.state], &x->node);
}

void hire_move(struct hire *x, enum delegation_state to)
{
    list_remove(&x->node);
    x->d.state = to;
    list_append(&x->h->by_state[to], &x->node);
    if (to != DELEGATION_OPEN)
        stand_down(x);
}

static void take(struct map *m, struct str key, const struct hire *x)
{
    if (map_get(m, key) == x)
        map_take(m, key);
}

void hire_drop(struct hire *x)
{
    struct hires *h = x->h;

    stand_down(x);
    take(&h->by_key, str_of(x->d.key.text), x);
    take(&h->by_task, str_of(x->d.task_id.text), x);
    take(&h->by_request, x->request, x);
    list_remove(&x->node);
    if (list_has(&x->ending_node))
        list_remove(&x->ending_node);
    h->n--;
    free(x);
}

void hire_free(struct hires *h)
{
    if (!h)
        return;
    loop_not_at_end(&h->end_job);
    for (int i = 0; i <= DELEGATION_HAD; i++) {
        struct list_node *n;

        while ((n = list_first(&h->by_state[i])))
            hire_drop(LIST_OF(n, struct hire, node));
    }
    map_fini(&h->by_key);
    map_fini(&h->by_task);
    map_fini(&h->by_request);
    map_fini(&h->hirers);
    map_fini(&h->kids);
    free(h);
}
