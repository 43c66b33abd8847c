#include "choose/layers/choose.h"

#include "base/fault.h"
#include "test/lib/choose_stage.h"
#include "test/t.h"

static enum err say(const char *text)
{
    stage_message();
    stage.m->call.text = str_of(text);
    return stage_ask();
}

TEST(a_text_that_begins_with_an_agent_is_for_it)
{
    STAGE("code", "Docs", "ops");
    CHECK(say("/docs explain the API") == OK);
    CHECK_STR(stage.m->choice.agent, "Docs");
    CHECK_INT(stage.m->choice.layer, LAYER_PREFIX);
    CHECK_STR(stage.m->choice.text, "explain the API");
    CHECK_STR(stage.m->choice.reason, "the text begins with \"/docs\"");
    CHECK(!stage.m->choice.is_switch);
    /* The text itself does not change. */
    CHECK_STR(stage.m->call.text, "/docs explain the API");
    stage_leave();
}

TEST(commands_are_read_as_people_and_menus_write_them)
{
    static const struct {
        const char *text, *agent, *rest;
    } rows[] = {
        {"/code x", "code", "x"},
        {"/CODE x", "code", "x"},
        {"/Code  x y ", "code", "x y "},
        {"/code\tx", "code", "x"},
        {"/code\nx\n/ops y", "code", "x\n/ops y"},
        {"/code\r\n\r\nx", "code", "x"},
        {"/code\xc2\xa0x", "code", "x"},
        {"/code\xe3\x80\x80\xe5\xb8\xae", "code", "\xe5\xb8\xae"},
        {"/code /ops", "code", "/ops"},
        {"/code@SomeBot x", "code", "x"},
        {"/data-mover x", "data-mover", "x"},
        {"/data_mover x", "data-mover", "x"},
        {"/data.mover x", "data-mover", "x"},
        {"/Data_Mover@bot_1 x", "data-mover", "x"},
        {"/v2.1-beta x", "v2.1-beta", "x"},
        {"/v2_1_beta x", "v2.1-beta", "x"},
        {"/v2-1.beta x", "v2.1-beta", "x"},
        {"/7 x", "7", "x"},
    };

    STAGE("7", "code", "data-mover", "ops", "v2.1-beta");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(say(rows[i].text) == OK);
        CHECK_STR(stage.m->choice.agent, rows[i].agent);
        CHECK_STR(stage.m->choice.text, rows[i].rest);
    }
    stage_leave();
}

TEST(what_is_nobodys_command_is_not_a_prefix)
{
    static const char *const texts[] = {
        "",
        "/",
        "/ ",
        "//code x",
        "/ code x",
        " /code x",
        "code x",
        "/etc/hosts",
        "/code/x y",
        "/codes x",
        "/cod x",
        "/code: x",
        "/code,x",
        "/code@ x",
        "/code@a-b x",
        "/@bot x",
        "/code@a@b x",
        "/-code x",
        "/_code x",
        "/code\x01 x",
        "\\code x",
        "/c\xc3\xb6"
        "de x",
        "/code\xe2\x80\x8b x",
        "/code_x y",
        "/code\xe3\x80 x",
    };

    STAGE("code");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK(say(texts[i]) == ERR_NO_ROUTE);
        CHECK(!stage.m->choice.text.n && !stage.m->choice.agent.n);
    }
    stage_leave();
}

TEST(a_prefix_without_a_text_is_refused_with_words)
{
    static const char *const texts[] = {"/code", "/code ", "/code\n \t",
                                        "/code\xe3\x80\x80", "/CODE@bot"};

    STAGE("code");
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK(say(texts[i]) == ERR_BAD_REQUEST);
        CHECK(!stage.m->choice.agent.n && !stage.m->choice.layer);
    }
    CHECK(stage_says("\"/CODE\" stands alone; write what \"code\" is to do "
                     "behind it"));
    stage_leave();
}

TEST(the_longest_command_and_bot_there_can_be_are_read)
{
    static char name[AGENT_NAME_MAX + 1], bot[66], text[300];

    memset(name, 'a', AGENT_NAME_MAX);
    memset(bot, 'b', 64);
    STAGE(name);
    snprintf(text, sizeof(text), "/%s@%s x", name, bot);
    CHECK(say(text) == OK);
    CHECK_STR(stage.m->choice.text, "x");
    snprintf(text, sizeof(text), "/%s@%s", name, bot);
    CHECK(say(text) == ERR_BAD_REQUEST);
    bot[64] = 'b'; /* one more is none */
    snprintf(text, sizeof(text), "/%s@%s x", name, bot);
    CHECK(say(text) == ERR_NO_ROUTE);
    snprintf(text, sizeof(text), "/%sa x", name);
    CHECK(say(text) == ERR_NO_ROUTE);
    stage_leave();
}

