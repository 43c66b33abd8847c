#ifndef REGISTRY_INTERNAL_H
#define REGISTRY_INTERNAL_H

/* Shared by the files of registry/:
 *
 *   registry.c            the mirror: entries by name, in order, by number
 *   agent_entry.c         one agent in memory, and its owner
 *   registry_load.c       loading from the store
 *   registry_snapshot.c   the index as a file, from one start to the next
 *   registry_change.c     cards: put, patch, remove
 *   configure.c           the agents of the configuration, all at once
 *   self.c                agents that register themselves
 *   grant.c               users and orgs that may see a shared agent
 *   review.c              cards that wait for an admin, and the decision
 *   report.c              complaints of users
 *   holding.c             resources of one owner and one org
 *   pace.c                how fast one user may register
 *   front.c               the public cards that strangers search
 *   step.c                the effect of a change on one agent
 *   sealed.c              credentials in the rows of cards
 *   registry_feed.c       feed entries of changes
 *   lost.c                agents that could not be kept in the index
 *   vectors.c             texts to vectors, and vectors to rows and back
 *   backlog.c             vectors that are made in the background
 *   vectors_job.c         the background job of one agent
 *   levels.c              the reference vectors, from which cards get levels
 *   registry_search.c     from a query to its results
 *   ranked.c              visibility, ranking, and the rule of two
 *   keywords.c            the routing keywords that occur in a text
 *   registry_near.c       all agents that could get a message, by similarity
 *   closest.c             the card closest to another one
 *   registry_check.c      whether memory, index and store agree
 */

#include "base/list.h"
#include "base/rate.h"
#include "base/share.h"
#include "model/record.h"
#include "registry/registry.h"

/* Resources counted by owner and by org; holding.c. */
enum held {
    HELD_AGENTS,
    HELD_SKILLS,
    HELD_CARD_BYTES, /* as stored */
    HELD_INDEX_BYTES,
    N_HELD,
};

struct holding {
    size_t of[N_HELD];
};

/* The order of the backlog (backlog.c): each owner with work has a turn;
 * configured agents share one. */
struct backlog_turn {
    struct list_node node; /* in vectors.turns, if there is work */
    struct list todo;      /* entries */
    struct list ready;     /* jobs that may request their next texts */
    size_t n_jobs;
};

/* A user with agents, found by name in any case. */
struct owner {
    struct share share; /* of the entries that point here */
    struct backlog_turn turn;
    struct holding held;      /* including pending ones */
    size_t n_awaited;         /* agents that wait for vectors */
    size_t n_public, n_front; /* front.c: documents */
    struct list entries;      /* in the mirror */
    uint64_t question;        /* registry_any_of: the last one, and */
    bool answer;              /* its answer */
};

/* The same for one org. */
struct org_count {
    struct share share; /* of the entries that point here */
    struct holding held;
};

/* The grants of one agent: replaced as a whole, apart from its card. */
struct grants {
    struct arena arena;
    struct agent_grant *list;
    size_t n, room;
    struct entry *entry; /* their agent; NULL: not set yet */
    size_t n_listed;     /* of the list, in registry.grants */
};

/* One agent in memory. A change replaces it as a whole, so across turns hold
 * its name instead. */
struct entry {
    struct agent agent; /* first: an agent is its entry */
    struct arena arena; /* of everything in it */

    /* Contiguous, because every message reads these of every entry. */
    uint32_t number;        /* in the index */
    uint32_t found_keyword; /* keywords.c: index in agent.routing.keywords of
                             * the first keyword */
    uint64_t found_in;      /* found in the text with this serial */
    bool is_unroutable;     /* from the card */
    bool is_claimed;        /* a change is pending */
    bool is_aside;          /* front.c */

