/* Trees built from rows in any order, and their JSON. */
#include "speak/tree.h"

#include <stdio.h>

#include "speak/speak.h"
#include "test/t.h"

static struct tree_task list[TREE_TASKS_MAX];
static size_t n;
static char ids[TREE_TASKS_MAX][16];
static struct buf out;
static struct arena arena;

static struct str name_of(int i)
{
    snprintf(ids[i], sizeof(ids[i]), "task_%03d", i);
    return str_of(ids[i]);
}

/* Task i is a child of `parent`; -1: of none. */
static struct tree_task *plant(int i, int parent)
{
    struct tree_task *x = &list[n++];

    *x = (struct tree_task){
        .t = {.id = id_from(name_of(i)),
              .parent_id = parent < 0 ? STR("") : name_of(parent),
              .agent = STR("a"),
              .root_user = STR("anna"),
              .status = TASK_COMPLETED,
              .turn = 1,
              .created_ms = 1000 + i,
              .started_ms = 1100 + i,
              .finished_ms = 2000 + i,
              .price_micros = 1 << (i % 8)},
        .captured_micros = 1 << (i % 8),
        .mode = parent < 0 ? 0 : DELEGATION_SYNC,
        .is_asked_for = true};
    return x;
}

static size_t at(int i)
{
    for (size_t k = 0; k < n; k++)
        if (str_eq(str_of(list[k].t.id.text), name_of(i)))
            return k;
    T_FAIL("no task %d", i);
    return 0;
}

static void begin(void)
{
    n = 0;
    buf_fini(&out);
    buf_init(&out, 8 << 20);
    arena_fini(&arena);
    arena_init(&arena, 64 << 20);
}

static const struct json *say(int asked)
{
    struct json_out o = json_out(&out);
    struct speak_tree tree = {
        .list = list, .n = n, .task_id = name_of(asked), .now_ms = 5000};
    struct json *root;

    tree_link(list, n);
    tree.top = tree_top(list, n, at(asked));
    tree.is_whole = list[tree.top].parent < 0;
    tree.root_id = str_of(list[tree.top].t.id.text);
    buf_clear(&out);
    speak_tree(&o, &tree);
    CHECK(!out.over);
    root = json_parse(&arena, buf_str(&out), 0, NULL);
    CHECK(root);
    return root;
}

static int64_t number(const struct json *v, const char *key)
{
    return json_int_or(json_get(v, str_of(key)), -1);
}

static size_t count(const struct json *node)
{
    size_t k = 1;

    JSON_EACH(kid, json_get(node, STR("children")))
    k += count(kid);
    return k;
}

TEST(children_are_nested_in_the_order_they_were_accepted)
{
    const struct json *tree, *kids;

    begin();
    plant(3, 1); /* before its parent, after its younger sibling */
    plant(2, 0);
    plant(1, 0);
    plant(4, 1);
    plant(0, -1);
    tree = json_get(say(3), STR("tree"));
    CHECK_STR(json_get(tree, STR("task_id"))->s, "task_000");
    kids = json_get(tree, STR("children"));
    CHECK_STR(json_get(json_at(kids, 0), STR("task_id"))->s, "task_001");
    CHECK_STR(json_get(json_at(kids, 1), STR("task_id"))->s, "task_002");
    CHECK(count(tree) == 5);
    CHECK_INT(number(json_at(kids, 0), "waited_ms"), 100);
    CHECK_INT(number(json_at(kids, 0), "worked_ms"), 900);
    CHECK_INT(number(json_at(kids, 0), "duration_ms"), 1000);
}

TEST(a_branch_costs_what_is_in_it)
{
    const struct json *root, *tree, *first;

    begin();
    plant(0, -1);
    plant(1, 0);
    plant(2, 1);
    plant(3, 0)->captured_micros = 0;
    root = say(0);
    tree = json_get(root, STR("tree"));
    first = json_at(json_get(tree, STR("children")), 0);
    CHECK_INT(number(root, "captured_micros"), 1 + 2 + 4);
    CHECK_INT(number(root, "price_micros"), 1 + 2 + 4 + 8);
    CHECK_INT(number(root, "tasks"), 4);
    CHECK_INT(number(json_get(first, STR("branch")), "captured_micros"), 2 + 4);
    CHECK_INT(number(json_get(first, STR("branch")), "tasks"), 2);
}

TEST(who_may_see_a_part_sees_from_there_down)
{
    const struct json *root;

    begin();
    plant(0, -1)->is_asked_for = false;
    plant(1, 0);
    plant(2, 1);
    plant(3, 0);
    root = say(2);
    CHECK(json_get(root, STR("root_task_id"))->type == JSON_NULL);
    CHECK(!json_get(root, STR("is_whole"))->b);
    CHECK_INT(number(root, "tasks"), 2);
    CHECK_STR(json_get(json_get(root, STR("tree")), STR("task_id"))->s,
              "task_001");
    CHECK(!memmem(out.p, out.n, "task_003", 8));
}

