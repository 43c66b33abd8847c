/* Both models inside the binary as one: quick vectors at once, full ones from
 * the thread, and how they are compared. */
#include "embed/transformer/minilm.h"
#include "test/lib/embed_stage.h"

static struct estage *stage_of(enum embed_kind kind)
{
    struct estage *st = estage_begin();

    st->opts.kind = kind;
    estage_open(st);
    return st;
}

/* The vector that the thread makes. */
static void full_of(struct estage *st, const char *text, float *out)
{
    struct owner *o = ASK(st, text);
    struct embed_stamp stamp = embed_stamp(st->embed);

    AWAIT(st, o->n_done);
    CHECK(o->e == OK && embed_stamp_is(&o->stamp, &stamp));
    CHECK_INT(o->stamp.quick_dims, stamp.quick_dims);
    memcpy(out, o->vectors, stamp.dims * sizeof(*out));
    owner_free(o);
}

static double length_of(const float *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static bool are_zero(const float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] != 0)
            return false;
    return true;
}

TEST(what_is_quick_is_there_at_once_and_what_is_full_comes_later)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    struct embed_stamp stamp = embed_stamp(st->embed);
    float quick[BOTH_DIMS], full[BOTH_DIMS], now[BOTH_DIMS];

    CHECK_STR(str_of(stamp.name), "builtin");
    CHECK_INT(stamp.dims, 640);
    CHECK_INT(stamp.quick_dims, 256);
    memset(quick, 0xff, sizeof(quick));
    CHECK(embed_quick(st->embed, STR("book a flight"), quick));
    CHECK(fabs(length_of(quick, BOTH_DIMS) - 1) < 1e-6);
    CHECK(are_zero(quick + BUILTIN_DIMS, TRANSFORMER_DIMS));
    CHECK(!embed_now(st->embed, STR("book a flight"), EMBED_QUERY, now));
    full_of(st, "book a flight", full);
    CHECK(fabs(length_of(full, BOTH_DIMS) - 1) < 1e-5);
    CHECK(fabs(length_of(full, BUILTIN_DIMS) - sqrt(VEC_QUICK_PART)) < 1e-5);
    for (size_t i = 0; i < BUILTIN_DIMS; i++)
        CHECK(fabs((double)full[i] - (double)quick[i] * sqrt(VEC_QUICK_PART)) <
              1e-6);
    /* It is not cached: a hit or a miss would reveal to others that it was
     * asked. */
    CHECK(!embed_now(st->embed, STR("book a flight"), EMBED_QUERY, now));
    CHECK(!embed_now(st->embed, STR("book a flight"), EMBED_DOCUMENT, now));
    CHECK_INT(embed_stats(st->embed).quick_total, 1);
    CHECK_INT(embed_stats(st->embed).texts_total, 1);
    CHECK_INT(embed_stats(st->embed).cache_entries, 0);
    estage_free(st);
}

/* Each part equals the vector of that model alone. */
TEST(the_parts_are_those_of_the_two_models)
{
    static const char text[] = "What will the weather be in Paris tomorrow?";
    struct estage *both = stage_of(EMBED_BUILTIN);
    struct estage *table = stage_of(EMBED_TABLE);
    struct estage *transformer = stage_of(EMBED_TRANSFORMER);
    struct embed_stamp stamp = embed_stamp(transformer->embed);
    float v[BOTH_DIMS], t[BUILTIN_DIMS], x[TRANSFORMER_DIMS];

    CHECK_STR(str_of(stamp.name), "transformer");
    CHECK(stamp.dims == TRANSFORMER_DIMS && !stamp.quick_dims);
    CHECK(!embed_quick(table->embed, str_of(text), v));
    CHECK(!embed_quick(transformer->embed, str_of(text), v));
    CHECK_INT(embed_stats(table->embed).quick_total, 0);
    CHECK(embed_now(table->embed, str_of(text), EMBED_QUERY, t));
    CHECK(!embed_now(transformer->embed, str_of(text), EMBED_QUERY, x));
    full_of(transformer, text, x);
    full_of(both, text, v);
    for (size_t i = 0; i < BUILTIN_DIMS; i++)
        CHECK(fabs((double)v[i] - (double)t[i] * sqrt(VEC_QUICK_PART)) < 1e-6);
    for (size_t i = 0; i < TRANSFORMER_DIMS; i++)
        CHECK(fabs((double)v[BUILTIN_DIMS + i] -
                   (double)x[i] * sqrt(1 - VEC_QUICK_PART)) < 1e-6);
    estage_free(both);
    estage_free(table);
    estage_free(transformer);
}

static struct vec_packed packed(const float *v, uint8_t *bytes)
{
    struct vec_packed p;

    CHECK(vec_pack(v, BOTH_DIMS, bytes));
    CHECK(vec_packed_open(&p, bytes, vec_packed_bytes(BOTH_DIMS), BOTH_DIMS));
    return p;
}

