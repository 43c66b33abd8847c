#include "model/task.h"
#include "test/t.h"

TEST(every_status_has_a_name_and_is_found_by_it)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++) {
        struct str name = task_status_name((enum task_status)s);

        CHECK(name.n > 0 && task_status_of(name) == s);
    }
    CHECK(task_status_name(0).n == 0);
    CHECK(task_status_name((enum task_status)N_TASK_STATUS).n == 0);
    CHECK(task_status_of(STR("")) == 0 && task_status_of(STR("done")) == 0);
}

TEST(what_is_over_goes_on_only_with_a_further_turn)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++)
        for (unsigned to = 1; to < N_TASK_STATUS; to++)
            if (task_is_over((enum task_status)s))
                CHECK(
                    task_may_move((enum task_status)s, (enum task_status)to) ==
                    (to == TASK_QUEUED && s != TASK_DROPPED));
}

/* A person or a deadline can end any task that has not ended. */
TEST(what_is_not_over_can_be_ended)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++)
        if (!task_is_over((enum task_status)s)) {
            CHECK(task_may_move((enum task_status)s, TASK_CANCELLED));
            CHECK(task_may_move((enum task_status)s, TASK_EXPIRED));
            CHECK(task_may_move((enum task_status)s, TASK_FAILED));
        }
}

TEST(nothing_moves_to_where_it_is_and_nothing_back_to_accepted)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++) {
        CHECK(!task_may_move((enum task_status)s, (enum task_status)s));
        CHECK(!task_may_move((enum task_status)s, TASK_ACCEPTED));
    }
}

TEST(only_what_a_restart_forgets_is_not_written_down)
{
    for (unsigned s = 1; s < N_TASK_STATUS; s++)
        CHECK(task_move_is_durable((enum task_status)s) ==
              (s != TASK_DISPATCHED && s != TASK_WORKING));
}

TEST(every_priority_has_a_name_and_is_found_by_it)
{
    enum task_priority p = PRIORITY_HIGH;

    for (unsigned i = 0; i <= PRIORITY_LOW; i++) {
        CHECK(task_priority_of(task_priority_name((enum task_priority)i), &p));
        CHECK_INT(p, i);
    }
    p = PRIORITY_HIGH;
    CHECK(!task_priority_of(STR("urgent"), &p) && p == PRIORITY_HIGH);
}
