#ifndef LEARN_FOLD_INTERNAL_H
#define LEARN_FOLD_INTERNAL_H

/* The learned state consists of things: an agent, a scope, a scope's view of an
 * agent, a type of query of a scope, a pair of view and type, an example, and a
 * scope's rating of an agent. Each is one row of learn_table, found by its kind
 * and key, and has the number of the last outcome that touched it: if there are
 * too many, the least recently touched is evicted.
 *
 *     agent -- view -- pair
 *     scope --/   type --/       a scope goes with its views and types, and
 *     scope ------/              these with their pairs
 *
 *   things.c          things by key and by age; pending rows
 *   agent_names.c     agents' names
 *   shelf.c           vectors of one model side by side, for searching
 *   types.c           online clustering of the queries
 *   type_names.c      the words that distinguish types
 *   examples.c        corrections, and which of them are kept
 *   learn_scopes.c    the verdicts of each scope: views, ratings, owners
 *   groups.c          things that are found together
 *   voids.c           outcomes that a fold leaves out
 *   learn.c           the fold
 *   hints.c           signals for the next message
 *   learn_rows.c      things -> rows
 *   learn_load.c      rows -> things
 *   outcome.c         outcomes <-> rows
 *   learn_export.c    JSON lines */

#include "learn/fold/learn.h"

#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/agent.h"

enum {
    EXAMPLE_TEXT_MAX = 256, /* bytes that are kept, for people to read */
    SCOPE_MAX = 160,
    HASH_MAX = 128, /* bytes of a model's hash */
    TELLING_WORDS = 32,
    TELLING_BYTES = 24, /* longer words do not distinguish types */
    DIMS_MAX = 65536,
    ROW_FORM = 4, /* version of a row's bytes: their first */
    /* All scopes shared their types of query. Only examples are read from these
     * rows, and the rest is folded again from the outcomes. */
    ROW_FORM_SHARED = 3,
    ROW_FORM_OLD = 2, /* the same, without hashes of texts */
};

enum thing_kind {
    THING_NUMBER = 0, /* only a row */
    THING_AGENT,      /* from here on in the order in which rows are read */
    THING_SCOPE,
    THING_VIEW,
    THING_EXAMPLE, /* 4 in rows of every form */
    THING_TYPE,
    THING_PAIR,
    THING_RATING,
    N_KINDS,
};

enum row_state { ROW_CLEAN, ROW_DIRTY, ROW_WRITING };

struct thing {
    enum thing_kind kind;
    struct str key;       /* digit of the kind and the row's key; allocated
                           * behind the thing */
    int64_t touched;      /* the last outcome that touched it */
    size_t slot;          /* in the heap of its kind */
    struct list_node row; /* dirty or writing */
    enum row_state state;
    bool has_row;    /* in the table, as far as is known */
    bool is_written; /* the pending op writes the row and does not remove it */
    bool is_again;   /* changed while its row was pending */
    bool is_gone;    /* dropped; freed once its row is removed */
};

/* An agent's name; exists while a thing refers to it. */
struct agent_name {
    struct str name; /* lower case; allocated behind it */
    uint64_t hash;
    size_t n_refs;
    struct known *known;
    struct list views, ratings;
    size_t n_views;

    /* Each is the number of the last query for which it was true. */
    uint64_t hinted; /* it is in learn.hinted */
    uint64_t summed; /* `sum` is valid */
    uint64_t paired; /* `pair` is valid */
    uint64_t viewed; /* `view` is that of the requester's scope */
    uint64_t taught, rated;
    int64_t sum;
    const struct pair *pair;
    const struct view *view;
    struct agent_name *next_hinted; /* in learn.hinted */
    struct learn_note note;
};

struct known {
    struct thing thing;
    struct agent_name *agent;
    double rate; /* all verdicts with equal weight */
    int64_t n_good, n_bad;
    /* With the weight of each verdict: of all, and without its own people. */
    double public_rate, outside_rate;
    double weight, outside_weight;
    struct list_node renown; /* in learn.renowned */
};

/* A word that distinguishes types, by its stem; `word` is the shortest form. */
struct telling {
    char stem[TELLING_BYTES], word[TELLING_BYTES];
    uint8_t n_stem, n_word;
    uint32_t count;   /* texts that have it */
    uint32_t n_types; /* types that have it, as of the last count */
};

struct type {
    struct thing thing;
    int64_t id; /* type_id of its first outcome */
    struct tenant *scope;
    struct list_node of_scope;
    struct shelf *shelf;
    size_t row;
    float *mean; /* of the members' directions; packed again behind it */
    int64_t n;
    struct telling words[TELLING_WORDS];
    size_t n_words;
    struct list pairs;
    char name[4 * TELLING_BYTES]; /* result of the last learn_type_name */
    size_t n_name;
};

