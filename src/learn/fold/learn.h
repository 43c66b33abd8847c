#ifndef LEARN_FOLD_LEARN_H
#define LEARN_FOLD_LEARN_H

/* learn: the last stage of the walk. Learns from results.
 *
 * The learned state is a fold over outcome records in the order of their
 * numbers: the same records give the same state, to the last bit. Routing asks
 * it about the next message: how an agent has done, overall and with queries of
 * this type, when it last did well, and for which texts it was right before.
 *
 *     decision -> (its window ends, or a user corrects it) -> outcome
 *     outcome, committed -> learn_apply -> the state, and its changes
 *     learn_dirty -> rows, committed with the number of the last outcome
 *
 * A crash between the two commits loses nothing: at start the outcomes after
 * the stored number are applied again.
 *
 * A scope is an org, or a user without one. Everything that depends on texts
 * (types of query, an agent's results with each, examples, the last success)
 * belongs to one scope and is used for that scope only. Other scopes see one
 * number: the overall performance of an agent that several scopes have judged,
 * with at most half of the weight of the middle.
 *
 * Vectors of a model of two tiers are quick or full, as in the decision, and
 * examples of both kinds are compared with queries of both kinds. Types are
 * distinguished by the first part alone, which both kinds have: so a text has
 * the same type whichever tier decided.
 *
 * Corrections are examples: the next similar text goes to the agent that was
 * right, by degrees, and the same text (by decision_text_hash) goes there at
 * once. They count within the org of the message's sender, whether the sender
 * or an admin corrects; without an org, for the sender only. In overall
 * performance, results of messages from the agent's own people, its creator and
 * their org, count for them only: otherwise an owner could praise an agent into
 * other users' answers.
 *
 * Verdicts are weighted by their independence. In its own scope each one counts
 * in full. In the public average a scope's first verdict about an agent weighs
 * 1 and each further one half of the one before, so all verdicts of one scope
 * together weigh less than two; and a scope that has judged agents of few
 * owners weighs less: d / (d + 1) with d owners other than the one judged. The
 * agents of the platform have no owner: verdicts about them have no such factor
 * and add nothing to d.
 *
 * Pure: no clock, no socket. Owns: its state, and its tables in the store.
 * Threads: one at a time. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "model/decision.h"
#include "model/query.h"
#include "model/tx.h"

struct learn;

struct learn_settings {
    double rate;               /* learning.rate, of the moving averages: 0.1 */
    double agent_lean;         /* learning.lean: weight of the middle, 0.5, in
                                * observations of a type: 5 */
    size_t max_types;          /* learning.maxTypes, of one scope */
    double type_likeness;      /* learning.typeLikeness: a query less similar to
                                * every type begins a new one */
    size_t examples_per_agent; /* learning.examplesPerAgent, of one org */
    size_t max_examples;       /* learning.maxExamples, of all */
    size_t max_agents;         /* with learned data; above, the least recently
                                * touched are evicted */
    /* Limits of the other kinds; zero: LEARN_PAIRS_MAX and so on. */
    size_t max_pairs, max_views, max_ratings, max_scopes, max_all_types;
    bool is_plain; /* routing.preset "seed": the type's moving average leans on
                    * the agent's, recency is that of the agent, and all
                    * verdicts have equal weight */
};

struct learn_settings learn_defaults(void);

/* Default limits of each kind; above, the least recently touched are
 * evicted. */
enum {
    LEARN_PAIRS_MAX = 100 * 1000,   /* agents with a type */
    LEARN_VIEWS_MAX = 100 * 1000,   /* of an agent by a scope */
    LEARN_RATINGS_MAX = 100 * 1000, /* of an agent by a scope */
    LEARN_RATINGS_PER_SCOPE = 256,  /* agents that one scope has rated */
    LEARN_RATING_VOTES = 32,        /* the latest that a rating consists of */
    LEARN_SCOPES_MAX = 50 * 1000,   /* each goes with its types and views */
    LEARN_TYPES_MAX = 8 * 1024,     /* of all scopes; above, scopes go */
    LEARN_SCOPE_OWNERS = 8,         /* counted for one scope */
};

enum outcome_kind {
    OUTCOME_VERDICT = 1,    /* the job's, at the end of the window */
    OUTCOME_CORRECTION = 2, /* a user named the right agent */
    OUTCOME_FEEDBACK = 3,   /* a user said whether it was right */
    OUTCOME_FORGET = 4,     /* an agent was removed, or all is to be forgotten
                             * (agent empty) */
    OUTCOME_VOID = 5,       /* an admin voids earlier verdicts: scope is
                             * "user:NAME" or "owner:NAME" */
};

/* Whether an outcome moves averages, and whose. The store keeps the numbers. */
enum outcome_counts {
    COUNTS_FOR_ALL = 0,
    COUNTS_INSIDE = 1, /* for the agent's own people: it is from one of them */
    COUNTS_NOT = 2,    /* the decision has counted already: it is at most an
                        * example */
};

