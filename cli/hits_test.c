#include "cli/hits.h"

#include "test/t.h"

static struct hits hits;
static struct buf out;

static const struct hit engineer = {
    .agent = {"engineer", 8},
    .skill = {"debug", 5},
    .description = STR("Builds and repairs software: finds bugs, and debugs\n"
                       "what crashes"),
    .score = 0.8421,
    .semantic = 0.86,
    .text = 0.8,
};
static const struct hit docs = {
    .agent = {"docs", 4},
    .description = STR("Writes manuals"),
    .score = 0.1,
    .semantic = 0.09,
    .text = 0.05,
};

static void two(const char *query)
{
    buf_init(&out, 64 * 1024);
    hits_init(&hits, str_of(query));
    hits_add(&hits, &engineer);
    hits_add(&hits, &docs);
}

static void check(unsigned width, bool colour, bool unicode, const char *text)
{
    buf_clear(&out);
    hits_write(&hits, &out, width, colour, unicode);
    CHECK_STR(buf_str(&out), text);
}

static void done(void)
{
    hits_fini(&hits);
    buf_fini(&out);
}

TEST(in_a_pipe_a_line_holds_all)
{
    two("debugging");
    check(0, false, false,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT   DESCRIPTION\n"
          "1  engineer  debug  0.842  ####.     ####.  Builds and repairs "
          "software: finds bugs, and debugs what crashes\n"
          "2  docs      -      0.100  .....     .....  Writes manuals\n");
    done();
}

TEST(on_a_terminal_lines_fit)
{
    two("debugging");
    check(84, false, true,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT   DESCRIPTION\n"
          "1  engineer  debug  0.842  ▇▇▇▇▁     ▇▇▇▇▁  Builds and repairs "
          "software: finds bugs…\n"
          "2  docs      -      0.100  ▁▁▁▁▁     ▁▁▁▁▁  Writes manuals\n");
    check(83, false, true,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT\n"
          "1  engineer  debug  0.842  ▇▇▇▇▁     ▇▇▇▇▁\n"
          "   Builds and repairs software: finds bugs, and debugs what "
          "crashes\n"
          "2  docs      -      0.100  ▁▁▁▁▁     ▁▁▁▁▁\n"
          "   Writes manuals\n");
    check(60, false, false,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT\n"
          "1  engineer  debug  0.842  ####.     ####.\n"
          "   Builds and repairs software: finds bugs, and debugs what\n"
          "   crashes\n"
          "2  docs      -      0.100  .....     .....\n"
          "   Writes manuals\n");
    check(40, false, false,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT\n"
          "1  engineer  debug  0.842  ####.     ####.\n"
          "   Builds and repairs software: finds\n"
          "   bugs, and debugs what crashes\n"
          "2  docs      -      0.100  .....     .....\n"
          "   Writes manuals\n");
    check(30, false, false,
          "#  AGENT     SKILL  SCORE  SEMANTIC  TEXT\n"
          "1  engineer  debug  0.842  ####.     ####.\n"
          "   Builds and repairs\n"
          "   software: finds bugs, and..\n"
          "2  docs      -      0.100  .....     .....\n"
          "   Writes manuals\n");
    done();
}

TEST(words_of_the_query_stand_out_by_their_stems)
{
    two("who does debugging of a manual");
    check(60, true, true,
          "\033[1m#  AGENT     SKILL  SCORE  SEMANTIC  TEXT\033[0m\n"
          "1  engineer  debug  0.842  \033[36m▇▇▇▇\033[0;2m▁\033[0m     "
          "\033[35m▇▇▇▇\033[0;2m▁\033[0m\n"
          "   Builds and repairs software: finds bugs, and "
          "\033[1mdebugs\033[0m what\n"
          "   crashes\n"
          "2  docs      -      0.100  \033[2m▁▁▁▁▁\033[0m     "
          "\033[2m▁▁▁▁▁\033[0m\n"
          "   Writes \033[1mmanuals\033[0m\n");
    done();
}

TEST(the_figures_stand_below)
{
    two("debugging");
    hits_add_part(&hits, &(struct hit){.skill = STR("manual"),
                                       .description = STR("Writes them"),
                                       .score = 0.1,
                                       .semantic = 0.09,
                                       .text = 0.05});
    check(0, false, false,
          "#  AGENT     SKILL   SCORE  SEMANTIC  TEXT   DESCRIPTION\n"
          "1  engineer  debug   0.842  ####.     ####.  Builds and repairs "
          "software: finds bugs, and debugs what crashes\n"
          "2  docs      -       0.100  .....     .....  Writes manuals\n"
          "             manual  0.100  0.090     0.050  Writes them\n");
    done();
}

TEST(nothing_in_a_card_steers_a_terminal)
{
    buf_init(&out, 64 * 1024);
    hits_init(&hits, STR("x"));
    hits_add(&hits,
             &(struct hit){.agent = STR("a\033[2Jb"),
                           .skill = STR("s\nt"),
                           .description = STR(" \033]0;x\a\u202e x \n")});
    check(0, false, false,
          "#  AGENT   SKILL  SCORE  SEMANTIC  TEXT   DESCRIPTION\n"
          "1  a?[2Jb  s t    0.000  .....     .....  ?]0;x?? x\n");
    done();
}

TEST(long_texts_are_cut)
{
    static char name[100], text[HITS_TEXT_MAX + 10];
    struct hit long_one = {.score = 2, .semantic = 2, .text = -1};

    memset(name, 'n', sizeof(name));
    memset(text, 'd', sizeof(text));
    long_one.agent = long_one.skill = (struct str){name, sizeof(name)};
    long_one.description = (struct str){text, sizeof(text)};
    buf_init(&out, 64 * 1024);
    hits_init(&hits, STR(""));
    for (int i = 0; i < 10; i++)
        hits_add(&hits, &long_one);
    hits_write(&hits, &out, 0, false, false);
    CHECK(memmem(out.p, out.n, " 1  nnnnnnnnnnnnnnnnnnnnnnnnnn..  n", 34));
    CHECK(memmem(out.p, out.n, "10  nnnnnnnnnnnnnnnnnnnnnnnnnn..  n", 34));
    CHECK(memmem(out.p, out.n, "  2.000  #####     .....  ddd", 29));
    CHECK(memmem(out.p, out.n, "dd..\n", 5));
    done();
}

TEST(what_does_not_fit_in_memory_is_told)
{
    static char text[HITS_TEXT_MAX];
    struct hit big = docs;

    memset(text, 'd', sizeof(text));
    big.description = (struct str){text, sizeof(text)};
    hits_init(&hits, STR("x"));
    for (int i = 0; i < HITS_BYTES_MAX / HITS_TEXT_MAX; i++)
        hits_add(&hits, &big);
    CHECK(hits.is_over);
    buf_init(&out, 64 * 1024 * 1024);
    hits_write(&hits, &out, 80, false, false);
    CHECK(out.over);
    done();
}