/* A scope's verdicts about an agent with queries of one type. */
struct pair {
    struct thing thing;
    struct view *view;
    struct type *type;
    struct list_node of_view, of_type;
    double rate, outside_rate; /* of all, and without its own people */
    int64_t n, outside_n;
};

/* A scope's verdicts about an agent. */
struct view {
    struct thing thing;
    struct agent_name *agent;
    struct tenant *scope;
    struct list_node of_who, of_scope;
    struct list pairs;
    int64_t n;
    double weight, outside_weight; /* its part of the agent's */
    int64_t good_ms;               /* of the last positive one; zero: none */
    int64_t outside_good_ms;       /* of one not by the agent's own people */
};

/* The rating of an agent by the users of one scope: their latest votes, the
 * oldest first, one for each user and decision. */
struct vote {
    uint64_t voter; /* hash of user and decision */
    int64_t sign;   /* 1 or -1 */
};
struct rating {
    struct thing thing;
    struct agent_name *agent;
    struct group *group; /* of the scope */
    struct list_node of_who, of_group;
    struct vote votes[LEARN_RATING_VOTES];
    size_t n;
};

/* A scope: an org, or a user without one. */
struct tenant {
    struct thing thing;                  /* its key is the scope */
    uint64_t owners[LEARN_SCOPE_OWNERS]; /* the first owners whose agents it has
                                          * judged, by hashes of their names */
    size_t n;
    struct list types, views;
    size_t n_types;
    int64_t counted; /* learn.changes at the last count of words */
};

/* Things of one scope that are found together: the examples of one text, or the
 * ratings. */
struct group {
    struct str key; /* allocated behind it */
    struct list things;
    size_t n;
};

struct example {
    struct thing thing;
    struct shelf *shelf;
    size_t row;
    int64_t at_ms;
    int64_t from_outcome;  /* the outcome that it comes from */
    uint64_t text_hash;    /* zero: unknown */
    struct group *group;   /* of the text; NULL: unknown */
    struct list_node same; /* in the group */
    char text[EXAMPLE_TEXT_MAX];
    size_t n_text;
};

/* Vectors of one length and model: of the examples, or of the types, of one
 * scope. An example without a vector is on the shelf of length zero. */
struct shelf {
    struct str key, scope, model_hash; /* allocated behind it */
    enum thing_kind kind;
    size_t dims, stride, n, cap;
    int8_t *high, *low; /* cap rows of stride */
    float *scale, *slack;
    int64_t *touched; /* of examples: copied from the thing */
    struct thing **owner;
    struct agent_name **right, **wrong; /* of examples; NULL: none */
    size_t quick;   /* length of a quick vector; zero: the model has none */
    bool *is_quick; /* of each row */
};

struct heap {
    struct thing **p;
    size_t n, cap;
};

/* Names by a hash of their own: every message looks up every agent. */
struct agent_names {
    struct agent_name **slots; /* NULL: free */
    uint32_t *tags;            /* of the hash, to skip most comparisons */
    size_t n, cap;             /* cap is zero or a power of two */
    uint64_t seed[2];
};

struct learn {
    struct learn_settings settings;
    struct str model_hash;
    char model_hash_bytes[HASH_MAX];
    size_t quick;    /* length of that model's quick vectors */
    int64_t version; /* the last outcome, applied or skipped */
    int64_t counted; /* the last that was applied */
    int64_t applied_total;
    struct map things, shelves, groups;
    struct agent_names names;
    struct heap heaps[N_KINDS];
    struct list renowned; /* agents that several scopes have judged */

    /* The table. */
    struct list dirty, writing;
    int64_t written, writing_version; /* versions */
    bool must_clear, is_clearing;     /* the next tx removes all rows first */
    bool is_in_pieces;                /* the table says that it is incomplete */
    bool is_writing, is_last_writing;
    bool has_number;   /* the row of the number was loaded */
    bool is_void;      /* the loaded table is incomplete: none of it counts */
    int64_t kept_from; /* the first outcome that is kept; zero: none is */
    bool is_shared;    /* the loaded rows are of ROW_FORM_SHARED or older */

    /* The present query. */
    uint64_t query_number;
    struct agent_name *hinted, *next; /* agents that it has hints about */
    int64_t type;                     /* zero: none is near enough */
    int64_t now_ms, recency_ms;

    int64_t changes;
};

/* ---- learn.c ---- */

