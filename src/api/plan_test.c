/* Lists are read along an index, however many other rows there are. */
#include "access/access.h"
#include "choose/layers/choose.h"
#include "delegation/delegation.h"
#include "task/task.h"
#include "test/lib/folder.h"
#include "test/lib/plan.h"
#include "watch/watch.h"

enum {
    MINE = 1,
    WITH_STATUS = 2,
    WITH_AGENT = 4,
    WITH_CONVERSATION = 8,
    WITH_CURSOR = 16,
    ALL_WAYS = 32,
};

static char root[64], path[128];

static void remove_root(void)
{
    folder_remove(root);
}

static void make_database(void)
{
    static const struct schema *const schemas[] = {
        &task_schema, &access_schema, &watch_schema, &choose_schema,
        &delegation_schema};
    struct store_opts opts = {.folder = root,
                              .schemas = schemas,
                              .n_schemas = 5,
                              .max_waiting = 1,
                              .is_inline = true};
    struct store *s;

    snprintf(root, sizeof(root), "%s/signalbox-test-XXXXXX", t_above());
    CHECK(mkdtemp(root));
    atexit(remove_root);
    snprintf(path, sizeof(path), "%s/%s", root, DB_NAME);
    CHECK(store_open(&s, &opts, NULL) == OK);
    store_close(s);
}

/* Check that the plan is quick and uses those indexes (NULL: any). */
static void check_plan(struct query *q, const char *index,
                       const char *other_index)
{
    char plan[PLAN_BYTES];

    plan_of(path, q, plan);
    if (!plan_is_quick(plan) || (index && !strstr(plan, index)) ||
        (other_index && !strstr(plan, other_index)))
        T_FAIL("%s and %s: %s", index ? index : "", other_index, plan);
    query_fini(q);
}

/* As api/tasks.c asks. */
static void ask_for_tasks(struct query *q, unsigned ways)
{
    static const uint8_t whose[] = {TASK_REQUESTER, TASK_ROOT_USER};

    query_init(q, &task_table, 50);
    if (ways & MINE)
        query_if_any(q, whose, ways & WITH_CONVERSATION ? 1 : 2, IS,
                     value_text(STR("anna")));
    if (ways & WITH_STATUS)
        query_if(q, TASK_STATUS, IS, value_int(TASK_FAILED));
    if (ways & WITH_AGENT)
        query_if(q, TASK_AGENT, IS, value_text(STR("echo")));
    if (ways & WITH_CONVERSATION)
        query_if(q, TASK_CONVERSATION_ID, IS, value_text(STR("c")));
    if (ways & WITH_CURSOR)
        query_if(q, TASK_SEQ, IS_LESS, value_int(1000));
    query_order(q, TASK_SEQ, true);
}

TEST(the_list_of_ones_own_tasks_is_read_along_two_indexes)
{
    struct query q;

    make_database();
    for (unsigned ways = 0; ways < ALL_WAYS; ways++) {
        if (!(ways & MINE))
            continue;
        ask_for_tasks(&q, ways);
        if (ways & WITH_CONVERSATION)
            check_plan(&q, "INDEX task_by_requester_conversation", NULL);
        else
            check_plan(&q, "INDEX task_by_requester (",
                       "INDEX task_by_root_user (");
    }
}

/* Only for admins: from the newest on, and nothing is sorted. */
TEST(the_list_of_all_tasks_is_read_along_the_key)
{
    char plan[PLAN_BYTES];
    struct query q;

    make_database();
    for (unsigned ways = 0; ways < ALL_WAYS; ways++) {
        if (ways & MINE)
            continue;
        ask_for_tasks(&q, ways);
        plan_of(path, &q, plan);
        if (strstr(plan, "TEMP B-TREE") || strstr(plan, "INDEX") ||
            (ways & WITH_CURSOR && !strstr(plan, "INTEGER PRIMARY KEY")))
            T_FAIL("%u: %s", ways, plan);
        query_fini(&q);
    }
}

/* As api/tasks.c asks for an unfinished status. */
TEST(the_list_of_unfinished_tasks_is_read_along_an_index)
{
    struct query q;

    make_database();
    ask_for_tasks(&q, WITH_CURSOR);
    query_if(&q, TASK_STATUS, IS, value_int(TASK_QUEUED));
    query_if(&q, TASK_FINISHED_MS, IS, value_null());
    check_plan(&q, "INDEX task_by_end", NULL);
}

