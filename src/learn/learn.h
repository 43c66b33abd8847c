#ifndef LEARN_LEARN_H
#define LEARN_LEARN_H

/* learn: the last question of the walk: what came of it?
 *
 * What is learnt is a fold over outcome records, one after the other in the
 * order of their numbers: the same records give the same state, to the last
 * bit. It is asked when the next message comes: how an agent has done, overall
 * and with queries of this type, when it last did well, and what it was right
 * for before.
 *
 *     decision -> (its window is over, or somebody corrects it) -> outcome
 *     outcome, committed -> learn_apply -> the state, and what of it changed
 *     learn_dirty -> rows, committed with the number of the last outcome
 *
 * A crash between the two commits loses nothing: the outcomes after the number
 * that is kept are applied again when the server starts.
 *
 * A scope is an org, or a user without one. Whatever depends on texts (types of
 * query, what an agent did with each, examples, when it last did well) is of
 * one scope and for that scope alone. Other scopes see one thing of it: the
 * overall performance of an agent that several scopes have judged, and that
 * counts for half as much as the middle at most.
 *
 * Vectors of a model of two tiers are quick or full, as the decision had them,
 * and examples of both kinds are compared with queries of both kinds. Types are
 * told apart by the first part alone, which both kinds have: so a text is of
 * the same type whichever tier decided.
 *
 * Corrections are examples: the next text like it goes to the agent that was
 * right, by degrees, and the same text (by decision_text_hash) goes there at
 * once. They count within the org of whose message it was, regardless of who
 * made them (that person, or an admin for them); who has no org, for themselves
 * alone. Of overall performance, what came of messages of the agent's own
 * people, its creator and their org, counts among them alone, or an owner could
 * praise an agent into other people's answers.
 *
 * Verdicts are weighted by how independent they are. In its own scope each one
 * counts in full. In the public average the k-th verdict of a scope about an
 * agent has a weight of 2^-k, so all verdicts of one scope together
 * weigh less than two; and a scope that has judged agents of few owners weighs
 * less: d / (d + 1) with d owners other than the one judged. The agents of the
 * platform have no owner: verdicts about them have no such factor and add
 * nothing to d.
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
    double agent_lean;         /* learning.lean: observations of a type that the
                                * middle, 0.5, counts for: 5 */
    size_t max_types;          /* learning.maxTypes, of one scope */
    double type_likeness;      /* learning.typeLikeness: less than this to every
                                * type makes a new one */
    size_t examples_per_agent; /* learning.examplesPerAgent, of one org */
    size_t max_examples;       /* learning.maxExamples, of all */
    size_t max_agents;         /* of whom something is known; beyond, those
                                * longest not heard of go */
    /* The same for the other kinds; zero: LEARN_PAIRS_MAX and so on. */
    size_t max_pairs, max_views, max_ratings, max_scopes, max_all_types;
    bool is_plain; /* routing.preset "seed": the type's moving average leans on
                    * the agent's, recency is that of the agent, and all
                    * verdicts weigh the same */
};

struct learn_settings learn_defaults(void);

/* Limits of each kind, unless the settings say otherwise; beyond them, those
 * longest not heard of go. */
enum {
    LEARN_PAIRS_MAX = 100 * 1000,   /* agents with a type */
    LEARN_VIEWS_MAX = 100 * 1000,   /* what one scope saw of an agent */
    LEARN_RATINGS_MAX = 100 * 1000, /* of an agent by a scope */
    LEARN_RATINGS_PER_SCOPE = 256,  /* agents that one scope has rated */
    LEARN_RATING_VOTES = 32,        /* the latest that a rating consists of */
    LEARN_SCOPES_MAX = 50 * 1000,   /* each goes with its types and views */
    LEARN_TYPES_MAX = 8 * 1024,     /* of all scopes; beyond, scopes go */
    LEARN_SCOPE_OWNERS = 8,         /* that are counted of one scope */
};

enum outcome_kind {
    OUTCOME_VERDICT = 1,    /* the job's, once the window was over */
    OUTCOME_CORRECTION = 2, /* somebody said who was right */
    OUTCOME_FEEDBACK = 3,   /* somebody said whether it was right */
    OUTCOME_FORGET = 4,     /* an agent is not there any more, or all is to be
                             * forgotten (agent empty) */
    OUTCOME_VOID = 5,       /* an admin voids verdicts that came before: scope
                             * is "user:NAME" or "owner:NAME" */
};

