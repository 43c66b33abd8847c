#ifndef REGISTRY_REGISTRY_H
#define REGISTRY_REGISTRY_H

/* registry: who exists, who may see them, and how they are found.
 *
 * Agents with their cards are records of the store; all of them are in memory
 * too, and beside them an index to search in. A change goes into a tx and
 * takes effect, in memory and in the index, when that is committed: so all
 * three always agree. Whoever brings a card (the API, the command line, the
 * configuration, an agent itself) comes through the same function.
 *
 * An agent's texts are made into vectors when it is written, at once where the
 * model can do that, else in the background; until then it is found by its
 * words alone. They are kept with the model's name and hash, and made anew in
 * the background when the model is another one. A provider that fails is asked
 * again, more and more seldom.
 *
 * For who may not see an agent it is not there.
 *
 * Owns: its tables, their mirror, the index and its snapshot. Borrows: store,
 * embed, access's answers. Threads: the loop's. */

#include "base/id.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/seal.h"
#include "embed/embed.h"
#include "index/index.h"
#include "model/agent.h"
#include "model/card.h"
#include "model/query.h"
#include "model/tx.h"
#include "store/store.h"

struct registry;

extern const struct schema registry_schema;
extern const struct table agent_table, vector_table, grant_table,
    registry_table, reference_table;

enum agent_column {
    AGENT_KEY,    /* the name in lower case */
    AGENT_SHOWN,  /* as it was written */
    AGENT_NUMBER, /* in the index; unique, used again */
    AGENT_CARD,   /* CARD_STORED */
    AGENT_VISIBILITY,
    AGENT_KIND,
    AGENT_CREATOR, /* NULL: the configuration */
    AGENT_ORG,     /* NULL: that of its creator */
    AGENT_IS_CONFIGURED,
    AGENT_REVISION,
    AGENT_CREATED_MS,
    AGENT_UPDATED_MS,
    N_AGENT_COLUMNS,
};

/* The vectors of one agent. */
enum vector_column {
    VECTOR_AGENT,    /* AGENT_KEY; the row goes with that */
    VECTOR_REVISION, /* of the card they were made from */
    VECTOR_MODEL,    /* its name, and */
    VECTOR_HASH,     /* its hash */
    VECTOR_DIMS,
    VECTOR_BYTES, /* packed, one after the other: the agent for search, the
                   * agent for routing, each skill, each skill's examples */
    N_VECTOR_COLUMNS,
};

enum grant_column {
    GRANT_ID,
    GRANT_AGENT, /* AGENT_KEY; the row goes with that */
    GRANT_USER,  /* NULL: it is an org's */
    GRANT_ORG,
    GRANT_EXPIRES_MS, /* NULL: never */
    GRANT_CREATED_MS,
    GRANT_BY,
    N_GRANT_COLUMNS,
};

/* One row: the sequence, one more with every change of the other three. */
enum registry_column {
    REGISTRY_KEY, /* 1 */
    REGISTRY_SEQ,
    REGISTRY_MARK, /* by chance, of the run that made the last change; NULL:
                    * that was before there were marks */
    N_REGISTRY_COLUMNS,
};

/* The vectors of the reference texts by one model; see levels.c. */
enum reference_column {
    REFERENCE_MODEL, /* its name, and */
    REFERENCE_HASH,  /* its hash */
    REFERENCE_TEXTS, /* the sum of the texts */
    REFERENCE_DIMS,
    REFERENCE_BYTES, /* packed, in the order of the texts */
    N_REFERENCE_COLUMNS,
};

struct registry_limits {
    /* Of all together; the configuration's count, and are never refused for
     * what others have. */
    size_t max_agents;          /* registry.maxAgents */
    size_t max_skills;          /* registry.maxSkills */
    size_t max_agents_per_user; /* registry.maxAgentsPerUser; zero: no limit */
    size_t max_bytes_per_user;  /* of cards as they are stored:
                                 * registry.maxCardBytesPerUser; zero: no
                                 * limit */
    /* The same of skills and of the index, and of the users of one org
     * together; zero: no limit. */
    size_t max_skills_per_user, max_index_bytes_per_user;
    size_t max_agents_per_org, max_skills_per_org, max_bytes_per_org,
        max_index_bytes_per_org;
};

