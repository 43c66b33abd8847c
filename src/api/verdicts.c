/* Verdicts of people on decisions: the right agent, and whether the decision
 * was right. The decision is read, and the verdict is submitted with a guard on
 * what was read; if another call was first, the decision is read again.
 *
 * If the decision has no vector of the current model (an agent was named, or a
 * rule or habit chose it), its text is embedded now, as routing reads a
 * message; otherwise similar texts would learn nothing. The same if only the
 * table decided: an example by the transformer is better. Without a vector the
 * verdict counts for this exact text alone, and the answer says so.
 *
 * An override also gives the conversation to the named agent, if the agent of
 * this decision still has it. A delivered message is not sent again. A rejected
 * message can be sent with the override: once, as a new message of its
 * requester to the named agent.
 *
 *     read -> override -> (commit) -> walk_message -> the task's id into the
 *                                     decision -> (commit) -> answer
 *
 * An idempotency key derived from the id of the decision covers the time
 * between the two commits: a call that is repeated after a crash finds the task
 * of the first. */
#include "api/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/vec.h"
#include "choose/layers/choose.h"
#include "choose/route.h"
#include "learn/learning.h"

enum {
    TRIES = 4,
    DECISION_BYTES = 1024 * 1024, /* of one parsed decision */
    FEED_DATA_MAX = 4096,
    UTF8_LONGEST = 4, /* bytes of a character */
};

struct call_verdict {
    struct tx tx;
    bool has_tx;
    struct arena arena;
    struct id decision_id;
    struct decision d; /* borrows from o->query */
    bool is_override;
    enum verdict verdict; /* of feedback */
    char agent[AGENT_NAME_MAX + 1];
    char comment[SPEAK_COMMENT_MAX + 1];
    unsigned tries_left;
    bool sends;             /* send the message to `agent` */
    bool is_recorded;       /* the verdict is new */
    struct id task_id;      /* the task of the message */
    bool is_sent_before;    /* sent before, perhaps to another agent */
    bool gives;             /* give the conversation to `agent` */
    bool is_embedded;       /* as far as possible */
    struct reading reading; /* borrows from arena and o->query */
    uint64_t embedding;     /* under way; zero: none */
    uint8_t *vector;        /* packed; owned; NULL: none */
    size_t vector_bytes;
    struct why no_vector;          /* why there is none; empty: there is one */
    char from[AGENT_NAME_MAX + 1]; /* the agent that had the conversation */
};

static void verdict_read_decision(struct request *o);

static struct call_verdict *verdict_of(const struct request *o)
{
    return o->own;
}

static void verdict_fini(void *own)
{
    struct call_verdict *w = own;

    if (w->has_tx)
        tx_fini(&w->tx);
    arena_fini(&w->arena);
    free(w->vector);
}

/* Stop waiting for the vector. */
static void verdict_quiet(struct request *o)
{
    struct call_verdict *w = o->own;

    if (w->embedding)
        embed_cancel(o->api->embeds[0], w->embedding);
    w->embedding = 0;
}

static void verdict_retry(struct request *o)
{
    struct call_verdict *w = o->own;

    if (w->tries_left-- == 0) {
        request_refuse(o, ERR_BUSY, STR("the decision is changing; try again"),
                       STR(""));
        return;
    }
    if (w->has_tx)
        tx_fini(&w->tx);
    w->has_tx = false;
    request_drop_queries(o);
    verdict_read_decision(o);
}

/* Answer the current state. */

static void verdict_answer(struct request *o)
{
    const struct call_verdict *w = o->own;
    struct json_out out = request_json(o);
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
    request_answer(o, 200);
}

/* Sending the message. */

/* The task exists whatever the result is: if it cannot be linked, the key finds
 * the task as long as keys are kept. */
static void on_verdict_linked(struct tx *tx, void *ctx)
{
    struct request *o = ctx;

    (void)tx;
    if (request_back(o))
        verdict_answer(o);
}

static void on_verdict_sent(struct msg *m, void *ctx)
{
    struct request *o = ctx;
    struct call_verdict *w = o->own;
    struct tx_op *op;

    if (!request_back(o)) {
        msg_free(m);
        return;
    }
    if (m->err) {
        refuse_message(o, m);
        msg_free(m);
        return;
    }
    w->task_id = m->task.id;
    w->is_sent_before = m->task.is_repeat; /* by a faster call */
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
    request_out(o);
    store_submit(o->api->store, &w->tx, on_verdict_linked, o);
}