/* Whether an outcome moves averages, and whose. The numbers are kept. */
enum outcome_counts {
    COUNTS_FOR_ALL = 0,
    COUNTS_INSIDE = 1, /* for the agent's own people: it was one of them */
    COUNTS_NOT = 2,    /* the decision has counted already: it is an example
                        * at most */
};

/* One record. What it holds is all that the fold sees. */
struct outcome {
    int64_t seq; /* given by the store */
    int64_t at_ms;
    enum outcome_kind kind;
    enum verdict verdict;
    enum outcome_counts counts;
    struct id decision_id;
    enum layer layer;
    struct str agent;       /* that was chosen, and is judged; empty: it is not
                             * there any more */
    struct str right_agent; /* OUTCOME_CORRECTION */
    struct str scope;       /* "org:NAME" or "user:NAME", of whose message it
                             * was */
    struct str by;          /* who said so; empty: the job */
    struct str requester;   /* whose message it was */
    struct str owner;       /* creator of `agent`; empty: the platform's */
    struct str right_owner; /* creator of `right_agent` */
    struct str text;        /* DECISION_TEXT_MAX bytes at most */
    uint64_t text_hash;     /* decision_text_hash; zero: not known */
    struct str vector;      /* packed; empty: none */
    struct str model_hash;  /* that made it */
};

/* NULL: memory is gone. model_hash: vectors of others are not compared. quick:
 * so many numbers are the first part of that model's vectors (base/vec.h);
 * zero, or more than LEARN_QUICK_MAX: they have one part. */
enum { LEARN_QUICK_MAX = 1024 };
MUST_USE struct learn *learn_new(const struct learn_settings *s,
                                 struct str model_hash, size_t quick,
                                 const uint64_t seed[2]);
void learn_free(struct learn *l);

/* From now on. Limits that became lower take effect with the next outcome. */
void learn_set(struct learn *l, const struct learn_settings *s);

/* The number of the last outcome applied; zero: none. */
int64_t learn_version(const struct learn *l);

/* The next outcome; one that was applied before, by its number, is left alone.
 * ERR_NOMEM: the state is as it was; apply it again. */
MUST_USE enum err learn_apply(struct learn *l, const struct outcome *o);

/* The outcome of that number is voided: nothing but the number is taken. */
void learn_skip(struct learn *l, int64_t seq);

/* The voids that a fold over all outcomes honors. Those that a void covers have
 * lower numbers than it, so all voids are added before the fold begins. */
struct learn_voids;
enum {
    LEARN_VOIDS_MAX = 1024,        /* users and owners */
    LEARN_VOIDED_MAX = 100 * 1000, /* decisions whose verdict is voided */
};

/* NULL: memory is gone. */
MUST_USE struct learn_voids *learn_voids_new(const uint64_t seed[2]);
void learn_voids_free(struct learn_voids *v);

/* An OUTCOME_VOID. ERR_LIMIT, ERR_NOMEM; ERR_SYNTAX: it names neither. */
MUST_USE enum err learn_voids_add(struct learn_voids *v,
                                  const struct outcome *o);

/* Whether one of the voids covers the outcome. */
bool learn_voids_cover(const struct learn_voids *v, const struct outcome *o);

/* The next outcome of a fold, in order. *is_void: it is to be skipped. A
 * decision counts once, by its first verdict: where that one is voided,
 * o->counts of the next verdict that was given before the void is what the
 * first one had. ERR_NOMEM. */
MUST_USE enum err learn_voids_judge(struct learn_voids *v, struct outcome *o,
                                    bool *is_void);

/* Asking. */

struct learn_query {
    struct str scope;
    struct str vector;  /* packed; empty: none */
    uint64_t text_hash; /* decision_text_hash; zero: none */
    int64_t now_ms;
    int64_t recency_ms;
};

/* The scope's type of the query, zero: none is near enough. Smaller numbers
 * than this are of types that all scopes shared, in records of earlier
 * versions. */
#define LEARN_TYPE_FIRST (INT64_C(1) << 39)
int64_t learn_type(const struct learn *l, struct str scope, struct str vector);

/* Three or so telling words; empty: there is no such type. Borrowed until the
 * next change. Admins' eyes only: they are of other people's texts. */
struct str learn_type_name(const struct learn *l, int64_t type);

/* Begin to ask about one query: looks through the examples once. ERR_NOMEM. */
MUST_USE enum err learn_begin(struct learn *l, const struct learn_query *q);

