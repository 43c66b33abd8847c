/* Jobs, from embed_start to the owner's callback, and their table by id.
 *
 * A call of embed_start is a job: its texts are in one block of memory, and
 * each takes its own way through the kind's queue, so that the texts of many
 * small calls share requests and those of a large one do not delay the rest. A
 * job ends with its last vector, its first failure or its deadline.
 *
 * If a job is given up while the kind still uses one of its texts (on the
 * worker's thread), that text is returned before the job is freed; until then
 * the job is a zombie. */
#include "embed/jobs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/fault.h"

enum { FIRST_SLOTS = 16 };

/* The table of jobs. */

static enum err embed_grow_slots(struct embed *e)
{
    uint32_t n = e->n_slots ? e->n_slots * 2 : FIRST_SLOTS;
    struct embed_slot *slots;

    if (n >= EMBED_NO_SLOT)
        return ERR_BUSY;
    slots =
        FAULT("embed.slots") ? NULL : realloc(e->slots, n * sizeof(*e->slots));
    if (!slots)
        return ERR_NOMEM;
    for (uint32_t i = e->n_slots; i < n; i++)
        slots[i] = (struct embed_slot){NULL, i + 1 < n ? i + 1 : EMBED_NO_SLOT};
    e->first_free = e->n_slots;
    e->slots = slots;
    e->n_slots = n;
    return OK;
}

enum err job_take_slot(struct embed *e, struct embed_job *j)
{
    enum err err = e->first_free == EMBED_NO_SLOT ? embed_grow_slots(e) : OK;

    if (err)
        return err;
    j->slot = e->first_free;
    e->first_free = e->slots[j->slot].next_free;
    e->slots[j->slot].job = j;
    j->id = (++e->n_ids << EMBED_SLOT_BITS) | j->slot;
    return OK;
}

static void job_give_slot(struct embed *e, struct embed_job *j)
{
    if (!j->id)
        return;
    e->slots[j->slot] = (struct embed_slot){NULL, e->first_free};
    e->first_free = j->slot;
    j->id = 0;
}

struct embed_job *job_find(const struct embed *e, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & EMBED_NO_SLOT);
    struct embed_job *j = slot < e->n_slots ? e->slots[slot].job : NULL;

    return j && j->id == id ? j : NULL;
}

/* Jobs. */

struct str embed_cut(const struct embed *e, struct str text)
{
    return str_head(text, e->max_text_bytes);
}

size_t embed_vector_bytes(const struct embed *e, size_t n)
{
    return n * e->stamp.dims * sizeof(float);
}

/* Allocate its vectors as soon as their length is known. */
static bool job_alloc_vectors(struct embed_job *j)
{
    size_t bytes = embed_vector_bytes(j->embed, j->n);

    if (j->vectors || !bytes)
        return true;
    j->vectors = FAULT("embed.vectors") ? NULL : calloc(1, bytes);
    if (!j->vectors)
        return false;
    j->n_bytes += bytes;
    if (j->is_counted)
        j->embed->n_waiting_bytes += bytes;
    return true;
}

void embed_job_free(struct embed_job *j)
{
    assert(!j->n_out && !timer_is_set(&j->deadline));
    job_give_slot(j->embed, j);
    list_remove(&j->node);
    free(j->vectors);
    free(j);
}

struct embed_job *embed_job_new(struct embed *e, const struct str *texts,
                                size_t n)
{
    size_t n_bytes = 0;
    struct embed_job *j;
    char *to;

    for (size_t i = 0; i < n; i++)
        n_bytes += embed_cut(e, texts[i]).n;
    j = FAULT("embed.job")
            ? NULL
            : calloc(1, sizeof(*j) + n * sizeof(j->texts[0]) + n_bytes);
    if (!j)
        return NULL;
    j->embed = e;
    j->n = j->n_left = n;
    j->n_bytes = n_bytes;
    to = (char *)&j->texts[n];
    for (size_t i = 0; i < n; i++) {
        struct str text = embed_cut(e, texts[i]);

        if (text.n)
            memcpy(to, text.p, text.n);
        j->texts[i] = (struct embed_text){.job = j, .text = {to, text.n}};
        to += text.n;
    }
    if (job_alloc_vectors(j))
        return j;
    free(j);
    return NULL;
}

float *job_vector(struct embed_text *t)
{
    size_t at = (size_t)(t - t->job->texts);

    return t->job->vectors + at * t->job->embed->stamp.dims;
}