/* The key identifies the decision alone: a second call that names another agent
 * finds the task of the first. */
static enum err verdict_write_message(struct msg *m,
                                      const struct call_verdict *w)
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
    message_hash(m, str_of(key));
    return OK;
}

static void verdict_send(struct request *o)
{
    struct call_verdict *w = o->own;
    struct msg *m;

    w->task_id = w->d.task_id;
    w->is_sent_before = w->task_id.text[0] != '\0';
    if (!w->sends || w->task_id.text[0]) {
        verdict_answer(o);
        return;
    }
    m = msg_new(&o->caller, loop_wall_ms(o->api->loop));
    if (!m || verdict_write_message(m, w) != OK) {
        msg_free(m);
        request_fail(o, ERR_NOMEM);
        return;
    }
    request_out(o);
    walk_message(o->api->walk, m, on_verdict_sent, o);
}

/* Why the message cannot be sent; empty: it can. A text that fills the record
 * may be cut, even in the middle of a character. */
static struct str verdict_send_obstacle(const struct request *o, enum err *e)
{
    const struct call_verdict *w = o->own;

    *e = ERR_BAD_REQUEST;
    if (w->d.layer != LAYER_NONE)
        return STR("the message was delivered; send it again with the agent as "
                   "executor.name");
    if (w->d.text.n > DECISION_TEXT_MAX - UTF8_LONGEST)
        return STR("a decision keeps only the start of so long a message; "
                   "send it again with the agent as executor.name");
    *e = ERR_NOT_ALLOWED;
    if (!str_eq(w->d.requester, caller_name(&o->caller)))
        return STR("only the user who sent the message can send it again");
    return STR("");
}

static void on_verdict_written(struct tx *tx, void *ctx)
{
    struct request *o = ctx;

    if (!request_back(o))
        return;
    if (tx->result == TX_COMMITTED)
        verdict_send(o);
    else if (tx->result == TX_GUARD_FAILED)
        verdict_retry(o);
    else
        request_fail(o, tx->result == TX_FATAL ? ERR_OUTCOME_UNKNOWN : tx->err);
}

/* The tx. */