struct learn_hint {
    bool has_inside;   /* some of what follows was said by its own people, and
                        * is not for others: learn_outside */
    float performance; /* 0.5 where nothing is known */
    float recency;     /* of its last success in the scope; the less, the fewer
                        * queries of this type it is known by */
    float learned;     /* cubes of the likeness to each example of the scope: of
                        * those that it was right for, less those that it was
                        * wrong for; zero: nothing speaks for it or against it */
    float outside_performance, outside_recency; /* without what insiders said */
    bool is_taught; /* the scope's latest correction of this very text says that
                     * it is for this agent */
    bool is_rated;  /* people of the scope have said more good than bad of it,
                     * each counted once for each decision */
};

/* Whether anything is known of the agent of that name, whatever the case. */
bool learn_knows(const struct learn *l, struct str agent);

/* Of the query that was begun last. Agents by name, whatever the case. */
void learn_look(struct learn *l, struct str agent, struct learn_hint *out);
/* The same for who is none of the agent's people. */
void learn_outside(struct learn_hint *h);

/* All of whom anything but that is known, one after the other, so that nobody
 * need ask about thousands of others; false: there are no more. Before the next
 * change. `note` is for the caller to write on, and zero at first: where it has
 * the agent, say. */
struct learn_note {
    uint64_t version;
    uint32_t number;
};
struct learn_told {
    struct str agent; /* in lower case */
    struct learn_hint hint;
    struct learn_note *note;
};
bool learn_next(struct learn *l, struct learn_told *out);

/* The tables, and what of the state is to be written. */

extern const struct schema learn_schema;
extern const struct table outcome_table, learn_table;

enum outcome_column {
    OUTCOME_SEQ,
    OUTCOME_AT_MS,
    OUTCOME_KIND,
    OUTCOME_VERDICT_IS,
    OUTCOME_DECISION_ID,
    OUTCOME_LAYER,
    OUTCOME_AGENT,
    OUTCOME_RIGHT_AGENT,
    OUTCOME_SCOPE,
    OUTCOME_BY,
    OUTCOME_TEXT,
    OUTCOME_VECTOR,
    OUTCOME_MODEL_HASH,
    OUTCOME_COUNTS,
    OUTCOME_REQUESTER,
    OUTCOME_OWNER,
    OUTCOME_RIGHT_OWNER,
    OUTCOME_TEXT_HASH,
    N_OUTCOME_COLUMNS,
};

/* One row for each thing that is remembered (an agent, a type, an agent with a
 * type, an example, a scope, its view or rating of an agent), and one, of zero,
 * with the last outcome's number. */
enum learn_column {
    LEARN_KIND,
    LEARN_KEY,   /* text */
    LEARN_BYTES, /* blob */
    N_LEARN_COLUMNS,
};

/* Into a tx; its op, whose seq is the outcome's number once committed. */
struct tx_op *outcome_append(struct tx *tx, const struct outcome *o);
void outcome_from_row(const struct row *r, struct outcome *out);

/* What changed since it was last written, at most `max` things of it, and the
 * number; false: nothing did, or a tx is on its way. After the commit, or its
 * failure, learn_written. One tx at a time; outcomes may be applied meanwhile.
 * `is_last`: all of it is in. Where it is not, the row with the number says so
 * until the last has been committed, and a start that finds it takes nothing
 * from the table and applies all outcomes there are. So ask with a `max` above
 * what a few outcomes change (LEARN_ROWS_EACH for each). */
enum { LEARN_ROWS_EACH = 12 };
bool learn_dirty(struct learn *l, struct tx *tx, size_t max, bool *is_last);
void learn_written(struct learn *l, bool is_committed);

/* The rows in the table are another state's, which this one takes the place
 * of: with the next tx they go, and all that is known is written. */
void learn_rewrite(struct learn *l);

/* A row of learn_table, when the server starts: in the order of LEARN_KIND, so
 * that the number comes first. ERR_SYNTAX: none of ours; ERR_NOMEM. */
MUST_USE enum err learn_load_row(struct learn *l, const struct row *r);

/* Before the rows: the number of the first outcome that is kept; zero: none is.
 * Rows of a form in which scopes shared their types are not read, and the state
 * has no number: all outcomes that are kept are to be applied. Examples from
 * outcomes that are not kept any more stay. */
void learn_kept_from(struct learn *l, int64_t first);
/* Whether the rows were such: the state takes the place of theirs. */
bool learn_was_shared(const struct learn *l);

/* All of it as JSON lines, in one order: two states that are the same write the
 * same bytes. */
void learn_export(const struct learn *l, struct buf *out);

struct learn_stats {
    size_t agents, types, agent_types, examples, views, ratings, scopes;
    int64_t applied_total;
};
struct learn_stats learn_stats(const struct learn *l);

/* Whether all of it hangs together. For tests. */
bool learn_check(const struct learn *l);

#endif
