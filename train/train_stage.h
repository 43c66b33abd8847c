#ifndef TRAIN_STAGE_H
#define TRAIN_STAGE_H

/* What tests of train/ share: texts of no meaning, and a teacher small enough
 * to learn from within a second. It adds up a few numbers of chance for each
 * word and a part for where the word stands, so that a table can come near to
 * it but not all the way, as with a real one. */

#include <math.h>
#include <stdio.h>

#include "embed/internal.h"
#include "test/t.h"
#include "train/make.h"

enum { TOY_DIMS = 24 }; /* of TEACHER_DIMS, so that tests take no time */

static const char *const toy_verbs[] = {"book",   "cancel", "show", "find",
                                        "delete", "create", "send", "open"};
static const char *const toy_things[] = {
    "flight",  "table",   "invoice", "server",  "playlist",
    "account", "weather", "ticket",  "message", "photo"};
static const char *const toy_rest[] = {
    "for me",    "in new york",
    "right now", "with a credit card",
    "please",    "of the kubernetes cluster"};

struct toy {
    struct teacher teacher;
    struct buf bytes;
    struct vocab vocab;
    size_t n_asked;
};

static inline void toy_embed(void *ctx, void *scratch, const struct str *texts,
                             size_t n, float *out)
{
    struct toy *toy = ctx;

    (void)scratch;
    memset(out, 0, n * TEACHER_DIMS * sizeof(*out));
    for (size_t i = 0; i < n; i++, out += TEACHER_DIMS) {
        struct str rest = texts[i];
        float squares = 0;

        for (uint64_t at = 0; rest.n; at++) {
            uint64_t word =
                hash_bytes(str_cut(&rest, ' '), (uint64_t[2]){13, 17});

            for (size_t j = 0; j < TOY_DIMS; j++)
                out[j] +=
                    (float)(chance_real(chance_at(word, 0, j)) - 0.4) +
                    (float)(chance_real(chance_at(word, at, j)) - 0.5) * 0.2f;
        }
        for (size_t j = 0; j < TOY_DIMS; j++)
            squares += out[j] * out[j];
        for (size_t j = 0; squares > 0 && j < TOY_DIMS; j++)
            out[j] /= sqrtf(squares);
    }
    __atomic_fetch_add(&toy->n_asked, n, __ATOMIC_RELAXED);
}

static inline void *toy_scratch(void *ctx)
{
    return ctx;
}

static inline void toy_scratch_free(void *ctx, void *scratch)
{
    (void)ctx;
    (void)scratch;
}

static inline void add_piece(struct str *pieces, size_t *n, struct str s)
{
    for (size_t i = 0; i < *n; i++)
        if (str_eq(pieces[i], s))
            return;
    pieces[(*n)++] = s;
}

/* Every letter, also inside of words, some words, and a teacher's marks. */
static inline void toy_init(struct toy *toy)
{
    static char letters[26][1], inside[26][3];
    struct str pieces[128];
    size_t n = 0;

    *toy = (struct toy){.n_asked = 0};
    add_piece(pieces, &n, STR("[PAD]"));
    add_piece(pieces, &n, STR("[UNK]"));
    for (size_t i = 0; i < 26; i++) {
        letters[i][0] = (char)('a' + i);
        memcpy(inside[i], (char[3]){'#', '#', (char)('a' + i)}, 3);
        add_piece(pieces, &n, (struct str){letters[i], 1});
        add_piece(pieces, &n, (struct str){inside[i], 3});
    }
    for (size_t i = 0; i < 8; i++)
        add_piece(pieces, &n, str_of(toy_verbs[i]));
    for (size_t i = 0; i < 9; i++)
        add_piece(pieces, &n, str_of(toy_things[i]));
    add_piece(pieces, &n, STR("credit"));
    add_piece(pieces, &n, STR("card"));
    buf_init(&toy->bytes, 1 << 20);
    CHECK(vocab_make(pieces, n, &toy->bytes, NULL) == OK);
    CHECK(vocab_open(&toy->vocab, buf_str(&toy->bytes), NULL) == OK);
    toy->teacher = (struct teacher){
        .ctx = toy,
        .vocab = &toy->vocab,
        .scratch_new = toy_scratch,
        .scratch_free = toy_scratch_free,
        .embed = toy_embed,
    };
    snprintf(toy->teacher.hash, sizeof(toy->teacher.hash), "%064d", 7);
}

