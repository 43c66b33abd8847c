/* Every field of a card, once: reading, writing and comparing follow these
 * tables, in this order, and docs/protocol.md ("The card") describes them. A
 * new field is a new line here, a member of struct agent, and a row there. */
#include "model/card_internal.h"

#include <stddef.h>

#define FIELDS(rows)     .list = (rows), .n = sizeof(rows) / sizeof((rows)[0])
#define OF_AGENT(member) .at = offsetof(struct agent, member)
#define OF_SKILL(member) .at = offsetof(struct skill, member)

/* The elements of lists of strings. */

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

/* Objects that are kept unchanged, and the members in them that are checked. */

struct known {
    struct str organization, url, credentials, header;
    struct strs schemes;
};
#define OF_KNOWN(member) .at = offsetof(struct known, member)
_Static_assert(sizeof(struct known) <= sizeof(struct agent),
               "card_object makes room for one");

static const struct card_field provider_rows[] = {
    {"organization", .type = &card_line, OF_KNOWN(organization), .max = 256,
     .about = "Its name."},
    {"url", .type = &card_web, OF_KNOWN(url), .about = "Its web page."},
};
static const struct card_fields provider = {"provider", FIELDS(provider_rows),
                                            .bytes = sizeof(struct known),
                                            .is_open = true};

static const struct card_field authentication_rows[] = {
    {"schemes", .type = &card_strs, OF_KNOWN(schemes), .most = 32,
     .inner = &schemes, .about = "The authentication methods."},
    {"credentials", .type = &card_text, OF_KNOWN(credentials), .max = 4096,
     .is_private = true,
     .about =
         "The secret. It can be set but not read: it is shown as `…set…`."},
    {"header", .type = &card_line, OF_KNOWN(header), .max = 64,
     .about = "The header for a key; X-API-Key by default."},
};
static const struct card_fields authentication = {
    "authentication", FIELDS(authentication_rows),
    .bytes = sizeof(struct known), .is_open = true};

/* Skills. */

#define AMOUNT(at)                                                             \
    {"amount", .type = &card_amount, at,                                       \
     .allowed = "a number or text from 0 to 1000000 with up to six digits "    \
                "after the point",                                             \
     .about = "The same in whole units, together with `currency`."},           \
    {                                                                          \
        "currency", .type = &card_currency, at,                                \
                    .allowed = "the ledger's (`ledger.currency`)",             \
                    .about = "The currency of `amount`; other currencies are " \
                             "rejected, not converted."                        \
    }

static const struct card_field skill_pricing_rows[] = {
    {"amount_micros", .type = &card_micros, OF_SKILL(price),
     .max = AGENT_PRICE_MAX,
     .about = "In millionths; the agent's price by default."},
    AMOUNT(OF_SKILL(price)),
};
static const struct card_fields skill_pricing = {"pricing",
                                                 FIELDS(skill_pricing_rows)};

static const struct card_field skill_rows[] = {
    {"id", .type = &card_skill_id, OF_SKILL(id), .is_required = true,
     .about = "Its identifier, unique within the agent, ignoring case."},
    {"name", .type = &card_line, OF_SKILL(name), .min = 1,
     .max = SKILL_NAME_MAX, .is_required = true,
     .about = "Its name for people."},
    {"description", .type = &card_text, OF_SKILL(description),
     .max = SKILL_DESCRIPTION_MAX,
     .about = "What it does, in plain words. Search uses this, the name and "
              "the tags."},
    {"tags", .type = &card_strs, OF_SKILL(tags), .most = SKILL_TAGS_MAX,
     .inner = &tags, .about = "Words that search finds it by."},
    {"examples", .type = &card_strs, OF_SKILL(examples),
     .most = SKILL_EXAMPLES_MAX, .inner = &examples,
     .about = "Examples of requests for it."},
    {"pricing", .type = &card_pricing, .inner = &skill_pricing,
     .about = "Its price."},
};
const struct card_fields card_skill_fields = {
    "a skill", FIELDS(skill_rows), .bytes = sizeof(struct skill), .key = "id"};

/* Groups of the agent. */

static const struct card_field pricing_rows[] = {
    {"amount_micros", .type = &card_micros, OF_AGENT(price),
     .max = AGENT_PRICE_MAX, .about = "In millionths of the unit of account."},
    AMOUNT(OF_AGENT(price)),
};
static const struct card_fields pricing = {"pricing", FIELDS(pricing_rows)};

