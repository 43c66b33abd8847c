/* What each requester has of the tasks that are not over, so that one cannot
 * take all the room there is.
 *
 * A share comes with the first task and goes with the last. It is counted by
 * requester, who is the principal that called: a user with many tokens has one
 * share. Tasks that a start takes up are counted and never refused; they were
 * accepted once.
 *
 * And what each agent has of them, by the same means: who accepts a message
 * asks how many there are already. */
#include "task/internal.h"

#include <stdlib.h>

#include "model/agent.h"

static struct str key_of(struct str who)
{
    return PLANTED("task.one_share") ? STR("") : who;
}

bool share_has_room(const struct tasks *ts, struct str who, size_t bytes)
{
    const struct tasks_limits *l = &ts->opts.limits;
    const struct share *s = map_get(&ts->shares, key_of(who));
    size_t n = s ? s->n : 0, held = s ? s->bytes : 0;

    return (!l->max_per_user || n < l->max_per_user) &&
           (!l->max_bytes_per_user || (held <= l->max_bytes_per_user &&
                                       bytes <= l->max_bytes_per_user - held));
}

static struct share *share_new(struct map *all, struct str who)
{
    struct share *s =
        FAULT("task.share") ? NULL : calloc(1, sizeof(*s) + who.n);

    if (!s)
        return NULL;
    list_init(&s->working);
    s->who_bytes = who.n;
    if (who.n)
        memcpy(s->who, who.p, who.n);
    if (map_put(all, (struct str){s->who, who.n}, s) == OK)
        return s;
    free(s);
    return NULL;
}

/* Counted in; NULL: memory is gone. */
static struct share *count_in(struct map *all, struct str who, size_t bytes)
{
    struct share *s = map_get(all, who);

    if (!s)
        s = share_new(all, who);
    if (!s)
        return NULL;
    s->n++;
    s->bytes += bytes;
    return s;
}

/* Nobody's share goes. */
static void share_look(struct map *all, struct share *s)
{
    if (s->n || s->n_coming)
        return;
    map_take(all, (struct str){s->who, s->who_bytes});
    free(s);
}

static void count_out(struct map *all, struct share **in, size_t bytes)
{
    struct share *s = *in;

    *in = NULL;
    if (!s)
        return;
    s->bytes -= bytes;
    s->n--;
    share_look(all, s);
}

/* Agents go by their names whatever the case. */
static struct str load_key(struct str agent, char out[AGENT_NAME_MAX])
{
    return str_lowered(agent, out, AGENT_NAME_MAX);
}

enum err share_add(struct task_entry *e)
{
    struct tasks *ts = e->ts;
    char key[AGENT_NAME_MAX];

    e->share = count_in(&ts->shares, key_of(e->t.requester), e->bytes);
    if (e->share)
        e->load = count_in(&ts->loads, load_key(e->t.agent, key), e->bytes);
    if (!e->load)
        return ERR_NOMEM;
    e->load->n_waiting += task_waits(e->t.status);
    e->is_behind = e->lane && !task_waits(e->t.status) && lane_waits_before(e);
    e->load->n_behind += e->is_behind;
    return OK;
}

void share_remove(struct task_entry *e)
{
    list_remove(&e->working_node);
    if (e->load) {
        e->load->n_waiting -= task_waits(e->t.status);
        e->load->n_behind -= entry_is_kept_back(e);
    }
    e->is_behind = false;
    count_out(&e->ts->shares, &e->share, e->bytes);
    count_out(&e->ts->loads, &e->load, e->bytes);
}

struct share *load_expect(struct tasks *ts, struct str agent)
{
    char key[AGENT_NAME_MAX];
    struct str who = load_key(agent, key);
    struct share *s = map_get(&ts->loads, who);

    if (!s)
        s = share_new(&ts->loads, who);
    if (s)
        s->n_coming++;
    return s;
}

void load_forget(struct tasks *ts, struct share *s)
{
    s->n_coming--;
    share_look(&ts->loads, s);
}

static bool is_at_work(enum task_status s)
{
    return s == TASK_DISPATCHED || s == TASK_WORKING;
}

void load_work(struct task_entry *e)
{
    bool is_there = list_has(&e->working_node);

    if (is_at_work(e->t.status) && !is_there)
        list_append(&e->load->working, &e->working_node);
    else if (!is_at_work(e->t.status) && is_there)
        list_remove(&e->working_node);
}

void load_move(struct task_entry *e, enum task_status to, struct share *other)
{
    list_remove(&e->working_node);
    e->load->n_waiting -= task_waits(e->t.status);
    e->load->n_behind -= entry_is_kept_back(e);
    if (other) {
        other->n_coming--;
        other->n++;
        other->bytes += e->bytes;
        count_out(&e->ts->loads, &e->load, e->bytes);
        e->load = other;
    }
    e->load->n_waiting += task_waits(to);
    e->load->n_behind += entry_is_kept_back(e);
}

static const struct share *load_of(const struct tasks *ts, struct str agent)
{
    char key[AGENT_NAME_MAX];

    return map_get(&ts->loads, load_key(agent, key));
}

size_t tasks_of_agent(const struct tasks *ts, struct str agent)
{
    const struct share *s = load_of(ts, agent);

    return s ? s->n - s->n_waiting - s->n_behind : 0;
}

size_t tasks_held_of_agent(const struct tasks *ts, struct str agent)
{
    const struct share *s = load_of(ts, agent);

    return s ? s->n_waiting : 0;
}

static bool add_up(const struct map *all, size_t n, size_t n_waiting,
                   size_t n_behind, size_t bytes)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(all, &at))) {
        const struct share *s = slot->value;

        if (s->n + s->n_coming == 0 || s->n > n || s->bytes > bytes ||
            s->n_waiting + s->n_behind > s->n || s->n_waiting > n_waiting ||
            s->n_behind > n_behind)
            return false;
        n -= s->n;
        n_waiting -= s->n_waiting;
        n_behind -= s->n_behind;
        bytes -= s->bytes;
    }
    return n == 0 && n_waiting == 0 && n_behind == 0 && bytes == 0 &&
           map_check(all);
}

/* Those at work are with their own agent, and nowhere else. */
static bool at_work_is_right(const struct tasks *ts, size_t n_working)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&ts->loads, &at))) {
        const struct share *s = slot->value;

        for (struct list_node *n = list_first(&s->working); n;
             n = list_next(&s->working, n), n_working--) {
            const struct task_entry *e =
                LIST_OF(n, struct task_entry, working_node);

            if (e->load != s || !is_at_work(e->t.status) || !n_working)
                return false;
        }
    }
    return n_working == 0;
}

bool shares_check(const struct tasks *ts, size_t n, size_t n_waiting,
                  size_t n_behind, size_t n_working, size_t bytes)
{
    return add_up(&ts->shares, n, 0, 0, bytes) &&
           add_up(&ts->loads, n, n_waiting, n_behind, bytes) &&
           at_work_is_right(ts, n_working);
}

const struct task *tasks_working(const struct tasks *ts, struct str agent,
                                 const struct task *after)
{
    const struct share *s = load_of(ts, agent);
    const struct task_entry *last =
        after ? (const void *)((const char *)after -
                               offsetof(struct task_entry, t))
              : NULL;
    struct list_node *at;

    if (!s)
        return NULL;
    at = last ? list_next(&s->working, &last->working_node)
              : list_first(&s->working);
    return at ? &LIST_OF(at, struct task_entry, working_node)->t : NULL;
}
