#include "embed/internal.h"

#include "test/t.h"

static const struct str few[] = {
    {"[UNK]", 5}, {"a", 1}, {"##a", 3}, {"turn on", 7}, {"\u00e9", 2},
};
enum { N_FEW = sizeof(few) / sizeof(*few) };

static struct buf made(const struct str *pieces, size_t n)
{
    struct buf out;
    struct why why = {""};

    buf_init(&out, 64 << 20);
    CHECK(vocab_make(pieces, n, &out, &why) == OK);
    CHECK(out.n % 8 == 0);
    return out;
}

/* n different pieces in one allocation: free the first. */
static struct str *many(size_t n)
{
    struct str *pieces = malloc(n * (sizeof(*pieces) + 16));
    char *text = (char *)(pieces + n);

    CHECK(pieces);
    for (size_t i = 0; i < n; i++, text += 16)
        pieces[i] = (struct str){text, (size_t)snprintf(text, 16, "p%zu", i)};
    return pieces;
}

TEST(what_was_put_in_is_found)
{
    struct buf b = made(few, N_FEW);
    struct vocab v;

    CHECK(vocab_open(&v, buf_str(&b), NULL) == OK);
    CHECK_INT(v.n, N_FEW);
    CHECK_INT(v.longest, 7);
    CHECK_INT(v.longest_inside, 1);
    for (uint32_t i = 0; i < N_FEW; i++) {
        CHECK(vocab_find(&v, STR(""), few[i]) == i);
        CHECK(str_eq(vocab_piece(&v, i), few[i]));
    }
    CHECK(vocab_find(&v, STR("##"), STR("a")) == 2);
    CHECK(vocab_find(&v, STR("##a"), STR("")) == 2);
    CHECK(vocab_find(&v, STR("##"), STR("")) == VOCAB_NONE);
    CHECK(vocab_find(&v, STR(""), STR("")) == VOCAB_NONE);
    CHECK(vocab_find(&v, STR("a"), STR("a")) == VOCAB_NONE);
    CHECK(vocab_find(&v, STR(""), STR("turn off")) == VOCAB_NONE);
    CHECK_INT(vocab_piece(&v, N_FEW).n, 0);
    CHECK_INT(vocab_piece(&v, VOCAB_NONE).n, 0);
    buf_fini(&b);
}

TEST(an_empty_one_has_nothing)
{
    struct buf b = made(NULL, 0);
    struct vocab v;
    uint32_t ids[4];

    CHECK(vocab_open(&v, buf_str(&b), NULL) == OK);
    CHECK(vocab_find(&v, STR(""), STR("a")) == VOCAB_NONE);
    CHECK_INT(wordpieces(&v, STR("a b"), 9, ids, 4), 2);
    CHECK(ids[0] == 9 && ids[1] == 9);
    buf_fini(&b);
}

TEST(many_are_found_and_no_others)
{
    size_t n = 100000;
    struct str *pieces = many(n);
    struct buf b = made(pieces, n);
    struct vocab v;
    char other[16];

    CHECK(vocab_open(&v, buf_str(&b), NULL) == OK);
    for (uint32_t i = 0; i < n; i++) {
        size_t len = (size_t)snprintf(other, sizeof(other), "q%u", i);

        CHECK(vocab_find(&v, STR(""), pieces[i]) == i);
        CHECK(vocab_find(&v, STR(""), (struct str){other, len}) == VOCAB_NONE);
    }
    buf_fini(&b);
    free(pieces);
}

TEST(the_same_pieces_make_the_same_bytes_behind_whatever_is_there)
{
    struct buf a = made(few, N_FEW), b;

    buf_init(&b, 4096);
    buf_add_str(&b, STR("12345"));
    CHECK(vocab_make(few, N_FEW, &b, NULL) == OK);
    CHECK_INT(b.n, a.n + 5);
    CHECK(memcmp(b.p + 5, a.p, a.n) == 0);
    buf_fini(&a);
    buf_fini(&b);
}

static void check_refused(const struct str *pieces, size_t n, enum err wanted)
{
    struct buf b;
    struct why why = {""};

    buf_init(&b, 1 << 20);
    buf_add_str(&b, STR("kept"));
    CHECK(vocab_make(pieces, n, &b, &why) == wanted);
    CHECK(why.text[0]);
    CHECK_STR(buf_str(&b), "kept");
    buf_fini(&b);
}

