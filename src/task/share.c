/* What each requester has of the tasks that are not over, so that one cannot
 * take all the room there is.
 *
 * A share comes with the first task and goes with the last. It is counted by
 * requester, who is the principal that called: a user with many tokens has one
 * share. Tasks that a start takes up are counted and never refused; they were
 * accepted once. */
#include "task/internal.h"

#include <stdlib.h>

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

static struct share *share_new(struct tasks *ts, struct str who)
{
    struct share *s =
        FAULT("task.share") ? NULL : calloc(1, sizeof(*s) + who.n);

    if (!s)
        return NULL;
    s->who_bytes = who.n;
    if (who.n)
        memcpy(s->who, who.p, who.n);
    if (map_put(&ts->shares, (struct str){s->who, who.n}, s) == OK)
        return s;
    free(s);
    return NULL;
}

enum err share_add(struct task_entry *e)
{
    struct str who = key_of(e->t.requester);
    struct share *s = map_get(&e->ts->shares, who);

    if (!s)
        s = share_new(e->ts, who);
    if (!s)
        return ERR_NOMEM;
    s->n++;
    s->bytes += e->bytes;
    e->share = s;
    return OK;
}

void share_remove(struct task_entry *e)
{
    struct share *s = e->share;

    e->share = NULL;
    if (!s)
        return;
    s->bytes -= e->bytes;
    if (--s->n)
        return;
    map_take(&e->ts->shares, (struct str){s->who, s->who_bytes});
    free(s);
}

bool shares_check(const struct tasks *ts, size_t n, size_t bytes)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&ts->shares, &at))) {
        const struct share *s = slot->value;

        if (s->n == 0 || s->n > n || s->bytes > bytes)
            return false;
        n -= s->n;
        bytes -= s->bytes;
    }
    return n == 0 && bytes == 0 && map_check(&ts->shares);
}
