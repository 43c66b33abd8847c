/* The children of one definition: their number, and when one is started.
 *
 * Every event that may matter (a task, a child that is ready, idle or ended,
 * the end of a pause) only marks the pool. It is checked once, at the end of
 * the loop turn: waiting tasks go to children that can take them, and then
 * missing children are started. So programs are started in one place only,
 * which checks their number and the time. After a child that failed there is a
 * pause, longer each time and with jitter, and only one child is tried until
 * one has sent a result. A program that ends at once costs two starts a minute.
 *
 * A pool has its own copy of its definition. When a reload changes or removes
 * the definition, the pool retires: it takes no more work, its children finish
 * and end, and it is freed with the last of them. A reload that does not change
 * the definition keeps the children. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deliver/transports/pool.h"

enum { DEF_BYTES_MAX = 8 * 1024 * 1024 };

static const struct dialect *const dialects[] = {
    [DIALECT_SIGNALBOX] = &dialect_own,
    [DIALECT_PI] = &dialect_pi,
};

/* Definitions. */

static bool process_def_copy_str(struct arena *a, struct str *s)
{
    s->p = arena_strdup(a, *s);
    return s->p;
}

static bool process_def_copy_strs(struct arena *a, struct strs *s)
{
    struct str *list = arena_array(a, s->n + 1, sizeof(*list));

    for (size_t i = 0; list && i < s->n; i++) {
        list[i] = s->list[i];
        if (!process_def_copy_str(a, &list[i]))
            return false;
    }
    s->list = list;
    return list;
}

static bool process_def_copy(struct arena *a, struct process_def *def)
{
    return process_def_copy_str(a, &def->name) &&
           process_def_copy_strs(a, &def->command) &&
           process_def_copy_str(a, &def->workspace) &&
           process_def_copy_strs(a, &def->env_allowed) &&
           process_def_copy_strs(a, &def->env) &&
           process_def_copy_strs(a, &def->whole_env) &&
           process_def_copy_str(a, &def->model) &&
           process_def_copy_strs(a, &def->read) &&
           process_def_copy_strs(a, &def->write) &&
           process_def_copy_str(a, &def->user);
}

static bool strs_eq(struct strs a, struct strs b)
{
    for (size_t i = 0; a.n == b.n && i < a.n; i++)
        if (!str_eq(a.list[i], b.list[i]))
            return false;
    return a.n == b.n;
}

/* Whether a child of one definition can serve the other. */
static bool process_def_is_same_program(const struct process_def *a,
                                        const struct process_def *b)
{
    return strs_eq(a->command, b->command) && a->dialect == b->dialect &&
           str_eq(a->workspace, b->workspace) &&
           strs_eq(a->whole_env, b->whole_env) && str_eq(a->model, b->model) &&
           a->tools == b->tools && a->sandbox == b->sandbox &&
           strs_eq(a->read, b->read) && strs_eq(a->write, b->write) &&
           str_eq(a->user, b->user);
}

static bool process_def_has_same_limits(const struct process_def *a,
                                        const struct process_def *b)
{
    return a->min == b->min && a->max == b->max && a->idle_ms == b->idle_ms &&
           a->start_ms == b->start_ms && a->stop_grace_ms == b->stop_grace_ms &&
           a->cancel == b->cancel && a->max_line_bytes == b->max_line_bytes &&
           a->memory_bytes == b->memory_bytes && a->cpu_s == b->cpu_s &&
           a->files == b->files && a->processes == b->processes;
}

/* Workspace and program. */

/* Create a missing workspace, but not its parent folders: a misspelt path
 * should be an error. */
static void pool_make_workspace(struct pool *p)
{
    struct log *log = p->all->deliver->opts.log;
    const char *path = p->def.workspace.p;
    struct passwd *u = p->def.user.n ? getpwnam(p->def.user.p) : NULL;

    if (!p->def.workspace.n)
        return;
    if (mkdir(path, 0777) == 0 &&
        (!u || chown(path, u->pw_uid, u->pw_gid) == 0))
        log_info(log, "deliver.workspace_made", LOG_S("process", p->def.name),
                 LOG_S("folder", p->def.workspace));
    else if (errno != EEXIST)
        log_warn(log, "deliver.workspace_not_made",
                 LOG_S("process", p->def.name),
                 LOG_S("folder", p->def.workspace),
                 LOG_C("because", strerrordesc_np(errno)));
}

static void pool_seek_program(struct pool *p)
{
    struct deliver *d = p->all->deliver;
    bool was_missing = p->missing.text[0];
    struct why why = {""};
    enum err e = pool_worker_seek(p, &why);

    if (e == ERR_NOMEM)
        return;
    p->missing = why;
    if (e && !was_missing)
        log_warn(d->opts.log, "deliver.program_missing",
                 LOG_S("process", p->def.name), LOG_C("because", why.text));
    else if (!e && was_missing)
        log_info(d->opts.log, "deliver.program_found",
                 LOG_S("process", p->def.name));
    if (e && !p->is_retired)
        loop_timer_set(d->opts.loop, &p->seek, SEEK_MS);
}

