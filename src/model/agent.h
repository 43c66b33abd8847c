#ifndef MODEL_AGENT_H
#define MODEL_AGENT_H

/* agent: who can be given work, what it says of itself (its card, read and
 * written by card.h), and who may see it. Names are unique whatever their
 * case. Borrowed strings all over; whoever made the struct owns them. */

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
    AGENT_OBJECT_MAX = 16 * 1024, /* of provider, capabilities, authentication
                                   * and metadata, each */
    AGENT_OBJECT_DEPTH = 16,      /* how deep they may be nested */
    AGENT_COMMAND_MAX = 64,       /* words of a command */
    AGENT_WORD_MAX = 4096,        /* bytes of one of them */
    AGENT_ALLOWED_MAX = 256,      /* names in delegation.allowAgents */
    AGENT_WAKE_MAX_MS = 600 * 1000,
    AGENT_QUEUE_MAX = 1000 * 1000,
    AGENT_IN_FLIGHT_MAX = 10 * 1000,
    AGENT_PRIORITY_MAX = 100, /* and as much below zero */
    AGENT_CONCURRENT_MAX = 1000,
    AGENT_DEPTH_MAX = 32,
    AGENT_SKILLS_MAX = 256,
    AGENT_GRANTS_MAX = 1000,
    AGENT_CARD_MAX = 1024 * 1024, /* bytes of the whole, as JSON */

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

/* The numbers of both are kept in the store. */
enum visibility {
    VISIBILITY_PRIVATE = 1, /* its creator */
    VISIBILITY_SHARED = 2,  /* and the creator's org, and whoever has a grant */
    VISIBILITY_PUBLIC = 3,  /* everybody who may call at all */
};

enum agent_kind {
    AGENT_PLATFORM = 1,    /* of the configuration, or an admin's */
    AGENT_MANAGED = 2,     /* deployed by somebody, who told us */
    AGENT_SELF_HOSTED = 3, /* registered itself */
};

/* What is known of how it is; derived, never kept. */
enum agent_state {
    AGENT_ACTIVE = 1,
    AGENT_IDLE = 2,
    AGENT_BUSY = 3,
    AGENT_SLOW = 4,
    AGENT_ERROR = 5,
    AGENT_DEAD = 6,
};

struct str visibility_name(enum visibility v);    /* "public" */
enum visibility visibility_of(struct str name);   /* zero: none of that name */
struct str agent_kind_name(enum agent_kind k);    /* "self-hosted" */
enum agent_kind agent_kind_of(struct str name);   /* zero likewise */
struct str agent_state_name(enum agent_state s);  /* "IDLE" */
enum agent_state agent_state_of(struct str name); /* zero likewise; any case */

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

/* One who may see a shared agent although not of its org. */
struct agent_grant {
    struct id id;         /* grant_… */
    struct str user, org; /* one of them; the other is empty */
    int64_t expires_ms;   /* Unix time; zero: never */
    int64_t created_ms;
    struct str by;
};

struct agent {
    /* The card. Empty and zero: not given. */
    struct str name;  /* as it was written */
    struct str title; /* for people */
    struct str description, version;
    struct str url; /* how it is reached; never empty once it was read */
    enum visibility visibility; /* zero: not given */
    struct str provider, capabilities, authentication,
        metadata; /* JSON
                   * objects, compact */
    const struct skill *skills;
    size_t n_skills;
    struct price price; /* of skills without one */
    struct {
        struct str system_prompt;
        struct strs keywords;
        bool is_unroutable; /* only found by who names it */
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
        bool is_limited; /* `allow` was given; empty then means nobody */
        struct strs allow;
        int64_t max_concurrent, max_depth; /* -1: not given */
    } delegation;

    /* What the server says of it. */
    struct str creator; /* a user's name; empty: the configuration */
    struct str org; /* whose members see it when it is shared; empty: none */
    bool is_org_creators; /* of a card that was read: org was said, to be that
                           * of its creator */
    enum agent_kind kind;
    bool is_configured; /* it comes from the configuration and goes with it */
    int64_t revision;   /* one more with every change: the ETag; never one
                         * that its name had before it was removed */
    int64_t created_ms, updated_ms;
    const struct agent_grant *grants;
    size_t n_grants;
};