    struct str key;   /* the name in lower case */
    bool has_own_org; /* set by an admin or the configuration; else the org
                       * follows the creator */
    char org[PRINCIPAL_NAME_MAX + 1]; /* agent.org points here */
    struct holding size;              /* its resources */
    struct owner *owner;              /* its owner; NULL: none */
    struct holding counted;           /* in owner->held */
    struct org_count *in_org;         /* of agent.org; NULL: none */
    struct holding org_counted;       /* in in_org->held */
    struct list_node owned;           /* in owner->entries */
    struct grants *grants;            /* agent.grants points into it */
    bool is_lost;                     /* lost.c: not in the index */

    /* keywords.c */
    struct keyword *keywords;
    size_t n_keywords;

    /* vectors.c */
    bool is_embedded;        /* its full vectors are in the index */
    struct list_node todo;   /* in todo of its turn, or in vectors.later */
    struct vectors_job *job; /* or its running job */
    bool is_outdated;        /* it had vectors, of another model */
    unsigned n_refusals;     /* rejections of its own texts in a row */
    int64_t due_ms;          /* time of the next try after that */
    bool is_unsealed;        /* its row or its review has unsealed secrets */
    size_t n_reports;        /* report.c */
    int64_t kept_until_ms;   /* review.c: reserved for admins until then */
};

static inline struct entry *agent_entry(const struct agent *a)
{
    return (struct entry *)a;
}

/* The mirror (registry.c). */

/* Fill in the defaults of zero limits. */
struct registry_limits limits_fill(const struct registry_limits *l);

/* Ignores case. NULL: no such agent, or not yet. */
struct entry *entry_find(const struct registry *r, struct str name);

/* Make room for `n` more than there are and are pending, so that mirror_put
 * cannot fail. ERR_NOMEM. */
MUST_USE enum err mirror_reserve(struct registry *r, size_t n);

/* Put e in and return the entry that it replaces, owned. */
struct entry *mirror_put(struct registry *r, struct entry *e);
struct entry *mirror_take(struct registry *r, struct str key);

/* Resize p to n elements of `size`. An array with an element per agent may be
 * large: NULL without memory, p is unchanged. */
void *registry_grow(void *p, size_t n, size_t size);

/* The same for an array in a variable; false without memory. */
#define REGISTRY_GROW(array, n)                                               \
    ({                                                                        \
        void *registry_grown = registry_grow((array), (n), sizeof(*(array))); \
                                                                              \
        if (registry_grown)                                                   \
            (array) = registry_grown;                                         \
        registry_grown != NULL;                                               \
    })

/* Take a free number, and give it back. mirror_reserve made room. */
uint32_t number_claim(struct registry *r);
void number_release(struct registry *r, uint32_t number);

/* An entry (agent_entry.c). */

/* Make an entry from a stored card. It is not in the mirror, not counted, and
 * has no number and no grants. ERR_SYNTAX: not a card; ERR_NOMEM. */
MUST_USE enum err entry_new(struct registry *r, struct str stored,
                            struct str creator, struct str own_org,
                            struct entry **out);

/* Free an entry, its part of the counts, and its grants. NULL is fine. */
void agent_entry_free(struct registry *r, struct entry *e);

/* CARD_STORED of an agent into `out`. ERR_NOMEM. */
MUST_USE enum err entry_write(const struct agent *a, struct buf *out);

/* Update the org of an entry in the mirror to that of its creator. Returns
 * whether it changed. */
bool entry_refresh_org(struct registry *r, struct entry *e);

/* Count e for its creator, unless it is configured. If `before` (may be NULL)
 * has the same owner, only the excess is counted; owner_follow takes over the
 * rest when e replaces it. ERR_NOMEM. */
MUST_USE enum err owner_take(struct registry *r, struct entry *e,
                             const struct entry *before);
void owner_follow(struct entry *e, struct entry *before);

/* holding.c: the same for its org, after its owner. */
MUST_USE enum err org_take(struct registry *r, struct entry *e,
                           const struct entry *before);
void org_follow(struct entry *e, struct entry *before);
void org_drop(struct registry *r, struct entry *e);
/* Its org has changed. */
void org_move(struct registry *r, struct entry *e);
struct org_count *org_count_find(const struct registry *r, struct str org);

struct holding holding_of(const struct registry *r, const struct agent *a,
                          size_t card_bytes);