/* Cancel its remaining texts. */
static void job_drop_texts(struct embed_job *j)
{
    j->is_over = true;
    loop_timer_cancel(j->embed->loop, &j->deadline);
    j->is_counted = false;
    j->embed->n_waiting -= j->n;
    j->embed->n_waiting_bytes -= j->n_bytes;
    for (size_t i = 0; i < j->n; i++) {
        struct embed_text *t = &j->texts[i];

        if (!t->is_pending)
            continue;
        t->is_pending = false;
        t->is_dropped = !j->embed->ops->drop(j->embed, t);
        j->n_out += t->is_dropped;
    }
}

void job_end(struct embed_job *j, enum err err, const struct why *why)
{
    struct embed *e = j->embed;

    j->e = err;
    if (err)
        j->why = *why;
    if (err && err != ERR_STOPPING)
        e->stats.failed_total += (int64_t)j->n_left;
    job_drop_texts(j);
    list_remove(&j->node);
    list_append(&e->ended, &j->node);
    loop_at_end(e->loop, &e->deliver);
}

static void on_job_deadline(struct timer *t)
{
    struct embed_job *j = LIST_OF(t, struct embed_job, deadline);
    struct why why;

    why_err(&why, ERR_TIMEOUT,
            "%zu of %zu texts had no vector within %lld ms: too much is "
            "before them, or embed.timeoutMs is too short",
            j->n_left, j->n, (long long)j->timeout_ms);
    job_end(j, ERR_TIMEOUT, &why);
}

void job_bury(struct embed_job *j)
{
    struct embed *e = j->embed;

    job_give_slot(e, j);
    list_remove(&j->node);
    if (!j->n_out)
        embed_job_free(j);
    else
        e->n_zombies++;
}

void job_tell(struct embed_job *j)
{
    struct embed *e = j->embed;
    struct embed_result r = {.stamp = e->stamp, .n = j->n};
    uint64_t id = j->id;

    /* If all its texts are blank, the length may be known only now. */
    if (!j->e && !job_alloc_vectors(j))
        j->e = why_err(&j->why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    r.vectors = j->vectors;
    job_give_slot(e, j);
    j->done(j->ctx, id, j->e, j->e ? NULL : &r, &j->why);
    job_bury(j);
}

void job_set_deadline(struct embed_job *j)
{
    j->timeout_ms =
        j->embed->timeout_ms * (j->use == EMBED_QUERY ? 1 : EMBED_PATIENCE);
    j->deadline.fire = on_job_deadline;
    loop_timer_set(j->embed->loop, &j->deadline, j->timeout_ms);
}

void job_begin(struct embed_job *j)
{
    struct embed *e = j->embed;

    j->is_counted = true;
    j->embed->n_waiting += j->n;
    j->embed->n_waiting_bytes += j->n_bytes;
    list_append(&e->jobs, &j->node);
    if (!j->n_left)
        job_end(j, OK, NULL);
    for (size_t i = 0; i < j->n && !j->is_over; i++)
        if (j->texts[i].is_pending)
            e->ops->take(e, &j->texts[i]);
}

void job_cancel(struct embed_job *j)
{
    if (!j->is_over)
        job_drop_texts(j);
    job_bury(j);
}

/* Reports of the kinds. */

void embed_made(struct embed_text *t, const float *vector)
{
    struct embed_job *j = t->job;
    struct embed *e = j->embed;
    struct why why;

    t->is_pending = false;
    e->stats.texts_total++;
    if (j->use == EMBED_QUERY)
        cache_put(&e->cache, j->by, t->text, vector);
    if (!job_alloc_vectors(j)) {
        why_err(&why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
        job_end(j, ERR_NOMEM, &why);
        return;
    }
    memcpy(job_vector(t), vector, e->stamp.dims * sizeof(float));
    if (--j->n_left == 0)
        job_end(j, OK, NULL);
}

void embed_failed(struct embed_text *t, enum err e, const struct why *why)
{
    t->is_pending = false;
    job_end(t->job, e, why);
}

void embed_back(struct embed_text *t)
{
    struct embed_job *j = t->job;
    struct embed *e = j->embed;

    assert(t->is_dropped && j->n_out);
    t->is_dropped = false;
    if (--j->n_out || j->id || list_has(&j->node))
        return;
    e->n_zombies--;
    embed_job_free(j);
    if (e->is_stopping)
        loop_at_end(e->loop, &e->deliver);
}
