#ifndef TEST_LIB_LINE_STAGE_H
#define TEST_LIB_LINE_STAGE_H

/* deliver with lines and a clock that is turned by hand. Beside it a small
 * task room, which offers a task again as often as it is told to and keeps its
 * one result; and peers, which are the other ends of lines and remember what
 * was said to them. */

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

#include "deliver/queue/agent_queue.h"
#include "test/t.h"

enum { STAGE_TASKS = 80, STAGE_PEERS = 16, STAGE_SAID = 256 };

struct stage_task {
    struct task task;
    const struct agent *agent;
    bool is_offered, is_over, waits; /* waits: to be offered again */
    int64_t retry_ms;
    int n_working, n_results, n_retries;
    struct task_result result;
    char text[4096], code[64], error[512];
    char chunks[4096];
    uint64_t receipt;
};

struct peer {
    uint64_t line;
    bool is_there, is_full, is_gone;
    int n_taken_over;
    int n_said;
    char *said[STAGE_SAID];
};

static struct {
    struct loop loop;
    struct clock_fake time;
    struct log log;
    struct deliver *d;
    struct stage_task tasks[STAGE_TASKS];
    struct peer peers[STAGE_PEERS];
    struct agent agents[80];
    size_t n_agents;
    const struct agent *any_agent; /* for every name; NULL: by its name */
    int n_strays, n_calls;
    char late_result_agent[64], late_result_task[64], late_result_text[256],
        call_method[64];
    uint64_t late_result_receipt, recorded;
    enum err recorded_as;
    void (*on_word)(struct stage_task *t, char word);
} st;

static inline struct stage_task *stage_find(struct str id)
{
    for (int i = 0; i < STAGE_TASKS; i++)
        if (str_eq(str_of(st.tasks[i].task.id.text), id))
            return &st.tasks[i];
    return NULL;
}

static const struct agent *stage_agent_of(void *ctx, struct str name)
{
    (void)ctx;
    if (st.any_agent)
        return st.any_agent;
    for (size_t i = 0; i < st.n_agents; i++)
        if (str_eq_nocase(st.agents[i].name, name))
            return &st.agents[i];
    return NULL;
}

static bool stage_on_go(void *ctx, struct str id, const struct task **t,
                        const struct agent **a)
{
    struct stage_task *x = stage_find(id);

    (void)ctx;
    CHECK(x && x->is_offered);
    if (x->is_over)
        return false;
    x->task.attempt++;
    *t = &x->task;
    *a = x->agent;
    return true;
}

static struct stage_task *stage_heard(const struct delivery_id *id, char word)
{
    struct stage_task *x = stage_find(str_of(id->task_id.text));

    CHECK(x && !x->is_over);
    CHECK_INT(id->turn, x->task.turn);
    CHECK_INT(id->attempt, x->task.attempt);
    if (st.on_word)
        st.on_word(x, word);
    return x;
}

static void stage_on_working(void *ctx, const struct delivery_id *id)
{
    struct stage_task *x = stage_heard(id, 'w');

    (void)ctx;
    x->n_working++;
}

static void stage_on_chunk(void *ctx, const struct delivery_id *id,
                           struct str text)
{
    struct stage_task *x = stage_heard(id, 'c');
    size_t n = strlen(x->chunks);

    (void)ctx;
    snprintf(x->chunks + n, sizeof(x->chunks) - n, "%.*s", STR_ARG(text));
}

static void stage_on_retry(void *ctx, const struct delivery_id *id,
                           int64_t delay_ms, struct str because)
{
    struct stage_task *x = stage_heard(id, 't');

    (void)ctx;
    CHECK(because.n && delay_ms >= 0);
    x->retry_ms = delay_ms;
    x->n_retries++;
    x->waits = true;
}

static void stage_on_result(void *ctx, const struct delivery_id *id,
                            const struct task_result *r, uint64_t receipt)
{
    struct stage_task *x = stage_heard(id, 'r');

    (void)ctx;
    x->n_results++;
    x->is_over = true;
    x->waits = false;
    x->result = *r;
    snprintf(x->text, sizeof(x->text), "%.*s", STR_ARG(r->text));
    snprintf(x->code, sizeof(x->code), "%.*s", STR_ARG(r->error_code));
    snprintf(x->error, sizeof(x->error), "%.*s", STR_ARG(r->error));
    x->receipt = receipt;
    deliver_cancel(st.d, str_of(id->task_id.text)); /* as when it is kept */
}

