/* Verdicts of people on decisions: that it should have been another agent,
 * whether it was right. The decision is read, and the verdict goes into a tx
 * that is good only for what was read; where another call was first, the
 * decision is read again.
 *
 * Where the decision has no vector of the model in use (an agent was named, a
 * rule or habit chose it) its text is embedded now, read as routing reads a
 * message, or similar texts would learn nothing from it. So it is where the
 * table decided alone: an example by the transformer is the better one. Without
 * a vector the
 * verdict counts for this very text alone, and the answer says so.
 *
 * An override also gives the conversation to the agent that is named, if it is
 * still with the one that this decision is about. A delivered message is
 * not sent again. A message that was refused can be sent on with the override:
 * once, as a new message of its requester to the agent that is named.
 *
 *     read -> override -> (commit) -> walk_message -> the task's id into the
 *                                     decision -> (commit) -> answer
 *
 * An idempotency key made of the decision's id holds the gap between the two
 * commits: a call that is repeated after a crash finds the task of the first.
 */
#include "calls/internal.h"
#include "calls/share.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/vec.h"
#include "choose/choose.h"
#include "lessons/lessons.h"
#include "route/route.h"

enum {
    TRIES = 4,
    DECISION_BYTES = 1024 * 1024, /* of one, taken apart */
    FEED_DATA_MAX = 4096,
    UTF8_LONGEST = 4, /* bytes of a character */
};

struct call_word {
    struct tx tx;
    bool has_tx;
    struct arena arena;
    struct decision d; /* borrows from o->query */
    bool is_override;
    enum verdict verdict; /* of feedback */
    char agent[AGENT_NAME_MAX + 1];
    char comment[SPEAK_COMMENT_MAX + 1];
    unsigned tries_left;
    bool sends;             /* the message, to `agent` */
    bool is_recorded;       /* the word is new */
    struct id task_id;      /* that the message became */
    bool is_sent_before;    /* perhaps to another agent */
    bool gives;             /* the conversation, to `agent` */
    bool is_embedded;       /* as far as it can be */
    struct reading reading; /* borrows from arena and o->query */
    uint64_t embedding;     /* on its way; zero: none is */
    uint8_t *vector;        /* packed; owned; NULL: none */
    size_t vector_bytes;
    struct why no_vector;          /* why there is none; else empty */
    char from[AGENT_NAME_MAX + 1]; /* who had it */
};

static void read_decision(struct open *o);

void word_free(struct call_word *w)
{
    if (!w)
        return;
    if (w->has_tx)
        tx_fini(&w->tx);
    arena_fini(&w->arena);
    free(w->vector);
    free(w);
}

void word_quiet(struct open *o)
{
    if (!o->word || !o->word->embedding)
        return;
    embed_cancel(o->calls->embeds[0], o->word->embedding);
    o->word->embedding = 0;
}

static void again(struct open *o)
{
    struct call_word *w = o->word;

    if (w->tries_left-- == 0) {
        open_refuse(o, ERR_BUSY, STR("the decision is changing; ask again"),
                    STR(""));
        return;
    }
    if (w->has_tx)
        tx_fini(&w->tx);
    w->has_tx = false;
    open_drop_queries(o);
    read_decision(o);
}

/* The answer: what is so now. */

