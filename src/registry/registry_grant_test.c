/* The table of visibility, by name and by search; and grants, which extend
 * it. */
#include "test/lib/registry_stage.h"

/* The table. */

enum { N_VISIBILITIES = 3 };

static const struct {
    const char *who;
    struct eyes eyes;
    const char *sees; /* p: private, s: shared, P: public */
} requesters[] = {
    {"an admin", {.user = STR("admin"), .sees_all = true}, "psP"},
    {"the creator", {.user = STR("anna"), .org = STR("acme")}, "psP"},
    {"the creator, gone from the org", {.user = STR("anna")}, "psP"},
    {"of the same org", {.user = STR("bob"), .org = STR("acme")}, "sP"},
    {"of another org", {.user = STR("carl"), .org = STR("zeta")}, "P"},
    {"without org", {.user = STR("dora")}, "P"},
    {"a user with a grant", {.user = STR("fred"), .org = STR("zeta")}, "sP"},
    {"of an org with a grant", {.user = STR("gina"), .org = STR("kilo")}, "sP"},
    {"a user whose grant expired", {.user = STR("hugo")}, "P"},
    {"of an org whose grant expired",
     {.user = STR("ines"), .org = STR("lima")},
     "P"},
    {"an agent of the creator",
     {.user = STR("anna"), .org = STR("acme"), .self = STR("robot")},
     "psP"},
    {"an agent of another",
     {.user = STR("carl"), .org = STR("zeta"), .self = STR("robot")},
     "P"},
    {"missing", {.user = STR("")}, "P"},
};

static const struct {
    char letter;
    const char *name, *visibility, *word;
} subjects[N_VISIBILITIES] = {
    {'p', "subject-p", "private", "quokka"},
    {'s', "subject-s", "shared", "wombat"},
    {'P', "subject-x", "public", "numbat"},
};

static void make_subjects(struct stage *s)
{
    for (int i = 0; i < N_VISIBILITIES; i++) {
        char card[256];
        const char *name = subjects[i].name;

        snprintf(card, sizeof(card),
                 "{\"name\":\"%s\",\"visibility\":\"%s\",\"skills\":"
                 "[{\"id\":\"q\",\"name\":\"%s\"}]}",
                 name, subjects[i].visibility, subjects[i].word);
        CHECK(stage_put(s, &stage_anna, card) == OK);
        CHECK(stage_grant(s, &stage_anna, name, "fred", "", 0) == OK);
        CHECK(stage_grant(s, &stage_anna, name, "", "kilo", 0) == OK);
        CHECK(stage_grant(s, &stage_anna, name, "hugo", "", s->now_ms + 1000) ==
              OK);
        CHECK(stage_grant(s, &stage_anna, name, "", "lima", s->now_ms + 1000) ==
              OK);
    }
    s->now_ms += 1000; /* from this very moment on it does not count */
}

static void expect_table(struct stage *s)
{
    for (size_t i = 0; i < sizeof(requesters) / sizeof(requesters[0]); i++) {
        struct eyes eyes = requesters[i].eyes;

        eyes.now_ms = s->now_ms;
        for (int k = 0; k < N_VISIBILITIES; k++) {
            const char *name = subjects[k].name;
            bool must = strchr(requesters[i].sees, subjects[k].letter);
            struct stage_found found = stage_search(s, &eyes, subjects[k].word);
            char shown[32];

            snprintf(shown, sizeof(shown), "%s ", name);
            if (!!registry_find(s->r, str_of(name), &eyes) != must)
                T_FAIL("%s, and %s by its name", requesters[i].who, name);
            if (strcmp(found.names, must ? shown : "") != 0)
                T_FAIL("%s, and %s by searching", requesters[i].who, name);
        }
    }
}

TEST(everybody_sees_what_they_may_and_nothing_else)
{
    struct stage s;

    stage_open(&s);
    make_subjects(&s);
    expect_table(&s);
    stage_restart(&s, false);
    expect_table(&s);
    stage_restart(&s, true);
    expect_table(&s);
    stage_close(&s);
}

TEST(an_agent_does_not_find_itself)
{
    struct stage s;
    struct eyes eyes = {
        .user = STR("anna"), .org = STR("acme"), .self = STR("Subject-P")};

    stage_open(&s);
    make_subjects(&s);
    eyes.now_ms = s.now_ms;
    CHECK_INT(stage_search(&s, &eyes, "quokka").n, 0);
    CHECK_INT(stage_search(&s, &eyes, "wombat").n, 1);
    stage_close(&s);
}

