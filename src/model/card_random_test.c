/* Random cards: each is read, written in its stored form, read from that and
 * written again to the same bytes; and each that is cut or changed somewhere is
 * read or rejected with a message. STRESS=full tries many more. */
#include "test/lib/card_stage.h"

#include "base/clock.h"

struct maker {
    struct rand_seeded state;
    struct rand rand;
    struct buf out;
    bool has_comma;
};

static size_t upto(struct maker *m, size_t n)
{
    return (size_t)(rand_u64(m->rand) % (n + 1));
}

static size_t n_rounds(size_t usual)
{
    const char *s = getenv("STRESS");

    return s && strcmp(s, "full") == 0 ? usual * 100 : usual;
}

/* Letters with and without escapes, and of other scripts. */
static void add_letters(struct maker *m, size_t n_letters, bool has_lines)
{
    static const char *const letters[] = {
        "a",       "b", "Z", "0", "~",  "/",    "\\\"",           "\\\\",
        "\\u00e9", "é", "ש", "م", "漢", "🦉", "\\ud83e\\udd89", "\\/",
        "-",       "."};
    static const char *const lines[] = {"\\n", "\\t", "\\r\\n", " "};
    size_t n = sizeof(letters) / sizeof(letters[0]);

    for (size_t i = 0; i < n_letters; i++) {
        bool is_line = has_lines && upto(m, 9) == 0;

        buf_add_str(&m->out, str_of(is_line ? lines[upto(m, 3)]
                                            : letters[upto(m, n - 1)]));
    }
}

static void add_text(struct maker *m, size_t n_letters, bool has_lines)
{
    buf_add_str(&m->out, STR("\"x"));
    add_letters(m, n_letters, has_lines);
    buf_add_char(&m->out, '"');
}

static void add_key(struct maker *m, const char *key)
{
    buf_addf(&m->out, "%s\"%s\":", m->has_comma ? "," : "", key);
    m->has_comma = true;
}

static void open_with(struct maker *m, char bracket)
{
    buf_add_char(&m->out, bracket);
    m->has_comma = false;
}

static void close_with(struct maker *m, char bracket)
{
    buf_add_char(&m->out, bracket);
    m->has_comma = true;
}

/* Whether a member is written; sometimes it is written as null. */
static bool has(struct maker *m, const char *key)
{
    size_t chance = upto(m, 5);

    if (chance > 1)
        add_key(m, key);
    if (chance == 2)
        buf_add_str(&m->out, STR("null"));
    return chance > 2;
}

/* All different: each begins with its number. */
static void add_list(struct maker *m, const char *key, size_t most,
                     bool has_lines)
{
    size_t n = upto(m, most);

    if (!has(m, key))
        return;
    open_with(m, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(&m->out, ',');
        buf_addf(&m->out, "\"%zu", i);
        add_letters(m, upto(m, 8), has_lines);
        buf_add_char(&m->out, '"');
    }
    close_with(m, ']');
}

static void add_int(struct maker *m, const char *key, int64_t min, int64_t max)
{
    if (has(m, key))
        buf_add_i64(&m->out, min + (int64_t)upto(m, (size_t)(max - min)));
}

static void add_any(struct maker *m, int depth)
{
    static const char *const plain[] = {"null",  "true", "-0",   "-0.0",
                                        "1e300", "1.50", "\"\"", "12345678901",
                                        "[]",    "{}",   "1e-9", "\"\\u00e9\""};
    size_t n = upto(m, 3);

    if (depth == 0 || upto(m, 2)) {
        buf_add_str(&m->out, str_of(plain[upto(m, 11)]));
        return;
    }
    if (upto(m, 1)) {
        open_with(m, '[');
        for (size_t i = 0; i < n; i++) {
            if (i)
                buf_add_char(&m->out, ',');
            add_any(m, depth - 1);
        }
        close_with(m, ']');
        return;
    }
    open_with(m, '{');
    for (size_t i = 0; i < n; i++) {
        char key[8];

        snprintf(key, sizeof(key), "k%zu", n - i);
        add_key(m, key);
        add_any(m, depth - 1);
        m->has_comma = true;
    }
    close_with(m, '}');
}

