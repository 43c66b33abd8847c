/* The whole index as bytes, so that a start need not read every word of every
 * agent again. It is only a cache: anything unexpected is discarded, and the
 * registry rebuilds the index from its records.
 *
 *     head       magic, version, byte order, make, stamp, dims, those of the
 *                first part, counts
 *     classes    kind, name
 *     stems      by number; empty where one is free
 *     agents     number, class, creator, levels, name; for each document its
 *                words; then the packed vectors of all of them and of its
 *                profile, if it has any
 *     sum        over everything before it
 *
 * The sum covers pieces of a fixed size, each hashed with the sum of those
 * before it. It detects damage, not malice. So everything is validated on the
 * way in, and a forged snapshot can cause nothing worse than a wrong ranking.
 *
 * `make` is a hash of the documents of a fixed agent: another stemmer, other
 * stop words, other rules for words or names, or other weights give another
 * make. Documents and words get new numbers; answers depend on neither. */
#include "registry/index/data.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "registry/index/text.h"

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
    uint32_t has_vectors; /* one: full or of one part; two: for now */
    struct levels_of level;
};

static uint64_t snap_next_sum(uint64_t sum, struct str piece)
{
    const uint64_t seed[2] = {sum, 0x736e617073686f74};

    return hash_bytes(piece, seed);
}

static uint64_t snap_sum_words(const struct text *t, const struct text_doc *d,
                               uint64_t sum)
{
    for (uint32_t i = 0; i < d->n; i++) {
        const struct text_entry *e = &d->entries[i];

        sum = snap_next_sum(sum + e->count, text_stem(t, e->term));
    }
    return sum;
}

/* A hash of the documents of an agent that uses every part of a card, with
 * words that exercise every rule. */
static enum err snap_make(uint64_t *out)
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
    enum err e = OK;

    said.id = STR("other");
    *out = 0;
    for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]) && !e; i++) {
        struct text_doc *d;

        e = text_prepare(t, &agent, docs[i], &d);
        if (!e) {
            *out = snap_sum_words(t, d, *out);
            text_forget(t, d);
        }
    }
    text_free(t);
    return e;
}

struct out {
    bool (*write)(void *ctx, struct str bytes);
    void *ctx;
    char *piece;
    size_t n;
    uint64_t sum;
    bool failed;
};

static void snap_flush(struct out *o)
{
    struct str piece = {o->piece, o->n};

    if (o->n == 0 || o->failed)
        return;
    o->sum = snap_next_sum(o->sum, piece);
    o->failed = FAULT("index.write") || !o->write(o->ctx, piece);
    o->n = 0;
}

static void snap_put(struct out *o, const void *p, size_t n)
{
    const char *from = p;

    while (n > 0) {
        size_t part = PIECE_BYTES - o->n < n ? PIECE_BYTES - o->n : n;

        memcpy(o->piece + o->n, from, part);
        o->n += part;
        from += part;
        n -= part;
        if (o->n == PIECE_BYTES)
            snap_flush(o);
        if (o->failed)
            o->n = 0;
    }
}

static void snap_put_u32(struct out *o, uint32_t v)
{
    snap_put(o, &v, sizeof(v));
}

static void snap_put_str(struct out *o, struct str s)
{
    snap_put_u32(o, (uint32_t)s.n);
    snap_put(o, s.p, s.n);
}

/* Number the classes that are in use; unused ones are left out. */
static uint32_t snap_number_classes(const struct index *x, uint32_t *places)
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

