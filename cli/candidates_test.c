/* The table of a decision: seed 001's figures, narrow and wide, plain and in
 * colour, and whatever a server may send. */
#include "cli/candidates.h"

#include "cli/grid.h"
#include "test/t.h"

static const char seed[] =
    "{\"threshold\": 0.3, \"candidates\": ["
    "{\"agent\": \"engineer\", \"best_skill_id\": \"build\", "
    "\"matched_keyword\": \"code\", \"score\": 0.467, \"semantic\": 0.362, "
    "\"cosine\": 0.4, \"text\": 0.1, \"learned\": 0, \"performance\": 0.5, "
    "\"keyword\": 1, \"recency\": 0},"
    "{\"agent\": \"automation-operator\", \"score\": 0.273, \"semantic\": "
    "0.289, \"performance\": 0.5},"
    "{\"agent\": \"content-writer\", \"score\": 0.245, \"semantic\": 0.241, "
    "\"performance\": 0.5}]}";

/* The same with floors; that of the last one is not known. */
static const char floors[] =
    "{\"threshold\": 0.25, \"rules\": {\"auto\": true}, \"candidates\": ["
    "{\"agent\": \"engineer\", \"best_skill_id\": \"build\", \"score\": "
    "0.467, \"semantic\": 0.362, \"floor\": 0.25, \"performance\": 0.5, "
    "\"keyword\": 1},"
    "{\"agent\": \"operator\", \"score\": 0.273, \"semantic\": 0.289, "
    "\"floor\": 0.31, \"performance\": 0.5},"
    "{\"agent\": \"writer\", \"score\": 0.245, \"semantic\": 0.241, "
    "\"floor\": null, \"performance\": 0.5}]}";

static struct str shown(struct buf *out, const char *text,
                        struct candidates_opts opts)
{
    struct arena a;
    struct json *v;

    arena_init(&a, 1 << 20);
    v = json_parse(&a, str_of(text), 0, NULL);
    CHECK(v);
    if (!opts.limit)
        opts.limit = 10;
    buf_init(out, 1 << 20);
    candidates_write(out, v, &opts);
    arena_fini(&a);
    return buf_str(out);
}

TEST(every_candidate_has_a_line_with_four_bars)
{
    struct buf out;
    struct str s =
        shown(&out, seed, (struct candidates_opts){.chosen = STR("engineer")});

    CHECK_STR(
        s, "  #  AGENT                SKILL  SCORE  SEMANTIC    PERFORMANCE  "
           "KEYWORD     RECENCY\n"
           "> 1  engineer             build  0.467  ##... .362  ###.. .500   "
           "##### 1.00  ..... .000\n"
           "     below the threshold of 0.300:\n"
           "  2  automation-operator         0.273  #.... .289  ###.. .500   "
           "..... .000  ..... .000\n"
           "  3  content-writer              0.245  #.... .241  ###.. .500   "
           "..... .000  ..... .000\n");
    buf_fini(&out);
}

TEST(floors_stand_beside_the_signal_that_is_held_against_them)
{
    struct buf out;
    struct str s = shown(&out, floors,
                         (struct candidates_opts){.chosen = STR("engineer")});

    CHECK_STR(s, "  #  AGENT     SKILL  SCORE  SEMANTIC    FLOOR  PERFORMANCE  "
                 "KEYWORD     RECENCY\n"
                 "> 1  engineer  build  0.467  ##... .362  .250   ###.. .500   "
                 "##### 1.00  ..... .000\n"
                 "  2  operator         0.273  #.... .289  .310   ###.. .500   "
                 "..... .000  ..... .000\n"
                 "  3  writer           0.245  #.... .241  -      ###.. .500   "
                 "..... .000  ..... .000\n");
    buf_fini(&out);
}

TEST(a_refusal_without_rules_shows_the_floors_that_it_has)
{
    static const char refused[] =
        "{\"threshold\": null, \"candidates\": [{\"agent\": \"a\", "
        "\"score\": 0.1, \"floor\": 0.3}]}";
    struct buf out;
    struct str s = shown(&out, refused, (struct candidates_opts){0});

    CHECK(memmem(s.p, s.n, "FLOOR", 5) && memmem(s.p, s.n, " .300 ", 6));
    CHECK(!memmem(s.p, s.n, "not enough", 10));
    buf_fini(&out);
}