static void answer(struct open *o)
{
    const struct call_word *w = o->word;
    struct json_out out = json_out(&o->calls->body);
    bool is_right = w->verdict == VERDICT_POSITIVE;
    struct str to = w->agent[0] && !is_right ? str_of(w->agent)
                    : is_right               ? STR("")
                                             : w->d.overridden_to;

    json_open(&out, '{');
    json_member_text(&out, "decision_id", str_of(w->d.id.text));
    json_member_str(&out, "agent", w->d.agent);
    json_member_text(&out, "verdict", verdict_name(w->verdict));
    json_member_str(&out, "overridden_to", to);
    json_member_str(&out, "conversation_id", w->d.conversation_id);
    json_member_bool(&out, "switched", w->gives);
    json_member_bool(&out, "recorded", w->is_recorded);
    if (w->is_recorded && w->no_vector.text[0])
        json_member_text(&out, "note", str_of(w->no_vector.text));
    if (w->sends) {
        json_member_text(&out, "task_id", str_of(w->task_id.text));
        json_member_bool(&out, "sent", !w->is_sent_before);
    }
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

/* Sending on. */

/* The task is there whatever becomes of this: where it cannot be written the
 * key finds the task, for as long as keys are kept. */
static void on_linked(struct tx *tx, void *ctx)
{
    struct open *o = ctx;

    (void)tx;
    if (open_back(o))
        answer(o);
}

static void on_sent(struct msg *m, void *ctx)
{
    struct open *o = ctx;
    struct call_word *w = o->word;
    struct tx_op *op;

    if (!open_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
        msg_free(m);
        return;
    }
    w->task_id = m->task.id;
    w->is_sent_before = m->task.is_repeat; /* by a call that was faster */
    msg_free(m);
    if (w->has_tx)
        tx_fini(&w->tx);
    tx_init(&w->tx);
    w->has_tx = true;
    op = tx_update(&w->tx, &decision_table);
    tx_if(op, DECISION_ID, IS, value_text(str_of(w->d.id.text)));
    tx_if(op, DECISION_TASK_ID, IS, value_null());
    tx_set(op, DECISION_TASK_ID, value_text(str_of(w->task_id.text)));
    tx_set(op, DECISION_TURN, value_int(1));
    open_out(o);
    store_submit(o->calls->store, &w->tx, on_linked, o);
}

/* The decision alone is what the key stands for: a second call that names
 * another agent finds the first one's task. */
static enum err write_message(struct msg *m, const struct call_word *w)
{
    struct arena *a = &m->arena;
    struct str source = w->d.source.n ? w->d.source : STR("{}");
    char key[64];

    snprintf(key, sizeof(key), "override/%s", w->d.id.text);
    m->call.priority = PRIORITY_NORMAL;
    m->call.metadata = STR("{}");
    if (!arena_keep(a, w->d.text, &m->call.text) ||
        !arena_keep(a, str_of(w->agent), &m->call.executor) ||
        !arena_keep(a, w->d.conversation_id, &m->call.conversation_id) ||
        !arena_keep(a, source, &m->call.source) ||
        !arena_keep(a, str_of(key), &m->call.idempotency_key))
        return ERR_NOMEM;
    return share_hash(m, str_of(key));
}

static void send_on(struct open *o)
{
    struct call_word *w = o->word;
    struct msg *m;

    w->task_id = w->d.task_id;
    w->is_sent_before = w->task_id.text[0] != '\0';
    if (!w->sends || w->task_id.text[0]) {
        answer(o);
        return;
    }
    m = msg_new(&o->caller, loop_wall_ms(o->calls->loop));
    if (!m || write_message(m, w) != OK) {
        msg_free(m);
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    open_out(o);
    walk_message(o->calls->walk, m, on_sent, o);
}

/* Whether the message can be sent on at all; empty: it can. A text that fills
 * the record may have been cut there, in the middle of a character too. */
static struct str unsendable(const struct open *o, enum err *e)
{
    const struct call_word *w = o->word;

    *e = ERR_BAD_REQUEST;
    if (w->d.layer != LAYER_NONE)
        return STR("the message was delivered; send it again with the agent as "
                   "executor.name");
    if (w->d.text.n > DECISION_TEXT_MAX - UTF8_LONGEST)
        return STR("the message is longer than what a decision keeps of it; "
                   "send it again with the agent as executor.name");
    *e = ERR_NOT_ALLOWED;
    if (!str_eq(w->d.requester, caller_name(&o->caller)))
        return STR("only the user who sent the message can send it on");
    return STR("");
}

static void on_written(struct tx *tx, void *ctx)
{
    struct open *o = ctx;

    if (!open_back(o))
        return;
    if (tx->result == TX_COMMITTED)
        send_on(o);
    else if (tx->result == TX_GUARD_FAILED)
        again(o);
    else
        open_refuse(o, tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err,
                    STR(""), STR(""));
}

/* The tx. */

static void tell_feed(struct open *o, struct str type, struct str from,
                      struct str to)
{
    struct call_word *w = o->word;
    bool is_switch = str_eq(type, STR("conversation.switched"));
    struct buf data;
    struct json_out out;

    buf_init(&data, FEED_DATA_MAX);
    out = json_out(&data);
    json_open(&out, '{');
    json_member_some(&out, is_switch ? "overrides" : "decision_id",
                     str_of(w->d.id.text));
    json_member_some(&out, "from", from);
    json_member_some(&out, "to", to);
    json_member_some(&out, "verdict", verdict_name(w->verdict));
    json_member_some(&out, "by", caller_name(&o->caller));
    json_member_some(&out, "comment", str_of(w->comment));
    json_close(&out, '}');
    feed_append(&w->tx, &(struct feed_entry){
                            .at_ms = loop_wall_ms(o->calls->loop),
                            .type = type,
                            .task_id = str_of(w->d.task_id.text),
                            .conversation_id = w->d.conversation_id,
                            .agent = to.n ? to : w->d.agent,
                            .requester = w->d.requester,
                            .root_user = w->d.requester,
                            .data = data.over ? STR("") : buf_str(&data),
                        });
    buf_fini(&data);
}

static void give_conversation(struct open *o)
{
    struct call_word *w = o->word;
    struct tx_op *op = tx_update(&w->tx, &conversation_table);

    tx_if(op, CONVERSATION_OWNER, IS, value_text(w->d.requester));
    tx_if(op, CONVERSATION_ID, IS, value_text(w->d.conversation_id));
    tx_if(op, CONVERSATION_AGENT, IS, value_text(str_of(w->from)));
    tx_set(op, CONVERSATION_AGENT, value_text(str_of(w->agent)));
    tx_set(op, CONVERSATION_DECISION_ID, value_text(str_of(w->d.id.text)));
    tx_set(op, CONVERSATION_MEANT_MS, value_int(loop_wall_ms(o->calls->loop)));
    tell_feed(o, STR("conversation.switched"), str_of(w->from),
              str_of(w->agent));
}

/* Whether it was said before, word for word. A verdict that was given before
 * the last void may be voided, so it can be given again. */
static bool is_known(const struct open *o)
{
    const struct call_word *w = o->word;
    int64_t said_ms = w->d.overridden_ms > w->d.verdict_ms ? w->d.overridden_ms
                                                           : w->d.verdict_ms;

    if (said_ms <= lessons_voided_ms(o->calls->lessons))
        return false;
    if (w->verdict == VERDICT_NEGATIVE && w->agent[0])
        return str_eq_nocase(w->d.overridden_to, str_of(w->agent));
    return w->d.verdict == w->verdict &&
           !(w->verdict == VERDICT_POSITIVE && w->d.overridden_to.n);
}

static void submit(struct open *o)
{
    struct call_word *w = o->word;
    bool is_right = w->verdict == VERDICT_POSITIVE;
    struct lessons_word word = {
        .decision = &w->d,
        .right = is_right ? STR("") : str_of(w->agent),
        .verdict = w->verdict,
        .by = caller_name(&o->caller),
        .at_ms = loop_wall_ms(o->calls->loop),
        .vector = {(const char *)w->vector, w->vector_bytes},
    };
    struct embed_stamp stamp = {.dims = 0};

    if (w->vector) {
        stamp = embed_stamp(o->calls->embeds[0]);
        word.model_hash = str_of(stamp.hash);
    }
    w->is_recorded = !is_known(o) || w->gives;
    if (!w->is_recorded) {
        send_on(o);
        return;
    }
    tx_init(&w->tx);
    w->has_tx = true;
    if (!is_known(o)) {
        lessons_append(o->calls->lessons, &w->tx, &word);
        tell_feed(o,
                  word.right.n ? STR("decision.overridden")
                               : STR("decision.feedback"),
                  w->d.agent, word.right);
    }
    if (w->gives)
        give_conversation(o);
    open_out(o);
    store_submit(o->calls->store, &w->tx, on_written, o);
}

/* The vector. */

static void read_conversation(struct open *o);

static void go_on(struct open *o)
{
    struct call_word *w = o->word;

    w->is_embedded = true;
    if (w->is_override && w->d.conversation_id.n)
        read_conversation(o);
    else
        submit(o);
}

static void go_on_without(struct open *o, const char *because)
{
    (void)why_err(&o->word->no_vector, OK,
                  "recorded for this very text; similar texts learn nothing "
                  "from it, because its meaning could not be computed: %s",
                  because);
    go_on(o);
}

/* The vectors of the reading, one behind the other. False: it has none. */
static bool take_vectors(struct open *o, float *v,
                         const struct embed_stamp *stamp)
{
    struct call_word *w = o->word;
    size_t n = vec_packed_bytes(stamp->dims);

    reading_add_up(&w->reading, v, stamp);
    w->vector = FAULT("calls.vector") || !stamp->dims ? NULL : malloc(n);
    if (w->vector && vec_pack(v, stamp->dims, w->vector)) {
        w->vector_bytes = n;
        go_on(o);
        return true;
    }
    free(w->vector);
    w->vector = NULL;
    return false;
}

/* Whether the decision has a vector of the model in use, quick or full. */
static bool has_own_vector(const struct open *o,
                           const struct embed_stamp *stamp)
{
    const struct decision *d = &o->word->d;

    return d->vector.n && str_eq(d->model_hash, str_of(stamp->hash));
}

/* The full vector cannot be had: a quick one teaches too. */
static void go_on_quickly(struct open *o, const char *because)
{
    const struct reading *r = &o->word->reading;
    struct embed *embed = o->calls->embeds[0];
    struct embed_stamp stamp = embed_stamp(embed);
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];

    if (has_own_vector(o, &stamp)) {
        go_on(o);
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!embed_quick(embed, r->texts[i], v + i * stamp.dims)) {
            go_on_without(o, because);
            return;
        }
    if (!take_vectors(o, v, &stamp))
        go_on_without(o, because);
}

static const char unknown_text[] =
    "there is nothing in this text that the model knows";

static void take_result(struct open *o, const struct embed_result *r)
{
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];

    memcpy(v, r->vectors, r->n * r->stamp.dims * sizeof(*v));
    if (!take_vectors(o, v, &r->stamp))
        go_on_quickly(o, unknown_text);
}

