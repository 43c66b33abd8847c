#include "lab/eval_data.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/fault.h"
#include "test/t.h"

static const char agents[] =
    "{\"name\":\"mail\",\"description\":\"Sends letters\",\"more\":1}\n"
    "\n"
    "{\"name\":\"Cook\",\"description\":\"Cooks\",\"skills\":[\"soups\","
    "{\"name\":\"bakeBread\",\"description\":\"with yeast\","
    "\"examples\":[\"my dough is flat\"]}],\"examples\":[\"I'm hungry\"]}\r\n"
    "{\"name\":\"bare\"}";

struct files {
    char folder[64], path[128];
};

static void in_folder(struct files *f)
{
    snprintf(f->folder, sizeof(f->folder), "/tmp/eval-test-XXXXXX");
    CHECK(mkdtemp(f->folder));
    snprintf(f->path, sizeof(f->path), "%s/f.jsonl", f->folder);
}

static void gone(struct files *f)
{
    unlink(f->path);
    rmdir(f->folder);
}

static void put(const struct files *f, const void *text, size_t n)
{
    FILE *out = fopen(f->path, "w");

    CHECK(out && fwrite(text, 1, n, out) == n);
    CHECK(fclose(out) == 0);
}

static enum err read_agents(struct eval_set *s, const void *text, size_t n,
                            struct why *why)
{
    struct files f;
    enum err e;

    in_folder(&f);
    put(&f, text, n);
    e = eval_read_agents(s, f.path, why);
    gone(&f);
    return e;
}

static enum err read_queries(struct eval_set *s, const char *text, size_t limit,
                             struct why *why)
{
    struct files f;
    enum err e;

    in_folder(&f);
    put(&f, text, strlen(text));
    e = eval_read_queries(s, f.path, limit, why);
    gone(&f);
    return e;
}

static void check_bad_agents_of(const void *text, size_t n, enum err e,
                                const char *where)
{
    struct eval_set s;
    struct why why = {""};

    eval_set_init(&s);
    CHECK_INT(read_agents(&s, text, n, &why), e);
    if (!strstr(why.text, where))
        T_FAIL("\"%s\" is not in \"%s\"", where, why.text);
    eval_set_fini(&s);
}

static void check_bad_agents(const char *text, enum err e, const char *where)
{
    check_bad_agents_of(text, strlen(text), e, where);
}

static void check_bad_queries(const char *text, enum err e, const char *where)
{
    struct eval_set s;
    struct why why = {""};

    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK_INT(read_queries(&s, text, SIZE_MAX, &why), e);
    if (!strstr(why.text, where))
        T_FAIL("\"%s\" is not in \"%s\"", where, why.text);
    eval_set_fini(&s);
}

TEST(agents_are_in_the_order_of_their_names)
{
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK_INT(s.n_agents, 3);
    CHECK_STR(s.agents[0].name, "bare");
    CHECK_STR(s.agents[1].name, "Cook");
    CHECK_STR(s.agents[2].name, "mail");
    CHECK_INT(s.agents[1].line, 3);
    eval_set_fini(&s);
}

TEST(an_agent_is_found_by_its_profile_its_skills_and_their_examples)
{
    static const char *const cook[] = {"Cook: Cooks", "soups",
                                       "bake Bread: with yeast",
                                       "my dough is flat", "I'm hungry"};
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK_INT(s.agents[1].n_texts, 5);
    for (size_t i = 0; i < 5; i++)
        CHECK_STR(s.texts[s.agents[1].first_text + i], cook[i]);
    CHECK_INT(s.agents[0].n_texts, 1);
    CHECK_STR(s.texts[s.agents[0].first_text], "bare");
    eval_set_fini(&s);
}

TEST(an_agent_is_known_as_its_card_would_have_it)
{
    const struct skill *skills;
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK_STR(s.agents[1].description, "Cooks");
    CHECK_INT(s.agents[1].n_skills, 2);
    skills = s.agents[1].skills;
    CHECK_STR(skills[0].name, "soups");
    CHECK_INT(skills[0].examples.n, 0);
    CHECK_STR(skills[1].name, "bakeBread");
    CHECK_STR(skills[1].description, "with yeast");
    CHECK_INT(skills[1].examples.n, 1);
    CHECK_STR(skills[1].examples.list[0], "my dough is flat");
    CHECK_INT(s.agents[0].n_skills, 0);
    CHECK_STR(s.agents[0].description, "");
    eval_set_fini(&s);
}

