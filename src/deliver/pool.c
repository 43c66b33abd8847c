/* The children of one definition: how many there are, and when one is started.
 *
 * Everything that could change that (a task comes, a child is ready, has ended,
 * has nothing to do any more, a pause is over) only marks the pool; it is
 * looked at once, at the end of the turn: those who wait are given to children
 * that can take them, and then as many are started as are missing. So there is
 * one place where a program is started, and it asks there how many there are
 * and whether it is time: after a child that came to nothing there is a pause,
 * longer each time and never quite the same, and only one is tried until one
 * has brought a result. A program that ends at once costs two starts a minute.
 *
 * A pool has its own copy of its definition. When a reload changes or removes
 * that, the pool retires: it takes no more work, its children finish what they
 * have and go, and it goes with the last of them. A reload that leaves the
 * definition as it was leaves the children too. */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deliver/pool.h"

enum { DEF_BYTES_MAX = 8 * 1024 * 1024 };

static const struct dialect *const dialects[] = {
    [DIALECT_SIGNALBOX] = &dialect_own,
    [DIALECT_PI] = &dialect_pi,
};

/* Definitions. */

static bool copy_str(struct arena *a, struct str *s)
{
    char *p = FAULT("deliver.pool_copy") ? NULL : arena_strdup(a, *s);

    s->p = p;
    return p;
}

static bool copy_strs(struct arena *a, struct strs *s)
{
    struct str *list = arena_array(a, s->n + 1, sizeof(*list));

    for (size_t i = 0; list && i < s->n; i++) {
        list[i] = s->list[i];
        if (!copy_str(a, &list[i]))
            return false;
    }
    s->list = list;
    return list;
}

static bool copy_def(struct arena *a, struct process_def *def)
{
    return copy_str(a, &def->name) && copy_strs(a, &def->command) &&
           copy_str(a, &def->workspace) && copy_strs(a, &def->env_allowed) &&
           copy_strs(a, &def->env) && copy_strs(a, &def->whole_env) &&
           copy_str(a, &def->model) && copy_strs(a, &def->read) &&
           copy_strs(a, &def->write) && copy_str(a, &def->user);
}

static bool strs_eq(struct strs a, struct strs b)
{
    for (size_t i = 0; a.n == b.n && i < a.n; i++)
        if (!str_eq(a.list[i], b.list[i]))
            return false;
    return a.n == b.n;
}

/* Whether a child of one is a child of the other. */
static bool is_same_program(const struct process_def *a,
                            const struct process_def *b)
{
    return strs_eq(a->command, b->command) && a->dialect == b->dialect &&
           str_eq(a->workspace, b->workspace) &&
           strs_eq(a->whole_env, b->whole_env) && str_eq(a->model, b->model) &&
           a->tools == b->tools && a->sandbox == b->sandbox &&
           strs_eq(a->read, b->read) && strs_eq(a->write, b->write) &&
           str_eq(a->user, b->user);
}

static bool has_same_limits(const struct process_def *a,
                            const struct process_def *b)
{
    return a->min == b->min && a->max == b->max && a->idle_ms == b->idle_ms &&
           a->start_ms == b->start_ms && a->stop_grace_ms == b->stop_grace_ms &&
           a->cancel == b->cancel && a->max_line_bytes == b->max_line_bytes &&
           a->memory_bytes == b->memory_bytes && a->cpu_s == b->cpu_s &&
           a->files == b->files && a->processes == b->processes;
}

/* What it needs. */

/* To the user that its programs run as. */
static bool give_workspace(const struct pool *p)
{
    struct passwd *u = p->def.user.n ? getpwnam(p->def.user.p) : NULL;

    return !u || chown(p->def.workspace.p, u->pw_uid, u->pw_gid) == 0;
}

/* A workspace that is not there is made. Not what it lies in: a path that was
 * misspelt is better told than made. */
static void make_workspace(struct pool *p)
{
    struct log *log = p->all->deliver->opts.log;
    const char *path = p->def.workspace.p;

    if (!p->def.workspace.n)
        return;
    if (mkdir(path, 0777) == 0 && give_workspace(p))
        log_info(log, "deliver.workspace_made", LOG_S("process", p->def.name),
                 LOG_S("folder", p->def.workspace));
    else if (errno != EEXIST)
        log_warn(log, "deliver.workspace_not_made",
                 LOG_S("process", p->def.name),
                 LOG_S("folder", p->def.workspace),
                 LOG_C("because", strerrordesc_np(errno)));
}