static void on_vector(void *ctx, uint64_t id, enum err e,
                      const struct embed_result *result, const struct why *why)
{
    struct open *o = ctx;

    (void)id;
    (void)why; /* the provider's own words are the operator's */
    o->word->embedding = 0;
    loop_timer_cancel(o->calls->loop, &o->timer);
    if (e == ERR_STOPPING)
        open_refuse(o, e, STR(""), STR(""));
    else if (e)
        go_on_quickly(o, err_row(e)->wording);
    else
        take_result(o, result);
}

static void on_late_vector(struct timer *t)
{
    struct open *o = LIST_OF(t, struct open, timer);

    word_quiet(o);
    go_on_quickly(o, "the model took too long");
}

/* That of the decision: the next message with this text finds the vector. */
static struct str scope_of_word(const struct open *o,
                                char out[EYES_SCOPE_BYTES])
{
    const struct decision *d = &o->word->d;
    struct eyes eyes = {.user = d->requester, .org = d->org};

    return eyes_scope(&eyes, out);
}

static void wait_for_vector(struct open *o, struct embed *embed)
{
    struct calls *c = o->calls;
    const struct reading *r = &o->word->reading;
    int64_t most_ms = c->settings.vector_timeout_ms;
    char scope[EYES_SCOPE_BYTES];
    enum err e = embed_start_for(embed, scope_of_word(o, scope), r->texts, r->n,
                                 on_vector, o, &o->word->embedding, NULL);

    if (e) {
        o->word->embedding = 0;
        go_on_quickly(o, err_row(e)->wording);
        return;
    }
    o->timer.fire = on_late_vector;
    if (most_ms && loop_timer_set(c->loop, &o->timer, most_ms) != OK) {
        word_quiet(o);
        go_on_quickly(o, err_row(ERR_NOMEM)->wording);
    }
}

