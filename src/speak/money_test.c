/* Requests to move money, the canonical form for their keys, and statements
 * that are safe to open in a spreadsheet. */
#include "speak/speak.h"

#include "base/clock.h"
#include "test/t.h"

struct asked {
    struct arena arena;
    struct speak_money_call call;
    struct buf meaning;
    struct why why;
    enum err e;
};

static void ask(struct asked *a, enum speak_money what, const char *body,
                const char *header)
{
    *a = (struct asked){.why = {""}};
    arena_init(&a->arena, 64 * 1024);
    buf_init(&a->meaning, 4096);
    a->e = speak_money_post(&a->arena, what, str_of(body),
                            header ? str_of(header) : (struct str){NULL, 0},
                            &a->call, &a->meaning, &a->why);
}

static void forget(struct asked *a)
{
    arena_fini(&a->arena);
    buf_fini(&a->meaning);
}

static void check_refused(enum speak_money what, const char *body,
                          const char *header, const char *words)
{
    struct asked a;

    ask(&a, what, body, header);
    if (!a.e || !strstr(a.why.text, words))
        T_FAIL("%s: %d, %s", body, a.e, a.why.text);
    forget(&a);
}

TEST(what_is_to_be_moved_is_read)
{
    struct asked a;

    ask(&a, SPEAK_TOPUP,
        "{\"user\":\"anna\",\"amount_micros\":1500000,\"note\":\"May\"}", "k1");
    CHECK(a.e == OK);
    CHECK_STR(a.call.user, "anna");
    CHECK_INT(a.call.amount_micros, 1500000);
    CHECK_STR(a.call.note, "May");
    CHECK_STR(a.call.key, "k1");
    forget(&a);
    ask(&a, SPEAK_REFUND, "{\"task_id\":\"task_1\",\"turn\":2}", NULL);
    CHECK(a.e == OK && !a.call.user.n && !a.call.amount_micros);
    CHECK_STR(a.call.task_id, "task_1");
    CHECK_INT(a.call.turn, 2);
    forget(&a);
    ask(&a, SPEAK_REFUND, "{\"task_id\":\"task_1\",\"amount_micros\":7}", NULL);
    CHECK(a.e == OK && !a.call.user.n);
    CHECK_INT(a.call.amount_micros, 7);
    forget(&a);
    ask(&a, SPEAK_PAYOUT,
        "{\"user\":\"a\",\"amount_micros\":1000000000000000000}", NULL);
    CHECK(a.e == OK && a.call.amount_micros == SPEAK_AMOUNT_MAX);
    forget(&a);
}

TEST(an_amount_is_a_whole_number_of_micro_units)
{
    static const char *const bad[] = {
        "0",   "-1",          "1.5",    "1.0",
        "1e3", "\"1500000\"", "\"1\"",  "true",
        "[1]", "{}",          "-0",     "1000000000000000001",
        "1E2", "1e-1",        "0.0001", "9223372036854775807",
    };
    char body[128];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(body, sizeof(body), "{\"user\":\"a\",\"amount_micros\":%s}",
                 bad[i]);
        check_refused(SPEAK_TOPUP, body, NULL,
                      "amount_micros must be a whole number from 1 to "
                      "1000000000000000000");
    }
    check_refused(SPEAK_TOPUP,
                  "{\"user\":\"a\",\"amount_micros\":9223372036854775808}",
                  NULL, "this number does not fit");
    check_refused(SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":NaN}", NULL,
                  "not valid JSON");
    check_refused(SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":01}", NULL,
                  "not valid JSON");
    check_refused(SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":null}", NULL,
                  "amount_micros is missing");
}

