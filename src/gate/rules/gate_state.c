/* The view, read from a document: the state of agents, and the history.
 *
 * It is made for one decision or a few, so lookups walk the lists, which costs
 * less than sorting them. The keys of repeats are computed on reading, by the
 * rules that will use them. */
#include "gate/rules/envelope_read.h"
#include "gate/rules/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rfc3339.h"

enum { MEMORY_MAX = 512 * 1024 * 1024 };

struct mark_at {
    struct gate_key key;
    size_t entry;
};

struct gate_state {
    struct arena arena;
    struct gate_agent *agents;
    size_t n_agents;
    struct envelope_entry *past;
    size_t n_past;
    struct mark_at *marks;
    size_t n_marks, cap_marks;
};

static enum err state_no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM, "out of memory for the state");
}

static bool view_read_state(const struct json *v, struct gate_agent *out)
{
    out->state = agent_state_of(json_str_or(v, STR("")));
    return out->state;
}

static bool view_read_queue(const struct json *v, struct gate_agent *out)
{
    out->queue = json_int_or(v, -1);
    return out->queue >= 0;
}

static bool view_read_queue_max(const struct json *v, struct gate_agent *out)
{
    out->queue_max = json_int_or(v, -1);
    return out->queue_max >= 0;
}

static bool view_read_data_at(const struct json *v, struct gate_agent *out)
{
    return v->type == JSON_NULL ||
           rfc3339_read(json_str_or(v, STR("")), &out->data_at_ms);
}

static bool view_read_may_try(const struct json *v, struct gate_agent *out)
{
    out->may_try = json_bool_or(v, false);
    return v->type == JSON_BOOL;
}

static bool view_read_backup(const struct json *v, struct gate_agent *out)
{
    out->backup = json_str_or(v, STR(""));
    return v->type == JSON_NULL || out->backup.n;
}

static const struct {
    struct str name;
    bool (*read)(const struct json *v, struct gate_agent *out);
    const char *what;
} agent_fields[] = {
    {STR("state"), view_read_state, "ACTIVE, IDLE, BUSY, SLOW, ERROR or DEAD"},
    {STR("queue"), view_read_queue, "the number of tasks that wait for it"},
    {STR("queue_max"), view_read_queue_max, "the limit of that number"},
    {STR("data_at"), view_read_data_at, "a time like \"2025-02-15T09:00:00Z\""},
    {STR("may_try"), view_read_may_try, "true or false"},
    {STR("backup"), view_read_backup, "the name of an agent"},
};

static enum err view_read_field(const struct json *agent, const struct json *v,
                                struct gate_agent *out, struct why *why)
{
    char name[QUOTED_KEY_BYTES], key[QUOTED_KEY_BYTES];
    struct str agent_name = quote_key(agent->key, name);
    struct str field = quote_key(v->key, key);

    for (size_t i = 0; i < sizeof(agent_fields) / sizeof(*agent_fields); i++) {
        if (!str_eq(v->key, agent_fields[i].name))
            continue;
        if (agent_fields[i].read(v, out))
            return OK;
        return why_err(
            why, ERR_BAD_REQUEST, "the state's agents.%.*s.%.*s must be %s",
            STR_ARG(agent_name), STR_ARG(field), agent_fields[i].what);
    }
    return why_err(why, ERR_BAD_REQUEST,
                   "the state's agents.%.*s has \"%.*s\", which is not one of "
                   "state, queue, queue_max, data_at, may_try, backup",
                   STR_ARG(agent_name), STR_ARG(field));
}

/* A string is short for an object with that state. */
static enum err view_read_agent(const struct json *v, struct gate_agent *out,
                                struct why *why)
{
    struct json state = *v;
    enum err e = OK;

    *out = (struct gate_agent){.name = v->key,
                               .is_known = true,
                               .state = AGENT_IDLE,
                               .queue_max = GATE_QUEUE_MAX};
    if (v->type == JSON_STR) {
        state.key = STR("state");
        return view_read_field(v, &state, out, why);
    }
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST,
                       "an agent in the state must be an object, or a string "
                       "with its state");
    JSON_EACH(kid, v)
    {
        if ((e = view_read_field(v, kid, out, why)))
            break;
    }
    return e;
}

static enum err view_read_agents(struct gate_state *s, const struct json *v,
                                 struct why *why)
{
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST,
                       "the state's \"agents\" must be an object of names");
    s->agents = arena_array(&s->arena, v->kids.n, sizeof(*s->agents));
    if (!s->agents)
        return state_no_memory(why);
    JSON_EACH(kid, v)
    {
        enum err e = view_read_agent(kid, &s->agents[s->n_agents], why);

        if (e)
            return e;
        s->n_agents++;
    }
    return OK;
}

static enum err view_add_marks(struct gate_state *s, const struct gate_rules *r,
                               size_t entry, struct why *why)
{
    struct gate_marks marks;
    size_t n;

    if (gate_marks(r, &s->past[entry].e, &s->arena, &marks) != OK)
        return state_no_memory(why);
    n = marks.n;
    if (s->n_marks + n > s->cap_marks) {
        size_t cap = (s->cap_marks + n) * 2;
        struct mark_at *more = arena_array(&s->arena, cap, sizeof(*more));

        if (!more)
            return state_no_memory(why);
        if (s->n_marks)
            memcpy(more, s->marks, s->n_marks * sizeof(*more));
        s->marks = more;
        s->cap_marks = cap;
    }
    for (size_t i = 0; i < n; i++)
        s->marks[s->n_marks++] = (struct mark_at){marks.list[i].key, entry};
    return OK;
}