struct registry_opts {
    struct loop *loop;
    struct log *log;
    struct store *store;
    struct embed *embed;   /* NULL: by words alone */
    struct strs reference; /* texts that cards get their levels from, borrowed
                            * as long as the registry is there; none: there
                            * are no levels */
    struct id_maker *ids;
    const char *folder; /* for the snapshot; NULL: there is none */
    uint64_t seed[2];
    struct registry_limits limits;
    /* The org of a user, also of one who was removed; empty: none. */
    struct str (*org_of)(void *ctx, struct str user);
    const struct seal_key *seal; /* credentials are sealed with; NULL: with
                                  * nothing. Borrowed */
    const char *seal_from;       /* where it is from, for people */
    bool ignores_wrong_key;      /* agents whose credentials take another key
                                  * are there without them */
    /* Whether a name is the operator's, and that user may not hold it: rules or
     * settings mention it. NULL: there are no such names. */
    bool (*is_kept_from)(void *ctx, struct str name, struct str user);
    /* There is an agent that was not there before. May be NULL. */
    void (*on_new)(void *ctx);
    /* Agents have come, changed or gone. May be NULL. */
    void (*on_change)(void *ctx);
    /* An agent is removed by this tx: for who keeps something of it, to be in
     * the same. May be NULL. */
    void (*on_removal)(void *ctx, struct tx *tx, struct str name,
                       int64_t at_ms);
    /* It is gone, durably. May be NULL. */
    void (*on_removed)(void *ctx, struct str name);
    void *ctx;
};

/* NULL: memory is gone. */
MUST_USE struct registry *registry_new(const struct registry_opts *opts);

/* After the store has given back everything. */
void registry_free(struct registry *r);

/* Read all there is. Once, before the loop runs. ERR_BAD_CONFIG: there is a
 * record that this version does not understand. */
MUST_USE enum err registry_load(struct registry *r, struct why *why);

/* From here on vectors that are missing are made, a progress line in the log.
 * Called when the loop is about to run. */
void registry_begin(struct registry *r);

/* The loop is about to end: what waits for a vector is told ERR_STOPPING, and
 * the snapshot is written. From here on embed may go. */
void registry_stop(struct registry *r);

void registry_set_limits(struct registry *r, const struct registry_limits *l);

/* What the prices of cards may be in, at most AGENT_CURRENCY_MAX bytes:
 * ledger.currency. Before it is set, or empty: anything. */
void registry_set_currency(struct registry *r, struct str currency);

/* A user has another org from now on: what they share goes with them. */
void registry_user_moved(struct registry *r, struct str user);

/* Borrowed until the next change takes effect. */
struct agents registry_agents(const struct registry *r);

/* The agent of that name if they may see it, else NULL. */
const struct agent *registry_find(const struct registry *r, struct str name,
                                  const struct eyes *eyes);

/* As far as it is known: by `state_of` where that is set, else by its address
 * alone. NULL: nobody knows (any more). */
enum agent_state registry_state(const struct registry *r,
                                const struct agent *a);
void registry_set_state_of(struct registry *r,
                           enum agent_state (*state_of)(void *ctx,
                                                        const struct agent *a),
                           void *ctx);

/* It has vectors of the model that is used, made from the card it has now,
 * quick or full: it is found by meaning. */
bool registry_is_embedded(const struct registry *r, const struct agent *a);

/* Changes: each appends to c->tx what it takes, with an entry of the feed that
 * says who and what ("agent.registered", "agent.updated", "agent.removed",
 * "grant.created", "grant.removed"). One change per tx. Once one was taken
 * (OK), registry_settle makes memory and index follow, and must be called
 * whatever became of the tx, also when it was never submitted. A change that
 * says what is there already is taken with is_same: nothing is to be
 * submitted, nothing is written, and it is settled all the same. While one is
 * on its way others see what was before, and the same agent cannot be changed
 * a second time (ERR_BUSY: try again). */
struct registry_change {
    struct tx tx;
    bool is_open;                  /* taken, and not settled yet */
    bool is_same;                  /* there is nothing to submit */
    bool is_new;                   /* the agent was not there before */
    char name[AGENT_NAME_MAX + 1]; /* as shown */
    int64_t revision;              /* it will have */
    struct id grant_id;
    struct registry_step *steps; /* the room's */
    void *ctx;                   /* whoever submits it may use this */
};

void registry_change_init(struct registry_change *c);
void registry_change_fini(struct registry_change *c);

/* Whoever wants it, and on what condition. */
struct registry_by {
    const struct caller *caller; /* NULL: the server itself */
    int64_t now_ms;              /* Unix time */
    bool must_be_new;            /* If-None-Match: * */
    bool must_be_there;
    bool is_self;        /* the agent itself, on the hub; see registry_self */
    int64_t if_revision; /* If-Match; zero: whichever; -1: any that is there */
};

