/* POST /api/delegate: what agents ask of one another on the hub, for those that
 * are reached otherwise; and for people, who then simply send a message.
 * GET /api/delegations/KEY: how it stands.
 *
 * In whose name is for the server to know: who says parent_task_id acts for
 * the agent that works on that task, and must be one who may be that agent. */
#include "calls/internal.h"
#include "calls/share.h"

/* Asking. */

static void on_look(struct open *o, enum err e, const struct task *t)
{
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        events_begin(o, t);
}

/* Its only piece as events, as a message's. */
static void follow(struct open *o)
{
    struct commission_piece piece;

    if (!commission_piece(o->commission, 0, &piece)) {
        open_refuse(o, ERR_INTERNAL, STR(""), STR(""));
        return;
    }
    commission_leave(o->commission);
    o->commission = NULL;
    loop_timer_cancel(o->calls->loop, &o->timer);
    o->task_id = piece.task_id;
    o->message_id = piece.message_id;
    look_task(o, on_look);
}

static void on_done(void *ctx)
{
    struct open *o = ctx;
    struct str words = {NULL, 0}, details = {NULL, 0};
    enum err e = commission_refused(o->commission, &words, &details);
    struct json_out out = json_out(&o->calls->body);

    if (e) {
        open_refuse(o, e, words, details);
    } else if (o->message.wants_events && o->calls->is_ready) {
        follow(o);
    } else {
        commission_write(o->commission, &out);
        buf_add_char(&o->calls->body, '\n');
        open_answer(o, commission_is_over(o->commission) ? 200 : 202);
    }
}

/* Nobody waits for longer than net does, nor when we stop. */
static void on_patience(struct timer *t)
{
    commission_hurry(LIST_OF(t, struct open, timer)->commission);
}

static bool begin(struct open *o, struct call *c)
{
    struct calls *calls = c->calls;
    struct str key = http_header(c->rq, STR("Idempotency-Key"));
    struct why why = {""};
    enum err e = ERR_NOMEM;

    if (key.p && !key.n) {
        open_refuse(o, ERR_BAD_REQUEST,
                    STR("the Idempotency-Key header is empty: give a key, or "
                        "leave it out"),
                    STR(""));
        return false;
    }
    o->commission = commission_new(&(struct commission_opts){
        .loop = calls->loop,
        .log = calls->log,
        .walk = calls->walk,
        .store = calls->store,
        .registry = calls->registry,
        .list = &calls->commissions,
        .caller = &c->caller,
        .waits_for_nothing = o->message.wants_events,
        .idempotency_key = key,
        .done = on_done,
        .ctx = o,
    });
    if (o->commission)
        e = commission_read(o->commission, c->rq->body, false, &why);
    if (!e && o->message.wants_events && commission_is_piece(o->commission, 1))
        e = why_err(&why, ERR_BAD_REQUEST,
                    "events are of one task: ask for each of several by "
                    "itself");
    if (!e)
        return true;
    open_refuse(o, e, str_of(why.text), STR(""));
    return false;
}

void call_delegate_post(struct call *c)
{
    struct calls *calls = c->calls;
    struct open *o = open_new(c);

    if (!o)
        return;
    o->message.wants_events = call_wants_events(c);
    if (!begin(o, c))
        return;
    o->timer.fire = on_patience;
    open_becomes(o, OPEN_WAITING);
    if (loop_timer_set(calls->loop, &o->timer,
                       calls_patience_ms(calls, SPEAK_TIMEOUT_MAX_MS)) != OK)
        commission_hurry(o->commission);
    commission_go(o->commission);
}

/* How it stands. */

/* Whoever may be that agent has it, where the agent is not one that hears by a
 * line of its own and acknowledges there. The row stays as long as its task
 * does: who lost the answer may ask again. */
static bool hears_by_asking(const struct open *o, struct str agent)
{
    struct registry_by by = {.caller = &o->caller,
                             .now_ms = loop_wall_ms(o->calls->loop)};
    const struct agent *a = NULL;
    struct agent_url url;
    struct why why;

    return registry_self(o->calls->registry, agent, &by, &a, &why) == OK && a &&
           agent_url_read(a->url, &url, NULL) == OK && url.road != ROAD_HUB;
}

static void is_fetched(const struct open *o)
{
    struct hires *hires = walk_hires(o->calls->walk);
    struct str key = str_of(o->delegation.key.text);
    const struct delegation *d = hire_find(hires, key);
    enum err e = OK;

    if (d && d->state == DELEGATION_READY && hears_by_asking(o, d->agent))
        e = hire_had(hires, d->agent, key, NULL, NULL);
    if (e)
        log_info(o->calls->log, "calls.not_acked", LOG_C("key", key.p),
                 LOG_C("because", err_row(e)->code));
}

static void on_task(struct open *o, enum err e, const struct task *t)
{
    struct json_out out = json_out(&o->calls->body);

    if (!e && o->delegation.turn && t->turn != o->delegation.turn &&
        !o->has_turns) {
        look_number(o, t, o->delegation.turn, on_task);
        return;
    }
    if (e) {
        open_refuse(o, e, STR(""), STR(""));
        return;
    }
    json_open(&out, '{');
    speak_delegated(&out, str_of(o->delegation.key.text), t);
    json_member_text(&out, "agentId", t->agent);
    json_close(&out, '}');
    buf_add_char(&o->calls->body, '\n');
    if (task_is_over(t->status))
        is_fetched(o);
    open_answer(o, 200);
}

static void on_row(struct open *o)
{
    const struct row *row = o->query.rows;

    if (o->query.err || !row) {
        open_refuse(o, o->query.err ? o->query.err : ERR_NOT_FOUND, STR(""),
                    STR(""));
        return;
    }
    o->task_id = id_from(row_str(row, DELEGATION_TASK_ID));
    o->delegation.turn = row_int(row, DELEGATION_TURN);
    look_task(o, on_task);
}

/* Who may see its task may: who asked, on whose behalf it is, and admins. What
 * a person gave has the task's own id for its key. */
void call_delegations_get(struct call *c)
{
    const struct delegation *d =
        hire_find(walk_hires(c->calls->walk), c->param);
    bool is_task = id_is_valid(c->param, "task");
    struct open *o;

    if (!is_task && !id_is_valid(c->param, "del")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    o->delegation.key = id_from(c->param);
    if (!d && !is_task) {
        share_delegation_ask(&o->query, &o->has_query, c->param);
        open_read(o, &o->query, on_row);
        return;
    }
    o->task_id = d ? d->task_id : id_from(c->param);
    o->delegation.turn = d ? d->turn : 0;
    look_task(o, on_task);
}
