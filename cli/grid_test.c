#include "cli/grid.h"

#include "test/t.h"

static const struct grid_head heads[] = {{"ID", NULL}, {"TEXT", NULL}};

static void check_grid(const struct str *cells, size_t n_rows, unsigned width,
                       bool unicode, const char *expected)
{
    struct buf out;
    struct grid g;

    buf_init(&out, 1024 * 1024);
    grid_init(&g, heads, 2);
    for (size_t i = 0; i < n_rows; i++)
        grid_add(&g, cells + 2 * i);
    grid_write(&g, &out, width, false, unicode);
    CHECK_STR(buf_str(&out), expected);
    CHECK(!g.is_over);
    CHECK_INT(g.n_rows, n_rows);
    grid_fini(&g);
    buf_fini(&out);
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
    struct str cells[] = {STR("a"), STR("one"), STR("long"), STR("two")};

    check_grid(cells, 2, 0, true, "ID    TEXT\na     one\nlong  two\n");
}

TEST(a_header_stands_alone_when_there_is_no_row)
{
    check_grid(NULL, 0, 80, true, "ID  TEXT\n");
}

TEST(the_last_column_is_cut_to_the_line)
{
    struct str cells[] = {STR("a"), STR("0123456789abcdef"), STR("b"),
                          STR("0123456789ab")};

    check_grid(cells, 2, 16, true,
               "ID  TEXT\na   0123456789a\u2026\nb   0123456789ab\n");
    check_grid(cells, 2, 16, false,
               "ID  TEXT\na   0123456789..\nb   0123456789ab\n");
}

TEST(a_pipe_gets_the_whole_last_cell)
{
    struct str cells[] = {STR("a"), STR("0123456789abcdef0123456789abcdef")};

    check_grid(cells, 1, 0, false,
               "ID  TEXT\na   0123456789abcdef0123456789abcdef\n");
}

TEST(other_columns_end_at_forty)
{
    struct str cells[] = {
        STR("0123456789012345678901234567890123456789"), STR("x"),
        STR("01234567890123456789012345678901234567890"), STR("y")};

    check_grid(cells, 2, 0, true,
               "ID                                        TEXT\n"
               "0123456789012345678901234567890123456789  x\n"
               "012345678901234567890123456789012345678\u2026  y\n");
}

TEST(a_narrow_terminal_still_shows_some_of_the_last)
{
    struct str cells[] = {STR("0123456789"), STR("0123456789")};

    check_grid(cells, 1, 5, true,
               "ID          TEXT\n0123456789  0123456\u2026\n");
}

TEST(a_cell_is_one_line_and_steers_no_terminal)
{
    struct str cells[] = {STR("a"), STR(" two\r\n\tlines \033[31mred\x07\n")};

    check_grid(cells, 1, 0, true, "ID  TEXT\na   two lines ?[31mred?\n");
}

TEST(empty_cells_leave_no_blanks_at_the_end)
{
    struct str cells[] = {STR("a"), STR("")};

    check_grid(cells, 1, 0, true, "ID  TEXT\na\n");
}

TEST(wide_characters_take_two_columns_and_combining_ones_none)
{
    CHECK_INT(text_columns(STR("abc")), 3);
    CHECK_INT(text_columns(STR("\u00e4\u20ac")), 2);
    CHECK_INT(text_columns(STR("\u65e5\u672c")), 4);
    CHECK_INT(text_columns(STR("\U0001f600")), 2);
    CHECK_INT(text_columns(STR("e\u0301")), 1);
    CHECK_STR(text_cut(STR("\u65e5\u672c"), 3), "\u65e5");
    CHECK_STR(text_cut(STR("abc"), 3), "abc");
    CHECK_STR(text_cut(STR("abc"), 0), "");
}

TEST(bytes_that_are_no_character_do_no_harm)
{
    struct str cells[] = {STR("\xff\xc3"), STR("\xf0\x9f\xe2")};

    check_grid(cells, 1, 0, true, "ID  TEXT\n\xff\xc3  \xf0\x9f\xe2\n");
}

TEST(a_cell_is_looked_at_as_far_as_its_limit)
{
    static char big[GRID_CELL_MAX + 2];
    struct str cells[] = {STR("a"), {big, GRID_CELL_MAX + 1}};
    struct buf out;
    struct grid g;

    memset(big, 'x', GRID_CELL_MAX + 1);
    buf_init(&out, 4096);
    grid_init(&g, heads, 2);
    grid_add(&g, cells);
    grid_write(&g, &out, 0, false, true);
    CHECK_INT(out.n, strlen("ID  TEXT\na   \n") + GRID_CELL_MAX);
    grid_fini(&g);
    buf_fini(&out);
}

