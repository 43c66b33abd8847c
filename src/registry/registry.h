#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

/* registry: the agents, their visibility, and search.
 *
 * Agents with their cards are records of the store. All of them are in memory
 * too, next to a search index. A change is written in a tx and takes effect in
 * memory and in the index when that commits, so all three always agree. Cards
 * from the API, the command line, the configuration and agents themselves all
 * take the same path.
 *
 * The texts of an agent are made into vectors when it is written, at once if
 * the model is fast enough, else in the background; until then it is found by
 * quick vectors or by its words. Vectors are stored with the name and hash of
 * the model, and rebuilt in the background when the model changes. A provider
 * that fails is retried at growing intervals.
 *
 * An agent that a caller may not see does not exist for that caller.
 *
 * Owns: its tables, their mirror, the index and its snapshot. Borrows: store,
 * embed, the answers of access. Threads: the loop's. */

#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/seal.h"
#include "embed/embed.h"
#include "model/agent.h"
#include "model/card.h"
#include "model/query.h"
#include "model/task.h"
#include "model/tx.h"
#include "registry/index/index.h"
#include "store/store.h"

struct registry;

extern const struct schema registry_schema;
extern const struct table agent_table, vector_table, grant_table, review_table,
    report_table, registry_table, reference_table;

#define AGENT_COLUMNS(C)                                                 \
    C(AGENT_KEY, "name", 1, COLUMN_TEXT)    /* the name in lower case */ \
    C(AGENT_SHOWN, "shown", 1, COLUMN_TEXT) /* as it was written */      \
    /* in the index; unique, reused */                                   \
    C(AGENT_NUMBER, "number", 1, COLUMN_INT)                             \
    C(AGENT_CARD, "card", 1, COLUMN_TEXT) /* CARD_STORED */              \
    C(AGENT_VISIBILITY, "visibility", 1, SERVED(visibility))             \
    C(AGENT_KIND, "kind", 1, SERVED(kind))                               \
    C(AGENT_CREATOR, "creator", 1, COLUMN_TEXT) /* NULL: configured */   \
    C(AGENT_ORG, "org", 1, COLUMN_TEXT) /* NULL: that of its creator */  \
    C(AGENT_IS_CONFIGURED, "is_configured", 1, SERVED(is_configured))    \
    C(AGENT_REVISION, "revision", 1, SERVED(revision))                   \
    C(AGENT_CREATED_MS, "created_ms", 1, SERVED(created_ms))             \
    C(AGENT_UPDATED_MS, "updated_ms", 1, SERVED(updated_ms))

enum agent_column { AGENT_COLUMNS(COLUMN_NUMBER) N_AGENT_COLUMNS };

/* The vectors of one agent. */
#define VECTOR_COLUMNS(C)                                               \
    /* AGENT_KEY; the row goes with that */                             \
    C(VECTOR_AGENT, "agent", 1, COLUMN_TEXT, .child_of = &agent_table)  \
    /* of the card they were made from */                               \
    C(VECTOR_REVISION, "revision", 1, COLUMN_INT)                       \
    C(VECTOR_MODEL, "model", 1, COLUMN_TEXT) /* its name, and */        \
    C(VECTOR_HASH, "hash", 1, COLUMN_TEXT)   /* its hash */             \
    C(VECTOR_DIMS, "dims", 1, COLUMN_INT)                               \
    /* packed, one after the other: the agent for search, the agent for \
     * routing, each skill, each skill's examples */                    \
    C(VECTOR_BYTES, "bytes", 1, COLUMN_BLOB)

enum vector_column { VECTOR_COLUMNS(COLUMN_NUMBER) N_VECTOR_COLUMNS };

#define GRANT_COLUMNS(C)                                              \
    C(GRANT_ID, "id", 1, BOTH(id))                                    \
    /* AGENT_KEY; the row goes with that */                           \
    C(GRANT_AGENT, "agent", 1, COLUMN_TEXT, .child_of = &agent_table) \
    /* NULL: a grant for an org */                                    \
    C(GRANT_USER, "user", 1, BOTH(user), OR_NULL)                     \
    C(GRANT_ORG, "org", 1, BOTH(org), OR_NULL)                        \
    /* NULL: never */                                                 \
    C(GRANT_EXPIRES_MS, "expires_ms", 1, BOTH(expires_ms), OR_NULL)   \
    C(GRANT_CREATED_MS, "created_ms", 1, BOTH(created_ms))            \
    C(GRANT_BY, "by", 1, BOTH(by), OR_NULL)

