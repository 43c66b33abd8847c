#ifndef REGISTRY_INTERNAL_H
#define REGISTRY_INTERNAL_H

/* What the files of registry/ share:
 *
 *   registry.c   the mirror: entries by name, in order, by number
 *   entry.c      one agent in memory, and whose it is
 *   load.c       from the store
 *   snapshot.c   the index as a file, from one start to the next
 *   change.c     cards: put, patch, remove
 *   configure.c  the agents of the configuration, all at once
 *   grant.c      who may see a shared agent
 *   holding.c    what one owner and one org have
 *   step.c       what a change does to one agent: claimed, then settled
 *   tell.c       what the feed is told of it
 *   lost.c       who could not be kept in the index
 *   vectors.c    texts to vectors, and vectors to rows and back
 *   backlog.c    those that cannot be had at once: in the background
 *   vectors_job.c  what is done there for one agent
 *   levels.c     the reference vectors, from which cards get their levels
 *   search.c     a query to an answer
 *   ranked.c     what somebody sees, best first, and the rule of two
 *   keywords.c   which routing keywords a text has
 *   near.c       everyone who could get a message, and how near it is
 *   check.c      whether memory, index and store agree
 */

#include "base/list.h"
#include "base/map.h"
#include "registry/registry.h"

/* What is counted by owner and by org; holding.c. */
enum held {
    HELD_AGENTS,
    HELD_SKILLS,
    HELD_CARD_BYTES, /* as they are stored */
    HELD_INDEX_BYTES,
    N_HELD,
};

struct holding {
    size_t of[N_HELD];
};

/* Who has registered agents, whatever the case their name is written in. */
struct owner {
    struct holding held; /* those on their way included */
    size_t n_awaited;    /* that wait for vectors */
    struct list entries; /* those in the mirror */
    uint64_t asked;      /* registry_any_of: what was last asked of it, and */
    bool is_so;          /* what was found */
    size_t name_bytes;
    char name[]; /* in lower case */
};

/* The same of one org. */
struct org_count {
    struct holding held;
    size_t n_entries; /* that point here */
    size_t name_bytes;
    char name[];
};

/* The grants of one agent: replaced whole, apart from its card. */
struct grants {
    struct arena arena;
    struct agent_grant *list;
    size_t n, room;
    struct entry *entry; /* whose they are; NULL: nobody's yet */
    size_t n_listed;     /* the first of them, in registry.grants */
};

/* One agent in memory. Replaced whole by a change: whoever holds one across
 * turns holds its name instead. */
struct entry {
    struct agent agent; /* first: an agent is its entry */
    struct arena arena; /* of everything in it */

    /* Side by side, since every message looks at these of everyone. */
    uint32_t number;     /* in the index */
    uint32_t said_place; /* keywords.c: in agent.routing.keywords, the first */
    uint64_t said_in;    /* that was found, in the text of that number */
    bool is_unroutable;  /* as the card says */
    bool is_claimed;     /* a change of it is on its way */

    struct str key;   /* the name in lower case */
    bool has_own_org; /* said by an admin or the configuration; else it is
                       * the creator's, whichever that is */
    char org[PRINCIPAL_NAME_MAX + 1]; /* agent.org points here */
    struct holding size;              /* what it takes */
    struct owner *owner;              /* who it counts for; NULL: nobody */
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
    bool is_embedded;        /* its vectors are in the index, and not only for
                              * now */
    struct list_node todo;   /* in vectors.todo or vectors.later */
    struct vectors_job *job; /* or under way */
    bool is_anew;            /* it had some, of another model */
    unsigned n_refusals;     /* of its own texts, in a row */
    int64_t due_ms;          /* when it is tried again, then */
    bool is_unsealed;        /* its row has secrets, and no seal */
};

static inline struct entry *entry_of(const struct agent *a)
{
    return (struct entry *)a;
}

/* The mirror (registry.c). */

/* The defaults for what is zero. */
struct registry_limits limits_fill(const struct registry_limits *l);

/* Whatever its case; NULL: it is not there (yet). */
struct entry *entry_find(const struct registry *r, struct str name);

