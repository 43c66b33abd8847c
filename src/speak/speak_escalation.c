/* Decisions of people on escalations. */
#include "speak/internal.h"

#include <stddef.h>

#define AT(member) offsetof(struct speak_decided, member)

/* The last row is for redirect only. */
static const struct field decided_fields[] = {
    {"comment", FIELD_TEXT, 0, SPEAK_DECIDED_MAX, AT(comment), false},
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, AT(agent), false},
};

#undef AT

enum err speak_decided(struct arena *a, struct str body, bool wants_agent,
                       struct speak_decided *out, struct why *why)
{
    const struct fields f = {"", decided_fields, wants_agent ? 2 : 1};
    enum err e;

    *out = (struct speak_decided){.agent = {"", 0}};
    e = body.n || wants_agent ? fields_read(a, body, &f, out, why) : OK;
    if (!e && wants_agent && !out->agent.n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "agent is missing: {\"agent\":\"Leroy\"}, the agent to "
                    "redirect it to");
    return e;
}