TEST(what_is_missing_or_too_much_is_named)
{
    check_refused(SPEAK_TOPUP, "", NULL, "empty");
    check_refused(SPEAK_TOPUP, "[]", NULL, "must be a JSON object");
    check_refused(SPEAK_TOPUP, "{}", NULL, "user is missing");
    check_refused(SPEAK_PAYOUT, "{\"user\":\"a\"}", NULL,
                  "amount_micros is missing");
    check_refused(SPEAK_TOPUP, "{\"user\":\"a\",\"amount\":1}", NULL,
                  "unknown field \"amount\"");
    check_refused(SPEAK_TOPUP,
                  "{\"user\":\"a\",\"amount_micros\":1,\"task_id\":\"x\"}",
                  NULL, "unknown field \"task_id\"");
    check_refused(SPEAK_REFUND, "{}", NULL, "say what to refund");
    check_refused(SPEAK_REFUND, "{\"turn\":1}", NULL, "turn needs task_id");
    check_refused(SPEAK_REFUND, "{\"task_id\":\"t\",\"turn\":0}", NULL,
                  "turn must be");
    check_refused(SPEAK_REFUND, "{\"user\":\"a\"}", NULL,
                  "amount_micros is missing");
    check_refused(SPEAK_REFUND, "{\"task_id\":\"a\",\"user\":\"a\"}", NULL,
                  "without user");
    check_refused(SPEAK_REFUND, "{\"amount_micros\":1}", NULL,
                  "user is missing");
    check_refused(SPEAK_TOPUP,
                  "{\"user\":\"a\",\"amount_micros\":1,\"note\":\"a\\nb\"}",
                  NULL, "note must be");
    check_refused(SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":1}", "",
                  "header is empty");
    check_refused(SPEAK_TOPUP,
                  "{\"user\":\"a\",\"amount_micros\":1,"
                  "\"idempotency_key\":\"x\"}",
                  "y", "differ");
}

TEST(a_note_is_as_long_as_it_may_be)
{
    char body[SPEAK_NOTE_MAX + 128], note[SPEAK_NOTE_MAX + 2];
    struct asked a;

    memset(note, 'n', sizeof(note));
    note[SPEAK_NOTE_MAX] = '\0';
    snprintf(body, sizeof(body),
             "{\"user\":\"a\",\"amount_micros\":1,\"note\":\"%s\"}", note);
    ask(&a, SPEAK_TOPUP, body, NULL);
    CHECK(a.e == OK && a.call.note.n == SPEAK_NOTE_MAX);
    forget(&a);
    note[SPEAK_NOTE_MAX] = 'n';
    note[SPEAK_NOTE_MAX + 1] = '\0';
    snprintf(body, sizeof(body),
             "{\"user\":\"a\",\"amount_micros\":1,\"note\":\"%s\"}", note);
    check_refused(SPEAK_TOPUP, body, NULL, "note must be");
}

/* The same for every layout, and different for every other request. */
TEST(a_key_stands_for_what_is_wished)
{
    static const struct {
        enum speak_money what;
        const char *body;
    } others[] = {
        {SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":12}"},
        {SPEAK_PAYOUT, "{\"user\":\"a\",\"amount_micros\":12}"},
        {SPEAK_REFUND, "{\"user\":\"a\",\"amount_micros\":12}"},
        {SPEAK_TOPUP, "{\"user\":\"b\",\"amount_micros\":12}"},
        {SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":1}"},
        {SPEAK_TOPUP, "{\"user\":\"a\",\"amount_micros\":12,\"note\":\"x\"}"},
        {SPEAK_REFUND, "{\"task_id\":\"a\"}"},
        {SPEAK_REFUND, "{\"task_id\":\"a\",\"turn\":1}"},
        {SPEAK_REFUND, "{\"task_id\":\"a\",\"amount_micros\":1}"},
        {SPEAK_REFUND, "{\"task_id\":\"a\",\"note\":\"a\"}"},
    };
    enum { N = sizeof(others) / sizeof(others[0]) };
    struct asked all[N], same;

    for (size_t i = 0; i < N; i++) {
        ask(&all[i], others[i].what, others[i].body, NULL);
        CHECK(all[i].e == OK);
        for (size_t k = 0; k < i; k++)
            CHECK(!str_eq(buf_str(&all[i].meaning), buf_str(&all[k].meaning)));
    }
    ask(&same, SPEAK_TOPUP,
        " { \"amount_micros\" : 12 , \"note\":\"\",\"user\" : \"\\u0061\" } ",
        "key");
    CHECK(str_eq(buf_str(&same.meaning), buf_str(&all[0].meaning)));
    forget(&same);
    for (size_t i = 0; i < N; i++)
        forget(&all[i]);
}

