/* Lines that come, go, fill up and are replaced in random order, with messages
 * that are late, repeated or of another agent: every task gets exactly one
 * result, and only from its own agent. */
#include "deliver/transports/line.h"
#include "test/lib/line_stage.h"

enum { N_AGENTS = 3, N_TASKS = 24, STEPS = 60000 };

static struct rand_seeded seed;
static int n_completed, n_cancelled, n_failed;

static unsigned pick(unsigned n)
{
    return (unsigned)(rand_u64(rand_seeded(&seed)) % n);
}

static struct agent *agent_of_peer[STAGE_PEERS];

static void forget_said(struct peer *p)
{
    while (p->n_said)
        free(p->said[--p->n_said]);
}

static void come(void)
{
    unsigned i = pick(STAGE_PEERS);

    if (st.peers[i].is_there)
        return;
    forget_said(&st.peers[i]);
    agent_of_peer[i] = &st.agents[pick(N_AGENTS)];
    attach((int)i, agent_of_peer[i]);
}

static void speak(struct peer *p, struct stage_task *x)
{
    struct agent *own = agent_of_peer[p - st.peers];
    int before = x->n_results;
    enum err e;

    if (!x->is_offered || !p->line)
        return;
    switch (pick(4)) {
    case 0: e = hear_working(p, x); break;
    case 1: e = hear_chunk(p, x, "x"); break;
    case 2:
        e = hear(p, 0,
                 "{\"jsonrpc\":\"2.0\",\"id\":\"%s:%d\",\"error\":{\"code\":1,"
                 "\"message\":\"no\",\"data\":{\"retry_after_ms\":1}}}",
                 id_of(x), (int)x->task.attempt);
        break;
    default: e = hear_result(p, x, own->name.p, 0);
    }
    CHECK(e == OK || e == ERR_NOT_FOUND);
    if (x->n_results > before) {
        CHECK(e == OK && own == x->agent);
        CHECK_STR(own->name, x->text[0] ? x->text : own->name.p);
    }
    if (!p->is_there)
        CHECK(e == ERR_NOT_FOUND);
}

/* The one that has the task, if there is one; p if not. */
static struct peer *right_one(const struct stage_task *x, struct peer *p)
{
    for (int i = 0; i < STAGE_PEERS; i++)
        if (st.peers[i].is_there && agent_of_peer[i] == x->agent)
            return &st.peers[i];
    return p;
}

static void begin_or_cancel(struct stage_task *x, int i)
{
    if (x->is_over || !x->is_offered) {
        n_completed += x->n_results && x->result.status == TASK_COMPLETED;
        n_failed += x->n_results && x->result.status == TASK_FAILED;
        offer(i, &st.agents[pick(N_AGENTS)]);
    } else if (pick(16) == 0) {
        x->is_over = true;
        x->waits = false;
        n_cancelled++;
        deliver_cancel(st.d, str_of(id_of(x)));
    }
}

static void step(void)
{
    struct peer *p = &st.peers[pick(STAGE_PEERS)];
    int i = (int)pick(N_TASKS);

    switch (pick(16)) {
    case 0: come(); break;
    case 1:
        if (p->is_there && pick(2))
            detach(p);
        break;
    case 2: p->is_full = p->is_there && pick(2); break;
    case 3:
        if (p->is_there && pick(2)) {
            p->is_full = false;
            deliver_line_room(st.d, p->line);
        }
        break;
    case 4: later(1 + pick(500)); break;
    case 5:
    case 6: begin_or_cancel(&st.tasks[i], i); break;
    case 7:
    case 8: turns(1); break;
    default: speak(pick(4) ? right_one(&st.tasks[i], p) : p, &st.tasks[i]);
    }
    if (p->n_said > STAGE_SAID / 2)
        forget_said(p);
}

/* All agents are there, with room, and do their work. */
static void finish(void)
{
    for (int i = 0; i < STAGE_PEERS; i++)
        if (st.peers[i].is_there)
            detach(&st.peers[i]);
    for (int i = 0; i < STAGE_PEERS; i++)
        forget_said(&st.peers[i]);
    for (int i = 0; i < N_AGENTS; i++) {
        agent_of_peer[i] = &st.agents[i];
        attach(i, &st.agents[i]);
    }
    for (int round = 0; round < 20; round++) {
        later(2000);
        turns(3);
        for (int i = 0; i < N_TASKS; i++)
            for (int k = 0; k < N_AGENTS; k++)
                if (st.tasks[i].is_offered && !st.tasks[i].is_over)
                    (void)hear_result(&st.peers[k], &st.tasks[i], "end", 0);
        for (int k = 0; k < N_AGENTS; k++)
            forget_said(&st.peers[k]);
    }
    for (int i = 0; i < N_TASKS; i++)
        CHECK(!st.tasks[i].is_offered || st.tasks[i].is_over);
    CHECK(deliver_stats(st.d).on_the_way == 0);
    CHECK(deliver_stats(st.d).waiting == 0);
}

TEST(every_task_has_one_result_whatever_lines_do)
{
    stage_open();
    seed.state = 11;
    st.d->opts.settings.max_attempts = 6;
    stage_agent("a", "ws-agent://a");
    stage_agent("b", "ws-agent://b");
    stage_agent("c", "ws-agent://c")->wake.url = STR("http://wake.example/");
    for (int i = 0; i < STEPS; i++)
        step();
    finish();
    CHECK(n_completed > 1000 && n_cancelled > 20 && n_failed > 0);
    CHECK(deliver_stats(st.d).taken_over_total > 100);
    CHECK(st.n_strays > 10);
    stage_close();
}
