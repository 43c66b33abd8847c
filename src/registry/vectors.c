/* Which texts of a card are made into vectors, and how those are stored.
 *
 *     [agent for search] [agent for routing] [skill]... [example]...
 *
 * One after the other in one row, each as vec_pack leaves it, so that a row is
 * used as it is read. All skills come before all examples. If a card has so
 * many examples that a row would exceed VECTORS_BYTES_MAX, the last ones are
 * left out, by a rule that needs only the card and the length of a vector.
 *
 * The index has means: for a skill that of its text and examples, for an agent
 * that of everything, skills weighted by their words. index_near.c decides how
 * both count for a message. Measured with agents of many skills (public sets,
 * combined by topic or at random): the mean of all alone is worse by 4 to 50
 * points, the nearest of all single texts by 1 to 11.
 *
 * A model of two parts (vec.h) makes full vectors on its thread; the row has
 * those. Until they are there, the index has means of quick ones, made at once
 * and not stored, so that an agent is found from the first moment on, and while
 * all vectors are rebuilt for another model. The parts of a mean are scaled to
 * length one each, like those of a vector, so a quick query finds the same with
 * either kind.
 *
 * The vector length of an unconfigured provider is unknown until it answers.
 * Its rows are accepted as they are, because asking again costs money; if it
 * answers with another length, they are dropped.
 *
 * Rejected: a row for each text. The vectors of an agent are written and read
 * together, and most of a row would be its key. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/words.h"
#include "registry/internal.h"

enum {
    /* For one text: a prompt with keywords, a description with a name. */
    TEXT_BYTES_MAX = 256 * 1024,
    TEXTS_BYTES_MAX = 8 * 1024 * 1024,

    /* Beyond this even the fastest model takes too long. */
    NOW_TEXTS_MAX = 256,
    NOW_BYTES_MAX = 64 * 1024,

    OWN_VECTORS = 2, /* of the agent, before the skills */
    LONG_WORD = 16,  /* bytes */
};

static size_t n_texts(const struct agent *a)
{
    size_t n = OWN_VECTORS + a->n_skills;

    for (size_t i = 0; i < a->n_skills; i++)
        n += a->skills[i].examples.n;
    return n;
}

/* Copy the contents of `text` to the list, and empty it. */
static bool vectors_keep_text(struct arena *a, struct buf *text,
                              struct str *list, size_t *n)
{
    struct str s = {arena_strdup(a, buf_str(text)), text->n};

    if (!s.p || text->over)
        return false;
    list[(*n)++] = s;
    buf_clear(text);
    return true;
}

static bool vectors_keep_texts(struct arena *a, const struct agent *agent,
                               struct buf *text, struct str *list, size_t *n)
{
    card_search_text(text, agent);
    if (!vectors_keep_text(a, text, list, n))
        return false;
    card_routing_text(text, agent);
    if (!vectors_keep_text(a, text, list, n))
        return false;
    for (size_t i = 0; i < agent->n_skills; i++) {
        card_skill_text(text, &agent->skills[i]);
        if (!vectors_keep_text(a, text, list, n))
            return false;
    }
    for (size_t i = 0; i < agent->n_skills; i++)
        for (size_t k = 0; k < agent->skills[i].examples.n; k++) {
            buf_add_str(text, agent->skills[i].examples.list[k]);
            if (!vectors_keep_text(a, text, list, n))
                return false;
        }
    return true;
}

enum err vectors_texts(struct arena *a, const struct agent *agent,
                       struct strs *out)
{
    struct str *list = arena_array(a, n_texts(agent), sizeof(*list));
    struct buf text;
    size_t n = 0;
    bool is_whole;

    if (!list)
        return ERR_NOMEM;
    buf_init(&text, TEXT_BYTES_MAX);
    is_whole = vectors_keep_texts(a, agent, &text, list, &n);
    buf_fini(&text);
    if (!is_whole)
        return ERR_NOMEM;
    *out = (struct strs){list, n};
    return OK;
}

/* Compares the texts and not the fields, so it stays right however texts are
 * made. */
bool vectors_are_same(const struct agent *a, const struct agent *b)
{
    struct arena scratch;
    struct strs x, y;
    bool is_same = a->n_skills == b->n_skills && n_texts(a) == n_texts(b);

    if (!is_same)
        return false;
    arena_init(&scratch, 2 * TEXTS_BYTES_MAX);
    is_same =
        !vectors_texts(&scratch, a, &x) && !vectors_texts(&scratch, b, &y);
    for (size_t i = 0; is_same && i < x.n; i++)
        is_same = str_eq(x.list[i], y.list[i]);
    arena_fini(&scratch);
    return is_same;
}

