/* What is known, from a document: how the agents are, and what happened.
 *
 * Made for one decision, or a few: looking something up walks the lists, which
 * costs less than to sort them would. The keys that make a repeat are worked
 * out when it is read, by the rules it will be asked with. */
#include "gate/internal.h"
#include "gate/letter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rfc3339.h"

enum { MEMORY_MAX = 512 * 1024 * 1024, SHOWN_BYTES = 64 };

struct mark_at {
    struct gate_key key;
    size_t letter;
};

struct gate_state {
    struct arena arena;
    struct gate_agent *agents;
    size_t n_agents;
    struct letter *past;
    size_t n_past;
    struct mark_at *marks;
    size_t n_marks, cap_marks;
};

static enum err no_memory(struct why *why)
{
    return why_err(why, ERR_NOMEM, "there is no memory for the state");
}

static struct str shown(struct str s, char to[SHOWN_BYTES])
{
    struct str head = str_head(s, SHOWN_BYTES - 1);

    memcpy(to, head.p ? head.p : "", head.n);
    return (struct str){to, str_tame(to, head.n)};
}

/* Agents. */

static bool read_state(const struct json *v, struct gate_agent *out)
{
    out->state = agent_state_of(json_str_or(v, STR("")));
    return out->state;
}

static bool read_count(const struct json *v, int64_t *out)
{
    *out = json_int_or(v, -1);
    return *out >= 0;
}

static bool read_queue(const struct json *v, struct gate_agent *out)
{
    return read_count(v, &out->queue);
}

static bool read_queue_max(const struct json *v, struct gate_agent *out)
{
    return read_count(v, &out->queue_max);
}

static bool read_data_at(const struct json *v, struct gate_agent *out)
{
    return v->type == JSON_NULL ||
           rfc3339_read(json_str_or(v, STR("")), &out->data_at_ms);
}

static bool read_may_try(const struct json *v, struct gate_agent *out)
{
    out->may_try = json_bool_or(v, false);
    return v->type == JSON_BOOL;
}

static bool read_backup(const struct json *v, struct gate_agent *out)
{
    out->backup = json_str_or(v, STR(""));
    return v->type == JSON_NULL || out->backup.n;
}

static const struct {
    struct str name;
    bool (*read)(const struct json *v, struct gate_agent *out);
    const char *what;
} agent_fields[] = {
    {STR("state"), read_state, "ACTIVE, IDLE, BUSY, SLOW, ERROR or DEAD"},
    {STR("queue"), read_queue, "how many tasks wait for it"},
    {STR("queue_max"), read_queue_max, "how many may"},
    {STR("data_at"), read_data_at, "a time like \"2025-02-15T09:00:00Z\""},
    {STR("may_try"), read_may_try, "true or false"},
    {STR("backup"), read_backup, "the name of an agent"},
};

static enum err read_agent_field(const struct json *agent, const struct json *v,
                                 struct gate_agent *out, struct why *why)
{
    char name[SHOWN_BYTES], key[SHOWN_BYTES];
    struct str who = shown(agent->key, name), said = shown(v->key, key);

    for (size_t i = 0; i < sizeof(agent_fields) / sizeof(*agent_fields); i++) {
        if (!str_eq(v->key, agent_fields[i].name))
            continue;
        if (agent_fields[i].read(v, out))
            return OK;
        return why_err(why, ERR_BAD_REQUEST,
                       "the state's agents.%.*s.%.*s must be %s", STR_ARG(who),
                       STR_ARG(said), agent_fields[i].what);
    }
    return why_err(why, ERR_BAD_REQUEST,
                   "the state's agents.%.*s has \"%.*s\", which is none of "
                   "state, queue, queue_max, data_at, may_try, backup",
                   STR_ARG(who), STR_ARG(said));
}

/* "IDLE" alone is its state. */
static enum err read_agent(const struct json *v, struct gate_agent *out,
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
        return read_agent_field(v, &state, out, why);
    }
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST,
                       "an agent in the state must be an object, or its state "
                       "as a text");
    JSON_EACH(kid, v)
    {
        if ((e = read_agent_field(v, kid, out, why)))
            break;
    }
    return e;
}

static enum err read_agents(struct gate_state *s, const struct json *v,
                            struct why *why)
{
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST,
                       "the state's \"agents\" must be an object of names");
    s->agents = arena_array(&s->arena, v->kids.n, sizeof(*s->agents));
    if (!s->agents)
        return no_memory(why);
    JSON_EACH(kid, v)
    {
        enum err e = read_agent(kid, &s->agents[s->n_agents], why);

        if (e)
            return e;
        s->n_agents++;
    }
    return OK;
}