static void pool_on_seek(struct timer *t)
{
    pool_seek_program(LIST_OF(t, struct pool, seek));
}

/* Create and free. */

struct pool *pool_find(const struct pools *all, struct str name)
{
    for (struct list_node *n = list_first(&all->list); n;
         n = list_next(&all->list, n)) {
        struct pool *p = LIST_OF(n, struct pool, node);

        if (str_eq_nocase(p->def.name, name))
            return p;
    }
    return NULL;
}

void pool_due(struct pool *p)
{
    if (!list_has(&p->due))
        list_append(&p->all->due, &p->due);
    loop_at_end(p->all->deliver->opts.loop, &p->all->job);
}

static void pool_on_pause_over(struct timer *t)
{
    pool_due(LIST_OF(t, struct pool, again));
}

static struct pool *process_pool_new(struct pools *all,
                                     const struct process_def *def)
{
    struct pool *p = mem_new(sizeof(*p));

    p->all = all;
    p->def = *def;
    p->dialect = dialects[def->dialect];
    p->again.fire = pool_on_pause_over;
    p->seek.fire = pool_on_seek;
    arena_init(&p->arena, DEF_BYTES_MAX);
    list_init(&p->workers);
    list_init(&p->waiting);
    list_init(&p->affinities_by_use);
    map_init(&p->affinities, AFFINITIES_MAX, all->deliver->opts.seed);
    if (process_def_copy(&p->arena, &p->def)) {
        list_append(&all->list, &p->node);
        return p;
    }
    arena_fini(&p->arena);
    free(p);
    return NULL;
}

static void process_pool_free(struct pool *p)
{
    assert(!p->n_workers && !p->n_waiting);
    loop_timer_cancel(p->all->deliver->opts.loop, &p->again);
    loop_timer_cancel(p->all->deliver->opts.loop, &p->seek);
    affinities_free(p);
    list_remove(&p->node);
    list_remove(&p->due);
    arena_fini(&p->arena);
    free(p);
}

/* Pauses. */

/* Half of ms and a random part of the other half, so that pools that failed
 * together do not restart together. */
static int64_t pools_jitter_ms(struct pools *all, int64_t ms)
{
    uint64_t n = all->n_pauses++;
    struct str bytes = {(const char *)&n, sizeof(n)};

    return ms / 2 + (int64_t)(hash_bytes(bytes, all->deliver->opts.seed) %
                              (uint64_t)(ms / 2 + 1));
}

void pool_bad(struct pool *p)
{
    struct loop *loop = p->all->deliver->opts.loop;
    int64_t pause_ms = RESTART_MS;

    for (int i = 0; i < p->n_bad && pause_ms < RESTART_MAX_MS; i++)
        pause_ms *= 2;
    if (pause_ms > RESTART_MAX_MS)
        pause_ms = RESTART_MAX_MS;
    p->n_bad++;
    p->not_before_ms = loop_mono_ms(loop) + pools_jitter_ms(p->all, pause_ms);
    pool_due(p);
}

/* Whether a child may be started now; otherwise the pool is checked later. */
static bool pool_may_start_now(struct pool *p)
{
    struct loop *loop = p->all->deliver->opts.loop;
    int64_t left_ms = p->not_before_ms - loop_mono_ms(loop);

    if (left_ms <= 0)
        return true;
    if (!timer_is_set(&p->again))
        loop_timer_set(loop, &p->again, left_ms);
    return false;
}

/* Start children. */

static size_t least_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The number of missing children that may start now. */
static size_t pool_n_missing(const struct pool *p, size_t n_wanted)
{
    size_t min = (size_t)p->def.min, max = (size_t)p->def.max;
    size_t lasting = p->n_workers - p->n_ending;
    size_t n = n_wanted > p->n_starting ? n_wanted - p->n_starting : 0;
    size_t together = p->n_bad ? 1 : STARTING_MAX;

    if (lasting < min && min - lasting > n)
        n = min - lasting;
    n = least_size(n, p->n_workers < max ? max - p->n_workers : 0);
    return least_size(n,
                      p->n_starting < together ? together - p->n_starting : 0);
}

void pool_cannot_start(struct pool *p, enum err e, const struct why *why)
{
    bool is_final =
        e == ERR_NOT_FOUND || e == ERR_NOT_ALLOWED || e == ERR_BAD_REQUEST;

    if (e == ERR_STOPPING)
        return;
    log_warn(p->all->deliver->opts.log, "deliver.child_not_started",
             LOG_S("process", p->def.name), LOG_C("because", why->text));
    pool_bad(p);
    if (is_final)
        pool_seek_program(p);
    /* With these errors, tasks wait for memory or for other children to end. */
    if (e != ERR_LIMIT && e != ERR_NOMEM)
        pool_disappoint(
            p, &(struct delivery_failure){
                   .code = STR("agent_did_not_start"),
                   .words = STR("the agent's program cannot be started; the "
                                "server's log says why"),
                   .detail = str_of(why->text),
                   .is_final = is_final});
}

