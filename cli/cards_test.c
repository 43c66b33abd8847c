#include "cli/cards.h"

#include <sys/stat.h>

#include "base/fault.h"
#include "test/t.h"

static struct cards cards;

static void read_text(const char *file, const char *text)
{
    cards_init(&cards);
    CHECK(cards_add_text(&cards, str_of(file), str_of(text)) == OK);
}

static void check_bad(size_t i, unsigned line, unsigned col, const char *words)
{
    const struct card_in *c = cards.list[i];

    CHECK(i < cards.n && !c->json && c->err);
    CHECK_INT(c->line, line);
    CHECK_INT(c->col, col);
    if (!strstr(c->why.p, words))
        T_FAIL("\"%s\" is not in \"%s\"", words, c->why.p);
}

static void check_card(size_t i, unsigned line, unsigned col, const char *name)
{
    const struct card_in *c = cards.list[i];

    CHECK(i < cards.n && c->json && !c->err);
    CHECK_INT(c->line, line);
    CHECK_INT(c->col, col);
    CHECK_STR(c->name, name);
}

TEST(a_file_is_one_card_with_comments)
{
    read_text("a.jsonc", "\xef\xbb\xbf// ours\n  {\n \"name\": \"a\", /* b */\n"
                         " \"skills\": [],\n}\n");
    CHECK_INT(cards.n, 1);
    check_card(0, 2, 3, "a");
    CHECK_STR(cards.list[0]->file, "a.jsonc");
    cards_fini(&cards);
}

TEST(a_file_is_a_list_of_cards)
{
    read_text("a.json", "[{\"name\":\"a\"}, {\"name\":\"b\"},\n"
                        "  {\"name\":\"c\"}, 5, {\"name\":\"A\"}]");
    CHECK_INT(cards.n, 5);
    check_card(0, 1, 2, "a");
    check_card(1, 1, 16, "b");
    check_card(2, 2, 3, "c");
    check_bad(3, 2, 17, "an object");
    check_bad(4, 2, 20, "the name \"A\" is used twice, first at a.json:1");
    cards_fini(&cards);
}

TEST(a_file_is_a_card_on_each_line)
{
    read_text("a.json", "// two\n\n{\"name\":\"a\"}\r\n\r\n \t\n"
                        "  {\"name\":\"b\", // the other\n"
                        "{\"name\":\"c\"}");
    CHECK_INT(cards.n, 3);
    check_card(0, 3, 1, "a");
    check_bad(1, 6, 28, "");
    check_card(2, 7, 1, "c");
    cards_fini(&cards);
    /* Its name says so already. */
    read_text("a.jsonl", "{\"name\":\"a\"\n{\"name\":\"b\"}\n");
    check_bad(0, 1, 12, "");
    check_card(1, 2, 1, "b");
    cards_fini(&cards);
}

