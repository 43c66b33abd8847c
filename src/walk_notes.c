/* What an agent delegated and did not wait for, where it has no line on which
 * it could be told: models, and programs that are pi. When it is over the user
 * is told, in the feed and on the streams of the tasks that it is part of; the
 * agent finds it with its next turn in the same conversation, before the words
 * of that turn.
 *
 *     hire's on_ready -> walk_note -> hire_note
 *     (commit) -> walk_on_noted: the streams are told, and who is about to go
 *                 takes it along
 *     on_ready -> walk_recall -> the notes are read -> offered again
 *     on_go: the turn is lent with them (walk_with_notes)
 *     completed: they are this turn's (walk_record_told)
 *
 * A model remembers nothing, so it is also told what its turns before began
 * with, as part of its history. pi has it in its session, with all else that
 * was said there, and loses both with that (deliver/process.c). A recall lives
 * from when its task is to be carried until its turn is over. */
#include <stdlib.h>

#include "base/fault.h"
#include "speak/speak.h"
#include "walk_internal.h"
#include "watch/watch.h"

enum {
    NOTE_ASKED = 200,       /* of what was asked, to tell two apart */
    NOTE_WORDS = 8 * 1024,  /* of one result; its task has them all */
    NOTE_BYTES = 16 * 1024, /* of all of it, as JSON */
    NOTES_AT_ONCE = 16, /* told in one turn, and as many of those before it */
    NOTES_BYTES = 64 * 1024, /* of those of one turn, and their frame: */
    NOTES_FRAME = 128,
    NEWS_BYTES = 2 * 1024,
    RECALL_BYTES = 16 * 1024 * 1024,
};

/* A note that this turn begins with. */
struct new_note {
    struct id key;
    struct str text;
};

/* A note that a turn before had. */
struct had_note {
    int64_t seq, turn;
    struct str text;
};

struct recall {
    struct walk *walk;
    struct id task_id;
    int64_t turn;
    char agent[AGENT_NAME_MAX + 1];
    enum { RECALL_READS, RECALL_FAILED, RECALL_STALE, RECALL_IS_THERE } state;
    bool is_left; /* its turn is over, and the store has the query */
    bool is_late; /* a note was written while it reads */
    bool is_lent; /* the turn has begun: what is new is for the next */
    struct query query;
    struct arena arena; /* of the notes */
    struct buf text;    /* the turn's, behind its notes; empty: as it is */
    struct new_note new[NOTES_AT_ONCE];
    size_t n_new, new_bytes;
    bool has_more;
    struct had_note had[NOTES_AT_ONCE];
    size_t n_had;
    struct task with;  /* the task as it was lent */
    struct arena past; /* of what was said before, with its notes */
    deliver_heard_history *done;
    void *ctx;
    size_t max_bytes;
};

bool walk_hears_by_note(void *ctx, struct str name)
{
    const struct walk *w = ctx;
    const struct agent *a = walk_agent_of(ctx, name);

    return a && deliver_uses_tools(w->deliver, a);
}

/* It is over. */

static void put_cut(struct buf *out, const struct delegation *d,
                    const struct task *t, size_t words)
{
    struct json_out o = json_out(out);
    struct task cut = *t;

    cut.result.text = str_head(t->result.text, words);
    json_open(&o, '{');
    json_member_str(&o, "agentId", t->agent);
    if (t->text.n)
        json_member_text(&o, "task", str_head(t->text, NOTE_ASKED));
    speak_delegated(&o, str_of(d->key.text), &cut);
    if (cut.result.text.n < t->result.text.n)
        json_member_bool(&o, "cut", true);
    json_close(&o, '}');
}

/* As the answer of the tool has it, and what it is the answer to; as JSON some
 * words become longer. */
static void put_note(struct buf *out, const struct delegation *d,
                     const struct task *t)
{
    for (size_t words = NOTE_WORDS; words; words /= 2) {
        buf_clear(out);
        put_cut(out, d, t, words);
        if (!out->over && out->n <= NOTE_BYTES)
            return;
    }
}

static struct str put_news(struct buf *out, const struct delegation *d,
                           const struct task *t)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_str(&o, "sessionKey", str_of(d->key.text));
    json_member_str(&o, "task_id", str_of(t->id.text));
    json_member_str(&o, "agent", t->agent);
    json_member_str(&o, "status", task_status_name(t->status));
    json_close(&o, '}');
    return buf_str(out);
}