static void add_object(struct maker *m, const char *key)
{
    if (!has(m, key))
        return;
    open_with(m, '{');
    add_key(m, "any");
    add_any(m, 5);
    m->has_comma = true;
    if (upto(m, 1)) {
        add_key(m, "\\u00e9\\\"");
        add_any(m, 2);
    }
    close_with(m, '}');
}

static void add_price(struct maker *m)
{
    if (!has(m, "pricing"))
        return;
    open_with(m, '{');
    add_int(m, "amount_micros", 0, AGENT_PRICE_MAX);
    close_with(m, '}');
}

static void add_skills(struct maker *m)
{
    size_t n = upto(m, 4);

    if (!has(m, "skills"))
        return;
    open_with(m, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add_char(&m->out, ',');
        open_with(m, '{');
        add_list(m, "tags", 3, false);
        add_key(m, "id");
        buf_addf(&m->out, "\"s-%zu\"", i);
        add_key(m, "name");
        add_text(m, upto(m, 12), false);
        if (has(m, "description"))
            add_text(m, upto(m, 100), true);
        add_list(m, "examples", 3, true);
        add_price(m);
        close_with(m, '}');
    }
    close_with(m, ']');
}

static void add_groups(struct maker *m)
{
    if (has(m, "routing")) {
        open_with(m, '{');
        if (has(m, "routable"))
            buf_add_str(&m->out, upto(m, 1) ? STR("true") : STR("false"));
        add_list(m, "keywords", 5, false);
        if (has(m, "system_prompt"))
            add_text(m, upto(m, 300), true);
        close_with(m, '}');
    }
    if (has(m, "wake")) {
        open_with(m, '{');
        add_key(m, "url");
        buf_add_str(&m->out, STR("\"http:\\/\\/h\""));
        add_int(m, "timeout_ms", 1, AGENT_WAKE_MAX_MS);
        close_with(m, '}');
    }
    if (has(m, "restart")) {
        open_with(m, '{');
        add_list(m, "command", 3, true);
        close_with(m, '}');
    }
    if (has(m, "limits")) {
        open_with(m, '{');
        add_int(m, "priority", -AGENT_PRIORITY_MAX, AGENT_PRIORITY_MAX);
        add_int(m, "queue", 1, AGENT_QUEUE_MAX);
        add_int(m, "in_flight", 1, AGENT_IN_FLIGHT_MAX);
        close_with(m, '}');
    }
    if (has(m, "delegation")) {
        open_with(m, '{');
        add_int(m, "maxDepth", 0, AGENT_DEPTH_MAX);
        add_int(m, "maxConcurrent", 0, AGENT_CONCURRENT_MAX);
        if (has(m, "allowAgents"))
            buf_add_str(&m->out, upto(m, 1) ? STR("[]") : STR("[\"a\",\"b\"]"));
        close_with(m, '}');
    }
}

static void make_card(struct maker *m)
{
    static const char *const urls[] = {"ws-agent://x.y", "process:p",
                                       "model:a/b:c",    "echo:5",
                                       "https://h/?q=1", "http://[::1]:8/"};
    static const char *const seen[] = {"public", "shared", "private"};

    buf_clear(&m->out);
    open_with(m, '{');
    add_groups(m);
    add_key(m, "description");
    add_text(m, upto(m, 200), true);
    if (has(m, "title"))
        add_text(m, upto(m, 20), false);
    if (has(m, "version"))
        buf_add_str(&m->out, STR("\"1.2\""));
    add_key(m, "name");
    buf_addf(&m->out, "\"n%zu\"", upto(m, 99));
    if (has(m, "url"))
        buf_addf(&m->out, "\"%s\"", urls[upto(m, 5)]);
    if (has(m, "visibility"))
        buf_addf(&m->out, "\"%s\"", seen[upto(m, 2)]);
    add_object(m, "provider");
    add_object(m, "capabilities");
    add_object(m, "authentication");
    add_object(m, "metadata");
    add_skills(m);
    add_price(m);
    if (has(m, "backup"))
        buf_add_str(&m->out, STR("\"b\""));
    close_with(m, '}');
    CHECK(!m->out.over);
}