static inline void toy_fini(struct toy *toy)
{
    buf_fini(&toy->bytes);
}

/* A few hundred texts, and pairs of them. */
static inline void toy_texts(struct corpus *c, const struct recipe *r)
{
    uint8_t source;

    corpus_init(c, r);
    source = corpus_source(c, STR("tldr"));
    for (size_t i = 0; i < 8 * 10 * 6; i += 2) {
        const char *verb = toy_verbs[i % 8], *thing = toy_things[i / 8 % 10],
                   *rest = toy_rest[i / 80];
        char a[128], b[128];

        snprintf(a, sizeof(a), "%s a %s %s", verb, thing, rest);
        snprintf(b, sizeof(b), "%s: I want to %s the %s", rest, verb, thing);
        corpus_pair(c, corpus_add(c, source, str_of(a)),
                    corpus_add(c, source, str_of(b)), source);
    }
    corpus_settle(c, r);
}

/* How people ask, and of what. */
struct toy_speech {
    struct grammar grammar;
    struct lexicon lexicon;
};

static inline void toy_speech_init(struct toy_speech *s, const struct corpus *c)
{
    struct why why = {""};

    if (grammar_read(&s->grammar, SOURCE_ROOT "/train/utterances.txt", &why))
        T_FAIL("%s", why.text);
    lexicon_init(&s->lexicon);
    for (size_t i = 0; i < 10; i++)
        lexicon_offer(&s->lexicon, &s->grammar, STR("wordnet"),
                      str_of(toy_things[i]), STR("a thing"));
    lexicon_offer(&s->lexicon, &s->grammar, STR("wordnet"), STR("credit card"),
                  STR("a thing"));
    lexicon_offer(&s->lexicon, &s->grammar, STR("wordnet"), STR("new"),
                  STR("not old"));
    lexicon_offer(&s->lexicon, &s->grammar, STR("tldr"), STR("Pay the bill."),
                  STR("bills"));
    lexicon_settle(&s->lexicon, c);
}

static inline void toy_speech_fini(struct toy_speech *s)
{
    grammar_fini(&s->grammar);
    lexicon_fini(&s->lexicon);
}

/* Quick, and with everything switched on. */
static inline struct recipe toy_recipe(void)
{
    struct recipe r = recipe_builtin();

    r.cards = 50;
    r.requests = 50;
    r.joins = 20;
    r.utterances = 50;
    r.crops = 0;
    r.held_permille = 100;
    r.word_min_count = 2;
    r.phrase_min_count = 5;
    r.epochs = 2;
    r.batch = 64;
    r.rate = 0.01;
    r.warm_up = 5;
    r.linger = 3;
    r.relation = 0.5;
    r.relation_block = 32;
    r.drop = 0.1;
    r.pair_epochs = 1;
    r.pair_batch = 32;
    return r;
}

static inline void toy_train(struct train_result *out, struct recipe r,
                             unsigned n_threads)
{
    struct corpus c;
    struct toy toy;
    struct toy_speech speech;
    struct why why = {""};

    toy_init(&toy);
    toy_texts(&c, &r);
    toy_speech_init(&speech, &c);
    if (train_make(out, &c,
                   &(struct train_job){.recipe = r,
                                       .teacher = &toy.teacher,
                                       .grammar = &speech.grammar,
                                       .lexicon = &speech.lexicon,
                                       .n_threads = n_threads,
                                       .is_quiet = true},
                   &why) != OK)
        T_FAIL("%s", why.text);
    toy_speech_fini(&speech);
    corpus_fini(&c);
    toy_fini(&toy);
}

#endif
