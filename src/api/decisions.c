/* Decisions: a single one, or a list. They are for their requester and admins:
 * messages to an agent are private even from the creator of the agent. */
#include "api/decision_scan.h"

#include <math.h>
#include <stdio.h>

static bool decision_is_for(const struct row *r, const struct caller *c)
{
    return caller_is_admin(c) ||
           str_eq(row_str(r, DECISION_REQUESTER), caller_name(c));
}

void decision_hide_others(struct decision *d, const struct caller *c)
{
    if (caller_is_admin(c))
        return;
    d->registry_version = d->learn_version = -1;
    if (d->type < LEARN_TYPE_FIRST)
        d->type = 0;
}

/* ERR_SYNTAX: recorded by an unknown version; ERR_NOMEM. */
static enum err write_decision(struct request *o, struct json_out *out,
                               const struct row *row, enum speak_length length)
{
    struct arena *scratch = &o->api->scratch;
    struct decision d;
    enum err e;

    arena_reset(scratch);
    e = decision_from_row(scratch, row, &d);
    if (e)
        return e;
    decision_hide_others(&d, &o->caller);
    json_open(out, '{');
    speak_decision(out, &d, length);
    json_close(out, '}');
    return OK;
}

enum err decisions_put(struct request *o, struct json_out *out,
                       const struct row *row)
{
    const struct decision_scan *list = o->own;
    enum speak_length length = list->is_whole ? SPEAK_WHOLE : SPEAK_LISTED;
    enum err e = write_decision(o, out, row, length);

    if (e != ERR_SYNTAX)
        return e;
    /* The record is shown, so that the count is right. */
    json_open(out, '{');
    json_member_text(out, "id", row_str(row, DECISION_ID));
    json_member_int(out, "at_ms", row_int(row, DECISION_AT_MS));
    json_member_bool(out, "unreadable", true);
    json_close(out, '}');
    return OK;
}

/* A single decision. */

static void on_decision_row(struct request *o)
{
    struct json_out out = request_json(o);
    const struct row *r = o->query.rows;
    enum err e = o->query.err;

    if (!e && (!r || !decision_is_for(r, &o->caller)))
        e = ERR_NOT_FOUND;
    if (!e)
        e = write_decision(o, &out, r, SPEAK_WHOLE);
    if (e && e != ERR_SYNTAX)
        request_fail(o, e);
    else if (e)
        request_refuse(o, ERR_INTERNAL,
                       STR("this decision was recorded by another version"),
                       STR(""));
    else {
        request_answer(o, 200);
    }
}

