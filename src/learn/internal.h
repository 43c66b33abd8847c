#ifndef LEARN_INTERNAL_H
#define LEARN_INTERNAL_H

/* What is remembered is a thing: an agent, a scope, a scope's view of an agent,
 * a type of query of a scope, a pair of view and type, an example, and a
 * scope's rating of an agent. Each is one row of learn_table, known by its kind
 * and key, and has the number of the last outcome that touched it: where there
 * are too many the one longest untouched goes.
 *
 *     agent -- view -- pair
 *     scope --/   type --/       a scope goes with its views and types, and
 *     scope ------/              these with their pairs
 *
 *   things.c    things by key and by age; whose row is to be written
 *   whos.c      agents' names
 *   shelf.c     vectors of one model side by side, to be looked through
 *   types.c     online clustering of the queries
 *   names.c     the words that tell types apart
 *   examples.c  what was corrected, and which of it stays
 *   scopes.c    what each scope has said: views, ratings, owners; its end
 *   groups.c    things that are found together
 *   voids.c     outcomes that a fold leaves out
 *   learn.c     the fold
 *   ask.c       what the next message wants to know
 *   rows.c      things -> rows
 *   load.c      rows -> things
 *   outcome.c   outcomes <-> rows
 *   export.c    JSON lines */

#include "learn/learn.h"

#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/agent.h"

enum {
    EXAMPLE_TEXT_MAX = 256, /* bytes that are kept, for people to read */
    SCOPE_MAX = 160,
    HASH_MAX = 128, /* bytes of a model's */
    TELLING_WORDS = 32,
    TELLING_BYTES = 24, /* longer words are none that tell */
    DIMS_MAX = 65536,
    ROW_FORM = 4, /* of the bytes in a row: their first */
    /* Types of query of all scopes together. Of these rows examples are read,
     * and the rest is folded again from the outcomes. */
    ROW_FORM_SHARED = 3,
    ROW_FORM_OLD = 2, /* the same, without hashes of texts */
};

enum thing_kind {
    THING_NUMBER = 0, /* only as a row */
    THING_AGENT,      /* in the order in which rows are read */
    THING_SCOPE,
    THING_VIEW,
    THING_EXAMPLE, /* 4 in rows of every form */
    THING_TYPE,
    THING_PAIR,
    THING_RATING,
    N_KINDS,
};

enum row_state { ROW_CLEAN, ROW_DIRTY, ROW_FLYING };

struct thing {
    enum thing_kind kind;
    struct str key;       /* the kind's digit and the row's key; behind it */
    int64_t heard;        /* the last outcome that touched it */
    size_t slot;          /* in the heap of its kind */
    struct list_node row; /* dirty or flying */
    enum row_state state;
    bool has_row;    /* in the table, for all we know */
    bool is_written; /* what flies is a row, not the end of one */
    bool is_again;   /* changed while its row was on its way */
    bool is_gone;    /* the row is to go, and then this */
};

/* An agent's name, whatever is known of it. */
struct who {
    struct str name; /* in lower case; behind it */
    uint64_t hash;
    size_t n_refs;
    struct known *known;
    struct list views, ratings;
    size_t n_views;

    /* Each is the number of the last query that it was so for. */
    uint64_t told;   /* it is in learn.told */
    uint64_t asked;  /* examples spoke of it: sum */
    uint64_t paired; /* pair */
    uint64_t viewed; /* view, of the scope that asks */
    uint64_t taught, rated;
    int64_t sum;
    const struct pair *pair;
    const struct view *view;
    struct who *next_told; /* in learn.told */
    struct learn_note note;
};

struct known {
    struct thing thing;
    struct who *who;
    double rate; /* every verdict weighs the same */
    int64_t n_good, n_bad;
    /* By the weight of each verdict: of all, and without its own people. */
    double public_rate, outside_rate;
    double weight, outside_weight;
    struct list_node renown; /* in learn.renowned */
};

/* A word that tells, by its stem; shown is the shortest form met. */
struct telling {
    char stem[TELLING_BYTES], word[TELLING_BYTES];
    uint8_t n_stem, n_word;
    uint32_t count;   /* texts that have it */
    uint32_t n_types; /* types that have it, when that was last counted */
};