size_t vectors_kept(const struct agent *a, uint32_t dims)
{
    size_t n = n_texts(a), most = VECTORS_BYTES_MAX / vec_packed_bytes(dims);

    return n < most ? n : most;
}

bool vectors_pack(struct buf *out, const float *v, uint32_t dims)
{
    size_t n = vec_packed_bytes(dims);
    char *to = FAULT("vectors.pack") ? NULL : buf_reserve(out, n);

    if (!to)
        return false;
    (void)vec_pack(v, dims, (uint8_t *)to); /* all zero is alike nothing */
    buf_commit(out, n);
    return true;
}

/* Pack the full or the quick vectors of all texts. */
static bool vectors_pack_texts(struct registry *r, const struct strs *texts,
                               bool is_quick, struct buf *out)
{
    struct embed *embed = r->opts.embed;
    uint32_t dims = r->vectors->stamp.dims;
    float v[INDEX_DIMS_MAX];

    for (size_t i = 0; i < texts->n; i++)
        if (!(is_quick ? embed_quick(embed, texts->list[i], v)
                       : embed_now(embed, texts->list[i], EMBED_DOCUMENT, v)) ||
            !vectors_pack(out, v, dims))
            return false;
    return true;
}

static bool texts_are_small(const struct strs *texts)
{
    size_t bytes = 0;

    for (size_t i = 0; i < texts->n; i++)
        bytes += texts->list[i].n;
    return texts->n <= NOW_TEXTS_MAX && bytes <= NOW_BYTES_MAX;
}

bool vectors_now(struct registry *r, const struct agent *a, struct buf *out)
{
    struct arena scratch;
    struct strs texts;
    bool is_made;

    vectors_learn(r);
    if (r->is_stopped || vectors_obstacle(r) || vectors_have_quick(r) ||
        !embed_stamp(r->opts.embed).dims || n_texts(a) > NOW_TEXTS_MAX)
        return false; /* with two parts, full ones never can */
    arena_init(&scratch, TEXTS_BYTES_MAX);
    is_made = !vectors_texts(&scratch, a, &texts) && texts_are_small(&texts) &&
              vectors_pack_texts(r, &texts, false, out);
    arena_fini(&scratch);
    if (!is_made)
        buf_clear(out);
    return is_made;
}

void vectors_append(struct registry *r, struct tx *tx, const struct agent *a,
                    struct str packed)
{
    const struct embed_stamp *stamp = &r->vectors->stamp;
    struct tx_op *op = tx_put(tx, &vector_table);
    char key[AGENT_NAME_MAX + 1];

    agent_key(a->name, key);
    tx_set(op, VECTOR_AGENT, value_text(str_of(key)));
    tx_set(op, VECTOR_REVISION, value_int(a->revision));
    tx_set(op, VECTOR_MODEL, value_text(str_of(stamp->name)));
    tx_set(op, VECTOR_HASH, value_text(str_of(stamp->hash)));
    tx_set(op, VECTOR_DIMS, value_int(stamp->dims));
    tx_set(op, VECTOR_BYTES, value_blob(packed));
}

static bool all_are_vectors(struct str packed, size_t each, uint32_t dims)
{
    struct vec_packed v;

    for (size_t at = 0; at < packed.n; at += each)
        if (!vec_packed_open(&v, (const uint8_t *)packed.p + at, each, dims))
            return false;
    return true;
}

static void sum_add_packed(double *sum, double weight, const uint8_t *packed,
                           uint32_t dims)
{
    struct vec_packed v;

    if (!vec_packed_open(&v, packed, vec_packed_bytes(dims), dims))
        return;
    for (size_t i = 0; i < dims; i++)
        sum[i] +=
            weight * (double)v.scale * (256 * (double)v.high[i] + v.low[i]);
}

/* The length of vectors, and of their first part. */
struct lengths {
    uint32_t dims, quick;
};

static bool pack_sum(struct buf *out, const double *sum, struct lengths l)
{
    float v[INDEX_DIMS_MAX];

    for (size_t i = 0; i < l.dims; i++)
        v[i] = (float)sum[i];
    if (l.quick)
        (void)vec_join(v, l.dims, l.quick); /* all zero is alike nothing */
    return vectors_pack(out, v, l.dims);
}

/* The mean of a skill: its text and examples; without examples its text, bit
 * for bit. */
static bool means_add_skill(struct buf *out, const uint8_t *text,
                            const uint8_t *examples, size_t n, struct lengths l)
{
    size_t each = vec_packed_bytes(l.dims);
    double sum[INDEX_DIMS_MAX];

    if (!n) {
        buf_add(out, text, each);
        return !out->over;
    }
    memset(sum, 0, l.dims * sizeof(*sum));
    sum_add_packed(sum, 1, text, l.dims);
    for (size_t i = 0; i < n; i++)
        sum_add_packed(sum, 1, examples + i * each, l.dims);
    return pack_sum(out, sum, l);
}