TEST(queries_name_agents_whatever_their_case)
{
    static const char text[] =
        "{\"text\":\"a\\n\\u00e9\",\"agents\":[\"cook\",\"MAIL\",\"Cook\"],"
        "\"level\":\"hard\"}\n"
        "{\"text\":\"\",\"agents\":[],\"level\":\"easy\"}\n"
        "{\"agents\":[\"bare\"],\"text\":\"b\",\"level\":\"hard\"}\n";
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK(read_queries(&s, text, SIZE_MAX, &why) == OK);
    CHECK_INT(s.n_queries, 3);
    CHECK_STR(s.queries[0].text, "a\n\u00e9");
    CHECK_INT(s.queries[0].n_agents, 2);
    CHECK_INT(s.queries[0].agents[0], 1);
    CHECK_INT(s.queries[0].agents[1], 2);
    CHECK_INT(s.queries[1].n_agents, 0);
    CHECK_INT(s.n_levels, 2);
    CHECK_STR(s.levels[0], "hard");
    CHECK_INT(s.queries[2].level, 0);
    /* Another file adds queries, up to its own limit. */
    CHECK(read_queries(&s, text, 1, &why) == OK);
    CHECK_INT(s.n_queries, 4);
    eval_set_fini(&s);
}

TEST(a_byte_order_mark_does_no_harm)
{
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK(read_agents(&s, "\xef\xbb\xbf{\"name\":\"a\"}", 15, &why) == OK);
    eval_set_fini(&s);
}

TEST(bad_agents_are_named_with_their_place)
{
    static const char nul[] = "{\"name\":\"a\"}\n{\"name\":\"b\0\"}";

    check_bad_agents("", ERR_BAD_REQUEST, "is empty");
    check_bad_agents("\n \t\r\n", ERR_BAD_REQUEST, "is empty");
    check_bad_agents("{\"name\":\"a\"}\n{\"name\":\"b\"", ERR_SYNTAX,
                     ".jsonl:2:12: ");
    check_bad_agents("[1]", ERR_BAD_REQUEST, ".jsonl:1:1: each line");
    check_bad_agents("{\"description\":\"x\"}", ERR_BAD_REQUEST,
                     ":1:1: has no \"name\"");
    check_bad_agents("{\"name\":3}", ERR_BAD_REQUEST,
                     ":1:9: \"name\" must be text");
    check_bad_agents("{\"name\":\"a b\"}", ERR_BAD_REQUEST,
                     ":1:9: a name must have up to 128");
    check_bad_agents("{\"name\":\"a\",\"description\":[]}", ERR_BAD_REQUEST,
                     ":1:27: \"description\" must be text");
    check_bad_agents("{\"name\":\"a\",\"skills\":\"x\"}", ERR_BAD_REQUEST,
                     ":1:22: \"skills\" must be a list");
    check_bad_agents("{\"name\":\"a\",\"skills\":[1]}", ERR_BAD_REQUEST,
                     ":1:23: a skill");
    check_bad_agents("{\"name\":\"a\",\"skills\":[{}]}", ERR_BAD_REQUEST,
                     ":1:23: has no \"name\"");
    check_bad_agents("{\"name\":\"a\",\"examples\":[{}]}", ERR_BAD_REQUEST,
                     ":1:25: an example");
    check_bad_agents("{\"name\":\"a\"}\n\n{\"name\":\"b\"}\n{\"name\":\"A\"}",
                     ERR_BAD_REQUEST,
                     ":4:1: the agent \"A\" is defined already, in line 1");
    check_bad_agents("{\"name\":\"a\",\"description\":\"\xff\"}", ERR_SYNTAX,
                     ":1:28: ");
    check_bad_agents_of(nul, sizeof(nul) - 1, ERR_SYNTAX, ":2:11: ");
}

TEST(bad_queries_are_named_with_their_place)
{
    check_bad_queries("", ERR_BAD_REQUEST, "is empty");
    check_bad_queries("{\"agents\":[]}", ERR_BAD_REQUEST, "has no \"text\"");
    check_bad_queries("{\"text\":\"x\"}", ERR_BAD_REQUEST,
                      "has no \"agents\"; []");
    check_bad_queries("{\"text\":\"x\",\"agents\":\"mail\"}", ERR_BAD_REQUEST,
                      ":1:22: \"agents\" must be a list");
    check_bad_queries("{\"text\":\"x\",\"agents\":[7]}", ERR_BAD_REQUEST,
                      ":1:23: the name of an agent must be text");
    check_bad_queries("{\"text\":\"x\",\"agents\":[\"mail\",\"mial\"]}",
                      ERR_BAD_REQUEST,
                      ":1:30: there is no agent \"mial\"; did you mean "
                      "\"mail\"?");
    check_bad_queries("{\"text\":\"x\",\"agents\":[\"quite-another\"]}",
                      ERR_BAD_REQUEST,
                      ":1:23: there is no agent \"quite-another\"");
    check_bad_queries("{\"text\":\"x\",\"agents\":[],\"level\":1}",
                      ERR_BAD_REQUEST, ":1:33: \"level\" must be text");
}