/* Without memory for the timer it is looked for when it is needed. */
static void seek(struct pool *p)
{
    struct deliver *d = p->all->deliver;
    bool was_missing = p->missing.text[0];
    struct why why = {""};
    enum err e = hand_seek(p, &why);

    if (e == ERR_NOMEM)
        return;
    p->missing = why;
    if (e && !was_missing)
        log_warn(d->opts.log, "deliver.program_missing",
                 LOG_S("process", p->def.name), LOG_C("because", why.text));
    else if (!e && was_missing)
        log_info(d->opts.log, "deliver.program_found",
                 LOG_S("process", p->def.name));
    if (e && !p->is_retired &&
        loop_timer_set(d->opts.loop, &p->seek, SEEK_MS) != OK)
        log_debug(d->opts.log, "deliver.no_seek_timer",
                  LOG_S("process", p->def.name));
}

static void on_seek(struct timer *t)
{
    seek(LIST_OF(t, struct pool, seek));
}

/* Life. */

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

static void on_again(struct timer *t)
{
    pool_due(LIST_OF(t, struct pool, again));
}

static struct pool *pool_new(struct pools *all, const struct process_def *def)
{
    struct pool *p = FAULT("deliver.pool") ? NULL : calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->all = all;
    p->def = *def;
    p->dialect = dialects[def->dialect];
    p->again.fire = on_again;
    p->seek.fire = on_seek;
    arena_init(&p->arena, DEF_BYTES_MAX);
    list_init(&p->hands);
    list_init(&p->waiting);
    list_init(&p->keeps_by_use);
    map_init(&p->keeps, KEEPS_MAX, all->deliver->opts.seed);
    if (copy_def(&p->arena, &p->def)) {
        list_append(&all->list, &p->node);
        return p;
    }
    arena_fini(&p->arena);
    free(p);
    return NULL;
}

static void pool_free(struct pool *p)
{
    assert(!p->n_hands && !p->n_waiting);
    loop_timer_cancel(p->all->deliver->opts.loop, &p->again);
    loop_timer_cancel(p->all->deliver->opts.loop, &p->seek);
    keeps_free(p);
    list_remove(&p->node);
    list_remove(&p->due);
    arena_fini(&p->arena);
    free(p);
}

static void retire(struct pool *p)
{
    list_remove(&p->node);
    list_append(&p->all->retired, &p->node);
    p->is_retired = true;
    loop_timer_cancel(p->all->deliver->opts.loop, &p->seek);
    pool_due(p);
}

/* Pauses. */

/* Half of it and a random part of the other half, so that those who fell
 * together do not rise together. */
static int64_t jittered(struct pools *all, int64_t ms)
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
    p->not_before_ms = loop_mono_ms(loop) + jittered(p->all, pause_ms);
    pool_due(p);
}

/* Whether it is time to start one; else it is looked at again when it is. */
static bool may_start_now(struct pool *p)
{
    struct loop *loop = p->all->deliver->opts.loop;
    int64_t left_ms = p->not_before_ms - loop_mono_ms(loop);

    if (left_ms <= 0)
        return true;
    if (!timer_is_set(&p->again) &&
        loop_timer_set(loop, &p->again, left_ms) != OK) {
        if (!list_has(&p->due))
            list_append(&p->all->due, &p->due);
        loop_next_turn(loop, &p->all->job);
    }
    return false;
}

/* Starting. */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* How many are missing, of which only so many may start together. */
static size_t n_missing(const struct pool *p, size_t n_wanted)
{
    size_t min = (size_t)p->def.min, max = (size_t)p->def.max;
    size_t lasting = p->n_hands - p->n_ending;
    size_t n = n_wanted > p->n_starting ? n_wanted - p->n_starting : 0;
    size_t together = p->n_bad ? 1 : STARTING_MAX;

    if (lasting < min && min - lasting > n)
        n = min - lasting;
    n = least(n, p->n_hands < max ? max - p->n_hands : 0);
    return least(n, p->n_starting < together ? together - p->n_starting : 0);
}