/* A long word counts as several: some scripts have no spaces. */
static size_t text_n_words(struct str text)
{
    struct words w;
    size_t n = 0;

    words_begin(&w, text);
    while (words_next(&w))
        if (!word_is_punctuation(w.word))
            n += 1 + w.word.n / LONG_WORD;
    return n;
}

/* words / (words + 8): 1/9 of a text for one word, a half for eight. */
static double skill_weight(const struct skill *s)
{
    size_t n = text_n_words(s->name) + text_n_words(s->description);

    for (size_t i = 0; i < s->tags.n; i++)
        n += text_n_words(s->tags.list[i]);
    return (double)n / ((double)n + 8);
}

/* The profile of an agent. Its own text counts once, with or without prompt and
 * keywords, and so does each example. The text of a skill counts by its number
 * of words, so that eight tags of one word do not outweigh the description. */
static bool means_add_agent(struct buf *out, const struct agent *a,
                            const uint8_t *packed, size_t n, struct lengths l)
{
    size_t each = vec_packed_bytes(l.dims);
    double sum[INDEX_DIMS_MAX];

    if (n == OWN_VECTORS && memcmp(packed, packed + each, each) == 0) {
        buf_add(out, packed, each);
        return !out->over;
    }
    memset(sum, 0, l.dims * sizeof(*sum));
    for (size_t i = 0; i < n; i++) {
        size_t skill = i - OWN_VECTORS;
        double weight = i < OWN_VECTORS       ? 1.0 / OWN_VECTORS
                        : skill < a->n_skills ? skill_weight(&a->skills[skill])
                                              : 1;

        sum_add_packed(sum, weight, packed + i * each, l.dims);
    }
    return pack_sum(out, sum, l);
}

/* n: the number of vectors, which may be fewer than texts. */
static bool vectors_means(const struct agent *a, const uint8_t *packed,
                          size_t n, struct lengths l, struct buf *out)
{
    size_t each = vec_packed_bytes(l.dims), at = OWN_VECTORS + a->n_skills;

    buf_add(out, packed, each);
    for (size_t i = 0; i < a->n_skills; i++) {
        size_t here = a->skills[i].examples.n;

        here = here < n - at ? here : n - at;
        if (!means_add_skill(out, packed + (OWN_VECTORS + i) * each,
                             packed + at * each, here, l))
            return false;
        at += here;
    }
    return means_add_agent(out, a, packed, n, l) && !out->over;
}

enum err registry_texts(struct arena *a, const struct agent *agent,
                        struct strs *out)
{
    return vectors_texts(a, agent, out);
}

bool registry_means(const struct agent *a, struct str packed, uint32_t dims,
                    uint32_t quick, struct buf *out)
{
    size_t n = packed.n / vec_packed_bytes(dims);

    return n == n_texts(a) && vectors_means(a, (const uint8_t *)packed.p, n,
                                            (struct lengths){dims, quick}, out);
}

static struct lengths vectors_lengths(const struct registry *r)
{
    return (struct lengths){r->vectors->stamp.dims,
                            r->vectors->stamp.quick_dims};
}

bool vectors_for_index(struct registry *r, const struct agent *a,
                       struct str packed, struct buf *out)
{
    uint32_t dims = r->vectors ? r->vectors->stamp.dims : 0;
    size_t each = vec_packed_bytes(dims);

    if (!dims || packed.n != vectors_kept(a, dims) * each ||
        !all_are_vectors(packed, each, dims))
        return false;
    return vectors_means(a, (const uint8_t *)packed.p, packed.n / each,
                         vectors_lengths(r), out);
}

/* Append the means of quick vectors to `out`. False: none. A card that is too
 * large to embed at once waits, as with every model. */
static bool vectors_quick_means(struct registry *r, const struct agent *a,
                                struct buf *out)
{
    struct arena scratch;
    struct strs texts;
    struct buf packed;
    bool is_made;

    if (!vectors_have_quick(r) || n_texts(a) > NOW_TEXTS_MAX)
        return false;
    arena_init(&scratch, TEXTS_BYTES_MAX);
    buf_init(&packed, VECTORS_BYTES_MAX);
    is_made = !vectors_texts(&scratch, a, &texts) && texts_are_small(&texts) &&
              vectors_pack_texts(r, &texts, true, &packed) &&
              vectors_means(a, (const uint8_t *)packed.p, texts.n,
                            vectors_lengths(r), out);
    buf_fini(&packed);
    arena_fini(&scratch);
    return is_made;
}