/* The road that a url names. */
enum road {
    ROAD_ECHO, /* "echo:", "echo:250": answers with its message, after so many
                * milliseconds; to try things out with */
    ROAD_HUB,  /* "ws-agent://ID": the agent's own connection to us */
    ROAD_HTTP, /* "https://…", "http://…" */
    ROAD_PROCESS, /* "process:NAME" */
    ROAD_MODEL,   /* "model:NAME" */
    N_ROADS,
};

struct agent_url {
    enum road road;
    int64_t delay_ms; /* ROAD_ECHO: 0 to ECHO_DELAY_MAX_MS */
    struct str id;    /* ROAD_HUB, ROAD_PROCESS, ROAD_MODEL: points into the
                       * text */
};

enum { ECHO_DELAY_MAX_MS = 3600 * 1000 };

/* ERR_SYNTAX when it is no url that we know or longer than AGENT_URL_MAX; *out
 * is then untouched, and why (may be NULL) says what is wrong with it, to stand
 * behind the name of a field: "must be …", "may not hold a user or password".
 * A web address must be one that url.h reads, without user, password or
 * fragment. */
MUST_USE enum err agent_url_read(struct str url, struct agent_url *out,
                                 struct why *why);

/* What a url must be, to stand behind "must be". */
struct str agent_url_allowed(void);

/* A web address alone, as ROAD_HTTP's: for wake.url. Errors as above. */
MUST_USE enum err agent_web_read(struct str url, struct why *why);

/* Whoever looks: a caller, with the eyes of who they act for. */
struct eyes {
    struct str user, org; /* org may be empty */
    struct str self;      /* the agent that looks, which does not find itself;
                           * empty: it is none */
    bool sees_all;        /* admins */
    int64_t now_ms;       /* Unix time, for grants that expire */
};

/* Borrows c. */
struct eyes eyes_of(const struct caller *c, int64_t now_ms);

/* "org:acme" or "user:ann", into out: what is kept for one of them is found by
 * no other. */
enum { EYES_SCOPE_BYTES = PRINCIPAL_NAME_MAX + 8 };
struct str eyes_scope(const struct eyes *e, char out[EYES_SCOPE_BYTES]);

/* Whether it is there, for them. Itself counts as any other. */
bool agent_is_visible(const struct agent *a, const struct eyes *e);

/* Whether they may see all of it, change it and remove it: its creator, and
 * admins. */
bool agent_is_owned(const struct agent *a, const struct eyes *e);

/* Whether it is somebody else's, from outside their org: not their own, nor of
 * those that the platform answers for, the admins' and the configuration's. Who
 * has no org has everybody else outside. */
bool agent_is_outsider(const struct agent *a, const struct eyes *e);

/* Whether it is the one that `user` meant by its name at that time. A name that
 * was given up may be somebody else's by now; one's own and the configuration's
 * are whom they were meant to be, also when they are made anew. */
bool agent_is_meant(const struct agent *a, int64_t at_ms, struct str user);

/* What running a skill costs; NULL or a skill without a price: the agent's. */
int64_t agent_price(const struct agent *a, const struct skill *s);

/* NULL when it has none of that id. */
const struct skill *agent_skill(const struct agent *a, struct str id);

/* Whatever the case; an agent has those of its skills. */
bool skill_has_tag(const struct skill *s, struct str tag);
bool agent_has_tag(const struct agent *a, struct str tag);

/* All of them as a decision may see them. Borrowed for the call. */
struct agents {
    const struct agent *const *list; /* in the order of their names, without
                                      * case */
    size_t n;
    const struct map *by_name; /* lower-case name -> struct agent */
};

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127} */
bool agent_name_is_valid(struct str name);

/* NULL when there is none of that name, whatever its case. */
const struct agent *agent_find(const struct agents *all, struct str name);

#endif
