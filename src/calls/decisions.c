/* Decisions: one whole, or many as lists have them. They are for who asked, and
 * for admins: what others say to their agents is nobody's business, not even
 * that of the agents' creators. */
#include "calls/hunt.h"
#include "calls/share.h"

#include <math.h>
#include <stdio.h>

static bool is_for(const struct row *r, const struct caller *c)
{
    return caller_is_admin(c) ||
           str_eq(row_str(r, DECISION_REQUESTER), caller_name(c));
}

/* ERR_SYNTAX: it is none that we understand; ERR_NOMEM. */
static enum err write_decision(struct open *o, struct json_out *out,
                               const struct row *row, enum speak_length length)
{
    struct arena *scratch = &o->calls->scratch;
    struct decision d;
    enum err e;

    arena_reset(scratch);
    e = decision_from_row(scratch, row, &d);
    if (e)
        return e;
    share_decision_for(&d, &o->caller);
    json_open(out, '{');
    speak_decision(out, &d, length);
    json_close(out, '}');
    return OK;
}

/* That it is there, so that whoever counts does not miss it. */
static void write_unreadable(struct json_out *out, const struct row *row)
{
    json_open(out, '{');
    json_member_text(out, "id", row_str(row, DECISION_ID));
    json_member_int(out, "at_ms", row_int(row, DECISION_AT_MS));
    json_member_bool(out, "unreadable", true);
    json_close(out, '}');
}

enum err decisions_put(struct open *o, struct json_out *out,
                       const struct row *row)
{
    enum speak_length length = o->list.is_whole ? SPEAK_WHOLE : SPEAK_LISTED;
    enum err e = write_decision(o, out, row, length);

    if (e == ERR_SYNTAX)
        write_unreadable(out, row);
    return e == ERR_SYNTAX ? OK : e;
}

/* One. */

static void on_one(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct row *r = o->query.rows;
    enum err e = o->query.err;

    if (!e && (!r || !is_for(r, &o->caller)))
        e = ERR_NOT_FOUND;
    if (!e)
        e = write_decision(o, &out, r, SPEAK_WHOLE);
    if (e && e != ERR_SYNTAX)
        open_refuse(o, e, STR(""), STR(""));
    else if (e)
        open_refuse(o, ERR_INTERNAL,
                    STR("this decision was recorded by another version"),
                    STR(""));
    else {
        buf_add_char(&o->calls->body, '\n');
        open_answer(o, 200);
    }
}

void call_decisions_get(struct call *c)
{
    struct open *o;

    if (!id_is_valid(c->param, "dec")) {
        call_refuse(c, ERR_NOT_FOUND, STR(""));
        return;
    }
    o = open_new(c);
    if (!o)
        return;
    query_init(&o->query, &decision_table, 1);
    o->has_query = true;
    query_if(&o->query, DECISION_ID, IS, value_text(c->param));
    open_read(o, &o->query, on_one);
}

/* Many. */