static const struct card_field routing_rows[] = {
    {"system_prompt", .type = &card_text, OF_AGENT(routing.system_prompt),
     .max = AGENT_PROMPT_MAX, .is_private = true,
     .about = "Its system prompt; used to choose the agent, and visible only "
              "to its creator and admins."},
    {"keywords", .type = &card_strs, OF_AGENT(routing.keywords),
     .most = AGENT_KEYWORDS_MAX, .inner = &keywords,
     .about = "Words in a message that favor this agent."},
    {"routable", .type = &card_unless, OF_AGENT(routing.is_unroutable),
     .about = "False: only messages that name the agent reach it."},
};
static const struct card_fields routing = {"routing", FIELDS(routing_rows)};

static const struct card_field wake_rows[] = {
    {"url", .type = &card_web, OF_AGENT(wake.url), .is_required = true,
     .about = "The address to call."},
    {"timeout_ms", .type = &card_int, OF_AGENT(wake.timeout_ms), .min = 1,
     .max = AGENT_WAKE_MAX_MS,
     .about = "How long to wait for the agent after that, in milliseconds."},
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
     .needs_words = "can be set by an admin or in the configuration only: it "
                    "is run on the server",
     .about = "The program and its arguments; run on the server."},
};
static const struct card_fields restart = {"restart", FIELDS(restart_rows)};

static const struct card_field limits_rows[] = {
    {"queue", .type = &card_int, OF_AGENT(limits.queue), .min = 1,
     .max = AGENT_QUEUE_MAX, .about = "Maximum length of its queue."},
    {"in_flight", .type = &card_int, OF_AGENT(limits.in_flight), .min = 1,
     .max = AGENT_IN_FLIGHT_MAX,
     .about = "Messages it works on at the same time."},
    {"priority", .type = &card_int, OF_AGENT(limits.priority),
     .min = -AGENT_PRIORITY_MAX, .max = AGENT_PRIORITY_MAX,
     .about =
         "Among equal agents the one with the higher number is chosen first."},
};
static const struct card_fields limits = {"limits", FIELDS(limits_rows)};

/* The names of seed 003, the same everywhere. */
static const struct card_field delegation_rows[] = {
    {"allowAgents", .type = &card_allow, OF_AGENT(delegation),
     .most = AGENT_ALLOWED_MAX, .inner = &allow,
     .about = "The agents it may delegate to; an empty list allows none. This "
              "applies to delegations only: a `message.send` on its connection "
              "counts as its user's."},
    {"maxConcurrent", .type = &card_int, OF_AGENT(delegation.max_concurrent),
     .max = AGENT_CONCURRENT_MAX, .unset = -1,
     .about = "Maximum number of its open delegations."},
    {"maxDepth", .type = &card_int, OF_AGENT(delegation.max_depth),
     .max = AGENT_DEPTH_MAX, .unset = -1,
     .about = "Maximum length of a chain of delegations."},
};
static const struct card_fields delegation = {"delegation",
                                              FIELDS(delegation_rows)};

/* The card. */

static bool is_operators(const struct agent *a)
{
    struct agent_url url;

    return agent_url_read(a->url, &url, NULL) == OK &&
           (url.transport == TRANSPORT_PROCESS ||
            url.transport == TRANSPORT_MODEL);
}

static bool is_shown(const struct agent *a)
{
    return a->visibility != VISIBILITY_PRIVATE;
}

static const char ours[] = "can be set by an admin only";

