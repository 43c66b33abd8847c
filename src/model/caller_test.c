#include "model/caller.h"
#include "test/t.h"

static const enum role roles[] = {ROLE_ADMIN, ROLE_USER, ROLE_AGENT};

TEST(roles_have_the_numbers_that_are_kept_in_the_store)
{
    CHECK_INT(ROLE_ADMIN, 1);
    CHECK_INT(ROLE_USER, 2);
    CHECK_INT(ROLE_AGENT, 3);
}

TEST(scopes_have_the_numbers_that_are_kept_in_the_store)
{
    static const struct {
        const char *name;
        unsigned number;
    } kept[] = {{"send", 1},        {"read", 2},     {"agents", 4},
                {"escalations", 8}, {"ledger", 16},  {"admin", 32},
                {"creator", 64},    {"metrics", 128}};

    CHECK_INT(sizeof(kept) / sizeof(kept[0]), N_SCOPES);
    for (size_t i = 0; i < N_SCOPES; i++)
        CHECK_INT(scope_of(str_of(kept[i].name)), kept[i].number);
}

TEST(names_of_roles_and_scopes_lead_back_to_them)
{
    unsigned all = 0;

    for (size_t i = 0; i < 3; i++)
        CHECK(role_of(role_name(roles[i])) == roles[i]);
    for (unsigned i = 0; i < N_SCOPES; i++) {
        all |= 1U << i;
        CHECK_INT(scope_of(scope_name((enum scope)(1U << i))), 1U << i);
    }
    CHECK_INT(all, SCOPE_ALL);
}

TEST(what_is_no_role_or_scope_is_none)
{
    static const char *const bad[] = {"", "Admin", "admins", "adm", "root"};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK(role_of(str_of(bad[i])) == 0);
        CHECK(scope_of(str_of(bad[i])) == 0);
    }
    CHECK(role_of((struct str){NULL, 0}) == 0);
    for (int r = -1; r < 6; r++)
        if (r < ROLE_ADMIN || r > ROLE_AGENT) {
            CHECK(role_scopes((enum role)r) == 0);
            CHECK(role_name((enum role)r).n == 0);
        }
    CHECK(scope_name((enum scope)0).n == 0);
    CHECK(scope_name((enum scope)(SCOPE_SEND | SCOPE_READ)).n == 0);
    CHECK(scope_name((enum scope)(1 << N_SCOPES)).n == 0);
}

TEST(admins_have_every_scope_and_others_what_they_need)
{
    CHECK_INT(role_scopes(ROLE_ADMIN), SCOPE_ALL & ~SCOPE_ASKED);
    CHECK_INT(role_scopes(ROLE_USER), SCOPE_SEND | SCOPE_READ | SCOPE_AGENTS);
    CHECK_INT(role_scopes(ROLE_AGENT), SCOPE_SEND | SCOPE_READ);
}

TEST(what_nobody_has_unasked_any_role_may_have)
{
    for (size_t i = 0; i < 3; i++) {
        CHECK(!(role_scopes(roles[i]) & SCOPE_ASKED));
        CHECK_INT(role_may(roles[i]), role_scopes(roles[i]) | SCOPE_ASKED);
    }
    CHECK(role_may(0) == 0);
}

TEST(an_admin_is_one_by_role_and_by_scope)
{
    struct caller c = {.role = ROLE_ADMIN, .scopes = SCOPE_ALL};

    CHECK(caller_is_admin(&c));
    c.scopes = SCOPE_ALL & ~(unsigned)SCOPE_ADMIN;
    CHECK(!caller_is_admin(&c));
    c = (struct caller){.role = ROLE_USER, .scopes = SCOPE_ALL};
    CHECK(!caller_is_admin(&c));
    c = (struct caller){.role = 0};
    CHECK(!caller_is_admin(&c) && caller_name(&c).n == 0);
}

TEST(users_and_orgs_have_names_of_a_kind)
{
    char name[PRINCIPAL_NAME_MAX + 1];

    memset(name, 'n', sizeof(name));
    CHECK(principal_name_is_valid((struct str){name, PRINCIPAL_NAME_MAX}));
    CHECK(!principal_name_is_valid((struct str){name, sizeof(name)}));
    CHECK(principal_name_is_valid(STR("Anna.b-c_d@example.org")));
    CHECK(!principal_name_is_valid(STR("")));
    CHECK(!principal_name_is_valid(STR("@a")));
    CHECK(!principal_name_is_valid(STR("a b")));
    CHECK(!principal_name_is_valid((struct str){"a\0", 2}));
}