TEST(quick_and_full_ones_are_compared_by_one_rule)
{
    static const char *const texts[] = {"book a flight to Rome",
                                        "find me a plane ticket"};
    struct estage *st = stage_of(EMBED_BUILTIN);
    uint8_t bytes[2][2][8 + 2 * BOTH_DIMS];
    float v[2][2][BOTH_DIMS]; /* of each text, quick and full */
    struct vec_packed p[2][2];
    double cosine;

    for (int i = 0; i < 2; i++) {
        CHECK(embed_quick(st->embed, str_of(texts[i]), v[i][0]));
        full_of(st, texts[i], v[i][1]);
        for (int k = 0; k < 2; k++) {
            p[i][k] = packed(v[i][k], bytes[i][k]);
            CHECK(vec_packed_is_quick(&p[i][k], BUILTIN_DIMS) == !k);
        }
    }
    cosine = (double)vec_cosine(v[0][0], BOTH_DIMS, v[1][0], BOTH_DIMS);
    CHECK(cosine > 0.1);
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++) {
            double like = vec_likeness(&p[0][a], &p[1][b], BUILTIN_DIMS);
            double wanted = a && b ? (double)vec_cosine(v[0][1], BOTH_DIMS,
                                                        v[1][1], BOTH_DIMS)
                                   : cosine;

            CHECK(fabs(like - wanted) < 1e-4);
            /* A text is maximally similar to itself, in every combination. */
            like = vec_likeness(&p[0][a], &p[0][b], BUILTIN_DIMS);
            CHECK(fabs(like - 1) < 1e-4);
        }
    estage_free(st);
}

/* The transformer has no vector for a text without pieces, nor any model for a
 * blank one. */
TEST(what_has_nothing_in_it_is_zero_either_way)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    float v[BOTH_DIMS];

    CHECK(embed_quick(st->embed, STR(" \n"), v));
    CHECK(are_zero(v, BOTH_DIMS));
    CHECK(embed_now(st->embed, STR(" \n"), EMBED_QUERY, v));
    CHECK(are_zero(v, BOTH_DIMS));
    full_of(st, " \n", v);
    CHECK(are_zero(v, BOTH_DIMS));
    estage_free(st);
}

/* Both cut a text at their own limit. */
TEST(quick_ones_are_cut_where_full_ones_are)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    char *text = malloc(EMBED_TEXT_MAX + 100);
    float v[BOTH_DIMS], cut[BOTH_DIMS];

    memset(text, ' ', EMBED_TEXT_MAX + 100);
    memcpy(text, "flight", 6);
    memcpy(text + EMBED_TEXT_MAX, " weather tomorrow", 17);
    CHECK(embed_quick(st->embed, (struct str){text, EMBED_TEXT_MAX + 100}, v));
    CHECK(embed_quick(st->embed, STR("flight"), cut));
    CHECK(memcmp(v, cut, sizeof(v)) == 0);
    free(text);
    estage_free(st);
}

TEST(who_gives_up_is_told_nothing_and_others_are)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    struct owner *a = ASK(st, "a flight"), *b = ASK(st, "the weather");
    float v[BOTH_DIMS];

    embed_cancel(st->embed, a->id);
    AWAIT(st, b->n_done);
    CHECK(!a->n_done && b->e == OK);
    CHECK(embed_quick(st->embed, STR("a flight"), v));
    owner_free(a);
    owner_free(b);
    estage_free(st);
}

/* The table answers, however much waits for the transformer. */
TEST(quick_ones_are_had_while_the_thread_has_too_much_to_do)
{
    struct estage *st = estage_begin();
    struct owner *all[64];
    float v[BOTH_DIMS];
    size_t n = 0;
    enum err e = OK;
    struct why why;

    st->opts.kind = EMBED_BUILTIN;
    st->opts.max_waiting = 3;
    estage_open(st);
    while (n < 64) {
        char text[32];

        snprintf(text, sizeof(text), "flight number %zu", n);
        all[n] = try_start(st->embed, EMBED_QUERY, TEXTS(text), &e, &why);
        if (!all[n])
            break;
        n++;
    }
    CHECK(n == 3 && e == ERR_BUSY && why.text[0]);
    CHECK(embed_quick(st->embed, STR("flight number 99"), v));
    for (size_t i = 0; i < n; i++) {
        AWAIT(st, all[i]->n_done);
        CHECK(all[i]->e == OK);
        owner_free(all[i]);
    }
    estage_free(st);
}

TEST(too_late_is_said_and_quick_ones_are_still_had)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    struct owner *a = ASK(st, "a flight");
    float v[BOTH_DIMS];

    st->s->ahead_ms += st->opts.timeout_ms + 1;
    AWAIT(st, a->n_done);
    CHECK(a->e == ERR_TIMEOUT || a->e == OK);
    CHECK(embed_quick(st->embed, STR("a flight"), v));
    owner_free(a);
    estage_free(st);
}

