#include "choose/layers/choose.h"

#include "test/t.h"

static struct arena arena;
static struct source got;
static struct why why;

static enum err from(const char *json)
{
    arena_fini(&arena);
    arena_init(&arena, 1 << 20);
    why.text[0] = '\0';
    memset(&got, 0xff, sizeof(got));
    return choose_source_read(&arena, str_of(json), &got, &why);
}

static void leave(void)
{
    arena_fini(&arena);
}

TEST(all_that_is_known_is_read)
{
    CHECK(from("{\"channel\":\"telegram\",\"accountId\":\"main\","
               "\"peer\":{\"kind\":\"group\",\"id\":\"-1001234\"},"
               "\"parentPeer\":{\"kind\":\"channel\",\"id\":\"p\\u00e4r\"},"
               "\"guildId\":\"g\",\"teamId\":\"t\",\"roles\":[\"r1\", \"r2\"],"
               "\"more\":{\"peer\":7}}") == OK);
    CHECK_STR(got.channel, "telegram");
    CHECK_STR(got.account_id, "main");
    CHECK_STR(got.peer.kind, "group");
    CHECK_STR(got.peer.id, "-1001234");
    CHECK_STR(got.parent.kind, "channel");
    CHECK_STR(got.parent.id, "p\xc3\xa4r");
    CHECK_STR(got.guild_id, "g");
    CHECK_STR(got.team_id, "t");
    CHECK_INT(got.roles.n, 2);
    CHECK_STR(got.roles.list[0], "r1");
    CHECK_STR(got.roles.list[1], "r2");
    leave();
}

static bool is_empty(const struct source *s)
{
    return !s->channel.n && !s->account_id.n && !s->peer.kind.n &&
           !s->peer.id.n && !s->parent.kind.n && !s->parent.id.n &&
           !s->guild_id.n && !s->team_id.n && !s->roles.n;
}

TEST(what_is_not_there_is_empty_and_what_is_not_known_is_left_alone)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{\"x\":[1,{}],\"Channel\":\"a\",\"account_id\":3}",
        "{\"channel\":null,\"accountId\":null,\"peer\":null,\"parentPeer\":"
        "null,\"guildId\":null,\"teamId\":null,\"roles\":null}",
        "{\"channel\":\"\",\"peer\":{},\"parentPeer\":{\"x\":1,\"id\":null},"
        "\"roles\":[]}",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        CHECK(from(texts[i]) == OK);
        CHECK(is_empty(&got));
    }
    leave();
}

TEST(ids_may_be_integers_as_they_are_written)
{
    CHECK(from("{\"peer\":{\"kind\":\"group\",\"id\":-1001234567890},"
               "\"parentPeer\":{\"id\":0},\"guildId\":9223372036854775807,"
               "\"teamId\":7,\"accountId\":1,\"roles\":[80351110224678912]}") ==
          OK);
    CHECK_STR(got.peer.id, "-1001234567890");
    CHECK_STR(got.parent.id, "0");
    CHECK_STR(got.guild_id, "9223372036854775807");
    CHECK_STR(got.team_id, "7");
    CHECK_STR(got.account_id, "1");
    CHECK_STR(got.roles.list[0], "80351110224678912");
    leave();
}

TEST(what_is_of_another_type_is_refused_with_its_name)
{
    static const struct {
        const char *json, *words;
    } rows[] = {
        {"{\"channel\":7}", "source.channel must be a string"},
        {"{\"channel\":{}}", "source.channel must be a string"},
        {"{\"accountId\":true}", "source.accountId must be a string"},
        {"{\"accountId\":1.5}", "source.accountId must be a string"},
        {"{\"guildId\":1e3}", "source.guildId must be a string"},
        {"{\"guildId\":-0.0}", "source.guildId must be a string"},
        {"{\"teamId\":[\"t\"]}", "source.teamId must be a string"},
        {"{\"teamId\":18446744073709551616}",
         "source must be a JSON object"}, /* no number that we read */
        {"{\"peer\":\"p\"}", "source.peer must be an object"},
        {"{\"peer\":[]}", "source.peer must be an object"},
        {"{\"parentPeer\":1}", "source.parentPeer must be an object"},
        {"{\"peer\":{\"kind\":1}}", "source.peer.kind must be a string"},
        {"{\"peer\":{\"id\":{}}}", "source.peer.id must be a string"},
        {"{\"parentPeer\":{\"kind\":[]}}",
         "source.parentPeer.kind must be a string"},
        {"{\"parentPeer\":{\"id\":false}}",
         "source.parentPeer.id must be a string"},
        {"{\"roles\":\"r\"}", "source.roles must be a list"},
        {"{\"roles\":{}}", "source.roles must be a list"},
        {"{\"roles\":[\"r\",{}]}", "source.roles[] must be a string"},
        {"{\"roles\":[[\"r\"]]}", "source.roles[] must be a string"},
        {"[]", "source must be a JSON object"},
        {"\"telegram\"", "source must be a JSON object"},
        {"{\"channel\":\"a\"", "source must be a JSON object"},
        {"{\"channel\":\"a\",\"channel\":\"b\"}",
         "source must be a JSON object"},
        {"nonsense", "source must be a JSON object"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CHECK(from(rows[i].json) == ERR_BAD_REQUEST);
        CHECK_STR(str_of(why.text), rows[i].words);
        CHECK(is_empty(&got));
    }
    leave();
}

static const char *long_channel(size_t n, const char *one)
{
    static struct buf out;

    buf_fini(&out);
    buf_init(&out, 8192);
    buf_addf(&out, "{\"channel\":\"");
    for (size_t i = 0; i < n; i++)
        buf_addf(&out, "%s", one);
    buf_addf(&out, "\"}");
    buf_add_char(&out, '\0');
    CHECK(!out.over);
    return buf_str(&out).p;
}

TEST(a_string_is_taken_up_to_its_limit_however_it_is_written)
{
    static const char *const ones[] = {"c", "\\u0063"};

    for (size_t i = 0; i < 2; i++) {
        CHECK(from(long_channel(SOURCE_STRING_MAX, ones[i])) == OK);
        CHECK_INT(got.channel.n, SOURCE_STRING_MAX);
        CHECK(from(long_channel(SOURCE_STRING_MAX + 1, ones[i])) ==
              ERR_BAD_REQUEST);
        CHECK_STR(str_of(why.text), "source.channel is longer than 256 bytes");
    }
    leave();
}

static const char *many_roles(size_t n)
{
    static struct buf out;

    buf_fini(&out);
    buf_init(&out, 8192);
    buf_addf(&out, "{\"roles\":[");
    for (size_t i = 0; i < n; i++)
        buf_addf(&out, "%s%zu", i ? "," : "", i);
    buf_addf(&out, "]}");
    buf_add_char(&out, '\0');
    CHECK(!out.over);
    return buf_str(&out).p;
}

TEST(as_many_roles_as_there_may_be_are_read)
{
    CHECK(from(many_roles(SOURCE_ROLES_MAX)) == OK);
    CHECK_INT(got.roles.n, SOURCE_ROLES_MAX);
    CHECK_STR(got.roles.list[SOURCE_ROLES_MAX - 1], "255");
    CHECK(from(many_roles(SOURCE_ROLES_MAX + 1)) == ERR_BAD_REQUEST);
    CHECK_STR(str_of(why.text), "source.roles may hold no more than 256");
    leave();
}
