/* Tables as JSON and as CSV: text from users stays in one cell and is harmless
 * in a spreadsheet. */
#include "speak/speak.h"

#include <math.h>

#include "test/t.h"

static const char *const columns[] = {"name", "n", "rate", "list", NULL};

struct bench {
    struct buf out;
    struct sheet s;
};

static void open_bench(struct bench *b, bool is_csv)
{
    buf_init(&b->out, 4096);
    sheet_open(&b->s, &b->out, is_csv, columns);
}

static void close_bench(struct bench *b, const char *expected)
{
    sheet_close(&b->s);
    CHECK(!b->out.over);
    CHECK_STR(buf_str(&b->out), expected);
    buf_fini(&b->out);
}

static void add_row(struct sheet *s, const char *name, int64_t n, double rate)
{
    const struct str list[] = {STR("a \"b\""), STR("c, d")};

    sheet_row(s);
    sheet_str(s, str_of(name));
    sheet_int(s, n);
    sheet_real(s, rate);
    sheet_strs(s, list, 2, true);
}

TEST(a_table_without_rows_is_its_names_or_an_empty_list)
{
    struct bench b;

    open_bench(&b, true);
    close_bench(&b, "name,n,rate,list\r\n");
    open_bench(&b, false);
    close_bench(&b, "[]");
}

TEST(rows_are_cells_in_the_order_of_their_columns)
{
    struct bench b;

    open_bench(&b, true);
    add_row(&b.s, "engineer", 6, 0.46);
    add_row(&b.s, "", -1, 0);
    close_bench(&b, "name,n,rate,list\r\n"
                    "\"engineer\",6,0.46,\"a \"\"b\"\" | c, d\"\r\n"
                    "\"\",-1,0.0,\"a \"\"b\"\" | c, d\"\r\n");
    open_bench(&b, false);
    add_row(&b.s, "engineer", 6, 0.46);
    add_row(&b.s, "x\"y", -1, 0);
    close_bench(&b, "[{\"name\":\"engineer\",\"n\":6,\"rate\":0.46,"
                    "\"list\":[\"a \\\"b\\\"\",\"c, d\"]},"
                    "{\"name\":\"x\\\"y\",\"n\":-1,\"rate\":0.0,"
                    "\"list\":[\"a \\\"b\\\"\",\"c, d\"]}]");
}

TEST(what_is_not_known_is_null_or_nothing)
{
    for (int is_csv = 0; is_csv < 2; is_csv++) {
        struct bench b;

        open_bench(&b, is_csv);
        sheet_row(&b.s);
        sheet_none(&b.s);
        sheet_none(&b.s);
        sheet_real(&b.s, (double)NAN);
        sheet_strs(&b.s, NULL, 0, true);
        close_bench(&b, is_csv ? "name,n,rate,list\r\n,,,\"\"\r\n"
                               : "[{\"name\":null,\"n\":null,\"rate\":null,"
                                 "\"list\":[]}]");
    }
}

TEST(lines_and_quotes_within_a_cell_stay_within_it)
{
    struct bench b;

    open_bench(&b, true);
    sheet_row(&b.s);
    sheet_str(&b.s, STR("one\r\ntwo, \"three\""));
    close_bench(&b, "name,n,rate,list\r\n\"one\r\ntwo, \"\"three\"\"\"\r\n");
}

/* Excel and others read a cell that begins with one of these as a formula,
 * quoted or not. */
TEST(what_would_be_a_formula_is_text)
{
    static const char *const heads[] = {"=", "+", "-", "@", "\t", "\r"};
    char text[32], expected[96];
    struct bench b;

    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        snprintf(text, sizeof(text), "%sSUM(1)", heads[i]);
        snprintf(expected, sizeof(expected), "name,n,rate,list\r\n\"'%s\"\r\n",
                 text);
        open_bench(&b, true);
        sheet_row(&b.s);
        sheet_str(&b.s, str_of(text));
        close_bench(&b, expected);
    }
    open_bench(&b, true); /* not so in the middle, nor for numbers */
    sheet_row(&b.s);
    sheet_str(&b.s, STR("1=1"));
    sheet_int(&b.s, -5);
    sheet_real(&b.s, -0.5);
    close_bench(&b, "name,n,rate,list\r\n\"1=1\",-5,-0.5\r\n");
    open_bench(&b, false); /* JSON is no spreadsheet */
    sheet_row(&b.s);
    sheet_str(&b.s, STR("=1"));
    close_bench(&b, "[{\"name\":\"=1\"}]");
}

TEST(a_full_buffer_is_over)
{
    struct sheet s;
    struct buf out;

    buf_init(&out, 40);
    sheet_open(&s, &out, true, columns);
    for (int i = 0; i < 100; i++)
        add_row(&s, "engineer", i, 0.5);
    sheet_close(&s);
    CHECK(out.over);
    buf_fini(&out);
}
