/* The last admin stays, whatever happens at once. */
#include "test/lib/access_stage.h"

TEST(the_last_admin_stays)
{
    struct stage s;
    struct access_token t;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "user", ROLE_USER) == OK);
    CHECK(stage_token(&s, "user", 0, 0, &t, NULL) == OK);
    CHECK(stage_remove(&s, "admin") == ERR_NOT_ALLOWED);
    CHECK(stage_role(&s, "admin", ROLE_USER) == ERR_NOT_ALLOWED);
    CHECK(strstr(s.why.text, "last admin"));
    CHECK(stage_role(&s, "admin", ROLE_ADMIN) == OK);
    CHECK(stage_org(&s, "admin", "acme") == OK);
    CHECK(stage_user(&s, "Second", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "second", 0, 0, &t, NULL) == OK);
    CHECK(stage_remove(&s, "admin") == OK);
    CHECK(stage_role(&s, "second", ROLE_AGENT) == ERR_NOT_ALLOWED);
    CHECK(stage_role(&s, "user", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "user", 0, 0, &t, NULL) == OK);
    CHECK(stage_role(&s, "second", ROLE_AGENT) == OK);
    stage_restart(&s);
    CHECK(stage_remove(&s, "user") == ERR_NOT_ALLOWED);
    CHECK(stage_remove(&s, "second") == OK);
    stage_close(&s);
}

TEST(an_admin_who_cannot_call_as_one_does_not_count)
{
    struct stage s;
    struct access_token admin, t;
    struct id id;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_remove(&s, "admin") == ERR_NOT_ALLOWED); /* no token */
    CHECK(stage_token(&s, "anna", SCOPE_ALL & ~SCOPE_ADMIN, 0, &t, NULL) == OK);
    CHECK(stage_remove(&s, "admin") == ERR_NOT_ALLOWED); /* allows too little */
    CHECK(strstr(s.why.text, "no other admin has"));
    CHECK(stage_token(&s, "anna", 0, s.now_ms + 10, &t, NULL) == OK);
    s.now_ms += 10;
    CHECK(stage_role(&s, "admin", ROLE_USER) == ERR_NOT_ALLOWED); /* expired */
    CHECK(stage_token(&s, "anna", SCOPE_ADMIN, 0, &t, &id) == OK);
    CHECK(stage_revoke(&s, &id) == OK);
    stage_restart(&s);
    CHECK(stage_remove(&s, "admin") == ERR_NOT_ALLOWED); /* revoked */
    CHECK(stage_remove(&s, "anna") ==
          OK); /* she does not count, so she may go */
    CHECK(stage_user(&s, "bob", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "bob", SCOPE_ADMIN, s.now_ms + 1, &t, NULL) == OK);
    CHECK(stage_remove(&s, "admin") == OK); /* it is good for this moment */
    stage_close(&s);
}

static bool is_last(struct stage *s, const struct id *id,
                    const struct caller *by)
{
    return access_revokes_last_admin(s->a, str_of(id->text), by, s->now_ms);
}

TEST(the_last_token_of_an_admin_is_known)
{
    struct stage s;
    struct access_token t, other;
    struct caller first, anna;
    struct id second, small, hers;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK && !stage_judge(&s, &t, &first));
    CHECK(is_last(&s, &first.token_id, &first));
    fault_arm_at("access.last_is_like_any", 1); /* which is noticed */
    CHECK(!is_last(&s, &first.token_id, &first));
    fault_arm(0);
    CHECK(stage_token(&s, "admin", SCOPE_SEND, 0, &other, &small) == OK);
    CHECK(is_last(&s, &first.token_id, &first)); /* that one does not count */
    CHECK(!is_last(&s, &small, &first));
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &other, &hers) == OK);
    CHECK(!stage_judge(&s, &other, &anna));
    CHECK(!is_last(&s, &first.token_id, &anna)); /* it is not hers to revoke */
    CHECK(!is_last(&s, &hers, &anna));
    CHECK(stage_token(&s, "admin", 0, s.now_ms + 10, &other, &second) == OK);
    CHECK(!is_last(&s, &first.token_id, &first));
    CHECK(!is_last(&s, &second, &first));
    s.now_ms += 10; /* it has expired */
    CHECK(is_last(&s, &first.token_id, &first));
    CHECK(!is_last(&s, &second, &first));
    stage_close(&s);
}

TEST(the_admins_are_told_and_how_many_they_are)
{
    struct stage s;
    struct access_token t;
    struct access_user u[2];

    stage_open(&s);
    CHECK_INT(access_admins(s.a, u, 2), 0);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_user(&s, "Bob", ROLE_ADMIN) == OK);
    CHECK_INT(access_admins(s.a, NULL, 0), 2);
    CHECK_INT(access_admins(s.a, u, 1), 2);
    CHECK(strcmp(u[0].name, "admin") == 0);
    CHECK(stage_role(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_remove(&s, "bob") == OK);
    CHECK_INT(access_admins(s.a, u, 2), 2);
    CHECK(strcmp(u[1].name, "anna") == 0 && u[1].role == ROLE_ADMIN);
    CHECK(stage_role(&s, "anna", ROLE_USER) == OK);
    CHECK_INT(access_admins(s.a, u, 2), 1);
    stage_close(&s);
}