TEST(a_name_of_any_length_is_only_unknown)
{
    char line[1024];

    snprintf(line, sizeof(line), "{\"text\":\"x\",\"agents\":[\"%0*d\"]}", 900,
             0);
    check_bad_queries(line, ERR_BAD_REQUEST, "there is no agent \"0000");
}

TEST(levels_have_a_limit)
{
    char text[4096] = "";
    size_t n = 0;

    for (int i = 0; i <= EVAL_LEVELS_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n,
                              "{\"text\":\"x\",\"agents\":[],\"level\":\"%d\"}"
                              "\n",
                              i);
    check_bad_queries(text, ERR_LIMIT, ":17:33: there may be up to 16 levels");
    snprintf(text, sizeof(text),
             "{\"text\":\"x\",\"agents\":[],\"level\":\"%0*d\"}",
             EVAL_LEVEL_MAX + 1, 0);
    check_bad_queries(text, ERR_LIMIT, ":1:33: ");
}

/* A line at the limit is read; one byte more is rejected. */
TEST(a_line_has_a_limit)
{
    static const char head[] = "{\"name\":\"a\",\"description\":\"";
    char *line = malloc(EVAL_LINE_MAX + 2);
    struct eval_set s;
    struct why why;

    CHECK(line);
    for (size_t more = 0; more < 2; more++) {
        size_t n = EVAL_LINE_MAX + more;

        memset(line, 'x', n);
        memcpy(line, head, sizeof(head) - 1);
        memcpy(line + n - 2, "\"}", 2);
        if (more) {
            check_bad_agents_of(line, n, ERR_LIMIT, ":1: longer than 4 MiB");
            continue;
        }
        eval_set_init(&s);
        CHECK(read_agents(&s, line, n, &why) == OK);
        eval_set_fini(&s);
    }
    free(line);
}

/* Repeats a line n times, with its number in place of %06d. */
static void put_lines(const struct files *f, const char *line, size_t n)
{
    FILE *out = fopen(f->path, "w");
    const char *number = strstr(line, "%06d");
    int head = (int)(number ? number - line : (long)strlen(line));

    CHECK(out);
    for (size_t i = 0; i < n; i++)
        if (number)
            fprintf(out, "%.*s%06zu%s\n", head, line, i, number + 4);
        else
            fprintf(out, "%s\n", line);
    CHECK(fclose(out) == 0);
}

TEST(agents_have_a_limit)
{
    struct eval_set s;
    struct why why;
    struct files f;

    in_folder(&f);
    for (size_t more = 0; more < 2; more++) {
        put_lines(&f, "{\"name\":\"a%06d\"}", EVAL_AGENTS_MAX + more);
        eval_set_init(&s);
        CHECK_INT(eval_read_agents(&s, f.path, &why), more ? ERR_LIMIT : OK);
        eval_set_fini(&s);
    }
    CHECK(strstr(why.text, ":100001: more than 100000 agents"));
    gone(&f);
}

TEST(queries_and_examples_have_a_limit)
{
    struct eval_set s;
    struct why why;
    struct files f;

    in_folder(&f);
    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    put_lines(&f, "{\"text\":\"\",\"agents\":[]}", EVAL_QUERIES_MAX + 1);
    CHECK_INT(eval_read_queries(&s, f.path, EVAL_QUERIES_MAX, &why), OK);
    CHECK_INT(eval_read_queries(&s, f.path, 1, &why), ERR_LIMIT);
    CHECK(strstr(why.text, ":1: more than 200000 queries"));
    CHECK_INT(eval_read_examples(&s, f.path, &why), ERR_LIMIT);
    CHECK(strstr(why.text, ":200001: more than 200000 examples"));
    eval_set_fini(&s);
    gone(&f);
}