static void stage_on_stray(void *ctx, struct str agent,
                           const struct wire_word *w, uint64_t receipt)
{
    (void)ctx;
    st.n_strays++;
    snprintf(st.late_result_agent, sizeof(st.late_result_agent), "%.*s",
             STR_ARG(agent));
    snprintf(st.late_result_task, sizeof(st.late_result_task), "%.*s",
             STR_ARG(w->task_id));
    snprintf(st.late_result_text, sizeof(st.late_result_text), "%.*s",
             STR_ARG(w->result.text));
    st.late_result_receipt = receipt;
}

static void stage_on_call(void *ctx, uint64_t line, struct str agent,
                          const struct wire_message *m)
{
    (void)ctx;
    CHECK(line && agent.n);
    st.n_calls++;
    snprintf(st.call_method, sizeof(st.call_method), "%.*s",
             STR_ARG(m->method));
}

static void stage_on_recorded(void *ctx, uint64_t receipt, enum err e)
{
    (void)ctx;
    st.recorded = receipt;
    st.recorded_as = e;
}

static inline struct deliver *stage_make(struct fetch *fetch)
{
    return deliver_new(&(struct deliver_opts){
        .loop = &st.loop,
        .log = &st.log,
        .fetch = fetch,
        .seed = {1, 2},
        .settings = {.max_in_flight = 1000,
                     .in_flight = 8,
                     .queue = 1000,
                     .max_attempts = 4,
                     .retry_ms = 100,
                     .retry_max_ms = 1000,
                     .breaker_failures = 1000,
                     .breaker_pause_ms = 1000,
                     .wake_ms = 30000,
                     .max_gathered_bytes = 1 << 20},
        .agent_of = stage_agent_of,
        .on_go = stage_on_go,
        .on_working = stage_on_working,
        .on_chunk = stage_on_chunk,
        .on_retry = stage_on_retry,
        .on_result = stage_on_result,
        .on_unmatched_result = stage_on_stray,
        .on_call = stage_on_call,
        .on_recorded = stage_on_recorded,
        .ctx = &st,
    });
}

static inline struct agent *stage_agent(const char *name, const char *url)
{
    struct agent *a = &st.agents[st.n_agents++];

    *a = (struct agent){
        .name = str_of(name), .url = str_of(url), .creator = STR("anna")};
    return a;
}

static inline void stage_clear(void)
{
    memset(&st, 0, sizeof(st));
    st.time = (struct clock_fake){.wall_ms = 5000, .mono_ms = 100};
    CHECK(loop_init(&st.loop, clock_fake(&st.time)) == OK);
    log_init(&st.log, open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_DEBUG,
             LOG_JSON, clock_fake(&st.time));
}

static inline void stage_open(void)
{
    stage_clear();
    st.d = stage_make(NULL);
    CHECK(st.d);
}

static inline void stage_close(void)
{
    deliver_free(st.d);
    loop_turn(&st.loop);
    loop_fini(&st.loop);
    close(st.log.fd);
    for (int i = 0; i < STAGE_PEERS; i++)
        while (st.peers[i].n_said)
            free(st.peers[i].said[--st.peers[i].n_said]);
}

/* Some turns; what is to be tried again is offered meanwhile. */
static inline void turns(int n)
{
    while (n--) {
        loop_turn(&st.loop);
        for (int i = 0; i < STAGE_TASKS; i++) {
            struct stage_task *x = &st.tasks[i];

            if (x->waits && deliver_offer(st.d, &x->task, x->agent) == OK)
                x->waits = false;
        }
    }
}

/* So much time passes. */
static inline void later(int64_t ms)
{
    st.time.mono_ms += ms;
    st.time.wall_ms += ms;
    turns(2);
}

