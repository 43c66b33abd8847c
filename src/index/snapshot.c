/* The whole index as bytes, so that a start need not read every word of every
 * agent again. It is a cache and nothing more: whatever is not exactly as
 * expected is thrown away, and the registry builds the index from its records.
 *
 *     head       magic, version, byte order, make, stamp, dims, those of the
 *                first part, counts
 *     classes    kind, name
 *     stems      in the order of their numbers; empty where one is free
 *     agents     number, class, creator, levels, name; for each document its
 *                words; then the packed vectors of all of them and of its
 *                profile, if it has any
 *     sum        over all before it
 *
 * The sum is made over pieces of a fixed size, each hashed with the sum of
 * those before it. It finds damage, not malice: so everything is checked again
 * on the way in, and nothing that could come of a snapshot is worse than a
 * wrong ranking.
 *
 * `make` is what the documents of a fixed agent become, hashed: another
 * stemmer, other stop words, other rules for words or names, or other weights
 * of their parts are another make. Numbers of documents and words are given
 * anew: answers depend on neither. */
#include "index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "index/text.h"

enum { VERSION = 6, PIECE_BYTES = 64 * 1024 };

static const char MAGIC[8] = "sbindex\n";
static const uint32_t ORDER = 0x01020304;

struct head {
    char magic[8];
    uint32_t version, order;
    uint64_t make;
    uint8_t stamp[INDEX_STAMP_BYTES];
    uint32_t dims, quick, n_classes, n_stems, n_agents, zero;
};

struct agent_head {
    uint32_t number, cls, owner, n_docs, name_bytes;
    uint32_t has_vectors; /* one: it has; two: for now */
    struct levels_of level;
};

static uint64_t next_sum(uint64_t sum, struct str piece)
{
    const uint64_t seed[2] = {sum, 0x736e617073686f74};

    return hash_bytes(piece, seed);
}

static uint64_t sum_of_words(const struct text *t, const struct text_doc *d,
                             uint64_t sum)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const struct text_entry *e = &d->entries[i];

        sum = next_sum(sum + e->count, text_stem(t, e->term));
    }
    return sum;
}

/* An agent that has everything that a document is made of, in words that the
 * rules for words make something of. */
static enum err make_of(uint64_t *out)
{
    const uint64_t seed[2] = {1, 2};
    const struct str tags[] = {STR("e-mails"), STR("C++")};
    const struct str examples[] = {STR("organisations weren't running")};
    const struct skill skill = {
        .id = STR("getAlarms.list_all"),
        .name = STR("getAlarms.list_all"),
        .description = STR("The Quick-Brown foxes' 42 translations; "
                           "na\xc3\xafvely \xe7\xbf\xbb\xe8\xaf\x91"),
        .tags = {tags, 2},
        .examples = {examples, 1},
    };
    const struct agent agent = {
        .name = STR("acme.flying_camelCase-names"),
        .title = STR("Generously Titled"),
        .description = STR("what it says of itself, and of alarms"),
    };
    struct skill said = skill; /* named by people */
    const struct skill *const docs[] = {NULL, &skill, &said};
    struct text *t = text_new(sizeof(docs) / sizeof(docs[0]), seed);
    enum err e = t ? OK : ERR_NOMEM;

    said.id = STR("other");
    *out = 0;
    for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]) && !e; i++) {
        struct text_doc *d;

        e = text_prepare(t, &agent, docs[i], &d);
        if (!e) {
            *out = sum_of_words(t, d, *out);
            text_forget(t, d);
        }
    }
    text_free(t);
    return e;
}

/* Writing. */

struct out {
    bool (*write)(void *ctx, struct str bytes);
    void *ctx;
    char *piece;
    size_t n;
    uint64_t sum;
    bool failed;
};

static void flush(struct out *o)
{
    struct str piece = {o->piece, o->n};

    if (o->n == 0 || o->failed)
        return;
    o->sum = next_sum(o->sum, piece);
    o->failed = FAULT("index.write") || !o->write(o->ctx, piece);
    o->n = 0;
}

static void put(struct out *o, const void *p, size_t n)
{
    const char *from = p;

    while (n > 0) {
        size_t part = PIECE_BYTES - o->n < n ? PIECE_BYTES - o->n : n;

        memcpy(o->piece + o->n, from, part);
        o->n += part;
        from += part;
        n -= part;
        if (o->n == PIECE_BYTES)
            flush(o);
        if (o->failed)
            o->n = 0;
    }
}