void call_decisions_get(struct call *c)
{
    struct request *o;

    if (!id_is_valid(c->param, "dec")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = request_of_call(c, NULL);
    if (!o)
        return;
    request_query(o, &decision_table, 1);
    query_if(&o->query, DECISION_ID, IS, value_text(c->param));
    request_read(o, &o->query, on_decision_row);
}

/* The list. */

/* The page, or a part of it that ends with *last. */
static enum err decisions_write_page(struct request *o, struct json_out *out,
                                     const struct row **last, bool *has_more)
{
    QUERY_EACH(r, &o->query)
    {
        enum err e;

        if (o->api->body.n > PAGE_BYTES) {
            *has_more = true;
            break;
        }
        e = decisions_put(o, out, r);
        if (e)
            return e;
        *last = r;
    }
    return OK;
}

static void on_decisions_page(struct request *o)
{
    struct json_out out = request_json(o);
    const struct row *last = NULL;
    bool has_more = o->query.has_more;
    enum err e = o->query.err;

    speak_list_open(&out);
    if (!e)
        e = decisions_write_page(o, &out, &last, &has_more);
    if (e)
        request_fail(o, e);
    else
        request_answer_list(o, &out,
                            has_more && last ? row_int(last, DECISION_SEQ) : 0);
}

/* Filters. */

static void filter_int(struct call *c, struct query *q, const char *name,
                       uint8_t column, enum compare compare)
{
    if (call_arg(c, name).p)
        query_if(q, column, compare, value_int(call_int(c, name, 0)));
}

/* Scores are stored in billionths for this; the rounding does not matter. */
static void filter_score(struct call *c, struct query *q, const char *name,
                         enum compare compare)
{
    if (call_arg(c, name).p)
        query_if(q, DECISION_SCORE, compare,
                 value_int((int64_t)llround(call_real(c, name, 0) * 1e9)));
}

static void filter_verdict(struct query *q, struct str arg)
{
    for (int v = VERDICT_OPEN; v <= VERDICT_NEUTRAL; v++)
        if (str_eq(verdict_name((enum verdict)v), arg))
            query_if(q, DECISION_VERDICT, IS,
                     v == VERDICT_OPEN ? value_null() : value_int(v));
}

/* Decisions of others are for admins. */
static void filter_names(struct call *c, struct query *q)
{
    struct str agent = call_arg(c, "agent");
    struct str requester = call_arg(c, "requester");
    struct str conversation = call_arg(c, "conversation_id");
    struct str task = call_arg(c, "task_id");
    struct agents all = registry_agents(c->api->registry);
    const struct agent *a = agent.p ? agent_find(&all, agent) : NULL;
    struct access_user found;

    if (!caller_is_admin(&c->caller))
        query_if(q, DECISION_REQUESTER, IS,
                 value_text(caller_name(&c->caller)));
    if (requester.p && access_user_find(c->api->access, requester, &found))
        requester = str_of(found.name);
    if (requester.p)
        query_if(q, DECISION_REQUESTER, IS, value_text(requester));
    if (conversation.p)
        query_if(q, DECISION_CONVERSATION_ID, IS, value_text(conversation));
    if (task.p)
        query_if(q, DECISION_TASK_ID, IS, value_text(task));
    if (agent.p)
        query_if(q, DECISION_AGENT, IS, value_text(a ? a->name : agent));
}

static void decisions_filter_query(struct call *c, struct query *q)
{
    filter_names(c, q);
    if (call_arg(c, "layer").p)
        query_if(q, DECISION_LAYER, IS,
                 value_int(layer_of(call_arg(c, "layer"))));
    filter_verdict(q, call_arg(c, "verdict"));
    if (call_arg(c, "overridden").p)
        query_if(q, DECISION_OVERRIDDEN_TO,
                 call_yes(c, "overridden") ? IS_NOT : IS, value_null());
    filter_score(c, q, "min_score", IS_AT_LEAST);
    filter_score(c, q, "max_score", IS_AT_MOST);
    filter_int(c, q, "type", DECISION_TYPE, IS);
    filter_int(c, q, "since", DECISION_AT_MS, IS_AT_LEAST);
    filter_int(c, q, "until", DECISION_AT_MS, IS_LESS);
}

/* *words is filled if words are given. */
static bool decisions_read_words(struct call *c, struct wordfind *words)
{
    struct str arg = call_arg(c, "q");

    return !arg.p || wordfind_init(words, arg) ||
           call_bad_request(c,
                            "q must be words to search for, up to 256 bytes");
}

/* There are filters besides the requester, which has an index. */
static bool decisions_are_filtered(const struct call *c, const struct query *q)
{
    const struct condition *first = q->conditions;

    return first && (caller_is_admin(&c->caller) || first->next);
}

void call_decisions_list(struct call *c)
{
    struct wordfind words = {.n = 0};
    int64_t cursor = call_int(c, "cursor", 0);
    size_t limit = call_limit(c);
    struct decision_scan *list;
    struct request *o;
    struct query q;

    if (!decisions_read_words(c, &words) ||
        !(o = request_of_call(c, &decision_scan_state)))
        return;
    query_init(&q, &decision_table, limit);
    decisions_filter_query(c, &q);
    list = o->own;
    list->is_whole = call_yes(c, "full");
    if (!words.n && !decisions_are_filtered(c, &q)) {
        query_fini(&q);
        request_query(o, &decision_table, limit);
        query_order(&o->query, DECISION_SEQ, true);
        decisions_filter_query(c, &o->query);
        if (cursor)
            query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(cursor));
        request_read_list(o, &o->query, on_decisions_page);
        return;
    }
    query_fini(&q);
    decision_scan_init(list, &words, limit, cursor);
    decisions_filter_query(c, &list->wish);
    list->since_ms = call_int(c, "since", 0);
    if (list->wish.build_error)
        request_fail(o, ERR_NOMEM);
    else
        decision_scan_begin(o);
}
