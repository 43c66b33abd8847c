#ifndef MODEL_AGENT_H
#define MODEL_AGENT_H

/* agent: an executor of work, its card (read and written by card.h), and who
 * may see it. Names are unique without case. All strings are borrowed; the
 * creator of the struct owns them. */

#include "base/map.h"
#include "base/str.h"
#include "model/caller.h"

enum {
    AGENT_NAME_MAX = 128,
    AGENT_URL_MAX = 2048,
    AGENT_TITLE_MAX = 128,
    AGENT_DESCRIPTION_MAX = 16 * 1024,
    AGENT_VERSION_MAX = 64,
    AGENT_PROMPT_MAX = 64 * 1024,
    AGENT_KEYWORDS_MAX = 128,
    AGENT_KEYWORD_MAX = 64,       /* bytes of one */
    AGENT_OBJECT_MAX = 16 * 1024, /* provider, capabilities, authentication
                                   * and metadata, each */
    AGENT_OBJECT_DEPTH = 16,      /* deepest nesting inside them */
    AGENT_COMMAND_MAX = 64,       /* words of a command */
    AGENT_WORD_MAX = 4096,        /* bytes of one word */
    AGENT_ALLOWED_MAX = 256,      /* names in delegation.allowAgents */
    AGENT_WAKE_MAX_MS = 600 * 1000,
    AGENT_QUEUE_MAX = 1000 * 1000,
    AGENT_IN_FLIGHT_MAX = 10 * 1000,
    AGENT_PRIORITY_MAX = 100, /* also the largest negative one */
    AGENT_CONCURRENT_MAX = 1000,
    AGENT_DEPTH_MAX = 32,
    AGENT_SKILLS_MAX = 256,
    AGENT_GRANTS_MAX = 1000,
    AGENT_CARD_MAX = 1024 * 1024, /* bytes of the whole card as JSON */

    SKILL_ID_MAX = 128,
    SKILL_NAME_MAX = 128,
    SKILL_DESCRIPTION_MAX = 4096,
    SKILL_TAGS_MAX = 32,
    SKILL_TAG_MAX = 64, /* bytes of one */
    SKILL_EXAMPLES_MAX = 64,
    SKILL_EXAMPLE_MAX = 1024, /* bytes of one */
};
#define AGENT_PRICE_MAX INT64_C(1000000000000) /* micro-units: a million */
enum { AGENT_CURRENCY_MAX = 16 };              /* bytes of its name */

/* The store keeps the numbers of both enums. */
enum visibility {
    VISIBILITY_PRIVATE = 1, /* visible to its creator */
    VISIBILITY_SHARED = 2,  /* also to the creator's org and to grantees */
    VISIBILITY_PUBLIC = 3,  /* to every caller */
};

enum agent_kind {
    AGENT_PLATFORM = 1,    /* from the configuration or an admin */
    AGENT_MANAGED = 2,     /* deployed and announced by an operator */
    AGENT_SELF_HOSTED = 3, /* it registered itself */
};

/* The health of an agent; derived, never stored. */
enum agent_state {
    AGENT_ACTIVE = 1,
    AGENT_IDLE = 2,
    AGENT_BUSY = 3,
    AGENT_SLOW = 4,
    AGENT_ERROR = 5,
    AGENT_DEAD = 6,
};

struct str visibility_name(enum visibility v);   /* "public" */
enum visibility visibility_of(struct str name);  /* zero: unknown name */
struct str agent_kind_name(enum agent_kind k);   /* "self-hosted" */
enum agent_kind agent_kind_of(struct str name);  /* zero: unknown name */
struct str agent_state_name(enum agent_state s); /* "IDLE" */
/* zero: unknown name; ignores case */
enum agent_state agent_state_of(struct str name);

struct strs {
    const struct str *list;
    size_t n;
};

struct price {
    bool is_given;
    int64_t micros; /* 0 to AGENT_PRICE_MAX */
};

struct skill {
    struct str id; /* unique within its agent */
    struct str name, description;
    struct strs tags, examples;
    struct price price;
};

/* A user or an org that may see a shared agent of another org. */
struct agent_grant {
    struct id id;         /* grant_… */
    struct str user, org; /* exactly one of them is set */
    int64_t expires_ms;   /* Unix time; zero: never */
    int64_t created_ms;
    struct str by;
};

/* The review of a card by an admin before others see it. The store keeps the
 * numbers. */
enum review_state {
    REVIEW_WAITING = 1,  /* an admin must approve it */
    REVIEW_REJECTED = 2, /* an admin rejected it */
    REVIEW_HIDDEN = 3,   /* an admin hid the agent */
};

struct str review_name(enum review_state s);  /* "waiting" */
enum review_state review_of(struct str name); /* zero: unknown name */

enum { REVIEW_REASON_MAX = 1000 }; /* bytes */

/* The review of an agent whose creator wants a card other than the active
 * one. */
struct review {
    enum review_state state;
    struct str reason;          /* for the creator; may be empty */
    struct str by;              /* the admin; empty while it is waiting */
    int64_t at_ms;              /* when it entered this state */
    const struct agent *wanted; /* the card that its creator wants */
};

