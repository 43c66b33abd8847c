/* Agents, what is wrong with their cards, and who may see them: in and out. */
#include "speak/internal.h"

#include <stddef.h>

void speak_agent(struct json_out *o, const struct speak_agent *a)
{
    json_open(o, '{');
    card_write_members(o, a->agent, a->view);
    if (!a->agent->title.n)
        json_member_null(o, "title");
    json_member_text(o, "state", agent_state_name(a->state));
    json_member_str(o, "state_reason", a->state_reason);
    json_member_bool(o, "embedded", a->is_embedded);
    json_member_bool(o, "paused", a->is_paused);
    if (a->advice) {
        json_key(o, STR("warnings"));
        advice_write(o, a->advice);
    }
    if (a->says_changed)
        json_member_bool(o, "changed", a->has_changed);
    json_close(o, '}');
}

void speak_agent_brief(struct json_out *o, const struct speak_brief *b)
{
    const struct agent *a = b->agent;

    json_open(o, '{');
    json_member_text(o, "name", a->name);
    json_member_str(o, "title", a->title);
    json_member_str(o, "description", b->description);
    json_member_text(o, "visibility", visibility_name(a->visibility));
    json_member_str(o, "creator_id", a->creator);
    json_member_str(o, "org", a->org);
    json_member_text(o, "kind", agent_kind_name(a->kind));
    json_member_int(o, "skills", (int64_t)a->n_skills);
    json_member_int(o, "revision", a->revision);
    json_member_text(o, "state", agent_state_name(b->state));
    json_member_str(o, "state_reason", b->state_reason);
    json_member_bool(o, "paused", b->is_paused);
    json_close(o, '}');
}

void speak_problems(struct json_out *o, const struct card_problems *p)
{
    json_open(o, '{');
    json_key(o, STR("problems"));
    json_open(o, '[');
    for (size_t i = 0; i < p->n; i++) {
        json_open(o, '{');
        json_member_text(o, "pointer", p->list[i].pointer);
        json_member_text(o, "message", p->list[i].message);
        json_close(o, '}');
    }
    json_close(o, ']');
    json_member_int(o, "total", (int64_t)p->n_all);
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
    json_member_text(o, "id", str_of(g->id.text));
    json_member_text(o, "agent", agent);
    json_member_str(o, "user", g->user);
    json_member_str(o, "org", g->org);
    json_member_ms(o, "expires_ms", g->expires_ms);
    json_member_int(o, "created_ms", g->created_ms);
    json_member_str(o, "by", g->by);
    json_close(o, '}');
}