enum grant_column { GRANT_COLUMNS(COLUMN_NUMBER) N_GRANT_COLUMNS };

/* A card that does not serve, or not yet: see struct review. */
#define REVIEW_COLUMNS(C)                                              \
    /* AGENT_KEY; the row goes with that */                            \
    C(REVIEW_AGENT, "agent", 1, COLUMN_TEXT, .child_of = &agent_table) \
    C(REVIEW_STATE, "state", 1, BOTH(state))                           \
    C(REVIEW_CARD, "card", 1, COLUMN_TEXT) /* as AGENT_CARD */         \
    C(REVIEW_REASON, "reason", 1, BOTH(reason), OR_NULL)               \
    C(REVIEW_BY, "by", 1, BOTH(by), OR_NULL)                           \
    C(REVIEW_AT_MS, "at_ms", 1, BOTH(at_ms))

enum review_column { REVIEW_COLUMNS(COLUMN_NUMBER) N_REVIEW_COLUMNS };

/* A user's complaint about an agent. */
#define REPORT_COLUMNS(C)                                            \
    C(REPORT_ID, "id", 1, BOTH(id))                                  \
    /* AGENT_KEY; the row goes with that */                          \
    C(REPORT_AGENT, "agent", 1, BOTH(key), .child_of = &agent_table) \
    C(REPORT_USER, "user", 1, BOTH(user))                            \
    C(REPORT_REASON, "reason", 1, BOTH(reason))                      \
    C(REPORT_AT_MS, "at_ms", 1, BOTH(at_ms))

enum report_column { REPORT_COLUMNS(COLUMN_NUMBER) N_REPORT_COLUMNS };

/* One row: the sequence, which grows by one with every change of the other
 * tables. */
#define REGISTRY_COLUMNS(C)                                           \
    C(REGISTRY_KEY, "key", 1, COLUMN_INT) /* 1 */                     \
    C(REGISTRY_SEQ, "seq", 1, COLUMN_INT)                             \
    /* random mark of the run that made the last change; NULL: before \
     * there were marks */                                            \
    C(REGISTRY_MARK, "mark", 2, COLUMN_INT)

enum registry_column { REGISTRY_COLUMNS(COLUMN_NUMBER) N_REGISTRY_COLUMNS };

/* The vectors of the reference texts by one model; see levels.c. */
#define REFERENCE_COLUMNS(C)                                            \
    C(REFERENCE_MODEL, "model", 1, COLUMN_TEXT) /* its name, and */     \
    C(REFERENCE_HASH, "hash", 1, COLUMN_TEXT)   /* its hash */          \
    C(REFERENCE_TEXTS, "texts", 1, COLUMN_INT)  /* hash of the texts */ \
    C(REFERENCE_DIMS, "dims", 1, COLUMN_INT)                            \
    /* packed, in the order of the texts */                             \
    C(REFERENCE_BYTES, "bytes", 1, COLUMN_BLOB)

enum reference_column { REFERENCE_COLUMNS(COLUMN_NUMBER) N_REFERENCE_COLUMNS };

struct registry_limits {
    /* Totals. Configured agents count, and are never rejected because of what
     * users have. */
    size_t max_agents;          /* registry.maxAgents */
    size_t max_skills;          /* registry.maxSkills */
    size_t max_agents_per_user; /* registry.maxAgentsPerUser; zero: no limit */
    size_t max_bytes_per_user; /* of stored cards: registry.maxCardBytesPerUser;
                                * zero: no limit */
    /* The same for skills and index bytes, and for all users of an org
     * together; zero: no limit. */
    size_t max_skills_per_user, max_index_bytes_per_user;
    size_t max_agents_per_org, max_skills_per_org, max_bytes_per_org,
        max_index_bytes_per_org;
    /* Published documents (agents and skills) of owners that others search:
     * registry.maxSearched; zero: no limit. */
    size_t max_searched;
    /* Agents and skills that one user may register or change, with a burst of
     * twice as many; zero: no limit. */
    size_t skills_per_minute;
};