static enum err keep(struct walk *w, const struct delegation *d,
                     const struct task *t, struct str note)
{
    struct buf data;
    enum err e;

    buf_init(&data, NEWS_BYTES);
    e = hire_note(w->hires, str_of(d->key.text), note,
                  &(struct feed_entry){.at_ms = loop_wall_ms(w->opts.loop),
                                       .type = STR("task.delegated"),
                                       .task_id = d->parent_id,
                                       .conversation_id = d->conversation,
                                       .agent = d->agent,
                                       .requester = d->owner,
                                       .root_user = t->root_user,
                                       .data = put_news(&data, d, t)});
    buf_fini(&data);
    return e;
}

static void tell_streams(struct walk *w, const struct delegation *d,
                         struct str note)
{
    task_tell_delegated(w->tasks, d->parent_id, note);
    if (!str_eq(d->root_id, d->parent_id))
        task_tell_delegated(w->tasks, d->root_id, note);
}

/* That it ended with what it was part of is no news to anybody. */
static bool is_no_news(const struct delegation *d, const struct task *t)
{
    return !d->conversation.n ||
           str_eq(t->result.error_code, STR("parent_ended"));
}

bool walk_note(struct walk *w, const struct delegation *d, const struct task *t)
{
    struct str key = str_of(d->key.text);
    struct buf note;
    enum err e;

    if (!walk_hears_by_note(w, d->agent))
        return false;
    if (is_no_news(d, t)) {
        e = hire_had(w->hires, d->agent, key, NULL, NULL);
    } else {
        buf_init(&note, 8 * NOTE_BYTES);
        put_note(&note, d, t);
        e = note.over ? ERR_NOMEM : keep(w, d, t, buf_str(&note));
        buf_fini(&note);
    }
    if (e == ERR_NOMEM)
        hire_not_told(w->hires, key);
    return true;
}

/* Its next turn. */

static struct recall *recall_of(const struct walk *w, struct str task_id)
{
    return map_get(&w->recalls, task_id);
}

/* A task may be another agent's by now, and what the first one delegated is not
 * for them. */
static bool is_of(const struct recall *r, const struct task *t)
{
    return r->turn == t->turn && (str_eq(str_of(r->agent), t->agent) ||
                                  PLANTED("walk.first_agents_notes"));
}

static struct recall *recall_for(const struct walk *w, const struct task *t)
{
    struct recall *r = recall_of(w, str_of(t->id.text));

    return r && is_of(r, t) ? r : NULL;
}

static void recall_free(struct recall *r)
{
    buf_fini(&r->text);
    arena_fini(&r->arena);
    arena_fini(&r->past);
    free(r);
}

/* The store gives every read back. */
static void leave(struct recall *r)
{
    map_take(&r->walk->recalls, str_of(r->task_id.text));
    if (r->state != RECALL_READS) {
        recall_free(r);
        return;
    }
    r->is_left = true;
    store_forget(r->walk->opts.store, &r->query);
}

void walk_recall_over(struct walk *w, struct str task_id)
{
    struct recall *r = recall_of(w, task_id);

    if (r)
        leave(r);
}

void walk_notes_free(struct walk *w)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&w->recalls, &at)))
        recall_free(slot->value);
    map_fini(&w->recalls);
}

static void offer(struct recall *r, enum err e)
{
    r->state = e ? RECALL_FAILED : r->is_late ? RECALL_STALE : RECALL_IS_THERE;
    task_offer(r->walk->tasks, str_of(r->task_id.text));
}

/* What fits into one turn: the others are for the next. */
static enum err add_new(struct recall *r, struct str key, struct str text)
{
    struct new_note *n = &r->new[r->n_new];

    r->has_more |= r->n_new == NOTES_AT_ONCE ||
                   r->new_bytes + text.n > NOTES_BYTES - NOTES_FRAME;
    if (r->has_more)
        return OK;
    n->key = id_from(key);
    if (!arena_keep(&r->arena, text, &n->text))
        return ERR_NOMEM;
    r->new_bytes += text.n + 1;
    r->n_new++;
    return OK;
}

static enum err compose(struct recall *r, const struct task *t)
{
    struct buf text;