TEST(what_goes_on_is_counted_and_measured_until_now)
{
    const struct json *root, *kid;
    struct tree_task *x;

    begin();
    plant(0, -1)->t.status = TASK_WORKING;
    x = plant(1, 0);
    x->t.status = TASK_QUEUED;
    x->t.started_ms = x->t.finished_ms = 0;
    root = say(0);
    kid = json_at(json_get(json_get(root, STR("tree")), STR("children")), 0);
    CHECK_INT(number(root, "open"), 2);
    CHECK_INT(number(json_get(root, STR("tree")), "worked_ms"), 3900);
    CHECK_INT(number(kid, "waited_ms"), 3999);
    CHECK(json_get(kid, STR("worked_ms"))->type == JSON_NULL);
    CHECK(json_get(kid, STR("finished_ms"))->type == JSON_NULL);
}

TEST(a_chain_of_as_many_as_there_may_be_is_still_read_by_ourselves)
{
    begin();
    for (int i = 0; i < TREE_TASKS_MAX; i++)
        plant(i, i - 1);
    CHECK(count(json_get(say(0), STR("tree"))) == TREE_TASKS_MAX);
}

TEST(a_root_with_as_many_children_as_there_may_be)
{
    const struct json *root;

    begin();
    for (int i = TREE_TASKS_MAX - 1; i >= 0; i--)
        plant(i, i ? 0 : -1);
    root = say(0);
    CHECK(count(json_get(root, STR("tree"))) == TREE_TASKS_MAX);
    CHECK_INT(number(root, "tasks"), TREE_TASKS_MAX);
}

TEST(what_hung_on_something_that_is_gone_hangs_on_the_root)
{
    begin();
    plant(0, -1);
    plant(2, 1);
    plant(3, 2);
    CHECK_INT(number(say(0), "tasks"), 3);
    CHECK(count(json_get(say(3), STR("tree"))) == 3);
    begin();
    plant(2, 1);
    plant(3, 2);
    CHECK(count(json_get(say(3), STR("tree"))) == 2);
}

TEST(rows_that_contradict_each_other_make_no_loop)
{
    begin();
    plant(0, -1);
    plant(1, 2);
    plant(2, 1);
    plant(3, 3);
    CHECK(count(json_get(say(0), STR("tree"))) == 1);
    CHECK_INT(number(say(0), "tasks"), 1);
}

TEST(traceparent_headers)
{
#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN  "b7ad6b7169203331"
    static const struct {
        const char *header;
        bool is_good;
    } cases[] = {{"00-" TRACE "-" SPAN "-01", true},
                 {"00-" TRACE "-" SPAN "-00", true},
                 {"cc-" TRACE "-" SPAN "-01", true},
                 {"cc-" TRACE "-" SPAN "-01-what-comes-later", true},
                 {"cc-" TRACE "-" SPAN "-01.what", false},
                 {"00-" TRACE "-" SPAN "-01-", false},
                 {"00-" TRACE "-" SPAN "-0", false},
                 {"ff-" TRACE "-" SPAN "-01", false},
                 {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false},
                 {"00-00000000000000000000000000000000-" SPAN "-01", false},
                 {"00-" TRACE "-0000000000000000-01", false},
                 {"00_" TRACE "-" SPAN "-01", false},
                 {"", false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct str got = speak_traceparent(str_of(cases[i].header));

        if (cases[i].is_good)
            CHECK_STR(got, TRACE "-" SPAN);
        else if (got.n)
            T_FAIL("%s", cases[i].header);
    }
    CHECK(!speak_traceparent((struct str){NULL, 0}).n);
}

TEST(a_text_is_cut_between_characters)
{
    char text[TREE_TEXT_CHARS * 2 + 2];
    struct str cut;

    for (size_t i = 0; i < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    cut = tree_text((struct str){text, sizeof(text)});
    CHECK(cut.n == TREE_TEXT_CHARS * 2);
    CHECK(tree_text((struct str){text, TREE_TEXT_CHARS * 2}).n ==
          TREE_TEXT_CHARS * 2);
    CHECK(tree_text(STR("")).n == 0);
}

TEST(in_a_list_a_tree_is_its_root_and_the_sums)
{
    struct speak_tree tree = {.list = list, .is_whole = true, .now_ms = 9000};
    struct json_out o;

    begin();
    plant(0, -1);
    plant(1, 0)->t.status = TASK_WORKING;
    plant(2, 1);
    tree_link(list, n);
    tree.n = n;
    tree.root_id = name_of(0);
    o = json_out(&out);
    speak_tree_item(&o, &tree);
    CHECK_STR(buf_str(&out),
              "{\"root_task_id\":\"task_000\",\"root_user\":\"anna\","
              "\"is_whole\":true,\"tasks\":3,\"open\":1,"
              "\"price_micros\":7,\"captured_micros\":7,\"agent\":\"a\","
              "\"by_agent\":null,\"status\":\"completed\",\"text\":\"\","
              "\"created_ms\":1000,\"began_ms\":1000,\"started_ms\":1100,"
              "\"finished_ms\":2000,\"waited_ms\":100,\"worked_ms\":900,"
              "\"duration_ms\":1000}");
    tree.is_cut = true;
    buf_clear(&out);
    o = json_out(&out);
    speak_tree_item(&o, &tree);
    CHECK(memmem(out.p, out.n, "\"is_whole\":false", 16));
}