/* One record. The fold sees nothing else. */
struct outcome {
    int64_t seq; /* given by the store */
    int64_t at_ms;
    enum outcome_kind kind;
    enum verdict verdict;
    enum outcome_counts counts;
    struct id decision_id;
    enum layer layer;
    struct str agent;       /* chosen and judged; empty: removed since */
    struct str right_agent; /* OUTCOME_CORRECTION */
    struct str scope;       /* "org:NAME" or "user:NAME" of the message's
                             * sender */
    struct str by;          /* author of the verdict; empty: the job */
    struct str requester;   /* sender of the message */
    struct str owner;       /* creator of `agent`; empty: the platform's */
    struct str right_owner; /* creator of `right_agent` */
    struct str text;        /* DECISION_TEXT_MAX bytes at most */
    uint64_t text_hash;     /* decision_text_hash; zero: unknown */
    struct str vector;      /* packed; empty: none */
    struct str model_hash;  /* of the vector's model */
};

/* model_hash: vectors of other models are not compared. quick: length of the
 * first part of that model's vectors (base/vec.h); zero, or more than
 * LEARN_QUICK_MAX: they have one part. */
enum { LEARN_QUICK_MAX = 1024 };
MUST_USE struct learn *learn_new(const struct learn_settings *s,
                                 struct str model_hash, size_t quick,
                                 const uint64_t seed[2]);
void learn_free(struct learn *l);

/* Lower limits take effect with the next outcome. */
void learn_set(struct learn *l, const struct learn_settings *s);

/* The number of the last outcome applied; zero: none. */
int64_t learn_version(const struct learn *l);

/* Apply the next outcome; one that was applied before, by its number, is
 * ignored. ERR_NOMEM, ERR_LIMIT: the state has not changed; apply it again. */
MUST_USE enum err learn_apply(struct learn *l, const struct outcome *o);

/* Skip a voided outcome: only its number is recorded. */
void learn_skip(struct learn *l, int64_t seq);

/* The voids for a fold over all outcomes. A void covers outcomes with lower
 * numbers than its own, so all voids are added before the fold begins. */
struct learn_voids;
enum {
    LEARN_VOIDS_MAX = 1024,        /* users and owners */
    LEARN_VOIDED_MAX = 100 * 1000, /* decisions with a voided verdict */
};

MUST_USE struct learn_voids *learn_voids_new(const uint64_t seed[2]);
void learn_voids_free(struct learn_voids *v);

/* Add an OUTCOME_VOID. ERR_LIMIT, ERR_NOMEM; ERR_SYNTAX: it names neither. */
MUST_USE enum err learn_voids_add(struct learn_voids *v,
                                  const struct outcome *o);

/* Whether one of the voids covers the outcome. */
bool learn_voids_cover(const struct learn_voids *v, const struct outcome *o);

/* Judge the next outcome of a fold, in order. *is_void: skip it. A decision
 * counts once, by its first verdict: if that one is voided, the next verdict
 * that was given before the void gets the first one's o->counts. ERR_NOMEM. */
MUST_USE enum err learn_voids_judge(struct learn_voids *v, struct outcome *o,
                                    bool *is_void);

/* Queries. */

struct learn_query {
    struct str scope;
    struct str vector;  /* packed; empty: none */
    uint64_t text_hash; /* decision_text_hash; zero: none */
    int64_t now_ms;
    int64_t recency_ms;
};

/* The scope's type of the query; zero: none is near enough. Records of earlier
 * versions have smaller numbers, of types that all scopes shared. */
#define LEARN_TYPE_FIRST (INT64_C(1) << 39)
int64_t learn_type(const struct learn *l, struct str scope, struct str vector);

/* Up to three characteristic words; empty: no such type. Borrowed until the
 * next change. For admins only: the words are from other users' texts. */
struct str learn_type_name(const struct learn *l, int64_t type);

/* Begin a query: searches the examples once. */
void learn_begin(struct learn *l, const struct learn_query *q);

struct learn_hint {
    bool has_inside;   /* some of it is from the agent's own people, and not for
                        * others: learn_outside */
    float performance; /* 0.5 if unknown */
    float recency;     /* of its last success in the scope; lower if it has had
                        * few queries of this type */
    float learned;     /* cubes of the similarity to each example of the scope:
                        * of those that it was right for, less those that it was
                        * wrong for; zero: no example */
    float outside_performance, outside_recency; /* without insiders' verdicts */
    bool is_taught; /* the scope's latest correction of this very text names
                     * this agent */
    bool is_rated;  /* users of the scope have given more positive than negative
                     * verdicts, each counted once for each decision */
};

/* The type of the present query, as learn_type. */
int64_t learn_type_asked(const struct learn *l);

/* Whether there is learned data about the agent; case is ignored. */
bool learn_knows(const struct learn *l, struct str agent);

/* The hint of the present query about an agent; case of the name is ignored. */
void learn_look(struct learn *l, struct str agent, struct learn_hint *out);
/* The same for a requester who is none of the agent's people. */
void learn_outside(struct learn_hint *h);

/* Iterate over the agents that have hints for the present query, so that
 * thousands of others need no lookup; false: no more. Before the next change.
 * `note` is for the caller, and zero at first: it may cache the agent's
 * place. */