static void put_u32(struct out *o, uint32_t v)
{
    put(o, &v, sizeof(v));
}

static void put_str(struct out *o, struct str s)
{
    put_u32(o, (uint32_t)s.n);
    put(o, s.p, s.n);
}

static void put_head(struct out *o, const struct index *x, uint64_t make,
                     const uint8_t *stamp, uint32_t n_classes)
{
    struct head h = {
        .version = VERSION,
        .order = ORDER,
        .make = make,
        .dims = x->vectors.dims,
        .quick = x->vectors.quick,
        .n_classes = n_classes,
        .n_stems = text_terms_end(x->text),
        .n_agents = (uint32_t)x->n_agents,
    };

    memcpy(h.magic, MAGIC, sizeof(h.magic));
    memcpy(h.stamp, stamp, sizeof(h.stamp));
    put(o, &h, sizeof(h));
}

/* Classes that nobody is of any more are left out; `places` is where the
 * others stand. */
static uint32_t place_classes(const struct index *x, uint32_t *places)
{
    uint32_t n = 0;

    for (size_t i = 0; i < x->agents_end; i++)
        if (x->agents[i]) {
            places[x->agents[i]->cls] = 1;
            if (x->agents[i]->owner != NO_CLASS)
                places[x->agents[i]->owner] = 1;
        }
    for (size_t i = 0; i < x->n_classes; i++)
        places[i] = places[i] ? n++ : NO_CLASS;
    return n;
}

static void put_agent(struct out *o, const struct index *x,
                      const struct index_entry *e, const uint32_t *places,
                      void *scratch)
{
    struct agent_head h = {.number = e->number,
                           .cls = places[e->cls],
                           .owner = e->owner == NO_CLASS ? NO_CLASS
                                                         : places[e->owner],
                           .n_docs = (uint32_t)e->n_docs,
                           .name_bytes = (uint32_t)e->name.n,
                           .has_vectors = !e->has_vectors ? 0
                                          : e->is_for_now ? 2
                                                          : 1,
                           .level = x->profiles.level[e->slot]};
    size_t bytes = vec_packed_bytes(x->vectors.dims);

    put(o, &h, sizeof(h));
    put(o, e->name.p, e->name.n);
    for (size_t i = 0; i < e->n_docs; i++) {
        size_t n = text_words(x->text, e->docs[i], scratch);

        put_u32(o, (uint32_t)n);
        put(o, scratch, n * sizeof(struct text_word));
    }
    for (size_t i = 0; e->has_vectors && i < e->n_docs; i++) {
        index_vecs_get(&x->vectors, e->docs[i], scratch);
        put(o, scratch, bytes);
    }
    if (e->has_vectors) {
        index_vecs_get(&x->profiles.vecs, e->slot, scratch);
        put(o, scratch, bytes);
    }
}

static void put_all(struct out *o, const struct index *x, uint64_t make,
                    const uint8_t *stamp, uint32_t *places, void *scratch)
{
    put_head(o, x, make, stamp, place_classes(x, places));
    for (size_t i = 0; i < x->n_classes; i++)
        if (places[i] != NO_CLASS)
            put_str(o, x->classes[i]->key);
    for (uint32_t i = 0; i < text_terms_end(x->text); i++)
        put_str(o, text_stem(x->text, i));
    for (size_t i = 0; i < x->agents_end && !o->failed; i++)
        if (x->agents[i])
            put_agent(o, x, x->agents[i], places, scratch);
}

/* Also enough for a packed vector. */
enum { SCRATCH_BYTES = INDEX_DOC_TERMS_MAX * sizeof(struct text_word) };
_Static_assert(SCRATCH_BYTES >= 8 + 2 * INDEX_DIMS_MAX, "a vector fits");

enum err index_save(const struct index *x,
                    const uint8_t stamp[INDEX_STAMP_BYTES],
                    bool (*write)(void *ctx, struct str bytes), void *ctx)
{
    struct out o = {.write = write, .ctx = ctx};
    uint32_t *places =
        FAULT("index.places") ? NULL : calloc(x->n_classes + 1, 4);
    void *scratch = FAULT("index.scratch") ? NULL : malloc(SCRATCH_BYTES);
    uint64_t sum, make;
    enum err e = make_of(&make);

    o.piece = FAULT("index.piece") ? NULL : malloc(PIECE_BYTES);
    if (!places || !scratch || !o.piece)
        e = ERR_NOMEM;
    if (!e) {
        put_all(&o, x, make, stamp, places, scratch);
        flush(&o);
        sum = o.sum;
        put(&o, &sum, sizeof(sum));
        flush(&o);
        e = o.failed ? ERR_IO : OK;
    }
    free(places);
    free(scratch);
    free(o.piece);
    return e;
}

