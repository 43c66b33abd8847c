/* Every step fails once, the store's included: what was settled as done is so
 * after a restart, and what was not is not. */
#include "test/lib/access_stage.h"

/* What each step of the story came to. */
struct story {
    enum err admin, anna, bob, clerk, owned, kept, lost, revoked, bobs, clerks;
    enum err removed, demoted;
    struct access_token admin_token, kept_token, lost_token, bobs_token;
    struct access_token clerks_token;
};

static void tell(struct stage *s, struct story *y)
{
    struct id id;

    y->admin = stage_first_admin(s, &y->admin_token);
    y->anna = stage_user(s, "Anna", ROLE_ADMIN);
    y->bob = stage_make(s, "bob", ROLE_USER, "acme", NULL);
    y->clerk = stage_user(s, "clerk", ROLE_AGENT);
    y->owned = stage_owner(s, "clerk", "bob");
    y->kept = stage_token(s, "anna", 0, 0, &y->kept_token, NULL);
    y->lost = stage_token(s, "anna", 0, 0, &y->lost_token, &id);
    y->bobs = stage_token(s, "bob", 0, 0, &y->bobs_token, NULL);
    y->clerks = stage_token(s, "clerk", 0, 0, &y->clerks_token, NULL);
    y->revoked = stage_revoke(s, &id);
    y->removed = stage_remove(s, "bob");
    y->demoted = stage_role(s, "anna", ROLE_USER);
}

/* Judge; where the fault hits this very step, once more. */
static enum err judge(struct stage *s, const struct access_token *t,
                      struct caller *c)
{
    enum err e = stage_judge(s, t, c);

    if (e != ERR_NOMEM)
        return e;
    CHECK(fault_fired() && !c->token_id.text[0]);
    return stage_judge(s, t, c);
}

/* What a token must be: `made` and `ended` are what its making and its end
 * came to. With an unknown outcome memory stays as it was, and a restart may
 * show either. */
static void expect_token(struct stage *s, const struct access_token *t,
                         enum err made, enum err ended, bool after_restart)
{
    struct caller c;
    bool is_good = judge(s, t, &c) == OK;

    if (after_restart &&
        (made == ERR_OUTCOME_UNKNOWN || ended == ERR_OUTCOME_UNKNOWN))
        return;
    if (is_good != (made == OK && ended != OK))
        T_FAIL("fault at %s: made %d, ended %d, %s restart: good is %d",
               fault_name(), made, ended, after_restart ? "after" : "before",
               is_good);
}

/* Bob's agent ends with Bob, if it ever was his; and of Bob the org is known
 * whatever became of him. */
static void expect_owned(struct stage *s, const struct story *y,
                         bool after_restart)
{
    struct access_user u;

    if (y->owned != ERR_OUTCOME_UNKNOWN)
        expect_token(s, &y->clerks_token, y->clerks,
                     y->owned == OK ? y->removed : ERR_NOT_FOUND,
                     after_restart);
    if (y->clerk == OK && y->owned != ERR_OUTCOME_UNKNOWN) {
        CHECK(access_user_find(s->a, STR("clerk"), &u));
        CHECK_STR(str_of(u.owner), y->owned ? "" : "bob");
        CHECK_STR(str_of(u.org), y->owned ? "" : "acme");
    }
    if (y->bob == OK)
        CHECK_STR(access_org_of(s->a, STR("BOB")), "acme");
}

static void expect_story(struct stage *s, const struct story *y,
                         bool after_restart)
{
    struct caller c;
    struct access_user u;

    expect_token(s, &y->admin_token, y->admin, ERR_NOT_FOUND, after_restart);
    expect_token(s, &y->kept_token, y->kept, ERR_NOT_FOUND, after_restart);
    expect_token(s, &y->lost_token, y->lost, y->revoked, after_restart);
    expect_token(s, &y->bobs_token, y->bobs, y->removed, after_restart);
    expect_owned(s, y, after_restart);
    if (y->demoted == OK && y->kept == OK) {
        CHECK(judge(s, &y->kept_token, &c) == OK);
        CHECK(c.role == ROLE_USER && !(c.scopes & SCOPE_ADMIN));
        CHECK_STR(caller_name(&c), "Anna");
    }
    if (y->bob == OK && y->removed != ERR_OUTCOME_UNKNOWN)
        CHECK(access_user_find(s->a, STR("bob"), &u) == (y->removed != OK));
    if (y->removed == OK)
        CHECK(stage_user(s, "BOB", ROLE_USER) != OK);
    CHECK(access_is_new(s->a) == (access_stats(s->a).users == 0));
}

TEST(every_fault_leaves_what_was_settled_and_nothing_else)
{
    long nth = 0;
    bool fired;

    do {
        struct stage s;
        struct story y;

        stage_prepare(&s);
        fault_arm(nth += T_SWEEP_STEP);
        if (stage_start(&s) != OK) {
            CHECK(fault_fired());
            stage_end(&s);
            CHECK(stage_start(&s) == OK);
        }
        tell(&s, &y);
        expect_story(&s, &y, false);
        stage_end(&s);
        if (stage_start(&s) != OK) {
            CHECK(fault_fired());
            stage_end(&s);
            CHECK(stage_start(&s) == OK);
        }
        expect_story(&s, &y, true);
        fired = fault_fired();
        if (!fired)
            CHECK(y.admin == OK && y.anna == OK && y.bob == OK &&
                  y.kept == OK && y.lost == OK && y.revoked == OK &&
                  y.bobs == OK && y.clerk == OK && y.owned == OK &&
                  y.clerks == OK && y.removed == OK && y.demoted == OK);
        stage_close(&s);
    } while (fired);
    CHECK(nth > 100); /* the sweep met the steps it is for */
}

TEST(a_hash_that_cannot_be_made_judges_nobody)
{
    struct stage s;
    struct access_token t;
    struct caller c;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    fault_arm_at("access.hash", 1);
    CHECK(stage_judge(&s, &t, &c) == ERR_NOMEM && !c.token_id.text[0]);
    CHECK(stage_judge(&s, &t, &c) == OK);
    stage_close(&s);
}

TEST(a_store_that_has_failed_changes_nothing_in_memory)
{
    struct stage s;
    struct access_token admin, t, other;
    struct id id;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_token(&s, "admin", 0, 0, &t, &id) == OK);
    fault_arm_at("store.sync", 1);
    CHECK(stage_revoke(&s, &id) == ERR_OUTCOME_UNKNOWN);
    CHECK(fault_fired() && s.n_revoked == 0 && stage_is_good(&s, &t));
    CHECK(stage_token(&s, "admin", 0, 0, &other, NULL) == ERR_OUTCOME_UNKNOWN);
    CHECK(!stage_is_good(&s, &other));
    CHECK(stage_user(&s, "anna", ROLE_USER) == ERR_OUTCOME_UNKNOWN);
    CHECK_INT(access_stats(s.a).users, 1);
    stage_close(&s);
}

TEST(a_full_disk_refuses_and_holds_no_claim)
{
    struct stage s;
    struct access_token admin, t;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == ERR_NO_SPACE);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_remove(&s, "anna") == ERR_NO_SPACE);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_role(&s, "anna", ROLE_USER) == ERR_NO_SPACE);
    fault_arm_at("store.op.full", 1);
    CHECK(stage_token(&s, "anna", 0, 0, &t, NULL) == ERR_NO_SPACE);
    CHECK(!stage_is_good(&s, &t));
    CHECK(stage_remove(&s, "anna") == OK);
    stage_close(&s);
}
