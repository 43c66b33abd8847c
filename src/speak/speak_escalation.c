/* Decisions of people on escalations. */
#include "speak/internal.h"

#include <stddef.h>

#define AT(member) offsetof(struct speak_decided, member)

/* The last row is for redirect only. */
static const struct field decided_fields[] = {
    {"comment", FIELD_TEXT, 0, SPEAK_DECIDED_MAX, .at = AT(comment)},
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(agent),
     .missing = "{\"agent\":\"Leroy\"}, the agent to redirect it to"},
};

#undef AT

const struct fields speak_decided_fields = {"", decided_fields, 1},
                    speak_redirect_fields = {"", decided_fields, 2};

enum err speak_decided(struct arena *a, struct str body, bool wants_agent,
                       struct speak_decided *out, struct why *why)
{
    enum err e;

    *out = (struct speak_decided){.agent = {"", 0}};
    e = body.n || wants_agent ? fields_read(a, body,
                                            wants_agent ? &speak_redirect_fields
                                                        : &speak_decided_fields,
                                            out, why)
                              : OK;
    return e;
}
