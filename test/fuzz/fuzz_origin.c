/* Any bytes as where a message came from, as its text, and as what an agent
 * says of itself. The first byte says which.
 *
 * A source that is taken has in it what a tree of the same JSON has, within its
 * limits, and fits the same binding each time. A text that is a prefix leaves
 * something to say that is its own end. What menus are told is JSON within what
 * platforms take. */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/utf8.h"
#include "choose/layers/choose.h"
#include "speak/speak.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_member(const struct json *v, struct str got, bool is_id)
{
    assert(got.n <= SOURCE_STRING_MAX);
    if (v && v->type == JSON_STR)
        assert(str_eq(v->s, got));
    else if (v && v->type == JSON_INT && is_id)
        assert(got.n > 0);
    else
        assert((!v || v->type == JSON_NULL) && !got.n);
}

static void check_source(struct str json, const struct source *s)
{
    struct arena a;
    struct json *v, *peer, *parent;

    arena_init(&a, json.n * 64 + 4096);
    v = json_parse(&a, json, 0, NULL);
    if (v) { /* deeper than a tree may be: nothing to compare with */
        peer = json_get(v, STR("peer"));
        parent = json_get(v, STR("parentPeer"));
        check_member(json_get(v, STR("channel")), s->channel, false);
        check_member(json_get(v, STR("accountId")), s->account_id, true);
        check_member(json_get(v, STR("guildId")), s->guild_id, true);
        check_member(json_get(v, STR("teamId")), s->team_id, true);
        check_member(json_get(peer, STR("kind")), s->peer.kind, false);
        check_member(json_get(peer, STR("id")), s->peer.id, true);
        check_member(json_get(parent, STR("id")), s->parent.id, true);
        for (size_t i = 0; i < s->roles.n; i++)
            check_member(json_at(json_get(v, STR("roles")), i),
                         s->roles.list[i], true);
    }
    arena_fini(&a);
}

static void try_source(struct str json)
{
    static const struct str roles[] = {STR("r")};
    static const struct binding list[] = {
        {.channel = STR("a"), .peer = {STR("group"), STR("1")}},
        {.channel = STR("a"), .peer = {STR("dm"), STR("*")}},
        {.channel = STR("a"), .guild_id = STR("g"), .roles = {roles, 1}},
        {.channel = STR("a"), .team_id = STR("t")},
        {.channel = STR("a"), .account_id = STR("b")},
        {.channel = STR("a")},
    };
    struct bindings b = {list, 6};
    struct why why = {""};
    struct arena a;
    struct source s;

    arena_init(&a, json.n * 4 + 64 * 1024);
    if (choose_source_read(&a, json, &s, &why)) {
        assert(why.text[0] && !s.channel.n && !s.roles.n);
    } else {
        assert(s.roles.n <= SOURCE_ROLES_MAX);
        check_source(json, &s);
        assert(!str_eq_nocase(s.channel, STR("a")) ==
               (choose_binding(&b, &s) < 0));
    }
    arena_fini(&a);
}

static void try_text(struct str text)
{
    static const uint64_t seed[2] = {1, 2};
    struct agent list[] = {
        {.name = STR("a-b")}, {.name = STR("a.b")}, {.name = STR("code")}};
    const struct agent *ptrs[] = {&list[0], &list[1], &list[2]};
    struct choose_settings settings = choose_defaults();
    struct eyes eyes = {.sees_all = true};
    struct map by_name;
    struct agents all = {ptrs, 3, &by_name};
    struct msg *m = msg_new(&(struct caller){.role = ROLE_USER}, 1);
    enum err e;

    assert(m);
    map_init(&by_name, 3, seed);
    for (size_t i = 0; i < 3; i++)
        assert(map_put(&by_name, list[i].name, &list[i]) == OK);
    settings.is_off[LAYER_SEMANTIC] = true;
    m->call.text = text;
    e = choose_agent(&(struct choose_view){.settings = &settings,
                                           .agents = &all,
                                           .eyes = &eyes},
                     m);
    assert(e == OK || e == ERR_NO_ROUTE || e == ERR_BAD_REQUEST);
    assert(e == OK || m->why.text[0]);
    if (!e) {
        assert(text.p[0] == '/' && m->choice.text.n);
        assert(m->choice.text.p + m->choice.text.n == text.p + text.n);
    }
    map_fini(&by_name);
    msg_free(m);
}

static size_t units(struct str s)
{
    size_t n = 0;

    for (size_t i = 0, k; i < s.n; i += k) {
        k = utf8_one(s.p + i, s.p + s.n);
        assert(k);
        n += k == 4 ? 2 : 1;
    }
    return n;
}

static void try_description(struct str text)
{
    struct agent agent = {.name = STR("a"), .description = text};
    struct speak_command c = {.agent = &agent, .menu = STR("a")};
    struct arena a;
    struct buf out;
    struct json_out o = json_out(&out);
    struct json *v;
    struct str said;

    buf_init(&out, 1 << 16);
    arena_init(&a, 1 << 20);
    speak_discord_menu(&o, &c, 1);
    v = json_parse(&a, buf_str(&out), 0, NULL);
    assert(v);
    said = json_str_or(json_get(json_at(v, 0), STR("description")), STR(""));
    assert(said.n && units(said) <= 100);
    arena_fini(&a);
    buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str text = {(const char *)data + 1, n ? n - 1 : 0};

    if (!n)
        return 0;
    switch (data[0] % 3) {
    case 0: try_source(text); break;
    case 1: try_text(text); break;
    default: try_description(text); break;
    }
    return 0;
}
