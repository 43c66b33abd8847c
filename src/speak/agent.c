/* Agents, what is wrong with their cards, and who may see them: in and out. */
#include "speak/internal.h"

#include <stddef.h>

static void put_bool(struct json_out *o, struct str key, bool v)
{
    json_key(o, key);
    json_put_bool(o, v);
}

void speak_agent(struct json_out *o, const struct speak_agent *a)
{
    json_open(o, '{');
    card_write_members(o, a->agent, a->view);
    if (!a->agent->title.n)
        put_str_or_null(o, STR("title"), STR(""));
    json_key(o, STR("state"));
    json_put_str(o, agent_state_name(a->state));
    put_bool(o, STR("embedded"), a->is_embedded);
    put_bool(o, STR("paused"), a->is_paused);
    if (a->says_changed)
        put_bool(o, STR("changed"), a->has_changed);
    json_close(o, '}');
}

void speak_agent_brief(struct json_out *o, const struct speak_brief *b)
{
    const struct agent *a = b->agent;

    json_open(o, '{');
    json_key(o, STR("name"));
    json_put_str(o, a->name);
    put_str_or_null(o, STR("title"), a->title);
    put_str_or_null(o, STR("description"), b->description);
    json_key(o, STR("visibility"));
    json_put_str(o, visibility_name(a->visibility));
    put_str_or_null(o, STR("creator_id"), a->creator);
    put_str_or_null(o, STR("org"), a->org);
    json_key(o, STR("kind"));
    json_put_str(o, agent_kind_name(a->kind));
    json_key(o, STR("skills"));
    json_put_int(o, (int64_t)a->n_skills);
    json_key(o, STR("revision"));
    json_put_int(o, a->revision);
    json_key(o, STR("state"));
    json_put_str(o, agent_state_name(b->state));
    put_bool(o, STR("paused"), b->is_paused);
    json_close(o, '}');
}

void speak_problems(struct json_out *o, const struct card_problems *p)
{
    json_open(o, '{');
    json_key(o, STR("problems"));
    json_open(o, '[');
    for (size_t i = 0; i < p->n; i++) {
        json_open(o, '{');
        json_key(o, STR("pointer"));
        json_put_str(o, p->list[i].pointer);
        json_key(o, STR("message"));
        json_put_str(o, p->list[i].message);
        json_close(o, '}');
    }
    json_close(o, ']');
    json_key(o, STR("total"));
    json_put_int(o, (int64_t)p->n_all);
    json_close(o, '}');
}

void speak_nearest(struct json_out *o, const struct near *near)
{
    json_open(o, '{');
    json_key(o, STR("nearest"));
    json_open(o, '[');
    for (size_t i = 0; i < near->n; i++)
        json_put_str(o, near->names[i]);
    json_close(o, ']');
    json_close(o, '}');
}

/* Grants. */

struct said_grant {
    struct str agent, user, org;
    int64_t expires_in_s;
};

#define AT(member) offsetof(struct said_grant, member)

static const struct field grant_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, AT(agent), false},
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, AT(user), false},
    {"org", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, AT(org), false},
    {"expires_in_s", FIELD_INT, 1, SPEAK_EXPIRES_MAX_S, AT(expires_in_s),
     false},
};

#undef AT

enum err speak_grant_post(struct arena *a, struct str body,
                          struct speak_grant_call *out, struct why *why)
{
    static const struct fields f = {
        "", grant_fields, sizeof(grant_fields) / sizeof(*grant_fields)};
    struct said_grant said = {{NULL, 0}, {NULL, 0}, {NULL, 0}, 0};
    enum err e = fields_read(a, body, &f, &said, why);

    if (!e && !said.agent.n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "agent is missing: "
                    "{\"agent\":\"engineer\",\"user\":\"anna\"}");
    if (!e && !said.user.n == !said.org.n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "one of user and org is wanted, and not both");
    *out = (struct speak_grant_call){said.agent, said.user, said.org,
                                     said.expires_in_s};
    return e;
}

void speak_grant(struct json_out *o, struct str agent,
                 const struct agent_grant *g)
{
    json_open(o, '{');
    json_key(o, STR("id"));
    json_put_str(o, str_of(g->id.text));
    json_key(o, STR("agent"));
    json_put_str(o, agent);
    put_str_or_null(o, STR("user"), g->user);
    put_str_or_null(o, STR("org"), g->org);
    json_key(o, STR("expires_ms"));
    if (g->expires_ms)
        json_put_int(o, g->expires_ms);
    else
        json_put_null(o);
    json_key(o, STR("created_ms"));
    json_put_int(o, g->created_ms);
    put_str_or_null(o, STR("by"), g->by);
    json_close(o, '}');
}