TEST(stopping_is_fine_while_something_is_under_way)
{
    for (int turns = 0; turns < 6; turns++) {
        struct estage *st = stage_of(EMBED_BUILTIN);
        struct owner *a = ASK(st, "a", "b", "c"), *b = TELL(st, "d", "e");
        float v[BOTH_DIMS];

        for (int i = 0; i < turns; i++) {
            eturn(st);
            wait_a_little(st->s);
        }
        embed_stop(st->embed, estage_stopped, st);
        AWAIT(st, st->n_stopped);
        CHECK(a->n_done && b->n_done);
        /* The table works until it is freed. */
        CHECK(embed_quick(st->embed, STR("a"), v));
        owner_free(a);
        owner_free(b);
        estage_free(st);
    }
}

static enum err try_open(struct estage *st, enum embed_kind kind,
                         struct why *why)
{
    why->text[0] = '\0';
    st->opts.kind = kind;
    return embed_new(&st->embed, &st->s->loop, &st->s->log, NULL, &st->opts,
                     why);
}

TEST(a_damaged_program_says_so)
{
    static const char *const planted[] = {"transformer.short",
                                          "transformer.other"};
    struct estage *st = estage_begin();
    struct embed_stamp stamp;
    struct why why;

    for (size_t i = 0; i < 2; i++)
        for (int kind = EMBED_BUILTIN; kind <= EMBED_TRANSFORMER; kind++) {
            enum err wanted = kind == EMBED_TABLE ? OK : ERR_BAD_CONFIG;

            fault_arm_at(planted[i], 1);
            CHECK_INT(try_open(st, (enum embed_kind)kind, &why), wanted);
            CHECK((st->embed == NULL) == (wanted != OK));
            embed_free(st->embed);
            st->embed = NULL;
            CHECK_INT(embed_check(&st->opts, &stamp, &why), wanted);
            if (wanted) {
                CHECK(strstr(why.text, "inside this program cannot be used"));
                CHECK(strstr(why.text, "install it again"));
                CHECK(!strstr(why.text, "minilm"));
            }
        }
    fault_arm(0);
    estage_free(st);
}

TEST(memory_that_is_gone_is_said)
{
    static const char *const steps[] = {"minilm.hash", "minilm.scratch",
                                        "embed.thread"};
    struct estage *st = estage_begin();
    struct why why;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        fault_arm_at(steps[i], 1);
        CHECK(try_open(st, EMBED_BUILTIN, &why) == ERR_NOMEM);
        CHECK(fault_fired() && !st->embed && why.text[0]);
    }
    fault_arm(0);
    estage_free(st);
}

TEST(the_stamp_is_that_of_both)
{
    struct embed_opts opts = {.kind = EMBED_BUILTIN};
    struct embed_stamp both, again, table, transformer, made;

    CHECK(embed_check(&opts, &both, NULL) == OK);
    CHECK(embed_check(&opts, &again, NULL) == OK);
    opts.kind = EMBED_TABLE;
    CHECK(embed_check(&opts, &table, NULL) == OK);
    opts.kind = EMBED_TRANSFORMER;
    CHECK(embed_check(&opts, &transformer, NULL) == OK);
    CHECK(embed_stamp_is(&both, &again) && !embed_stamp_is(&both, &table));
    CHECK(strcmp(both.hash, table.hash) != 0 &&
          strcmp(both.hash, transformer.hash) != 0);
    embed_stamp_both(&made, table.hash, transformer.hash);
    CHECK(embed_stamp_is(&made, &both) && made.quick_dims == BUILTIN_DIMS);
    /* A change of either changes the stamp. */
    embed_stamp_both(&made, transformer.hash, transformer.hash);
    CHECK(!embed_stamp_is(&made, &both));
    embed_stamp_both(&made, table.hash, table.hash);
    CHECK(!embed_stamp_is(&made, &both));
}

/* On any processor, alone or in a batch. */
TEST(vectors_are_the_same_in_any_company)
{
    struct estage *st = stage_of(EMBED_BUILTIN);
    struct owner *o =
        ASK(st, "the weather", "a flight to Rome", "Wie wird das Wetter?");
    float alone[BOTH_DIMS];

    AWAIT(st, o->n_done);
    embed_free(st->embed);
    st->embed = NULL;
    estage_open(st);
    full_of(st, "a flight to Rome", alone);
    CHECK(memcmp(o->vectors + BOTH_DIMS, alone, sizeof(alone)) == 0);
    owner_free(o);
    estage_free(st);
}

/* Otherwise the build missed a change of the file. */
TEST(the_transformer_is_the_file_of_the_source)
{
    struct minilm *inside, *file;

    CHECK(transformer_open(&inside, NULL) == OK);
    CHECK(minilm_open(&file, SOURCE_ROOT "/data/transformer.sbm", NULL) == OK);
    CHECK_STR(str_of(minilm_hash(inside)), minilm_hash(file));
    CHECK_STR(str_of(inside->head->name), TRANSFORMER_NAME);
    minilm_close(inside);
    minilm_close(file);
}
