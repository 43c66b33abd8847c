/* Results of delegations, once they are here. The hub tells a result until it
 * hears delegation.ack, so the ack is sent when the waiting caller has the
 * result, and sent again on each connection until it is answered; a result that
 * is told twice is acknowledged twice and handed over once. Ids that begin with
 * our own chance are ours: a result without a waiting caller was received
 * before, unless its time was over. All others are of a process that was here
 * before us, or of agent.delegate. */
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "client/c/internal.h"

/* Ids. */

static char **id_at(struct sbc_ids *ids, struct str id)
{
    for (size_t i = 0; i < SBC_IDS; i++)
        if (ids->at[i] && str_eq(str_of(ids->at[i]), id))
            return &ids->at[i];
    return NULL;
}

static void id_add(struct sbc_ids *ids, struct str id)
{
    char **at = &ids->at[ids->next++ % SBC_IDS];

    free(*at);
    *at = sbc_dup(id); /* without memory it is not remembered */
}

static void id_forget(struct sbc_ids *ids, struct str id)
{
    char **at = id_at(ids, id);

    if (at) {
        free(*at);
        *at = NULL;
    }
}

void sbc_late(struct sbc *s, const char *key)
{
    id_add(&s->late, str_of(key));
}

/* Acknowledging. */

static void had_free(struct sbc_had *h)
{
    list_remove(&h->node);
    free(h->name);
    free(h->params);
    free(h);
}

static struct str name_of(const struct json *v)
{
    struct str name = json_str_or(json_get(v, STR("original_id")), STR(""));

    if (!name.n)
        name = json_str_or(json_get(v, STR("sessionKey")), STR(""));
    return name.n ? name : json_str_or(json_get(v, STR("task_id")), STR(""));
}

static char *ack_of(const struct json *v)
{
    static const struct str keys[] = {STR("original_id"), STR("sessionKey"),
                                      STR("task_id")};
    struct buf b;
    struct json_out o;
    char *text = NULL;

    buf_init(&b, SBC_TEXT_MAX);
    o = json_out(&b);
    json_open(&o, '{');
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct str value = json_str_or(json_get(v, keys[i]), STR(""));

        if (!value.n)
            continue;
        json_key(&o, keys[i]);
        json_put_str(&o, value);
    }
    json_close(&o, '}');
    if (!b.over)
        text = sbc_dup(buf_str(&b));
    buf_fini(&b);
    return text;
}

static bool is_on_its_way(const struct sbc *s, struct str name)
{
    for (struct list_node *n = list_first(&s->had); n;
         n = list_next(&s->had, n))
        if (str_eq(str_of(LIST_OF(n, struct sbc_had, node)->name), name))
            return true;
    return false;
}

void sbc_had(struct sbc *s, struct str result)
{
    struct sbc_had *h;
    struct arena a;
    struct json *v;

    arena_init(&a, SBC_TREE_MAX);
    v = json_parse(&a, result, 0, NULL);
    if (v && !is_on_its_way(s, name_of(v))) {
        h = FAULT("sbc.alloc") ? NULL : calloc(1, sizeof(*h));
        if (h) {
            list_append(&s->had, &h->node);
            h->name = sbc_dup(name_of(v));
            h->params = ack_of(v);
        }
        if (h && (!h->name || !h->params))
            had_free(h);
    }
    arena_fini(&a);
}

void sbc_had_say(struct sbc *s)
{
    for (struct list_node *n = list_first(&s->had); n;
         n = list_next(&s->had, n)) {
        struct sbc_had *h = LIST_OF(n, struct sbc_had, node);

        if (h->id)
            continue;
        if (s->link.pipe.out.n > SBC_OUT_MARK ||
            !sbc_say(s, s->next_id + 1, "delegation.ack", str_of(h->params)))
            return;
        h->id = ++s->next_id;
    }
}

/* Whatever the answer: what is not known there is not told again either. */
bool sbc_had_answered(struct sbc *s, int64_t id)
{
    for (struct list_node *n = list_first(&s->had); n;
         n = list_next(&s->had, n)) {
        struct sbc_had *h = LIST_OF(n, struct sbc_had, node);

        if (!id || h->id != id)
            continue;
        had_free(h);
        break;
    }
    return true;
}

void sbc_had_lost(struct sbc *s)
{
    for (struct list_node *n = list_first(&s->had); n;
         n = list_next(&s->had, n))
        LIST_OF(n, struct sbc_had, node)->id = 0;
}

void sbc_had_fini(struct sbc *s)
{
    struct sbc_ids *all[] = {&s->late, &s->taken, &s->warned};
    struct list_node *n;

    while ((n = list_first(&s->had)))
        had_free(LIST_OF(n, struct sbc_had, node));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        for (size_t k = 0; k < SBC_IDS; k++)
            free(all[i]->at[k]);
}

/* Results without a waiting caller. */

void sbc_on_delegation(struct sbc *s, sbc_takes *takes, void *ctx)
{
    s->takes = takes;
    s->takes_ctx = ctx;
}

static bool was_had(struct sbc *s, struct str name)
{
    bool is_own = s->own[0] && str_starts(name, str_of(s->own));

    return id_at(&s->taken, name) || (is_own && !id_at(&s->late, name));
}

static void not_wanted(struct sbc *s, struct str name, const struct sbc_news *n)
{
    if (id_at(&s->late, name)) {
        sbc_say_log(s, "the result of delegation %.*s came too late",
                    STR_ARG(name));
        id_forget(&s->late, name);
        sbc_had(s, str_of(n->json));
        return;
    }
    if (id_at(&s->warned, name))
        return;
    id_add(&s->warned, name);
    sbc_say_log(
        s,
        "delegation %.*s is %s, but no caller waits for it: the hub keeps "
        "it for sbc_on_delegation",
        STR_ARG(name), n->status);
}

static void tell_result(struct sbc *s, struct str name, struct sbc_news *n)
{
    if (was_had(s, name)) {
        sbc_had(s, str_of(n->json)); /* the last time it was not heard */
    } else if (!s->takes) {
        not_wanted(s, name, n);
    } else if (s->takes(s->takes_ctx, n) == 0) {
        id_forget(&s->late, name);
        id_add(&s->taken, name);
        sbc_had(s, str_of(n->json));
    }
}

void sbc_tell_other(struct sbc *s, struct sbc_news *n)
{
    struct arena a;
    struct json *v;

    if (n->kind == SBC_CHUNK) {
        if (s->takes)
            (void)s->takes(s->takes_ctx, n);
        return;
    }
    arena_init(&a, SBC_TREE_MAX);
    v = json_parse(&a, str_of(n->json), 0, NULL);
    if (v)
        tell_result(s, name_of(v), n);
    arena_fini(&a);
}