struct registry_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct embed *embed;   /* NULL: search by words only */
    struct strs reference; /* texts that the levels of cards come from, borrowed
                            * for the life of the registry; none: no levels */
    struct id_maker *ids;
    const char *folder; /* of the snapshot; NULL: none */
    uint64_t seed[2];
    struct registry_limits limits;
    /* The org of a user, also of a removed one; empty: none. */
    struct str (*org_of)(void *ctx, struct str user);
    const struct seal_key
        *seal;              /* seals credentials; NULL: not sealed. Borrowed */
    const char *seal_from;  /* origin of the key, for messages */
    bool ignores_wrong_key; /* agents whose credentials need another key are
                             * loaded without them */
    /* Whether a name is reserved for the operator and that user may not have
     * it: rules or settings mention it. NULL: no such names. */
    bool (*is_kept_from)(void *ctx, struct str name, struct str user);
    /* A new agent exists. May be NULL. */
    void (*on_new)(void *ctx);
    /* Agents have come, changed or gone. May be NULL. */
    void (*on_change)(void *ctx);
    /* This tx removes an agent: append the removal of dependent records. May be
     * NULL. */
    void (*on_removal)(void *ctx, struct tx *tx, struct str name,
                       int64_t at_ms);
    /* The removal is durable. May be NULL. */
    void (*on_removed)(void *ctx, struct str name);
    void *ctx;
};

/* NULL: no memory for the index. */
MUST_USE struct registry *registry_new(const struct registry_opts *opts);

/* Call after the store has returned every tx. */
void registry_free(struct registry *r);

/* Load everything. Once, before the loop runs. ERR_BAD_CONFIG: a record that
 * this version does not understand. */
MUST_USE enum err registry_load(struct registry *r, struct why *why);

/* Start making missing vectors, with progress in the log. Call when the loop is
 * about to run. */
void registry_begin(struct registry *r);

/* Call when the loop is about to end: searches that wait for a vector fail with
 * ERR_STOPPING, and the snapshot is written. Embed may be freed afterwards. */
void registry_stop(struct registry *r);

void registry_set_limits(struct registry *r, const struct registry_limits *l);

/* The currency of prices in cards, at most AGENT_CURRENCY_MAX bytes:
 * ledger.currency. Empty or not set: any. */
void registry_set_currency(struct registry *r, struct str currency);

/* registry.review: whether a card that a user wants public waits for an admin.
 * Public cards stay public. */
void registry_set_review(struct registry *r, bool is_reviewed);

/* A user has changed orgs: shared agents move along. */
void registry_user_moved(struct registry *r, struct str user);

/* Borrowed until the next change takes effect. */
struct agents registry_agents(const struct registry *r);

/* The agent of that name, or NULL; and the one that carries t: NULL as well if
 * the name has passed to another owner since t was accepted. Borrowed
 * likewise. */
const struct agent *registry_agent(const struct registry *r, struct str name);
const struct agent *registry_agent_for(const struct registry *r,
                                       const struct task *t);

/* The agent of that name if these eyes see it, else NULL. */
const struct agent *registry_find(const struct registry *r, struct str name,
                                  const struct eyes *eyes);

/* The state of an agent: from `state_of` if set, else from its address only.
 * NULL: reset to that. */
enum agent_state registry_state(const struct registry *r,
                                const struct agent *a);
void registry_set_state_of(struct registry *r,
                           enum agent_state (*state_of)(void *ctx,
                                                        const struct agent *a),
                           void *ctx);

/* Whether it has vectors of the present model and card, quick or full, and so
 * is found by meaning. */
bool registry_is_embedded(const struct registry *r, const struct agent *a);

/* Changes. Each appends its operations to c->tx, with an entry of the feed
 * ("agent.registered", "agent.updated", "agent.removed", "grant.created",
 * "grant.removed"). One change per tx. After OK, registry_settle makes memory
 * and index follow, and must be called whatever became of the tx, even if it
 * was never submitted. A change to the present state is accepted with is_same:
 * nothing is to be submitted or written, but it is settled all the same. While
 * a change is pending others see the previous state, and the same agent cannot
 * be changed again (ERR_BUSY: try again). */
