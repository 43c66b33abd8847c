#include "lab/untar.h"

#include "test/lib/tar_stage.h"

/* Records all calls, and wants every name that begins with "want". */
struct notes {
    struct buf text;
    enum err refuse; /* members; OK: no error */
};

static enum err note_member(void *ctx, struct str name, bool is_file,
                            uint64_t bytes, bool *is_wanted, struct why *why)
{
    struct notes *n = ctx;

    buf_addf(&n->text, "%s%.*s:%llu ", is_file ? "" : "!", STR_ARG(name),
             (unsigned long long)bytes);
    *is_wanted = str_starts(name, STR("want"));
    return n->refuse ? why_err(why, n->refuse, "refused") : OK;
}

static enum err note_bytes(void *ctx, struct str bytes, struct why *why)
{
    struct notes *n = ctx;

    (void)why;
    buf_add_str(&n->text, bytes);
    return OK;
}

static enum err note_whole(void *ctx, struct why *why)
{
    struct notes *n = ctx;

    (void)why;
    buf_add(&n->text, ". ", 2);
    return OK;
}

static const struct untar_handler handler = {note_member, note_bytes,
                                             note_whole};

static enum err untar_in(struct str bytes, size_t step, struct notes *n,
                         struct why *why)
{
    struct untar u;
    enum err e = OK;

    untar_init(&u, &handler, n);
    while (bytes.n && !e) {
        e = untar_feed(&u, str_sub(bytes, 0, step), why);
        bytes = str_sub(bytes, step, bytes.n);
    }
    return e ? e : untar_end(&u, why);
}

/* The result must not depend on the pieces. `told` may be NULL: not compared.
 */
static void expect(const struct buf *tar, enum err e, const char *told,
                   const char *words)
{
    static const size_t steps[] = {1, 7, 511, 512, 513, 5000, SIZE_MAX};

    CHECK(!tar->over);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct notes n = {.refuse = OK};
        struct why why = {""};

        buf_init(&n.text, 1 << 20);
        CHECK_INT(untar_in(buf_str(tar), steps[i], &n, &why), e);
        if (told)
            CHECK_STR(buf_str(&n.text), told);
        if (!strstr(why.text, words))
            T_FAIL("\"%s\" is not in \"%s\"", words, why.text);
        buf_fini(&n.text);
    }
}

static struct buf tar_new(void)
{
    struct buf b;

    buf_init(&b, 64 << 20);
    return b;
}

/* `spoil` adds something between two valid files. */
static void expect_refused(void (*spoil)(struct buf *tar), enum err e,
                           const char *words)
{
    struct buf tar = tar_new();

    tar_file(&tar, "first", STR("1"));
    spoil(&tar);
    tar_file(&tar, "want", STR("2"));
    tar_end(&tar);
    expect(&tar, e, NULL, words);
    buf_fini(&tar);
}

TEST(wanted_files_come_out_and_the_rest_is_passed_over)
{
    struct buf tar = tar_new();

    tar_file(&tar, "package/package.json", STR("{}"));
    tar_file(&tar, "want/1", STR("one"));
    tar_head(&tar, "folder/", '5', 0);
    tar_head(&tar, "link", '2', 0);
    tar_file(&tar, "want/empty", STR(""));
    tar_file(&tar, "want/2", STR("two"));
    tar_end(&tar);
    expect(&tar, OK,
           "package/package.json:2 want/1:3 one. !folder/:0 !link:0 "
           "want/empty:0 . want/2:3 two. ",
           "");
    buf_fini(&tar);
}

TEST(blocks_are_filled_up_whatever_the_length)
{
    static char text[1030];

    for (size_t n = 0; n <= 1030; n += n < 508 ? 127 : 1) {
        struct buf tar = tar_new();

        memset(text, 'x', sizeof(text));
        tar_file(&tar, "skip", (struct str){text, n});
        tar_file(&tar, "want", STR("w"));
        tar_end(&tar);
        memset(text, 0, sizeof(text));
        snprintf(text, sizeof(text), "skip:%zu want:1 w. ", n);
        expect(&tar, OK, text, "");
        buf_fini(&tar);
    }
}

