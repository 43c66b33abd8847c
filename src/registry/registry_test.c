#include "registry/registry.h"

#include "base/fault.h"
#include "test/t.h"

static const struct registry_opts opts = {.seed = {3, 4}};
enum { REGISTRY_AGENTS_MAX = 10000 };

#define AGENT(n) ((struct agent){.name = STR(n), .url = STR("echo:")})

TEST(agents_come_in_the_order_of_their_names)
{
    const struct agent list[] = {AGENT("b"), AGENT("Ab"),  AGENT("a"),
                                 AGENT("C"), AGENT("a-b"), AGENT("A.b")};
    static const char *const order[] = {"a", "a-b", "A.b", "Ab", "b", "C"};
    struct registry *r = registry_new(&opts);
    struct agents all;

    CHECK(r && registry_agents(r).n == 0);
    CHECK(registry_set(r, list, 6, NULL) == OK);
    all = registry_agents(r);
    CHECK_INT(all.n, 6);
    for (size_t i = 0; i < 6; i++) {
        CHECK_STR(all.list[i]->name, order[i]);
        CHECK(agent_find(&all, str_of(order[i])) == all.list[i]);
    }
    CHECK(agent_find(&all, STR("AB")) == all.list[3]);
    CHECK(map_check(all.by_name));
    registry_free(r);
    registry_free(NULL);
}

TEST(what_was_given_is_copied)
{
    char name[] = "Echo", url[] = "echo:5", title[] = "An echo";
    struct agent a = {.name = {name, 4}, .url = {url, 6}, .title = {title, 7}};
    struct registry *r = registry_new(&opts);
    struct agents all;

    CHECK(r && registry_set(r, &a, 1, NULL) == OK);
    memset(name, 'x', 4);
    memset(url, 'x', 6);
    memset(title, 'x', 7);
    a = (struct agent){0};
    all = registry_agents(r);
    CHECK_STR(all.list[0]->name, "Echo");
    CHECK_STR(all.list[0]->url, "echo:5");
    CHECK_STR(all.list[0]->title, "An echo");
    CHECK(agent_find(&all, STR("echo")) == all.list[0]);
    registry_free(r);
}

TEST(agents_are_replaced_as_a_whole)
{
    const struct agent first[] = {AGENT("a"), AGENT("b")};
    const struct agent second[] = {AGENT("B"), AGENT("c"), AGENT("d")};
    struct registry *r = registry_new(&opts);
    struct agents all;

    CHECK(r && registry_set(r, first, 2, NULL) == OK);
    CHECK(registry_set(r, second, 3, NULL) == OK);
    all = registry_agents(r);
    CHECK(all.n == 3 && !agent_find(&all, STR("a")));
    CHECK_STR(agent_find(&all, STR("b"))->name, "B");
    CHECK(registry_set(r, NULL, 0, NULL) == OK);
    all = registry_agents(r);
    CHECK(all.n == 0 && !agent_find(&all, STR("b")));
    registry_free(r);
}

static void check_refused(const struct agent *list, size_t n, enum err e,
                          const char *words)
{
    const struct agent before = AGENT("before");
    struct registry *r = registry_new(&opts);
    struct why why = {{0}};
    struct agents all;

    CHECK(r && registry_set(r, &before, 1, NULL) == OK);
    CHECK_INT(registry_set(r, list, n, &why), e);
    if (!strstr(why.text, words))
        T_FAIL("says %s", why.text);
    all = registry_agents(r);
    CHECK(all.n == 1 && agent_find(&all, STR("before")) == all.list[0]);
    registry_free(r);
}

TEST(two_of_one_name_are_refused_whatever_their_case)
{
    const struct agent list[] = {AGENT("echo"), AGENT("other"), AGENT("ECHO")};

    check_refused(list, 3, ERR_EXISTS, "\"echo\"");
    check_refused(list, 3, ERR_EXISTS, "\"ECHO\"");
}

TEST(what_is_no_agent_is_refused)
{
    char title[AGENT_TITLE_MAX + 1];
    struct agent a[2] = {AGENT("fine"), AGENT("not this")};

    check_refused(a, 2, ERR_BAD_REQUEST, "\"not this\" is no agent");
    a[1] = AGENT("ok");
    a[1].url = STR("gopher:");
    check_refused(a, 2, ERR_BAD_REQUEST, "\"ok\" is no agent");
    a[1].url = STR("echo:");
    memset(title, 't', sizeof(title));
    a[1].title = (struct str){title, sizeof(title)};
    check_refused(a, 2, ERR_BAD_REQUEST, "\"ok\" is no agent");
}

/* Every one as large as can be. */
TEST(the_limit_holds_and_one_more_is_refused)
{
    enum { N = REGISTRY_AGENTS_MAX };
    static char names[N + 1][AGENT_NAME_MAX + 1], url[AGENT_URL_MAX],
        title[AGENT_TITLE_MAX];
    struct agent *list = calloc(N + 1, sizeof(*list));
    struct registry *r = registry_new(&opts);
    struct agents all;

    CHECK(list && r);
    memset(url, '0', sizeof(url));
    memcpy(url, "echo:", 5);
    memset(title, 't', sizeof(title));
    for (int i = 0; i <= N; i++) {
        snprintf(names[i], sizeof(names[i]), "Agent%0*d", AGENT_NAME_MAX - 5,
                 N - i);
        list[i] = (struct agent){.name = str_of(names[i]),
                                 .url = {url, sizeof(url)},
                                 .title = {title, sizeof(title)}};
        CHECK(list[i].name.n == AGENT_NAME_MAX);
    }
    CHECK(registry_set(r, list, N, NULL) == OK);
    all = registry_agents(r);
    CHECK(all.n == N && map_check(all.by_name));
    CHECK(str_eq(all.list[0]->name, list[N - 1].name));
    CHECK(agent_find(&all, list[17].name) != NULL);
    check_refused(list, N + 1, ERR_LIMIT, "at most 10000 agents");
    registry_free(r);
    free(list);
}

TEST(the_registry_survives_every_fault)
{
    const struct agent list[] = {AGENT("a"), AGENT("b"), AGENT("c")};
    const struct agent more[] = {AGENT("d"), AGENT("e"), AGENT("f"),
                                 AGENT("g")};
    long nth = 0;

    do {
        struct registry *r;
        struct agents all;
        enum err e;

        fault_arm(++nth);
        r = registry_new(&opts);
        CHECK(r || fault_fired());
        if (!r)
            continue;
        e = registry_set(r, list, 3, NULL);
        CHECK(e == OK || (e == ERR_NOMEM && fault_fired()));
        CHECK_INT(registry_agents(r).n, e ? 0 : 3);
        if (!e) {
            e = registry_set(r, more, 4, NULL);
            CHECK(e == OK || (e == ERR_NOMEM && fault_fired()));
            all = registry_agents(r);
            CHECK_INT(all.n, e ? 3 : 4);
            CHECK(agent_find(&all, e ? STR("a") : STR("d")) == all.list[0]);
        }
        registry_free(r);
    } while (fault_fired());
    CHECK(nth > 4);
}