/* The requester of the decision, who may not be the caller. False: there is no
 * such user any more. */
static bool find_requester(const struct open *o, struct caller *out)
{
    struct access_user u;

    *out = o->caller;
    if (str_eq(caller_name(out), o->word->d.requester))
        return true;
    if (!access_user_find(o->calls->access, o->word->d.requester, &u))
        return false;
    *out = (struct caller){.role = u.role, .scopes = role_scopes(u.role)};
    memcpy(out->principal, u.name, sizeof(out->principal));
    memcpy(out->org, u.org, sizeof(out->org));
    memcpy(out->owner, u.owner, sizeof(out->owner));
    return true;
}

/* As the next message of the requester with this text will be read. */
static enum err read_text(struct open *o, struct str text)
{
    const struct calls *c = o->calls;
    struct call_word *w = o->word;
    struct caller requester;
    struct eyes eyes;

    (void)find_requester(o, &requester); /* else as the caller's */
    eyes = eyes_of(&requester, loop_wall_ms(c->loop));
    return route_read_text(walk_router(c->walk), &w->arena, &eyes, text,
                           &w->reading);
}

static void embed_reading(struct open *o, struct embed *embed)
{
    const struct reading *r = &o->word->reading;
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];
    struct embed_stamp stamp = embed_stamp(embed);
    char name[EYES_SCOPE_BYTES];
    struct str scope = scope_of_word(o, name);

    for (size_t i = 0; i < r->n; i++)
        if (!embed_now_for(embed, scope, r->texts[i], v + i * stamp.dims)) {
            wait_for_vector(o, embed);
            return;
        }
    if (!take_vectors(o, v, &stamp))
        go_on_quickly(o, unknown_text);
}

