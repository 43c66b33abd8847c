/* Whatever single step fails on the way to a child and back, the task has its
 * one result, and neither a process nor memory is left. STRESS=full: really
 * every step, not every fifth. */
#include "test/lib/pool_stage.h"

static struct office o;

static void again(struct office *office, struct job *j, char word)
{
    (void)office;
    if (word == 'a')
        j->n_words = sizeof(j->words) - 1; /* see run */
}

/* Turn until it has its result, as the task room and the clock would. */
static void run(struct job *j)
{
    bool is_offered = false;

    while (!j->n_results) {
        if (j->n_words == sizeof(j->words) - 1) {
            j->n_words = 0;
            is_offered = false;
        }
        if (!is_offered)
            is_offered = deliver_offer(o.d, &j->t, j->agent) == OK;
        wait_turn(&o.s);
        if (n_children(&o) == 0) /* else it has the time that it needs */
            o.s.time.mono_ms += 100;
    }
}

static void say(const char *conversation, const char *text, const char *answer)
{
    struct job *j = job_new(&o, 0, conversation, text);

    run(j);
    CHECK_INT(j->n_results, 1);
    if (fault_fired() && strcmp(j->code, "too_large") == 0 &&
        strcmp(text, "chunks") == 0)
        return; /* there was no memory to gather its chunks */
    if (j->status != TASK_COMPLETED || strcmp(j->text, answer) != 0)
        T_FAIL("after %s: \"%s\" (%s %s)", fault_name() ? fault_name() : "none",
               j->text, j->code, j->error);
}

/* False: it could not even begin. */
static bool begin(const char *how, long nth)
{
    office_prepare(&o);
    fault_arm(0); /* what is beneath has tests of its own */
    stage_init(&o.s, 16);
    fault_arm(nth);
    o.then = again;
    o.defs[0] = office_def(&o, 0, "p", how);
    o.defs[0].max = 1;
    o.defs[0].min = 1;
    o.defs[0].tools = true;
    o.d = office_make(&o, 1);
    if (o.d && pool_find(o.d->pools, STR("p")))
        return true;
    if (o.d)
        office_fini(&o);
    else
        stage_fini(&o.s);
    return false;
}

static void sweep(const char *how, void (*work)(void))
{
    const char *stress = getenv("STRESS");
    long nth = 0, step = stress && strcmp(stress, "full") == 0 ? 1 : 5;
    int n_begun = 0;

    do {

        nth += step;
        if (begin(how, nth)) {
            work();
            n_begun++;
            office_fini(&o);
        }
    } while (fault_fired());
    CHECK(n_begun > 5);
}

static void talk(void)
{
    say("one", "echo x", "x");
    say("one", "chunks", "one two");
    say("two", "echo y", "y");
}

TEST(our_own_dialect_survives_every_fault)
{
    sweep("good", talk);
}

static void talk_to_pi(void)
{
    say("one", "calls 2 2 a", "2 answered");
    say("two", "tools", "Let me see.\n\nDone.");
}

TEST(the_dialect_of_pi_survives_every_fault)
{
    sweep("pi", talk_to_pi);
}
