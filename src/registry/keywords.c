/* Which routing keywords occur in a text, of all agents at once.
 *
 *     "blog" of the platform   -> "blog post " of writer, "blog " of press
 *     "blog" of org acme       -> "blog " of theirs
 *     text, plain              "draft a blog post about tea "
 *                                       ^ each of these is compared here
 *
 * Keywords are found by whose they are and their first word: each word of a
 * text is looked up once for each class that counts for who asks, whatever the
 * number of agents. What keyword.h says decides; this gives the same, of those
 * who are no outsiders (agent_is_outsider): keywords of others do not count,
 * and so nothing that others register can cost the asker anything.
 *
 * The nodes lie in the entries, made with them, so that putting an agent in and
 * taking it out cannot fail. In a bucket stands the first of each class and
 * word, the others are in a ring with it: nobody walks over another class's.
 * Buckets grow as they fill, and where there is no memory for that the chains
 * grow instead.
 *
 * Somebody may have thousands of keywords that begin alike, and somebody else a
 * text that is nothing but that word: so there is an end to comparing, for each
 * class apart. */
#include "registry/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "model/keyword.h"

enum {
    FIRST_BUCKETS = 64,
    PLAIN_BYTES = 256 * 1024,  /* of a text of SEARCH_TEXT_MAX, at the worst */
    COMPARES_MAX = 100 * 1000, /* of one class, for one text */
    CLASSES = 3,               /* that one text is looked up for, at most */
    SCANNED_MAX = 64 << 20,    /* bytes of text, for everybody's keywords */
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

/* Whose they are. */

/* Names of users are the same whatever their case, those of orgs are not. */
static uint64_t class_hash(const struct registry *r, char kind, struct str name)
{
    char key[PRINCIPAL_NAME_MAX + 1];
    size_t n = name.n < PRINCIPAL_NAME_MAX ? name.n : PRINCIPAL_NAME_MAX;

    key[0] = kind;
    for (size_t i = 0; i < n; i++)
        key[1 + i] = kind == 'u' ? str_lower(name.p[i]) : name.p[i];
    return hash_bytes((struct str){key, 1 + n}, r->opts.seed);
}

/* The classes of an agent, how many: as agent_is_outsider has it, whoever is
 * of one of them is at home with it. */
static size_t classes_of(const struct registry *r, const struct agent *a,
                         uint64_t out[2])
{
    if (a->kind == AGENT_PLATFORM || !a->creator.n) {
        out[0] = class_hash(r, 'p', STR(""));
        return 1;
    }
    out[0] = class_hash(r, 'u', a->creator);
    if (a->org.n)
        out[1] = class_hash(r, 'o', a->org);
    return a->org.n ? 2 : 1;
}

/* And those that somebody is of. */
static size_t classes_seen(const struct registry *r, const struct eyes *eyes,
                           uint64_t out[CLASSES])
{
    size_t n = 0;

    out[n++] = class_hash(r, 'p', STR(""));
    if (eyes->user.n)
        out[n++] = class_hash(r, 'u', eyes->user);
    if (eyes->org.n)
        out[n++] = class_hash(r, 'o', eyes->org);
    return n;
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
        !arena_keep(&e->arena, buf_str(&k->plain), &one->plain))
        return ERR_NOMEM;
    one->entry = e;
    one->word = hash_bytes(first_word(one->plain), r->opts.seed);
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
            list_append(
                bucket_of(k, LIST_OF(n, struct keyword_node, bucket)->hash), n);
    free(before);
}

/* NULL: there are none of that class and word. */
static struct keyword_node *first_of(const struct keywords *k, uint64_t hash)
{
    struct list *bucket = bucket_of(k, hash);
    struct list_node *n = list_first(bucket);

    while (n && LIST_OF(n, struct keyword_node, bucket)->hash != hash)
        n = list_next(bucket, n);
    return n ? LIST_OF(n, struct keyword_node, bucket) : NULL;
}

static void put_node(struct keywords *k, struct keyword_node *node)
{
    struct keyword_node *first = first_of(k, node->hash);

    if (first) {
        list_insert_before(&first->ring, &node->ring);
        return;
    }
    node->ring.prev = node->ring.next = &node->ring;
    list_append(bucket_of(k, node->hash), &node->bucket);
    if (++k->n > 2 * k->n_buckets)
        spread(k, 4 * k->n_buckets);
}