bool holding_is(const struct holding *a, const struct holding *b);
/* e takes that many more bytes of cards, counted yet or not. */
void holding_count_more(struct entry *e, size_t card_bytes);
void holding_add(struct holding *to, const struct holding *more);
void holding_subtract(struct holding *from, const struct holding *less);
/* The excess of `size` over `had` (may be NULL: nothing). */
struct holding holding_beyond(const struct holding *size,
                              const struct holding *had);

/* Whether e, in place of `before` (may be NULL), is within the limits of its
 * user and its org. ERR_LIMIT. */
MUST_USE enum err holding_check(const struct registry *r, const struct entry *e,
                                const struct entry *before, struct why *why);

/* pace.c: count an incoming card, whatever becomes of it; and give most of it
 * back because it was unchanged. ERR_RATE_LIMITED. Open and close are part of
 * registry_new and registry_free. */
MUST_USE enum err pace_take(struct registry *r, const struct registry_by *by,
                            size_t n_skills, struct why *why);
void pace_was_same(struct registry *r, const struct registry_by *by,
                   size_t n_skills);
void pace_open(struct registry *r);
void pace_close(struct registry *r);

/* front.c. An entry enters or leaves the mirror; a new one is in front until
 * front_owner has looked. front_settle: after changes, and when the limit
 * changes. */
void front_add(struct registry *r, struct entry *e);
void front_take(struct registry *r, struct entry *e);
void front_owner(struct registry *r, struct owner *o);
void front_settle(struct registry *r);
struct index_class front_class(const struct entry *e);

struct owner *owner_find(const struct registry *r, struct str creator);
/* Whether both have the same creator, and one at all. */
bool owner_is_same(const struct entry *a, const struct entry *b);

void agent_key(struct str name, char out[AGENT_NAME_MAX + 1]);

/* Grants (grant.c). */
/* NULL is fine. */
void grants_free(struct registry *r, struct grants *g);
/* Replace the grants of e and free the old ones. Needs room in registry.grants:
 * grants_reserve makes room for one more and keeps it until it is released. */
void entry_set_grants(struct registry *r, struct entry *e, struct grants *g);
MUST_USE enum err grants_reserve(struct registry *r);
/* A copy of `from` (may be NULL) without grants that expired before now_ms, and
 * with room for `more`. */
MUST_USE struct grants *grants_copy(const struct grants *from, size_t more,
                                    int64_t now_ms);
/* Copies the strings. ERR_NOMEM: they are too long. */
MUST_USE enum err grants_add(struct grants *g, const struct agent_grant *one);
MUST_USE enum err entry_add_grant(struct registry *r, struct entry *e,
                                  const struct agent_grant *one);

/* Call `each` for all rows of a table whose key is a name or an id, in its
 * order, until an error (registry_load.c). */
MUST_USE enum err rows_each(struct registry *r, const struct table *table,
                            enum err (*each)(struct registry *r,
                                             const struct row *row, void *ctx,
                                             struct why *why),
                            void *ctx, struct why *why);

/* Steps (step.c): the effect of a change on one agent. */
enum step_kind {
    STEP_PUT,
    STEP_REMOVE,
    STEP_GRANTS,
    STEP_REPORT, /* its key is not the name of an agent */
    STEP_DISMISS,
};

struct registry_step {
    struct registry_step *next;
    enum step_kind kind;
    struct str key;
    bool is_new;                 /* STEP_PUT: the name was free */
    size_t n_skills_more;        /* claimed from the limit */
    struct entry *entry;         /* STEP_PUT: the new entry */
    struct index_change *change; /* STEP_PUT: its index change */
    uint32_t dims;               /* of its vectors */
    struct grants *grants;       /* STEP_GRANTS */
    bool has_room;               /* claimed with grants_reserve */
    bool drops_reports;          /* STEP_PUT: of the agent */
    struct report *report;       /* STEP_REPORT */
    char bytes[];                /* of key */
};

/* Claim a name. The step is in c, and is settled or dropped with it. ERR_BUSY:
 * claimed by another change; ERR_NOMEM. */