struct registry_change {
    struct tx tx;
    bool is_open;                  /* taken, not settled yet */
    bool is_same;                  /* nothing to submit */
    bool is_new;                   /* the agent is new */
    char name[AGENT_NAME_MAX + 1]; /* as shown */
    int64_t revision;              /* after the change */
    struct id grant_id;
    struct registry_step *steps; /* internal */
    void *ctx;                   /* for the submitter */
};

void registry_change_init(struct registry_change *c);
void registry_change_fini(struct registry_change *c);

/* The requester of a change, and its conditions. */
struct registry_by {
    const struct caller *caller; /* NULL: the server itself */
    int64_t now_ms;              /* Unix time */
    bool must_be_new;            /* If-None-Match: * */
    bool must_be_there;
    bool is_self;        /* the agent itself, on the hub; see registry_self */
    int64_t if_revision; /* If-Match; zero: any or none; -1: any existing */
};

/* Register an agent or replace its card, from JSON. `name` as in card_opts.
 *
 * The user who first creates a name owns it: only the creator and admins may
 * change it. A new card without visibility is private, an admin's public.
 * Defaults, where an admin sets none: the creator is the caller (of an agent,
 * its owner), the kind is platform for admins, managed for users, self-hosted
 * for agents. An agent that an admin registers for another user is managed and
 * private. A card that replaces another and lacks visibility, creator, org or
 * kind keeps them. Limits per user do not apply to admins.
 *
 * ERR_BAD_REQUEST, ERR_NOT_ALLOWED: the problems give the reasons (their
 * strings live as long as the change), or, if there are none, why does.
 * ERR_EXISTS: the name belongs to an agent that the caller cannot see, or
 * exists in another case, or must_be_new. ERR_NAME_RESERVED: free, but reserved
 * for the operator. ERR_NOT_FOUND: must_be_there. ERR_PRECONDITION:
 * if_revision. ERR_BUSY, ERR_LIMIT, ERR_RATE_LIMITED, ERR_NOMEM. */
MUST_USE enum err registry_put(struct registry *r, struct registry_change *c,
                               struct str name, const struct json *card,
                               const struct registry_by *by,
                               struct card_problems *problems, struct why *why);

/* Whether the caller may be the agent of that name on the hub: allowed are its
 * creator, an agent that acts for its creator, and admins; for a configured
 * agent also the user of role agent with that very name. *out is the agent, or
 * NULL if the name is free. ERR_NOT_ALLOWED, ERR_EXISTS (an agent that the
 * caller cannot see, or another case), ERR_BAD_REQUEST (no name), explained in
 * why.
 *
 * A card that arrives this way (is_self) makes a new agent self-hosted, and
 * private unless the caller may set and sets another visibility. Its url
 * becomes ws-agent://…. It cannot set restart.command, process: or the owner,
 * even if an admin brings it, and it can only tighten an existing
 * delegation. */
MUST_USE enum err registry_self(const struct registry *r, struct str name,
                                const struct registry_by *by,
                                const struct agent **out, struct why *why);

/* Change some fields (RFC 7396) of an existing agent. Errors as
 * registry_put. */
MUST_USE enum err registry_patch(struct registry *r, struct registry_change *c,
                                 struct str name, const struct json *patch,
                                 const struct registry_by *by,
                                 struct card_problems *problems,
                                 struct why *why);

/* ERR_NOT_FOUND: none, or not visible. ERR_NOT_ALLOWED: visible, but of another
 * user or configured. */
MUST_USE enum err registry_remove(struct registry *r, struct registry_change *c,
                                  struct str name, const struct registry_by *by,
                                  struct why *why);

/* Set the agents of the configuration; previous ones that are missing are
 * removed. A name that a user has registered is skipped, and the log says so.
 * Otherwise all or nothing. ERR_LIMIT: the list alone exceeds `limits`, which
 * belong to the same configuration and may not be set yet (NULL: the present
 * ones); agents of users do not count. */
MUST_USE enum err registry_configure(struct registry *r,
                                     struct registry_change *c,
                                     const struct agent *list, size_t n,
                                     const struct registry_limits *limits,
                                     int64_t now_ms, struct why *why);

/* Let a user or an org see a shared agent: one of the two is given. The same
 * grant with another expiry replaces that. ERR_NOT_FOUND, ERR_NOT_ALLOWED as
 * above, but admins may grant configured agents; ERR_BAD_REQUEST; ERR_LIMIT:
 * AGENT_GRANTS_MAX unexpired ones. The revision of the agent stays. */