/* If it was the first the next one is. */
static void take_node(struct keywords *k, struct keyword_node *node)
{
    struct keyword_node *heir =
        LIST_OF(node->ring.next, struct keyword_node, ring);

    list_remove(&node->ring);
    if (!list_has(&node->bucket))
        return;
    list_remove(&node->bucket);
    if (heir == node)
        k->n--;
    else
        list_append(bucket_of(k, heir->hash), &heir->bucket);
}

void keywords_put(struct registry *r, struct entry *e)
{
    uint64_t classes[2];
    size_t n = classes_of(r, &e->agent, classes);

    for (size_t i = 0; i < e->n_keywords; i++)
        for (size_t k = 0; k < n; k++) {
            struct keyword_node *node = &e->keywords[i].nodes[k];

            *node =
                (struct keyword_node){.hash = e->keywords[i].word ^ classes[k],
                                      .keyword = &e->keywords[i]};
            put_node(&r->keywords, node);
        }
}

void keywords_take(struct registry *r, struct entry *e)
{
    for (size_t i = 0; i < e->n_keywords; i++)
        for (size_t k = 0; k < 2; k++)
            if (list_has(&e->keywords[i].nodes[k].ring))
                take_node(&r->keywords, &e->keywords[i].nodes[k]);
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

/* Those of one class that begin with the first word of `rest`. */
static void compare(struct registry *r, struct str rest, uint64_t hash,
                    size_t *left)
{
    const struct keyword_node *first = first_of(&r->keywords, hash),
                              *one = first;

    while (one && *left) {
        --*left;
        if (str_starts(rest, one->keyword->plain))
            note(r, one->keyword);
        one = LIST_OF(one->ring.next, struct keyword_node, ring);
        if (one == first)
            return;
    }
}

enum err keywords_look(struct registry *r, const struct eyes *eyes,
                       struct str text)
{
    struct keywords *k = &r->keywords;
    uint64_t classes[CLASSES];
    size_t left[CLASSES] = {COMPARES_MAX, COMPARES_MAX, COMPARES_MAX};
    size_t n_classes = classes_seen(r, eyes, classes);
    struct str rest;

    k->serial++;
    if (!k->n)
        return OK;
    buf_clear(&k->plain);
    keyword_plain(&k->plain, str_head(text, SEARCH_TEXT_MAX));
    if (k->plain.over)
        return ERR_NOMEM;
    rest = buf_str(&k->plain);
    while (rest.n) {
        struct str word = first_word(rest);
        uint64_t hash = hash_bytes(word, r->opts.seed);

        for (size_t i = 0; i < n_classes; i++)
            compare(r, rest, hash ^ classes[i], &left[i]);
        rest = str_sub(rest, word.n + 1, rest.n);
    }
    return OK;
}

/* Whether the words of a keyword stand side by side in a text. */
static bool occurs(struct str text, struct str plain)
{
    const char *at = text.p, *end = text.p + text.n;

    while ((at = memmem(at, (size_t)(end - at), plain.p, plain.n))) {
        if (at == text.p || at[-1] == ' ')
            return true;
        at++;
    }
    return false;
}

/* Outsiders' keywords are in no class of the asker's. Only the preset "seed"
 * looks at them: at every keyword once, and closer at those whose first word
 * may be in the text. A bit for each word of it says so. */
void keywords_look_at_all(struct registry *r, const struct eyes *eyes)
{
    struct str text = buf_str(&r->keywords.plain), rest = text;
    uint64_t words[1024] = {0};
    size_t left = SCANNED_MAX;

    if (!r->keywords.n)
        return; /* and the text was not taken apart */
    while (rest.n) {
        struct str word = first_word(rest);
        uint64_t hash = hash_bytes(word, r->opts.seed);

        words[hash / 64 % 1024] |= UINT64_C(1) << hash % 64;
        rest = str_sub(rest, word.n + 1, rest.n);
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct entry *e = entry_of(r->list[i]);

        if (!e->n_keywords || !agent_is_visible(&e->agent, eyes))
            continue;
        for (size_t k = 0; k < e->n_keywords; k++) {
            const struct keyword *one = &e->keywords[k];

            if (!(words[one->word / 64 % 1024] >> one->word % 64 & 1))
                continue;
            if (left < text.n)
                return;
            left -= text.n;
            if (occurs(text, one->plain))
                note(r, one);
        }
    }
}

struct str keyword_said(const struct registry *r, const struct entry *e)
{
    return e->said_in == r->keywords.serial
               ? e->agent.routing.keywords.list[e->said_place]
               : (struct str){NULL, 0};
}
