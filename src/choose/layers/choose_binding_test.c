/* Bindings, by vectors that were written by hand, each with the sentence that
 * it shows, and at random against a plain implementation of the rules. */
#include "choose/layers/choose.h"

#include "base/clock.h"
#include "test/lib/choose_stage.h"
#include "test/t.h"

#define S(text)    STR(text)
#define TG         .channel = S("telegram")
#define DC         .channel = S("discord")
#define PEER(k, i) .peer = {.kind = S(k), .id = S(i)}
#define ROLES(name) \
    .roles = {role_##name, sizeof(role_##name) / sizeof(struct str)}

static const struct str role_r[] = {STR("r")}, role_Ops[] = {STR("Ops")},
                        role_r1_r2[] = {STR("r1"), STR("r2")},
                        role_empty[] = {STR("")};

enum { VECTOR_BINDINGS = 4 };

static const struct vector {
    const char *sentence;
    struct binding bindings[VECTOR_BINDINGS]; /* up to one without channel */
    const char *source;
    int64_t found;
} vectors[] = {
    /* One field at a time. */
    {"a channel alone fits all of it", {{TG}}, "{\"channel\":\"telegram\"}", 0},
    {"another channel does not fit", {{TG}}, "{\"channel\":\"discord\"}", -1},
    {"a source without a channel fits nothing", {{TG}}, "{}", -1},
    {"channels compare without case",
     {{.channel = S("Telegram")}},
     "{\"channel\":\"TELEGRAM\"}",
     0},
    {"a channel is not a pattern",
     {{.channel = S("*")}},
     "{\"channel\":\"telegram\"}",
     -1},
    {"nor the beginning of one",
     {{.channel = S("tele")}},
     "{\"channel\":\"telegram\"}",
     -1},
    {"an account must be the same",
     {{TG, .account_id = S("main")}},
     "{\"channel\":\"telegram\",\"accountId\":\"other\"}",
     -1},
    {"accounts compare without case",
     {{TG, .account_id = S("Main")}},
     "{\"channel\":\"telegram\",\"accountId\":\"mAIN\"}",
     0},
    {"no account in the binding fits any account",
     {{TG}},
     "{\"channel\":\"telegram\",\"accountId\":\"second\"}",
     0},
    {"an account of * fits any account",
     {{TG, .account_id = S("*")}},
     "{\"channel\":\"telegram\",\"accountId\":\"second\"}",
     0},
    {"an account of * fits a source without one",
     {{TG, .account_id = S("*")}},
     "{\"channel\":\"telegram\"}",
     0},
    {"an account in the binding needs one in the source",
     {{TG, .account_id = S("main")}},
     "{\"channel\":\"telegram\"}",
     -1},
    {"a peer must be the same",
     {{TG, PEER("group", "-1")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":\"-2\"}}",
     -1},
    {"peers compare with case",
     {{TG, PEER("direct", "Anna")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"direct\",\"id\":"
     "\"anna\"}}",
     -1},
    {"a peer's kind must be the same",
     {{TG, PEER("group", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"direct\",\"id\":\"7\"}}",
     -1},
    {"a binding for a channel is good for a group",
     {{TG, PEER("channel", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":\"7\"}}",
     0},
    {"and one for a group for a channel",
     {{TG, PEER("group", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"channel\",\"id\":"
     "\"7\"}}",
     0},
    {"dm is direct",
     {{TG, PEER("dm", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"direct\",\"id\":\"7\"}}",
     0},
    {"and direct is dm",
     {{TG, PEER("direct", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"dm\",\"id\":\"7\"}}",
     0},
    {"dm is no group",
     {{TG, PEER("dm", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":\"7\"}}",
     -1},
    {"kinds compare without case",
     {{TG, PEER("Channel", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"GROUP\",\"id\":\"7\"}}",
     0},
    {"an unknown kind is one of its own",
     {{TG, PEER("thread", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"thread\",\"id\":\"7\"}}",
     0},
    {"an id that is a number is the id so written",
     {{TG, PEER("group", "-1001234")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":"
     "-1001234}}",
     0},
    {"a peer without a kind in the binding is of any",
     {{TG, PEER("", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"direct\",\"id\":\"7\"}}",
     0},
    {"a binding for a peer does not fit a source without one",
     {{TG, PEER("group", "7")}},
     "{\"channel\":\"telegram\"}",
     -1},
    {"guilds compare with case",
     {{DC, .guild_id = S("G")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\"}",
     -1},
    {"teams compare with case",
     {{.channel = S("slack"), .team_id = S("T1")}},
     "{\"channel\":\"slack\",\"teamId\":\"t1\"}",
     -1},
    {"roles compare with case",
     {{DC, .guild_id = S("g"), ROLES(Ops)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"ops\"]}",
     -1},

    /* All given fields must match. */
    {"a peer that fits does not help if the guild does not",
     {{DC, PEER("channel", "7"), .guild_id = S("g")}},
     "{\"channel\":\"discord\",\"guildId\":\"h\",\"peer\":{\"kind\":"
     "\"channel\",\"id\":\"7\"}}",
     -1},
    {"nor if the account does not",
     {{DC, PEER("channel", "7"), .account_id = S("a")}},
     "{\"channel\":\"discord\",\"accountId\":\"b\",\"peer\":{\"kind\":"
     "\"channel\",\"id\":\"7\"}}",
     -1},
    {"nor if no role does",
     {{DC, PEER("channel", "7"), ROLES(r)}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"channel\",\"id\":\"7\"}}",
     -1},
    {"a guild that fits does not help if the team does not",
     {{DC, .guild_id = S("g"), .team_id = S("t")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"teamId\":\"u\"}",
     -1},
    {"all that is given and fits does",
     {{DC, .account_id = S("a"), PEER("channel", "7"), .guild_id = S("g"),
       .team_id = S("t"), ROLES(r)}},
     "{\"channel\":\"discord\",\"accountId\":\"a\",\"guildId\":\"g\","
     "\"teamId\":\"t\",\"roles\":[\"r\"],\"peer\":{\"kind\":\"channel\","
     "\"id\":\"7\"}}",
     0},
    {"any one role suffices",
     {{DC, .guild_id = S("g"), ROLES(r1_r2)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"x\",\"r2\"]}",
     0},
    {"an empty role matches nothing",
     {{DC, .guild_id = S("g"), ROLES(empty)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"\",null]}",
     -1},

    /* Tiers. */
    {"within a tier the first in file order wins",
     {{TG}, {TG}},
     "{\"channel\":\"telegram\"}",
     0},
    {"also among peers",
     {{TG}, {TG, PEER("group", "7")}, {TG, PEER("channel", "7")}},
     "{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":\"7\"}}",
     1},
    {"more fields within a tier do not win over the order",
     {{DC, .guild_id = S("g")}, {DC, .guild_id = S("g"), .team_id = S("t")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"teamId\":\"t\"}",
     0},
    {"a peer is before its parent",
     {{DC, PEER("channel", "p")}, {DC, PEER("channel", "7")}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"channel\",\"id\":\"7\"},"
     "\"parentPeer\":{\"kind\":\"channel\",\"id\":\"p\"}}",
     1},
    {"a parent fits where the peer does not",
     {{DC}, {DC, PEER("group", "p")}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"channel\",\"id\":\"7\"},"
     "\"parentPeer\":{\"kind\":\"channel\",\"id\":\"p\"}}",
     1},
    {"a parent's kind must fit too",
     {{DC, PEER("direct", "p")}},
     "{\"channel\":\"discord\",\"parentPeer\":{\"kind\":\"channel\",\"id\":"
     "\"p\"}}",
     -1},
    {"a parent is before any peer of a kind",
     {{DC, PEER("channel", "*")}, {DC, PEER("channel", "p")}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"channel\",\"id\":\"7\"},"
     "\"parentPeer\":{\"kind\":\"channel\",\"id\":\"p\"}}",
     1},
    {"any peer of a kind is not any parent",
     {{DC, PEER("group", "*")}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"direct\",\"id\":\"7\"},"
     "\"parentPeer\":{\"kind\":\"channel\",\"id\":\"p\"}}",
     -1},
    {"any direct message is before a guild with a role",
     {{DC, .guild_id = S("g"), ROLES(r)}, {DC, PEER("dm", "*")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"r\"],\"peer\":"
     "{\"kind\":\"direct\",\"id\":\"7\"}}",
     1},
    {"any group is any channel",
     {{DC, PEER("group", "*")}},
     "{\"channel\":\"discord\",\"peer\":{\"kind\":\"channel\",\"id\":\"7\"}}",
     0},
    {"any peer of a kind needs a peer",
     {{DC, PEER("group", "*")}},
     "{\"channel\":\"discord\"}",
     -1},
    {"a guild with a role is before the guild",
     {{DC, .guild_id = S("g")}, {DC, .guild_id = S("g"), ROLES(r)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"r\"]}",
     1},
    {"a guild is there for who has not the role",
     {{DC, .guild_id = S("g"), ROLES(r)}, {DC, .guild_id = S("g")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"s\"]}",
     1},
    {"a guild is before a team",
     {{DC, .team_id = S("t")}, {DC, .guild_id = S("g")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"teamId\":\"t\"}",
     1},
    {"guild and team together sit in the guild tier",
     {{DC, .team_id = S("t")},
      {DC, .guild_id = S("g"), .team_id = S("t")},
      {DC, .guild_id = S("g")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"teamId\":\"t\"}",
     1},
    {"a team is before an account",
     {{DC, .account_id = S("a")}, {DC, .team_id = S("t")}},
     "{\"channel\":\"discord\",\"accountId\":\"a\",\"teamId\":\"t\"}",
     1},
    {"an account is before the channel",
     {{DC}, {DC, .account_id = S("a")}},
     "{\"channel\":\"discord\",\"accountId\":\"a\"}",
     1},
    {"an account of * sits in the channel tier",
     {{DC}, {DC, .account_id = S("*")}},
     "{\"channel\":\"discord\",\"accountId\":\"a\"}",
     0},
    {"a peer match under account * beats an exact account",
     {{TG, .account_id = S("main")},
      {TG, .account_id = S("*"), PEER("group", "7")}},
     "{\"channel\":\"telegram\",\"accountId\":\"main\",\"peer\":{\"kind\":"
     "\"group\",\"id\":\"7\"}}",
     1},
    {"and so does one without an account",
     {{TG, .account_id = S("main")}, {TG, PEER("group", "7")}},
     "{\"channel\":\"telegram\",\"accountId\":\"main\",\"peer\":{\"kind\":"
     "\"group\",\"id\":\"7\"}}",
     1},
    {"an exact account does not lift a peer over an earlier one",
     {{TG, PEER("group", "7")},
      {TG, .account_id = S("main"), PEER("group", "7")}},
     "{\"channel\":\"telegram\",\"accountId\":\"main\",\"peer\":{\"kind\":"
     "\"group\",\"id\":\"7\"}}",
     0},
    {"roles without a guild filter",
     {{DC, ROLES(r)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"s\"]}",
     -1},
    {"but form no tier",
     {{DC}, {DC, ROLES(r)}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"roles\":[\"r\"]}",
     0},
    {"nor do they among accounts",
     {{DC, .account_id = S("a")}, {DC, .account_id = S("a"), ROLES(r)}},
     "{\"channel\":\"discord\",\"accountId\":\"a\",\"roles\":[\"r\"]}",
     0},
    {"all tiers at once: the peer",
     {{DC},
      {DC, .guild_id = S("g")},
      {DC, PEER("channel", "p")},
      {DC, PEER("channel", "7")}},
     "{\"channel\":\"discord\",\"guildId\":\"g\",\"peer\":{\"kind\":"
     "\"channel\",\"id\":\"7\"},\"parentPeer\":{\"kind\":\"channel\",\"id\":"
     "\"p\"}}",
     3},
    {"fields of the source that are not bound do not matter",
     {{DC}},
     "{\"channel\":\"discord\",\"accountId\":\"a\",\"guildId\":\"g\","
     "\"teamId\":\"t\",\"roles\":[\"r\"],\"peer\":{\"kind\":\"dm\",\"id\":"
     "\"7\"},\"thread\":9}",
     0},
};

enum { N_VECTORS = sizeof(vectors) / sizeof(vectors[0]) };
_Static_assert(N_VECTORS >= 40, "so many were promised");

static size_t n_of(const struct vector *v)
{
    size_t n = 0;

    while (n < VECTOR_BINDINGS && v->bindings[n].channel.n)
        n++;
    return n;
}

TEST(every_sentence_about_bindings_holds)
{
    struct arena arena;

    arena_init(&arena, 1 << 20);
    for (size_t i = 0; i < N_VECTORS; i++) {
        const struct vector *v = &vectors[i];
        struct bindings b = {v->bindings, n_of(v)};
        struct source s;
        int64_t found;

        CHECK(choose_source_read(&arena, str_of(v->source), &s, NULL) == OK);
        found = choose_binding(&b, &s);
        if (found != v->found)
            T_FAIL("%s: %lld", v->sentence, (long long)found);
    }
    arena_fini(&arena);
}

/* The rules, plainly: for each tier in turn the list from its front, as in
 * OpenClaw's own code. */

enum wanted_fit {
    PEER_,
    PARENT,
    KIND,
    GUILD_ROLES,
    GUILD,
    TEAM,
    ACCOUNT,
    CHANNEL
};

static bool same(struct str a, struct str b)
{
    return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static char kind(struct str s)
{
    char c = s.n ? str_lower(s.p[0]) : '?'; /* the kinds drawn differ in it */

    return c == 'c' ? 'g' : c;
}

static bool plain_peer(const struct binding *b, const struct source_peer *p)
{
    bool is_any = same(b->peer.id, STR("*"));

    if (b->peer.kind.n && kind(b->peer.kind) != kind(p->kind))
        return false;
    return is_any ? p->id.n > 0 : p->id.n && same(b->peer.id, p->id);
}

static bool plain_rest(const struct binding *b, const struct source *s)
{
    bool has_role = !b->roles.n;

    for (size_t i = 0; i < b->roles.n; i++)
        for (size_t k = 0; k < s->roles.n; k++)
            has_role |= same(b->roles.list[i], s->roles.list[k]);
    if (b->account_id.n && !same(b->account_id, STR("*")) &&
        !str_eq_nocase(b->account_id, s->account_id))
        return false;
    if (b->guild_id.n && !same(b->guild_id, s->guild_id))
        return false;
    if (b->team_id.n && !same(b->team_id, s->team_id))
        return false;
    return has_role && str_eq_nocase(b->channel, s->channel);
}

static bool plain_in(enum wanted_fit t, const struct binding *b,
                     const struct source *s)
{
    bool has_peer = b->peer.id.n, is_any = same(b->peer.id, STR("*"));
    bool has_account = b->account_id.n && !same(b->account_id, STR("*"));

    switch (t) {
    case PEER_: return has_peer && !is_any && plain_peer(b, &s->peer);
    case PARENT: return has_peer && !is_any && plain_peer(b, &s->parent);
    case KIND: return is_any && plain_peer(b, &s->peer);
    case GUILD_ROLES: return !has_peer && b->guild_id.n && b->roles.n;
    case GUILD: return !has_peer && b->guild_id.n && !b->roles.n;
    case TEAM: return !has_peer && !b->guild_id.n && b->team_id.n;
    case ACCOUNT:
        return !has_peer && !b->guild_id.n && !b->team_id.n && has_account;
    case CHANNEL:
        return !has_peer && !b->guild_id.n && !b->team_id.n && !has_account;
    }
    return false;
}

static int64_t plain(const struct bindings *b, const struct source *s)
{
    for (int t = PEER_; t <= CHANNEL; t++)
        for (size_t i = 0; i < b->n; i++)
            if (plain_in((enum wanted_fit)t, &b->list[i], s) &&
                plain_rest(&b->list[i], s))
                return (int64_t)i;
    return -1;
}

/* Few values, so that many fit. */
static struct rand_seeded chance = {11};

static struct str one_of(size_t n, const struct str *list)
{
    return list[rand_u64(rand_seeded(&chance)) % n];
}

#define ONE_OF(...)                                                  \
    one_of(sizeof((struct str[]){__VA_ARGS__}) / sizeof(struct str), \
           (struct str[]){__VA_ARGS__})

static const struct str role_names[] = {STR("r"), STR("s"), STR("R")};

static struct strs some_roles(void)
{
    uint64_t r = rand_u64(rand_seeded(&chance));
    size_t from = r % 3;

    return (struct strs){role_names + from, r / 3 % 2 ? r / 6 % (4 - from) : 0};
}

static struct binding some_binding(void)
{
    struct binding b = {
        .channel = ONE_OF(S("tg"), S("TG"), S("dc")),
        .account_id = ONE_OF(S(""), S(""), S("*"), S("a"), S("A"), S("b")),
        .guild_id = ONE_OF(S(""), S(""), S("g"), S("G")),
        .team_id = ONE_OF(S(""), S(""), S("t")),
        .roles = some_roles(),
    };

    b.peer.id = ONE_OF(S(""), S("*"), S("1"), S("2"));
    if (b.peer.id.n)
        b.peer.kind = ONE_OF(S("group"), S("channel"), S("dm"), S("direct"));
    return b;
}

static struct source some_source(void)
{
    struct source s = {
        .channel = ONE_OF(S("tg"), S("Tg"), S("dc")),
        .account_id = ONE_OF(S(""), S("a"), S("b")),
        .guild_id = ONE_OF(S(""), S("g")),
        .team_id = ONE_OF(S(""), S("t")),
        .roles = some_roles(),
    };

    s.peer.id = ONE_OF(S(""), S("1"), S("2"), S("3"));
    s.parent.id = ONE_OF(S(""), S("1"), S("2"));
    if (s.peer.id.n)
        s.peer.kind = ONE_OF(S("group"), S("channel"), S("Direct"), S("dm"));
    if (s.parent.id.n)
        s.parent.kind = ONE_OF(S("group"), S("channel"));
    return s;
}

TEST(by_chance_they_fit_as_the_rules_told_the_long_way)
{
    int rounds = getenv("STRESS") ? 5000 * 1000 : 20 * 1000, n_found = 0;
    struct binding list[8];

    for (int round = 0; round < rounds; round++) {
        struct bindings b = {list, 1 + (size_t)round % 8};
        struct source s = some_source();

        for (size_t i = 0; i < b.n; i++)
            list[i] = some_binding();
        CHECK_INT(choose_binding(&b, &s), plain(&b, &s));
        n_found += plain(&b, &s) >= 0;
    }
    CHECK(n_found > rounds / 5 && n_found < rounds * 4 / 5);
}

/* In the layer. */

static enum err from(const char *source)
{
    stage_message();
    stage.m->call.text = STR("hello");
    stage.m->call.source = str_of(source);
    return stage_ask();
}

TEST(where_a_message_came_from_says_whose_it_is)
{
    static const struct binding list[] = {
        {.agent = S("OPS"), TG},
        {.agent = S("code"), TG, PEER("group", "-1001234")},
    };

    STAGE("code", "ops");
    stage.settings.bindings = (struct bindings){list, 2};
    CHECK(from("{\"channel\":\"telegram\"}") == OK);
    CHECK_STR(stage.m->choice.agent, "ops");
    CHECK_INT(stage.m->choice.layer, LAYER_BINDING);
    CHECK_STR(stage.m->choice.reason, "bindings[0] names it for this channel");
    CHECK(from("{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":"
               "-1001234}}") == OK);
    CHECK_STR(stage.m->choice.agent, "code");
    CHECK_STR(stage.m->choice.reason, "bindings[1] names it for this peer");
    CHECK(from("{\"channel\":\"discord\"}") == ERR_NO_ROUTE);
    CHECK(from("") == ERR_NO_ROUTE);
    stage_leave();
}

TEST(a_source_that_cannot_be_read_is_refused_with_or_without_bindings)
{
    static const struct binding list[] = {{.agent = S("code"), TG}};

    STAGE("code");
    CHECK(from("{\"peer\":7}") == ERR_BAD_REQUEST);
    stage.settings.bindings = (struct bindings){list, 1};
    CHECK(from("{\"peer\":7}") == ERR_BAD_REQUEST);
    CHECK(stage_says("source.peer must be an object"));
    stage_leave();
}

TEST(an_agent_of_a_binding_that_is_not_there_is_an_error_not_a_fallback)
{
    static const struct binding list[] = {{.agent = S("secret"), TG},
                                          {.agent = S("gone"), DC},
                                          {.agent = S("code"), TG}};

    STAGE("code", "secret");
    stage.settings.bindings = (struct bindings){list, 3};
    stage.settings.default_agent = S("code");
    CHECK(from("{\"channel\":\"discord\"}") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("the binding for where this message came from "
                     "(bindings[1]) names an agent that is not there"));
    CHECK(from("{\"channel\":\"telegram\"}") == OK);
    /* A sender who may not see it learns nothing more. */
    stage_hide(1);
    CHECK(from("{\"channel\":\"telegram\"}") == ERR_AGENT_NOT_FOUND);
    CHECK(stage_says("the binding for where this message came from "
                     "(bindings[0]) names an agent that is not there"));
    CHECK(!stage.m->choice.n_nearest);
    stage_leave();
}

TEST(as_many_bindings_as_there_may_be_are_looked_through)
{
    struct binding *list = calloc(BINDINGS_MAX, sizeof(*list));
    char(*ids)[16] = calloc(BINDINGS_MAX, sizeof(*ids));

    CHECK(list && ids);
    STAGE("code");
    for (size_t i = 0; i < BINDINGS_MAX; i++) {
        snprintf(ids[i], sizeof(ids[i]), "-100%05zu", i);
        list[i] = (struct binding){.agent = S("code"), TG};
        list[i].peer = (struct source_peer){S("group"), str_of(ids[i])};
    }
    stage.settings.bindings = (struct bindings){list, BINDINGS_MAX};
    CHECK(from("{\"channel\":\"telegram\",\"peer\":{\"kind\":\"group\",\"id\":"
               "-10009999}}") == OK);
    CHECK_STR(stage.m->choice.reason, "bindings[9999] names it for this peer");
    stage_leave();
    free(list);
    free(ids);
}
