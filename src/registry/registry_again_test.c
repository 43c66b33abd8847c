/* A removed name and a changed org that come back. */
#include "test/lib/registry_stage.h"

/* A client that read the first "echo" must not write to the second with its
 * ETag. */
TEST(a_name_that_is_taken_again_has_no_revision_that_it_had_before)
{
    struct stage s;
    struct registry_by by;
    int64_t last;

    stage_open(&s);
    by = stage_by(&s, &stage_anna);
    CHECK(stage_put(&s, &stage_anna, "{\"name\":\"echo\"}") == OK);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"title\":\"2\"}") == OK);
    last = s.revision;
    for (int i = 0; i < 3; i++) {
        CHECK(stage_remove(&s, &stage_anna, "echo") == OK);
        if (i == 1)
            stage_restart(&s, false);
        CHECK(stage_put(&s, &stage_anna, "{\"name\":\"Echo\"}") == OK);
        CHECK(s.is_new && s.revision > last);
        for (by.if_revision = 1; by.if_revision <= last; by.if_revision++)
            CHECK(stage_put_if(&s, "Echo", "{\"title\":\"stale\"}", &by) ==
                  ERR_PRECONDITION);
        by.if_revision = last = s.revision;
        CHECK(stage_put_if(&s, "Echo", "{\"title\":\"fresh\"}", &by) == OK);
        CHECK_INT(s.revision, last + 1);
        last = s.revision;
    }
    stage_close(&s);
}

TEST(an_admin_takes_an_org_back_and_it_is_the_creators_again)
{
    struct stage s;

    stage_open(&s);
    CHECK(stage_put(&s, &stage_anna,
                    "{\"name\":\"echo\",\"visibility\":\"shared\"}") == OK);
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"org\":\"zeta\"}") == OK);
    CHECK(!stage_find(&s, &stage_bob, "echo"));
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"org\":null}") == OK);
    CHECK(s.is_same);
    CHECK(stage_patch(&s, &stage_anna, "echo", "{\"org\":\"\"}") ==
          ERR_NOT_ALLOWED);
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"org\":\"\"}") == OK);
    CHECK(!s.is_same && stage_find(&s, &stage_bob, "echo"));
    CHECK(!stage_find(&s, &stage_carl, "echo"));
    CHECK(stage_patch(&s, &stage_admin, "echo", "{\"org\":\"\"}") == OK);
    CHECK(s.is_same);
    s.orgs[0].org = "zeta"; /* and goes with its creator */
    registry_user_moved(s.r, STR("anna"));
    CHECK_STR(stage_find(&s, &stage_carl, "echo")->org, "zeta");
    stage_restart(&s, false);
    CHECK_STR(stage_find(&s, &stage_carl, "echo")->org, "zeta");
    stage_close(&s);
}