/* Reading. */

struct in {
    struct str rest;
    struct index *x;
    struct head head;
    struct index_class *classes;
    struct str *stems;
    struct text_word *words; /* of one document */
};

/* NULL: there are not so many bytes. */
static const char *take(struct in *in, size_t n)
{
    const char *p = in->rest.p;

    if (n > in->rest.n)
        return NULL;
    in->rest = str_sub(in->rest, n, in->rest.n);
    return p;
}

static bool take_into(struct in *in, void *to, size_t n)
{
    const char *p = take(in, n);

    if (p)
        memcpy(to, p, n);
    return p != NULL;
}

static bool take_str(struct in *in, struct str *out)
{
    uint32_t n;

    if (!take_into(in, &n, sizeof(n)) || n > in->rest.n)
        return false;
    *out = (struct str){take(in, n), n};
    return true;
}

static enum err damaged(struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG, "the snapshot is damaged");
}

static bool sum_is_right(struct str bytes)
{
    uint64_t sum = 0, said;
    size_t n = bytes.n - sizeof(said);

    memcpy(&said, bytes.p + n, sizeof(said));
    for (size_t at = 0; at < n; at += PIECE_BYTES)
        sum =
            next_sum(sum, str_sub(bytes, at,
                                  at + PIECE_BYTES < n ? at + PIECE_BYTES : n));
    return sum == said;
}

static enum err read_head(struct in *in, const uint8_t *stamp, struct why *why)
{
    struct str all = in->rest;
    struct head *h = &in->head;
    uint64_t make;
    enum err e = make_of(&make);

    if (e)
        return e;
    if (all.n < sizeof(*h) + sizeof(uint64_t) ||
        !take_into(in, h, sizeof(*h)) ||
        memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0)
        return why_err(why, ERR_BAD_CONFIG, "this is no snapshot");
    if (h->version != VERSION || h->order != ORDER || h->make != make)
        return why_err(why, ERR_BAD_CONFIG,
                       "the snapshot was written by another version");
    if (memcmp(h->stamp, stamp, sizeof(h->stamp)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "the snapshot is of another state or model");
    if (!sum_is_right(all))
        return damaged(why);
    in->rest.n -= sizeof(uint64_t);
    /* Each takes four bytes at least: so none is allocated in vain. */
    return h->dims > INDEX_DIMS_MAX || h->zero ||
                   (h->quick && h->quick >= h->dims) ||
                   h->n_classes > in->rest.n / 4 ||
                   h->n_stems > in->rest.n / 4 || h->n_agents > in->rest.n / 4
               ? damaged(why)
               : OK;
}

static enum err read_classes(struct in *in, struct why *why)
{
    in->classes = FAULT("index.read_classes")
                      ? NULL
                      : calloc(in->head.n_classes + 1, sizeof(*in->classes));
    if (!in->classes)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < in->head.n_classes; i++) {
        struct str key;
        unsigned kind;

        if (!take_str(in, &key) || key.n == 0)
            return damaged(why);
        kind = (unsigned)(key.p[0] - '0');
        if (kind > INDEX_CREATOR || (kind == INDEX_PUBLIC && key.n != 1))
            return damaged(why);
        in->classes[i] = (struct index_class){(enum index_class_kind)kind,
                                              str_sub(key, 1, key.n)};
    }
    return OK;
}

static enum err read_stems(struct in *in, struct why *why)
{
    in->stems = FAULT("index.read_stems")
                    ? NULL
                    : calloc(in->head.n_stems + 1, sizeof(*in->stems));
    if (!in->stems)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < in->head.n_stems; i++)
        if (!take_str(in, &in->stems[i]) || in->stems[i].n > INDEX_TERM_MAX)
            return damaged(why);
    return OK;
}

static enum err read_words(struct in *in, struct text_doc **out,
                           struct why *why)
{
    uint32_t n;
    enum err e;