/* Room for `n` more than there are and are coming, so that mirror_put cannot
 * fail. ERR_NOMEM. */
MUST_USE enum err mirror_reserve(struct registry *r, size_t n);

/* Put e in, in the place of whatever has its name; what was there comes back,
 * the caller's now. */
struct entry *mirror_put(struct registry *r, struct entry *e);
struct entry *mirror_take(struct registry *r, struct str key);

/* A number that nobody has, and back. mirror_reserve made room. */
uint32_t number_claim(struct registry *r);
void number_release(struct registry *r, uint32_t number);

/* An entry (entry.c). */

/* From a card as it is stored. Not in the mirror, not counted
 * for anybody, without number and grants. ERR_SYNTAX: it is no card;
 * ERR_NOMEM. */
MUST_USE enum err entry_new(struct registry *r, struct str stored,
                            struct str creator, struct str own_org,
                            struct entry **out);

/* And what it holds: its owner's count and its grants. NULL is fine. */
void entry_free(struct registry *r, struct entry *e);

/* CARD_STORED of an agent into `out`. ERR_NOMEM. */
MUST_USE enum err entry_write(const struct agent *a, struct buf *out);

/* Its creator's org may be another one; it is in the mirror. Whether it was. */
bool entry_refresh_org(struct registry *r, struct entry *e);

/* Count e for its creator, unless it is the configuration's. Where the one
 * before (may be NULL) is of the same, only what e has more than that; the rest
 * follows when e takes its place. ERR_NOMEM. */
MUST_USE enum err owner_take(struct registry *r, struct entry *e,
                             const struct entry *before);
void owner_follow(struct entry *e, struct entry *before);

/* holding.c: the same for its org, once it counts for its creator. */
MUST_USE enum err org_take(struct registry *r, struct entry *e,
                           const struct entry *before);
void org_follow(struct entry *e, struct entry *before);
void org_drop(struct registry *r, struct entry *e);
/* Its org is another one now. */
void org_move(struct registry *r, struct entry *e);
struct org_count *org_count_find(const struct registry *r, struct str org);

struct holding holding_of(const struct registry *r, const struct agent *a,
                          size_t card_bytes);
bool holding_is(const struct holding *a, const struct holding *b);
void holding_add(struct holding *to, const struct holding *more);
void holding_subtract(struct holding *from, const struct holding *less);
/* What `size` has more than that (may be NULL: nothing). */
struct holding holding_beyond(const struct holding *size,
                              const struct holding *had);

/* Whether e, in the place of the one before (may be NULL), is within what one
 * user and one org may have. ERR_LIMIT. */
MUST_USE enum err holding_check(const struct registry *r, const struct entry *e,
                                const struct entry *before, struct why *why);

struct owner *owner_find(const struct registry *r, struct str creator);
/* The same creator's, who is somebody. */
bool owner_is_same(const struct entry *a, const struct entry *b);

void key_of(struct str name, char out[AGENT_NAME_MAX + 1]);

/* Grants (grant.c). */
/* NULL is fine. */
void grants_free(struct registry *r, struct grants *g);
/* From here on e has these; those it had are freed. There must be room in
 * registry.grants, which grants_reserve makes, and keeps until it is given
 * back: for one more. */
void entry_set_grants(struct registry *r, struct entry *e, struct grants *g);
MUST_USE enum err grants_reserve(struct registry *r);
/* Room for `more` beyond those of `from` (may be NULL), which are copied but
 * for what expired before now_ms. NULL: no memory. */
MUST_USE struct grants *grants_copy(const struct grants *from, size_t more,
                                    int64_t now_ms);
/* Strings are copied. */
MUST_USE enum err grants_add(struct grants *g, const struct agent_grant *one);
MUST_USE enum err entry_add_grant(struct registry *r, struct entry *e,
                                  const struct agent_grant *one);

/* All rows of a table whose key is a name or an id, in its order, until one is
 * an error (load.c). */
MUST_USE enum err rows_each(struct registry *r, const struct table *table,
                            enum err (*each)(struct registry *r,
                                             const struct row *row, void *ctx,
                                             struct why *why),
                            void *ctx, struct why *why);