/* Register an agent or replace its card, from JSON. `name` as in card_opts.
 * Who first creates a name owns it: it is changed by its creator and by
 * admins. A new card without visibility is private, an admin's public. Not
 * given by an admin, the creator is who asks (of an agent, its owner), the kind
 * platform for admins, managed for users, self-hosted for agents. What an admin
 * registers for somebody else is managed, and private. A card that
 * replaces another and does not say visibility, creator, org or kind leaves
 * them as they are. What one user may have at most does not bind admins.
 * ERR_BAD_REQUEST, ERR_NOT_ALLOWED: the problems say why (their words live as
 * long as the change), or, where there are none, why does. ERR_EXISTS: the name
 * is somebody's whom they do not see, or is there in another case, or
 * must_be_new. ERR_NAME_RESERVED: it is free, and the operator's.
 * ERR_NOT_FOUND: must_be_there. ERR_PRECONDITION: if_revision. ERR_BUSY,
 * ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err registry_put(struct registry *r, struct registry_change *c,
                               struct str name, const struct json *card,
                               const struct registry_by *by,
                               struct card_problems *problems, struct why *why);

/* Whether who asks may be the agent of that name, on the hub: its creator, who
 * acts for its creator, and admins; of the configuration's agents also the user
 * of role agent who has that very name. *out is it, or NULL: the name is free.
 * ERR_NOT_ALLOWED, ERR_EXISTS (somebody's whom they do not see, or there in
 * another case), ERR_BAD_REQUEST (no name) with words.
 *
 * A card that comes so (is_self) makes a new agent self-hosted, and private
 * unless it may say otherwise and does; its url is ws-agent://…, whatever it
 * was; restart.command and process: are not for it, nor is whose it is, also
 * where an admin brings it; and what stands under delegation already it can
 * only tighten. */
MUST_USE enum err registry_self(const struct registry *r, struct str name,
                                const struct registry_by *by,
                                const struct agent **out, struct why *why);

/* Change some fields (RFC 7396) of an agent that is there. */
MUST_USE enum err registry_patch(struct registry *r, struct registry_change *c,
                                 struct str name, const struct json *patch,
                                 const struct registry_by *by,
                                 struct card_problems *problems,
                                 struct why *why);

/* ERR_NOT_FOUND: not there, or not theirs to see. ERR_NOT_ALLOWED: seen, but
 * another's, or of the configuration. */
MUST_USE enum err registry_remove(struct registry *r, struct registry_change *c,
                                  struct str name, const struct registry_by *by,
                                  struct why *why);

/* The agents of the configuration: these, and none of those it had before. A
 * name that somebody has registered is left alone: that one of the list is not
 * taken, and the log says so. All others, or nothing. ERR_LIMIT: the list by
 * itself is beyond `limits`, which come with the same configuration and need
 * not be set yet (NULL: those that are); what users have does not count. */
MUST_USE enum err registry_configure(struct registry *r,
                                     struct registry_change *c,
                                     const struct agent *list, size_t n,
                                     const struct registry_limits *limits,
                                     int64_t now_ms, struct why *why);

/* Let a user or an org see a shared agent: one of the two is given. The same
 * again with another expiry changes that; ERR_NOT_FOUND, ERR_NOT_ALLOWED as
 * above, but admins may for the configuration's; ERR_BAD_REQUEST; ERR_LIMIT:
 * AGENT_GRANTS_MAX that have not expired. The agent's revision stays. */
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

/* What became of c->tx. OK, or why it is not so: ERR_BUSY when somebody else
 * was first, ERR_OUTCOME_UNKNOWN when the store failed, or what it refused the
 * tx for. */
MUST_USE enum err registry_settle(struct registry *r, struct registry_change *c,
                                  struct why *why);

/* Retention: grants that expired before before_ms. Memory does not wait for
 * it: a grant counts by its time. */
void registry_prune(struct registry *r, struct tx *tx, int64_t before_ms,
                    size_t limit);

/* Searching. */

enum {
    SEARCH_TEXT_MAX = 16 * 1024, /* bytes of a query */
    SEARCH_LIMIT = 10,           /* when none is said */
    SEARCH_LIMIT_MAX = 100,
    SEARCH_CROWD = 10,      /* in so many first places, ... */
    SEARCH_PER_CREATOR = 2, /* ... so many of a creator from outside have theirs
                             * by their score alone */
    SEARCH_WAITING_MAX = 1000, /* searches that wait for their vector */
};

