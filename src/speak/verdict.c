/* Verdicts on decisions, and figures of what was learnt from them. */
#include "speak/internal.h"

#include <stddef.h>

struct said_word {
    struct str agent, verdict, comment;
    bool sends;
};

#define AT(member) offsetof(struct said_word, member)

static const struct field feedback_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, AT(agent), false},
    {"comment", FIELD_TEXT, 0, SPEAK_COMMENT_MAX, AT(comment), false},
    {"verdict", FIELD_NAME, 1, 16, AT(verdict), false},
};

static const struct field override_fields[] = {
    {"agent", FIELD_NAME, 1, AGENT_NAME_MAX, AT(agent), false},
    {"comment", FIELD_TEXT, 0, SPEAK_COMMENT_MAX, AT(comment), false},
    {"send", FIELD_BOOL, 0, 0, AT(sends), false},
};

#undef AT

static enum err read_word(struct arena *a, struct str body,
                          const struct fields *f, struct said_word *said,
                          struct speak_word *out, struct why *why)
{
    enum err e = fields_read(a, body, f, said, why);

    *out = (struct speak_word){
        .agent = said->agent, .comment = said->comment, .sends = said->sends};
    return e;
}

enum err speak_override(struct arena *a, struct str body,
                        struct speak_word *out, struct why *why)
{
    static const struct fields f = {"", override_fields, 3};
    struct said_word said = {.agent = {NULL, 0}};
    enum err e = read_word(a, body, &f, &said, out, why);

    if (!e && !said.agent.n)
        e = why_err(why, ERR_BAD_REQUEST,
                    "agent is missing: {\"agent\":\"engineer\"}, the one that "
                    "it should have gone to");
    return e;
}

enum err speak_feedback(struct arena *a, struct str body,
                        struct speak_word *out, struct why *why)
{
    static const struct fields f = {"", feedback_fields, 3};
    struct said_word said = {.agent = {NULL, 0}};
    enum err e = read_word(a, body, &f, &said, out, why);

    if (e)
        return e;
    if (str_eq(said.verdict, STR("right")))
        out->verdict = VERDICT_POSITIVE;
    else if (str_eq(said.verdict, STR("wrong")))
        out->verdict = VERDICT_NEGATIVE;
    else
        return why_err(why, ERR_BAD_REQUEST,
                       "verdict must be \"right\" or \"wrong\"");
    return OK;
}

struct said_reset {
    struct str agent;
    bool is_all;
};

enum err speak_learning_reset(struct arena *a, struct str body,
                              struct str *agent, struct why *why)
{
    static const struct field reset_fields[] = {
        {"agent", FIELD_NAME, 1, AGENT_NAME_MAX,
         offsetof(struct said_reset, agent), false},
        {"all", FIELD_BOOL, 0, 0, offsetof(struct said_reset, is_all), false},
    };
    static const struct fields f = {"", reset_fields, 2};
    struct said_reset said = {.agent = {NULL, 0}};
    enum err e = body.n ? fields_read(a, body, &f, &said, why) : OK;

    *agent = said.agent;
    if (!e && (said.agent.n > 0) == said.is_all)
        e = why_err(why, ERR_BAD_REQUEST,
                    "say what is to be forgotten: {\"agent\":\"engineer\"}, or "
                    "{\"all\":true} for all that was learnt");
    return e;
}

struct said_void {
    struct str user, owner;
};

enum err speak_learning_void(struct arena *a, struct str body,
                             struct speak_void *out, struct why *why)
{
    static const struct field void_fields[] = {
        {"user", FIELD_NAME, 1, PRINCIPAL_NAME_MAX,
         offsetof(struct said_void, user), false},
        {"owner", FIELD_NAME, 1, PRINCIPAL_NAME_MAX,
         offsetof(struct said_void, owner), false},
    };
    static const struct fields f = {"", void_fields, 2};
    struct said_void said = {.user = {NULL, 0}};
    enum err e = body.n ? fields_read(a, body, &f, &said, why) : OK;

    *out = (struct speak_void){.name = said.user.n ? said.user : said.owner,
                               .is_owner = said.owner.n > 0};
    if (!e && (said.user.n > 0) == (said.owner.n > 0))
        e = why_err(why, ERR_BAD_REQUEST,
                    "say whose verdicts are to be voided: {\"user\":\"bob\"}, "
                    "or {\"owner\":\"bob\"} for those about the agents of "
                    "bob as well");
    return e;
}