TEST(long_names_are_put_together)
{
    struct buf tar = tar_new();
    char *p;

    p = tar_head(&tar, "file", '0', 0);
    memcpy(p + 345, "want/deep", 9);
    tar_seal(p);
    tar_pax(&tar, 'x', "path", STR("want/pax"));
    tar_file(&tar, "PaxHeader/cut", STR("p"));
    /* GNU tar stores times where others store the start of the name. */
    p = tar_head(&tar, "want/gnu", '0', 0);
    memcpy(p + 257, "ustar  ", 8);
    memcpy(p + 345, "14000000000", 11);
    tar_seal(p);
    tar_end(&tar);
    expect(&tar, OK, "want/deep/file:0 . want/pax:1 p. want/gnu:0 . ", "");
    buf_fini(&tar);
}

TEST(both_parts_of_a_name_may_be_full)
{
    struct buf tar = tar_new();
    char *p = tar_head(&tar, "", '0', 0), told[300];

    memset(p, 'n', 100);
    memset(p + 345, 'p', 155);
    tar_seal(p);
    snprintf(told, sizeof(told), "%.155s/%.100s:0 ", p + 345, p);
    tar_end(&tar);
    expect(&tar, OK, told, "");
    buf_fini(&tar);
}

TEST(names_are_only_names)
{
    static const char *const names[] = {"../../etc/passwd", "/etc/passwd",
                                        "C:\\x", "a\nb\033[31m", "."};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buf tar = tar_new();
        char told[64];

        tar_file(&tar, names[i], STR("x"));
        tar_end(&tar);
        snprintf(told, sizeof(told), "%s:1 ", names[i]);
        expect(&tar, OK, told, "");
        buf_fini(&tar);
    }
}

TEST(a_name_that_was_not_taken_is_nobodys)
{
    static char name[UNTAR_NAME_MAX + 1];
    struct buf tar = tar_new();

    memset(name, 'n', sizeof(name));
    tar_pax(&tar, 'x', "path", (struct str){name, sizeof(name)});
    tar_file(&tar, "want/not", STR("x"));
    tar_head(&tar, "././@LongLink", 'K', 7);
    tar_body(&tar, STR("linked"));
    tar_head(&tar, "././@LongLink", 'L', 7);
    tar_body(&tar, STR("want/1"));
    tar_file(&tar, "want/not", STR("x"));
    tar_file(&tar, "want", STR("w"));
    tar_end(&tar);
    expect(&tar, OK, "want:1 w. ", "");
    buf_fini(&tar);
}

TEST(a_name_of_the_most_bytes_is_taken)
{
    static char name[UNTAR_NAME_MAX + 8] = "want";
    struct buf tar = tar_new();

    memset(name + 4, 'n', UNTAR_NAME_MAX - 4);
    tar_pax(&tar, 'x', "path", (struct str){name, UNTAR_NAME_MAX});
    tar_file(&tar, "cut", STR(""));
    tar_end(&tar);
    memcpy(name + UNTAR_NAME_MAX, ":0 . ", 6);
    expect(&tar, OK, name, "");
    buf_fini(&tar);
}

TEST(what_pax_says_of_all_files_does_no_harm)
{
    struct buf tar = tar_new();

    tar_pax(&tar, 'g', "comment", STR("abc"));
    tar_pax(&tar, 'x', "mtime", STR("12.5"));
    tar_file(&tar, "want", STR("w"));
    tar_end(&tar);
    expect(&tar, OK, "want:1 w. ", "");
    buf_fini(&tar);
}

TEST(pax_may_say_the_length)
{
    struct buf tar = tar_new();

    tar_pax(&tar, 'x', "size", STR("3"));
    tar_head(&tar, "want", '0', 0);
    tar_body(&tar, STR("abc"));
    tar_end(&tar);
    expect(&tar, OK, "want:3 abc. ", "");
    buf_fini(&tar);
}

/* Each is rejected. */

static void no_magic(struct buf *tar)
{
    char *p = tar_head(tar, "old", '0', 0);

    memset(p + 257, 0, 8);
    tar_seal(p);
}

static void bad_sum(struct buf *tar)
{
    tar_head(tar, "x", '0', 0)[0] = 'y';
}

static void bad_size(struct buf *tar)
{
    char *p = tar_head(tar, "x", '0', 0);

    memcpy(p + 124, "12345678x01", 11);
    tar_seal(p);
}