MUST_USE enum err step_add(struct registry *r, struct registry_change *c,
                           enum step_kind kind, struct str key,
                           struct registry_step **out, struct why *why);

/* Undo all steps. */
void steps_drop(struct registry *r, struct registry_change *c);

/* A step that puts e in (takes it, also on error): index, vectors, number,
 * limits, its row and the feed entry. `before` may be NULL. */
struct step_put {
    struct entry *entry, *before;
    struct str by; /* a name; empty: the server */
    int64_t now_ms;
    bool is_limited;   /* to the limits of one user */
    bool is_unbound;   /* not even to the total limits */
    bool keeps_card;   /* the serving card is that of before */
    const char *event; /* feed event instead of "agent.updated" */
    struct str reason; /* with it, */
    bool is_private;   /* and only for its creator and admins */
};
MUST_USE enum err step_put(struct registry *r, struct registry_change *c,
                           const struct step_put *p, struct why *why);

/* A step that removes e. */
MUST_USE enum err step_remove(struct registry *r, struct registry_change *c,
                              struct entry *e, struct str by, int64_t at_ms,
                              struct why *why);

/* An entry of the feed (registry_feed.c). */
struct feed_event {
    const char *type;
    const struct entry *entry;
    const struct entry *before;      /* the previous entry; may be NULL */
    const struct agent_grant *grant; /* may be NULL */
    bool has_wanted; /* add the fields that its creator wants to change */
    bool is_private; /* for its creator and admins only */
    struct str reason;
    struct str by;
    int64_t at_ms;
    bool is_for_admins; /* only, and for `by` */
};
void registry_tell_feed(struct tx *tx, const struct feed_event *t);

/* The index (lost.c): move an entry whose org changed; it was put again or
 * goes; and retry lost entries. */
void index_follow(struct registry *r, struct entry *e);
void index_found(struct registry *r, struct entry *e);
void index_retry(struct registry *r);

/* The eyes and the name of the requester. */
struct eyes by_eyes(const struct registry_by *by);
struct str by_name(const struct registry_by *by);

/* The agent of that name, for a change: visible, owned, of the right revision
 * and not being changed. The card of a configured agent can only be changed in
 * the configuration, but admins may change its grants. */
enum change_what { CHANGE_CARD, CHANGE_GRANTS };
MUST_USE enum err find_to_change(struct registry *r, enum change_what what,
                                 struct str name, const struct registry_by *by,
                                 struct entry **out, struct why *why);

/* The future entry: card and server fields are those of `a`. ERR_NOMEM.
 * (registry_change.c) */
MUST_USE enum err entry_make(struct registry *r, const struct agent *a,
                             const struct entry *before, int64_t now_ms,
                             struct entry **out);

/* Whether two are the same, apart from revisions, times and reviews. */
MUST_USE enum err entry_is_same(const struct entry *a, const struct entry *b,
                                bool *is_same);
/* Whether CARD_STORED writes the same for both. */
MUST_USE enum err cards_are_same(const struct agent *a, const struct agent *b,
                                 bool *is_same);

/* The end of taking a change: it is open; or its claims are released, and e is
 * returned. */
MUST_USE enum err change_open(struct registry_change *c, struct str name,
                              int64_t revision);
MUST_USE enum err change_refuse(struct registry *r, struct registry_change *c,
                                enum err e, struct why *why);

/* Increment the sequence, in a tx that changes any of the tables; and, once
 * committed, in memory. */
void seq_append(struct registry *r, struct tx *tx);
void seq_settle(struct registry *r);

/* The snapshot (registry_snapshot.c). False: no valid one, and the index is
 * empty. */
bool snapshot_load(struct registry *r);
void snapshot_save(struct registry *r);

/* vectors.c */

/* The vectors of one row. If the texts of a card need more with this model, its
 * last examples have none; those of the agent and its skills always fit. */
enum { VECTORS_BYTES_MAX = 32 * 1024 * 1024 };