    if (!take_into(in, &n, sizeof(n)) || n > INDEX_DOC_TERMS_MAX ||
        !take_into(in, in->words, n * sizeof(*in->words)))
        return damaged(why);
    e = text_prepare_words(in->x->text, in->stems, in->head.n_stems, in->words,
                           n, out);
    return e == ERR_BAD_REQUEST ? damaged(why) : e;
}

static enum err read_vectors(struct in *in, struct index_change *c,
                             struct why *why)
{
    size_t each = vec_packed_bytes(in->head.dims);
    size_t n = c->entry->n_docs + 1;
    const char *p = take(in, n * each);
    struct vec_packed v;
    enum err e;

    if (!p)
        return damaged(why);
    for (size_t i = 0; i < n; i++)
        if (!vec_packed_open(&v, (const uint8_t *)p + i * each, each,
                             in->head.dims))
            return damaged(why);
    e = index_change_vectors(in->x, c, (const uint8_t *)p);
    if (!e)
        index_change_profile(in->x, c, (const uint8_t *)p + (n - 1) * each);
    return e;
}

/* Whether there is such a creator; the name, empty for the platform's. */
static bool owner_of(const struct in *in, uint32_t place, struct str *out)
{
    *out = STR("");
    if (place == NO_CLASS)
        return true;
    if (place >= in->head.n_classes ||
        in->classes[place].kind != INDEX_CREATOR || !in->classes[place].name.n)
        return false;
    *out = in->classes[place].name;
    return true;
}

static bool are_levels(const struct levels_of *l)
{
    bool are_finite = true;

    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        are_finite =
            are_finite && isfinite(l->of[t].mid) && isfinite(l->of[t].high);
    return are_finite;
}

static enum err read_agent(struct in *in, struct why *why)
{
    struct index *x = in->x;
    struct agent_head h;
    struct index_change *c;
    const char *name;
    struct str owner;
    enum err e;

    if (!take_into(in, &h, sizeof(h)) || !(name = take(in, h.name_bytes)) ||
        h.number >= x->max_docs ||
        (h.number < x->agents_end && x->agents[h.number]) ||
        h.cls >= in->head.n_classes || !owner_of(in, h.owner, &owner) ||
        h.n_docs == 0 || h.n_docs > in->rest.n / 4 ||
        h.has_vectors > (in->head.quick ? 2 : in->head.dims > 0) ||
        !are_levels(&h.level))
        return damaged(why);
    e = index_change_new(x, (struct str){name, h.name_bytes},
                         in->classes[h.cls], owner, h.n_docs, &c);
    if (e)
        return e;
    for (size_t i = 0; !e && i < h.n_docs; i++)
        e = read_words(in, &c->texts[i], why);
    if (!e && h.has_vectors)
        e = read_vectors(in, c, why);
    if (e) {
        index_forget(x, c);
        return e;
    }
    c->is_for_now = h.has_vectors > 1;
    c->level = h.level;
    c->has_level = true;
    index_put(x, h.number, c);
    return OK;
}

static enum err read_all(struct in *in, const uint8_t *stamp, struct why *why)
{
    enum err e = read_head(in, stamp, why);

    if (e)
        return e;
    index_set_parts(in->x, in->head.dims, in->head.quick);
    in->words = FAULT("index.read_words") ? NULL : malloc(SCRATCH_BYTES);
    if (!in->words)
        return ERR_NOMEM;
    e = read_classes(in, why);
    if (!e)
        e = read_stems(in, why);
    for (uint32_t i = 0; !e && i < in->head.n_agents; i++)
        e = read_agent(in, why);
    return !e && in->rest.n > 0 ? damaged(why) : e;
}

enum err index_restore(struct index *x, const uint8_t stamp[INDEX_STAMP_BYTES],
                       struct str bytes, struct why *why)
{
    struct in in = {.rest = bytes, .x = x};
    uint32_t dims = x->vectors.dims, quick = x->vectors.quick;
    enum err e;

    assert(x->n_agents == 0 && x->n_promised == 0);
    e = read_all(&in, stamp, why);
    free(in.classes);
    free(in.stems);
    free(in.words);
    if (!e)
        return OK;
    index_clear(x);
    index_set_parts(x, dims, quick);
    if (e == ERR_NOMEM || e == ERR_LIMIT)
        why_err(why, e, "the snapshot does not fit: %s", err_row(e)->wording);
    return e;
}