static void verdict_report(struct request *o, struct str type, struct str from,
                           struct str to)
{
    struct call_verdict *w = o->own;
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
                            .at_ms = loop_wall_ms(o->api->loop),
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

static void verdict_give_conversation(struct request *o)
{
    struct call_verdict *w = o->own;
    struct tx_op *op = tx_update(&w->tx, &conversation_table);

    tx_if(op, CONVERSATION_OWNER, IS, value_text(w->d.requester));
    tx_if(op, CONVERSATION_ID, IS, value_text(w->d.conversation_id));
    tx_if(op, CONVERSATION_AGENT, IS, value_text(str_of(w->from)));
    tx_set(op, CONVERSATION_AGENT, value_text(str_of(w->agent)));
    tx_set(op, CONVERSATION_DECISION_ID, value_text(str_of(w->d.id.text)));
    tx_set(op, CONVERSATION_MEANT_MS, value_int(loop_wall_ms(o->api->loop)));
    verdict_report(o, STR("conversation.switched"), str_of(w->from),
                   str_of(w->agent));
}

/* The same verdict was given before. One from before the last void may be
 * voided, so it can be given again. */
static bool verdict_is_known(const struct request *o)
{
    const struct call_verdict *w = o->own;
    int64_t said_ms = w->d.overridden_ms > w->d.verdict_ms ? w->d.overridden_ms
                                                           : w->d.verdict_ms;

    if (said_ms <= learning_voided_ms(o->api->learning))
        return false;
    if (w->verdict == VERDICT_NEGATIVE && w->agent[0])
        return str_eq_nocase(w->d.overridden_to, str_of(w->agent));
    return w->d.verdict == w->verdict &&
           !(w->verdict == VERDICT_POSITIVE && w->d.overridden_to.n);
}

static void verdict_submit(struct request *o)
{
    struct call_verdict *w = o->own;
    bool is_right = w->verdict == VERDICT_POSITIVE;
    struct learning_word word = {
        .decision = &w->d,
        .right = is_right ? STR("") : str_of(w->agent),
        .verdict = w->verdict,
        .by = caller_name(&o->caller),
        .at_ms = loop_wall_ms(o->api->loop),
        .vector = {(const char *)w->vector, w->vector_bytes},
    };
    struct embed_stamp stamp = {.dims = 0};

    if (w->vector) {
        stamp = embed_stamp(o->api->embeds[0]);
        word.model_hash = str_of(stamp.hash);
    }
    w->is_recorded = !verdict_is_known(o) || w->gives;
    if (!w->is_recorded) {
        verdict_send(o);
        return;
    }
    tx_init(&w->tx);
    w->has_tx = true;
    if (!verdict_is_known(o)) {
        learning_append(o->api->learning, &w->tx, &word);
        verdict_report(o,
                       word.right.n ? STR("decision.overridden")
                                    : STR("decision.feedback"),
                       w->d.agent, word.right);
    }
    if (w->gives)
        verdict_give_conversation(o);
    request_out(o);
    store_submit(o->api->store, &w->tx, on_verdict_written, o);
}

/* The vector. */

static void verdict_read_conversation(struct request *o);

static void verdict_go_on(struct request *o)
{
    struct call_verdict *w = o->own;

    w->is_embedded = true;
    if (w->is_override && w->d.conversation_id.n)
        verdict_read_conversation(o);
    else
        verdict_submit(o);
}

static void verdict_go_on_without(struct request *o, const char *because)
{
    (void)why_err(&verdict_of(o)->no_vector, OK,
                  "recorded for this exact text; similar texts learn nothing "
                  "from it, because its meaning could not be computed: %s",
                  because);
    verdict_go_on(o);
}

/* Take the vectors of the reading, one after the other. False: there are
 * none. */
static bool verdict_take_vectors(struct request *o, float *v,
                                 const struct embed_stamp *stamp)
{
    struct call_verdict *w = o->own;
    size_t n = vec_packed_bytes(stamp->dims);

    reading_add_up(&w->reading, v, stamp);
    w->vector = stamp->dims ? mem_new(n) : NULL;
    if (w->vector && vec_pack(v, stamp->dims, w->vector)) {
        w->vector_bytes = n;
        verdict_go_on(o);
        return true;
    }
    free(w->vector);
    w->vector = NULL;
    return false;
}

/* The decision has a vector of the current model, quick or full. */
static bool verdict_has_vector(const struct request *o,
                               const struct embed_stamp *stamp)
{
    const struct decision *d = &verdict_of(o)->d;

    return d->vector.n && str_eq(d->model_hash, str_of(stamp->hash));
}

/* Without the full vector, a quick one teaches too. */
static void verdict_go_on_quickly(struct request *o, const char *because)
{
    const struct reading *r = &verdict_of(o)->reading;
    struct embed *embed = o->api->embeds[0];
    struct embed_stamp stamp = embed_stamp(embed);
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];

    if (verdict_has_vector(o, &stamp)) {
        verdict_go_on(o);
        return;
    }
    for (size_t i = 0; i < r->n; i++)
        if (!embed_quick(embed, r->texts[i], v + i * stamp.dims)) {
            verdict_go_on_without(o, because);
            return;
        }
    if (!verdict_take_vectors(o, v, &stamp))
        verdict_go_on_without(o, because);
}

static const char unknown_text[] = "the model knows nothing in this text";

static void on_verdict_vector(void *ctx, uint64_t id, enum err e,
                              const struct embed_result *result,
                              const struct why *why)
{
    struct request *o = ctx;
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];

    (void)id;
    (void)why; /* the words of the provider are for the operator */
    verdict_of(o)->embedding = 0;
    loop_timer_cancel(o->api->loop, &o->timer);
    if (e == ERR_STOPPING)
        request_fail(o, e);
    else if (e)
        verdict_go_on_quickly(o, err_row(e)->wording);
    else {
        memcpy(v, result->vectors, result->n * result->stamp.dims * sizeof(*v));
        if (!verdict_take_vectors(o, v, &result->stamp))
            verdict_go_on_quickly(o, unknown_text);
    }
}

static void on_verdict_vector_late(struct timer *t)
{
    struct request *o = LIST_OF(t, struct request, timer);

    verdict_quiet(o);
    verdict_go_on_quickly(o, "the model took too long");
}

/* The scope of the decision: the next message with this text finds the
 * vector. */
static struct str verdict_scope(const struct request *o,
                                char out[EYES_SCOPE_BYTES])
{
    const struct decision *d = &verdict_of(o)->d;
    struct eyes eyes = {.user = d->requester, .org = d->org};

    return eyes_scope(&eyes, out);
}

