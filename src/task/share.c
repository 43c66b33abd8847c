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

static void count_out(struct map *all, struct share **in, size_t bytes)
{
    struct share *s = *in;

    *in = NULL;
    if (!s)
        return;
    s->bytes -= bytes;
    if (--s->n)
        return;
    map_take(all, (struct str){s->who, s->who_bytes});
    free(s);
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
    return e->load ? OK : ERR_NOMEM;
}

void share_remove(struct task_entry *e)
{
    count_out(&e->ts->shares, &e->share, e->bytes);
    count_out(&e->ts->loads, &e->load, e->bytes);
}

size_t tasks_of_agent(const struct tasks *ts, struct str agent)
{
    char key[AGENT_NAME_MAX];
    const struct share *s = map_get(&ts->loads, load_key(agent, key));

    return s ? s->n : 0;
}

static bool add_up(const struct map *all, size_t n, size_t bytes)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(all, &at))) {
        const struct share *s = slot->value;

        if (s->n == 0 || s->n > n || s->bytes > bytes)
            return false;
        n -= s->n;
        bytes -= s->bytes;
    }
    return n == 0 && bytes == 0 && map_check(all);
}

bool shares_check(const struct tasks *ts, size_t n, size_t bytes)
{
    return add_up(&ts->shares, n, bytes) && add_up(&ts->loads, n, bytes);
}