static void no_size(struct buf *tar)
{
    char *p = tar_head(tar, "x", '0', 0);

    memset(p + 124, ' ', 12);
    tar_seal(p);
}

/* A number in base 256, as GNU tar writes large ones. */
static void huge_size(struct buf *tar)
{
    char *p = tar_head(tar, "x", '0', 0);

    memset(p + 124, 0xff, 12);
    tar_seal(p);
}

static void device(struct buf *tar)
{
    tar_head(tar, "x", '3', 0);
}

static void sparse(struct buf *tar)
{
    tar_head(tar, "x", 'S', 0);
}

static void pax_sparse(struct buf *tar)
{
    tar_pax(tar, 'x', "GNU.sparse.major", STR("1"));
}

static void long_link(struct buf *tar)
{
    tar_head(tar, "x", '2', 1);
    tar_body(tar, STR("x"));
}

static void pax_two(struct buf *tar)
{
    tar_pax(tar, 'x', "path", STR("a"));
    tar_pax(tar, 'x', "path", STR("b"));
}

static void pax_global_path(struct buf *tar)
{
    tar_pax(tar, 'g', "path", STR("a"));
}

static void pax_empty_path(struct buf *tar)
{
    tar_pax(tar, 'x', "path", STR(""));
}

static void pax_nul_path(struct buf *tar)
{
    tar_pax(tar, 'x', "path", STR("want\0x"));
}

static void pax_minus(struct buf *tar)
{
    tar_pax(tar, 'x', "size", STR("-1"));
}

static void pax_huge(struct buf *tar)
{
    tar_pax(tar, 'x', "size", STR("99999999999999999999"));
}

static void pax_raw(struct buf *tar, struct str record)
{
    tar_head(tar, "x", 'x', record.n);
    tar_body(tar, record);
}

static void pax_path_twice(struct buf *tar)
{
    pax_raw(tar, STR("10 path=a\n10 path=b\n"));
}

static void pax_long_path_twice(struct buf *tar)
{
    struct buf record;
    char name[UNTAR_NAME_MAX + 1];

    memset(name, 'x', sizeof(name));
    buf_init(&record, 4096);
    buf_addf(&record, "%zu path=%.*s\n10 path=b\n", sizeof(name) + 10,
             (int)sizeof(name), name);
    pax_raw(tar, buf_str(&record));
    buf_fini(&record);
}

static void pax_size_twice(struct buf *tar)
{
    pax_raw(tar, STR("9 size=1\n9 size=1\n"));
}

static void pax_too_long(struct buf *tar)
{
    static char text[UNTAR_PAX_MAX];

    memset(text, 'x', sizeof(text));
    tar_pax(tar, 'x', "comment", (struct str){text, sizeof(text)});
}

static void more_behind(struct buf *tar)
{
    tar_end(tar);
}

static void one_zero_block(struct buf *tar)
{
    static const char zeros[TAR_BLOCK];

    buf_add(tar, zeros, sizeof(zeros));
}