static void pool_start_missing(struct pool *p, size_t n_wanted)
{
    while (pool_n_missing(p, n_wanted) && pool_may_start_now(p)) {
        struct why why = {""};
        enum err e = pool_worker_start(p, &why);

        if (e) {
            pool_cannot_start(p, e, &why);
            return;
        }
    }
}

static void pool_look_at_retired(struct pool *p)
{
    struct list_node *next;

    pool_send_back(p);
    for (struct list_node *n = list_first(&p->workers); n; n = next) {
        struct pool_worker *h = LIST_OF(n, struct pool_worker, node);

        next = list_next(&p->workers, n);
        if (h->n_taken == 0)
            pool_worker_stop(h);
    }
    if (!p->n_workers)
        process_pool_free(p);
}

static void pools_on_end_of_turn(struct loop_job *job)
{
    struct pools *all = LIST_OF(job, struct pools, job);
    struct list now;
    struct list_node *n;

    list_init(&now);
    list_append_all(&now, &all->due);
    while ((n = list_pop(&now))) {
        struct pool *p = LIST_OF(n, struct pool, due);

        if (p->is_retired)
            pool_look_at_retired(p);
        else if (!all->is_stopping)
            pool_start_missing(p, pool_place(p));
    }
}

/* The next children get the tasks of these, without a pause. */
void pool_respawn(struct pool *p)
{
    struct list_node *next;

    for (struct list_node *n = list_first(&p->workers); n; n = next) {
        next = list_next(&p->workers, n);
        pool_worker_stop(LIST_OF(n, struct pool_worker, node));
    }
    p->n_bad = 0;
    p->not_before_ms = 0;
    loop_timer_cancel(p->all->deliver->opts.loop, &p->again);
    pool_due(p);
}

/* For deliver.c. */

static void pools_stop_workers(struct list *pools)
{
    for (struct list_node *n = list_first(pools); n; n = list_next(pools, n)) {
        struct pool *p = LIST_OF(n, struct pool, node);
        struct list_node *next;

        for (struct list_node *m = list_first(&p->workers); m; m = next) {
            next = list_next(&p->workers, m);
            pool_worker_stop(LIST_OF(m, struct pool_worker, node));
        }
    }
}

static void pools_on_stop(struct deliver *d, struct deliver_part *part)
{
    struct pools *all = LIST_OF(part, struct pools, part);

    all->is_stopping = true;
    pools_stop_workers(&all->list);
    pools_stop_workers(&all->retired);
    if (!all->n_workers)
        deliver_part_stopped(d, part);
}

void pool_worker_gone(struct pool *p)
{
    struct pools *all = p->all;

    p->n_workers--;
    all->n_workers--;
    if (all->is_stopping && !all->n_workers)
        deliver_part_stopped(all->deliver, &all->part);
    pool_due(p);
}

struct pools *pools_new(struct deliver *d)
{
    struct pools *all = mem_new(sizeof(*all));

    all->deliver = d;
    all->job.run = pools_on_end_of_turn;
    all->part.stop = pools_on_stop;
    list_init(&all->list);
    list_init(&all->retired);
    list_init(&all->due);
    deliver_part_add(d, &all->part);
    d->pools = all;
    pools_set(d);
    return all;
}

void pools_free(struct deliver *d)
{
    struct pools *all = d->pools;
    struct list_node *n;

    if (!all)
        return;
    assert(!all->n_workers); /* deliver_stop comes first */
    while ((n = list_first(&all->list)) || (n = list_first(&all->retired)))
        process_pool_free(LIST_OF(n, struct pool, node));
    loop_not_at_end(&all->job);
    list_remove(&all->part.node);
    if (all->pi_tools)
        close(all->pi_tools);
    free(all);
    d->pools = NULL;
}

static void pools_add(struct pools *all, const struct process_def *def)
{
    struct pool *p = process_pool_new(all, def);

    if (p) {
        pool_make_workspace(p);
        pool_seek_program(p);
        pool_due(p);
    } else {
        log_error(all->deliver->opts.log, "deliver.no_memory_for_process",
                  LOG_S("process", def->name));
    }
}

void pools_set(struct deliver *d)
{
    const struct deliver_settings *s = &d->opts.settings;
    struct pools *all = d->pools;
    struct list_node *next;

    if (all->is_stopping || !d->opts.children)
        return;
    for (struct list_node *n = list_first(&all->list); n; n = next) {
        struct pool *p = LIST_OF(n, struct pool, node);
        const struct process_def *def =
            process_def_find(s->processes, s->n_processes, p->def.name);

        next = list_next(&all->list, n);
        if (!def || !process_def_is_same_program(def, &p->def) ||
            !process_def_has_same_limits(def, &p->def)) {
            list_remove(&p->node);
            list_append(&all->retired, &p->node);
            p->is_retired = true;
            loop_timer_cancel(d->opts.loop, &p->seek);
            pool_due(p);
        }
    }
    for (size_t i = 0; i < s->n_processes; i++)
        if (!pool_find(all, s->processes[i].name))
            pools_add(all, &s->processes[i]);
}

int64_t pools_n_children(const struct deliver *d)
{
    return d->pools ? (int64_t)d->pools->n_workers : 0;
}