/* The i-th task, task_000…i, waits to be carried to a. */
static inline struct stage_task *offer(int i, const struct agent *a)
{
    struct stage_task *x = &st.tasks[i];

    *x = (struct stage_task){.agent = a, .is_offered = true};
    snprintf(x->task.id.text, sizeof(x->task.id.text), "task_%026d", i);
    x->task.turn = 1;
    x->task.place = i;
    x->task.text = STR("hello");
    x->task.agent = a->name;
    x->task.priority = PRIORITY_NORMAL;
    x->task.deadline_ms = st.time.wall_ms + 3600 * 1000;
    x->waits = deliver_offer(st.d, &x->task, a) != OK;
    return x;
}

static inline const char *id_of(const struct stage_task *x)
{
    return x->task.id.text;
}

/* Peers. */

static enum err peer_send(void *ctx, struct str message)
{
    struct peer *p = ctx;

    CHECK(p->is_there);
    if (p->is_full || p->is_gone)
        return p->is_full ? ERR_BUSY : ERR_GONE;
    CHECK(p->n_said < STAGE_SAID);
    p->said[p->n_said] = strndup(message.p, message.n);
    CHECK(p->said[p->n_said++]);
    return OK;
}

static void peer_taken_over(void *ctx)
{
    struct peer *p = ctx;

    CHECK(p->is_there);
    p->n_taken_over++;
    p->is_there = false;
}

static const struct line_ops peer_ops = {.send = peer_send,
                                         .taken_over = peer_taken_over};

static inline enum err peer_attach(int i, const struct agent *a)
{
    struct peer *p = &st.peers[i];
    enum err e;

    CHECK(!p->is_there);
    p->is_there = true;
    p->is_full = p->is_gone = false;
    e = deliver_attach(st.d, a, &peer_ops, p, &p->line);
    p->is_there = e == OK;
    return e;
}

static inline struct peer *attach(int i, const struct agent *a)
{
    CHECK(peer_attach(i, a) == OK);
    return &st.peers[i];
}

static inline void detach(struct peer *p)
{
    p->is_there = false;
    deliver_detach(st.d, p->line, STR(""));
}

static inline const char *last_said(const struct peer *p)
{
    return p->n_said ? p->said[p->n_said - 1] : "";
}

/* How many messages with such a part it was told. */
static inline int n_said(const struct peer *p, const char *part)
{
    int n = 0;

    for (int i = 0; i < p->n_said; i++)
        n += strstr(p->said[i], part) != NULL;
    return n;
}

/* One message, as it stands, heard on p's line. */
static inline enum err hear(struct peer *p, uint64_t receipt, const char *fmt,
                            ...) PRINTF_LIKE(3, 4);
static struct why heard_why;

static inline enum err hear(struct peer *p, uint64_t receipt, const char *fmt,
                            ...)
{
    static char text[8192];
    struct wire_batch batch;
    struct arena arena;
    struct why why;
    va_list ap;
    enum err e;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    arena_init(&arena, 1 << 20);
    if (wire_read(&arena, str_of(text), &batch, &why) != OK &&
        wire_read(&arena, str_of(text), &batch, &why) != OK) /* a fault */
        T_FAIL("%s: %s", text, why.text);
    CHECK(batch.n == 1 && batch.list->kind != WIRE_BAD);
    heard_why.text[0] = '\0';
    e = deliver_heard(st.d, p->line, batch.list, receipt, &heard_why);
    arena_fini(&arena);
    return e;
}

static inline enum err hear_working(struct peer *p, const struct stage_task *x)
{
    return hear(p, 0,
                "{\"jsonrpc\":\"2.0\",\"id\":\"%s:%d\",\"result\":{\"status\":"
                "\"working\"}}",
                id_of(x), (int)x->task.attempt);
}

static inline enum err hear_chunk(struct peer *p, const struct stage_task *x,
                                  const char *text)
{
    return hear(p, 0,
                "{\"jsonrpc\":\"2.0\",\"method\":\"task.chunk\",\"params\":{"
                "\"task_id\":\"%s\",\"text\":\"%s\"}}",
                id_of(x), text);
}

static inline enum err hear_result(struct peer *p, const struct stage_task *x,
                                   const char *text, uint64_t receipt)
{
    return hear(p, receipt,
                "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"task.result\","
                "\"params\":{\"task_id\":\"%s\",\"status\":\"completed\","
                "\"text\":\"%s\"}}",
                id_of(x), text);
}

#endif