static enum err view_read_history(struct gate_state *s,
                                  const struct gate_rules *r,
                                  const struct json *v, struct why *why)
{
    enum err e = OK;

    if (v->type != JSON_ARR)
        return why_err(why, ERR_BAD_REQUEST,
                       "the state's \"history\" must be a list of envelopes");
    if (v->kids.n > GATE_HISTORY_MAX)
        return why_err(why, ERR_LIMIT,
                       "the state's \"history\" has more than %d envelopes: "
                       "give those that still count",
                       GATE_HISTORY_MAX);
    s->past = arena_array(&s->arena, v->kids.n, sizeof(*s->past));
    if (!s->past)
        return state_no_memory(why);
    JSON_EACH(kid, v)
    {
        struct envelope_place place = {"history", s->n_past};
        struct envelope_entry *l = &s->past[s->n_past];

        if ((e = envelope_entry_read(kid, place, 0, l, why)))
            return e;
        s->n_past++;
        if (l->answer != GATE_DROP && !str_eq(l->e.type, ENVELOPE_RESULT))
            e = view_add_marks(s, r, s->n_past - 1, why);
        if (e)
            return e;
    }
    return OK;
}

static enum err view_read_document(struct gate_state *s,
                                   const struct gate_rules *r, struct str text,
                                   struct why *why)
{
    struct json_error where = {0};
    char *copy = arena_strdup(&s->arena, text);
    const struct json *v;
    enum err e = OK;

    if (!copy)
        return state_no_memory(why);
    v = json_parse(&s->arena, (struct str){copy, text.n}, JSON_WITH_COMMENTS,
                   &where);
    if (!v)
        return why_err(why, ERR_SYNTAX,
                       "the state is not JSON: line %u, column %u: %s",
                       where.line, where.col, where.what);
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "the state must be an object");
    JSON_EACH(kid, v)
    {
        char key[QUOTED_KEY_BYTES];
        struct str field = quote_key(kid->key, key);

        if (str_eq(kid->key, STR("agents")))
            e = view_read_agents(s, kid, why);
        else if (str_eq(kid->key, STR("history")))
            e = view_read_history(s, r, kid, why);
        else
            e = why_err(why, ERR_BAD_REQUEST,
                        "unknown field \"%.*s\" in the state; it has "
                        "\"agents\" and \"history\"",
                        STR_ARG(field));
        if (e)
            break;
    }
    return e;
}

enum err gate_state_read(const struct gate_rules *r, struct str text,
                         struct gate_state **out, struct why *why)
{
    struct gate_state *s;
    enum err e;

    *out = NULL;
    if (text.n > GATE_STATE_BYTES)
        return why_err(why, ERR_LIMIT,
                       "the state is longer than 64 MiB, which is the limit");
    s = mem_new(sizeof(*s));
    if (!s)
        return state_no_memory(why);
    arena_init(&s->arena, MEMORY_MAX);
    e = view_read_document(s, r, text, why);
    if (e)
        gate_state_free(s);
    else
        *out = s;
    return e;
}

void gate_state_free(struct gate_state *s)
{
    if (!s)
        return;
    arena_fini(&s->arena);
    free(s);
}

/* The callbacks of the view. */

static bool view_find_agent(void *ctx, struct str name, struct gate_agent *out)
{
    const struct gate_state *s = ctx;

    for (size_t i = 0; i < s->n_agents; i++)
        if (str_eq_nocase(s->agents[i].name, name)) {
            *out = s->agents[i];
            return true;
        }
    *out = (struct gate_agent){.name = name};
    return false;
}

/* Only a message that was let go is an event. */
static bool is_past_event(const struct envelope_entry *l, struct str reference)
{
    return str_eq(l->e.reference, reference) &&
           (!l->answer || l->answer == GATE_ROUTE);
}

static struct gate_event entry_event(const struct envelope_entry *l)
{
    return (struct gate_event){.from = l->e.from,
                               .to = l->e.to,
                               .type = l->e.type,
                               .message_id = l->e.message_id,
                               .at_ms = l->e.at_ms,
                               .approved = l->approved};
}

/* Insert v by its time; without room the oldest event goes. */
static size_t insert_event(struct gate_event *out, size_t n, size_t max,
                           struct gate_event v)
{
    size_t at = n;

    while (at > 0 && out[at - 1].at_ms > v.at_ms)
        at--;
    if (n < max) {
        memmove(out + at + 1, out + at, (n - at) * sizeof(*out));
        out[at] = v;
        return n + 1;
    }
    if (at > 0) {
        memmove(out, out + 1, (at - 1) * sizeof(*out));
        out[at - 1] = v;
    }
    return n;
}

static size_t view_find_events(void *ctx, struct str reference,
                               struct gate_event *out, size_t max)
{
    const struct gate_state *s = ctx;
    size_t n = 0;

    for (size_t i = 0; i < s->n_past && max; i++)
        if (is_past_event(&s->past[i], reference))
            n = insert_event(out, n, max, entry_event(&s->past[i]));
    return n;
}

static bool view_find_seen(void *ctx, const struct gate_key *key,
                           struct gate_seen *out)
{
    const struct gate_state *s = ctx;
    bool found = false;

    for (size_t i = 0; i < s->n_marks; i++) {
        const struct envelope *e = &s->past[s->marks[i].entry].e;

        if (memcmp(&s->marks[i].key, key, sizeof(*key)) != 0 ||
            (found && e->at_ms < out->at_ms))
            continue;
        *out = (struct gate_seen){.at_ms = e->at_ms,
                                  .message_id = e->message_id,
                                  .reference = e->reference};
        found = true;
    }
    return found;
}

struct gate_view gate_state_view(const struct gate_state *s)
{
    return (struct gate_view){view_find_agent, view_find_events, view_find_seen,
                              (void *)s};
}