    buf_init(&text, RECALL_BYTES);
    buf_add_str(&text, STR("[What you delegated and had no result of has ended "
                           "since your last turn:\n"));
    for (size_t i = 0; i < r->n_new; i++) {
        buf_add_str(&text, r->new[i].text);
        buf_add_char(&text, '\n');
    }
    if (r->has_more)
        buf_add_str(&text,
                    STR("More has ended: you are told in your next turn.\n"));
    buf_add_str(&text, STR("End of that.]\n\n"));
    buf_add_str(&text, t->text);
    if (text.over) {
        buf_fini(&text);
        return ERR_NOMEM;
    }
    buf_fini(&r->text);
    r->text = text;
    return OK;
}

static enum err take_new(struct recall *r)
{
    const struct task *t = task_find(r->walk->tasks, str_of(r->task_id.text));
    enum err e = OK;

    if (!r->query.rows || !t)
        return OK;
    for (const struct row *row = r->query.rows; row && !e; row = row->next)
        e = add_new(r, row_str(row, NOTE_KEY), row_str(row, NOTE_TEXT));
    r->has_more |= r->query.has_more;
    return e ? e : compose(r, t);
}

static enum err take_had(struct recall *r)
{
    QUERY_EACH(row, &r->query)
    {
        struct had_note *n = &r->had[r->n_had++];

        n->seq = row_int(row, NOTE_TOLD_SEQ);
        n->turn = row_int(row, NOTE_TOLD_TURN);
        if (!arena_keep(&r->arena, row_str(row, NOTE_TEXT), &n->text))
            return ERR_NOMEM;
    }
    return OK;
}

static void on_old(struct query *q, void *ctx)
{
    struct recall *r = ctx;
    enum err e = q->err ? q->err : take_had(r);

    query_fini(q);
    if (r->is_left)
        recall_free(r);
    else
        offer(r, e);
}

static void on_new(struct query *q, void *ctx)
{
    struct recall *r = ctx;
    const struct task *t = task_find(r->walk->tasks, str_of(r->task_id.text));
    enum err e = q->err ? q->err : take_new(r);

    query_fini(q);
    if (r->is_left) {
        recall_free(r);
    } else if (e || !t) {
        offer(r, e);
    } else {
        hire_notes(&r->query, t, true, NOTES_AT_ONCE);
        store_read(r->walk->opts.store, &r->query, on_old, r);
    }
}

static bool begin(struct walk *w, const struct task *t)
{
    struct recall *r = FAULT("walk.recall") ? NULL : calloc(1, sizeof(*r));

    if (!r)
        return false;
    r->walk = w;
    r->task_id = t->id;
    r->turn = t->turn;
    memcpy(r->agent, t->agent.p, t->agent.n);
    buf_init(&r->text, RECALL_BYTES);
    arena_init(&r->arena, RECALL_BYTES);
    arena_init(&r->past, 2 * RECALL_BYTES);
    if (map_put(&w->recalls, str_of(r->task_id.text), r) != OK) {
        recall_free(r);
        return false;
    }
    hire_notes(&r->query, t, false, NOTES_AT_ONCE);
    store_read(w->opts.store, &r->query, on_new, r);
    return true;
}

bool walk_recall(struct walk *w, const struct task *t, enum ready *not_yet)
{
    struct recall *r = recall_of(w, str_of(t->id.text));

    if (r && (!is_of(r, t) || r->state == RECALL_STALE)) {
        leave(r);
        r = NULL;
    }
    if (!walk_hears_by_note(w, t->agent))
        return true;
    if (r && r->state == RECALL_IS_THERE)
        return true;
    *not_yet = READY_NOT_YET;
    if (r && r->state == RECALL_FAILED) {
        leave(r);
        *not_yet = READY_LATER;
    } else if (!r && !begin(w, t)) {
        *not_yet = READY_LATER;
    }
    return false;
}

const struct task *walk_with_notes(struct walk *w, const struct task *t)
{
    struct recall *r = recall_for(w, t);

    if (!r)
        return t;
    r->is_lent = true;
    if (!r->text.n)
        return t;
    r->with = *t;
    r->with.text = buf_str(&r->text);
    return &r->with;
}

void walk_record_told(struct walk *w, const struct task *t,
                      enum task_status status, struct tx *tx)
{
    const struct recall *r = recall_for(w, t);

    if (!r || status != TASK_COMPLETED)
        return;
    for (size_t i = 0; i < r->n_new; i++)
        hire_record_told(w->hires, t, str_of(r->new[i].key.text), tx);
}

/* One more is over while the turn waits for its agent. */