/* History. */

static enum err add_marks(struct gate_state *s, const struct gate_rules *r,
                          size_t letter, struct why *why)
{
    struct gate_marks marks;
    size_t n;

    if (gate_marks(r, &s->past[letter].e, &s->arena, &marks) != OK)
        return no_memory(why);
    n = marks.n;
    if (s->n_marks + n > s->cap_marks) {
        size_t cap = (s->cap_marks + n) * 2;
        struct mark_at *more = arena_array(&s->arena, cap, sizeof(*more));

        if (!more)
            return no_memory(why);
        if (s->n_marks)
            memcpy(more, s->marks, s->n_marks * sizeof(*more));
        s->marks = more;
        s->cap_marks = cap;
    }
    for (size_t i = 0; i < n; i++)
        s->marks[s->n_marks++] = (struct mark_at){marks.list[i].key, letter};
    return OK;
}

static enum err read_history(struct gate_state *s, const struct gate_rules *r,
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
        return no_memory(why);
    JSON_EACH(kid, v)
    {
        struct letter_place place = {"history", s->n_past};
        struct letter *l = &s->past[s->n_past];

        if ((e = letter_read(kid, place, 0, l, why)))
            return e;
        s->n_past++;
        if (l->answer != GATE_DROP && !str_eq(l->e.type, ENVELOPE_RESULT))
            e = add_marks(s, r, s->n_past - 1, why);
        if (e)
            return e;
    }
    return OK;
}

/* The whole. */

static enum err read_whole(struct gate_state *s, const struct gate_rules *r,
                           struct str text, struct why *why)
{
    struct json_error where = {0};
    char *copy = arena_strdup(&s->arena, text);
    const struct json *v;
    enum err e = OK;

    if (!copy)
        return no_memory(why);
    v = json_parse(&s->arena, (struct str){copy, text.n}, JSON_WITH_COMMENTS,
                   &where);
    if (!v)
        return why_err(why, ERR_SYNTAX,
                       "the state is no JSON: line %u, column %u: %s",
                       where.line, where.col, where.what);
    if (v->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "the state must be an object");
    JSON_EACH(kid, v)
    {
        char key[SHOWN_BYTES];
        struct str said = shown(kid->key, key);

        if (str_eq(kid->key, STR("agents")))
            e = read_agents(s, kid, why);
        else if (str_eq(kid->key, STR("history")))
            e = read_history(s, r, kid, why);
        else
            e = why_err(why, ERR_BAD_REQUEST,
                        "the state has \"%.*s\", which is neither \"agents\" "
                        "nor \"history\"",
                        STR_ARG(said));
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
    s = calloc(1, sizeof(*s));
    if (!s)
        return no_memory(why);
    arena_init(&s->arena, MEMORY_MAX);
    e = read_whole(s, r, text, why);
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

/* What the gate asks. */

static bool find_agent(void *ctx, struct str name, struct gate_agent *out)
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

/* Only what was let go has happened. */
static bool is_event(const struct letter *l, struct str reference)
{
    return str_eq(l->e.reference, reference) &&
           (!l->answer || l->answer == GATE_ROUTE);
}

static struct gate_event event_of(const struct letter *l)
{
    return (struct gate_event){.from = l->e.from,
                               .to = l->e.to,
                               .type = l->e.type,
                               .message_id = l->e.message_id,
                               .at_ms = l->e.at_ms,
                               .approved = l->approved};
}

/* Put v where its time says, among those that are there; when there is no more
 * room the oldest goes. */
static size_t insert(struct gate_event *out, size_t n, size_t max,
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

static size_t find_events(void *ctx, struct str reference,
                          struct gate_event *out, size_t max)
{
    const struct gate_state *s = ctx;
    size_t n = 0;

    for (size_t i = 0; i < s->n_past && max; i++)
        if (is_event(&s->past[i], reference))
            n = insert(out, n, max, event_of(&s->past[i]));
    return n;
}

static bool find_seen(void *ctx, const struct gate_key *key,
                      struct gate_seen *out)
{
    const struct gate_state *s = ctx;
    bool found = false;

    for (size_t i = 0; i < s->n_marks; i++) {
        const struct envelope *e = &s->past[s->marks[i].letter].e;

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
    return (struct gate_view){find_agent, find_events, find_seen, (void *)s};
}