/* The reference vectors, and pending requests for them (levels.c). */
struct levels {
    struct registry *r;
    struct strs texts;
    uint32_t sum;      /* hash of the texts */
    struct buf packed; /* the vectors of the first `at` texts, or all */
    size_t at;
    uint64_t ask_id; /* of embed; zero: none */
    int64_t wait_ms; /* after a failure */
    struct timer timer;
    struct loop_job turn; /* computes levels */
    struct tx tx;
    bool is_begun;   /* the loop runs */
    bool is_writing; /* the store has the tx */
};

/* Part of vectors_open, registry_load, vectors_begin, vectors_stop and
 * vectors_close. levels_again: the index may have other dims now. */
void levels_open(struct registry *r);
MUST_USE enum err levels_load(struct registry *r);
void levels_begin(struct registry *r);
void levels_again(struct registry *r);
void levels_stop(struct registry *r);
void levels_close(struct registry *r);

/* The state of all vectors, and pending work on them. */
struct vectors {
    struct levels levels;
    struct registry *r;
    /* dims zero: a provider without an answer or a row so far */
    struct embed_stamp stamp;
    bool is_begun;
    struct list turns;           /* the first is next */
    struct backlog_turn nobodys; /* of configured agents */
    struct list later; /* agents whose texts were rejected, until due_ms */
    struct list jobs;
    size_t n_todo, n_ready, n_later, n_jobs;
    size_t n_outdated; /* entries with vectors of another model, not rejected by
                        * this one: until they are done vectors cannot be
                        * compared, and search goes by words */
    size_t n_texts_out;
    int64_t later_ms; /* none of `later` is due before */
    struct timer timer;
    struct loop_job kick;
    /* All wait if the reason is not the texts of one agent. */
    unsigned n_failures; /* in a row */
    uint64_t round;      /* number of failures ever */
    unsigned n_refused;  /* agents in a row with rejected texts */
    int64_t again_ms;    /* nothing begins before */
    uint64_t chance;
    struct {
        bool is_on; /* progress is being logged */
        int64_t done, said;
        int64_t next_ms;
    } progress;
};

/* Part of registry_new and registry_free; needs the index. */
void vectors_open(struct registry *r);
void vectors_close(struct registry *r);

/* All texts of a card, in the order of VECTOR_BYTES, copied into the arena.
 * ERR_NOMEM: it is full. */
MUST_USE enum err vectors_texts(struct arena *a, const struct agent *agent,
                                struct strs *out);

/* Whether two cards have the same texts, and so the same vectors. */
bool vectors_are_same(const struct agent *a, const struct agent *b);

/* Append the packed vectors of a card to `out`, if all can be made at once;
 * else it stays empty: false. */
bool vectors_now(struct registry *r, const struct agent *a, struct buf *out);

/* The number of texts of a card with vectors of that length: all within
 * VECTORS_BYTES_MAX. */
size_t vectors_kept(const struct agent *a, uint32_t dims);

/* Append one packed vector to `out`. False: no memory. */
MUST_USE bool vectors_pack(struct buf *out, const float *v, uint32_t dims);

/* The row of packed vectors, in a tx that writes the card or follows it. */
void vectors_append(struct registry *r, struct tx *tx, const struct agent *a,
                    struct str packed);

/* Make the vectors of the index from packed vectors in the order of the row:
 * the agent for search; each skill, the mean of its text and its examples; and
 * the profile of the agent, the mean of all. False: not of this card or
 * model. */
bool vectors_for_index(struct registry *r, const struct agent *a,
                       struct str packed, struct buf *out);

/* Prepare the index change of a card with those vectors; NULL: with quick ones
 * for now, if possible, or none. Errors as index_prepare. */
MUST_USE enum err vectors_prepare(struct registry *r, const struct agent *a,
                                  const struct buf *vectors,
                                  struct index_change **out);

/* The vectors of an agent in the index, in the same order; not quick ones. */
bool vectors_in_index(const struct registry *r, const struct entry *e,
                      struct buf *out);

/* The same from a row of vector_table with the right revision and model. The
 * first row of a provider that has not answered yet sets the length of its
 * vectors. */