static void maker_init(struct maker *m, uint64_t seed)
{
    *m = (struct maker){.state = {seed}};
    m->rand = rand_seeded(&m->state);
    buf_init(&m->out, 1 << 20);
}

/* Read the stored form and write it again. */
static void comes_back(struct stage *s, const struct agent *first,
                       struct str kept)
{
    struct agent again;
    struct json_out o;
    struct buf out;

    buf_init(&out, 1 << 20);
    CHECK(card_read_stored(&s->arena, kept, &again) == OK);
    stage_write(&again, CARD_STORED, &out);
    CHECK(str_eq(buf_str(&out), kept));
    buf_clear(&out);
    o = json_out(&out);
    card_diff(&o, first, &again);
    CHECK_STR(buf_str(&out), "[]");

    /* And as a client would send it. */
    stage_read(s, kept);
    CHECK_INT(s->e, OK);
    buf_clear(&out);
    stage_write(&s->agent, CARD_STORED, &out);
    CHECK(str_eq(buf_str(&out), kept));
    buf_fini(&out);
}

TEST(what_is_written_is_read_and_written_the_same)
{
    size_t n = n_rounds(1000);
    struct maker m;

    maker_init(&m, 20260201);
    for (size_t i = 0; i < n; i++) {
        struct agent first;
        struct stage s;
        struct buf kept;

        make_card(&m);
        stage_init(&s);
        buf_init(&kept, 1 << 20);
        stage_read(&s, buf_str(&m.out));
        if (s.e)
            T_FAIL("%.*s: %.*s", STR_ARG(buf_str(&m.out)),
                   STR_ARG(s.problems.list[0].message));
        first = s.agent;
        stage_write(&first, CARD_STORED, &kept);
        comes_back(&s, &first, buf_str(&kept));
        buf_fini(&kept);
        stage_fini(&s);
    }
    buf_fini(&m.out);
}

/* A patch that repeats the card changes nothing. */
TEST(a_card_over_itself_is_the_same_card)
{
    size_t n = n_rounds(200);
    struct maker m;

    maker_init(&m, 7);
    for (size_t i = 0; i < n; i++) {
        struct json *v;
        struct stage s;
        struct buf first, second;

        make_card(&m);
        stage_init(&s);
        buf_init(&first, 1 << 20);
        buf_init(&second, 1 << 20);
        v = stage_parse(&s, buf_str(&m.out));
        CHECK(card_read(&s.arena, v, &s.opts, &s.agent, &s.problems) == OK);
        stage_write(&s.agent, CARD_STORED, &first);
        v = card_merge(&s.arena, stage_parse(&s, buf_str(&first)),
                       stage_parse(&s, buf_str(&first)));
        CHECK(v);
        CHECK(card_read(&s.arena, v, &s.opts, &s.agent, &s.problems) == OK);
        stage_write(&s.agent, CARD_STORED, &second);
        /* Except a null within an object, which a patch removes. */
        if (!stage_has(buf_str(&first), STR(":null")))
            CHECK(str_eq(buf_str(&first), buf_str(&second)));
        buf_fini(&first);
        buf_fini(&second);
        stage_fini(&s);
    }
    buf_fini(&m.out);
}

TEST(a_card_with_a_byte_changed_is_read_or_refused_with_words)
{
    size_t n = n_rounds(2000), n_read = 0, n_refused = 0;
    struct maker m;

    maker_init(&m, 99);
    for (size_t i = 0; i < n; i++) {
        struct json *v;
        struct stage s;

        make_card(&m);
        stage_init(&s);
        m.out.p[upto(&m, m.out.n - 1)] = "\"{}[],:0aA-. "[upto(&m, 12)];
        v = json_parse(&s.arena, buf_str(&m.out), 0, NULL);
        if (v) {
            s.e = card_read(&s.arena, v, &s.opts, &s.agent, &s.problems);
            CHECK((s.e == OK) == (s.problems.n == 0));
            for (size_t k = 0; k < s.problems.n; k++)
                CHECK(s.problems.list[k].message.n > 0);
            n_read += s.e == OK;
            n_refused += s.e != OK;
        }
        stage_fini(&s);
    }
    CHECK(n_read > n / 20 && n_refused > n / 50);
    buf_fini(&m.out);
}