TEST(what_is_no_json_has_a_place)
{
    static const struct {
        const char *text, *words;
        unsigned line, col;
    } cases[] = {
        {"", "no card", 0, 0},
        {" \n\t\r\n// nothing\n", "no card", 0, 0},
        {"[]", "no card", 0, 0},
        {"{\n \"name\": \"a\"\n \"url\": 1}", "", 3, 2},
        {"{\"name\":\"\xff\"}", "UTF-8", 1, 10},
        {"[{\"name\":\"a\"},", "", 1, 15},
        {"\"a\"", "an object", 1, 1},
        {"null\nnull", "", 2, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        read_text("a.json", cases[i].text);
        CHECK_INT(cards.n, 1);
        check_bad(0, cases[i].line, cases[i].col, cases[i].words);
        cards_fini(&cards);
    }
}

static void check_place(size_t i, const char *pointer, unsigned line,
                        unsigned col)
{
    unsigned l, c;

    cards_place(cards.list[i], str_of(pointer), &l, &c);
    if (l != line || c != col)
        T_FAIL("%s of %zu is at %u:%u", pointer, i, l, c);
}

TEST(a_pointer_leads_to_its_place)
{
    read_text("a.json", "[ {\"name\": \"a\"},\n"
                        "  {\"name\": \"b\",\n"
                        "   \"skills\": [{\"id\": 1}, {\"id\":\n"
                        "      2}], \"a/b~c\": 7 } ]");
    check_place(0, "", 1, 3);
    check_place(0, "/name", 1, 12);
    check_place(0, "/skills/0/id", 1, 3);
    check_place(1, "", 2, 3);
    check_place(1, "/name", 2, 12);
    check_place(1, "/skills/0/id", 3, 22);
    check_place(1, "/skills/1/id", 4, 7);
    check_place(1, "/skills/1/name", 3, 26);
    check_place(1, "/skills/2", 3, 14);
    check_place(1, "/skills/x", 3, 14);
    check_place(1, "/a~1b~0c", 4, 21);
    check_place(1, "/a~1b~0cd", 2, 3);
    check_place(1, "nonsense", 2, 3);
    cards_fini(&cards);
    read_text("a.jsonl", "\n{\"name\":\"a\"}\n  {\"name\": \"b\"}\n");
    check_place(1, "/name", 3, 12);
    check_place(1, "/url", 3, 3);
    cards_fini(&cards);
}

/* Files. */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    FILE *out = fopen(in_folder(name), "w");

    CHECK(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/cards-test-XXXXXX");
    CHECK(mkdtemp(folder));
}

static void fill_folder(void)
{
    make_folder();
    put("b.json", "{\"name\":\"b\"}");
    put("a.jsonc", "/* */ {\"name\":\"a\"}");
    put("c.txt", "{\"name\":\"c\"}");
    put(".d.json", "{\"name\":\"d\"}");
    CHECK(mkdir(in_folder("e.json"), 0700) == 0);
    CHECK(symlink("nowhere", in_folder("f.json")) == 0);
}

static void empty_folder(void)
{
    static const char *const names[] = {"a.jsonc", "b.json", "c.txt", ".d.json",
                                        "f.json"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(in_folder(names[i]));
    rmdir(in_folder("e.json"));
    CHECK(rmdir(folder) == 0);
}

TEST(a_folder_is_its_json_files_in_order)
{
    fill_folder();
    cards_init(&cards);
    CHECK(cards_add_path(&cards, folder) == OK);
    CHECK_INT(cards.n, 3);
    check_card(0, 1, 7, "a");
    check_card(1, 1, 1, "b");
    check_bad(2, 0, 0, "No such file");
    CHECK_INT(cards.list[2]->err, ERR_NOT_FOUND);
    CHECK_STR(cards.list[1]->file, in_folder("b.json"));
    cards_fini(&cards);
    empty_folder();
}

TEST(an_empty_folder_and_a_missing_file_are_told)
{
    make_folder();
    cards_init(&cards);
    CHECK(cards_add_path(&cards, folder) == OK);
    CHECK(cards_add_path(&cards, in_folder("x.json")) == OK);
    CHECK_INT(cards.n, 2);
    check_bad(0, 0, 0, "no *.json or *.jsonc");
    check_bad(1, 0, 0, "No such file");
    cards_fini(&cards);
    CHECK(rmdir(folder) == 0);
}

TEST(a_file_beyond_the_limit_is_refused_alone)
{
    make_folder();
    put("b.json", "");
    CHECK(truncate(in_folder("b.json"), CARDS_FILE_BYTES + 1) == 0);
    cards_init(&cards);
    CHECK(cards_add_path(&cards, folder) == OK);
    CHECK_INT(cards.n, 1);
    check_bad(0, 0, 0, "larger than 64 MiB");
    CHECK_INT(cards.list[0]->err, ERR_LIMIT);
    cards_fini(&cards);
    empty_folder();
}

TEST(there_are_so_many_cards_and_no_more)
{
    struct buf text;

    buf_init(&text, 16 * 1024 * 1024);
    for (int i = 0; i <= CARDS_MAX; i++)
        buf_addf(&text, "{\"name\":\"n%d\"}\n", i);
    cards_init(&cards);
    CHECK(cards_add_text(&cards, STR("a"), buf_str(&text)) == ERR_LIMIT);
    CHECK_INT(cards.n, CARDS_MAX);
    check_card(CARDS_MAX - 1, CARDS_MAX, 1, "n99999");
    cards_fini(&cards);
    buf_fini(&text);
}

TEST(reading_survives_every_fault)
{
    long nth = 0;

    fill_folder();
    do {
        enum err e;

        fault_arm(++nth);
        cards_init(&cards);
        e = cards_add_path(&cards, folder);
        /* Either it says so, or what could not be read does. */
        for (size_t i = 0; i < cards.n && !e; i++)
            if (cards.list[i]->err && cards.list[i]->err != ERR_NOT_FOUND)
                e = cards.list[i]->err;
        if (fault_fired() && strcmp(fault_name(), "cards.words") != 0)
            CHECK(e != OK);
        else
            CHECK(e == OK);
        cards_fini(&cards);
    } while (fault_fired());
    CHECK(nth > 10);
    empty_folder();
}