bool vectors_from_row(struct registry *r, const struct agent *a,
                      const struct row *row, struct buf *out);

/* Whether quick vectors can be made; the index then has them for every card
 * that waits for full ones and is not too large. */
bool vectors_have_quick(const struct registry *r);

/* The model may have told the length of its vectors: if the index has another,
 * all are rebuilt. */
void vectors_learn(struct registry *r);

/* NULL: vectors can be made and stored; else the reason, to follow
 * "because". */
const char *vectors_obstacle(const struct registry *r);

/* backlog.c */

/* An entry without vectors arrives; an entry that may wait for some goes. */
void vectors_want(struct registry *r, struct entry *e);
void vectors_forget(struct registry *r, struct entry *e);

void vectors_begin(struct registry *r);
void vectors_stop(struct registry *r);

/* All vectors in the index are useless. */
void vectors_want_all(struct registry *r);

/* The number of own agents that wait for vectors (of all, for a requester who
 * sees all), not counting self. */
size_t vectors_awaited(const struct registry *r, const struct eyes *eyes);

/* Reports of jobs, once each; the entry is NULL if it is gone. */

void backlog_failed(struct vectors *v, struct entry *e, enum err err,
                    const char *why);
/* Another card exists: its entry has arrived or is about to. */
void backlog_overtaken(struct vectors *v, struct entry *e);
/* It has vectors of some of its texts; the next are requested in its turn
 * (vectors_job_go_on). */
void backlog_ready(struct vectors *v, struct vectors_job *j);
/* An entry gets a job, or loses it; then j, its job, is not ready either. */
void backlog_joined(struct vectors *v, struct entry *e);
void backlog_left(struct vectors *v, struct entry *e, struct vectors_job *j);
void backlog_turn_init(struct backlog_turn *t);

/* Texts that a job requests at a time, and the limit of outstanding texts of
 * all jobs below which jobs begin or go on. */
struct backlog_slices {
    size_t texts, texts_out;
};
struct backlog_slices backlog_slices(const struct vectors *v);

/* Its vectors are in the index. */
void backlog_made(struct vectors *v, struct entry *e, uint64_t round);

/* vectors_job.c */

struct vectors_job {
    struct list_node node;
    struct list_node ready; /* in its turn */
    struct vectors *all;
    struct entry *entry; /* NULL: gone or replaced */
    uint64_t round;      /* failures of all when it began */
    struct arena arena;
    struct strs texts;
    size_t at;       /* first text not requested yet */
    size_t n_asked;  /* outstanding */
    size_t batch;    /* texts per request */
    uint64_t ask_id; /* of embed; zero: none */
    struct buf packed;
    struct index_change *change;
    char org[PRINCIPAL_NAME_MAX + 1]; /* that the change was made for */
    struct tx tx;
    bool is_written; /* the store has the tx */
};

/* e must be in no list. */
void vectors_job_begin(struct vectors *v, struct entry *e);
/* After backlog_ready. */
void vectors_job_go_on(struct vectors_job *j);

/* End a job without a report. False: the store has its row, and will return
 * it. */
bool vectors_job_drop(struct vectors_job *j);

/* registry_search.c */

struct searches {
    struct list waiting;
    size_t n_waiting;
    uint64_t next_id;
    struct registry_ranking ranking;

    /* Agents visible to some users beside their classes, by number. */
    uint32_t *besides;
    size_t n_besides;
    int64_t besides_seq; /* at this sequence number */
};

/* Part of registry_new and registry_free. */
void search_open(struct registry *r);
void search_close(struct registry *r);
void search_stop(struct registry *r);

/* ranked.c */

struct places {
    const struct search *s;
    struct search_hit *hits; /* room for the limit */
    size_t n;
    struct search_hit *held; /* the same again: hits that wait for a place */
    size_t n_held;
    size_t total; /* agents found */
};

/* Fill p, which has room for the hits; without a vector by words only.
 * ERR_NOMEM. */
