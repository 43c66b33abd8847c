/* A simulated week on a clock that is turned by hand: 100 messages an hour,
 * agents that fail, die and come back by chance, people who decide, and the
 * server killed by SIGKILL once in every simulated hour, inside a system call
 * of its store. Everything runs but the sockets: the store on a real folder,
 * registry, choosing, gate, tasks, delivery.
 *
 *     parent: for each life of the server a child, until the week is over
 *     child:  a start, an audit, and time goes on until it is killed
 *
 * No acknowledged message is lost; each is over in the end, and stays so; what
 * is held is not carried; order is kept. The controls turn it red. With
 * STRESS=full it is a week, else a day. */
#include <sys/mman.h>

#include "test/lib/folder.h"
#include "test/week/audit.h"
#include "test/week/kill.h"

enum { DRAIN_HOURS = 24, LIVES_MORE = 4 };

/* Once in each hour, after as many calls as may come in one. */
static void arm(void)
{
    int64_t hour = (world->now_ms - world->began_ms) / HOUR_MS;

    if (hour < world->kill_hour || hour >= world->hours)
        return;
    if (world->kill_hour < hour + 1)
        world->kill_hour = hour + 1;
    world->api_left =
        1 + (long)chance(world->hour_calls > 100 ? (uint64_t)world->hour_calls
                                                 : 100);
    world->hour_calls = 0;
}

/* An hour that took fewer calls than the last is not without its kill. */
static void kill_late(void)
{
    int64_t in_ms = (world->now_ms - world->began_ms) % HOUR_MS;

    if (world->api_left > 0 && in_ms >= HOUR_MS - STEP_MS)
        kill_now();
}

static void step(void)
{
    world->now_ms += STEP_MS;
    stage.now.wall_ms = world->now_ms;
    stage.now.mono_ms += STEP_MS;
    arm();
    kill_late();
    letters_step();
    for (int i = 0; i < AGENTS; i++)
        agent_step(i);
    for (int i = 0; i < 3; i++)
        loop_turn(&stage.loop);
    people_step();
}

static bool is_over(void)
{
    return world->now_ms >= world->began_ms + world->hours * HOUR_MS;
}

/* Nothing new; what is left must come to its end. */
static void drain(void)
{
    int64_t until_ms = world->now_ms + DRAIN_HOURS * HOUR_MS;
    int n_open, n_shown = 0;

    world->is_ending = true;
    do {
        for (int i = 0; i < 300; i++)
            step();
        n_open = audit();
    } while (n_open && world->now_ms < until_ms);
    if (n_open)
        each_row(&task_table, TASK_SEQ, show_open, &n_shown);
    if (n_open)
        T_FAIL("%d messages are not over a day after the last", n_open);
}

static void live(const char *root)
{
    house_open(root);
    kill_arm(world);
    audit();
    agents_again();
    letters_again();
    while (!is_over())
        step();
    drain();
    measure();
    world->is_done = true;
    stage_close();
}

static void begin(int hours, uint64_t seed)
{
    world = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(world != MAP_FAILED);
    world->random = seed;
    world->hours = hours;
    world->began_ms = world->now_ms = INT64_C(1771146000000);
    for (int i = 0; i < AGENTS; i++) {
        world->agents[i].is_up = true;
        world->agents[i].change_ms = world->now_ms + between_ms(900, 14400);
    }
}

static void remove_folder(const char *root)
{
    folder_remove(root);
}

/* One life: whether the server was killed; else it has seen the end. */
static bool was_killed(const char *root)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        live(root);
        fflush(NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        remove_folder(root);
        if (WIFSIGNALED(status))
            fprintf(stderr, "the server ended by signal %d\n",
                    WTERMSIG(status));
        _exit(1); /* or it has said why */
    }
    return false;
}

