/* Decisions: one whole, or many as lists have them. They are for who asked, and
 * for admins: what others say to their agents is nobody's business, not even
 * that of the agents' creators. */
#include "calls/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fault.h"
#include "base/wordfind.h"

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
    json_open(out, '{');
    speak_decision(out, &d, length);
    json_close(out, '}');
    return OK;
}

/* That it is there, so that whoever counts does not miss it. */
static void write_unreadable(struct json_out *out, const struct row *row)
{
    json_open(out, '{');
    json_key(out, STR("id"));
    json_put_str(out, row_str(row, DECISION_ID));
    json_key(out, STR("at_ms"));
    json_put_int(out, row_int(row, DECISION_AT_MS));
    json_key(out, STR("unreadable"));
    json_put_bool(out, true);
    json_close(out, '}');
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
    enum speak_length length = o->list.is_whole ? SPEAK_WHOLE : SPEAK_LISTED;

    QUERY_EACH(r, &o->query)
    {
        enum err e;

        if (o->calls->body.n > PAGE_BYTES) {
            *has_more = true;
            break;
        }
        e = write_decision(o, out, r, length);
        if (e == ERR_SYNTAX)
            write_unreadable(out, r);
        else if (e)
            return e;
        *last = r;
    }
    return OK;
}

static void end_page(struct open *o, struct json_out *out, int64_t cursor)
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
        end_page(o, &out, has_more && last ? row_int(last, DECISION_SEQ) : 0);
}

/* Those with some words in their text.
 *
 * No index knows the words: records are read page by page and looked at, so
 * that others get their turn in between. Whoever looks for what is rare would
 * have a million read; so a call looks at HUNT_ROWS of them and answers what it
 * found, perhaps nothing, with a cursor that goes on from there. */
enum { HUNT_PAGE_ROWS = 250, HUNT_ROWS = 10 * 1000 };

struct hunt {
    struct wordfind words;
    struct query wish; /* its conditions are those of each page */
    struct buf found;  /* as JSON */
    struct json_out out;
    size_t n_found, limit;
    int64_t n_looked;
    int64_t last_seq; /* that was looked at; zero: none yet */
};

void hunt_free(struct hunt *h)
{
    if (!h)
        return;
    query_fini(&h->wish);
    buf_fini(&h->found);
    free(h);
}

static struct hunt *hunt_new(const struct wordfind *words, size_t limit)
{
    struct hunt *h = FAULT("calls.hunt") ? NULL : calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->words = *words;
    h->limit = limit;
    query_init(&h->wish, &decision_table, 0);
    buf_init(&h->found, 2 * (size_t)PAGE_BYTES);
    h->out = json_out(&h->found);
    return h;
}

static void hunt_answer(struct open *o, bool has_more)
{
    struct json_out out = json_out(&o->calls->body);
    const struct hunt *h = o->hunt;

    if (h->found.over) {
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
        return;
    }
    speak_list_open(&out);
    if (h->n_found)
        json_put_raw(&out, buf_str(&h->found));
    end_page(o, &out, has_more ? h->last_seq : 0);
}

static bool hunt_is_full(const struct hunt *h)
{
    return h->n_found == h->limit || h->found.n > PAGE_BYTES;
}

static enum err hunt_look(struct open *o, const struct row *r)
{
    enum speak_length length = o->list.is_whole ? SPEAK_WHOLE : SPEAK_LISTED;
    struct hunt *h = o->hunt;
    enum err e;

    h->last_seq = row_int(r, DECISION_SEQ);
    h->n_looked++;
    if (!wordfind_has(&h->words, row_str(r, DECISION_TEXT)))
        return OK;
    h->n_found++;
    e = write_decision(o, &h->out, r, length);
    if (e == ERR_SYNTAX)
        write_unreadable(&h->out, r);
    return e == ERR_SYNTAX ? OK : e;
}

static void hunt_ask(struct open *o);

static void on_hunt_page(struct open *o)
{
    struct hunt *h = o->hunt;
    const struct row *r = o->query.rows;
    bool has_more = o->query.has_more;
    enum err e = o->query.err;

    for (; !e && r && !hunt_is_full(h); r = r->next)
        e = hunt_look(o, r);
    has_more |= r != NULL;
    open_drop_queries(o);
    if (e)
        open_refuse(o, e, STR(""), STR(""));
    else if (!has_more || hunt_is_full(h) || h->n_looked >= HUNT_ROWS)
        hunt_answer(o, has_more);
    else
        hunt_ask(o);
}

static void hunt_ask(struct open *o)
{
    const struct hunt *h = o->hunt;

    query_init(&o->query, &decision_table, HUNT_PAGE_ROWS);
    o->has_query = true;
    query_order(&o->query, DECISION_SEQ, true);
    for (const struct condition *c = h->wish.conditions; c; c = c->next)
        query_if_any(&o->query, c->columns, c->n_columns, c->compare, c->value);
    if (h->last_seq)
        query_if(&o->query, DECISION_SEQ, IS_LESS, value_int(h->last_seq));
    open_list(o, &o->query, on_hunt_page);
}

/* What is asked for. */

static bool refuse(struct call *c, const char *words)
{
    call_refuse(c, ERR_BAD_REQUEST, str_of(words));
    return false;
}

/* A whole number of milliseconds, or the place in a list. */
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
           filter_int(c, q, "since", DECISION_AT_MS, IS_AT_LEAST,
                      "since must be Unix time in milliseconds") &&
           filter_int(c, q, "until", DECISION_AT_MS, IS_LESS,
                      "until must be Unix time in milliseconds") &&
           filter_int(c, q, "cursor", DECISION_SEQ, IS_LESS,
                      "cursor must be a next_cursor of this list");
}

/* *words is filled where some are looked for. */
static bool read_words(struct call *c, struct wordfind *words)
{
    struct str arg = call_arg(c, "q");

    return !arg.p || wordfind_init(words, arg) ||
           refuse(c, "q must be words to look for, up to 256 bytes");
}

static void list_begin(struct call *c, struct open *o, size_t limit)
{
    query_init(&o->query, &decision_table, limit);
    o->has_query = true;
    query_order(&o->query, DECISION_SEQ, true);
    (void)add_filters(c, &o->query);
    open_list(o, &o->query, on_page);
}

static void hunt_begin(struct call *c, struct open *o, size_t limit,
                       const struct wordfind *words)
{
    o->hunt = hunt_new(words, limit);
    if (o->hunt)
        (void)add_filters(c, &o->hunt->wish);
    if (!o->hunt || o->hunt->wish.build_error)
        open_refuse(o, ERR_NOMEM, STR(""), STR(""));
    else
        hunt_ask(o);
}

void call_decisions_list(struct call *c)
{
    bool is_given, is_whole = false;
    struct wordfind words;
    size_t limit;
    struct open *o = NULL;
    struct query q;

    if (!call_limit(c, &limit) || !read_yes(c, "full", &is_given, &is_whole) ||
        !read_words(c, &words))
        return;
    query_init(&q, &decision_table, limit);
    /* Told first what is wrong with them, and then begun. */
    if (add_filters(c, &q))
        o = open_new(c);
    query_fini(&q);
    if (!o)
        return;
    o->list.is_whole = is_whole;
    if (call_arg(c, "q").p)
        hunt_begin(c, o, limit, &words);
    else
        list_begin(c, o, limit);
}