static void on_cannot_start(struct pool *p, enum err e, const struct why *why)
{
    bool is_final =
        e == ERR_NOT_FOUND || e == ERR_NOT_ALLOWED || e == ERR_BAD_REQUEST;

    if (e == ERR_STOPPING)
        return;
    log_warn(p->all->deliver->opts.log, "deliver.child_not_started",
             LOG_S("process", p->def.name), LOG_C("because", why->text));
    pool_bad(p);
    if (is_final)
        seek(p);
    /* Who waits for memory, or for others to end, waits. */
    if (e != ERR_LIMIT && e != ERR_NOMEM)
        pool_disappoint(
            p, &(struct delivery_failure){
                   .code = STR("agent_did_not_start"),
                   .words = STR("the agent's program cannot be started; the "
                                "server's log says why"),
                   .detail = str_of(why->text),
                   .is_final = is_final});
}

static void start_missing(struct pool *p, size_t n_wanted)
{
    while (n_missing(p, n_wanted) && may_start_now(p)) {
        struct why why = {""};
        enum err e = hand_start(p, &why);

        if (e) {
            on_cannot_start(p, e, &why);
            return;
        }
    }
}

static void look_at_retired(struct pool *p)
{
    struct list_node *next;

    pool_send_back(p);
    for (struct list_node *n = list_first(&p->hands); n; n = next) {
        struct hand *h = LIST_OF(n, struct hand, node);

        next = list_next(&p->hands, n);
        if (h->n_taken == 0)
            hand_stop(h);
    }
    if (!p->n_hands)
        pool_free(p);
}

static void look(struct loop_job *job)
{
    struct pools *all = LIST_OF(job, struct pools, job);
    struct list now;
    struct list_node *n;

    /* Who has to wait for the next turn puts itself on the list again. */
    list_init(&now);
    list_append_all(&now, &all->due);
    while ((n = list_pop(&now))) {
        struct pool *p = LIST_OF(n, struct pool, due);

        if (p->is_retired)
            look_at_retired(p);
        else if (!all->is_stopping)
            start_missing(p, pool_place(p));
    }
}

/* What its children had is carried again by the next ones, which need not wait
 * for a pause. */
void pool_respawn(struct pool *p)
{
    struct list_node *next;

    for (struct list_node *n = list_first(&p->hands); n; n = next) {
        next = list_next(&p->hands, n);
        hand_stop(LIST_OF(n, struct hand, node));
    }
    p->n_bad = 0;
    p->not_before_ms = 0;
    loop_timer_cancel(p->all->deliver->opts.loop, &p->again);
    pool_due(p);
}

/* For deliver.c. */

static void stop_hands(struct list *pools)
{
    for (struct list_node *n = list_first(pools); n; n = list_next(pools, n)) {
        struct pool *p = LIST_OF(n, struct pool, node);
        struct list_node *next;

        for (struct list_node *m = list_first(&p->hands); m; m = next) {
            next = list_next(&p->hands, m);
            hand_stop(LIST_OF(m, struct hand, node));
        }
    }
}

static void on_stop(struct deliver *d, struct deliver_part *part)
{
    struct pools *all = LIST_OF(part, struct pools, part);

    all->is_stopping = true;
    stop_hands(&all->list);
    stop_hands(&all->retired);
    if (!all->n_hands)
        deliver_part_stopped(d, part);
}

void pool_hand_gone(struct pool *p)
{
    struct pools *all = p->all;

    p->n_hands--;
    all->n_hands--;
    if (all->is_stopping && !all->n_hands)
        deliver_part_stopped(all->deliver, &all->part);
    pool_due(p);
}

struct pools *pools_new(struct deliver *d)
{
    struct pools *all = FAULT("deliver.pools") ? NULL : calloc(1, sizeof(*all));

    if (!all)
        return NULL;
    all->deliver = d;
    all->job.run = look;
    all->part.stop = on_stop;
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
    assert(!all->n_hands); /* deliver_stop comes first */
    while ((n = list_first(&all->list)) || (n = list_first(&all->retired)))
        pool_free(LIST_OF(n, struct pool, node));
    loop_not_at_end(&all->job);
    list_remove(&all->part.node);
    if (all->pi_tools)
        close(all->pi_tools);
    free(all);
    d->pools = NULL;
}

static void make_pool(struct pools *all, const struct process_def *def)
{
    struct pool *p = pool_new(all, def);

    if (p) {
        make_workspace(p);
        seek(p);
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
        if (!def || !is_same_program(def, &p->def) ||
            !has_same_limits(def, &p->def))
            retire(p);
    }
    for (size_t i = 0; i < s->n_processes; i++)
        if (!pool_find(all, s->processes[i].name))
            make_pool(all, &s->processes[i]);
}

int64_t pools_n_children(const struct deliver *d)
{
    return d->pools ? (int64_t)d->pools->n_hands : 0;
}