TEST(a_long_cell_ends_with_a_whole_character)
{
    static char big[GRID_CELL_MAX + 2];
    struct str cells[] = {STR("a"), {big, GRID_CELL_MAX + 1}};
    struct buf out;
    struct grid g;

    memset(big, 'x', GRID_CELL_MAX + 1);
    memcpy(big + GRID_CELL_MAX - 1, "\u00e4", 2);
    buf_init(&out, 4096);
    grid_init(&g, heads, 2);
    grid_add(&g, cells);
    grid_write(&g, &out, 0, false, true);
    CHECK_INT(out.n, strlen("ID  TEXT\na   \n") + GRID_CELL_MAX - 1);
    grid_fini(&g);
    buf_fini(&out);
}

static const char *red_when_bad(struct str cell)
{
    return str_eq(cell, STR("bad")) ? "\033[31m" : "";
}

TEST(colour_does_not_count_as_width)
{
    static const struct grid_head coloured[] = {{"S", red_when_bad},
                                                {"T", NULL}};
    struct str cells[] = {STR("bad"), STR("x"), STR("ok"), STR("y")};
    struct buf out;
    struct grid g;

    buf_init(&out, 4096);
    grid_init(&g, coloured, 2);
    grid_add(&g, cells);
    grid_add(&g, cells + 2);
    grid_write(&g, &out, 80, true, true);
    CHECK_STR(buf_str(&out), "\033[1mS\033[0m    \033[1mT\033[0m\n"
                             "\033[31mbad\033[0m  x\nok   y\n");
    grid_fini(&g);
    buf_fini(&out);
}

TEST(text_of_several_lines_keeps_them_and_loses_the_rest)
{
    char text[] = "a\tb\n\033[2Jc\x7f\r\n\xc2\x9b.\xc3\xa4";

    CHECK_INT(str_tame_text(text, sizeof(text) - 1), 16);
    CHECK_STR(str_of(text), "a\tb\n?[2Jc??\n?.\xc3\xa4");
}

TEST(numbers_end_where_their_column_ends)
{
    static const struct grid_head numbers[] = {
        {"", NULL}, {"1", NULL}, {"2", NULL}};
    struct buf out;
    struct grid g;

    buf_init(&out, 4096);
    grid_init(&g, numbers, 3);
    grid_right_from(&g, 1);
    grid_add(&g, (struct str[]){STR("1"), STR("1.00"), STR("-0.04")});
    grid_add(&g, (struct str[]){STR("2"), STR("-0.04"), STR("1.00")});
    grid_write(&g, &out, 80, false, true);
    CHECK_STR(buf_str(&out),
              "       1      2\n1   1.00  -0.04\n2  -0.04   1.00\n");
    grid_fini(&g);
    buf_fini(&out);
}

TEST(the_points_of_amounts_stand_below_each_other)
{
    static const struct grid_head titles[] = {
        {"WHO", NULL}, {"AMOUNT", NULL}, {"WHY", NULL}};
    struct grid g;
    struct buf out;

    buf_init(&out, 4096);
    grid_init(&g, titles, 3);
    g.points = 1U << 1;
    grid_add(&g, (struct str[]){STR("anna"), STR("-1.50"), STR("a")});
    grid_add(&g, (struct str[]){STR("bob"), STR("0.0015"), STR("b")});
    grid_add(&g, (struct str[]){STR("carl"), STR("1234.00"), STR("c")});
    grid_write(&g, &out, 0, false, false);
    CHECK_STR(buf_str(&out), "WHO      AMOUNT  WHY\n"
                             "anna    -1.50    a\n"
                             "bob      0.0015  b\n"
                             "carl  1234.00    c\n");
    grid_fini(&g);
    buf_clear(&out);
    grid_init(&g, titles, 3);
    g.points = 1U << 1;
    grid_add(&g, (struct str[]){STR("anna"), STR("1.50"), STR("a")});
    grid_write(&g, &out, 0, false, false);
    CHECK_STR(buf_str(&out), "WHO   AMOUNT  WHY\n"
                             "anna    1.50  a\n");
    grid_fini(&g);
    buf_fini(&out);
}
