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

/* A whole number: milliseconds or a type. */
static bool filter_int(struct call *c, struct query *q, const char *name,
                       uint8_t column, enum compare compare, const char *words)
{
    struct str arg = call_arg(c, name);
    int64_t v;

    if (!arg.p)
        return true;
    if (str_to_i64(arg, &v) != OK || v < 0)
        return call_bad_request(c, words);
    query_if(q, column, compare, value_int(v));
    return true;
}

/* Scores are stored in billionths for this; the rounding does not matter. */
static bool filter_score(struct call *c, struct query *q, const char *name,
                         enum compare compare)
{
    struct str arg = call_arg(c, name);
    struct arena *scratch = &c->api->scratch;
    const struct json *v = arg.p ? json_parse(scratch, arg, 0, NULL) : NULL;
    double score = json_real_or(v, -1);

    if (!arg.p)
        return true;
    if (!(score >= 0 && score <= 1))
        return call_bad_request(
            c, "min_score and max_score must be numbers, 0 to 1");
    query_if(q, DECISION_SCORE, compare,
             value_int((int64_t)llround(score * 1e9)));
    return true;
}

static bool filter_layer(struct call *c, struct query *q)
{
    struct str arg = call_arg(c, "layer");
    enum layer layer = layer_of(arg);

    if (!arg.p)
        return true;
    if (!layer)
        return call_bad_request(
            c, "layer must be one of explicit, prefix, sticky, "
               "binding, intent, semantic, default");
    query_if(q, DECISION_LAYER, IS, value_int(layer));
    return true;
}

static bool filter_verdict(struct call *c, struct query *q)
{
    struct str arg = call_arg(c, "verdict");

    if (!arg.p)
        return true;
    for (int v = VERDICT_OPEN; v <= VERDICT_NEUTRAL; v++)
        if (str_eq(verdict_name((enum verdict)v), arg)) {
            query_if(q, DECISION_VERDICT, IS,
                     v == VERDICT_OPEN ? value_null() : value_int(v));
            return true;
        }
    return call_bad_request(
        c, "verdict must be one of open, positive, negative, neutral");
}

/* A boolean; *out is unchanged if it is not given. */
static bool call_read_bool(struct call *c, const char *name, bool *is_given,
                           bool *out)
{
    struct str arg = call_arg(c, name);
    bool yes = str_eq(arg, STR("1")) || str_eq(arg, STR("true"));

    *is_given = arg.p != NULL;
    if (!arg.p)
        return true;
    *out = yes;
    return yes || str_eq(arg, STR("0")) || str_eq(arg, STR("false")) ||
           call_bad_request(c, "overridden and full must be true or false");
}

static bool filter_overridden(struct call *c, struct query *q)
{
    bool is_given, yes = false;

    if (!call_read_bool(c, "overridden", &is_given, &yes))
        return false;
    if (is_given)
        query_if(q, DECISION_OVERRIDDEN_TO, yes ? IS_NOT : IS, value_null());
    return true;
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

static bool decisions_filter_query(struct call *c, struct query *q)
{
    filter_names(c, q);
    return filter_layer(c, q) && filter_verdict(c, q) &&
           filter_overridden(c, q) &&
           filter_score(c, q, "min_score", IS_AT_LEAST) &&
           filter_score(c, q, "max_score", IS_AT_MOST) &&
           filter_int(c, q, "type", DECISION_TYPE, IS,
                      "type must be the number of a type of query, or 0") &&
           filter_int(c, q, "since", DECISION_AT_MS, IS_AT_LEAST,
                      "since must be Unix time in milliseconds") &&
           filter_int(c, q, "until", DECISION_AT_MS, IS_LESS,
                      "until must be Unix time in milliseconds");
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
    bool is_given, is_whole = false, scans;
    struct wordfind words = {.n = 0};
    int64_t cursor = 0;
    size_t limit;
    struct decision_scan *list;
    struct request *o = NULL;
    struct query q;

    if (!call_limit(c, &limit) ||
        !call_read_bool(c, "full", &is_given, &is_whole) ||
        !decisions_read_words(c, &words) || !call_cursor(c, 1, &cursor))
        return;
    query_init(&q, &decision_table, limit);
    /* Check the filters before the request is opened. */
    if (decisions_filter_query(c, &q))
        o = request_of_call(c, &decision_scan_state);
    scans = words.n || decisions_are_filtered(c, &q);
    query_fini(&q);
    if (!o)
        return;
    list = o->own;
    list->is_whole = is_whole;
    if (!scans) {
        request_query(o, &decision_table, limit);
        query_order(&o->query, DECISION_SEQ, true);
        (void)decisions_filter_query(c, &o->query);
        if (cursor)
            query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(cursor));
        request_read_list(o, &o->query, on_decisions_page);
        return;
    }
    decision_scan_init(list, &words, limit, cursor);
    (void)decisions_filter_query(c, &list->wish);
    if (str_to_i64(call_arg(c, "since"), &list->since_ms) != OK)
        list->since_ms = 0; /* not given */
    if (list->wish.build_error)
        request_fail(o, ERR_NOMEM);
    else
        decision_scan_begin(o);
}