/* Whether the decision's own vector is the best there can be of it: it is full,
 * or only the beginning of its text is on record. The vector may be from a
 * model that is no longer in use. */
static bool has_best_vector(const struct open *o,
                            const struct embed_stamp *stamp)
{
    const struct decision *d = &o->word->d;

    return has_own_vector(o, stamp) &&
           (d->tier != TIER_TABLE || d->text.n > DECISION_TEXT_MAX - 4);
}

static void embed_text(struct open *o)
{
    struct call_word *w = o->word;
    struct embed *embed = o->calls->n_embeds ? o->calls->embeds[0] : NULL;
    struct str text = lessons_text(&w->d);
    struct embed_stamp stamp = {.dims = 0};

    if (embed)
        stamp = embed_stamp(embed);
    if (w->is_embedded || is_known(o) || !text.n || has_best_vector(o, &stamp))
        go_on(o);
    else if (!embed)
        go_on_without(o, "there is no model that could do it");
    else if (read_text(o, text) != OK)
        go_on_without(o, err_row(ERR_NOMEM)->wording);
    else
        embed_reading(o, embed);
}

/* Reading. */

/* Whether the conversation's owner sees the agent, which will answer them. */
static bool owner_sees(struct open *o, struct str name)
{
    struct calls *c = o->calls;
    struct caller owner;
    struct eyes eyes;

    if (!find_requester(o, &owner))
        return false;
    eyes = eyes_of(&owner, loop_wall_ms(c->loop));
    return registry_find(c->registry, name, &eyes) != NULL;
}

/* One that was switched, or chosen anew, since is not taken from there. */
static void on_conversation(struct open *o)
{
    struct call_word *w = o->word;
    const struct row *r = o->turns.rows;
    struct str has = r ? row_str(r, CONVERSATION_AGENT) : STR("");

    if (o->turns.err) {
        open_refuse(o, o->turns.err, STR(""), STR(""));
        return;
    }
    w->gives = has.n && has.n <= AGENT_NAME_MAX &&
               !str_eq_nocase(has, str_of(w->agent)) &&
               (str_eq_nocase(has, w->d.agent) ||
                str_eq_nocase(has, w->d.overridden_to)) &&
               owner_sees(o, str_of(w->agent));
    if (w->gives) {
        memcpy(w->from, has.p, has.n);
        w->from[has.n] = '\0';
    }
    submit(o);
}