MUST_USE enum err ranked_look(struct registry *r, struct places *p,
                              const float *vector);

/* The similarity of a text to every agent, by number; see index_near. */
MUST_USE enum err ranked_near(struct registry *r,
                              const struct registry_near_query *q,
                              const struct index_near **out, size_t *count);

/* registry_near.c: the fields that every message reads of every agent,
 * contiguous. */
struct near_mark {
    bool is_there; /* exists and is routable */
    bool is_platform;
    /* serial of the text that may contain one of its keywords */
    uint64_t found_in;
    uint32_t user, org; /* hashes of its creator and org */
    uint32_t n_docs;    /* it and its skills */
    double most;        /* upper bound of its score */
};

/* keywords.c */

/* A keyword of one class. */
struct keyword_node {
    struct list_node bucket; /* for the first of its class and words */
    struct list_node ring;   /* of all of them; without a head */
    uint64_t hash;           /* of both */
    /* of the first: serial of the text that contains them */
    uint64_t looked_in;
    const struct keyword *keyword;
};

/* One keyword of one agent. */
struct keyword {
    struct keyword_node nodes[3];
    struct entry *entry;
    uint64_t word;    /* hash of the first word */
    uint64_t words;   /* hash of the first KEYWORD_WORDS words */
    uint32_t n_words; /* how many these are */
    uint32_t place;   /* index in agent.routing.keywords */
    struct str plain; /* keyword.h */
    bool is_specific; /* more than words in messages of all kinds */
};

enum { KEYWORD_WORDS = 16 }; /* words that a keyword is found by */

struct keywords {
    struct list *buckets;           /* by hash; a power of two */
    size_t n_buckets, n;            /* n: nodes in buckets */
    size_t n_of[KEYWORD_WORDS + 1]; /* keywords by number of words */
    struct buf plain;               /* of a keyword or a text */
    uint64_t serial;                /* of texts */
    uint64_t *common; /* hashes of words in messages of all kinds, sorted */
    size_t n_common;
};

/* Part of registry_new and registry_free. */
MUST_USE enum err keywords_open(struct registry *r);
void keywords_close(struct registry *r);

/* Make the keywords of e in its arena. ERR_NOMEM. */
MUST_USE enum err keywords_make(struct registry *r, struct entry *e);

/* Make them findable for their classes, or not: call around every change of
 * kind, creator, org or visibility. */
void keywords_put(struct registry *r, struct entry *e);
void keywords_take(struct registry *r, struct entry *e);

/* Find keywords of agents that are not outsiders, and of public outsiders, in a
 * text; keyword_found then refers to it. Keywords of outsiders must be
 * specific, unless q trusts all. ERR_NOMEM. */
MUST_USE enum err keywords_look(struct registry *r,
                                const struct registry_near_query *q);
/* Afterwards: find all keywords of all visible outsiders. */
void keywords_look_at_all(struct registry *r, const struct eyes *eyes);
struct str keyword_found(const struct registry *r, const struct entry *e);

struct registry {
    struct registry_opts opts;
    enum agent_state (*state_of)(void *ctx, const struct agent *a);
    void *state_ctx;
    struct map by_name;        /* lower case -> struct entry */
    const struct agent **list; /* in name order: agent_entry */
    size_t n, cap;
    struct entry **by_number; /* NULL for free numbers */
    size_t n_numbers, numbers_cap;
    uint32_t *free_numbers; /* below n_numbers, at most as many */
    size_t n_free;
    struct shares owners;     /* struct owner, by lower-case name */
    struct shares orgs;       /* struct org_count, by name */
    struct map grants;        /* id -> struct grants with it */
    size_t n_grants_coming;   /* reserved */
    struct rates *paces;      /* pace.c */
    size_t n_public, n_front; /* front.c: documents */
    size_t share;             /* for one owner */
    struct map claims;        /* lower-case name -> struct registry_step */
    size_t n_coming, n_skills_coming; /* of claimed new agents */
    struct index *index;
    size_t n_lost;     /* lost.c */
    size_t n_sealed;   /* sealed.c */
    int64_t seq;       /* of the state in memory */
    int64_t mark;      /* of the run that made the last change */
    int64_t own_mark;  /* of this run */
    int64_t pruned_ms; /* older expired grants are forgotten */
    bool is_loaded;
    struct registry_stats stats; /* the counters */
    bool is_stopped;
    struct vectors *vectors;   /* of vectors.c */
    struct searches *searches; /* of registry_search.c */
    char currency[AGENT_CURRENCY_MAX + 1];
    struct registry_near *near;   /* result of registry_near.c */
    struct near_mark *near_marks; /* by number */
    size_t near_cap, marks_cap;
    uint64_t near_moves; /* n_moves of the marks */
    uint64_t n_moves;    /* agents that came and went: numbers may differ */
    struct keywords keywords;
    bool is_reviewed; /* registry.review */
    struct list reports;
    size_t n_reports; /* including pending ones */
};