struct type {
    struct thing thing;
    int64_t id; /* type_id of the outcome that began it */
    struct tenant *scope;
    struct list_node of_scope;
    struct shelf *shelf;
    size_t row;
    float *mean; /* of the directions of what joined it; packed behind it */
    int64_t n;
    struct telling words[TELLING_WORDS];
    size_t n_words;
    struct list pairs;
    char name[4 * TELLING_BYTES]; /* as last asked for */
    size_t n_name;
};

/* What one scope has seen of an agent with queries of one type. */
struct pair {
    struct thing thing;
    struct view *view;
    struct type *type;
    struct list_node of_view, of_type;
    double rate, outside_rate; /* of all, and without its own people */
    int64_t n, outside_n;
};

/* What one scope has seen of an agent. */
struct view {
    struct thing thing;
    struct who *who;
    struct tenant *scope;
    struct list_node of_who, of_scope;
    struct list pairs;
    int64_t n;
    double weight, outside_weight; /* its part of the agent's */
    int64_t good_ms;               /* when it was last good; zero: never */
    int64_t outside_good_ms;       /* and not as one of its own people */
};

/* The rating of an agent by the people of one scope: their latest votes, the
 * oldest first, each of another person or decision. */
struct vote {
    uint64_t voter; /* hash of person and decision */
    int64_t sign;   /* 1 or -1 */
};
struct rating {
    struct thing thing;
    struct who *who;
    struct group *group; /* of the scope */
    struct list_node of_who, of_group;
    struct vote votes[LEARN_RATING_VOTES];
    size_t n;
};

/* A scope: an org, or a user without one. */
struct tenant {
    struct thing thing;                  /* its key is the scope */
    uint64_t owners[LEARN_SCOPE_OWNERS]; /* the first whose agents it has
                                          * judged, by hashes of their names */
    size_t n;
    struct list types, views;
    size_t n_types;
    int64_t counted; /* the change that types of words were counted at */
};

/* Things of one scope that are found together: the examples of one text, the
 * ratings. */
struct group {
    struct str key; /* behind it */
    struct list things;
    size_t n;
};

struct example {
    struct thing thing;
    struct shelf *shelf;
    size_t row;
    int64_t at_ms;
    int64_t said;          /* the outcome that it comes from */
    uint64_t text_hash;    /* zero: not known */
    struct group *group;   /* of the text; NULL: not known */
    struct list_node same; /* in the group */
    char text[EXAMPLE_TEXT_MAX];
    size_t n_text;
};

/* Vectors of one length made by one model, of the examples or of the types of
 * one scope. An example without a vector lies on the shelf of length zero. */
struct shelf {
    struct str key, scope, model_hash; /* behind it */
    enum thing_kind kind;
    size_t dims, stride, n, cap;
    int8_t *high, *low; /* cap rows of stride */
    float *scale, *slack;
    int64_t *heard; /* of examples: as in the thing */
    struct thing **owner;
    struct who **right, **wrong; /* of examples; NULL: nobody */
    size_t quick;   /* numbers of a quick vector; zero: none here is one */
    bool *is_quick; /* of each row */
};

struct heap {
    struct thing **p;
    size_t n, cap;
};

/* Names by a hash of their own: every agent is looked up for every message. */
struct whos {
    struct who **slots; /* NULL: free */
    uint32_t *tags;     /* of the hash, so that others need not be looked at */
    size_t n, cap;      /* cap is zero or a power of two */
    uint64_t seed[2];
};

struct learn {
    struct learn_settings settings;
    struct str model_hash;
    char model_hash_bytes[HASH_MAX];
    size_t quick;    /* of that model's vectors */
    int64_t version; /* the last outcome that was taken */
    int64_t counted; /* the last that was not skipped */
    int64_t applied_total;
    struct map things, shelves, groups;
    struct whos whos;
    struct heap heaps[N_KINDS];
    struct list renowned; /* agents that several scopes have judged */

    /* The table. */
    struct list dirty, flying;
    int64_t written, flying_version; /* numbers */
    bool must_clear, is_clearing;    /* all rows go first */
    bool is_in_pieces;               /* the table says that it is not whole */
    bool is_flying, is_last_flying;
    bool has_number; /* the row with it was loaded */
    bool is_void;    /* what is being loaded is not whole: none of it counts */
    int64_t kept_from; /* the first outcome that is kept; zero: none is */
    bool is_shared;    /* rows of an older form: ROW_FORM_SHARED */