TEST(what_a_user_shares_goes_with_them_to_another_org)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"quokka\",\"visibility\":\"shared\"}") == OK);
    CHECK(stage_put(&s, &stage_admin,
                    "{\"name\":\"quokka-2\",\"visibility\":\"shared\","
                    "\"creator_id\":\"anna\",\"org\":\"acme\"}") == OK);
    CHECK(stage_find(&s, &stage_bob, "quokka"));
    CHECK(!stage_find(&s, &stage_carl, "quokka"));
    s.orgs[0].org = "zeta";
    registry_user_moved(s.r, STR("anna"));
    for (int i = 0; i < 3; i++) {
        struct eyes bob = eyes_of(&stage_bob, s.now_ms);
        struct eyes carl = eyes_of(&stage_carl, s.now_ms);

        CHECK(!stage_find(&s, &stage_bob, "quokka"));
        CHECK(stage_find(&s, &stage_carl, "quokka"));
        CHECK(stage_find(&s, &stage_bob, "quokka-2")); /* has one of its own */
        CHECK(strcmp(stage_search(&s, &bob, "quokka").names, "quokka-2 ") == 0);
        CHECK(strcmp(stage_search(&s, &carl, "quokka").names, "quokka ") == 0);
        stage_check(&s);
        stage_restart(&s, i == 1);
    }
    /* Moved while the server was down: the snapshot does not know it. */
    registry_stop(s.r);
    stage_end(&s);
    s.orgs[0].org = "acme";
    CHECK(stage_start(&s) == OK);
    CHECK(stage_find(&s, &stage_bob, "quokka"));
    CHECK_INT(stage_search(&s,
                           &(struct eyes){.user = STR("bob"),
                                          .org = STR("acme"),
                                          .now_ms = s.now_ms},
                           "quokka")
                  .n,
              2);
    stage_close(&s);
}

TEST(an_org_that_changes_while_a_card_is_on_its_way_counts)
{
    struct stage s;
    struct registry_by by;
    struct registry_change c;
    struct eyes carl;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    carl = eyes_of(&stage_carl, s.now_ms);
    CHECK(stage_begin_put(&s, &c, "",
                          "{\"name\":\"quokka\",\"visibility\":\"shared\"}",
                          &by) == OK);
    s.orgs[0].org = "zeta";
    registry_user_moved(s.r, STR("anna"));
    CHECK(stage_commit(&s, &c, OK) == OK);
    CHECK(stage_find(&s, &stage_carl, "quokka"));
    CHECK_INT(stage_search(&s, &carl, "quokka").n, 1);
    CHECK(!stage_find(&s, &stage_bob, "quokka"));
    stage_close(&s);
}

/* Grants. */

static void open_with_shared(struct stage *s)
{
    stage_open(s);
    CHECK(stage_put(s, &stage_anna,
                    "{\"name\":\"quokka\",\"visibility\":\"shared\"}") == OK);
}

TEST(a_grant_opens_a_shared_agent_until_it_is_taken_back)
{
    struct stage s;
    struct id id;

    open_with_shared(&s);
    CHECK(!stage_find(&s, &stage_carl, "quokka"));
    CHECK(stage_grant(&s, &stage_anna, "QUOKKA", "carl", "", 0) == OK);
    CHECK(id_is_valid(str_of(s.grant_id.text), "grant"));
    id = s.grant_id;
    CHECK(stage_find(&s, &stage_carl, "quokka"));
    CHECK_INT(s.revision, 1); /* of the card, which is unchanged */
    stage_restart(&s, false);
    CHECK(stage_find(&s, &stage_carl, "quokka"));
    CHECK(stage_ungrant(&s, &stage_bob, id.text) == ERR_NOT_FOUND);
    CHECK(stage_ungrant(&s, &stage_carl, id.text) == ERR_NOT_FOUND);
    CHECK(stage_ungrant(&s, &stage_anna, id.text) == OK);
    CHECK(!stage_find(&s, &stage_carl, "quokka"));
    CHECK(stage_ungrant(&s, &stage_anna, id.text) == ERR_NOT_FOUND);
    CHECK_INT(registry_stats(s.r).grants, 0);
    stage_close(&s);
}