static enum err vectors_prepare_means(struct registry *r, const struct agent *a,
                                      const struct buf *means,
                                      struct index_change **out)
{
    const uint8_t *p = means ? (const uint8_t *)means->p : NULL;
    enum err e = index_prepare(r->index, a, p, out);

    if (!e && p)
        index_change_profile(r->index, *out,
                             p + (a->n_skills + 1) *
                                     vec_packed_bytes(index_dims(r->index)));
    return e;
}

enum err vectors_prepare(struct registry *r, const struct agent *a,
                         const struct buf *vectors, struct index_change **out)
{
    struct buf quick;
    enum err e;

    if (vectors)
        return vectors_prepare_means(r, a, vectors, out);
    buf_init(&quick, VECTORS_BYTES_MAX);
    if (vectors_quick_means(r, a, &quick)) {
        e = vectors_prepare_means(r, a, &quick, out);
        if (!e)
            index_change_for_now(*out);
    } else {
        e = vectors_prepare_means(r, a, NULL, out);
    }
    buf_fini(&quick);
    return e;
}

bool vectors_in_index(const struct registry *r, const struct entry *e,
                      struct buf *out)
{
    return !index_is_for_now(r->index, e->number) &&
           index_vectors(r->index, e->number, out) &&
           index_profile(r->index, e->number, out);
}

bool vectors_from_row(struct registry *r, const struct agent *a,
                      const struct row *row, struct buf *out)
{
    int64_t dims = row_int(row, VECTOR_DIMS);
    struct vectors *v = r->vectors;

    if (!v || row_int(row, VECTOR_REVISION) != a->revision ||
        !str_eq(row_str(row, VECTOR_MODEL), str_of(v->stamp.name)) ||
        !str_eq(row_str(row, VECTOR_HASH), str_of(v->stamp.hash)) || dims < 1 ||
        dims > INDEX_DIMS_MAX)
        return false;
    if (!v->stamp.dims) {
        v->stamp.dims = (uint32_t)dims;
        index_set_dims(r->index, v->stamp.dims);
        levels_again(r);
    }
    return v->stamp.dims == dims &&
           vectors_for_index(r, a, row_str(row, VECTOR_BYTES), out);
}

const char *vectors_obstacle(const struct registry *r)
{
    if (!r->vectors)
        return "there is no model for vectors";
    if (r->vectors->stamp.dims > INDEX_DIMS_MAX)
        return "the model's vectors are longer than can be searched";
    return NULL;
}

bool vectors_have_quick(const struct registry *r)
{
    return r->vectors && !r->is_stopped && !vectors_obstacle(r) &&
           r->vectors->stamp.quick_dims;
}

static void vectors_set_stamp(struct registry *r,
                              const struct embed_stamp *stamp)
{
    r->vectors->stamp = *stamp;
    if (!vectors_obstacle(r)) {
        index_set_parts(r->index, stamp->dims, stamp->quick_dims);
        levels_again(r);
        return;
    }
    index_set_dims(r->index, 0);
    log_error(r->opts.log, "registry.vectors_too_long",
              LOG_C("model", stamp->name), LOG_I("dims", stamp->dims),
              LOG_I("most", INDEX_DIMS_MAX));
}

void vectors_learn(struct registry *r)
{
    struct vectors *v = r->vectors;
    struct embed_stamp now;
    bool was_known;

    if (!v || r->is_stopped)
        return; /* embed may be gone */
    now = embed_stamp(r->opts.embed);
    if (!now.dims || now.dims == v->stamp.dims)
        return;
    was_known = v->stamp.dims != 0;
    vectors_set_stamp(r, &now);
    if (was_known)
        vectors_want_all(r);
}

void vectors_open(struct registry *r)
{
    struct vectors *v;
    struct embed_stamp stamp;

    if (!r->opts.embed)
        return;
    v = mem_new(sizeof(*v));
    v->r = r;
    v->chance = r->opts.seed[0] ^ UINT64_C(0x9e3779b97f4a7c15);
    v->later_ms = INT64_MAX;
    list_init(&v->turns);
    backlog_turn_init(&v->nobodys);
    list_init(&v->later);
    list_init(&v->jobs);
    r->vectors = v;
    stamp = embed_stamp(r->opts.embed);
    v->stamp = stamp;
    if (stamp.dims)
        vectors_set_stamp(r, &stamp);
    levels_open(r);
}

void vectors_close(struct registry *r)
{
    struct vectors *v = r->vectors;

    if (!v)
        return;
    vectors_stop(r);
    levels_close(r);
    assert(!v->n_jobs); /* the store has returned all of them */
    free(v);
    r->vectors = NULL;
}