static const struct card_field rows[] = {
    {"name", "id", .type = &card_name, OF_AGENT(name),
     .about = "The name by which messages address it, unique, ignoring case."},
    {"title", .type = &card_line, OF_AGENT(title), .max = AGENT_TITLE_MAX,
     .about = "A title for people, shown next to the name."},
    {"description", .type = &card_text, OF_AGENT(description), .min = 1,
     .max = AGENT_DESCRIPTION_MAX, .is_required = true,
     .is_config_optional = true, .about = "What it is for, in plain words."},
    {"version", .type = &card_line, OF_AGENT(version), .max = AGENT_VERSION_MAX,
     .about = "Its version."},
    {"url", .type = &card_url, OF_AGENT(url), .needs = CARD_MAY_RUN,
     .is_needed = is_operators,
     .needs_words =
         "may name a process or a model only in the configuration or "
         "by an admin: one runs on the server, the other at its "
         "operator's cost",
     .about = "How it is reached. `echo:` answers every message with the "
              "message itself, `echo:250` after 250 milliseconds. By default "
              "the agent connects itself: `ws-agent://NAME`."},
    {"visibility", .type = &card_visibility, OF_AGENT(visibility),
     .needs = CARD_MAY_SHOW, .is_needed = is_shown,
     .needs_words = "may be other than \"private\" only with the scope "
                    "agents",
     .about = "Visible to all callers, to its org and grantees, or only to its "
              "creator. In the configuration the default is \"public\"."},
    {"provider", .type = &card_object, OF_AGENT(provider), .inner = &provider,
     .about = "The operator of the agent; may have more members."},
    {"capabilities", .type = &card_object, OF_AGENT(capabilities),
     .about = "Further abilities, for clients."},
    {"authentication", .type = &card_object, OF_AGENT(authentication),
     .inner = &authentication,
     .about = "The authentication for calls; may have more members."},
    {"metadata", .type = &card_object, OF_AGENT(metadata),
     .about = "Anything else; kept unchanged."},
    {"skills", .type = &card_skills, .inner = &card_skill_fields,
     .most = AGENT_SKILLS_MAX,
     .about = "Its skills; search ranks an agent by its best skill."},
    {"pricing", .type = &card_pricing, .inner = &pricing,
     .about = "The price of skills without their own."},
    {"routing", .type = &card_group, .inner = &routing,
     .about = "Hints for choosing it."},
    {"wake", .type = &card_group, .inner = &wake, .is_private = true,
     .about = "How to wake it if it sleeps."},
    {"restart", .type = &card_group, .inner = &restart, .is_private = true,
     .about = "How to start it again."},
    {"backup", .type = &card_name, OF_AGENT(backup), .is_private = true,
     .about = "The agent that replaces it if it does not answer."},
    {"limits", .type = &card_group, .inner = &limits,
     .about = "Limits of its load."},
    {"delegation", .type = &card_group, .inner = &delegation,
     .is_private = true, .about = "The agents it may ask for help."},

    {"process", .type = &card_passed, .is_config_only = true,
     .allowed = "an object as in `processes`, or the name of one of those",
     .about = "The program that runs the agent, if no url is given: its own, "
              "or one that others share."},
    {"model", .type = &card_passed, .is_config_only = true,
     .allowed = "the name of one of `models`, or \"NAME/MODEL\"",
     .about = "The model that answers, if neither url nor process is given; "
              "for a process that speaks `pi`, the model that it uses. With a "
              "`workspace`, and neither a process nor an entry of `models`, "
              "the agent is `pi` from the `PATH` with this model."},
    {"workspace", .type = &card_passed, .is_config_only = true,
     .allowed = "the path of a folder",
     .about = "The working directory of its process; created if missing, in an "
              "existing folder."},
    {"default", .type = &card_passed, .is_config_only = true,
     .allowed = "true or false",
     .about = "Whether it gets messages for which no other agent is chosen; at "
              "most one agent, same as `agents.default`."},

    {"creator_id", .type = &card_principal, OF_AGENT(creator), .is_ours = true,
     .is_wire_only = true, .needs = CARD_MAY_ASSIGN, .needs_words = ours,
     .about = "The user that owns it."},
    {"org", .type = &card_org, OF_AGENT(org), .is_ours = true,
     .needs = CARD_MAY_ASSIGN, .needs_words = ours,
     .about = "The org whose members see it if it is shared; \"\": its "
              "creator's org, and none for agents of the configuration."},
    {"kind", .type = &card_kind, OF_AGENT(kind), .is_ours = true,
     .is_wire_only = true, .needs = CARD_MAY_ASSIGN, .needs_words = ours,
     .about = "How it was added."},
    {"revision", .type = &card_stamp, OF_AGENT(revision), .is_ours = true,
     .is_wire_only = true},
    {"created_ms", .type = &card_stamp, OF_AGENT(created_ms), .is_ours = true,
     .is_wire_only = true},
    {"updated_ms", .type = &card_stamp, OF_AGENT(updated_ms), .is_ours = true,
     .is_wire_only = true},
    {"state", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"state_reason", .type = &card_passed, .is_ours = true,
     .is_wire_only = true},
    {"embedded", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"warnings", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"paused", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"review", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"reports", .type = &card_passed, .is_ours = true, .is_wire_only = true},
    {"grants", .type = &card_passed, .is_ours = true, .is_wire_only = true},
};
const struct card_fields card_fields = {"a card", FIELDS(rows),
                                        .bytes = sizeof(struct agent)};