/* How documents are ranked where a search does not say: search.* */
struct registry_ranking {
    double semantic_weight, text_weight; /* zero both: 0.7 and 0.3 */
    enum index_fusion fusion;
    bool is_plain; /* search.order */
};
void registry_set_ranking(struct registry *r, const struct registry_ranking *k);

/* As it is, the weights filled in: to explain answers by. */
struct registry_ranking registry_ranking(const struct registry *r);

/* An answer is in the plain order, by score alone, or one creator is kept from
 * taking the first places by many cards: within the first SEARCH_CROWD, the
 * third agent of a creator, and every further one, is behind those of others
 * that have at least SEARCH_NEARLY of its score. Nobody is left out. Not
 * counted: the requester's own agents, those of their org (who has none, has no
 * such), and those of the platform, which are the admins' and the
 * configuration's. */
#define SEARCH_NEARLY 0.8F

/* Strings may be empty: any. */
struct search {
    struct str text;
    size_t limit; /* 1 to SEARCH_LIMIT_MAX */
    enum index_mode mode;
    bool has_fusion; /* it says which; else as the ranking has it */
    enum index_fusion fusion;
    bool has_order; /* it says which; else admins get the plain one, and others
                     * as the ranking has it */
    bool is_plain;
    struct str tag;         /* skills that have it, whatever the case */
    struct str org;         /* agents of that org */
    enum agent_state state; /* zero: any */
    int64_t max_price;      /* micro-units, of the skill; -1: any */
    double min_score;
    struct eyes eyes;
};

struct search_hit {
    const struct agent *agent;
    float score;
    struct index_match matches[INDEX_MATCHES_MAX]; /* skill: place in
                                                    * agent->skills */
    size_t n_matches;
};

/* Borrowed for the call. */
struct search_result {
    enum err err; /* OK, or ERR_NOMEM, ERR_STOPPING: nothing was searched */
    const struct search_hit *hits;
    size_t n;
    size_t total;         /* that were found, also those beyond the limit */
    enum index_mode mode; /* as it was done */
    struct why note;      /* what is worth knowing: why by words alone
                           * though it was not asked for; how many of
                           * their own agents wait for vectors. Else empty */
};

typedef void search_done(void *ctx, uint64_t id, const struct search_result *r);

/* Search, and call done once: before this returns where nothing need be waited
 * for (*id is then zero), else later, from the loop. Never after
 * search_cancel. A query that cannot be made into a vector within the model's
 * time is searched by its quick vector, if the model has such, else by its
 * words. ERR_BAD_REQUEST: nothing to search for;
 * ERR_LIMIT: too long; ERR_OVERLOADED: too many wait; ERR_STOPPING,
 * ERR_NOMEM; done is then not called. */
MUST_USE enum err registry_search(struct registry *r, const struct search *s,
                                  search_done *done, void *ctx, uint64_t *id,
                                  struct why *why);
void registry_search_cancel(struct registry *r, uint64_t id);

/* Routing: everyone who could get a message, and how near it is to each. */

struct registry_near {
    const struct agent *agent;
    uint32_t number;           /* one for each agent, see registry_number */
    const struct skill *skill; /* the nearest one; NULL: the agent itself */
    float cosine;      /* of the text with what the agent is routed by, 0..1;
                        * below zero: one of them has no vector */
    float text;        /* of its words, 0..1, of its best document */
    bool has_discount; /* else it is zero, and so are the two below */
    float discount;    /* to be taken off unless the requester trusts it: it
                        * is a stranger's, and like everything, or one of many
                        * cards */
    float cosine_over, text_over; /* likewise, of cosine and text: they are the
                                   * best of many skills */
    struct card_level level;      /* of its cosines with the reference texts:
                                   * that for quick queries, if this is one or
                                   * the agent has only quick vectors yet */
    struct str keyword; /* the first of its routing keywords that occurs and
                         * counts; of an outsider (has_discount) for less,
                         * unless its creator is trusted */
};

struct registry_near_query {
    struct eyes eyes;
    struct str text;
    struct str words;  /* compared by words instead of the text, which is
                        * looked through for keywords; empty: the text */
    struct str vector; /* packed, of the index's model, quick or full; empty:
                        * by words alone */

    /* Who is not among the best so many of those that are not DEAD is left out,
     * and a few others are not, the best of the requester's own among them;
     * zero: none is. By this score, which is never less where cosine or text
     * are more, there is a keyword, or discount is less: it is asked of guesses
     * too, and those have neither agent nor skill and a keyword of no meaning.
     */
    size_t best;
    double (*score)(void *ctx, const struct registry_near *near);
    void *ctx;