/* sealed.c: the text of a row of a card, and CARD_STORED from it. Errors of
 * sealed_read as registry_load, and ERR_SYNTAX. */
bool sealed_has_secrets(const struct agent *a);
MUST_USE enum err sealed_write(const struct registry *r, struct str key,
                               const struct agent *a, struct buf *out);
MUST_USE enum err sealed_read(const struct registry *r, struct str key,
                              struct str text, struct buf *out, bool *is_sealed,
                              struct why *why);
/* Seal the rows that were read without a seal and need one. */
void sealed_begin(struct registry *r);

/* Review (review.c). */

/* The effect of a written card: the card that serves from then on, and the one
 * that waits. */
struct review_plan {
    struct agent serves; /* with its creator, org and kind */
    bool has_review;
    struct review review; /* borrows, also from the arena, */
    struct arena arena;   /* which the caller inits and frees */
    struct agent wanted;
};
/* ERR_NOMEM; ERR_PRECONDITION: it would show a waiting card to others. */
MUST_USE enum err review_plan(struct registry *r, const struct agent *wanted,
                              const struct entry *before,
                              const struct registry_by *by,
                              struct review_plan *out, struct why *why);

/* The card that a change starts from: the wanted one, for admins the serving
 * one. Returns NULL if `before` is NULL, else `out`. */
const struct agent *review_base(const struct entry *before,
                                const struct registry_by *by,
                                struct agent *out);

/* Give e, which is not in the mirror and not counted yet, the review v with the
 * card v->wanted. ERR_NOMEM. */
MUST_USE enum err entry_keep_review(struct entry *e, const struct review *v);
MUST_USE enum err reviews_are_same(const struct entry *a, const struct entry *b,
                                   bool *is_same);

/* An admin found it busy (e is ERR_BUSY, else nothing happens): for a while
 * only admins may change it. Otherwise a creator who keeps changing an agent
 * could prevent its review. */
void entry_keep_for_admins(struct registry *r, struct str name, enum err e,
                           int64_t now_ms);

/* Write the row of the review of e, in the tx that writes e. ERR_NOMEM. */
MUST_USE enum err review_append(struct registry *r, struct tx *tx,
                                const struct entry *e,
                                const struct entry *before);
MUST_USE enum err reviews_load(struct registry *r, struct why *why);

/* Reports (report.c). */
struct report {
    struct list_node node; /* in registry.reports, by id */
    struct id id;
    bool is_coming; /* not committed yet */
    int64_t at_ms;
    struct str key, user, reason; /* in bytes; key: of the agent */
    char bytes[];
};
MUST_USE enum err reports_load(struct registry *r, struct why *why);
void reports_close(struct registry *r);
void report_settle(struct registry *r, struct report *one);
void report_drop(struct registry *r, struct report *one);
/* Remove all reports of an agent, in memory; and in a tx. */
void reports_forget(struct registry *r, struct str key);
void reports_prune(struct tx *tx, struct str key);

/* self.c: remove what a card that registers itself cannot set. ERR_NOMEM. */
MUST_USE enum err self_fit(struct arena *scratch, struct agent *a,
                           const struct agent *before);

#endif