TEST(a_piece_twice_or_too_long_or_empty_or_too_many_are_refused)
{
    char text[VOCAB_PIECE_BYTES + 1];
    struct str twice[] = {{"a", 1}, {"b", 1}, {"a", 1}};
    struct str at_limit = {text, VOCAB_PIECE_BYTES};
    struct str over = {text, VOCAB_PIECE_BYTES + 1}, none = {"", 0};
    struct buf b;

    memset(text, 'x', sizeof(text));
    check_refused(twice, 3, ERR_EXISTS);
    check_refused(&over, 1, ERR_LIMIT);
    check_refused(&none, 1, ERR_LIMIT);
    check_refused(NULL, (size_t)VOCAB_MAX_PIECES + 1, ERR_LIMIT);
    b = made(&at_limit, 1);
    buf_fini(&b);
}

TEST(as_many_as_there_may_be)
{
    size_t n = VOCAB_MAX_PIECES;
    struct str *pieces = many(n);
    struct buf b = made(pieces, n);
    struct vocab v;

    CHECK(vocab_open(&v, buf_str(&b), NULL) == OK);
    CHECK(vocab_find(&v, STR(""), pieces[n - 1]) == n - 1);
    check_refused(pieces, n, ERR_LIMIT); /* the buffer is too small */
    buf_fini(&b);
    free(pieces);
}

/* In memory that ends with them. */
static enum err open_exact(struct str bytes, struct why *why)
{
    char *exact = malloc(bytes.n ? bytes.n : 1);
    struct vocab v = {.n = 77};
    enum err e;

    CHECK(exact);
    memcpy(exact, bytes.p, bytes.n);
    e = vocab_open(&v, (struct str){exact, bytes.n}, why);
    if (e) {
        CHECK(e == ERR_BAD_CONFIG && why->text[0] && v.n == 77);
    } else {
        for (uint32_t i = 0; i < v.n; i++)
            CHECK(vocab_find(&v, STR(""), vocab_piece(&v, i)) == i);
        (void)vocab_find(&v, STR("##"), STR("zz"));
    }
    free(exact);
    return e;
}

TEST(what_is_cut_or_longer_is_refused)
{
    struct buf b = made(few, N_FEW);
    struct why why;

    for (size_t n = 0; n < b.n; n++)
        CHECK(open_exact((struct str){b.p, n}, &why) == ERR_BAD_CONFIG);
    CHECK(open_exact(buf_str(&b), &why) == OK);
    for (int i = 0; i < 16; i++) {
        buf_add_char(&b, 0);
        CHECK(open_exact(buf_str(&b), &why) == ERR_BAD_CONFIG);
    }
    buf_fini(&b);
}

/* A changed letter makes another vocabulary with wrong slots: every change is
 * noticed. */
TEST(every_changed_byte_is_seen)
{
    struct buf b = made(few, N_FEW);
    struct why why;

    for (size_t i = 0; i < b.n; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.p[i] = (char)(b.p[i] ^ 1 << bit);
            CHECK(open_exact(buf_str(&b), &why) == ERR_BAD_CONFIG);
            b.p[i] = (char)(b.p[i] ^ 1 << bit);
        }
    CHECK(open_exact(buf_str(&b), &why) == OK);
    buf_fini(&b);
}

TEST(what_lies_askew_is_refused)
{
    struct buf b = made(few, N_FEW);
    char *askew = malloc(b.n + 4);
    struct vocab v;
    struct why why = {""};

    CHECK(askew);
    memcpy(askew + 4, b.p, b.n);
    CHECK(vocab_open(&v, (struct str){askew + 4, b.n}, &why) == ERR_BAD_CONFIG);
    free(askew);
    buf_fini(&b);
}

/* All slots in one run: a lookup of a missing piece would not end. */
TEST(slots_in_one_long_row_are_refused)
{
    size_t n = 1000, n_slots = 2048;
    struct str *pieces = many(n);
    struct buf b = made(pieces, n);
    uint32_t *slots = (uint32_t *)(b.p + 24 + 4 * n);
    struct why why;
    size_t at = 0;

    for (size_t i = 0; i < n_slots; i++)
        if (slots[i]) {
            uint32_t s = slots[i];

            slots[i] = 0;
            slots[at++] = s;
        }
    CHECK_INT(at, n);
    CHECK(open_exact(buf_str(&b), &why) == ERR_BAD_CONFIG);
    CHECK(strstr(why.text, "in a row"));
    buf_fini(&b);
    free(pieces);
}
