/* Every field of a card, once: reading, writing and comparing go by these
 * tables, in this order, and docs/protocol.md ("The card") says the same in
 * words. A new field is a new line here, a member of struct agent, and a row
 * there. */
#include "model/card_internal.h"

#include <stddef.h>

#define FIELDS(rows)     .list = (rows), .n = sizeof(rows) / sizeof((rows)[0])
#define OF_AGENT(member) .at = offsetof(struct agent, member)
#define OF_SKILL(member) .at = offsetof(struct skill, member)

/* Lists of strings: of what. */

static const struct card_field tag[] = {
    {"tag", .type = &card_line, .min = 1, .max = SKILL_TAG_MAX}};
static const struct card_fields tags = {
    FIELDS(tag), .bytes = sizeof(struct str), .is_unique = true};

static const struct card_field example[] = {
    {"example", .type = &card_text, .min = 1, .max = SKILL_EXAMPLE_MAX}};
static const struct card_fields examples = {
    FIELDS(example), .bytes = sizeof(struct str), .is_unique = true};

static const struct card_field keyword[] = {
    {"keyword", .type = &card_line, .min = 1, .max = AGENT_KEYWORD_MAX}};
static const struct card_fields keywords = {
    FIELDS(keyword), .bytes = sizeof(struct str), .is_unique = true};

static const struct card_field word[] = {
    {"word", .type = &card_text, .min = 1, .max = AGENT_WORD_MAX}};
static const struct card_fields words = {FIELDS(word),
                                         .bytes = sizeof(struct str)};

static const struct card_field allowed[] = {{"name", .type = &card_name}};
static const struct card_fields allow = {
    FIELDS(allowed), .bytes = sizeof(struct str), .is_unique = true};

static const struct card_field scheme[] = {
    {"scheme", .type = &card_line, .min = 1, .max = 64}};
static const struct card_fields schemes = {
    FIELDS(scheme), .bytes = sizeof(struct str), .is_unique = true};

/* Objects that are kept as they are: what is looked at all the same. */

struct known {
    struct str organization, url, credentials;
    struct strs schemes;
};
#define OF_KNOWN(member) .at = offsetof(struct known, member)
_Static_assert(sizeof(struct known) <= sizeof(struct agent),
               "card_object makes room for one");

static const struct card_field provider_rows[] = {
    {"organization", .type = &card_line, OF_KNOWN(organization), .max = 256},
    {"url", .type = &card_web, OF_KNOWN(url)},
};
static const struct card_fields provider = {"provider", FIELDS(provider_rows),
                                            .bytes = sizeof(struct known),
                                            .is_open = true};

static const struct card_field authentication_rows[] = {
    {"schemes", .type = &card_strs, OF_KNOWN(schemes), .most = 32,
     .inner = &schemes},
    {"credentials", .type = &card_text, OF_KNOWN(credentials), .max = 4096,
     .is_private = true},
};
static const struct card_fields authentication = {
    "authentication", FIELDS(authentication_rows),
    .bytes = sizeof(struct known), .is_open = true};

/* Skills. */

static const struct card_field skill_pricing_rows[] = {
    {"amount_micros", .type = &card_micros, OF_SKILL(price),
     .max = AGENT_PRICE_MAX},
};
static const struct card_fields skill_pricing = {"pricing",
                                                 FIELDS(skill_pricing_rows)};

static const struct card_field skill_rows[] = {
    {"id", .type = &card_skill_id, OF_SKILL(id), .is_required = true},
    {"name", .type = &card_line, OF_SKILL(name), .min = 1,
     .max = SKILL_NAME_MAX, .is_required = true},
    {"description", .type = &card_text, OF_SKILL(description),
     .max = SKILL_DESCRIPTION_MAX},
    {"tags", .type = &card_strs, OF_SKILL(tags), .most = SKILL_TAGS_MAX,
     .inner = &tags},
    {"examples", .type = &card_strs, OF_SKILL(examples),
     .most = SKILL_EXAMPLES_MAX, .inner = &examples},
    {"pricing", .type = &card_group, .inner = &skill_pricing},
};
const struct card_fields card_skill_fields = {
    "a skill", FIELDS(skill_rows), .bytes = sizeof(struct skill), .key = "id"};

/* Groups of the agent's own. */

static const struct card_field pricing_rows[] = {
    {"amount_micros", .type = &card_micros, OF_AGENT(price),
     .max = AGENT_PRICE_MAX},
};
static const struct card_fields pricing = {"pricing", FIELDS(pricing_rows)};

static const struct card_field routing_rows[] = {
    {"system_prompt", .type = &card_text, OF_AGENT(routing.system_prompt),
     .max = AGENT_PROMPT_MAX, .is_private = true},
    {"keywords", .type = &card_strs, OF_AGENT(routing.keywords),
     .most = AGENT_KEYWORDS_MAX, .inner = &keywords},
    {"routable", .type = &card_unless, OF_AGENT(routing.is_unroutable)},
};
static const struct card_fields routing = {"routing", FIELDS(routing_rows)};

static const struct card_field wake_rows[] = {
    {"url", .type = &card_web, OF_AGENT(wake.url), .is_required = true},
    {"timeout_ms", .type = &card_int, OF_AGENT(wake.timeout_ms), .min = 1,
     .max = AGENT_WAKE_MAX_MS},
};
static const struct card_fields wake = {"wake", FIELDS(wake_rows)};