static const struct speak_line line = {.seq = 7,
                                       .at_ms = 1763251200000,
                                       .posting = STR("post_1"),
                                       .kind = STR("topup"),
                                       .account = STR("user:anna"),
                                       .amount_micros = -1500,
                                       .by = STR("admin"),
                                       .note = STR("=1+1, \"x\"")};

TEST(a_statement_is_said_as_json_and_as_csv)
{
    struct sheet s;
    struct buf out;

    buf_init(&out, 4096);
    sheet_open(&s, &out, false, speak_line_columns(false));
    speak_line(&s, &line);
    sheet_close(&s);
    CHECK_STR(buf_str(&out),
              "[{\"seq\":7,\"at_ms\":1763251200000,\"amount_micros\":-1500,"
              "\"account\":\"user:anna\",\"kind\":\"topup\",\"task_id\":null,"
              "\"turn\":null,\"agent\":null,\"skill\":null,\"by\":\"admin\","
              "\"note\":\"=1+1, \\\"x\\\"\",\"posting\":\"post_1\","
              "\"state\":null}]");
    buf_clear(&out);
    sheet_open(&s, &out, true, speak_line_columns(true));
    speak_line(&s, &line);
    sheet_close(&s);
    CHECK_STR(buf_str(&out),
              "seq,at_ms,at,amount_micros,amount,account,kind,task_id,turn,"
              "agent,skill,by,note,posting,state\r\n"
              "7,1763251200000,\"2025-11-16T00:00:00Z\",-1500,-0.001500,"
              "\"user:anna\",\"topup\",,,,,\"admin\",\"'=1+1, \"\"x\"\"\","
              "\"post_1\",\r\n");
    buf_fini(&out);
}

TEST(amounts_in_a_sheet_are_exact)
{
    static const char *const columns[] = {"a", "b", "c", "d", NULL};
    struct sheet s;
    struct buf out;

    buf_init(&out, 4096);
    sheet_open(&s, &out, true, columns);
    sheet_row(&s);
    sheet_micros(&s, INT64_MIN);
    sheet_micros(&s, INT64_MAX);
    sheet_micros(&s, 0);
    sheet_micros(&s, -1);
    sheet_close(&s);
    CHECK_STR(buf_str(&out), "a,b,c,d\r\n-9223372036854.775808,"
                             "9223372036854.775807,0.000000,-0.000001\r\n");
    buf_fini(&out);
}

/* A plain reader of one CSV cell, RFC 4180. */
static struct str read_cell(struct str rest, char *room)
{
    size_t n = 0;

    CHECK(rest.n && rest.p[0] == '"');
    for (size_t i = 1; i < rest.n; i++) {
        if (rest.p[i] == '"' && (i + 1 == rest.n || rest.p[++i] != '"'))
            return (struct str){room, n};
        room[n++] = rest.p[i];
    }
    T_FAIL("a cell without an end");
}

TEST(any_text_is_one_cell_and_no_formula)
{
    static const char *const columns[] = {"a", NULL};
    static const char letters[] = "=+-@\t\r\n\"',;| ax1";
    struct rand_seeded seed = {4180};
    struct rand chance = rand_seeded(&seed);

    for (int i = 0; i < 20000; i++) {
        char text[16], room[64];
        size_t n = rand_u64(chance) % sizeof(text);
        struct str cell, said;
        struct sheet s;
        struct buf out;

        for (size_t k = 0; k < n; k++)
            text[k] = letters[rand_u64(chance) % (sizeof(letters) - 1)];
        said = (struct str){text, n};
        buf_init(&out, 4096);
        sheet_open(&s, &out, true, columns);
        sheet_row(&s);
        sheet_str(&s, said);
        sheet_close(&s);
        cell = read_cell(str_sub(buf_str(&out), 3, out.n), room);
        CHECK(!n || !strchr("=+-@\t\r", cell.p[0]));
        if (cell.n > n)
            cell = str_sub(cell, 1, cell.n);
        CHECK(str_eq(cell, said));
        buf_fini(&out);
    }
}