static void read_conversation(struct open *o)
{
    query_init(&o->turns, &conversation_table, 1);
    o->has_turns = true;
    query_if(&o->turns, CONVERSATION_OWNER, IS,
             value_text(o->word->d.requester));
    query_if(&o->turns, CONVERSATION_ID, IS,
             value_text(o->word->d.conversation_id));
    open_read(o, &o->turns, on_conversation);
}

/* What is said against what is so; empty: all is well. */
static struct str contradiction(const struct call_word *w)
{
    bool is_same = str_eq_nocase(str_of(w->agent), w->d.agent);

    if (w->is_override && is_same && !w->d.overridden_to.n)
        return STR("it went to that agent; feedback says that it was right");
    if (w->is_override || !w->agent[0])
        return STR("");
    if (w->verdict == VERDICT_NEGATIVE && is_same)
        return STR("agent names the one that would have been right, and this "
                   "one is said to be wrong");
    if (w->verdict == VERDICT_POSITIVE && !is_same)
        return STR("agent names another than it went to, and that one is said "
                   "to be right");
    return STR("");
}

static void on_decision(struct open *o)
{
    struct call_word *w = o->word;
    const struct row *r = o->query.rows;
    enum err e = o->query.err;
    struct str wrong;

    if (!e && (!r || (!caller_is_admin(&o->caller) &&
                      !str_eq(row_str(r, DECISION_REQUESTER),
                              caller_name(&o->caller)))))
        e = ERR_NOT_FOUND;
    arena_reset(&w->arena);
    if (!e)
        e = decision_from_row(&w->arena, r, &w->d);
    if (e) {
        open_refuse(o, e == ERR_SYNTAX ? ERR_INTERNAL : e, STR(""), STR(""));
        return;
    }
    e = ERR_BAD_REQUEST;
    wrong = contradiction(w);
    if (!wrong.n && w->sends)
        wrong = unsendable(o, &e);
    if (wrong.n) {
        open_refuse(o, e, wrong, STR(""));
        return;
    }
    /* Back to where it went first: it was right after all. */
    if (w->is_override)
        w->verdict = str_eq_nocase(str_of(w->agent), w->d.agent)
                         ? VERDICT_POSITIVE
                         : VERDICT_NEGATIVE;
    embed_text(o);
}

static void read_decision(struct open *o)
{
    query_init(&o->query, &decision_table, 1);
    o->has_query = true;
    query_if(&o->query, DECISION_ID, IS,
             value_text(str_of(o->decision_id.text)));
    open_read(o, &o->query, on_decision);
}

/* The calls. */

static struct call_word *word_new(const struct speak_word *said,
                                  struct str agent, bool is_override)
{
    struct call_word *w = FAULT("calls.word") ? NULL : calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    arena_init(&w->arena, DECISION_BYTES);
    w->is_override = is_override;
    w->verdict = said->verdict;
    w->sends = said->sends;
    w->tries_left = TRIES;
    if (agent.n)
        memcpy(w->agent, agent.p, agent.n);
    if (said->comment.n)
        memcpy(w->comment, said->comment.p, said->comment.n);
    return w;
}

static void take_word(struct call *c, const struct speak_word *said,
                      bool is_override)
{
    struct eyes eyes = call_eyes(c);
    const struct agent *a =
        said->agent.n ? registry_find(c->calls->registry, said->agent, &eyes)
                      : NULL;
    struct open *o;

    if (!id_is_valid(c->param, "dec")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    if (said->agent.n && !a) {
        calls_refuse_agent(c->calls, c->id, &c->caller, said->agent);
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    o->decision_id = id_from(c->param);
    o->word = word_new(said, a ? a->name : STR(""), is_override);
    if (o->word)
        read_decision(o);
    else
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
}

void call_decisions_override(struct call *c)
{
    struct speak_word said;
    struct why why = {""};
    enum err e = speak_override(&c->calls->scratch, c->rq->body, &said, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        take_word(c, &said, true);
}

void call_decisions_feedback(struct call *c)
{
    struct speak_word said;
    struct why why = {""};
    enum err e = speak_feedback(&c->calls->scratch, c->rq->body, &said, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        take_word(c, &said, false);
}