static bool has_command(const struct agent *a)
{
    return a->restart.n > 0;
}

static const struct card_field restart_rows[] = {
    {"command", .type = &card_strs, OF_AGENT(restart),
     .most = AGENT_COMMAND_MAX, .inner = &words, .needs = CARD_MAY_RUN,
     .is_needed = has_command,
     .needs_words = "only an admin or the configuration may set this: it is "
                    "run on the server"},
};
static const struct card_fields restart = {"restart", FIELDS(restart_rows)};

static const struct card_field limits_rows[] = {
    {"queue", .type = &card_int, OF_AGENT(limits.queue), .min = 1,
     .max = AGENT_QUEUE_MAX},
    {"in_flight", .type = &card_int, OF_AGENT(limits.in_flight), .min = 1,
     .max = AGENT_IN_FLIGHT_MAX},
    {"priority", .type = &card_int, OF_AGENT(limits.priority),
     .min = -AGENT_PRIORITY_MAX, .max = AGENT_PRIORITY_MAX},
};
static const struct card_fields limits = {"limits", FIELDS(limits_rows)};

/* Seed 003's own names, the same everywhere. */
static const struct card_field delegation_rows[] = {
    {"allowAgents", .type = &card_allow, OF_AGENT(delegation),
     .most = AGENT_ALLOWED_MAX, .inner = &allow},
    {"maxConcurrent", .type = &card_int, OF_AGENT(delegation.max_concurrent),
     .max = AGENT_CONCURRENT_MAX, .unset = -1},
    {"maxDepth", .type = &card_int, OF_AGENT(delegation.max_depth),
     .max = AGENT_DEPTH_MAX, .unset = -1},
};
static const struct card_fields delegation = {"delegation",
                                              FIELDS(delegation_rows)};

/* The whole. */

static bool is_process(const struct agent *a)
{
    struct agent_url url;

    return agent_url_read(a->url, &url, NULL) == OK && url.road == ROAD_PROCESS;
}

static bool is_shown(const struct agent *a)
{
    return a->visibility != VISIBILITY_PRIVATE;
}

static const char ours[] = "only an admin may set this";

static const struct card_field rows[] = {
    {"name", "id", .type = &card_name, OF_AGENT(name)},
    {"title", .type = &card_line, OF_AGENT(title), .max = AGENT_TITLE_MAX},
    {"description", .type = &card_text, OF_AGENT(description), .min = 1,
     .max = AGENT_DESCRIPTION_MAX, .is_required = true,
     .is_config_optional = true},
    {"version", .type = &card_line, OF_AGENT(version),
     .max = AGENT_VERSION_MAX},
    {"url", .type = &card_url, OF_AGENT(url), .needs = CARD_MAY_RUN,
     .is_needed = is_process,
     .needs_words = "may name a process only in the configuration or by an "
                    "admin: it is run on the server"},
    {"visibility", .type = &card_visibility, OF_AGENT(visibility),
     .needs = CARD_MAY_SHOW, .is_needed = is_shown,
     .needs_words = "may be other than \"private\" only with the scope "
                    "agents"},
    {"provider", .type = &card_object, OF_AGENT(provider), .inner = &provider},
    {"capabilities", .type = &card_object, OF_AGENT(capabilities)},
    {"authentication", .type = &card_object, OF_AGENT(authentication),
     .inner = &authentication},
    {"metadata", .type = &card_object, OF_AGENT(metadata)},
    {"skills", .type = &card_skills, .inner = &card_skill_fields,
     .most = AGENT_SKILLS_MAX},
    {"pricing", .type = &card_group, .inner = &pricing},
    {"routing", .type = &card_group, .inner = &routing},
    {"wake", .type = &card_group, .inner = &wake, .is_private = true},
    {"restart", .type = &card_group, .inner = &restart, .is_private = true},
    {"backup", .type = &card_name, OF_AGENT(backup)},
    {"limits", .type = &card_group, .inner = &limits},
    {"delegation", .type = &card_group, .inner = &delegation},

    {"creator_id", .type = &card_principal, OF_AGENT(creator), .is_ours = true,
     .is_wire_only = true, .needs = CARD_MAY_ASSIGN, .needs_words = ours},
    {"org", .type = &card_principal, OF_AGENT(org), .is_ours = true,
     .needs = CARD_MAY_ASSIGN, .needs_words = ours},
    {"kind", .type = &card_kind, OF_AGENT(kind), .is_ours = true,
     .is_wire_only = true, .needs = CARD_MAY_ASSIGN, .needs_words = ours},
    {"revision", .type = &card_stamp, OF_AGENT(revision), .is_ours = true,
     .is_wire_only = true},
    {"created_ms", .type = &card_stamp, OF_AGENT(created_ms), .is_ours = true,
     .is_wire_only = true},
    {"updated_ms", .type = &card_stamp, OF_AGENT(updated_ms), .is_ours = true,
     .is_wire_only = true},
    {"state", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"embedded", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"grants", .type = &card_passed, .is_ours = true, .is_wire_only = true},
};
const struct card_fields card_fields = {"a card", FIELDS(rows),
                                        .bytes = sizeof(struct agent)};
