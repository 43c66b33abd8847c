/* Agents, problems of their cards, reviews and grants. */
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
    if (a->agent->review && a->view == CARD_ALL) {
        const struct review *v = a->agent->review;
        struct agent wanted = agent_wanted(a->agent);

        json_key(o, STR("review"));
        json_open(o, '{');
        json_member_text(o, "state", review_name(v->state));
        json_member_int(o, "at_ms", v->at_ms);
        json_member_str(o, "reason", v->reason);
        json_member_str(o, "by", v->by);
        json_key(o, STR("changed"));
        card_diff(o, a->agent, &wanted);
        json_key(o, STR("card"));
        card_write(o, &wanted, CARD_ALL);
        json_close(o, '}');
    }
    if (a->n_reports)
        json_member_int(o, "reports", (int64_t)a->n_reports);
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
    if (b->shows_review && a->review)
        json_member_text(o, "review", review_name(a->review->state));
    if (b->n_reports)
        json_member_int(o, "reports", (int64_t)b->n_reports);
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

#define AT(member) offsetof(struct speak_review, member)

static const struct field review_fields[] = {
    {"revision", FIELD_INT, 1, INT64_MAX, .at = AT(revision)},
    {"reason", FIELD_TEXT, 1, REVIEW_REASON_MAX, .at = AT(reason)},
};

#undef AT

const struct fields speak_approval_fields = {"", review_fields, 1},
                    speak_objection_fields = {"", review_fields, 2},
                    speak_report_fields = {"", review_fields + 1, 1};

enum err speak_review(struct arena *a, struct str body,
                      enum speak_review_kind kind, struct speak_review *out,
                      struct why *why)
{
    static const struct fields *const of_kind[] = {
        [SPEAK_APPROVAL] = &speak_approval_fields,
        [SPEAK_OBJECTION] = &speak_objection_fields,
        [SPEAK_REPORT] = &speak_report_fields};
    enum err e = OK;

    *out = (struct speak_review){.revision = 0};
    if (body.n)
        e = fields_read(a, body, of_kind[kind], out, why);
    if (!e && kind == SPEAK_APPROVAL && !out->revision)
        e = why_err(why, ERR_BAD_REQUEST,
                    "revision is missing: the revision of the agent whose card "
                    "you have read, {\"revision\":7}");
    if (!e && kind == SPEAK_REPORT && !out->reason.n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "reason is missing: say what is wrong with the agent, "
                    "{\"reason\":\"…\"}");
    return e;
}

#define AT(member) offsetof(struct speak_grant_call, member)

static const struct field grant_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(agent),
     .missing = "{\"agent\":\"engineer\",\"user\":\"anna\"}"},
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(user)},
    {"org", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(org)},
    {"expires_in_s", FIELD_INT, 1, SPEAK_EXPIRES_MAX_S, .at = AT(expires_in_s)},
};

#undef AT

const struct fields speak_grant_fields = {
    "", grant_fields, sizeof(grant_fields) / sizeof(*grant_fields)};

enum err speak_grant_post(struct arena *a, struct str body,
                          struct speak_grant_call *out, struct why *why)
{
    enum err e;

    *out = (struct speak_grant_call){.expires_in_s = 0};
    e = fields_read(a, body, &speak_grant_fields, out, why);
    if (!e && !out->user.n == !out->org.n)
        e = why_err(why, ERR_BAD_REQUEST, "give either user or org");
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