    bool is_seed;    /* routing.preset "seed": the largest cosine counts, every
                      * agent's keywords do, and there are no discounts */
    bool trusts_all; /* routing.trust "all": nobody is an outsider */
};

/* Those that these eyes see and that are routable, in the order of their names;
 * borrowed until the next call. *n_left: how many were left out. Who of them is
 * DEAD is for whoever chooses to ask, registry_is_there: of thousands only a
 * few come near. ERR_NOMEM. */
MUST_USE enum err registry_near(struct registry *r,
                                const struct registry_near_query *q,
                                const struct registry_near **list, size_t *n,
                                size_t *n_left);

/* How high the card of that name scores for messages of others; below zero
 * while it is not known. That for full queries, if it has full vectors; and
 * that for quick ones. */
struct card_level registry_level(const struct registry *r, struct str name);
struct card_level registry_quick_level(const struct registry *r,
                                       struct str name);

/* Whether full vectors of a model of two parts are worth asking for: not while
 * those of cards are made anew for another model, nor before their levels for
 * full queries are known. Until then everyone is compared by their quick ones,
 * whatever the query's vector is. */
bool registry_has_full(const struct registry *r);

/* Whether a card that these eyes see says each of n words, in any inflection:
 * for correcting typing mistakes. ERR_NOMEM, and then none does. */
MUST_USE enum err registry_says(struct registry *r, const struct eyes *eyes,
                                const struct str *words, size_t n,
                                bool *is_said);

/* The number of an agent; false: there is none. It is the same as long as
 * registry_moves is, and below registry_numbers. */
bool registry_number(const struct registry *r, struct str name, uint32_t *out);
const struct agent *registry_at(const struct registry *r, uint32_t number);

/* Whether it is so of any agent of that creator, by its number. It is looked
 * for once for each question, which has a number that no other has, nor zero:
 * somebody may have thousands of agents, and it is asked of each of them. */
bool registry_any_of(const struct registry *r, struct str creator,
                     uint64_t question, bool (*is)(void *ctx, uint32_t number),
                     void *ctx);
uint64_t registry_moves(const struct registry *r);
size_t registry_numbers(const struct registry *r);

/* The agent that a cannot be told apart from, among the routable ones that
 * these eyes see: one of the same description (*likeness is zero), else the one
 * whose routing profile is nearest, from a cosine of ADVICE_CLOSE on. NULL:
 * none, or memory is short. */
const struct agent *registry_closest(struct registry *r, const struct agent *a,
                                     const struct eyes *eyes, double *likeness);

/* For who looks at cards without a registry (signalbox lint). The texts of a
 * card that are made into vectors, in the arena. ERR_NOMEM. */
MUST_USE enum err registry_texts(struct arena *a, const struct agent *agent,
                                 struct strs *out);

/* And what the index has of those vectors, all of them packed one after the
 * other: the agent's own, one for each skill, and what it is routed by as a
 * whole. quick: of the model's stamp. False: memory is gone, or these are not
 * all. */
MUST_USE bool registry_means(const struct agent *a, struct str packed,
                             uint32_t dims, uint32_t quick, struct buf *out);

struct registry_stats {
    int64_t agents, skills, grants;
    int64_t by_visibility[4]; /* by enum visibility */
    int64_t changes_total;
    int64_t unembedded; /* agents without vectors of this model */
    int64_t embed_failures_total;
    bool has_levels; /* every card with vectors has its level */
    bool is_ready;   /* and every agent has all of its vectors */
    int64_t reference_failures_total; /* the reference texts got no vectors */
    int64_t searches_total, searches_by_words_total; /* though not asked for */
    int64_t seq;
    struct index_stats index;
};

struct registry_stats registry_stats(const struct registry *r);

/* The number of the last change that memory shows; and whether an agent can be
 * sent anything just now, ctx being the registry. */
int64_t registry_version(const struct registry *r);
bool registry_is_there(void *ctx, const struct agent *a);

/* Whether a is the agent that the operator means where rules or settings name
 * it: false where a stranger holds a name of the operator's. ctx is the
 * registry. */
bool registry_is_meant(void *ctx, const struct agent *a);

/* For tests and `doctor`: whether memory, index and store say the same.
 * ERR_INTERNAL with words. Reads everything, at once. */
MUST_USE enum err registry_check(struct registry *r, struct why *why);

#endif