static void verdict_wait_for_vector(struct request *o, struct embed *embed)
{
    struct api *c = o->api;
    const struct reading *r = &verdict_of(o)->reading;
    int64_t most_ms = c->settings.vector_timeout_ms;
    char scope[EYES_SCOPE_BYTES];
    enum err e =
        embed_start_for(embed, verdict_scope(o, scope), r->texts, r->n,
                        on_verdict_vector, o, &verdict_of(o)->embedding, NULL);

    if (e) {
        verdict_of(o)->embedding = 0;
        verdict_go_on_quickly(o, err_row(e)->wording);
        return;
    }
    o->timer.fire = on_verdict_vector_late;
    if (most_ms)
        loop_timer_set(c->loop, &o->timer, most_ms);
}

/* The requester of the decision, who may not be the caller. False: the user
 * does not exist any more. */
static bool verdict_find_requester(const struct request *o, struct caller *out)
{
    struct access_user u;

    *out = o->caller;
    if (str_eq(caller_name(out), verdict_of(o)->d.requester))
        return true;
    if (!access_user_find(o->api->access, verdict_of(o)->d.requester, &u))
        return false;
    *out = (struct caller){.role = u.role, .scopes = role_scopes(u.role)};
    memcpy(out->principal, u.name, sizeof(out->principal));
    memcpy(out->org, u.org, sizeof(out->org));
    memcpy(out->owner, u.owner, sizeof(out->owner));
    return true;
}

/* Read the text as the next message of the requester would be read. */
static enum err verdict_read_text(struct request *o, struct str text)
{
    const struct api *c = o->api;
    struct call_verdict *w = o->own;
    struct caller requester;
    struct eyes eyes;

    (void)verdict_find_requester(
        o, &requester); /* otherwise with the visibility of the caller */
    eyes = eyes_of(&requester, loop_wall_ms(c->loop));
    return route_read_text(walk_router(c->walk), &w->arena, &eyes, text,
                           &w->reading);
}

static void verdict_embed_reading(struct request *o, struct embed *embed)
{
    const struct reading *r = &verdict_of(o)->reading;
    float v[READING_TEXTS_MAX * EMBED_DIMS_MAX];
    struct embed_stamp stamp = embed_stamp(embed);
    char name[EYES_SCOPE_BYTES];
    struct str scope = verdict_scope(o, name);

    for (size_t i = 0; i < r->n; i++)
        if (!embed_now_for(embed, scope, r->texts[i], v + i * stamp.dims)) {
            verdict_wait_for_vector(o, embed);
            return;
        }
    if (!verdict_take_vectors(o, v, &stamp))
        verdict_go_on_quickly(o, unknown_text);
}

/* The decision's own vector is the best possible: it is full, or only the start
 * of its text is recorded, perhaps with a model that is not in use any more. */
static bool verdict_has_best_vector(const struct request *o,
                                    const struct embed_stamp *stamp)
{
    const struct decision *d = &verdict_of(o)->d;

    return verdict_has_vector(o, stamp) &&
           (d->tier != TIER_TABLE || d->text.n > DECISION_TEXT_MAX - 4);
}

static void verdict_embed_text(struct request *o)
{
    struct call_verdict *w = o->own;
    struct embed *embed = o->api->n_embeds ? o->api->embeds[0] : NULL;
    struct str text = learning_text(&w->d);
    struct embed_stamp stamp = {.dims = 0};

    if (embed)
        stamp = embed_stamp(embed);
    if (w->is_embedded || verdict_is_known(o) || !text.n ||
        verdict_has_best_vector(o, &stamp))
        verdict_go_on(o);
    else if (!embed)
        verdict_go_on_without(o, "there is no model");
    else if (verdict_read_text(o, text) != OK)
        verdict_go_on_without(o, err_row(ERR_NOMEM)->wording);
    else
        verdict_embed_reading(o, embed);
}

/* Reading. */

/* The owner of the conversation sees the agent that will answer. */
static bool verdict_owner_sees(struct request *o, struct str name)
{
    struct api *c = o->api;
    struct caller owner;
    struct eyes eyes;

    if (!verdict_find_requester(o, &owner))
        return false;
    eyes = eyes_of(&owner, loop_wall_ms(c->loop));
    return registry_find(c->registry, name, &eyes) != NULL;
}

/* A conversation that has moved to a third agent since is not given to this
 * one. */