static void report(void)
{
    double days = world->hours / 24.0;

    printf("%d messages in %d hours, %d kills, %d deaths of agents; "
           "%d refused, %d sent again\n",
           world->n_letters, world->hours, world->n_kills, world->n_deaths,
           world->n_refused, world->n_again);
    printf("completed %d, failed %d, cancelled %d, expired %d, dropped %d; "
           "0 lost\n",
           world->over[TASK_COMPLETED], world->over[TASK_FAILED],
           world->over[TASK_CANCELLED], world->over[TASK_EXPIRED],
           world->over[TASK_DROPPED]);
    printf("held %lld: %.1f min on average, %.1f at most\n",
           (long long)world->n_held,
           world->n_held
               ? (double)world->hold_ms / 60000.0 / (double)world->n_held
               : 0,
           (double)world->hold_max_ms / 60000.0);
    printf("escalations a day: %.1f by rule, %.1f for a dead agent, %.1f late, "
           "%.1f held too long; people decided %d, and came second %d times\n",
           (double)world->n_escalations[ESCALATION_RULE] / days,
           (double)world->n_escalations[ESCALATION_DEAD] / days,
           (double)world->n_escalations[ESCALATION_LATE] / days,
           (double)world->n_escalations[ESCALATION_EXPIRED] / days,
           world->n_decided, world->n_second);
}

static void make_folder(char root[64])
{
    snprintf(root, 64, "%s/signalbox-week-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(root));
}

static void simulate(int hours, uint64_t seed)
{
    char root[64];
    int lives = 0;

    make_folder(root);
    begin(hours, seed);
    while (was_killed(root)) {
        CHECK(++lives < hours + LIVES_MORE);
        world->now_ms += between_ms(1, 60); /* until someone starts it */
    }
    remove_folder(root);
    CHECK(world->is_done);
    CHECK_INT(world->n_kills, hours);
    CHECK_INT(world->n_letters, hours * PER_HOUR);
    report();
}

static int hours(void)
{
    const char *s = getenv("STRESS");

    return s && strcmp(s, "full") == 0 ? WEEK_HOURS : 24;
}

TEST(nothing_is_lost_whenever_it_is_killed)
{
    const char *seed = getenv("SEED");

    simulate(hours(), seed ? strtoull(seed, NULL, 10) : 20250215);
}

/* Three wait for an event, and behind each stands one that has it: as many as
 * there is room for. They do not take it from those before them. */
TEST(who_stands_behind_takes_no_room_from_who_is_before)
{
    char root[64];
    int n_shown = 0;

    make_folder(root);
    begin(24, 3);
    world->is_ending = true; /* everybody is well, and stays so */
    house_open(root);
    agents_again();
    for (int i = 0; i < 3 * KINDS; i++)
        world->letters[i].score = 50;
    world->n_letters = world->hours * PER_HOUR;
    for (int s = 0; s < 3; s++) {
        letter_send(KINDS * s + KIND_SUBMISSION);
        letter_send(KINDS * s + KIND_UPDATE);
    }
    for (int i = 0; i < 5; i++)
        step();
    for (int s = 0; s < 3; s++)
        letter_send(KINDS * s + KIND_REQUEST);
    for (int i = 0; i < 300; i++)
        step();
    each_row(&task_table, TASK_SEQ, show_open, &n_shown);
    stage_close();
    remove_folder(root);
    CHECK_INT(n_shown, 0);
}

/* Controls: with a mistake planted it is red, and says what is wrong. */

static void a_day(void)
{
    simulate(24, 20250216);
}

static void an_early_day(void)
{
    store_sabotage(&(struct store_sabotage){.acks_early = true});
    a_day();
}

static void a_forgetful_day(void)
{
    fault_arm_at("broker.start_forgets", 1);
    a_day();
}

static void check_red(void (*body)(void), const char *because)
{
    FILE *said = tmpfile();
    char text[4096] = "";
    int status = 0;
    pid_t pid;

    CHECK(said);
    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(dup2(fileno(said), 2) == 2 && dup2(fileno(said), 1) == 1);
        body();
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    rewind(said);
    text[fread(text, 1, sizeof(text) - 1, said)] = '\0';
    fclose(said);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 ||
        !strstr(text, because))
        T_FAIL("not red, or not because of \"%s\": %s", because, text);
}

TEST(a_server_that_answers_before_it_has_written_is_found_out)
{
    check_red(an_early_day, "lost: ");
}

TEST(a_server_that_forgets_what_is_held_is_found_out)
{
    check_red(a_forgetful_day, "not over a day after the last");
}