TEST(of_two_that_go_by_a_command_the_one_so_spelt_is_meant)
{
    STAGE("a-b", "a.b", "a_b");
    CHECK(say("/a_b x") == OK);
    CHECK_STR(stage.m->choice.agent, "a_b");
    CHECK(say("/A.B x") == OK);
    CHECK_STR(stage.m->choice.agent, "a.b");
    stage_leave();
    STAGE("a-b", "a.b");
    CHECK(say("/a_b x") == OK);
    CHECK_STR(stage.m->choice.agent, "a-b"); /* whose name sorts first */
    stage_leave();
}

/* Menus cut a name; the cut command still leads to its agent. */
TEST(a_command_as_long_as_menus_take_stands_for_longer_names)
{
    char room[AGENT_NAME_MAX + 1];
    const char *const cut = "/very_long_name_of_an_agent_numbe x";
    struct str command;

    STAGE("very-long-name-of-an-agent-number-1",
          "very-long-name-of-an-agent-number-2");
    command = choose_command(stage.list[0].name, room);
    CHECK_STR(command, "very_long_name_of_an_agent_number_1");
    CHECK(str_eq(str_sub(command, 0, COMMAND_MAX),
                 str_sub(str_of(cut), 1, 1 + COMMAND_MAX)));
    CHECK(say(cut) == OK);
    CHECK_STR(stage.m->choice.agent, "very-long-name-of-an-agent-number-1");
    CHECK(say("/very_long_name_of_an_agent_number_2 x") == OK);
    CHECK_STR(stage.m->choice.agent, "very-long-name-of-an-agent-number-2");
    /* No other cut does. */
    CHECK(say("/very_long_name_of_an_agent_numb x") == ERR_NO_ROUTE);
    CHECK(say("/very_long_name_of_an_agent_number x") == ERR_NO_ROUTE);
    stage_leave();
    STAGE("very-long-name-of-an-agent-a", "very-long-name-of-an-agent-numb-x",
          "very.long.name.of.an.agent.numbe");
    CHECK(say(cut) == OK); /* of that length before longer ones */
    CHECK_STR(stage.m->choice.agent, "very.long.name.of.an.agent.numbe");
    stage_leave();
}

TEST(whom_the_sender_does_not_see_has_no_command)
{
    STAGE("a-b", "a.b", "a_b");
    stage_hide(2);
    CHECK(say("/a_b x") == OK);
    CHECK_STR(stage.m->choice.agent, "a-b");
    stage_leave();
    STAGE("secret");
    stage_hide(0);
    CHECK(say("/secret x") == ERR_NO_ROUTE);
    CHECK(say("/secret") == ERR_NO_ROUTE); /* nor is it said to be alone */
    stage_leave();
}

static enum err say_in(const char *text, const char *executor, const char *had)
{
    stage_message();
    stage.m->call.text = str_of(text);
    stage.m->call.executor = str_of(executor);
    stage.m->call.conversation_id = STR("c-1");
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_CONVERSATION);
    CHECK(!stage.m->choice.agent.n && !stage.m->choice.layer);
    stage.m->known.has_conversation = true;
    stage.m->known.stuck_to = str_of(had);
    return stage_ask();
}

TEST(naming_another_agent_in_a_conversation_is_a_switch)
{
    static const struct {
        const char *text, *executor, *had;
        bool is_switch;
    } rows[] = {
        {"/code x", "", "ops", true},   {"/code x", "", "code", false},
        {"/code x", "", "", false},     {"/code x", "", "gone", false},
        {"/CODE x", "", "Code", false}, {"x", "code", "ops", true},
        {"x", "code", "code", false},   {"x", "code", "", false},
        {"x", "code", "gone", false},   {"/ops x", "code", "ops", true},
    };

    STAGE("code", "ops");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(say_in(rows[i].text, rows[i].executor, rows[i].had) == OK);
        CHECK_STR(stage.m->choice.agent, "code");
        CHECK_INT(stage.m->choice.is_switch, rows[i].is_switch);
    }
    stage_leave();
}

TEST(where_conversations_do_not_stick_nobody_is_switched_from)
{
    STAGE("code", "ops");
    stage.settings.is_off[LAYER_STICKY] = true;
    stage.m->call.conversation_id = STR("c-1");
    stage.m->call.executor = STR("code");
    CHECK(stage_ask() == OK);
    CHECK_INT(stage.m->choice.needs, NEEDS_NOTHING);
    CHECK(!stage.m->choice.is_switch);
    CHECK_STR(stage.m->choice.agent, "code");
    stage_leave();
}

TEST(a_megabyte_behind_a_slash_is_only_looked_at_for_a_word)
{
    char *text = malloc(MSG_TEXT_MAX + 1);

    CHECK(text);
    STAGE("code");
    memset(text, 'a', MSG_TEXT_MAX);
    text[MSG_TEXT_MAX] = '\0';
    text[0] = '/';
    CHECK(say(text) == ERR_NO_ROUTE);
    memset(text, ' ', MSG_TEXT_MAX);
    memcpy(text, "/code", 5);
    CHECK(say(text) == ERR_BAD_REQUEST);
    text[MSG_TEXT_MAX - 1] = 'x';
    CHECK(say(text) == OK);
    CHECK_STR(stage.m->choice.text, "x");
    stage_leave();
    free(text);
}
