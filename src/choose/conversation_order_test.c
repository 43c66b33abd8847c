/* The order of messages in a conversation. */
#include "choose/conversation_order.h"

#include "test/t.h"

enum { MANY = 2000 };

static struct loop loop;
static struct clock_fake now;
static struct inorder *lines;
static char heard[MANY * 4];

struct guest {
    struct inorder_place place;
    char name;
    bool leaves; /* as soon as it is its turn */
};

static void on_turn(struct inorder_place *p)
{
    struct guest *g = LIST_OF(p, struct guest, place);
    size_t n = strlen(heard);

    heard[n] = g->name;
    heard[n + 1] = '\0';
    if (g->leaves)
        inorder_leave(lines, p);
}

static void begin(size_t max)
{
    const uint64_t seed[2] = {1, 2};

    heard[0] = '\0';
    CHECK(loop_init(&loop, clock_fake(&now)) == OK);
    lines = inorder_new(&loop, max, seed);
    CHECK(lines);
}

static void end(void)
{
    CHECK_INT(inorder_lines(lines), 0);
    inorder_free(lines);
    loop_fini(&loop);
}

static struct guest guest(char name)
{
    return (struct guest){.place = {.turn = on_turn}, .name = name};
}

static bool enter(struct guest *g, const char *line)
{
    bool is_first;

    CHECK_INT(
        inorder_enter(lines, &g->place, STR("ann"), str_of(line), &is_first),
        OK);
    return is_first;
}

TEST(whoever_comes_later_waits_and_other_lines_do_not)
{
    struct guest a = guest('a'), b = guest('b'), c = guest('c'),
                 other = guest('o');

    begin(10);
    CHECK(enter(&a, "x") && !enter(&b, "x") && !enter(&c, "x"));
    CHECK(enter(&other, "y"));
    loop_turn(&loop);
    CHECK(heard[0] == '\0');
    inorder_leave(lines, &a.place);
    CHECK(heard[0] == '\0'); /* never from inside */
    loop_turn(&loop);
    CHECK(strcmp(heard, "b") == 0);
    inorder_leave(lines, &b.place);
    loop_turn(&loop);
    CHECK(strcmp(heard, "bc") == 0);
    inorder_leave(lines, &c.place);
    inorder_leave(lines, &c.place); /* harmless */
    inorder_leave(lines, &other.place);
    CHECK(enter(&a, "x")); /* as in an empty line */
    inorder_leave(lines, &a.place);
    end();
}

TEST(who_leaves_from_the_middle_is_not_called_and_holds_up_nobody)
{
    struct guest a = guest('a'), b = guest('b'), c = guest('c');

    begin(10);
    CHECK(enter(&a, "x") && !enter(&b, "x") && !enter(&c, "x"));
    inorder_leave(lines, &b.place);
    inorder_leave(lines, &a.place);
    loop_turn(&loop);
    CHECK(strcmp(heard, "c") == 0);
    inorder_leave(lines, &c.place);
    end();
}

TEST(who_leaves_before_being_told_passes_the_turn_on)
{
    struct guest a = guest('a'), b = guest('b'), c = guest('c');

    begin(10);
    CHECK(enter(&a, "x") && !enter(&b, "x") && !enter(&c, "x"));
    inorder_leave(lines, &a.place);
    inorder_leave(lines, &b.place);
    loop_turn(&loop);
    CHECK(strcmp(heard, "c") == 0);
    inorder_leave(lines, &c.place);
    /* If all have left, none is called. */
    CHECK(enter(&a, "x") && !enter(&b, "x"));
    inorder_leave(lines, &a.place);
    inorder_leave(lines, &b.place);
    loop_turn(&loop);
    CHECK(strcmp(heard, "c") == 0);
    end();
}

TEST(a_thousand_that_leave_at_once_do_not_do_so_in_one_turn)
{
    static struct guest all[MANY];
    int turns = 0;

    begin(10);
    for (int i = 0; i < MANY; i++) {
        all[i] = guest('a');
        all[i].leaves = true;
        CHECK(enter(&all[i], "x") == (i == 0));
    }
    inorder_leave(lines, &all[0].place);
    for (; inorder_lines(lines); turns++)
        loop_turn(&loop);
    CHECK_INT(strlen(heard), MANY - 1);
    CHECK(turns > 4 && turns < 20);
    end();
}

TEST(lines_have_a_limit_and_places_in_them_have_not)
{
    struct guest a = guest('a'), b = guest('b'), c = guest('c');
    bool is_first;

    begin(1);
    CHECK(enter(&a, "x"));
    CHECK_INT(inorder_enter(lines, &b.place, STR("ann"), STR("y"), &is_first),
              ERR_OVERLOADED);
    /* The same name of another owner is another line. */
    CHECK_INT(inorder_enter(lines, &b.place, STR("bob"), STR("x"), &is_first),
              ERR_OVERLOADED);
    CHECK(!enter(&c, "x"));
    inorder_leave(lines, &a.place);
    inorder_leave(lines, &c.place);
    end();
}