/* Steps (step.c): what a change does to one agent. */
enum step_kind { STEP_PUT, STEP_REMOVE, STEP_GRANTS };

struct registry_step {
    struct registry_step *next;
    enum step_kind kind;
    struct str key;
    bool is_new;                 /* STEP_PUT: its name was free */
    size_t n_skills_more;        /* claimed of the limit */
    struct entry *entry;         /* STEP_PUT: as it will be */
    struct index_change *change; /* STEP_PUT: likewise */
    uint32_t dims;               /* of its vectors */
    struct grants *grants;       /* STEP_GRANTS */
    bool has_room;               /* claimed with grants_reserve */
    char bytes[];                /* of key */
};

/* Claim a name. The step is in c, and is settled or dropped with it. ERR_BUSY:
 * somebody has it; ERR_NOMEM. */
MUST_USE enum err step_add(struct registry *r, struct registry_change *c,
                           enum step_kind kind, struct str key,
                           struct registry_step **out, struct why *why);

/* Give everything back as it was. */
void steps_drop(struct registry *r, struct registry_change *c);

/* A step that puts e in (takes it, also on an error): index, vectors, number,
 * limits, its row and the feed's entry. `before` may be NULL. */
struct step_put {
    struct entry *entry, *before;
    struct str by;   /* a name; empty: the server */
    bool is_limited; /* to what one user may have */
    bool is_unbound; /* not even to what all may have */
};
MUST_USE enum err step_put(struct registry *r, struct registry_change *c,
                           const struct step_put *p, struct why *why);

/* A step that takes it out. */
MUST_USE enum err step_remove(struct registry *r, struct registry_change *c,
                              struct entry *e, struct str by, int64_t at_ms,
                              struct why *why);

/* An entry of the feed (tell.c). */
struct telling {
    const char *type;
    const struct entry *entry;
    const struct entry *before;      /* it became entry; may be NULL */
    const struct agent_grant *grant; /* may be NULL */
    struct str by;
    int64_t at_ms;
};
void tell_feed(struct tx *tx, const struct telling *t);

/* In the index (lost.c): its org is another; it has been put there anew, or
 * goes; and whoever is lost is tried once more. */
void index_follow(struct registry *r, struct entry *e);
void index_found(struct registry *r, struct entry *e);
void index_retry(struct registry *r);

/* Whom it is for, and what they look with. */
struct eyes by_eyes(const struct registry_by *by);
struct str by_name(const struct registry_by *by);

/* The agent of that name, for somebody who wants to change it: seen, owned, of
 * the right revision and not being changed. The configuration's card is changed
 * there and nowhere else, but who may see it is for admins to say. */
enum change_what { CHANGE_CARD, CHANGE_GRANTS };
MUST_USE enum err find_to_change(struct registry *r, enum change_what what,
                                 struct str name, const struct registry_by *by,
                                 struct entry **out, struct why *why);

/* An entry as it will be: the card and what the server says of it are `a`'s.
 * ERR_NOMEM. (change.c) */
MUST_USE enum err entry_make(struct registry *r, const struct agent *a,
                             const struct entry *before, int64_t now_ms,
                             struct entry **out);

/* Whether two say the same, revisions and times apart. */
MUST_USE enum err entry_is_same(const struct entry *a, const struct entry *b,
                                bool *is_same);

/* The end of taking a change: it is open; or its claims are given back, and e
 * comes back. */
MUST_USE enum err change_open(struct registry_change *c, struct str name,
                              int64_t revision);
MUST_USE enum err change_refuse(struct registry *r, struct registry_change *c,
                                enum err e, struct why *why);

/* One more in the sequence, in a tx that changes any of the tables; and, once
 * that is committed, in memory. */
void seq_append(struct registry *r, struct tx *tx);
void seq_settle(struct registry *r);

/* The snapshot (snapshot.c). False: there is none that is good, and the index
 * is empty. */
bool snapshot_load(struct registry *r);
void snapshot_save(struct registry *r);

/* vectors.c */

/* Vectors of one row. Where a card's texts would be more with this model, its
 * last examples have none; the agent's own and its skills' always fit. */
