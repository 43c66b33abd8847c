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
    list_init(&h->crowded);
    list_init(&h->ending);
    list_init(&h->telling);
    h->end_job.run = hire_on_ending;
    h->tell_job.run = hire_on_telling;
    h->again.fire = hire_on_again;
    if (loop_timer_set(opts->loop, &h->again, HIRE_NOTHING_MS) == OK)
        return h;
    free(h);
    return NULL;
}

void hire_set(struct hires *h, const struct hire_settings *s)
{
    h->opts.settings = *s;
    hire_look_at_turns(h);
}

const struct hire_settings *hire_settings(const struct hires *h)
{
    return &h->opts.settings;
}

/* Who asks. */

static struct hirer *hirer_of(struct hires *h, struct str agent)
{
    char low[AGENT_NAME_MAX];
    struct str name = str_lowered(agent, low, sizeof(low));
    struct hirer *r = map_get(&h->hirers, name);

    if (r)
        return r;
    r = FAULT("hire.hirer") ? NULL : calloc(1, sizeof(*r) + name.n);
    if (!r)
        return NULL;
    list_init(&r->open);
    list_init(&r->waiting);
    list_init(&r->ready);
    r->name_bytes = name.n;
    memcpy(r->name, name.p, name.n);
    if (map_put(&h->hirers, (struct str){r->name, name.n}, r) == OK)
        return r;
    free(r);
    return NULL;
}

const struct hirer *hirer_find(const struct hires *h, struct str agent)
{
    char low[AGENT_NAME_MAX];

    return map_get(&h->hirers, str_lowered(agent, low, sizeof(low)));
}

static void hirer_look(struct hires *h, struct hirer *r)
{
    if (!list_is_empty(&r->open) || !list_is_empty(&r->ready) || r->n_claimed)
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
    list_init(&k->claims);
    k->id_bytes = id.n;
    memcpy(k->id, id.p, id.n);
    if (map_put(&h->kids, (struct str){k->id, id.n}, k) == OK)
        return k;
    free(k);
    return NULL;
}

static void kids_look(struct hires *h, struct kids *k)
{
    if (!list_is_empty(&k->list) || !list_is_empty(&k->claims))
        return;
    map_take(&h->kids, (struct str){k->id, k->id_bytes});
    free(k);
}

/* One delegation. */

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
    size_t n = 2 * (d->agent.n + d->original_id.n) + d->creator.n +
               d->parent_id.n + d->root_id.n + d->owner.n + d->conversation.n +
               1;
    char key[REQUEST_MAX];
    struct hire *x = FAULT("hire.make") ? NULL : calloc(1, sizeof(*x) + n);
    char *at;

    if (!x)
        return NULL;
    at = x->strings;
    x->h = h;
    x->d = *d;
    list_init(&x->waiters);
    list_init(&x->behind);
    x->d.agent = str_pack(&at, d->agent);
    x->d.creator = str_pack(&at, d->creator);
    x->d.original_id = str_pack(&at, d->original_id);
    x->d.parent_id = str_pack(&at, d->parent_id);
    x->d.root_id = str_pack(&at, d->root_id);
    x->d.owner = str_pack(&at, d->owner);
    x->d.conversation = str_pack(&at, d->conversation);
    x->request = str_pack(&at, request_key(d->agent, d->original_id, key));
    return x;
}

struct hire *hire_of_key(const struct hires *h, struct str key)
{
    return map_get(&h->by_key, key);
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

/* Its ways in. */

static void take(struct map *m, struct str key, const struct hire *x)
{
    if (map_get(m, key) == x)
        map_take(m, key);
}

/* What was reserved cannot fail. */
static void put(struct map *m, struct str key, struct hire *x)
{
    enum err e = map_put(m, key, x);

    assert(!e);
    (void)e;
}

/* A task may have a further turn while the result of the one before is still
 * kept: the last one is found first. */
static void link_task(struct hire *x)
{
    struct str id = str_of(x->d.task_id.text);
    struct hire *newer = NULL, *older = hire_of_task(x->h, id);

    while (older && older->d.turn > x->d.turn) {
        newer = older;
        older = older->older;
    }
    x->newer = newer;
    x->older = older;
    if (older)
        older->newer = x;
    if (newer)
        newer->older = x;
    else
        put(&x->h->by_task, id, x);
}

static void unlink_task(struct hire *x)
{
    struct map *by_task = &x->h->by_task;

    if (x->newer)
        x->newer->older = x->older;
    else if (x->older)
        put(by_task, str_of(x->older->d.task_id.text), x->older);
    else
        take(by_task, str_of(x->d.task_id.text), x);
    if (x->older)
        x->older->newer = x->newer;
}

static void leave_kids(struct hire *x)
{
    if (!x->kids)
        return;
    list_remove(&x->kid_node);
    kids_look(x->h, x->kids);
    x->kids = NULL;
}

/* Its states. */

/* The id of one who had the name before is nobody's now: another may have it,
 * and keeps it. */
static enum err know_request(struct hire *x)
{
    struct hires *h = x->h;
    struct hire *other = hire_of_request(h, x->d.agent, x->d.original_id);
    enum err e;