struct registry_grant {
    struct str agent, user, org;
    int64_t expires_ms; /* zero: never */
};
MUST_USE enum err registry_grant(struct registry *r, struct registry_change *c,
                                 const struct registry_grant *g,
                                 const struct registry_by *by, struct why *why);
MUST_USE enum err registry_ungrant(struct registry *r,
                                   struct registry_change *c, struct str id,
                                   const struct registry_by *by,
                                   struct why *why);

/* Review.
 *
 * While registry.review is on, a card that a user wants public waits for the
 * approval of an admin: agent.review has the wanted card, and the agent serves
 * with its previous one. An agent that is not public yet takes the new card at
 * once and stays as visible as it was. Cards of admins and of the configuration
 * never wait.
 *
 * An agent that an admin hides serves only its creator and admins, whatever its
 * creator writes, until an admin approves it. That works without
 * registry.review too. */
enum review_verdict { REVIEW_APPROVE, REVIEW_REJECT, REVIEW_HIDE };

/* Like the changes above, with "agent.approved", "agent.rejected" or
 * "agent.hidden". REVIEW_APPROVE applies the wanted card and needs
 * by->if_revision: an admin approves the card that was read. REVIEW_REJECT
 * keeps it for its creator to see; the same card again does not wait again.
 * REVIEW_HIDE drops the reports of the agent. ERR_NOT_ALLOWED: not an admin, or
 * a configured agent. ERR_BAD_REQUEST: no revision, or the reason is too long.
 * ERR_PRECONDITION: nothing waits, or if_revision. Others as registry_put. */
MUST_USE enum err registry_judge(struct registry *r, struct registry_change *c,
                                 struct str name, enum review_verdict verdict,
                                 struct str reason,
                                 const struct registry_by *by, struct why *why);

/* Reports: complaints of users, for admins. */
enum {
    REPORTS_MAX = 10000, /* for all agents together */
    REPORTS_PER_AGENT = 100,
    REPORTS_PER_USER = 100,
};

struct registry_report {
    struct str agent, user, reason;
    int64_t at_ms;
};

/* Report a visible agent; a second report of the same agent by the same user
 * replaces the first. ERR_NOT_FOUND, ERR_BAD_REQUEST (no reason or too long;
 * the own agent), ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err registry_report(struct registry *r, struct registry_change *c,
                                  struct str name, struct str reason,
                                  const struct registry_by *by,
                                  struct why *why);

/* Remove the reports of an agent, which an admin has read. ERR_NOT_FOUND,
 * ERR_NOT_ALLOWED, ERR_PRECONDITION: there are none. */
MUST_USE enum err registry_dismiss_reports(struct registry *r,
                                           struct registry_change *c,
                                           struct str name,
                                           const struct registry_by *by,
                                           struct why *why);

/* The number of reports of an agent; and the oldest `max` of them, borrowed
 * until the next change. */
size_t registry_n_reports(const struct registry *r, const struct agent *a);
size_t registry_reports(const struct registry *r, const struct agent *a,
                        struct registry_report *out, size_t max);

/* Settle a change by the result of c->tx. Errors: ERR_BUSY when another change
 * came first, ERR_OUTCOME_UNKNOWN when the store failed, or the reason of the
 * store. */
MUST_USE enum err registry_settle(struct registry *r, struct registry_change *c,
                                  struct why *why);

/* Retention: delete grants that expired before before_ms. Memory does not wait
 * for it: a grant counts by its expiry. */
void registry_prune(struct registry *r, struct tx *tx, int64_t before_ms,
                    size_t limit);

enum {
    SEARCH_TEXT_MAX = 16 * 1024, /* bytes of a query */
    SEARCH_LIMIT = 10,           /* default */
    SEARCH_LIMIT_MAX = 100,
    SEARCH_CROWD = 10, /* in the first SEARCH_CROWD places, ... */
    SEARCH_PER_CREATOR =
        2, /* ... so many of a creator from outside are ranked by score alone */
    SEARCH_WAITING_MAX = 1000, /* searches waiting for their vector */
};

/* The ranking of searches that set none: search.* */
struct registry_ranking {
    double semantic_weight, text_weight; /* both zero: 0.7 and 0.3 */
    enum index_fusion fusion;
    bool is_plain; /* search.order */
};
void registry_set_ranking(struct registry *r, const struct registry_ranking *k);