enum { VECTORS_BYTES_MAX = 32 * 1024 * 1024 };

/* The reference vectors, and what is on its way to them (levels.c). */
struct levels {
    struct registry *r;
    struct strs texts;
    uint32_t sum;      /* of the texts: other texts, another sum */
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

/* Whose vectors the index has, and what is on its way to more of them. */
struct vectors {
    struct levels levels;
    struct registry *r;
    struct embed_stamp stamp; /* dims zero: a provider that nobody has had an
                               * answer from, and no row of its either */
    bool is_begun;
    struct list todo;  /* entries */
    struct list later; /* those whose texts were refused, until due_ms */
    struct list jobs;
    size_t n_todo, n_later, n_jobs;
    size_t n_anew; /* entries that had vectors of another model, and were not
                    * refused by this one: until they have theirs nothing can
                    * be compared, and search goes by words */
    size_t n_texts_out;
    int64_t later_ms; /* none of `later` is due before */
    struct timer timer;
    struct loop_job kick;
    /* All wait when it is not one agent's texts. */
    unsigned n_failures; /* in a row */
    uint64_t round;      /* how often, ever */
    unsigned n_refused;  /* agents in a row whose own texts it was */
    int64_t again_ms;    /* nothing is begun before */
    uint64_t chance;
    struct {
        bool is_on; /* somebody reads how far it is */
        int64_t done, said;
        int64_t next_ms;
    } progress;
};

/* Part of registry_new and registry_free; the index is there. */
MUST_USE enum err vectors_open(struct registry *r);
void vectors_close(struct registry *r);

/* All texts of a card, in the order of VECTOR_BYTES, copied into the arena. */
MUST_USE enum err vectors_texts(struct arena *a, const struct agent *agent,
                                struct strs *out);

/* Whether two cards have the same texts, so that the vectors of one will do
 * for the other. */
bool vectors_are_same(const struct agent *a, const struct agent *b);

/* The packed vectors of a card into `out`, if all can be had in a moment; else
 * it stays empty and false comes back. */
bool vectors_now(struct registry *r, const struct agent *a, struct buf *out);

/* How many of a card's texts have vectors, if those are so long: all, but for
 * VECTORS_BYTES_MAX. */
size_t vectors_kept(const struct agent *a, uint32_t dims);

/* Pack one behind what is in `out`. False: no memory. */
MUST_USE bool vectors_pack(struct buf *out, const float *v, uint32_t dims);

/* The row for packed vectors: an operation in a tx that writes or has written
 * the card. */
void vectors_append(struct registry *r, struct tx *tx, const struct agent *a,
                    struct str packed);

/* Of packed vectors in the row's order, those that the index takes: the
 * agent's for search; each skill's, which is the mean of its text and its
 * examples; and what the agent is routed by as a whole, the mean of all. False:
 * they are none of this card or model. */
bool vectors_for_index(struct registry *r, const struct agent *a,
                       struct str packed, struct buf *out);

/* What the index is told of a card, with those vectors; NULL: with quick ones
 * for now, where they can be had, or none. Errors as index_prepare. */
MUST_USE enum err vectors_prepare(struct registry *r, const struct agent *a,
                                  const struct buf *vectors,
                                  struct index_change **out);

/* Those that the index has of an agent, in the same order; not for now. */
bool vectors_in_index(const struct registry *r, const struct entry *e,
                      struct buf *out);

/* The same for a row of vector_table, whose revision and model are looked at
 * too. With a provider that has not said yet how long its vectors are, the
 * first row of its says it. */
bool vectors_from_row(struct registry *r, const struct agent *a,
                      const struct row *row, struct buf *out);

/* Whether quick vectors can be had, and the index has them of every card that
 * waits for its full ones and is not too large. */
bool vectors_have_quick(const struct registry *r);

/* The model may have said by now how long its vectors are: if that is not what
 * the index has, all are made anew. */
void vectors_learn(struct registry *r);

/* NULL: vectors can be made and kept; else why not, to stand behind "because".
 */
const char *vectors_obstacle(const struct registry *r);

/* backlog.c */

/* An entry has come that has none, or goes that may wait for some. */
void vectors_want(struct registry *r, struct entry *e);
void vectors_forget(struct registry *r, struct entry *e);

void vectors_begin(struct registry *r);
void vectors_stop(struct registry *r);

/* Those in the index are of no use any more. */
void vectors_want_all(struct registry *r);

/* One that waits had vectors of another model. */
void vectors_anew(struct registry *r, struct entry *e);

/* How many of their own agents wait for vectors (of all, for who sees all),
 * themselves not counted. */
size_t vectors_awaited(const struct registry *r, const struct eyes *eyes);

/* What its jobs tell it, once each; the entry is NULL where it has gone. */

void backlog_failed(struct vectors *v, struct entry *e, enum err err,
                    const char *why);
/* Another card is there: its entry has come, or comes any moment. */
void backlog_overtaken(struct vectors *v, struct entry *e);
/* They are in the index. */
void backlog_made(struct vectors *v, struct entry *e, uint64_t round);

/* vectors_job.c */

struct vectors_job {
    struct list_node node;
    struct vectors *all;
    struct entry *entry; /* NULL: it has gone, or another took its place */
    uint64_t round;      /* how often all had failed when it began */
    struct arena arena;
    struct strs texts;
    size_t at;       /* the first text that has not been asked for */
    size_t n_asked;  /* that are out */
    size_t batch;    /* so many at a time */
    uint64_t ask_id; /* of embed; zero: none */
    struct buf packed;
    struct index_change *change;
    char org[PRINCIPAL_NAME_MAX + 1]; /* that the change was made for */
    struct tx tx;
    bool is_written; /* the store has the tx */
};

/* e is in no list. */
void vectors_job_begin(struct vectors *v, struct entry *e);

/* End it, telling nobody. False: the store has its row, and gives it back
 * whenever that is. */
bool vectors_job_drop(struct vectors_job *j);

/* search.c */

struct searches {
    struct list waiting;
    size_t n_waiting;
    uint64_t next_id;
    struct registry_ranking ranking;