struct learn_note {
    uint64_t version;
    uint32_t number;
};
struct learn_agent_hint {
    struct str agent; /* in lower case */
    struct learn_hint hint;
    struct learn_note *note;
};
bool learn_next(struct learn *l, struct learn_agent_hint *out);

/* The tables, and the changes to be written. */

extern const struct schema learn_schema;
extern const struct table outcome_table, learn_table;

#define OUTCOME_COLUMNS(C)                                               \
    C(OUTCOME_SEQ, "seq", 1, READ(seq))                                  \
    C(OUTCOME_AT_MS, "at_ms", 1, BOTH(at_ms))                            \
    C(OUTCOME_KIND, "kind", 1, BOTH(kind))                               \
    C(OUTCOME_VERDICT_IS, "verdict", 1, BOTH(verdict))                   \
    C(OUTCOME_DECISION_ID, "decision_id", 1, BOTH(decision_id), OR_NULL) \
    C(OUTCOME_LAYER, "layer", 1, BOTH(layer))                            \
    C(OUTCOME_AGENT, "agent", 1, BOTH(agent), OR_NULL)                   \
    C(OUTCOME_RIGHT_AGENT, "right_agent", 1, BOTH(right_agent), OR_NULL) \
    C(OUTCOME_SCOPE, "scope", 1, BOTH(scope), OR_NULL)                   \
    C(OUTCOME_BY, "said_by", 1, BOTH(by), OR_NULL)                       \
    C(OUTCOME_TEXT, "text", 1, BOTH(text), OR_NULL)                      \
    C(OUTCOME_VECTOR, "vector", 1, BLOB(vector), OR_NULL)                \
    C(OUTCOME_MODEL_HASH, "model_hash", 1, BOTH(model_hash), OR_NULL)    \
    C(OUTCOME_COUNTS, "counts", 2, BOTH(counts))                         \
    C(OUTCOME_REQUESTER, "requester", 3, BOTH(requester), OR_NULL)       \
    C(OUTCOME_OWNER, "owner", 3, BOTH(owner), OR_NULL)                   \
    C(OUTCOME_RIGHT_OWNER, "right_owner", 3, BOTH(right_owner), OR_NULL) \
    C(OUTCOME_TEXT_HASH, "text_hash", 3, BOTH(text_hash))

enum outcome_column { OUTCOME_COLUMNS(COLUMN_NUMBER) N_OUTCOME_COLUMNS };

/* One row for each thing (an agent, a type, an agent with a type, an example, a
 * scope, its view or rating of an agent), and one, of kind zero, with the last
 * outcome's number. */
#define LEARN_COLUMNS(C)                 \
    C(LEARN_KIND, "kind", 1, COLUMN_INT) \
    C(LEARN_KEY, "key", 1, COLUMN_TEXT)  \
    C(LEARN_BYTES, "bytes", 1, COLUMN_BLOB)

enum learn_column { LEARN_COLUMNS(COLUMN_NUMBER) N_LEARN_COLUMNS };

/* Append to a tx. Returns its op, whose seq is the outcome's number once
 * committed. */
struct tx_op *outcome_append(struct tx *tx, const struct outcome *o);
void outcome_from_row(const struct row *r, struct outcome *out);

/* Append the changes since the last write, at most `max` things, and the
 * number; false: none, or a tx is pending. After its commit or failure, call
 * learn_written. One tx at a time; outcomes may be applied meanwhile.
 * `is_last`: it has all changes. Otherwise the row of the number says so until
 * the last tx is committed, and a start that finds it ignores the table and
 * applies all outcomes. So call with a `max` above the changes of a few
 * outcomes (LEARN_ROWS_EACH for each). */
enum { LEARN_ROWS_EACH = 12 };
bool learn_dirty(struct learn *l, struct tx *tx, size_t max, bool *is_last);
void learn_written(struct learn *l, bool is_committed);

/* The rows in the table belong to another state, which this one replaces: the
 * next tx removes them, and the whole state is written. */
void learn_rewrite(struct learn *l);

/* Load a row of learn_table at start, in the order of LEARN_KIND, so that the
 * number comes first. ERR_SYNTAX: not a valid row; ERR_NOMEM. */
MUST_USE enum err learn_load_row(struct learn *l, const struct row *r);

/* Before the rows: the number of the first outcome that is kept; zero: none.
 * Rows of a form in which scopes shared their types are ignored, and the state
 * then has no number: all outcomes that are kept must be applied. Examples from
 * outcomes that are not kept any more stay. */
void learn_kept_from(struct learn *l, int64_t first);
/* Whether the rows had that form: the state replaces them. */
bool learn_was_shared(const struct learn *l);

/* Write the whole state as JSON lines in a fixed order: equal states write
 * equal bytes. */
void learn_export(const struct learn *l, struct buf *out);

struct learn_stats {
    size_t agents, types, agent_types, examples, views, ratings, scopes;
    int64_t applied_total;
};
struct learn_stats learn_stats(const struct learn *l);

/* Whether the state is consistent. For tests. */
bool learn_check(const struct learn *l);

#endif