TEST(what_could_be_read_in_two_ways_is_refused)
{
    static const struct {
        void (*spoil)(struct buf *tar);
        enum err e;
        const char *words;
    } rows[] = {
        {no_magic, ERR_BAD_REQUEST, "not a tar"},
        {bad_sum, ERR_BAD_REQUEST, "checksum"},
        {bad_size, ERR_BAD_REQUEST, "not a number"},
        {no_size, ERR_BAD_REQUEST, "not a number"},
        {huge_size, ERR_BAD_REQUEST, "not a number"},
        {device, ERR_BAD_REQUEST, "unsupported type"},
        {sparse, ERR_BAD_REQUEST, "unsupported type"},
        {pax_sparse, ERR_BAD_REQUEST, "sparse"},
        {long_link, ERR_BAD_REQUEST, "has a length"},
        {pax_two, ERR_BAD_REQUEST, "same file"},
        {pax_path_twice, ERR_BAD_REQUEST, "twice"},
        {pax_long_path_twice, ERR_BAD_REQUEST, "twice"},
        {pax_size_twice, ERR_BAD_REQUEST, "twice"},
        {pax_global_path, ERR_BAD_REQUEST, "a global header"},
        {pax_empty_path, ERR_BAD_REQUEST, "name"},
        {pax_nul_path, ERR_BAD_REQUEST, "name"},
        {pax_minus, ERR_BAD_REQUEST, "not a number"},
        {pax_huge, ERR_BAD_REQUEST, "not a number"},
        {pax_too_long, ERR_LIMIT, "16384"},
        {more_behind, ERR_BAD_REQUEST, "after its end"},
        {one_zero_block, ERR_BAD_REQUEST, "after its end"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        expect_refused(rows[i].spoil, rows[i].e, rows[i].words);
}

TEST(records_of_pax_must_fit_exactly)
{
    static const struct str records[] = {
        STR("x"),           STR("11 path=a\n"),  STR("7 path=a\n"),
        STR("-8 path=a\n"), STR("8 path=a"),     STR("99999999 path=a\n"),
        STR("4 =\n"),       STR("5 a=b"),        STR("0 \n"),
        STR("3 \n"),        STR(" 9 path=aa\n"), STR("7 path\n"),
    };

    for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
        struct buf tar = tar_new();

        pax_raw(&tar, records[i]);
        tar_file(&tar, "want", STR("x"));
        tar_end(&tar);
        expect(&tar, ERR_BAD_REQUEST, "", "pax header cannot be read");
        buf_fini(&tar);
    }
}

TEST(a_pax_header_may_have_the_most_bytes)
{
    static char text[UNTAR_PAX_MAX];
    struct buf tar = tar_new();

    memset(text, 'x', sizeof(text));
    tar_pax(&tar, 'x', "comment", (struct str){text, UNTAR_PAX_MAX - 15});
    tar_file(&tar, "want", STR("w"));
    tar_end(&tar);
    CHECK(memcmp(tar.p + TAR_BLOCK, "16384 comment=", 14) == 0);
    expect(&tar, OK, "want:1 w. ", "");
    buf_fini(&tar);
}

TEST(a_header_of_a_file_that_does_not_come_is_refused)
{
    struct buf tar = tar_new();

    tar_file(&tar, "want", STR("w"));
    tar_pax(&tar, 'x', "path", STR("more"));
    tar_end(&tar);
    expect(&tar, ERR_BAD_REQUEST, NULL, "missing");
    buf_fini(&tar);
}

TEST(each_block_that_is_cut_off_is_missed)
{
    struct buf tar = tar_new();
    struct notes n = {.refuse = OK};
    struct why why;

    buf_init(&n.text, 1 << 20);
    tar_pax(&tar, 'x', "path", STR("want"));
    tar_file(&tar, "x", STR("w"));
    tar_end(&tar);
    for (size_t cut = 1; cut <= tar.n; cut += cut % 512 == 0 ? 1 : 73) {
        buf_clear(&n.text);
        CHECK_INT(untar_in(str_sub(buf_str(&tar), 0, tar.n - cut), SIZE_MAX, &n,
                           &why),
                  ERR_BAD_REQUEST);
    }
    CHECK_INT(untar_in(STR(""), 1, &n, &why), ERR_BAD_REQUEST);
    buf_fini(&n.text);
    buf_fini(&tar);
}

TEST(there_may_be_so_many_members_and_no_more)
{
    struct buf tar = tar_new();
    struct notes n = {.refuse = OK};
    struct why why;

    buf_init(&n.text, 1 << 20);
    for (int i = 0; i < UNTAR_MEMBERS_MAX; i++)
        tar_head(&tar, "x", '0', 0);
    tar_end(&tar);
    CHECK_INT(untar_in(buf_str(&tar), SIZE_MAX, &n, &why), OK);
    tar.n -= 2UL * TAR_BLOCK;
    tar_head(&tar, "x", '0', 0);
    tar_end(&tar);
    CHECK_INT(untar_in(buf_str(&tar), SIZE_MAX, &n, &why), ERR_LIMIT);
    buf_fini(&n.text);
    buf_fini(&tar);
}

TEST(whoever_is_told_of_a_member_can_end_it)
{
    struct buf tar = tar_new();
    struct notes n = {.refuse = ERR_BUSY};
    struct why why;

    buf_init(&n.text, 1 << 20);
    tar_file(&tar, "want", STR("w"));
    tar_end(&tar);
    CHECK_INT(untar_in(buf_str(&tar), SIZE_MAX, &n, &why), ERR_BUSY);
    CHECK_STR(buf_str(&n.text), "want:1 ");
    buf_fini(&n.text);
    buf_fini(&tar);
}