static void on_verdict_conversation(struct request *o)
{
    struct call_verdict *w = o->own;
    const struct row *r = o->turns.rows;
    struct str has = r ? row_str(r, CONVERSATION_AGENT) : STR("");

    if (o->turns.err) {
        request_fail(o, o->turns.err);
        return;
    }
    w->gives = has.n && has.n <= AGENT_NAME_MAX &&
               !str_eq_nocase(has, str_of(w->agent)) &&
               (str_eq_nocase(has, w->d.agent) ||
                str_eq_nocase(has, w->d.overridden_to)) &&
               verdict_owner_sees(o, str_of(w->agent));
    if (w->gives) {
        memcpy(w->from, has.p, has.n);
        w->from[has.n] = '\0';
    }
    verdict_submit(o);
}

static void verdict_read_conversation(struct request *o)
{
    request_query_turns(o, &conversation_table, 1);
    query_if(&o->turns, CONVERSATION_OWNER, IS,
             value_text(verdict_of(o)->d.requester));
    query_if(&o->turns, CONVERSATION_ID, IS,
             value_text(verdict_of(o)->d.conversation_id));
    request_read(o, &o->turns, on_verdict_conversation);
}

/* A contradiction between the verdict and the decision; empty: none. */
static struct str verdict_contradiction(const struct call_verdict *w)
{
    bool is_same = str_eq_nocase(str_of(w->agent), w->d.agent);

    if (w->is_override && is_same && !w->d.overridden_to.n)
        return STR(
            "it already went to that agent; send feedback to confirm it");
    if (w->is_override || !w->agent[0])
        return STR("");
    if (w->verdict == VERDICT_NEGATIVE && is_same)
        return STR("agent must be the right one, but the verdict says that "
                   "this one was wrong");
    if (w->verdict == VERDICT_POSITIVE && !is_same)
        return STR("agent is another one than it went to, but the verdict "
                   "says that it was right");
    return STR("");
}

static void on_verdict_decision(struct request *o)
{
    struct call_verdict *w = o->own;
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
        request_fail(o, e == ERR_SYNTAX ? ERR_INTERNAL : e);
        return;
    }
    e = ERR_BAD_REQUEST;
    wrong = verdict_contradiction(w);
    if (!wrong.n && w->sends)
        wrong = verdict_send_obstacle(o, &e);
    if (wrong.n) {
        request_refuse(o, e, wrong, STR(""));
        return;
    }
    /* An override back to the first agent means that the decision was right. */
    if (w->is_override)
        w->verdict = str_eq_nocase(str_of(w->agent), w->d.agent)
                         ? VERDICT_POSITIVE
                         : VERDICT_NEGATIVE;
    verdict_embed_text(o);
}

static void verdict_read_decision(struct request *o)
{
    request_query(o, &decision_table, 1);
    query_if(&o->query, DECISION_ID, IS,
             value_text(str_of(verdict_of(o)->decision_id.text)));
    request_read(o, &o->query, on_verdict_decision);
}

/* The calls. */

static void verdict_init(struct call_verdict *w, const struct speak_word *said,
                         struct str agent, bool is_override)
{
    arena_init(&w->arena, DECISION_BYTES);
    w->is_override = is_override;
    w->verdict = said->verdict;
    w->sends = said->sends;
    w->tries_left = TRIES;
    if (agent.n)
        memcpy(w->agent, agent.p, agent.n);
    if (said->comment.n)
        memcpy(w->comment, said->comment.p, said->comment.n);
}

static void verdict_take_call(struct call *c, const struct speak_word *said,
                              bool is_override)
{
    static const struct request_state state = {.bytes =
                                                   sizeof(struct call_verdict),
                                               .quiet = verdict_quiet,
                                               .fini = verdict_fini};
    struct eyes eyes = call_eyes(c);
    const struct agent *a =
        said->agent.n ? registry_find(c->api->registry, said->agent, &eyes)
                      : NULL;
    struct request *o;

    if (!id_is_valid(c->param, "dec")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    if (said->agent.n && !a) {
        call_refuse_agent(c, said->agent);
        return;
    }
    o = request_of_call(c, &state);
    if (!o)
        return;
    verdict_of(o)->decision_id = id_from(c->param);
    verdict_init(o->own, said, a ? a->name : STR(""), is_override);
    verdict_read_decision(o);
}

void call_decisions_override(struct call *c)
{
    struct speak_word said;
    struct why why = {""};
    enum err e = speak_override(&c->api->scratch, c->rq->body, &said, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        verdict_take_call(c, &said, true);
}

void call_decisions_feedback(struct call *c)
{
    struct speak_word said;
    struct why why = {""};
    enum err e = speak_feedback(&c->api->scratch, c->rq->body, &said, &why);

    if (e)
        call_refuse(c, e, str_of(why.text));
    else
        verdict_take_call(c, &said, false);
}