    /* Agents that some see beside their classes, by number. */
    uint32_t *besides;
    size_t n_besides, besides_cap;
    int64_t besides_seq; /* as of here */
};

/* Part of registry_new and registry_free. */
MUST_USE enum err search_open(struct registry *r);
void search_close(struct registry *r);
void search_stop(struct registry *r);

/* ranked.c */

struct places {
    const struct search *s;
    struct search_hit *hits; /* room for the limit */
    size_t n;
    struct search_hit *held; /* the same again: they wait for a place */
    size_t n_held;
    size_t total; /* that were found */
};

/* Fill p, which has room for the hits; without a vector by words alone.
 * ERR_NOMEM. */
MUST_USE enum err ranked_look(struct registry *r, struct places *p,
                              const float *vector);

/* Of every agent, by its number, how near a text is; see index_near. */
MUST_USE enum err ranked_near(struct registry *r,
                              const struct registry_near_query *q,
                              const struct index_near **out, size_t *count);

/* near.c: what every message looks at of everyone, side by side. */
struct near_mark {
    bool is_there; /* and routable */
    bool is_said;  /* one of its keywords may be in the text */
    bool is_platform;
    uint32_t user, org; /* hashes of whose it is */
    uint32_t n_docs;    /* it and its skills */
    double most;        /* no less than its score */
};

/* keywords.c */

/* Where a keyword is found, by one class of who it counts for. */
struct keyword_node {
    struct list_node bucket; /* of the first of its class and words */
    struct list_node ring;   /* of all of them; it has no head */
    uint64_t hash;           /* of both */
    uint64_t looked_in;      /* of the first: the text that has them */
    const struct keyword *keyword;
};

/* One keyword of one agent. */
struct keyword {
    struct keyword_node nodes[3];
    struct entry *entry;
    uint64_t word;    /* the first, hashed */
    uint64_t words;   /* the first KEYWORD_WORDS, hashed, */
    uint32_t n_words; /* how many these are */
    uint32_t place;   /* in agent.routing.keywords */
    struct str plain; /* keyword.h */
    bool is_telling;  /* more than words that are in messages of all kinds */
};

enum { KEYWORD_WORDS = 16 }; /* that one is found by */

struct keywords {
    struct list *buckets;           /* by hash; a power of two of them */
    size_t n_buckets, n;            /* n: nodes that stand in one */
    size_t n_of[KEYWORD_WORDS + 1]; /* keywords of so many words */
    struct buf plain;               /* of a keyword or a text */
    uint64_t serial;                /* of texts */
    uint64_t *common; /* words of messages of all kinds, hashed, sorted */
    size_t n_common;
};

/* Part of registry_new and registry_free. */
MUST_USE enum err keywords_open(struct registry *r);
void keywords_close(struct registry *r);

/* Those of e into its arena. ERR_NOMEM. */
MUST_USE enum err keywords_make(struct registry *r, struct entry *e);

/* From here on they are found by who they count for, or not: so around every
 * change of an agent's kind, creator, org or visibility. */
void keywords_put(struct registry *r, struct entry *e);
void keywords_take(struct registry *r, struct entry *e);

/* Look through a text for keywords of those who are no outsiders, and of
 * outsiders who are public: from then on keyword_said is about it. Of these
 * only those that are telling, unless q trusts all. ERR_NOMEM. */
MUST_USE enum err keywords_look(struct registry *r,
                                const struct registry_near_query *q);
/* After it: all keywords of all outsiders that are seen. */
void keywords_look_at_all(struct registry *r, const struct eyes *eyes);
struct str keyword_said(const struct registry *r, const struct entry *e);

struct registry {
    struct registry_opts opts;
    enum agent_state (*state_of)(void *ctx, const struct agent *a);
    void *state_ctx;
    struct map by_name;        /* lower case -> struct entry */
    const struct agent **list; /* in the order of their names: entry_of */
    size_t n, cap;
    struct entry **by_number; /* NULL where a number is free */
    size_t n_numbers, numbers_cap;
    uint32_t *free_numbers; /* below n_numbers; as many may be as that */
    size_t n_free;
    struct map owners;      /* lower-case name -> struct owner */
    struct map orgs;        /* name -> struct org_count */
    struct map grants;      /* id -> struct grants that has it */
    size_t n_grants_coming; /* there is room for */
    struct map claims;      /* lower-case name -> struct registry_step */
    size_t n_coming, n_skills_coming; /* of new agents, claimed */
    struct index *index;
    size_t n_lost;     /* lost.c */
    size_t n_sealed;   /* sealed.c */
    int64_t seq;       /* of what memory shows */
    int64_t mark;      /* of the run that made the last change */
    int64_t own_mark;  /* of this one */
    int64_t pruned_ms; /* grants that expired before this are forgotten */
    bool is_loaded;
    struct registry_stats stats; /* the counters of it */
    bool is_stopped;
    struct vectors *vectors;   /* vectors.c's own, and */
    struct searches *searches; /* search.c's */
    char currency[AGENT_CURRENCY_MAX + 1];
    struct registry_near *near;   /* near.c's answer */
    struct near_mark *near_marks; /* by number */
    size_t near_cap, marks_cap;
    uint64_t near_moves; /* those that the marks are of */
    uint64_t n_moves;    /* agents that came and went: other numbers */
    struct keywords keywords;
};

/* sealed.c: the text of a card's row, and CARD_STORED from it. Errors of
 * sealed_read as registry_load's, and ERR_SYNTAX. */
bool sealed_has_secrets(const struct agent *a);
MUST_USE enum err sealed_write(const struct registry *r, const struct entry *e,
                               struct buf *out);
MUST_USE enum err sealed_read(const struct registry *r, struct str key,
                              struct str text, struct buf *out, bool *is_sealed,
                              struct why *why);
/* Those that were read without a seal, and need one, get it. */
void sealed_begin(struct registry *r);

/* self.c: what a card that registers itself cannot say is taken from it.
 * ERR_NOMEM. */
MUST_USE enum err self_fit(struct arena *scratch, struct agent *a,
                           const struct agent *before);

#endif
