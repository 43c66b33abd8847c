/* A message over HTTP. A table describes the fields. Rules that span two fields
 * are code: a key in header and body, and the spellings that other routers use
 * inside metadata. */
#include "speak/internal.h"

#include <stddef.h>
#include <stdio.h>

struct message_body {
    struct str text, executor, skill, conversation_id, task_id, source,
        priority, idempotency_key, quote, metadata;
    int64_t wait_ms, timeout_ms, max_cost;
};

#define AT(member) offsetof(struct message_body, member)

static const struct field message_fields[] = {
    {"text", FIELD_TEXT, 1, MSG_TEXT_MAX, .at = AT(text),
     .missing = "the message for the agent"},
    {"executor", FIELD_OBJ, 0, 4096, .at = AT(executor), .of = "Executor"},
    {"skill", FIELD_NAME, 1, MSG_SKILL_MAX, .at = AT(skill)},
    {"conversation_id", FIELD_NAME, 1, MSG_CONVERSATION_MAX,
     .at = AT(conversation_id)},
    {"task_id", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(task_id)},
    {"source", FIELD_OBJ, 0, MSG_METADATA_MAX, .at = AT(source)},
    {"priority", FIELD_WORD, 1, 16, .at = AT(priority),
     .of = "URGENT|HIGH|NORMAL|LOW", .unset = "\"NORMAL\""},
    {"idempotency_key", FIELD_NAME, 1, MSG_KEY_MAX, .at = AT(idempotency_key)},
    {"wait_ms", FIELD_INT, 0, SPEAK_WAIT_MAX_MS, .at = AT(wait_ms),
     .unset = "30000"},
    {"timeout_ms", FIELD_INT, 1, SPEAK_TIMEOUT_MAX_MS, .at = AT(timeout_ms)},
    {"quote", FIELD_NAME, 1, ID_BYTES - 1, .at = AT(quote)},
    {"max_cost_micros", FIELD_INT, 0, SPEAK_COST_MAX, .at = AT(max_cost)},
    {"metadata", FIELD_OBJ, 0, MSG_METADATA_MAX, .at = AT(metadata)},
};

const struct fields speak_message_fields = {
    "", message_fields, sizeof(message_fields) / sizeof(*message_fields)};

static const struct field executor_fields[] = {
    {"name", FIELD_NAME, 1, AGENT_NAME_MAX,
     .missing = "name the agent, or leave executor out"},
};

const struct fields speak_executor_fields = {"executor.", executor_fields, 1};

static const struct field skill_used = {"skill_used", FIELD_NAME, 1,
                                        MSG_SKILL_MAX, .at = 0};

/* metadata belongs to the sender: a shape other than that of the seeds is
 * ignored. */
static enum err message_read_metadata(struct msg *m, struct str metadata)
{
    const struct str keys[] = {STR("executor"), STR("skill_used")};
    const struct str name_key = STR("name");
    struct str found[2] = {{NULL, 0}, {NULL, 0}}, name = {NULL, 0};
    enum err e = OK;

    if (!metadata.n || json_scan(metadata, keys, 2, found, NULL) != OK)
        return OK;
    if (!m->call.executor.n && found[0].n && found[0].p[0] == '{' &&
        json_scan(found[0], &name_key, 1, &name, NULL) == OK && name.n &&
        name.p[0] == '"')
        e = field_string(&m->arena, "metadata.executor.", &executor_fields[0],
                         name, &m->call.executor, &m->why);
    if (!e && !m->call.skill.n && found[1].n && found[1].p[0] == '"')
        e = field_string(&m->arena, "metadata.", &skill_used, found[1],
                         &m->call.skill, &m->why);
    return e;
}

static enum err message_read_executor(struct msg *m,
                                      const struct message_body *in)
{
    struct str name = {NULL, 0};
    enum err e = OK;

    if (in->executor.p)
        e = fields_read(&m->arena, in->executor, &speak_executor_fields, &name,
                        &m->why);
    if (!e)
        m->call.executor = name;
    return e;
}

/* A header may hold bytes of any encoding, a key may not. */
static bool key_is_visible_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    return true;
}

enum err speak_key(struct arena *a, struct str header, struct str *key,
                   struct why *why)
{
    if (!header.n)
        return OK;
    if (header.n > MSG_KEY_MAX || !key_is_visible_ascii(header))
        return why_err(why, ERR_BAD_REQUEST,
                       "the Idempotency-Key header must be 1 to %d visible "
                       "characters of ASCII",
                       MSG_KEY_MAX);
    if (key->n && !str_eq(*key, header))
        return why_err(why, ERR_BAD_REQUEST,
                       "the Idempotency-Key header and idempotency_key differ: "
                       "give one of them");
    return arena_keep(a, header, key)
               ? OK
               : why_err(why, ERR_NOMEM, "out of memory");
}

/* Copied, because the body is freed with the request. */
static enum err message_keep_document(struct msg *m, struct str document,
                                      struct str *out)
{
    return arena_keep(&m->arena, document.p ? document : STR("{}"), out)
               ? OK
               : why_err(&m->why, ERR_NOMEM, "out of memory");
}

