/* Results of delegations that an agent did not wait for and that has no
 * connection to be told on: models, and programs that are pi. When such a
 * delegation ends, the user is told in the feed and on the streams of the tasks
 * it is part of. The agent reads a note in its next turn in the same
 * conversation, before the text of that turn.
 *
 *     walk_on_delegation_ready -> delegation_note
 *     (commit) -> walk_on_noted: the streams are told, and turns that have not
 *                 started take the note along
 *     on_task_ready -> walk_recall -> the notes are read -> offered again
 *     on_go: the turn is given with its notes (walk_with_notes)
 *     completed: the notes are marked as given (walk_record_told)
 *
 * A model keeps no state, so its history also repeats the notes that its
 * earlier turns started with. pi has them in its session
 * (deliver/transports/process.c). A recall lives from when its task is about to
 * be carried until its turn is over. */
#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"
#include "speak/speak.h"
#include "walk/internal.h"
#include "watch/watch.h"

enum {
    NOTE_ASKED = 200,       /* of the request, to tell two apart */
    NOTE_WORDS = 8 * 1024,  /* of one result; its task has the whole text */
    NOTE_BYTES = 16 * 1024, /* of one note as JSON */
    NOTES_AT_ONCE = 16, /* given in one turn, and repeated from earlier turns */
    NOTES_BYTES = 64 * 1024, /* of all notes of one turn, and their frame */
    NOTES_FRAME = 128,
    NEWS_BYTES = 2 * 1024,
    RECALL_BYTES = 16 * 1024 * 1024,
};

/* A note that this turn starts with. */
struct new_note {
    struct id key;
    struct str text;
};

/* A note that an earlier turn was given. */
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
    bool is_left; /* its turn is over while the store has the query */
    bool is_late; /* a note was stored during the read */
    bool is_lent; /* the turn has started: new notes are for the next */
    struct query query;
    struct arena arena; /* of the notes */
    struct buf text;    /* the notes and the turn's text; empty: no notes */
    struct new_note new[NOTES_AT_ONCE];
    size_t n_new, new_bytes;
    bool has_more;
    struct had_note had[NOTES_AT_ONCE];
    size_t n_had;
    struct task with;  /* the task as the agent was given it */
    struct arena past; /* of the history with its notes */
    deliver_heard_history *done;
    void *ctx;
    size_t max_bytes;
};

bool walk_hears_by_note(void *ctx, struct str name)
{
    const struct walk *w = ctx;
    const struct agent *a = registry_agent(w->opts.registry, name);

    return a && deliver_uses_tools(w->deliver, a);
}

/* The delegation is over. */

/* The answer as the tool gives it, and the request. As JSON some text becomes
 * longer, so it is cut until it fits. */
static void note_put(struct buf *out, const struct delegation *d,
                     const struct task *t)
{
    for (size_t words = NOTE_WORDS; words; words /= 2) {
        struct json_out o;
        struct task cut = *t;

        buf_clear(out);
        o = json_out(out);
        cut.result.text = str_head(t->result.text, words);
        json_open(&o, '{');
        json_member_str(&o, "agentId", t->agent);
        if (t->text.n)
            json_member_text(&o, "task", str_head(t->text, NOTE_ASKED));
        speak_delegated(&o, str_of(d->key.text), &cut);
        if (cut.result.text.n < t->result.text.n)
            json_member_bool(&o, "cut", true);
        json_close(&o, '}');
        if (!out->over && out->n <= NOTE_BYTES)
            return;
    }
}

static enum err note_store(struct walk *w, const struct delegation *d,
                           const struct task *t, struct str note)
{
    struct json_out o;
    struct buf data;
    enum err e;

    buf_init(&data, NEWS_BYTES);
    o = json_out(&data);
    json_open(&o, '{');
    json_member_str(&o, "sessionKey", str_of(d->key.text));
    json_member_str(&o, "task_id", str_of(t->id.text));
    json_member_str(&o, "agent", t->agent);
    json_member_str(&o, "status", task_status_name(t->status));
    json_close(&o, '}');
    e = delegation_note(
        w->delegations, str_of(d->key.text), note,
        &(struct feed_entry){.at_ms = loop_wall_ms(w->opts.loop),
                             .type = STR("task.delegated"),
                             .task_id = d->parent_id,
                             .conversation_id = d->conversation,
                             .agent = d->agent,
                             .requester = d->owner,
                             .root_user = t->root_user,
                             .data = buf_str(&data)});
    buf_fini(&data);
    return e;
}

