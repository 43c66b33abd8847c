/* What is sent to each platform, and what its answers mean; that the real calls
 * go well, test/flow/commands_test.py shows against servers that judge as the
 * platforms do. */
#include "cli/platform.h"

#include "test/t.h"

static struct arena arena;

static struct json *parse(const char *text)
{
    struct json *v;

    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    v = json_parse(&arena, str_of(text), 0, NULL);
    CHECK(v);
    return v;
}

static const struct platform *on(const char *name)
{
    const struct platform *p = platform_find(str_of(name));

    CHECK(p);
    return p;
}

TEST(platforms_go_by_their_names)
{
    CHECK_STR(str_of(on("Telegram")->title), "Telegram");
    CHECK_STR(str_of(on("discord")->title), "Discord");
    CHECK(!platform_find(STR("icq")) && !platform_find(STR("")));
}

TEST(a_token_is_known_by_its_looks)
{
    static const struct {
        const char *platform, *token;
        bool is_one;
    } rows[] = {
        {"telegram", "123456:ABC-DEF_ghi", true},
        {"telegram", "123456", false},
        {"telegram", "123456:", false},
        {"telegram", ":ABC", false},
        {"telegram", "", false},
        {"telegram", "123:AB/../x", false},
        {"telegram", "123:AB?x", false},
        {"telegram", "123:AB\r\nx", false},
        {"telegram", "bot123:AB", false},
        {"discord", "MTk4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", true},
        {"discord", "Bot MTk4.Cl2FMQ.Zn", false},
        {"discord", "nodots", false},
        {"discord", "", false},
        {"discord", "a.b\r\nX: y", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CHECK(on(rows[i].platform)->is_token(str_of(rows[i].token)) ==
              rows[i].is_one);
}

TEST(an_order_that_makes_no_sense_is_told_so)
{
    static const struct {
        const char *platform;
        struct platform_order order;
        bool is_good;
    } rows[] = {
        {"telegram", {.api = STR("")}, true},
        {"telegram", {.chat = STR("-1001234")}, true},
        {"telegram", {.chat = STR("77")}, true},
        {"telegram", {.chat = STR("@some_chat")}, true},
        {"telegram", {.chat = STR("@")}, false},
        {"telegram", {.chat = STR("-")}, false},
        {"telegram", {.chat = STR("some chat")}, false},
        {"telegram", {.chat = STR("7"), .scope = STR("default")}, false},
        {"telegram", {.language = STR("de")}, true},
        {"telegram", {.language = STR("deu")}, false},
        {"telegram", {.language = STR("1e")}, false},
        {"discord", {.app = STR("123"), .guild = STR("456")}, true},
        {"discord", {.app = STR("../x")}, false},
        {"discord", {.guild = STR("-1")}, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct why why = {""};
        enum err e = on(rows[i].platform)->check(&rows[i].order, &why);

        CHECK(e == (rows[i].is_good ? OK : ERR_USAGE));
        CHECK(!why.text[0] == rows[i].is_good);
    }
}

TEST(telegram_is_called_with_the_token_in_the_path)
{
    struct platform_order o = {.api = STR("https://api.telegram.org"),
                               .token = STR("1:a")};
    struct platform_call call;

    on("telegram")->call(&o, &call);
    CHECK_STR(call.method, "POST");
    CHECK_STR(str_of(call.url),
              "https://api.telegram.org/bot1:a/setMyCommands");
    CHECK_INT(call.n_headers, 1);
    o.is_clear = true;
    on("telegram")->call(&o, &call);
    CHECK_STR(str_of(call.url),
              "https://api.telegram.org/bot1:a/deleteMyCommands");
}

TEST(telegrams_body_says_for_whom)
{
    static const char menu[] =
        "{\"commands\":[{\"command\":\"a\",\"description\":\"b\"}]}";
    static const struct {
        struct platform_order order;
        const char *body;
    } rows[] = {
        {{.api = STR("")},
         "{\"commands\":[{\"command\":\"a\",\"description\":\"b\"}]}"},
        {{.scope = STR("all_group_chats"), .language = STR("de")},
         "{\"commands\":[{\"command\":\"a\",\"description\":\"b\"}],\"scope\":"
         "{\"type\":\"all_group_chats\"},\"language_code\":\"de\"}"},
        {{.chat = STR("-100")},
         "{\"commands\":[{\"command\":\"a\",\"description\":\"b\"}],\"scope\":"
         "{\"type\":\"chat\",\"chat_id\":-100}}"},
        {{.chat = STR("@x"), .is_clear = true},
         "{\"scope\":{\"type\":\"chat\",\"chat_id\":\"@x\"}}"},
        {{.is_clear = true}, "{}"},
    };
    struct buf out;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        buf_init(&out, 4096);
        on("telegram")
            ->body(&rows[i].order, rows[i].order.is_clear ? NULL : parse(menu),
                   &out);
        CHECK_STR(buf_str(&out), rows[i].body);
        buf_fini(&out);
    }
    arena_fini(&arena);
}

TEST(discord_is_called_for_all_or_for_a_guild)
{
    struct platform_order o = {.api = STR("https://discord.com/api/v10"),
                               .token = STR("a.b.c"),
                               .app = STR("77")};
    struct platform_call call;

    on("discord")->call(&o, &call);
    CHECK_STR(call.method, "PUT");
    CHECK_STR(str_of(call.url),
              "https://discord.com/api/v10/applications/77/commands");
    CHECK_INT(call.n_headers, 3);
    CHECK_STR(call.headers[1].value, "Bot a.b.c");
    CHECK(str_starts(call.headers[2].value, STR("DiscordBot (")));
    o.guild = STR("88");
    on("discord")->call(&o, &call);
    CHECK_STR(str_of(call.url),
              "https://discord.com/api/v10/applications/77/guilds/88/commands");
    on("discord")->whoami(&o, &call);
    CHECK_STR(call.method, "GET");
    CHECK_STR(str_of(call.url), "https://discord.com/api/v10/applications/@me");
    CHECK_INT(call.n_headers, 2);
}

/* The longest of everything still fits. */
TEST(an_address_is_never_cut)
{
    static char api[PLATFORM_URL_MAX / 2 + 1], token[PLATFORM_TOKEN_MAX + 1],
        id[300];
    struct platform_order o = {.app = STR("")};
    struct platform_call call;

    memset(api, 'a', sizeof(api) - 1);
    memset(token, 't', sizeof(token) - 1);
    memset(id, '1', sizeof(id) - 1);
    o.api = str_of(api);
    o.token = str_of(token);
    o.app = o.guild = str_of(id);
    on("telegram")->call(&o, &call);
    CHECK_STR(str_sub(str_of(call.url), strlen(call.url) - 14, 9999),
              "/setMyCommands");
    on("discord")->call(&o, &call);
    CHECK_STR(str_sub(str_of(call.url), strlen(call.url) - 9, 9999),
              "/commands");
    CHECK_INT(strlen(call.authorization), 4 + PLATFORM_TOKEN_MAX);
}

TEST(answers_are_read_as_each_gives_them)
{
    const struct platform *t = on("telegram"), *d = on("discord");

    CHECK_INT(t->wait_ms(parse("{\"ok\":false,\"parameters\":{\"retry_after\":"
                               "3}}")),
              3001);
    CHECK_INT(t->wait_ms(parse("{\"ok\":false}")), 0);
    CHECK_INT(d->wait_ms(parse("{\"retry_after\":0.5,\"global\":false}")), 501);
    CHECK_INT(d->wait_ms(parse("{\"retry_after\":-1}")), 0);
    CHECK_INT(d->wait_ms(parse("{\"retry_after\":1e300}")), 0);
    CHECK_INT(d->count(parse("[{},{}]")), 2);
    CHECK_INT(d->count(parse("{}")), -1);
    CHECK_STR(t->complaint(parse("{\"description\":\"Bad Request\"}")),
              "Bad Request");
    CHECK_STR(d->complaint(parse("{\"message\":\"Unknown Guild\"}")),
              "Unknown Guild");
    CHECK_STR(d->complaint(parse(
                  "{\"code\":50035,\"message\":\"Invalid Form Body\","
                  "\"errors\":{\"0\":{\"name\":{\"_errors\":[{\"code\":\"X\","
                  "\"message\":\"Too long\"}]}}}}")),
              "Too long");
    CHECK_STR(t->complaint(parse("[1]")), "");
    CHECK_STR(d->complaint(parse("{\"errors\":[{\"_errors\":{}}]}")), "");
    arena_fini(&arena);
}

TEST(what_a_platform_complains_of_is_judged_and_tamed)
{
    static const struct {
        const char *platform;
        int status;
        const char *answer;
        enum err e;
        const char *words;
    } rows[] = {
        {"telegram", 401, "{\"description\":\"Unauthorized\"}", ERR_NOT_ALLOWED,
         "Telegram does not know the bot of this token (status 401: "
         "Unauthorized)"},
        {"telegram", 404, "{\"description\":\"Not Found\"}", ERR_NOT_ALLOWED,
         "Telegram does not know the bot of this token (status 404: Not "
         "Found)"},
        {"telegram", 400,
         "{\"description\":\"Bad Request: BOT_\\u001bCOMMAND\\n\"}", ERR_IO,
         "Telegram rejected the commands (status 400: Bad Request: BOT_?COMMAND"
         "?)"},
        {"telegram", 400, "{\"description\":\"no 1:secret here\"}", ERR_IO,
         "Telegram rejected the commands (status 400)"},
        {"telegram", 502, "[]", ERR_UNREACHABLE,
         "Telegram has an internal error (status 502); try again in a moment"},
        {"discord", 403, "{\"message\":\"Missing Access\"}", ERR_NOT_ALLOWED,
         "Discord does not let the bot set commands there (status 403: Missing "
         "Access); check the numbers, and that the bot was added with the "
         "scope applications.commands"},
        {"discord", 429, "{\"message\":\"You are being rate limited.\"}",
         ERR_RATE_LIMITED,
         "Discord limits the rate of requests: You are being rate "
         "limited.; try again later"},
    };
    struct platform_order o = {.token = STR("1:secret")};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct why why;

        CHECK(platform_judge(on(rows[i].platform), &o, rows[i].status,
                             parse(rows[i].answer), &why) == rows[i].e);
        CHECK_STR(str_of(why.text), rows[i].words);
    }
    arena_fini(&arena);
}
