#ifndef TEST_LIB_POOL_STAGE_H
#define TEST_LIB_POOL_STAGE_H

/* The stage on which the road "process:" is tested: real children under a fake
 * clock (child_stage.h), the deliver room, and an owner that writes down what
 * it is told and offers again what is to be retried when the test says so. */

#include "deliver/transports/pool.h"
#include "test/lib/child_stage.h"
#include "test/lib/pool_child.h"

enum { JOBS_MAX = 64, HEARD_BYTES = 4096 };

/* One task as its owner sees it. */
struct job {
    struct task t;
    const struct agent *agent;
    char words[64]; /* w(orking) c(hunk) r(esult) a(gain) */
    size_t n_words;
    int n_results, n_retries;
    int64_t delay_ms;
    enum task_status status;
    char text[HEARD_BYTES];  /* of the result */
    char heard[HEARD_BYTES]; /* of the chunks */
    char code[64], error[512], metadata[512];
    uint64_t receipt;
};

struct office {
    struct stage s;
    struct deliver *d;
    struct process_def defs[4];
    struct str command[4], env[4];
    char exe[256];
    struct agent agents[2];
    struct job jobs[JOBS_MAX];
    int n_jobs, n_strays, n_calls, n_stopped;
    char call[64];
    char asked[256]; /* the last that was, in words */
    char handle[64];
    bool takes_asked;
    struct {
        deliver_tool_done *done;
        void *ctx;
    } used[JOBS_MAX]; /* tools, while holds_tools */
    size_t n_used;    /* of all */
    size_t n_held;
    int n_tools_cancelled;
    bool holds_tools;
    struct str tool_text; /* what comes of them */
    char tool[256];       /* the last, in words */
    void (*then)(struct office *o, struct job *j, char word);
};

static inline struct job *job_of(struct office *o, const char *id)
{
    for (int i = 0; i < o->n_jobs; i++)
        if (strcmp(o->jobs[i].t.id.text, id) == 0)
            return &o->jobs[i];
    T_FAIL("there is no task %s", id);
}

static inline void job_note(struct office *o, struct job *j, char word)
{
    if (j->n_words < sizeof(j->words) - 1)
        j->words[j->n_words++] = word;
    if (o->then)
        o->then(o, j, word);
}

static inline void put(char *to, size_t max, struct str s)
{
    snprintf(to, max, "%.*s", STR_ARG(s));
}

static inline bool office_go(void *ctx, struct str id, const struct task **t,
                             const struct agent **a)
{
    struct job *j = job_of(ctx, id.p);

    j->t.attempt++;
    *t = &j->t;
    *a = j->agent;
    return true;
}

static inline const struct agent *office_agent(void *ctx, struct str name)
{
    struct office *o = ctx;

    for (int i = 0; i < 2; i++)
        if (str_eq_nocase(o->agents[i].name, name))
            return &o->agents[i];
    return NULL;
}

static inline void office_working(void *ctx, const struct delivery_id *d)
{
    job_note(ctx, job_of(ctx, d->task_id.text), 'w');
}

static inline void office_chunk(void *ctx, const struct delivery_id *d,
                                struct str text)
{
    struct job *j = job_of(ctx, d->task_id.text);
    size_t n = strlen(j->heard);

    put(j->heard + n, sizeof(j->heard) - n, text);
    job_note(ctx, j, 'c');
}

static inline void office_retry(void *ctx, const struct delivery_id *d,
                                int64_t delay_ms, struct str because)
{
    struct job *j = job_of(ctx, d->task_id.text);

    j->n_retries++;
    j->delay_ms = delay_ms;
    put(j->error, sizeof(j->error), because);
    job_note(ctx, j, 'a');
}

static inline void office_result(void *ctx, const struct delivery_id *d,
                                 const struct task_result *r, uint64_t receipt)
{
    struct office *o = ctx;
    struct job *j = job_of(o, d->task_id.text);

    j->n_results++;
    j->status = r->status;
    j->receipt = receipt;
    put(j->text, sizeof(j->text), r->text);
    put(j->code, sizeof(j->code), r->error_code);
    put(j->error, sizeof(j->error), r->error);
    put(j->metadata, sizeof(j->metadata), r->metadata);
    deliver_cancel(o->d, str_of(d->task_id.text)); /* as the walk does */
    job_note(o, j, 'r');
}