TEST(the_same_grant_again_changes_its_expiry_and_nothing_else)
{
    struct stage s;
    struct id id;
    size_t n_feed;

    open_with_shared(&s);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", 0) == OK);
    id = s.grant_id;
    n_feed = stage_feed(&s, NULL);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", 0) == OK);
    CHECK(s.is_same && strcmp(s.grant_id.text, id.text) == 0);
    CHECK_INT(stage_feed(&s, NULL), n_feed);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", s.now_ms + 9) ==
          OK);
    CHECK(!s.is_same && strcmp(s.grant_id.text, id.text) == 0);
    CHECK_INT(stage_feed(&s, NULL), n_feed + 1);
    CHECK_INT(stage_find(&s, NULL, "quokka")->n_grants, 1);
    CHECK(stage_find(&s, &stage_carl, "quokka"));
    s.now_ms += 9;
    CHECK(!stage_find(&s, &stage_carl, "quokka"));
    stage_close(&s);
}

TEST(a_grant_must_make_sense)
{
    struct stage s;

    open_with_shared(&s);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "", "", 0) == ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "a", "b", 0) ==
          ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "a b", "", 0) ==
          ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "", "-x", 0) ==
          ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", s.now_ms) ==
          ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", -1) ==
          ERR_BAD_REQUEST);
    CHECK(stage_grant(&s, &stage_anna, "missing", "carl", "", 0) ==
          ERR_NOT_FOUND);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "c@rl.-_", "", 0) == OK);
    stage_close(&s);
}

TEST(grants_outlive_a_new_card_and_go_with_the_agent)
{
    struct stage s;

    open_with_shared(&s);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "carl", "", 0) == OK);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"quokka\"}") == OK);
    CHECK(stage_patch(&s, &stage_anna, "quokka", "{\"title\":\"x\"}") == OK);
    CHECK(stage_find(&s, &stage_carl, "quokka"));
    CHECK(stage_patch(&s, &stage_anna, "quokka",
                      "{\"visibility\":\"private\"}") == OK);
    CHECK(!stage_find(&s, &stage_carl, "quokka")); /* kept, and closed */
    CHECK_INT(stage_find(&s, NULL, "quokka")->n_grants, 1);
    stage_restart(&s, false);
    CHECK_INT(stage_find(&s, NULL, "quokka")->n_grants, 1);
    CHECK(stage_remove(&s, &stage_anna, "quokka") == OK);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"quokka\",\"visibility\":\"shared\"}") == OK);
    CHECK(!stage_find(&s, &stage_carl, "quokka"));
    stage_close(&s);
}

TEST(there_is_a_limit_to_the_grants_of_an_agent)
{
    struct stage s;
    char name[32];

    open_with_shared(&s);
    for (int i = 0; i < AGENT_GRANTS_MAX; i++) {
        snprintf(name, sizeof(name), "u%d", i);
        CHECK(stage_grant(&s, &stage_anna, "quokka", name, "",
                          i < 2 ? s.now_ms + 5 : 0) == OK);
    }
    CHECK(stage_grant(&s, &stage_anna, "quokka", "more", "", 0) == ERR_LIMIT);
    s.now_ms += 5; /* expired grants make room */
    CHECK(stage_grant(&s, &stage_anna, "quokka", "more", "", 0) == OK);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "", "more", 0) == OK);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "yet", "", 0) == ERR_LIMIT);
    CHECK_INT(registry_stats(s.r).grants, AGENT_GRANTS_MAX);
    stage_restart(&s, false);
    CHECK_INT(registry_stats(s.r).grants, AGENT_GRANTS_MAX);
    stage_close(&s);
}

TEST(grants_that_expired_long_ago_are_pruned)
{
    struct stage s;
    struct tx tx;

    open_with_shared(&s);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "a", "", s.now_ms + 1) == OK);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "b", "", s.now_ms + 2) == OK);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "c", "", s.now_ms + 3) == OK);
    CHECK(stage_grant(&s, &stage_anna, "quokka", "d", "", 0) == OK);
    tx_init(&tx);
    registry_prune(s.r, &tx, s.now_ms + 3, 1);
    CHECK_INT(registry_stats(s.r).grants, 2);
    stage_check(&s); /* also before, and whatever becomes of it */
    store_submit(s.store, &tx, stage_on_done, NULL);
    store_turn(s.store);
    CHECK(tx.result == TX_COMMITTED && tx.first->n_rows == 1);
    tx_fini(&tx);
    stage_check(&s);
    stage_restart(&s, false);
    CHECK_INT(registry_stats(s.r).grants, 3);
    stage_close(&s);
}