static void canonical_add_document(struct buf *out, struct str document)
{
    size_t from = out->n;

    compact_json(out, document);
    buf_addf(out, ":%zu,", out->n - from);
}

static enum err message_check_fields(struct msg *m,
                                     const struct message_body *in)
{
    if (in->task_id.n && !id_is_valid(in->task_id, "task"))
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "task_id must be a task's id, as an answer gave it: "
                       "\"task_\" and 26 characters");
    if (in->quote.n && !id_is_valid(in->quote, "dec"))
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "quote must be one that POST /api/route gave: \"dec_\" "
                       "and 26 characters");
    if (in->quote.n && in->task_id.n)
        return why_err(&m->why, ERR_BAD_REQUEST,
                       "a further turn goes to the task's agent and has no "
                       "quote: give max_cost_micros to agree to its price");
    return OK;
}

/* Two mistakes that clients make when they first name an agent: its name in
 * place of the object, and "to". Every other error keeps its message. */
static void suggest_executor(struct msg *m, struct str body)
{
    static const struct str keys[] = {STR("executor"), STR("to")};
    struct str found[2] = {{NULL, 0}, {NULL, 0}}, name = STR("NAME");
    bool is_string, is_to;

    if (json_scan(body, keys, 2, found, NULL) != OK)
        return;
    is_string = found[0].n && found[0].p[0] == '"' &&
                str_starts(str_of(m->why.text), STR("executor must be"));
    is_to = found[1].n &&
            str_starts(str_of(m->why.text), STR("unknown field \"to\""));
    if (!is_string && !is_to)
        return;
    if (field_string(&m->arena, "", &executor_fields[0],
                     found[is_string ? 0 : 1], &name, &m->why))
        name = STR("NAME");
    why_err(&m->why, ERR_BAD_REQUEST,
            is_string ? "executor must be an object: write \"executor\": "
                        "{\"name\": \"%.*s\"}"
                      : "unknown field \"to\"; to name an agent, give "
                        "executor.name: \"executor\": {\"name\": \"%.*s\"}",
            STR_ARG(name));
    str_tame(m->why.text, strlen(m->why.text));
}

enum err speak_message(struct msg *m, struct str body, struct str key_header,
                       struct buf *canonical)
{
    struct message_body in = {.wait_ms = SPEAK_WAIT_MS, .max_cost = -1};
    enum err e =
        fields_read(&m->arena, body, &speak_message_fields, &in, &m->why);

    if (e == ERR_BAD_REQUEST)
        suggest_executor(m, body);
    if (!e)
        e = message_check_fields(m, &in);
    if (e)
        return e;
    m->call.text = in.text;
    m->call.skill = in.skill;
    m->call.conversation_id = in.conversation_id;
    m->call.task_id = in.task_id;
    m->call.wait_ms = in.wait_ms;
    m->call.timeout_ms = in.timeout_ms;
    m->call.quote = in.quote;
    m->call.has_max_cost = in.max_cost >= 0;
    m->call.max_cost_micros = m->call.has_max_cost ? in.max_cost : 0;
    e = message_read_executor(m, &in);
    if (!e)
        e = message_read_metadata(m, in.metadata);
    if (!task_priority_of(in.priority, &m->call.priority))
        m->call.priority = PRIORITY_NORMAL;
    m->call.idempotency_key = in.idempotency_key;
    if (!e)
        e = speak_key(&m->arena, key_header, &m->call.idempotency_key, &m->why);
    if (!e)
        e = message_keep_document(m, in.metadata, &m->call.metadata);
    if (!e)
        e = message_keep_document(m, in.source, &m->call.source);
    if (e)
        return e;
    canonical_add(canonical, m->call.text);
    canonical_add(canonical, m->call.executor);
    canonical_add(canonical, m->call.skill);
    canonical_add(canonical, m->call.conversation_id);
    canonical_add(canonical, m->call.task_id);
    canonical_add(canonical, task_priority_name(m->call.priority));
    buf_add_i64(canonical, m->call.timeout_ms);
    buf_add_char(canonical, ',');
    canonical_add_document(canonical, m->call.metadata);
    canonical_add_document(canonical, m->call.source);
    /* Absent fields add nothing: the same bytes as before they existed. */
    if (m->call.has_max_cost)
        buf_addf(canonical, "c%lld,", (long long)m->call.max_cost_micros);
    if (m->call.quote.n)
        canonical_add(canonical, m->call.quote);
    return canonical->over ? why_err(&m->why, ERR_NOMEM, "out of memory") : OK;
}

enum err speak_nothing(struct str body, struct why *why)
{
    static const struct fields none = {"", NULL, 0};
    struct arena a;
    enum err e;

    if (!body.n)
        return OK;
    arena_init(&a, 4096);
    e = fields_read(&a, body, &none, NULL, why);
    arena_fini(&a);
    return e;
}