static void snap_put_agent(struct out *o, const struct index *x,
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

    snap_put(o, &h, sizeof(h));
    snap_put(o, e->name.p, e->name.n);
    for (size_t i = 0; i < e->n_docs; i++) {
        size_t n = text_words(x->text, e->docs[i], scratch);

        snap_put_u32(o, (uint32_t)n);
        snap_put(o, scratch, n * sizeof(struct text_word));
    }
    for (size_t i = 0; e->has_vectors && i < e->n_docs; i++) {
        index_vecs_get(&x->vectors, e->docs[i], scratch);
        snap_put(o, scratch, bytes);
    }
    if (e->has_vectors) {
        index_vecs_get(&x->profiles.vecs, e->slot, scratch);
        snap_put(o, scratch, bytes);
    }
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
    void *scratch = mem_new(SCRATCH_BYTES);
    uint64_t sum, make;
    enum err e = snap_make(&make);

    o.piece = mem_new(PIECE_BYTES);
    if (!places)
        e = ERR_NOMEM;
    if (!e) {
        struct head h = {
            .version = VERSION,
            .order = ORDER,
            .make = make,
            .dims = x->vectors.dims,
            .quick = x->vectors.quick,
            .n_classes = snap_number_classes(x, places),
            .n_stems = text_terms_end(x->text),
            .n_agents = (uint32_t)x->n_agents,
        };

        memcpy(h.magic, MAGIC, sizeof(h.magic));
        memcpy(h.stamp, stamp, sizeof(h.stamp));
        snap_put(&o, &h, sizeof(h));
        for (size_t i = 0; i < x->n_classes; i++)
            if (places[i] != NO_CLASS)
                snap_put_str(&o, x->classes[i]->key);
        for (uint32_t i = 0; i < text_terms_end(x->text); i++)
            snap_put_str(&o, text_stem(x->text, i));
        for (size_t i = 0; i < x->agents_end && !o.failed; i++)
            if (x->agents[i])
                snap_put_agent(&o, x, x->agents[i], places, scratch);
        snap_flush(&o);
        sum = o.sum;
        snap_put(&o, &sum, sizeof(sum));
        snap_flush(&o);
        e = o.failed ? ERR_IO : OK;
    }
    free(places);
    free(scratch);
    free(o.piece);
    return e;
}

struct in {
    struct str rest;
    struct index *x;
    struct head head;
    struct index_class *classes;
    struct str *stems;
    struct text_word *words; /* of one document */
};

/* NULL: fewer bytes are left. */
static const char *snap_take(struct in *in, size_t n)
{
    const char *p = in->rest.p;

    if (n > in->rest.n)
        return NULL;
    in->rest = str_sub(in->rest, n, in->rest.n);
    return p;
}

static bool snap_take_into(struct in *in, void *to, size_t n)
{
    const char *p = snap_take(in, n);

    if (p)
        memcpy(to, p, n);
    return p != NULL;
}

static bool snap_take_str(struct in *in, struct str *out)
{
    uint32_t n;

    if (!snap_take_into(in, &n, sizeof(n)) || n > in->rest.n)
        return false;
    *out = (struct str){snap_take(in, n), n};
    return true;
}

static enum err snap_damaged(struct why *why)
{
    return why_err(why, ERR_BAD_CONFIG, "the snapshot is damaged");
}

static bool snap_sum_is_right(struct str bytes)
{
    uint64_t sum = 0, said;
    size_t n = bytes.n - sizeof(said);

    memcpy(&said, bytes.p + n, sizeof(said));
    for (size_t at = 0; at < n; at += PIECE_BYTES)
        sum = snap_next_sum(
            sum,
            str_sub(bytes, at, at + PIECE_BYTES < n ? at + PIECE_BYTES : n));
    return sum == said;
}

static enum err snap_read_head(struct in *in, const uint8_t *stamp,
                               struct why *why)
{
    struct str all = in->rest;
    struct head *h = &in->head;
    uint64_t make;
    enum err e = snap_make(&make);

    if (e)
        return e;
    if (all.n < sizeof(*h) + sizeof(uint64_t) ||
        !snap_take_into(in, h, sizeof(*h)) ||
        memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0)
        return why_err(why, ERR_BAD_CONFIG, "this is no snapshot");
    if (h->version != VERSION || h->order != ORDER || h->make != make)
        return why_err(why, ERR_BAD_CONFIG,
                       "the snapshot was written by another version");
    if (memcmp(h->stamp, stamp, sizeof(h->stamp)) != 0)
        return why_err(why, ERR_BAD_CONFIG,
                       "the snapshot is of another state or model");
    if (!snap_sum_is_right(all))
        return snap_damaged(why);
    in->rest.n -= sizeof(uint64_t);
    /* Each takes at least four bytes, which bounds the allocations. */
    return h->dims > INDEX_DIMS_MAX || h->zero ||
                   (h->quick && h->quick >= h->dims) ||
                   h->n_classes > in->rest.n / 4 ||
                   h->n_stems > in->rest.n / 4 || h->n_agents > in->rest.n / 4
               ? snap_damaged(why)
               : OK;
}

static enum err snap_read_classes(struct in *in, struct why *why)
{
    in->classes = FAULT("index.read_classes")
                      ? NULL
                      : calloc(in->head.n_classes + 1, sizeof(*in->classes));
    if (!in->classes)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < in->head.n_classes; i++) {
        struct str key;
        unsigned kind;

        if (!snap_take_str(in, &key) || key.n == 0)
            return snap_damaged(why);
        kind = (unsigned)(key.p[0] - '0');
        if (kind > INDEX_ASIDE ||
            ((kind == INDEX_PUBLIC || kind == INDEX_ASIDE) && key.n != 1))
            return snap_damaged(why);
        in->classes[i] = (struct index_class){(enum index_class_kind)kind,
                                              str_sub(key, 1, key.n)};
    }
    return OK;
}

