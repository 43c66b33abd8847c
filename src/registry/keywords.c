/* Which routing keywords occur in a text, of all agents at once.
 *
 *     bucket of "blog"   -> "blog post " of writer, "blog " of press
 *     text, plain           "draft a blog post about tea "
 *                                    ^ each of the bucket is compared here
 *
 * Keywords are found by their first word: each word of a text is looked up
 * once, whatever the number of agents. What keyword.h says decides; this gives
 * the same.
 *
 * The nodes lie in the entries, made with them, so that putting an agent in and
 * taking it out cannot fail. Buckets grow as they fill, and where there is no
 * memory for that the chains grow instead.
 *
 * Somebody may have thousands of keywords that begin alike, and somebody else a
 * text that is nothing but that word: so there is an end to comparing. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "model/keyword.h"

enum {
    FIRST_BUCKETS = 64,
    PLAIN_BYTES = 256 * 1024, /* of a text of SEARCH_TEXT_MAX, at the worst */
    COMPARES_MAX = 200 * 1000,
};

static struct list *buckets_new(size_t n)
{
    struct list *all =
        FAULT("registry.buckets") ? NULL : calloc(n, sizeof(*all));

    for (size_t i = 0; all && i < n; i++)
        list_init(&all[i]);
    return all;
}

enum err keywords_open(struct registry *r)
{
    struct keywords *k = &r->keywords;

    buf_init(&k->plain, PLAIN_BYTES);
    k->serial = 1; /* entries begin with zero */
    k->buckets = buckets_new(FIRST_BUCKETS);
    k->n_buckets = FIRST_BUCKETS;
    return k->buckets ? OK : ERR_NOMEM;
}

void keywords_close(struct registry *r)
{
    buf_fini(&r->keywords.plain);
    free(r->keywords.buckets);
    r->keywords.buckets = NULL;
}

static struct str first_word(struct str plain)
{
    return str_sub(plain, 0, str_find(plain, ' ', 0));
}

static struct list *bucket_of(const struct keywords *k, uint64_t hash)
{
    return &k->buckets[hash & (k->n_buckets - 1)];
}

/* What is there. */

/* Whether it is one that can occur. */
static enum err make(struct registry *r, struct entry *e, uint32_t place)
{
    struct keywords *k = &r->keywords;
    struct keyword *one = &e->keywords[e->n_keywords];

    buf_clear(&k->plain);
    if (!keyword_plain(&k->plain, e->agent.routing.keywords.list[place]))
        return k->plain.over ? ERR_NOMEM : OK;
    if (k->plain.over ||
        !arena_copy_str(&e->arena, buf_str(&k->plain), &one->plain))
        return ERR_NOMEM;
    one->entry = e;
    one->hash = hash_bytes(first_word(one->plain), r->opts.seed);
    one->place = place;
    e->n_keywords++;
    return OK;
}

enum err keywords_make(struct registry *r, struct entry *e)
{
    size_t n = e->agent.routing.keywords.n;
    enum err err = OK;

    if (!n)
        return OK;
    e->keywords = arena_array(&e->arena, n, sizeof(*e->keywords));
    if (!e->keywords)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < n && !err; i++) {
        e->keywords[e->n_keywords] = (struct keyword){.entry = e};
        err = make(r, e, i);
    }
    return err;
}

static void spread(struct keywords *k, size_t n_buckets)
{
    struct list *before = k->buckets, *more = buckets_new(n_buckets);
    size_t n_before = k->n_buckets;
    struct list_node *n;

    if (!more)
        return;
    k->buckets = more;
    k->n_buckets = n_buckets;
    for (size_t i = 0; i < n_before; i++)
        while ((n = list_pop(&before[i])))
            list_append(bucket_of(k, LIST_OF(n, struct keyword, node)->hash),
                        n);
    free(before);
}

void keywords_put(struct registry *r, struct entry *e)
{
    struct keywords *k = &r->keywords;

    k->n += e->n_keywords;
    if (k->n > 2 * k->n_buckets)
        spread(k, 4 * k->n_buckets);
    for (size_t i = 0; i < e->n_keywords; i++)
        list_append(bucket_of(k, e->keywords[i].hash), &e->keywords[i].node);
}

void keywords_take(struct registry *r, struct entry *e)
{
    r->keywords.n -= e->n_keywords;
    for (size_t i = 0; i < e->n_keywords; i++)
        list_remove(&e->keywords[i].node);
}

/* Looking. */

static void note(struct registry *r, const struct keyword *one)
{
    const struct keywords *k = &r->keywords;
    struct entry *e = one->entry;

    r->near_marks[e->number].is_said = true;
    if (e->said_in != k->serial || one->place < e->said_place)
        e->said_place = one->place;
    e->said_in = k->serial;
}

/* Those that begin with the first word of `rest`. */
static size_t compare(struct registry *r, struct str rest, size_t left)
{
    struct keywords *k = &r->keywords;
    uint64_t hash = hash_bytes(first_word(rest), r->opts.seed);
    struct list *bucket = bucket_of(k, hash);

    for (struct list_node *n = list_first(bucket); n && left;
         n = list_next(bucket, n), left--) {
        const struct keyword *one = LIST_OF(n, struct keyword, node);

        if (one->hash == hash && str_starts(rest, one->plain))
            note(r, one);
    }
    return left;
}

enum err keywords_look(struct registry *r, struct str text)
{
    struct keywords *k = &r->keywords;
    size_t left = COMPARES_MAX;
    struct str rest;

    k->serial++;
    if (!k->n)
        return OK;
    buf_clear(&k->plain);
    keyword_plain(&k->plain, str_head(text, SEARCH_TEXT_MAX));
    if (k->plain.over)
        return ERR_NOMEM;
    rest = buf_str(&k->plain);
    while (rest.n && left) {
        left = compare(r, rest, left);
        rest = str_sub(rest, first_word(rest).n + 1, rest.n);
    }
    return OK;
}

struct str keyword_said(const struct registry *r, const struct entry *e)
{
    return e->said_in == r->keywords.serial
               ? e->agent.routing.keywords.list[e->said_place]
               : (struct str){NULL, 0};
}