static inline void office_stray(void *ctx, struct str agent,
                                const struct wire_word *w, uint64_t receipt)
{
    struct office *o = ctx;

    (void)agent;
    (void)w;
    o->n_strays++;
    deliver_recorded(o->d, receipt, ERR_TASK_IS_OVER);
}

static inline void office_call(void *ctx, uint64_t line, struct str agent,
                               const struct wire_message *m)
{
    struct office *o = ctx;
    struct buf out;

    o->n_calls++;
    snprintf(o->call, sizeof(o->call), "%.*s %.*s", STR_ARG(agent),
             STR_ARG(m->method));
    if (m->kind != WIRE_REQUEST)
        return;
    buf_init(&out, 4096);
    struct json_out j = wire_result_open(&out, &m->id);
    json_open(&j, '{');
    json_close(&j, '}');
    wire_close(&j);
    CHECK(deliver_say(o->d, line, buf_str(&out)) == OK);
    buf_fini(&out);
}

static inline bool office_ask(void *ctx, const struct delivery_id *d,
                              const struct input_ask *q)
{
    struct office *o = ctx;
    size_t n;

    CHECK(job_of(o, d->task_id.text)->t.attempt == d->attempt);
    put(o->handle, sizeof(o->handle), q->handle);
    n = (size_t)snprintf(o->asked, sizeof(o->asked),
                         "%.*s %.*s %.*s %.*s %.*s "
                         "%d",
                         STR_ARG(input_kind_name(q->kind)), STR_ARG(q->title),
                         STR_ARG(q->message), STR_ARG(q->placeholder),
                         STR_ARG(q->prefill), (int)q->timeout_ms);
    for (size_t i = 0; i < q->n_options; i++)
        n += (size_t)snprintf(o->asked + n, sizeof(o->asked) - n, " %.*s",
                              STR_ARG(q->options[i]));
    return o->takes_asked;
}

static inline void office_tool(void *ctx, const struct delivery_id *d,
                               struct str agent, enum wire_tool tool,
                               struct str arguments, deliver_tool_done *done,
                               void *done_ctx, void **handle)
{
    struct office *o = ctx;

    CHECK(job_of(o, d->task_id.text)->t.attempt == d->attempt);
    snprintf(o->tool, sizeof(o->tool), "%.*s %d %.*s", STR_ARG(agent),
             (int)tool, STR_ARG(arguments));
    o->n_used++;
    *handle = o;
    if (!o->holds_tools) {
        done(done_ctx, o->tool_text);
        return;
    }
    CHECK(o->n_held < JOBS_MAX);
    o->used[o->n_held].done = done;
    o->used[o->n_held++].ctx = done_ctx;
}

static inline void office_tool_cancel(void *ctx, void *handle)
{
    struct office *o = ctx;

    CHECK(handle == o);
    o->n_tools_cancelled++;
}

/* A definition of children of that kind. Settings come with office_set. */
static inline struct process_def office_def(struct office *o, int i,
                                            const char *name, const char *how)
{
    static char hows[4][160];
    ssize_t n = readlink("/proc/self/exe", o->exe, sizeof(o->exe) - 1);

    CHECK(n > 0);
    o->exe[n] = '\0';
    snprintf(hows[i], sizeof(hows[i]), "POOL_CHILD=%s", how);
    o->command[i] = str_of(o->exe);
    o->env[i] = str_of(hows[i]);
    return (struct process_def){
        .name = str_of(name),
        .command = {&o->command[i], 1},
        .dialect = strncmp(how, "pi", 2) == 0 ? DIALECT_PI : DIALECT_SIGNALBOX,
        .whole_env = {&o->env[i], 1},
        .max = 2,
        .idle_ms = 60000,
        .start_ms = 10000,
        .stop_grace_ms = GRACE_MS,
        .max_line_bytes = 65536,
    };
}

static inline struct deliver_settings office_settings(struct office *o, int n)
{
    return (struct deliver_settings){.max_in_flight = 1000,
                                     .in_flight = 100,
                                     .queue = 1000,
                                     .max_attempts = 3,
                                     .retry_ms = 500,
                                     .retry_max_ms = 30000,
                                     .breaker_failures = 100,
                                     .breaker_pause_ms = 1000,
                                     .max_gathered_bytes = 1 << 20,
                                     .processes = o->defs,
                                     .n_processes = (size_t)n};
}

