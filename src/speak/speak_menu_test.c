/* Menus are within the limits of the platforms. */
#include "speak/speak.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "test/t.h"

static struct agent agents[SPEAK_MENU_MAX + 1];
static struct speak_command list[SPEAK_MENU_MAX + 1];
static char names[SPEAK_MENU_MAX + 1][40];
static char text[AGENT_DESCRIPTION_MAX + 1];

static struct buf out;
static struct arena arena;

/* n agents with names of that many bytes. */
static void stage(size_t n, size_t name_bytes, struct str description)
{
    memset(agents, 0, sizeof(agents));
    memset(list, 0, sizeof(list));
    for (size_t i = 0; i < n; i++) {
        memset(names[i], 'x', name_bytes);
        snprintf(names[i] + name_bytes - 3, 4, "%03zu", i);
        agents[i].name = str_of(names[i]);
        agents[i].description = description;
        list[i] =
            (struct speak_command){.agent = &agents[i], .menu = agents[i].name};
    }
    buf_fini(&out);
    buf_init(&out, 1 << 20);
    arena_fini(&arena);
    arena_init(&arena, 1 << 22);
}

static struct json *read_back(void)
{
    struct json *root = json_parse(&arena, buf_str(&out), 0, NULL);

    CHECK(root);
    return root;
}

static struct json *telegram(size_t n)
{
    struct json_out o = json_out(&out);

    speak_telegram_menu(&o, list, n);
    return json_get(read_back(), STR("commands"));
}

static struct json *discord(size_t n)
{
    struct json_out o = json_out(&out);

    speak_discord_menu(&o, list, n);
    return read_back();
}

static size_t units(struct str s)
{
    size_t n = 0;

    for (size_t i = 0, k; i < s.n; i += k) {
        k = utf8_one(s.p + i, s.p + s.n);
        CHECK(k);
        n += k == 4 ? 2 : 1;
    }
    return n;
}

static struct str described(const struct json *command)
{
    return json_str_or(json_get(command, STR("description")), STR(""));
}

TEST(a_telegram_menu_is_the_body_of_set_my_commands)
{
    stage(2, 4, STR("Moves data\nfrom here\x1b to there "));
    (void)telegram(2);
    CHECK_STR(buf_str(&out),
              "{\"commands\":[{\"command\":\"x000\",\"description\":\"Moves "
              "data from here to there\"},{\"command\":\"x001\","
              "\"description\":\"Moves data from here to there\"}]}");
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(a_discord_menu_takes_the_text_as_an_option)
{
    stage(1, 4, STR("Moves data"));
    (void)discord(1);
    CHECK_STR(buf_str(&out),
              "[{\"name\":\"x000\",\"type\":1,\"description\":\"Moves data\","
              "\"options\":[{\"type\":3,\"name\":\"text\",\"description\":"
              "\"What it is to do\",\"required\":true}]}]");
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(who_says_nothing_of_itself_is_described_all_the_same)
{
    stage(3, 4, STR(" \n\t"));
    agents[1].title = STR("The Second");
    agents[2].description = STR("\xe2\x80\xae");
    (void)telegram(3);
    CHECK_STR(buf_str(&out),
              "{\"commands\":[{\"command\":\"x000\",\"description\":\"Ask "
              "x000\"},{\"command\":\"x001\",\"description\":\"The Second\"},"
              "{\"command\":\"x002\",\"description\":\"Ask x002\"}]}");
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(a_description_is_cut_behind_a_word)
{
    stage(1, 4, (struct str){text, 0});
    memset(text, 'w', sizeof(text));
    memcpy(text, "One two three ", 14);
    memcpy(text + 80, " four", 5);
    agents[0].description.n = 150;
    CHECK_STR(str_sub(described(json_at(discord(1), 0)), 75, 84),
              "wwwww\xe2\x80\xa6");
    buf_clear(&out);
    text[80] = 'w'; /* in the middle of a text that is too long */
    agents[0].description.n = 100;
    CHECK_INT(described(json_at(discord(1), 0)).n, 100);
    buf_clear(&out);
    agents[0].description.n = 101;
    CHECK_INT(described(json_at(discord(1), 0)).n, 99 + 3);
    buf_fini(&out);
    arena_fini(&arena);
}

/* Characters of one to four bytes: one unit each, the last kind two. */
static struct str filled(const char *c, size_t bytes)
{
    size_t n = strlen(c);

    for (size_t i = 0; i + n <= bytes; i += n)
        memcpy(text + i, c, n);
    return (struct str){text, bytes / n * n};
}

TEST(descriptions_fit_whatever_they_are_made_of)
{
    static const char *const kinds[] = {"w", "\xc3\xa4", "\xe5\xb8\xae",
                                        "\xf0\x9f\x98\x80", "w "};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        stage(2, 4, filled(kinds[i], AGENT_DESCRIPTION_MAX));
        CHECK(units(described(json_at(telegram(2), 1))) <= 256);
        buf_clear(&out);
        CHECK(units(described(json_at(discord(2), 1))) <= 100);
        buf_clear(&out);
        CHECK(units(described(json_at(discord(2), 1))) >= 99);
        buf_fini(&out);
        arena_fini(&arena);
    }
}

/* Both limits at once: a hundred agents with the longest names. */
TEST(a_full_telegram_menu_stays_below_what_it_takes_in_all)
{
    size_t most = SPEAK_MENU_MAX, all = 0;
    struct json *commands;

    stage(most + 1, 32, filled("w ", AGENT_DESCRIPTION_MAX));
    agents[0].description = STR("short");
    commands = telegram(most + 1);
    CHECK_INT(commands->kids.n, most);
    JSON_EACH(c, commands)
    {
        CHECK(described(c).n >= 5);
        all += described(c).n +
               json_str_or(json_get(c, STR("command")), STR("")).n;
    }
    CHECK(all <= 5600 && all > 5400);
    CHECK_STR(described(json_at(commands, 0)), "short");
    buf_clear(&out);
    CHECK_INT(discord(most + 1)->kids.n, most);
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(who_has_no_place_is_left_out_and_told_of)
{
    struct json_out o;

    stage(2, 4, STR("Moves data"));
    agents[0].name = STR("X-000");
    list[0].menu = STR("");
    list[0].why = STR("because");
    CHECK_INT(telegram(2)->kids.n, 1);
    buf_clear(&out);
    o = json_out(&out);
    speak_command(&o, &list[0]);
    speak_command_line(&out, &list[0]);
    CHECK_STR(buf_str(&out),
              "{\"command\":\"/x-000\",\"agent\":\"X-000\",\"description\":"
              "\"Moves data\",\"menu\":null,\"left_out\":\"because\"}/x-000 - "
              "Moves data\n");
    buf_clear(&out);
    o = json_out(&out);
    speak_command(&o, &list[1]);
    CHECK_STR(buf_str(&out),
              "{\"command\":\"/x001\",\"agent\":\"x001\",\"description\":"
              "\"Moves data\",\"menu\":\"x001\"}");
    buf_fini(&out);
    arena_fini(&arena);
}

TEST(nobody_makes_an_empty_menu)
{
    stage(0, 4, STR(""));
    (void)telegram(0);
    CHECK_STR(buf_str(&out), "{\"commands\":[]}");
    buf_clear(&out);
    (void)discord(0);
    CHECK_STR(buf_str(&out), "[]");
    buf_fini(&out);
    arena_fini(&arena);
}