/* All of the page, or a part that ends with *last. */
static enum err write_page(struct open *o, struct json_out *out,
                           const struct row **last, bool *has_more)
{
    QUERY_EACH(r, &o->query)
    {
        enum err e;

        if (o->calls->body.n > PAGE_BYTES) {
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

void decisions_end_page(struct open *o, struct json_out *out, int64_t cursor)
{
    char digits[32] = "";

    if (cursor)
        snprintf(digits, sizeof(digits), "%lld", (long long)cursor);
    speak_list_close(out, str_of(digits));
    buf_add_char(&o->calls->body, '\n');
    open_answer(o, 200);
}

static void on_page(struct open *o)
{
    struct json_out out = json_out(&o->calls->body);
    const struct row *last = NULL;
    bool has_more = o->query.has_more;
    enum err e = o->query.err;

    speak_list_open(&out);
    if (!e)
        e = write_page(o, &out, &last, &has_more);
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else
        decisions_end_page(o, &out,
                           has_more && last ? row_int(last, DECISION_SEQ) : 0);
}

/* What is asked for. */

static bool refuse(struct call *c, const char *words)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(words));
    return false;
}

/* A whole number: milliseconds, or a type. */
static bool filter_int(struct call *c, struct query *q, const char *name,
                       uint8_t column, enum compare compare, const char *words)
{
    struct str arg = call_arg(c, name);
    int64_t v;

    if (!arg.p)
        return true;
    if (str_to_i64(arg, &v) != OK || v < 0)
        return refuse(c, words);
    query_if(q, column, compare, value_int(v));
    return true;
}

/* Scores are kept in billionths for this; a thousandth of one is nothing. */
static bool filter_score(struct call *c, struct query *q, const char *name,
                         enum compare compare)
{
    struct str arg = call_arg(c, name);
    struct arena *scratch = &c->calls->scratch;
    const struct json *v = arg.p ? json_parse(scratch, arg, 0, NULL) : NULL;
    double score = json_real_or(v, -1);

    if (!arg.p)
        return true;
    if (!(score >= 0 && score <= 1))
        return refuse(c, "min_score and max_score must be numbers, 0 to 1");
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
        return refuse(c, "layer must be one of explicit, prefix, sticky, "
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
    return refuse(c,
                  "verdict must be one of open, positive, negative, neutral");
}

/* Yes or no; *out is as it was where it is not given. */
static bool read_yes(struct call *c, const char *name, bool *is_given,
                     bool *out)
{
    struct str arg = call_arg(c, name);
    bool yes = str_eq(arg, STR("1")) || str_eq(arg, STR("true"));

    *is_given = arg.p != NULL;
    if (!arg.p)
        return true;
    *out = yes;
    return yes || str_eq(arg, STR("0")) || str_eq(arg, STR("false")) ||
           refuse(c, "overridden and full must be true or false");
}

static bool filter_overridden(struct call *c, struct query *q)
{
    bool is_given, yes = false;

    if (!read_yes(c, "overridden", &is_given, &yes))
        return false;
    if (is_given)
        query_if(q, DECISION_OVERRIDDEN_TO, yes ? IS_NOT : IS, value_null());
    return true;
}

/* Others' are for admins to ask for. */
static void filter_names(struct call *c, struct query *q)
{
    struct str agent = call_arg(c, "agent");
    struct str requester = call_arg(c, "requester");
    struct str conversation = call_arg(c, "conversation_id");
    struct str task = call_arg(c, "task_id");
    struct agents all = registry_agents(c->calls->registry);
    const struct agent *a = agent.p ? agent_find(&all, agent) : NULL;
    struct access_user found;

    if (!caller_is_admin(&c->caller))
        query_if(q, DECISION_REQUESTER, IS,
                 value_text(caller_name(&c->caller)));
    if (requester.p && access_user_find(c->calls->access, requester, &found))
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

static bool add_filters(struct call *c, struct query *q)
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

/* Zero: from the newest. */
static bool read_cursor(struct call *c, int64_t *out)
{
    struct str arg = call_arg(c, "cursor");

    return !arg.p || (str_to_i64(arg, out) == OK && *out > 0) ||
           refuse(c, "cursor must be a next_cursor of this list");
}

/* *words is filled where some are looked for. */
static bool read_words(struct call *c, struct wordfind *words)
{
    struct str arg = call_arg(c, "q");

    return !arg.p || wordfind_init(words, arg) ||
           refuse(c, "q must be words to look for, up to 256 bytes");
}

static void list_begin(struct call *c, struct open *o, size_t limit,
                       int64_t cursor)
{
    query_init(&o->query, &decision_table, limit);
    o->has_query = true;
    query_order(&o->query, DECISION_SEQ, true);
    (void)add_filters(c, &o->query);
    if (cursor)
        query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(cursor));
    open_list(o, &o->query, on_page);
}

/* Narrowed by more than whose they are, which an index knows. */
static bool is_narrow(const struct call *c, const struct query *q)
{
    const struct condition *first = q->conditions;

    return first && (caller_is_admin(&c->caller) || first->next);
}

static void hunt_start(struct call *c, struct open *o, size_t limit,
                       int64_t cursor, const struct wordfind *words)
{
    struct hunt *h = o->hunt = hunt_new(words, limit, cursor);

    if (h)
        (void)add_filters(c, &h->wish);
    if (h && str_to_i64(call_arg(c, "since"), &h->since_ms) != OK)
        h->since_ms = 0; /* not given */
    if (!h || h->wish.build_error)
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    else
        hunt_begin(o);
}

void call_decisions_list(struct call *c)
{
    bool is_given, is_whole = false, hunts;
    struct wordfind words = {.n = 0};
    int64_t cursor = 0;
    size_t limit;
    struct open *o = NULL;
    struct query q;

    if (!call_limit(c, &limit) || !read_yes(c, "full", &is_given, &is_whole) ||
        !read_words(c, &words) || !read_cursor(c, &cursor))
        return;
    query_init(&q, &decision_table, limit);
    /* Told first what is wrong with them, and then begun. */
    if (add_filters(c, &q))
        o = open_new(c);
    hunts = words.n || is_narrow(c, &q);
    query_fini(&q);
    if (!o)
        return;
    o->list.is_whole = is_whole;
    if (hunts)
        hunt_start(c, o, limit, cursor, &words);
    else
        list_begin(c, o, limit, cursor);
}