TEST(the_last_two_admins_cannot_both_go_at_once)
{
    static const struct {
        enum role a, b; /* zero: removed */
    } ways[] = {
        {0, 0}, {0, ROLE_USER}, {ROLE_USER, 0}, {ROLE_USER, ROLE_AGENT}};

    for (size_t i = 0; i < 4; i++) {
        struct stage s;
        struct access_token t, annas;
        struct access_change a, b;

        stage_open(&s);
        CHECK(stage_first_admin(&s, &t) == OK);
        CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
        CHECK(stage_token(&s, "anna", 0, 0, &annas, NULL) == OK);
        CHECK(stage_begin(&s, &a, "admin", ways[i].a) == OK);
        CHECK(stage_begin(&s, &b, "anna", ways[i].b) == ERR_NOT_ALLOWED);
        access_change_fini(&b);
        /* The first comes to nothing: now the other may. */
        CHECK(access_settle(s.a, &a, &s.why) != OK);
        access_change_fini(&a);
        CHECK(stage_begin(&s, &b, "anna", ways[i].b) == OK);
        CHECK(stage_begin(&s, &a, "admin", ways[i].a) == ERR_NOT_ALLOWED);
        access_change_fini(&a);
        CHECK(stage_commit(&s, &b, OK) == OK);
        CHECK(stage_begin(&s, &a, "admin", ways[i].a) == ERR_NOT_ALLOWED);
        access_change_fini(&a);
        CHECK(stage_is_good(&s, &t));
        stage_close(&s);
    }
}

/* A promotion counts once it is there, and cannot be taken back unseen in the
 * meantime. */
TEST(an_admin_who_is_only_being_made_does_not_count)
{
    struct stage s;
    struct access_token t;
    struct access_change up, down, other;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &t) == OK);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_token(&s, "anna", 0, 0, &t, NULL) == OK);
    CHECK(stage_role(&s, "anna", ROLE_USER) == OK);
    CHECK(stage_begin(&s, &up, "anna", ROLE_ADMIN) == OK);
    CHECK(stage_begin(&s, &down, "admin", ROLE_USER) == ERR_NOT_ALLOWED);
    access_change_fini(&down);
    CHECK(stage_begin(&s, &other, "ANNA", ROLE_USER) == ERR_BUSY);
    access_change_fini(&other);
    CHECK(stage_commit(&s, &up, OK) == OK);
    CHECK(stage_begin(&s, &down, "admin", ROLE_USER) == OK);
    CHECK(stage_begin(&s, &other, "anna", ROLE_USER) == ERR_NOT_ALLOWED);
    access_change_fini(&other);
    CHECK(stage_commit(&s, &down, OK) == OK);
    stage_close(&s);
}

/* Such a token does not protect the next admin who goes. */
TEST(an_admin_s_token_on_its_way_in_or_out_does_not_count)
{
    struct stage s;
    struct access_token admin, t;
    struct access_change token, gone[2], down;

    stage_open(&s);
    CHECK(stage_first_admin(&s, &admin) == OK);
    CHECK(stage_user(&s, "anna", ROLE_ADMIN) == OK);
    access_change_init(&token);
    CHECK(access_token_create(s.a, &token, STR("anna"), 0, STR(""), 0, STR("x"),
                              s.now_ms, &t, &s.why) == OK);
    CHECK(stage_begin(&s, &down, "admin", ROLE_USER) == ERR_NOT_ALLOWED);
    access_change_fini(&down);
    for (int i = 0; i < 2; i++)
        access_change_init(&gone[i]);
    stage_submit(&s, &token);
    store_turn(s.store);
    CHECK(access_settle(s.a, &token, &s.why) == OK);
    for (int i = 0; i < 2; i++)
        CHECK(access_token_revoke(s.a, &gone[i], str_of(token.token_id.text),
                                  &stage_admin, s.now_ms, &s.why) == OK);
    for (int i = 0; i < 2; i++) {
        CHECK(stage_begin(&s, &down, "admin", 0) == ERR_NOT_ALLOWED);
        access_change_fini(&down);
        CHECK(access_settle(s.a, &gone[i], &s.why) != OK); /* to nothing */
        access_change_fini(&gone[i]);
    }
    CHECK(stage_is_good(&s, &t));
    CHECK(stage_begin(&s, &down, "admin", 0) == OK);
    CHECK(stage_commit(&s, &down, OK) == OK);
    access_change_fini(&token);
    stage_close(&s);
}