/* The present ranking with its weights filled in, to explain answers. */
struct registry_ranking registry_ranking(const struct registry *r);

/* The plain order is by score alone. Otherwise one creator cannot take the
 * first places by many cards: within the first SEARCH_CROWD, from the third
 * agent of a creator on, each follows agents of others that have at least
 * SEARCH_NEARLY of its score. None is left out. Not counted are the requester's
 * own agents, those of their org (if they have one), and those of the platform,
 * which are those of admins and of the configuration. */
#define SEARCH_NEARLY 0.8F

/* Empty strings: any. */
struct search {
    struct str text;
    size_t limit; /* 1 to SEARCH_LIMIT_MAX */
    enum index_mode mode;
    bool has_fusion; /* set; else from the ranking */
    enum index_fusion fusion;
    bool has_order; /* set; else plain for admins, and from the ranking for
                     * others */
    bool is_plain;
    struct str tag;         /* skills with this tag, ignoring case */
    struct str org;         /* agents of this org */
    enum agent_state state; /* zero: any */
    int64_t max_price;      /* micro-units, of the skill; -1: any */
    double min_score;
    struct eyes eyes;
};

struct search_hit {
    const struct agent *agent;
    float score;
    /* skill: index in agent->skills */
    struct index_match matches[INDEX_MATCHES_MAX];
    size_t n_matches;
};

/* Borrowed for the call. */
struct search_result {
    enum err err; /* OK, or ERR_NOMEM, ERR_STOPPING: no search was made */
    const struct search_hit *hits;
    size_t n;
    size_t total;         /* agents found, also beyond the limit */
    enum index_mode mode; /* the mode that was used */
    /* notes: the reason of an unrequested search by words; the number of own
     * agents that wait for vectors. Else empty */
    struct why note;
};

typedef void search_done(void *ctx, uint64_t id, const struct search_result *r);

/* Search, and call done once: before this returns if no wait is needed (*id is
 * then zero), else later, from the loop. Never after registry_search_cancel. A
 * query without a vector within the time limit of the model is searched by its
 * quick vector, if the model has those, else by its words. ERR_BAD_REQUEST: an
 * empty query; ERR_LIMIT: too long; ERR_OVERLOADED: too many wait;
 * ERR_STOPPING, ERR_NOMEM; done is then not called. */
MUST_USE enum err registry_search(struct registry *r, const struct search *s,
                                  search_done *done, void *ctx, uint64_t *id,
                                  struct why *why);
void registry_search_cancel(struct registry *r, uint64_t id);

/* Routing: all agents that could get a message, and the similarity of each. */

struct registry_near {
    const struct agent *agent;
    uint32_t number;           /* unique number, see registry_number */
    const struct skill *skill; /* the nearest one; NULL: the agent itself */
    float cosine; /* of the text and the profile of the agent, 0..1; negative:
                   * one of them has no vector */
    float text;   /* of its words, 0..1, of its best document */
    bool has_discount; /* else the next three are zero */
    float discount; /* subtract unless the requester trusts it: it is a stranger
                     * and generic, or one of many cards */
    float cosine_over,
        text_over; /* likewise, from cosine and text: the best of many skills */
    struct card_level level; /* of its cosines with the reference texts: the
                              * level for quick queries, if this is one or the
                              * agent has only quick vectors yet */
    struct str keyword; /* its first routing keyword that occurs and counts;
                         * that of an outsider (has_discount) counts less,
                         * unless its creator is trusted */
};

struct registry_near_query {
    struct eyes eyes;
    struct str text;
    struct str words;  /* compared by words instead of the text, which is
                        * searched for keywords; empty: the text */
    struct str vector; /* packed, of the model of the index, quick or full;
                        * empty: by words only */

    /* Agents that are not among the `best` of those that are not DEAD are left
     * out, except for a few, such as the best of the requester's own; zero:
     * none is left out. `score` must be monotonic: not lower where cosine or
     * text is higher, there is a keyword, or discount is lower. It is also
     * called with guesses, which have neither agent nor skill, and a keyword
     * without meaning. */
    size_t best;
    double (*score)(void *ctx, const struct registry_near *near);
    void *ctx;