static inline struct deliver *office_make(struct office *o, int n_defs)
{
    return deliver_new(
        &(struct deliver_opts){.loop = &o->s.loop,
                               .log = &o->s.log,
                               .children = o->s.all,
                               .seed = {1, 2},
                               .settings = office_settings(o, n_defs),
                               .agent_of = office_agent,
                               .on_go = office_go,
                               .on_working = office_working,
                               .on_chunk = office_chunk,
                               .on_retry = office_retry,
                               .on_result = office_result,
                               .on_unmatched_result = office_stray,
                               .on_call = office_call,
                               .on_ask = office_ask,
                               .on_tool = office_tool,
                               .tool_cancel = office_tool_cancel,
                               .ctx = o});
}

static inline void office_prepare(struct office *o)
{
    *o = (struct office){.n_jobs = 0};
    o->agents[0] = (struct agent){.name = STR("anna"), .url = STR("process:p")};
    o->agents[1] = (struct agent){.name = STR("bert"), .url = STR("process:p")};
}

/* One definition, "p", of children that are like that. */
static inline void office_init(struct office *o, const char *how)
{
    office_prepare(o);
    stage_init(&o->s, 16);
    o->defs[0] = office_def(o, 0, "p", how);
    o->d = office_make(o, 1);
    CHECK(o->d);
}

/* What the test has changed in defs counts. */
static inline void office_set(struct office *o, int n_defs)
{
    struct deliver_settings s = office_settings(o, n_defs);

    deliver_set(o->d, &s);
}

static inline void office_stopped(void *ctx)
{
    ((struct office *)ctx)->n_stopped++;
}

static inline void office_fini(struct office *o)
{
    deliver_stop(o->d, office_stopped, o);
    while (!o->n_stopped) {
        wait_turn(&o->s);
        if (!somebody_is_killed(&o->s))
            o->s.time.mono_ms += 200;
    }
    CHECK_INT(o->n_stopped, 1);
    CHECK_INT(deliver_stats(o->d).children, 0);
    deliver_free(o->d);
    stage_fini(&o->s);
}

/* Work. */

static inline struct job *job_new(struct office *o, int agent,
                                  const char *conversation, const char *text)
{
    struct job *j = &o->jobs[o->n_jobs++];

    CHECK(o->n_jobs <= JOBS_MAX);
    *j = (struct job){.agent = &o->agents[agent]};
    j->t = (struct task){.turn = 1,
                         .place = o->n_jobs,
                         .priority = PRIORITY_NORMAL,
                         .root_user = STR("ada"),
                         .requester = STR("ada"),
                         .agent = j->agent->name,
                         .conversation_id = str_of(conversation),
                         .text = str_of(text)};
    snprintf(j->t.id.text, sizeof(j->t.id.text), "task_%026d", o->n_jobs);
    return j;
}

static inline void job_offer(struct office *o, struct job *j)
{
    CHECK(deliver_offer(o->d, &j->t, j->agent) == OK);
}

static inline struct job *give(struct office *o, const char *conversation,
                               const char *text)
{
    struct job *j = job_new(o, 0, conversation, text);

    job_offer(o, j);
    return j;
}

static inline void job_await(struct office *o, struct job *j)
{
    UNTIL(&o->s, j->n_results);
}

/* Its result is to be that text. */
static inline void job_says(struct office *o, struct job *j, const char *text)
{
    job_await(o, j);
    if (j->status != TASK_COMPLETED || strcmp(j->text, text) != 0)
        T_FAIL("\"%.*s\": \"%s\" (%s %s), not \"%s\"", STR_ARG(j->t.text),
               j->text, j->code, j->error, text);
    CHECK_INT(j->n_results, 1);
}

static inline void cancel(struct office *o, struct job *j)
{
    deliver_cancel(o->d, str_of(j->t.id.text));
}

static inline int64_t n_children(const struct office *o)
{
    return deliver_stats(o->d).children;
}

static inline int64_t n_started(const struct office *o)
{
    return children_stats(o->s.all).started_total;
}

/* The process of that number is there no more, not even as a zombie. */
static inline bool is_gone(pid_t pid)
{
    return kill(pid, 0) != 0 && errno == ESRCH;
}

#endif
