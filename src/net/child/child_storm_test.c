/* Many children that do anything, an owner that does anything with them, and
 * others who send them signals; now and then a fault. The same seed is the
 * same storm, as far as the owner goes; processes run as they like.
 *
 * Whatever happens: who was started ends once and is not heard of after, and
 * when the storm is over no process and no descriptor is left. */
#include "test/lib/child_stage.h"

enum { KIDS = 12, STEPS = 150 };

/* Starting a process takes a sanitizer a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STORMS = 10 };
#else
enum { STORMS = 30 };
#endif

static const char *const scripts[] = {
    "exec cat",
    "exec yes",
    "exit 3",
    "exec sleep 1000",
    "trap '' TERM; exec sleep 1000",
    "trap '' TERM; exec yes",
    "yes >&2",
    "sleep 1000 & sleep 1000 & exec cat",
    "sleep 1000 & exit 0",
    "exec <&-; exec sleep 1000",
    "exec >&-; exec cat",
    "exec cat /dev/zero",
    "while read x; do echo $x; echo $x >&2; done",
    "kill -STOP $$; exec cat",
    "printf half; kill -9 $$",
    "seq 20000; exec cat",
};

struct storm {
    struct stage s;
    struct rand_seeded seed;
    struct rand rand;
    struct kid kids[KIDS]; /* id 0: none */
    bool acts;             /* those who hear a line do something, too */
};

static unsigned roll(struct storm *st, unsigned n)
{
    return (unsigned)(rand_u64(st->rand) % n);
}

static struct storm *storm_of(struct kid *k)
{
    return LIST_OF(k->s, struct storm, s);
}

static void act_on_one(struct storm *st, struct kid *k);

static void act_on_line(struct kid *k, struct str line)
{
    struct storm *st = storm_of(k);

    (void)line;
    if (st->acts && roll(st, 20) == 0)
        act_on_one(st, &st->kids[roll(st, KIDS)]);
}

static void start_one(struct storm *st, struct kid *k)
{
    size_t n_scripts = sizeof(scripts) / sizeof(scripts[0]);
    const char *script = scripts[roll(st, (unsigned)n_scripts)];
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_of(script)};
    struct child_opts o = opts_of(argv, 3);
    struct why why;

    if (roll(st, 10) == 0)
        o.folder = STR("/nowhere");
    o.env = path_env;
    o.n_env = 1;
    o.stop_grace_ms = roll(st, 3) * 1000;
    o.max_unsent_bytes = 1 + roll(st, 200000);
    if (try_start(&st->s, k, &o, &why) != OK)
        CHECK(k->id == 0 && why.text[0]);
    k->act = act_on_line;
}

static void send_signal(struct storm *st, struct kid *k)
{
    static const int signals[] = {SIGKILL, SIGSTOP, SIGCONT, SIGTERM, SIGUSR1};
    pid_t pid = child_pid(st->s.all, k->id);

    if (pid)
        kill(pid, signals[roll(st, 5)]);
}

static void act_on_one(struct storm *st, struct kid *k)
{
    static char text[10000];
    struct children *all = st->s.all;
    enum err e;

    if (k->id == 0 || k->n_ends) {
        start_one(st, k);
        return;
    }
    switch (roll(st, 16)) {
    case 0: child_stop(all, k->id); break;
    case 1: child_close_input(all, k->id); break;
    case 2 ... 3: child_pause(all, k->id, true); break;
    case 4 ... 6: child_pause(all, k->id, false); break;
    case 7: send_signal(st, k); break;
    default:
        memset(text, 't', sizeof(text));
        e = child_send(all, k->id, (struct str){text, roll(st, 10000)});
        CHECK(e == OK || e == ERR_BUSY || e == ERR_GONE || e == ERR_LIMIT ||
              (e == ERR_NOMEM && fault_fired()));
    }
}

static void step(struct storm *st)
{
    static const int64_t steps_ms[] = {1, 10, 100, 500, 1500};

    act_on_one(st, &st->kids[roll(st, KIDS)]);
    if (roll(st, 10) == 0 && !somebody_is_killed(&st->s))
        later(&st->s, steps_ms[roll(st, 5)]);
    if (roll(st, 2))
        wait_turn(&st->s);
}

static void rage(uint64_t seed, long fault)
{
    static struct storm st;
    int64_t n_started;

    st = (struct storm){.seed = {seed}, .acts = seed % 2};
    st.rand = rand_seeded(&st.seed);
    stage_init(&st.s, KIDS - 2);
    fault_arm(fault);
    for (int i = 0; i < STEPS; i++)
        step(&st);
    st.acts = false;
    n_started = children_stats(st.s.all).started_total;
    stage_fini(&st.s);
    for (int i = 0; i < KIDS; i++)
        CHECK(st.kids[i].n_ends == (st.kids[i].id != 0));
    CHECK(n_started > 0);
    fault_arm(0);
}

TEST(a_storm_passes)
{
    for (uint64_t seed = 1; seed <= STORMS; seed++)
        rage(seed, 0);
}

TEST(a_storm_with_a_fault_passes)
{
    for (uint64_t seed = 1; seed <= STORMS; seed++)
        rage(seed + 1000, (long)(seed * 13 % 400) + 1);
}