    /* The query that was begun. */
    uint64_t asked;
    struct who *told, *next; /* of whom it knows something */
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

/* `number` is the text's hash; of ratings zero. NULL: there is none. */
struct group *group_find(const struct learn *l, enum group_kind kind,
                         int64_t number, struct str scope);
/* Made if it is new; NULL: memory is gone. */
MUST_USE struct group *group_take(struct learn *l, enum group_kind kind,
                                  int64_t number, struct str scope);
void group_add(struct group *g, struct list_node *n);
/* The group goes with the last of its things. */
void group_remove(struct learn *l, struct group *g, struct list_node *n);
void group_tidy(struct learn *l, struct group *g);
struct str group_scope(const struct group *g);

/* ---- scopes.c ---- */

/* Of a scope's view or rating of an agent. */
enum { VIEW_KEY_MAX = AGENT_NAME_MAX + 1 + SCOPE_MAX };
struct str view_key(struct str name, struct str scope, char out[VIEW_KEY_MAX]);
struct str tenant_name(const struct tenant *s);
/* NULL: memory is gone. In no map yet. */
MUST_USE struct tenant *tenant_new(struct str scope);
/* Takes a reference of its own; the agent is known. */
void view_link(struct learn *l, struct view *v, struct who *w,
               struct tenant *s);
/* Takes the reference. */
void rating_link(struct rating *r, struct who *w, struct group *g);

/* The weight of the scope's next verdict about agents of that owner. */
double scope_weight(const struct tenant *s, const struct view *v,
                    struct str owner);
void scope_meets(struct tenant *s, struct str owner);
/* Scopes go where there are too many, or too many types of all of them. */
void tenants_bound(struct learn *l);

uint64_t voter_of(const struct outcome *o);
void rating_vote(struct rating *r, uint64_t voter, int64_t sign);
/* False: there was no such vote. */
bool rating_withdraw(struct rating *r, uint64_t voter);
int64_t rating_net(const struct rating *r);
/* At most so many of one scope. */
void ratings_bound(struct learn *l, struct group *g);

/* ---- things.c ---- */

/* NULL: memory is gone. It is in no map yet. */
MUST_USE void *thing_new(enum thing_kind kind, struct str key);
void thing_free(struct thing *t);

/* Also one that is gone; NULL: there never was. */
struct thing *thing_find(const struct learn *l, enum thing_kind kind,
                         struct str key);
/* The same, if it is there. */
struct thing *thing_live(const struct learn *l, enum thing_kind kind,
                         struct str key);

/* Room for one more of each kind, and n in the map. */
MUST_USE enum err things_reserve(struct learn *l);

/* Into map and heap, for which there is room. One that is gone and has the
 * same key makes way, but its row stays known. */
void thing_add(struct learn *l, struct thing *t, int64_t heard);
void thing_touch(struct learn *l, struct thing *t, int64_t heard);
void thing_dirty(struct learn *l, struct thing *t);

/* Takes it out; what hangs on it was let go before. */
void thing_drop(struct learn *l, struct thing *t);

/* The one longest not heard of; NULL: there is none. */
struct thing *things_oldest(const struct learn *l, enum thing_kind kind);
/* All of one kind, in the order of their keys: returns owned, free() it. NULL
 * and *n zero: none, or no memory. */
struct thing **things_in_order(const struct learn *l, enum thing_kind kind,
                               size_t *n);

/* Drop, with all that hangs on it. */
void known_drop(struct learn *l, struct known *k);
void type_drop(struct learn *l, struct type *t);
void pair_drop(struct learn *l, struct pair *p);
void example_drop(struct learn *l, struct example *x);
void view_drop(struct learn *l, struct view *v);
void tenant_drop(struct learn *l, struct tenant *s);
void rating_drop(struct learn *l, struct rating *r);
void drop_any(struct learn *l, struct thing *t);

/* ---- whos.c ---- */

bool is_agent_name(struct str name);

/* An agent by name, made if it is new, with one reference more. NULL: memory
 * is gone, or that is no name. */
MUST_USE struct who *who_take(struct learn *l, struct str name);
struct who *who_find(const struct learn *l, struct str name);
void who_release(struct learn *l, struct who *w);
void whos_fini(struct whos *t);
bool whos_check(const struct whos *t);

/* ---- shelf.c ---- */

/* Of THING_EXAMPLE or THING_TYPE. NULL: there is none. */
struct shelf *shelf_find(const struct learn *l, enum thing_kind kind,
                         struct str scope, struct str model_hash, size_t dims);
/* Made if it is new, with room for one more. */
MUST_USE struct shelf *shelf_take(struct learn *l, enum thing_kind kind,
                                  struct str scope, struct str model_hash,
                                  size_t dims);
/* Gone if nothing is on it. */
void shelf_tidy(struct learn *l, struct shelf *s);
/* There is room. Returns its row. */
size_t shelf_add(struct shelf *s, struct thing *owner,
                 const struct vec_packed *v);
void shelf_set(struct shelf *s, size_t row, const struct vec_packed *v);
/* The last one takes its place: its owner is told. */
void shelf_remove(struct shelf *s, size_t row);
struct vec_packed shelf_at(const struct shelf *s, size_t row);
void shelf_free(struct shelf *s);

/* A packed vector of whatever length. False: none, or all zero. */
bool vector_open(struct vec_packed *v, struct str packed);

/* ---- types.c ---- */

/* Whether vectors of that model and length have two parts. Of another model
 * than the one in use this is not known, and none of its vectors is compared
 * with a query. */
bool has_two_parts(const struct learn *l, struct str model_hash, size_t dims);

/* What of a vector tells its type: of a model of two tiers the first part, else
 * all of it. False: there is nothing in that part. */
struct type_vector {
    struct vec_packed v;
    uint8_t bytes[8 + 2 * LEARN_QUICK_MAX];
};
bool type_vector_of(const struct learn *l, struct str model_hash,
                    const struct vec_packed *v, struct type_vector *out);

/* The nearest of the scope's types that is near enough; NULL: none is. The
 * vector is one of type_vector_of. */
struct type *type_near(const struct learn *l, struct str scope,
                       struct str model_hash, const struct vec_packed *v);
/* The id of a type that the outcome begins. */
int64_t type_id(const struct learn *l, const struct outcome *o);
/* NULL: memory is gone. In no map or shelf yet; has room for its mean. */
MUST_USE struct type *type_new(int64_t id, size_t dims);
/* Onto the scope's shelf and among the things. False: the mean is nothing. */
MUST_USE bool type_shelve(struct learn *l, struct type *t, struct tenant *scope,
                          struct shelf *s, int64_t heard);
void type_begin(struct learn *l, struct type *t, struct tenant *scope,
                struct shelf *s, const struct vec_packed *v, int64_t seq);
void type_join(struct learn *l, struct type *t, const struct vec_packed *v,
               int64_t seq);
struct str type_key(int64_t id, char out[24]);
struct type *type_of(const struct learn *l, int64_t id);
/* Types of the scope go where there are too many. */
void types_bound(struct learn *l, struct tenant *s);

/* ---- names.c ---- */

enum { TEXT_WORDS_MAX = 48 };

struct text_words {
    struct telling words[TEXT_WORDS_MAX];
    size_t n;
};

/* False: memory is gone. */
MUST_USE bool words_of(struct str text, struct text_words *out);
void type_hear(struct type *t, const struct text_words *w);

/* ---- examples.c ---- */

/* Key of the example that a decision is for a scope. */
struct str example_key(const struct outcome *o, char out[ID_BYTES + SCOPE_MAX]);
void example_shelve(struct example *x, struct shelf *s, struct who *right,
                    struct who *wrong, const struct vec_packed *v,
                    int64_t heard);
/* Among those of the same text. */
void example_group(struct example *x, struct group *g);
/* The latest of the group. */
const struct example *example_latest(const struct group *g);
/* The nearest of the agent's examples was useful once more. */
void example_thank(struct learn *l, const struct outcome *o,
                   const struct who *right, const struct vec_packed *v);
/* At most so many of one agent and scope, and of all. */
void examples_bound(struct learn *l, struct shelf *s, const struct who *right);
/* Those that speak of nobody else go, the others do not speak of it. */
void examples_forget(struct learn *l, const struct who *who);

/* ---- rows.c ---- */

/* All rows go with the next that is written; what is gone needs none. */
void rows_clear(struct learn *l);

#endif
