/* Budgets: requests to set them, and their state. */
#include "speak/internal.h"

#include <stddef.h>

#define AT(member) offsetof(struct speak_budget_call, member)

static const struct field budget_fields[] = {
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(user)},
    {"org", FIELD_NAME, 1, PRINCIPAL_NAME_MAX, .at = AT(org)},
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(agent)},
    {"period", FIELD_NAME, 1, 16, .at = AT(period), .of = "day|month"},
    {"limit_micros", FIELD_INT, 0, SPEAK_AMOUNT_MAX, .at = AT(limit_micros)},
};

#undef AT

const struct fields speak_budget_fields = {
    "", budget_fields, sizeof(budget_fields) / sizeof(*budget_fields)};

enum err speak_budget_check(const struct speak_budget_call *b, struct why *why)
{
    if ((b->user.n > 0) + (b->org.n > 0) + (b->agent.n > 0) > 1)
        return why_err(why, ERR_BAD_REQUEST,
                       "give user, org or agent, one of them");
    if (b->kind.n && !str_eq(b->kind, STR("user")) &&
        !str_eq(b->kind, STR("self")))
        return why_err(why, ERR_BAD_REQUEST, "kind must be user or self");
    if (b->kind.n && (b->org.n || b->agent.n))
        return why_err(why, ERR_BAD_REQUEST, "kind goes with user alone");
    if (!str_eq(b->period, STR("day")) && !str_eq(b->period, STR("month")))
        return why_err(why, ERR_BAD_REQUEST, "period must be day or month");
    return OK;
}

enum err speak_budget_put(struct arena *a, struct str body,
                          struct speak_budget_call *out, struct why *why)
{
    enum err e;

    *out = (struct speak_budget_call){.limit_micros = -1};
    e = fields_read(a, body, &speak_budget_fields, out, why);
    if (!e)
        e = speak_budget_check(out, why);
    if (!e && out->limit_micros < 0)
        e = why_err(why, ERR_BAD_REQUEST,
                    "limit_micros is missing: whole micro-units, 25000000 for "
                    "25.00");
    return e;
}

void speak_budget(struct json_out *o, const struct speak_budget *b)
{
    json_open(o, '{');
    json_member_text(o, "kind", b->kind);
    json_member_text(o, "name", b->name);
    json_member_text(o, "period", b->period);
    json_member_int(o, "limit_micros", b->limit_micros);
    json_member_int(o, "used_micros", b->used_micros);
    json_member_int(o, "left_micros",
                    b->limit_micros > b->used_micros
                        ? b->limit_micros - b->used_micros
                        : 0);
    json_member_bool(o, "is_warned", b->is_warned);
    json_member_int(o, "resets_ms", b->resets_ms);
    json_member_text(o, "by", b->by);
    json_member_int(o, "updated_ms", b->updated_ms);
    json_close(o, '}');
}