    if (!x->d.original_id.n)
        return OK;
    if (other && !hire_is_own(h, &x->d)) {
        x->is_displaced = true;
        return OK;
    }
    e = map_put(&h->by_request, x->request, x);
    if (!e && other)
        other->is_displaced = true;
    return e;
}

enum err hire_claim(struct hire *x)
{
    struct hires *h = x->h;
    size_t n = h->n_claimed + 1;

    x->hirer = hirer_of(h, x->d.agent);
    if (!x->hirer)
        return ERR_NOMEM;
    x->hirer->n_claimed++;
    if (x->d.parent_id.n) {
        x->kids = kids_of(h, x->d.parent_id);
        if (!x->kids)
            return ERR_NOMEM;
        list_append(&x->kids->claims, &x->kid_node);
    }
    if (FAULT("hire.room") || map_reserve(&h->by_key, n) ||
        map_reserve(&h->by_task, n) || know_request(x))
        return ERR_NOMEM;
    h->n_claimed++;
    x->is_claimed = true;
    return OK;
}

void hire_unclaim(struct hire *x)
{
    if (x->is_claimed)
        x->h->n_claimed--;
    take(&x->h->by_request, x->request, x);
    leave_kids(x);
    if (x->hirer) {
        x->hirer->n_claimed--;
        hirer_look(x->h, x->hirer);
    }
    free(x);
}

static void enter_open(struct hire *x)
{
    x->h->n_open++;
    x->hirer->n_open++;
    list_append(&x->hirer->open, &x->hirer_node);
    if (x->kids) {
        list_remove(&x->kid_node);
        list_append(&x->kids->list, &x->kid_node);
    }
    if (x->is_doomed && !PLANTED("hire.late_child"))
        hire_end(x, FOR_PARENT);
}

void hire_enter(struct hire *x)
{
    struct hires *h = x->h;

    h->n_claimed--;
    x->is_claimed = false;
    x->hirer->n_claimed--;
    put(&h->by_key, str_of(x->d.key.text), x);
    link_task(x);
    h->n++;
    list_append(&h->by_state[x->d.state], &x->node);
    if (x->d.state == DELEGATION_OPEN) {
        enter_open(x);
        return;
    }
    x->hirer->n_ready++;
    list_append(&x->hirer->ready, &x->hirer_node);
    leave_kids(x);
}

void hire_ready(struct hire *x)
{
    struct hires *h = x->h;

    assert(x->d.state == DELEGATION_OPEN);
    list_remove(&x->node);
    x->d.state = DELEGATION_READY;
    list_append(&h->by_state[DELEGATION_READY], &x->node);
    list_remove(&x->hirer_node);
    x->hirer->n_open--;
    h->n_open--;
    x->hirer->n_ready++;
    list_append(&x->hirer->ready, &x->hirer_node);
    list_remove(&x->ending_node); /* that would be the turn after this one */
    leave_kids(x);
    hire_turn_is_over(x);
}

void hire_drop(struct hire *x)
{
    struct hires *h = x->h;

    hire_forget_waiters(x);
    leave_kids(x);
    list_remove(&x->hirer_node);
    hire_give_up_turn(x);
    if (x->d.state == DELEGATION_OPEN) {
        x->hirer->n_open--;
        h->n_open--;
    } else {
        x->hirer->n_ready--;
    }
    hirer_look(h, x->hirer);
    take(&h->by_key, str_of(x->d.key.text), x);
    unlink_task(x);
    take(&h->by_request, x->request, x);
    list_remove(&x->node);
    list_remove(&x->ending_node);
    list_remove(&x->tell_node);
    h->n--;
    free(x);
}

void hire_free(struct hires *h)
{
    struct list_node *n;

    if (!h)
        return;
    assert(!h->n_claimed && !h->is_reading); /* they would come back */
    loop_not_at_end(&h->end_job);
    loop_not_at_end(&h->tell_job);
    loop_timer_cancel(h->opts.loop, &h->again);
    for (int i = 0; i <= DELEGATION_HAD; i++)
        while ((n = list_first(&h->by_state[i])))
            hire_drop(LIST_OF(n, struct hire, node));
    map_fini(&h->by_key);
    map_fini(&h->by_task);
    map_fini(&h->by_request);
    map_fini(&h->hirers);
    map_fini(&h->kids);
    free(h);
}

struct hire_stats hire_stats(const struct hires *h)
{
    struct hire_stats s = h->stats;

    s.open = (int64_t)h->n_open;
    s.waiting = (int64_t)h->n_waiting;
    s.ready = (int64_t)h->n - s.open;
    return s;
}