static enum err snap_read_stems(struct in *in, struct why *why)
{
    in->stems = FAULT("index.read_stems")
                    ? NULL
                    : calloc(in->head.n_stems + 1, sizeof(*in->stems));
    if (!in->stems)
        return ERR_NOMEM;
    for (uint32_t i = 0; i < in->head.n_stems; i++)
        if (!snap_take_str(in, &in->stems[i]) ||
            in->stems[i].n > INDEX_TERM_MAX)
            return snap_damaged(why);
    return OK;
}

static enum err snap_read_words(struct in *in, struct text_doc **out,
                                struct why *why)
{
    uint32_t n;
    enum err e;

    if (!snap_take_into(in, &n, sizeof(n)) || n > INDEX_DOC_TERMS_MAX ||
        !snap_take_into(in, in->words, n * sizeof(*in->words)))
        return snap_damaged(why);
    e = text_prepare_words(in->x->text, in->stems, in->head.n_stems, in->words,
                           n, out);
    return e == ERR_BAD_REQUEST ? snap_damaged(why) : e;
}

static enum err snap_read_vectors(struct in *in, struct index_change *c,
                                  struct why *why)
{
    size_t each = vec_packed_bytes(in->head.dims);
    size_t n = c->entry->n_docs + 1;
    const char *p = snap_take(in, n * each);
    struct vec_packed v;
    enum err e;

    if (!p)
        return snap_damaged(why);
    for (size_t i = 0; i < n; i++)
        if (!vec_packed_open(&v, (const uint8_t *)p + i * each, each,
                             in->head.dims))
            return snap_damaged(why);
    e = index_change_vectors(in->x, c, (const uint8_t *)p);
    if (!e)
        index_change_profile(in->x, c, (const uint8_t *)p + (n - 1) * each);
    return e;
}

/* The name of a creator, empty for the platform. False: no such creator. */
static bool snap_owner(const struct in *in, uint32_t place, struct str *out)
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

static bool snap_levels_are_finite(const struct levels_of *l)
{
    bool are_finite = true;

    for (enum query_kind t = 0; t < N_QUERY_KINDS; t++)
        are_finite =
            are_finite && isfinite(l->of[t].mid) && isfinite(l->of[t].high);
    return are_finite;
}

static enum err snap_read_agent(struct in *in, struct why *why)
{
    struct index *x = in->x;
    struct agent_head h;
    struct index_change *c;
    const char *name;
    struct str owner;
    enum err e;

    if (!snap_take_into(in, &h, sizeof(h)) ||
        !(name = snap_take(in, h.name_bytes)) || h.number >= x->max_docs ||
        (h.number < x->agents_end && x->agents[h.number]) ||
        h.cls >= in->head.n_classes || !snap_owner(in, h.owner, &owner) ||
        h.n_docs == 0 || h.n_docs > in->rest.n / 4 ||
        h.has_vectors > (in->head.quick ? 2 : in->head.dims > 0) ||
        !snap_levels_are_finite(&h.level))
        return snap_damaged(why);
    e = index_change_new(x, (struct str){name, h.name_bytes},
                         in->classes[h.cls], owner, h.n_docs, &c);
    if (e)
        return e;
    for (size_t i = 0; !e && i < h.n_docs; i++)
        e = snap_read_words(in, &c->texts[i], why);
    if (!e && h.has_vectors)
        e = snap_read_vectors(in, c, why);
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

static enum err snap_read_all(struct in *in, const uint8_t *stamp,
                              struct why *why)
{
    enum err e = snap_read_head(in, stamp, why);

    if (e)
        return e;
    index_set_parts(in->x, in->head.dims, in->head.quick);
    in->words = mem_new(SCRATCH_BYTES);
    e = snap_read_classes(in, why);
    if (!e)
        e = snap_read_stems(in, why);
    for (uint32_t i = 0; !e && i < in->head.n_agents; i++)
        e = snap_read_agent(in, why);
    return !e && in->rest.n > 0 ? snap_damaged(why) : e;
}

enum err index_restore(struct index *x, const uint8_t stamp[INDEX_STAMP_BYTES],
                       struct str bytes, struct why *why)
{
    struct in in = {.rest = bytes, .x = x};
    uint32_t dims = x->vectors.dims, quick = x->vectors.quick;
    enum err e;

    assert(x->n_agents == 0 && x->n_promised == 0);
    e = snap_read_all(&in, stamp, why);
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