void walk_on_delegation_ready(void *ctx, const struct delegation *d,
                              const struct task *t)
{
    struct walk *w = ctx;
    struct str key = str_of(d->key.text);
    /* The listeners of a message have its result already. */
    bool has_listeners = d->mode == DELEGATION_MESSAGE;
    bool has_ended_with_parent =
        str_eq(t->result.error_code, STR("parent_ended"));
    struct buf note;
    enum err e;

    if (!has_listeners && !walk_hears_by_note(w, d->agent)) {
        if (w->hub.on_delegated)
            w->hub.on_delegated(w->hub.ctx, d, t);
        return;
    }
    if (has_listeners || !d->conversation.n || has_ended_with_parent) {
        e = delegation_had(w->delegations, d->agent, key, NULL, NULL);
    } else {
        buf_init(&note, 8 * NOTE_BYTES);
        note_put(&note, d, t);
        e = note.over ? ERR_NOMEM : note_store(w, d, t, buf_str(&note));
        buf_fini(&note);
    }
    if (e == ERR_NOMEM || (e && has_listeners))
        delegation_not_told(w->delegations, key);
}

/* The next turn. */

static struct recall *recall_of(const struct walk *w, struct str task_id)
{
    return map_get(&w->recalls, task_id);
}

/* A task may have passed to another agent, and the notes of the first agent are
 * not for that one. */
static bool recall_is_of(const struct recall *r, const struct task *t)
{
    return r->turn == t->turn && (str_eq(str_of(r->agent), t->agent) ||
                                  PLANTED("walk.first_agents_notes"));
}

static struct recall *recall_for(const struct walk *w, const struct task *t)
{
    struct recall *r = recall_of(w, str_of(t->id.text));

    return r && recall_is_of(r, t) ? r : NULL;
}

static void recall_free(struct recall *r)
{
    buf_fini(&r->text);
    arena_fini(&r->arena);
    arena_fini(&r->past);
    free(r);
}

/* While a read is under way the recall must live: the store gives every read
 * back. */
static void recall_leave(struct recall *r)
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
        recall_leave(r);
}

void walk_notes_free(struct walk *w)
{
    const struct map_slot *slot;
    size_t at = 0;

    while ((slot = map_next(&w->recalls, &at)))
        recall_free(slot->value);
    map_fini(&w->recalls);
}

static void recall_offer(struct recall *r, enum err e)
{
    r->state = e ? RECALL_FAILED : r->is_late ? RECALL_STALE : RECALL_IS_THERE;
    task_offer(r->walk->tasks, str_of(r->task_id.text));
}

/* Add a note if it fits into one turn; the others are for the next. */
static enum err recall_add_new(struct recall *r, struct str key,
                               struct str text)
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

static enum err recall_compose(struct recall *r, const struct task *t)
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

static enum err recall_take_new(struct recall *r)
{
    const struct task *t = task_find(r->walk->tasks, str_of(r->task_id.text));
    enum err e = OK;

    if (!r->query.rows || !t)
        return OK;
    for (const struct row *row = r->query.rows; row && !e; row = row->next)
        e = recall_add_new(r, row_str(row, NOTE_KEY), row_str(row, NOTE_TEXT));
    r->has_more |= r->query.has_more;
    return e ? e : recall_compose(r, t);
}

static void on_given_notes(struct query *q, void *ctx)
{
    struct recall *r = ctx;
    enum err e = q->err;

    for (const struct row *row = q->rows; row && !e; row = row->next) {
        struct had_note *n = &r->had[r->n_had++];

        n->seq = row_int(row, NOTE_TOLD_SEQ);
        n->turn = row_int(row, NOTE_TOLD_TURN);
        if (!arena_keep(&r->arena, row_str(row, NOTE_TEXT), &n->text))
            e = ERR_NOMEM;
    }
    query_fini(q);
    if (r->is_left)
        recall_free(r);
    else
        recall_offer(r, e);
}

static void on_new_notes(struct query *q, void *ctx)
{
    struct recall *r = ctx;
    const struct task *t = task_find(r->walk->tasks, str_of(r->task_id.text));
    enum err e = q->err ? q->err : recall_take_new(r);

    query_fini(q);
    if (r->is_left) {
        recall_free(r);
    } else if (e || !t) {
        recall_offer(r, e);
    } else {
        delegation_notes(&r->query, t, true, NOTES_AT_ONCE);
        store_read(r->walk->opts.store, &r->query, on_given_notes, r);
    }
}