TEST(no_line_is_longer_than_the_terminal)
{
    for (unsigned width = 62; width <= 130; width++) {
        struct candidates_opts o = {.width = width, .unicode = width % 2};
        struct buf out, with_floors;
        struct str rest = shown(&out, seed, o);

        while (rest.n)
            CHECK(text_columns(str_cut(&rest, '\n')) <= width);
        rest = shown(&with_floors, floors, o);
        while (rest.n)
            CHECK(text_columns(str_cut(&rest, '\n')) <= width);
        buf_fini(&out);
        buf_fini(&with_floors);
    }
}

TEST(a_narrow_line_goes_without_floors)
{
    struct buf wide, narrow;
    struct str s = shown(&wide, floors, (struct candidates_opts){.width = 80});

    CHECK(memmem(s.p, s.n, "FLOOR", 5) && !memmem(s.p, s.n, "SKILL", 5));
    s = shown(&narrow, floors, (struct candidates_opts){.width = 70});
    CHECK(!memmem(s.p, s.n, "FLOOR", 5) && memmem(s.p, s.n, ".362", 4));
    buf_fini(&wide);
    buf_fini(&narrow);
}

TEST(figures_go_before_names_do)
{
    struct buf out;
    struct str s = shown(&out, seed, (struct candidates_opts){.width = 64});

    CHECK(memmem(s.p, s.n, "automati", 8) && !memmem(s.p, s.n, ".362", 4));
    buf_fini(&out);
}

TEST(what_semantic_is_made_of_is_said_when_asked)
{
    struct buf out;
    struct str s =
        shown(&out, seed, (struct candidates_opts){.explains = true});

    CHECK(memmem(s.p, s.n,
                 "     semantic: cosine .400, text .100, learned .000; "
                 "keyword \"code\"\n",
                 68));
    buf_fini(&out);
}

TEST(what_was_taken_off_is_said_with_what_semantic_is_made_of)
{
    struct buf out;
    struct str s =
        shown(&out,
              "{\"agent\":\"a\",\"rules\":{\"auto\":true,\"centred\":true},"
              "\"candidates\":[{\"agent\":\"a\",\"score\":0.3,\"semantic\":0.1,"
              "\"cosine\":0.4,\"level_mid\":0.25,\"discount\":0.03},"
              "{\"agent\":\"b\",\"score\":0.2,\"semantic\":0.1}]}",
              (struct candidates_opts){.explains = true});
    static const char line[] =
        "semantic: cosine .400 minus the card's median .250, text .000, "
        "learned .000, minus .030 because the owner is a stranger\n";
    const char *first = memmem(s.p, s.n, line, sizeof(line) - 1);

    CHECK(first);
    /* The second has none of it, as in a refusal. */
    CHECK(!memmem(first + 1, s.n - (size_t)(first + 1 - s.p), "semantic:", 9));
    buf_fini(&out);
}

TEST(there_are_no_more_lines_than_were_asked_for)
{
    struct buf out;
    struct str s = shown(&out, seed, (struct candidates_opts){.limit = 1});

    CHECK(!memmem(s.p, s.n, "content-writer", 14));
    CHECK(!memmem(s.p, s.n, "below", 5));
    buf_fini(&out);
}

/* What a server sends that is none of ours. */
TEST(nothing_that_comes_is_believed)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "{\"candidates\": {}}",
        "{\"candidates\": []}",
        "{\"candidates\": [1, null, {}, {\"agent\": 5, \"text\": []}]}",
        "{\"candidates\": [{\"agent\": \"a\\u001b[2Jb\\nc\", \"score\": 1e300, "
        "\"semantic\": -1e300, \"keyword\": 1e300}]}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct buf out;
        struct str s =
            shown(&out, texts[i],
                  (struct candidates_opts){.width = 80, .explains = true});

        CHECK(!memchr(s.n ? s.p : "", '\033', s.n));
        buf_fini(&out);
    }
}

TEST(colours_are_for_terminals)
{
    struct buf out;
    struct str s =
        shown(&out, seed,
              (struct candidates_opts){
                  .colour = true, .unicode = true, .chosen = STR("engineer")});

    CHECK(memmem(s.p, s.n, "\033[1mengineer", 12));
    CHECK(memmem(s.p, s.n, "\033[36m\u2587", 8));
    buf_fini(&out);
}

TEST(figures_have_four_columns)
{
    CHECK(strcmp(candidates_figure(0.3624).text, ".362") == 0);
    CHECK(strcmp(candidates_figure(1).text, "1.00") == 0);
    CHECK(strcmp(candidates_figure(0.9999).text, "1.00") == 0);
    CHECK(strcmp(candidates_figure(-3).text, ".000") == 0);
    CHECK(strcmp(candidates_figure(1e300).text, "99.0") == 0);
}