static bool has_new(const struct recall *r, struct str key)
{
    for (size_t i = 0; i < r->n_new; i++)
        if (str_eq(str_of(r->new[i].key.text), key))
            return true;
    return false;
}

/* Without memory it is for the next turn. */
static void take_along(struct recall *r, const struct task *t, struct str key,
                       struct str note)
{
    size_t n = r->n_new, bytes = r->new_bytes;
    bool has_more = r->has_more;

    if (add_new(r, key, note) || compose(r, t)) {
        r->n_new = n;
        r->new_bytes = bytes;
        r->has_more = has_more;
    }
}

static bool is_for(const struct task *t, const struct delegation *d)
{
    return str_eq(t->requester, d->owner) &&
           str_eq(t->conversation_id, d->conversation) &&
           str_eq_nocase(t->agent, d->agent);
}

void walk_on_noted(void *ctx, const struct delegation *d, struct str note)
{
    struct walk *w = ctx;
    struct str key = str_of(d->key.text);
    const struct map_slot *slot;
    size_t at = 0;

    tell_streams(w, d, note);
    while ((slot = map_next(&w->recalls, &at))) {
        struct recall *r = slot->value;
        const struct task *t =
            r->is_lent ? NULL : task_find(w->tasks, slot->key);

        if (!t || !is_of(r, t) || !is_for(t, d))
            continue;
        if (r->state == RECALL_READS)
            r->is_late = true;
        else if (r->state == RECALL_IS_THERE && !has_new(r, key))
            take_along(r, t, key, note);
    }
}

/* What was said before. */

/* How many of them, the newest first, fit beside what was said. */
static size_t fitting(const struct recall *r, const struct task_said *list,
                      size_t n)
{
    size_t used = 0, fit = 0;

    for (size_t i = 0; i < n; i++)
        used += list[i].text.n;
    while (fit < r->n_had) {
        used += r->had[fit].text.n;
        if (used > r->max_bytes)
            break;
        fit++;
    }
    return fit;
}

static bool add_notes(struct recall *r, size_t n_fitting,
                      struct task_said *said)
{
    struct buf text;
    bool ok;

    buf_init(&text, 2 * RECALL_BYTES);
    for (size_t i = n_fitting; i-- > 0;) {
        const struct had_note *n = &r->had[i];

        if (n->seq != said->seq || n->turn != said->turn)
            continue;
        buf_add_str(&text, text.n ? STR("\n")
                                  : STR("[What you delegated had ended:\n"));
        buf_add_str(&text, n->text);
    }
    if (text.n) {
        buf_add_str(&text, STR("\nEnd of that.]\n\n"));
        buf_add_str(&text, said->text);
    }
    ok = !text.n ||
         (!text.over && arena_keep(&r->past, buf_str(&text), &said->text));
    buf_fini(&text);
    return ok;
}

static void on_history(void *ctx, enum err e, const struct task_said *list,
                       size_t n)
{
    struct recall *r = ctx;
    size_t n_fitting = fitting(r, list, n);
    struct task_said *with;

    arena_reset(&r->past);
    with = n ? arena_array(&r->past, n, sizeof(*with)) : NULL;
    if (n && !with)
        e = ERR_NOMEM;
    for (size_t i = 0; i < n && !e; i++) {
        with[i] = list[i];
        if (!with[i].is_agents && !add_notes(r, n_fitting, &with[i]))
            e = ERR_NOMEM;
    }
    r->done(r->ctx, e, with, e ? 0 : n);
}

/* For agents that remember nothing. Whoever asks cancels it before it is over
 * or not at all, so the reader itself can be its number. */
bool walk_history(void *ctx, const struct task *t, size_t max_n,
                  size_t max_bytes, deliver_heard_history *done, void *done_ctx,
                  void **handle)
{
    struct walk *w = ctx;
    struct recall *r = recall_for(w, t);
    struct task_history *h;

    if (r && r->n_had) {
        r->done = done;
        r->ctx = done_ctx;
        r->max_bytes = max_bytes;
        h = task_history_new(w->tasks, t, max_n, max_bytes, on_history, r);
    } else {
        h = task_history_new(w->tasks, t, max_n, max_bytes, done, done_ctx);
    }
    *handle = h;
    return h != NULL;
}

void walk_history_cancel(void *ctx, void *handle)
{
    (void)ctx;
    task_history_cancel(handle);
}