enum { PAIR_KEY_MAX = 24 + 1 + AGENT_NAME_MAX };
struct str pair_key(int64_t type, struct str name, char out[PAIR_KEY_MAX]);
void pair_link(struct pair *p, struct view *v, struct type *t);
bool is_scope(struct str scope);

/* ---- groups.c ---- */

enum { GROUP_KEY_MAX = 1 + 8 + SCOPE_MAX };
enum group_kind { GROUP_TEXT = 't', GROUP_RATINGS = 'r' };

/* `number` is the text's hash; zero for ratings. NULL: none. */
struct group *group_find(const struct learn *l, enum group_kind kind,
                         int64_t number, struct str scope);
/* Found or made. NULL: the scope's name is too long. */
MUST_USE struct group *group_take(struct learn *l, enum group_kind kind,
                                  int64_t number, struct str scope);
void group_add(struct group *g, struct list_node *n);
/* The group is freed with the last of its things. */
void group_remove(struct learn *l, struct group *g, struct list_node *n);
void group_tidy(struct learn *l, struct group *g);
struct str group_scope(const struct group *g);

/* ---- learn_scopes.c ---- */

/* Key of a scope's view or rating of an agent. */
enum { VIEW_KEY_MAX = AGENT_NAME_MAX + 1 + SCOPE_MAX };
struct str scope_view_key(struct str name, struct str scope,
                          char out[VIEW_KEY_MAX]);
struct str tenant_name(const struct tenant *s);
/* Not in a map yet. */
MUST_USE struct tenant *tenant_new(struct str scope);
/* Takes a reference of its own; w->known must be set. */
void view_link(struct learn *l, struct view *v, struct agent_name *w,
               struct tenant *s);
/* Takes the reference. */
void rating_link(struct rating *r, struct agent_name *w, struct group *g);

/* The weight of the scope's next verdict about agents of that owner. */
double scope_weight(const struct tenant *s, const struct view *v,
                    struct str owner);
void scope_add_owner(struct tenant *s, struct str owner);
/* Evict scopes if there are too many, or too many types in total. */
void tenants_bound(struct learn *l);

uint64_t outcome_voter(const struct outcome *o);
void rating_vote(struct rating *r, uint64_t voter, int64_t sign);
/* False: there is no such vote. */
bool rating_withdraw(struct rating *r, uint64_t voter);
int64_t rating_net(const struct rating *r);
/* Evict ratings of one scope above its limit. */
void ratings_bound(struct learn *l, struct group *g);

/* ---- things.c ---- */

/* Not in a map yet. */
MUST_USE void *thing_new(enum thing_kind kind, struct str key);
void thing_free(struct thing *t);

/* Also one that is gone; NULL: none. */
struct thing *thing_find(const struct learn *l, enum thing_kind kind,
                         struct str key);
/* The same, unless it is gone. */
struct thing *thing_live(const struct learn *l, enum thing_kind kind,
                         struct str key);

/* Make room for everything that one outcome or row can add, apart from vectors.
 * ERR_NOMEM, ERR_LIMIT: nothing was changed. */
MUST_USE enum err learn_reserve(struct learn *l);

/* Add to map and heap, in which there is room. Replaces a gone one with the
 * same key and takes over its row. */
void thing_add(struct learn *l, struct thing *t, int64_t touched);
void thing_touch(struct learn *l, struct thing *t, int64_t touched);
void thing_dirty(struct learn *l, struct thing *t);

/* Take it out of the state; the caller has unlinked it from other things. */
void thing_drop(struct learn *l, struct thing *t);

/* The least recently touched; NULL: none. */
struct thing *things_oldest(const struct learn *l, enum thing_kind kind);
/* All of one kind, in the order of their keys: returns owned, free() it. NULL
 * and *n zero: none, or no memory. */
struct thing **things_in_order(const struct learn *l, enum thing_kind kind,
                               size_t *n);

/* Drop a thing with all that depends on it. */
void known_drop(struct learn *l, struct known *k);
void type_drop(struct learn *l, struct type *t);
void pair_drop(struct learn *l, struct pair *p);
void example_drop(struct learn *l, struct example *x);
void view_drop(struct learn *l, struct view *v);
void tenant_drop(struct learn *l, struct tenant *s);
void rating_drop(struct learn *l, struct rating *r);
void drop_any(struct learn *l, struct thing *t);

/* ---- agent_names.c ---- */

bool is_agent_name(struct str name);

/* Room for n more names. ERR_LIMIT, ERR_NOMEM. */
MUST_USE enum err agent_names_reserve(struct agent_names *t, size_t n);
/* An agent by name, found or made, with one more reference. NULL: not a valid
 * name. There must be room for it. */
