/* Verdicts on decisions, and requests to reset learning or void verdicts. */
#include "speak/internal.h"

#include <stddef.h>

struct verdict_body {
    struct str agent, verdict, comment;
    bool sends;
};

#define AT(member) offsetof(struct verdict_body, member)

static const struct field feedback_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(agent)},
    {"comment", FIELD_TEXT, 0, SPEAK_COMMENT_MAX, .at = AT(comment)},
    {"verdict", FIELD_WORD, 1, 16, .at = AT(verdict), .of = "right|wrong"},
};

static const struct field override_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, .at = AT(agent),
     .missing =
         "{\"agent\":\"engineer\"}, the agent that should have received it"},
    {"comment", FIELD_TEXT, 0, SPEAK_COMMENT_MAX, .at = AT(comment)},
    {"send", FIELD_BOOL, 0, 0, .at = AT(sends)},
};

#undef AT

const struct fields speak_override_fields = {"", override_fields, 3},
                    speak_feedback_fields = {"", feedback_fields, 3};

static enum err verdict_body_read(struct arena *a, struct str body,
                                  const struct fields *f,
                                  struct verdict_body *in,
                                  struct speak_word *out, struct why *why)
{
    enum err e = fields_read(a, body, f, in, why);

    *out = (struct speak_word){
        .agent = in->agent, .comment = in->comment, .sends = in->sends};
    return e;
}

enum err speak_override(struct arena *a, struct str body,
                        struct speak_word *out, struct why *why)
{
    struct verdict_body in = {.agent = {NULL, 0}};

    return verdict_body_read(a, body, &speak_override_fields, &in, out, why);
}

enum err speak_feedback(struct arena *a, struct str body,
                        struct speak_word *out, struct why *why)
{
    struct verdict_body in = {.agent = {NULL, 0}};
    enum err e =
        verdict_body_read(a, body, &speak_feedback_fields, &in, out, why);

    if (e)
        return e;
    if (str_eq(in.verdict, STR("right")))
        out->verdict = VERDICT_POSITIVE;
    else if (str_eq(in.verdict, STR("wrong")))
        out->verdict = VERDICT_NEGATIVE;
    else
        return why_err(why, ERR_BAD_REQUEST,
                       "verdict must be \"right\" or \"wrong\"");
    return OK;
}

struct learning_reset_body {
    struct str agent;
    bool is_all;
};

static const struct field reset_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX,
     .at = offsetof(struct learning_reset_body, agent)},
    {"all", FIELD_BOOL, 0, 0,
     .at = offsetof(struct learning_reset_body, is_all)},
};

const struct fields speak_reset_fields = {"", reset_fields, 2};

enum err speak_learning_reset(struct arena *a, struct str body,
                              struct str *agent, struct why *why)
{
    struct learning_reset_body in = {.agent = {NULL, 0}};
    enum err e =
        body.n ? fields_read(a, body, &speak_reset_fields, &in, why) : OK;

    *agent = in.agent;
    if (!e && (in.agent.n > 0) == in.is_all)
        e = why_err(why, ERR_BAD_REQUEST,
                    "say what to reset: {\"agent\":\"engineer\"}, or "
                    "{\"all\":true} for everything learnt");
    return e;
}

struct learning_void_body {
    struct str user, owner;
};

static const struct field void_fields[] = {
    {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX,
     .at = offsetof(struct learning_void_body, user)},
    {"owner", FIELD_NAME, 1, PRINCIPAL_NAME_MAX,
     .at = offsetof(struct learning_void_body, owner)},
};

const struct fields speak_void_fields = {"", void_fields, 2};

enum err speak_learning_void(struct arena *a, struct str body,
                             struct speak_void *out, struct why *why)
{
    struct learning_void_body in = {.user = {NULL, 0}};
    enum err e =
        body.n ? fields_read(a, body, &speak_void_fields, &in, why) : OK;

    *out = (struct speak_void){.name = in.user.n ? in.user : in.owner,
                               .is_owner = in.owner.n > 0};
    if (!e && (in.user.n > 0) == (in.owner.n > 0))
        e = why_err(why, ERR_BAD_REQUEST,
                    "name the user of the verdicts to void: "
                    "{\"user\":\"bob\"}, or {\"owner\":\"bob\"} for those "
                    "about the agents of bob as well");
    return e;
}