    bool is_seed; /* routing.preset "seed": the largest cosine counts, so do the
                   * keywords of all agents, and there are no discounts */
    bool trusts_all; /* routing.trust "all": there are no outsiders */
};

/* The routable agents that these eyes see, by name; borrowed until the next
 * call. *n_left: the number left out. The caller checks which are DEAD
 * (registry_is_there), because of thousands only a few come near. ERR_NOMEM. */
MUST_USE enum err registry_near(struct registry *r,
                                const struct registry_near_query *q,
                                const struct registry_near **list, size_t *n,
                                size_t *n_left);

/* The level of a card: how high it scores for messages of others; negative
 * while unknown. For full queries, if it has full vectors; and for quick
 * queries. */
struct card_level registry_level(const struct registry *r, struct str name);
struct card_level registry_quick_level(const struct registry *r,
                                       struct str name);

/* Whether full vectors of a model of two parts are worth requesting: not while
 * those of cards are rebuilt for another model, nor before their levels for
 * full queries are known. Until then all are compared by their quick vectors,
 * whatever the vector of the query. */
bool registry_has_full(const struct registry *r);

/* Whether a visible card contains each of n words, in any inflection: for
 * correcting typing mistakes. ERR_NOMEM: all false. */
MUST_USE enum err registry_says(struct registry *r, const struct eyes *eyes,
                                const struct str *words, size_t n,
                                bool *has_word);

/* The number of an agent; false: no such agent. Valid as long as registry_moves
 * stays the same, and below registry_numbers. */
bool registry_number(const struct registry *r, struct str name, uint32_t *out);
const struct agent *registry_at(const struct registry *r, uint32_t number);

/* Whether `is` holds for any agent of that creator, by number. The result is
 * cached by `question`, a unique non-zero number, because a creator may have
 * thousands of agents and it is asked for each of them. */
bool registry_any_of(const struct registry *r, struct str creator,
                     uint64_t question, bool (*is)(void *ctx, uint32_t number),
                     void *ctx);
uint64_t registry_moves(const struct registry *r);
size_t registry_numbers(const struct registry *r);

/* The visible, routable agent that is hard to tell apart from a: one with the
 * same description (*likeness is zero), else the one with the nearest routing
 * profile, from a cosine of ADVICE_CLOSE on. NULL: none, or no memory. */
const struct agent *registry_closest(struct registry *r, const struct agent *a,
                                     const struct eyes *eyes, double *likeness);

/* For programs without a registry (signalbox lint): the texts of a card that
 * are made into vectors, in the arena. ERR_NOMEM. */
MUST_USE enum err registry_texts(struct arena *a, const struct agent *agent,
                                 struct strs *out);

/* The vectors that the index takes, made from those of all texts, packed one
 * after the other: the agent, each skill, and the profile. quick: of the stamp
 * of the model. False: no memory, or not all vectors. */
MUST_USE bool registry_means(const struct agent *a, struct str packed,
                             uint32_t dims, uint32_t quick, struct buf *out);

struct registry_stats {
    int64_t agents, skills, grants;
    int64_t by_visibility[4]; /* by enum visibility */
    int64_t by_review[4];     /* agents by enum review_state; zero: none */
    int64_t reports;
    int64_t changes_total;
    int64_t unembedded; /* agents without vectors of this model */
    int64_t embed_failures_total;
    bool has_levels; /* every card with vectors has its level */
    bool is_ready;   /* and every agent has all vectors */
    /* failures to embed the reference texts */
    int64_t reference_failures_total;
    int64_t searches_total, searches_by_words_total; /* though not requested */
    int64_t seq;
    struct index_stats index;
};

struct registry_stats registry_stats(const struct registry *r);

/* The sequence number of the last change in memory; and whether an agent can
 * get messages now, ctx being the registry. */
int64_t registry_version(const struct registry *r);
bool registry_is_there(void *ctx, const struct agent *a);

/* Whether rules and settings that name a mean this agent: false if a stranger
 * has a name that is reserved for the operator. ctx is the registry. */
bool registry_is_meant(void *ctx, const struct agent *a);

/* For tests and `doctor`: whether memory, index and store agree. ERR_INTERNAL,
 * explained in why. Reads everything, at once. */
MUST_USE enum err registry_check(struct registry *r, struct why *why);

#endif