MUST_USE struct agent_name *agent_name_take(struct learn *l, struct str name);
struct agent_name *agent_name_find(const struct learn *l, struct str name);
void agent_name_release(struct learn *l, struct agent_name *w);
void agent_names_fini(struct agent_names *t);
bool agent_names_check(const struct agent_names *t);

/* ---- shelf.c ---- */

/* `kind` is THING_EXAMPLE or THING_TYPE. NULL: none. */
struct shelf *shelf_find(const struct learn *l, enum thing_kind kind,
                         struct str scope, struct str model_hash, size_t dims);
/* Found or made, with room for one more. NULL: out of memory. */
MUST_USE struct shelf *shelf_take(struct learn *l, enum thing_kind kind,
                                  struct str scope, struct str model_hash,
                                  size_t dims);
/* Free it if it is empty. */
void shelf_tidy(struct learn *l, struct shelf *s);
/* There must be room. Returns its row. */
size_t shelf_add(struct shelf *s, struct thing *owner,
                 const struct vec_packed *v);
void shelf_set(struct shelf *s, size_t row, const struct vec_packed *v);
/* Moves the last row to this place, and updates its owner. */
void shelf_remove(struct shelf *s, size_t row);
struct vec_packed shelf_at(const struct shelf *s, size_t row);
void shelf_free(struct shelf *s);

/* Open a packed vector of any length. False: none, or all zero. */
bool vector_open(struct vec_packed *v, struct str packed);

/* ---- types.c ---- */

/* Whether vectors of that model and length have two parts. For another model
 * than the present one this is unknown, and none of its vectors is compared
 * with a query. */
bool has_two_parts(const struct learn *l, struct str model_hash, size_t dims);

/* The part of a vector that determines its type: of a model of two tiers the
 * first part, else all of it. False: that part is zero. */
struct type_vector {
    struct vec_packed v;
    uint8_t bytes[8 + 2 * LEARN_QUICK_MAX];
};
bool type_vector_of(const struct learn *l, struct str model_hash,
                    const struct vec_packed *v, struct type_vector *out);

/* The nearest of the scope's types that is near enough; NULL: none. The vector
 * is from type_vector_of. */
struct type *type_near(const struct learn *l, struct str scope,
                       struct str model_hash, const struct vec_packed *v);
/* The id of a new type that begins with the outcome. */
int64_t type_id(const struct learn *l, const struct outcome *o);
/* Not in a map or on a shelf yet; has room for its mean. */
MUST_USE struct type *type_new(int64_t id, size_t dims);
/* Add to the scope, its shelf and the things. False: the mean is zero. */
MUST_USE bool type_shelve(struct learn *l, struct type *t, struct tenant *scope,
                          struct shelf *s, int64_t touched);
void type_begin(struct learn *l, struct type *t, struct tenant *scope,
                struct shelf *s, const struct vec_packed *v, int64_t seq);
void type_join(struct learn *l, struct type *t, const struct vec_packed *v,
               int64_t seq);
struct str type_key(int64_t id, char out[24]);
struct type *type_of(const struct learn *l, int64_t id);
/* Evict types of the scope above its limit. */
void types_bound(struct learn *l, struct tenant *s);

/* ---- type_names.c ---- */

enum { TEXT_WORDS_MAX = 48 };

struct text_words {
    struct telling words[TEXT_WORDS_MAX];
    size_t n;
};

void words_of(struct str text, struct text_words *out);
void type_count_words(struct type *t, const struct text_words *w);

/* ---- examples.c ---- */

/* Key of the example of a decision in a scope. */
struct str example_key(const struct outcome *o, char out[ID_BYTES + SCOPE_MAX]);
void example_shelve(struct example *x, struct shelf *s,
                    struct agent_name *right, struct agent_name *wrong,
                    const struct vec_packed *v, int64_t touched);
/* Add to those of the same text. */
void example_group(struct example *x, struct group *g);
/* The latest of the group. */
const struct example *example_latest(const struct group *g);
/* Touch the nearest of the agent's examples, which was useful again. */
void example_touch_nearest(struct learn *l, const struct outcome *o,
                           const struct agent_name *right,
                           const struct vec_packed *v);
/* Evict examples above the limit of one agent and scope, and in total. */
void examples_bound(struct learn *l, struct shelf *s,
                    const struct agent_name *right);
/* Drop examples that are only about this agent; the others forget it. */
void examples_forget(struct learn *l, const struct agent_name *agent);

/* ---- learn_rows.c ---- */

/* The next tx removes all rows; gone things need none and are freed. */
void rows_clear(struct learn *l);

#endif