static bool recall_begin(struct walk *w, const struct task *t)
{
    struct recall *r = mem_new(sizeof(*r));

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
    delegation_notes(&r->query, t, false, NOTES_AT_ONCE);
    store_read(w->opts.store, &r->query, on_new_notes, r);
    return true;
}

bool walk_recall(struct walk *w, const struct task *t, enum ready *not_yet)
{
    struct recall *r = recall_of(w, str_of(t->id.text));

    if (r && (!recall_is_of(r, t) || r->state == RECALL_STALE)) {
        recall_leave(r);
        r = NULL;
    }
    if (!walk_hears_by_note(w, t->agent))
        return true;
    if (r && r->state == RECALL_IS_THERE)
        return true;
    *not_yet = READY_NOT_YET;
    if (r && r->state == RECALL_FAILED) {
        recall_leave(r);
        *not_yet = READY_LATER;
    } else if (!r && !recall_begin(w, t)) {
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

void walk_record_told(void *walk, const struct turn_end *end, struct tx *tx)
{
    struct walk *w = walk;
    const struct recall *r = recall_for(w, end->task);

    if (!r || end->result->status != TASK_COMPLETED)
        return;
    for (size_t i = 0; i < r->n_new; i++)
        delegation_record_told(w->delegations, end->task,
                               str_of(r->new[i].key.text), tx);
}

/* A delegation ends while the turn waits for its agent. */

static bool recall_has_note(const struct recall *r, struct str key)
{
    for (size_t i = 0; i < r->n_new; i++)
        if (str_eq(str_of(r->new[i].key.text), key))
            return true;
    return false;
}

/* If it does not fit, it is for the next turn. */
static void recall_take_along(struct recall *r, const struct task *t,
                              struct str key, struct str note)
{
    size_t n = r->n_new, bytes = r->new_bytes;
    bool has_more = r->has_more;

    if (recall_add_new(r, key, note) || recall_compose(r, t)) {
        r->n_new = n;
        r->new_bytes = bytes;
        r->has_more = has_more;
    }
}

void walk_on_noted(void *ctx, const struct delegation *d, struct str note)
{
    struct walk *w = ctx;
    struct str key = str_of(d->key.text);
    const struct map_slot *slot;
    size_t at = 0;

    task_tell_delegated(w->tasks, d->parent_id, note);
    if (!str_eq(d->root_id, d->parent_id))
        task_tell_delegated(w->tasks, d->root_id, note);
    while ((slot = map_next(&w->recalls, &at))) {
        struct recall *r = slot->value;
        const struct task *t =
            r->is_lent ? NULL : task_find(w->tasks, slot->key);

        if (!t || !recall_is_of(r, t) || !str_eq(t->requester, d->owner) ||
            !str_eq(t->conversation_id, d->conversation) ||
            !str_eq_nocase(t->agent, d->agent))
            continue;
        if (r->state == RECALL_READS)
            r->is_late = true;
        else if (r->state == RECALL_IS_THERE && !recall_has_note(r, key))
            recall_take_along(r, t, key, note);
    }
}

/* History. */

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

static void on_recall_history(void *ctx, enum err e,
                              const struct task_said *list, size_t n)
{
    struct recall *r = ctx;
    size_t n_fitting = 0, used = 0; /* notes that fit beside it, newest first */
    struct task_said *with;

    for (size_t i = 0; i < n; i++)
        used += list[i].text.n;
    while (n_fitting < r->n_had &&
           (used += r->had[n_fitting].text.n) <= r->max_bytes)
        n_fitting++;

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

/* For agents without state. A caller cancels the reader before it is over or
 * not at all, so the reader itself can be the handle. */
void walk_history(void *ctx, const struct task *t, size_t max_n,
                  size_t max_bytes, deliver_heard_history *done, void *done_ctx,
                  void **handle)
{
    struct walk *w = ctx;
    struct recall *r = recall_for(w, t);

    if (r && r->n_had) {
        r->done = done;
        r->ctx = done_ctx;
        r->max_bytes = max_bytes;
        *handle = task_history_new(w->tasks, t, max_n, max_bytes,
                                   on_recall_history, r);
    } else {
        *handle =
            task_history_new(w->tasks, t, max_n, max_bytes, done, done_ctx);
    }
}

void walk_history_cancel(void *ctx, void *handle)
{
    (void)ctx;
    task_history_cancel(handle);
}