TEST(tokens_are_listed_along_an_index)
{
    struct query q;

    make_database();
    for (int ways = 0; ways < 4; ways++) {
        query_init(&q, &token_table, 50);
        if (ways & 1)
            query_if(&q, TOKEN_ID, IS_MORE, value_text(STR("tok_x")));
        query_order(&q, TOKEN_ID, false);
        query_if(&q, TOKEN_REVOKED_MS, IS, value_null());
        if (ways & 2)
            query_if(&q, TOKEN_USER, IS, value_text(STR("anna")));
        check_plan(&q, ways & 2 ? "INDEX token_by_user" : "token_by_revocation",
                   NULL);
    }
}

TEST(ones_own_feed_is_read_along_a_stretch_of_the_key)
{
    static const uint8_t whose[] = {FEED_REQUESTER, FEED_ROOT_USER};
    struct query q;

    make_database();
    query_init(&q, &feed_table, 50);
    query_if(&q, FEED_SEQ, IS_MORE, value_int(1));
    query_if(&q, FEED_SEQ, IS_AT_MOST, value_int(1000));
    query_if_any(&q, whose, 2, IS, value_text(STR("anna")));
    query_order(&q, FEED_SEQ, false);
    check_plan(&q, "INTEGER PRIMARY KEY", NULL);
}

TEST(a_list_without_an_index_is_found_out)
{
    char plan[PLAN_BYTES];
    struct query q;

    make_database();
    query_init(&q, &task_table, 50);
    query_if(&q, TASK_AGENT, IS, value_text(STR("echo")));
    query_order(&q, TASK_DEPTH, true);
    plan_of(path, &q, plan);
    CHECK(!plan_is_quick(plan) && strstr(plan, "TEMP B-TREE"));
    query_fini(&q);
    query_init(&q, &task_table, 50);
    query_if(&q, TASK_DEPTH, IS, value_int(1));
    query_order(&q, TASK_SEQ, true);
    plan_of(path, &q, plan);
    CHECK(!plan_is_quick(plan) && strstr(plan, "SCAN"));
    query_fini(&q);
}

/* As api/trees.c asks; an admin's along the key. */
TEST(ones_own_trees_are_listed_along_an_index)
{
    char plan[PLAN_BYTES];

    make_database();
    for (int ways = 0; ways < 4; ways++) {
        struct query q;

        query_init(&q, &tree_table, 50);
        if (ways & 1)
            query_if(&q, TREE_ROOT_ID, IS_LESS, value_text(STR("task_x")));
        query_order(&q, TREE_ROOT_ID, true);
        if (ways & 2) {
            query_if(&q, TREE_ROOT_USER, IS, value_text(STR("anna")));
            check_plan(&q, "INDEX tree_by_user", NULL);
            continue;
        }
        plan_of(path, &q, plan);
        CHECK(!strstr(plan, "TEMP B-TREE"));
        query_fini(&q);
    }
}

/* As api/decisions.c asks. An admin's list goes through them from the
 * newest. */
TEST(ones_own_decisions_are_listed_along_an_index)
{
    make_database();
    for (unsigned ways = 0; ways < ALL_WAYS; ways++) {
        struct query q;

        query_init(&q, &decision_table, 50);
        query_if(&q, DECISION_REQUESTER, IS, value_text(STR("anna")));
        if (ways & WITH_STATUS)
            query_if(&q, DECISION_VERDICT, IS, value_null());
        if (ways & WITH_AGENT)
            query_if(&q, DECISION_AGENT, IS, value_text(STR("echo")));
        if (ways & WITH_CONVERSATION)
            query_if(&q, DECISION_CONVERSATION_ID, IS, value_text(STR("c")));
        if (ways & WITH_CURSOR)
            query_if(&q, DECISION_SEQ, IS_LESS, value_int(1000));
        query_order(&q, DECISION_SEQ, true);
        check_plan(&q,
                   ways & WITH_CONVERSATION ? "decision_conversation"
                                            : "decision_requester",
                   NULL);
    }
}
