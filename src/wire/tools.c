/* The tools that are offered to a model, and parsing the arguments of
 * search_agents.
 *
 * The schemas are literal texts, so that they can be read here as they are
 * sent. They use only what every provider accepts: an object on top, without
 * anyOf or oneOf. A schema therefore cannot say "one task or a list"; the
 * description says it, and speak_delegate checks it. */
#include "wire/wire.h"

#include "model/msg.h"

#define TEXT(x)  #x
#define VALUE(x) TEXT(x)

/* The values of the enums, as literals; asserted below. */
#define AT_ONCE     16
#define HITS_MAX    20
#define WAIT_MAX_MS 86400000

#define ORDER                                                                 \
    "\"agentId\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":128,"     \
    "\"description\":\"The name of the agent that is to do it, as a "         \
    "search for agents gives it.\"},"                                         \
    "\"task\":{\"type\":\"string\",\"minLength\":1,"                          \
    "\"description\":\"What it is to do, with everything it has to know: it " \
    "sees nothing of this conversation.\"},"                                  \
    "\"mode\":{\"type\":\"string\",\"enum\":[\"sync\",\"async\"],"            \
    "\"default\":\"sync\",\"description\":\"sync: wait for its answer. "      \
    "async: go on at once; its answer comes with your next turn.\"},"         \
    "\"timeoutMs\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":" VALUE(   \
        WAIT_MAX_MS) ",\"description\":\"How long to wait for it, in "        \
                     "milliseconds; 60000 unless it is given.\"},"            \
                     "\"stream\":{\"type\":\"boolean\",\"default\":false,"    \
                     "\"description\":\"Show its words to the user while it " \
                     "works.\"},"                                             \
                     "\"skill\":{\"type\":\"string\",\"maxLength\":128,"      \
                     "\"description\":\"Which of its skills to use, by id.\"}"

#define DELEGATE                                                            \
    "{\"type\":\"object\",\"properties\":{" ORDER ","                       \
    "\"tasks\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":" VALUE(     \
        AT_ONCE) ",\"description\":\"Several at once, done side by side, "  \
                 "instead of agentId and task.\",\"items\":{\"type\":"      \
                 "\"object\",\"properties\":{" ORDER "},\"required\":["     \
                 "\"agentId\",\"task\"],\"additionalProperties\":false}}}," \
                 "\"additionalProperties\":false}"

#define SEARCH                                                             \
    "{\"type\":\"object\",\"properties\":{"                                \
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,"   \
    "\"description\":\"What the agent should be able to do, in words.\"}," \
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":" VALUE(    \
        HITS_MAX) ",\"default\":5,\"description\":\"How many agents at "   \
                  "most.\"}},\"required\":[\"query\"],"                    \
                  "\"additionalProperties\":false}"

_Static_assert(AT_ONCE == DELEGATION_AT_ONCE_MAX && HITS_MAX == WIRE_HITS_MAX &&
                   WAIT_MAX_MS == WIRE_TOOL_WAIT_MAX_MS &&
                   AGENT_NAME_MAX == 128 && MSG_SKILL_MAX == 128 &&
                   WIRE_QUERY_MAX == 1000 && WIRE_HITS == 5 &&
                   DELEGATION_SYNC_MS == 60000,
               "the schemas state the limits that are checked");

static const struct {
    enum wire_tool tool;
    struct str name, pi_name, description, schema;
} tools[] = {
    {WIRE_DELEGATE, STR("delegate_to_agent"), STR("delegate_to_agent"),
     STR("Have another agent do something, and get its answer: "
         "{\"status\":\"completed\",\"response\":…}, or \"timeout\" or "
         "\"error\" with an error in words. Give agentId and task, or several "
         "at once as tasks; then the answer is {\"results\":[…]}, in their "
         "order."),
     STR(DELEGATE)},
    {WIRE_SEARCH, STR("search_agents"), STR("agent_search"),
     STR("Find agents that can do something: their names, what they do, their "
         "skills and what they cost. Use it before delegate_to_agent where you "
         "do not know who there is."),
     STR(SEARCH)},
};

enum { N_TOOLS = sizeof(tools) / sizeof(tools[0]) };

enum wire_tool wire_tool_of(struct str name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (str_eq(name, tools[i].name) || str_eq(name, tools[i].pi_name))
            return tools[i].tool;
    return WIRE_NO_TOOL;
}

static void tool_put(struct json_out *o, size_t i, struct str name,
                     struct str schema_key)
{
    json_open(o, '{');
    json_member_text(o, "name", name);
    json_member_text(o, "description", tools[i].description);
    json_key(o, schema_key);
    json_put_raw(o, tools[i].schema);
    json_close(o, '}');
}

void wire_tools(struct json_out *o, enum wire_form form)
{
    json_open(o, '[');
    for (size_t i = 0; i < N_TOOLS; i++) {
        if (form != WIRE_OPENAI) {
            tool_put(o, i, form == WIRE_PI ? tools[i].pi_name : tools[i].name,
                     STR("input_schema"));
            continue;
        }
        json_open(o, '{');
        json_member_text(o, "type", STR("function"));
        json_key(o, STR("function"));
        tool_put(o, i, tools[i].name, STR("parameters"));
        json_close(o, '}');
    }
    json_close(o, ']');
}

/* Reading. */

static const struct json *tool_member(const struct json *v, const char *key)
{
    const struct json *m = json_get(v, str_of(key));

    return m && m->type != JSON_NULL ? m : NULL;
}

/* The text of v[key], which must not be blank. */
static enum err tool_read_text(const struct json *v, const char *key,
                               size_t max, struct str *out, struct why *why)
{
    const struct json *m = tool_member(v, key);

    *out = json_str_or(m, STR(""));
    if (m && m->type != JSON_STR)
        return why_err(why, ERR_BAD_REQUEST, "%s must be text", key);
    if (out->n > max)
        return why_err(why, ERR_LIMIT, "%s is longer than %zu bytes", key, max);
    if (!str_trim(*out).n)
        return why_err(why, ERR_BAD_REQUEST, "%s is needed", key);
    return OK;
}

static enum err tool_read_number(const struct json *v, const char *key,
                                 int64_t max, int64_t *out, struct why *why)
{
    const struct json *m = tool_member(v, key);
    double d = json_real_or(m, 0);

    if (!m)
        return OK;
    if ((m->type != JSON_INT && m->type != JSON_REAL) || d < 1 ||
        d > (double)max || d != (double)(int64_t)d)
        return why_err(why, ERR_BAD_REQUEST,
                       "%s must be a whole number from 1 to %lld", key,
                       (long long)max);
    *out = (int64_t)d;
    return OK;
}

enum err wire_search_read(const struct json *arguments, struct wire_search *out,
                          struct why *why)
{
    enum err e;

    *out = (struct wire_search){.limit = WIRE_HITS};
    if (arguments->type != JSON_OBJ)
        return why_err(why, ERR_BAD_REQUEST, "the arguments must be an object");
    e = tool_read_text(arguments, "query", WIRE_QUERY_MAX, &out->query, why);
    return e ? e
             : tool_read_number(arguments, "limit", WIRE_HITS_MAX, &out->limit,
                                why);
}

void wire_tool_error(struct buf *out, struct str words)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "status", STR("error"));
    json_member_text(&o, "error", words);
    json_close(&o, '}');
}