TEST(the_texts_of_agents_have_a_limit)
{
    struct buf line;
    struct eval_set s;
    struct why why;

    buf_init(&line, EVAL_LINE_MAX);
    for (int more = 0; more < 2; more++) {
        buf_clear(&line);
        buf_addf(&line, "{\"name\":\"a\",\"skills\":[\"\"");
        for (int i = 2; i < EVAL_TEXTS_MAX + more; i++)
            buf_add_str(&line, STR(",\"\""));
        buf_addf(&line, "]}");
        CHECK(!line.over);
        eval_set_init(&s);
        CHECK_INT(read_agents(&s, line.p, line.n, &why), more ? ERR_LIMIT : OK);
        eval_set_fini(&s);
    }
    CHECK(strstr(why.text, "more than 1000000 texts"));
    buf_fini(&line);
}

/* A sparse file has zeros, which are not JSON; the limit is checked first. */
TEST(a_file_has_a_limit)
{
    struct eval_set s;
    struct why why;
    struct files f;

    in_folder(&f);
    put(&f, "", 0);
    eval_set_init(&s);
    CHECK(truncate(f.path, EVAL_FILE_MAX) == 0);
    CHECK_INT(eval_read_agents(&s, f.path, &why), ERR_LIMIT);
    CHECK(strstr(why.text, ":1: longer than 4 MiB"));
    CHECK(truncate(f.path, (off_t)EVAL_FILE_MAX + 1) == 0);
    CHECK_INT(eval_read_agents(&s, f.path, &why), ERR_LIMIT);
    CHECK(strstr(why.text, "is larger than 128 MiB"));
    eval_set_fini(&s);
    gone(&f);
}

TEST(what_cannot_be_read_is_said)
{
    struct eval_set s;
    struct why why;

    eval_set_init(&s);
    CHECK_INT(eval_read_agents(&s, "/nowhere/at/all", &why), ERR_NOT_FOUND);
    CHECK(strstr(why.text, "/nowhere/at/all: No such file"));
    CHECK_INT(eval_read_agents(&s, "/", &why), ERR_IO);
    eval_set_fini(&s);
}

static void check_shots(const struct eval_set *s, const uint64_t *seed,
                        uint32_t *out)
{
    uint32_t n[3];

    eval_shots(s, 2, seed, out, n);
    CHECK_INT(n[0], 1); /* bare has one */
    CHECK_INT(n[1], 2); /* Cook has more */
    CHECK_INT(n[2], 0);
    CHECK(out[2] != out[3]);
    for (size_t i = 2; i < 4; i++)
        CHECK(s->examples[out[i]].agents[0] == 1 ||
              s->examples[out[i]].n_agents > 1);
}

TEST(examples_are_the_first_or_any)
{
    static const char text[] =
        "{\"text\":\"0\",\"agents\":[\"Cook\"]}\n"
        "{\"text\":\"1\",\"agents\":[\"bare\",\"cook\"]}\n"
        "{\"text\":\"2\",\"agents\":[]}\n"
        "{\"text\":\"3\",\"agents\":[\"Cook\"]}\n"
        "{\"text\":\"4\",\"agents\":[\"Cook\"]}\n";
    struct eval_set s;
    struct why why;
    struct files f;
    uint32_t out[6], again[6];
    bool was_other = false;

    in_folder(&f);
    put(&f, text, sizeof(text) - 1);
    eval_set_init(&s);
    CHECK(read_agents(&s, agents, sizeof(agents) - 1, &why) == OK);
    CHECK(eval_read_examples(&s, f.path, &why) == OK);
    CHECK_INT(s.n_examples, 5);
    check_shots(&s, NULL, out);
    CHECK_INT(out[2], 0);
    CHECK_INT(out[3], 1);
    for (uint64_t seed = 0; seed < 20; seed++) {
        check_shots(&s, &seed, out);
        check_shots(&s, &seed, again);
        CHECK(out[2] == again[2] && out[3] == again[3]);
        was_other = was_other || out[2] > 1 || out[3] > 1;
    }
    CHECK(was_other);
    eval_set_fini(&s);
    gone(&f);
}

TEST(reading_survives_every_fault)
{
    struct files f;
    long nth = 0;

    in_folder(&f);
    put(&f, agents, sizeof(agents) - 1);
    do {
        struct eval_set s;
        struct why why = {""};
        enum err e;

        eval_set_init(&s);
        fault_arm(++nth);
        e = eval_read_agents(&s, f.path, &why);
        CHECK(fault_fired() ? e != OK && why.text[0] : e == OK);
        eval_set_fini(&s);
    } while (fault_fired());
    CHECK(nth > 5);
    gone(&f);
}