struct agent {
    /* The card. Empty and zero mean: not given. */
    struct str name;  /* as written by its creator */
    struct str title; /* for people */
    struct str description, version;
    struct str url;             /* the transport; never empty after reading */
    enum visibility visibility; /* zero: not given */
    struct str provider, capabilities, authentication,
        metadata; /* compact JSON objects */
    const struct skill *skills;
    size_t n_skills;
    struct price price; /* for skills without a price */
    struct {
        struct str system_prompt;
        struct strs keywords;
        bool is_unroutable; /* reached only by its name */
    } routing;
    struct {
        struct str url;
        int64_t timeout_ms; /* zero: the default */
    } wake;
    struct strs restart; /* a command */
    struct str backup;   /* another agent's name */
    struct {
        int64_t queue, in_flight; /* zero: the default */
        int64_t priority;
    } limits;
    struct {
        bool is_limited; /* `allow` was given; an empty list then allows none */
        struct strs allow;
        int64_t max_concurrent, max_depth; /* -1: not given */
    } delegation;

    /* Assigned by the server. */
    struct str creator;   /* user name; empty: from the configuration */
    struct str org;       /* may see it if it is shared; empty: none */
    bool is_org_creators; /* in a card: org was given as "", meaning the
                           * creator's */
    enum agent_kind kind;
    bool is_configured; /* from the configuration, removed with it */
    int64_t revision;   /* incremented by every change; the ETag; never
                         * reused for the same name, even after removal */
    int64_t created_ms, updated_ms;
    const struct agent_grant *grants;
    size_t n_grants;
    const struct review *review; /* NULL: the active card is the one that its
                                  * creator wants */
};

/* The transport that a url names. */
enum transport {
    TRANSPORT_ECHO,    /* "echo:", "echo:250": returns the message after so many
                        * milliseconds; for experiments */
    TRANSPORT_HUB,     /* "ws-agent://ID": the agent's own connection to us */
    TRANSPORT_HTTP,    /* "https://…", "http://…" */
    TRANSPORT_PROCESS, /* "process:NAME" */
    TRANSPORT_MODEL,   /* "model:NAME" */
    N_TRANSPORTS,
};

struct agent_url {
    enum transport transport;
    int64_t delay_ms; /* TRANSPORT_ECHO: 0 to ECHO_DELAY_MAX_MS */
    struct str id;    /* TRANSPORT_HUB, TRANSPORT_PROCESS, TRANSPORT_MODEL:
                       * points into the text */
};

enum { ECHO_DELAY_MAX_MS = 3600 * 1000 };

/* ERR_SYNTAX if the url is unknown or longer than AGENT_URL_MAX; *out is then
 * untouched, and why (may be NULL) completes a sentence that begins with a
 * field name: "must be …", "may not hold a user or password". A web address
 * must be one that url.h accepts, without user, password or fragment. */
MUST_USE enum err agent_url_read(struct str url, struct agent_url *out,
                                 struct why *why);

/* The accepted forms of a url, to complete "must be". */
struct str agent_url_allowed(void);

/* A web address only, for wake.url. Errors as above. */
MUST_USE enum err agent_web_read(struct str url, struct why *why);

/* The viewer: a caller, or the owner that an agent acts for. */
struct eyes {
    struct str user, org; /* org may be empty */
    struct str self;      /* the agent that looks, which does not find
                           * itself; empty: not an agent */
    bool sees_all;        /* admins */
    int64_t now_ms;       /* Unix time, for the expiry of grants */
};

/* Borrows c. */
struct eyes eyes_of(const struct caller *c, int64_t now_ms);

/* "org:acme" or "user:ann", written to out: records kept under one scope are
 * not found under another. */
enum { EYES_SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str eyes_scope(const struct eyes *e, char out[EYES_SCOPE_BYTES]);

/* Whether the agent exists for this viewer. The viewing agent itself is treated
 * like any other. */
bool agent_is_visible(const struct agent *a, const struct eyes *e);

/* Whether the viewer may see all of it, change it and remove it: its creator
 * and admins may. */
bool agent_is_owned(const struct agent *a, const struct eyes *e);

/* Whether the agent belongs to another user outside the viewer's org, and is
 * not one that the platform vouches for (of admins or the configuration). For a
 * viewer without an org all other users are outside. */
bool agent_is_outsider(const struct agent *a, const struct eyes *e);

/* Whether this is the agent that `user` meant by its name at that time. A
 * released name may belong to another user by now; the user's own agents and
 * configured ones count as meant, even if they were created again. */
bool agent_is_meant(const struct agent *a, int64_t at_ms, struct str user);

/* The price of a skill, or the agent's price if it has none or s is NULL. */
int64_t agent_price(const struct agent *a, const struct skill *s);

/* The card that its creator wants (a->review must be set), with the members
 * that the server assigns. */
struct agent agent_wanted(const struct agent *a);

/* NULL if it has no skill with that id. */
const struct skill *agent_skill(const struct agent *a, struct str id);

/* Ignore case. An agent has the tags of its skills. */
bool skill_has_tag(const struct skill *s, struct str tag);
bool agent_has_tag(const struct agent *a, struct str tag);

/* The agents that a decision may consider. Borrowed for the call. */
struct agents {
    const struct agent *const *list; /* sorted by name, ignoring case */
    size_t n;
    const struct map *by_name; /* lower-case name -> struct agent */
};

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127} */
bool agent_name_is_valid(struct str name);

/* Ignores case. NULL if there is none. */
const struct agent *agent_find(const struct agents *all, struct str name);

#endif
