#include "embed/internal.h"

#include "test/lib/alloc_count.h"
#include "test/t.h"

static const char *const pieces[] = {
    "[UNK]", "un",  "##aff", "##able", "##ab",     "##le",     "hello",
    "world", "##s", ",",     "\u4f60", "\u00df",   "##\u00df", "a",
    "##a",   "aa",  "##d",   "\u1112", "##\u1161", "##\u11ab",
};
enum { N_PIECES = sizeof(pieces) / sizeof(*pieces) };

static struct vocab vocab_of(struct buf *b)
{
    struct str strs[N_PIECES];
    struct vocab v;

    for (size_t i = 0; i < N_PIECES; i++)
        strs[i] = str_of(pieces[i]);
    buf_init(b, 1 << 20);
    CHECK(vocab_make(strs, N_PIECES, b, NULL) == OK);
    CHECK(vocab_open(&v, buf_str(b), NULL) == OK);
    return v;
}

/* The pieces of a text, a space between them. */
static const char *pieces_of(const struct vocab *v, const char *text,
                             size_t max)
{
    static char out[4096];
    uint32_t ids[256];
    size_t n = wordpieces(v, str_of(text), 0, ids, max), at = 0;

    CHECK(n <= max && max <= 256);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        struct str p = vocab_piece(v, ids[i]);

        CHECK(p.n > 0);
        at += (size_t)snprintf(out + at, sizeof(out) - at, i ? " %.*s" : "%.*s",
                               STR_ARG(p));
    }
    return out;
}

#define CHECK_PIECES(text, wanted) \
    CHECK_STR(str_of(pieces_of(&v, text, 256)), wanted)

TEST(the_longest_piece_comes_first)
{
    struct buf b;
    struct vocab v = vocab_of(&b);

    CHECK_PIECES("", "");
    CHECK_PIECES("hello", "hello");
    CHECK_PIECES("Unaffable", "un ##aff ##able");
    CHECK_PIECES("worlds, HELLO", "world ##s , hello");
    CHECK_PIECES("aaaa", "aa ##a ##a");
    CHECK_PIECES("\u00df\u00df", "\u00df ##\u00df");
    CHECK_PIECES("\u4f60\u4f60a", "\u4f60 \u4f60 a");
    CHECK_PIECES("\ud55c", "\u1112 ##\u1161 ##\u11ab");
    buf_fini(&b);
}

TEST(a_word_with_an_unknown_part_is_unknown)
{
    struct buf b;
    struct vocab v = vocab_of(&b);

    CHECK_PIECES("hellox hello", "[UNK] hello");
    CHECK_PIECES("xhello", "[UNK]");
    CHECK_PIECES("!,!", "[UNK] , [UNK]");
    CHECK_PIECES("[UNK]", "[UNK] [UNK] [UNK]"); /* literal text, not a mark */
    CHECK_PIECES("## ##s", "[UNK] [UNK] [UNK] [UNK] [UNK]");
    buf_fini(&b);
}

TEST(a_long_word_is_unknown_and_a_hundred_characters_are_not_long)
{
    struct buf b;
    struct vocab v = vocab_of(&b);
    char text[110];
    uint32_t ids[WORD_MAX_CHARS + 1];
    size_t n;

    memset(text, 'd', sizeof(text));
    text[0] = 'a';
    CHECK_INT(wordpieces(&v, (struct str){text, 100}, 0, ids, 101), 100);
    CHECK(ids[0] == 13 && ids[1] == 16 && ids[99] == 16);
    CHECK_INT(wordpieces(&v, (struct str){text, 101}, 0, ids, 101), 1);
    CHECK_INT(ids[0], 0);
    /* A word that did not come from words.c writes nothing out of bounds. */
    CHECK(!wordpiece(&v, (struct str){text, 101}, ids, &n));
    CHECK_INT(n, 0);
    buf_fini(&b);
}

TEST(no_more_than_asked_for)
{
    struct buf b;
    struct vocab v = vocab_of(&b);

    CHECK_STR(str_of(pieces_of(&v, "unaffable hello", 0)), "");
    CHECK_STR(str_of(pieces_of(&v, "unaffable hello", 2)), "un ##aff");
    CHECK_STR(str_of(pieces_of(&v, "hello unaffable", 3)), "hello un ##aff");
    buf_fini(&b);
}

TEST(a_word_alone)
{
    struct buf b;
    struct vocab v = vocab_of(&b);
    uint32_t ids[WORD_MAX_CHARS];
    size_t n = 9;

    CHECK(wordpiece(&v, STR(""), ids, &n));
    CHECK_INT(n, 0);
    CHECK(wordpiece(&v, STR("unable"), ids, &n));
    CHECK(n == 2 && ids[0] == 1 && ids[1] == 3);
    CHECK(!wordpiece(&v, STR("unaffx"), ids, &n));
    CHECK_INT(n, 0);
    /* Half a character is not a piece, and invalid bytes are harmless. */
    CHECK(!wordpiece(&v, STR("\xc3"), ids, &n));
    CHECK(!wordpiece(&v, STR("a\x80\x80\x80"), ids, &n));
    buf_fini(&b);
}

TEST(nothing_is_allocated_for_a_text)
{
    static const char text[] =
        "Unaffable worlds, hello \u4f60\u597d \ud55c\u302e\u1b44 \U0001f600 "
        "H\u00c9LLO \xff\xfe dddddddddddddddddddddddddddddddddddddddddddddddd"
        "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";
    struct buf b;
    struct vocab v = vocab_of(&b);
    uint32_t ids[64];
    size_t n = 0;
    long before = alloc_n;

    CHECK(before > 0); /* it counts */
    for (int i = 0; i < 100; i++)
        n += wordpieces(&v, str_of(text), 0, ids, 64);
    CHECK_INT(alloc_n, before);
    CHECK(n > 1000);
    buf_fini(&b);
}
