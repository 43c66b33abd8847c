#ifndef MODEL_CARD_H
#define MODEL_CARD_H

/* card: an agent as JSON, read and written in one place for all sources: the
 * API, the hub, the configuration, a file, the store.
 *
 * Reading is strict: an unknown field (the nearest name is suggested), a wrong
 * type or a value beyond its limit is a problem. All problems of a card are
 * found at once, each with its place as a JSON pointer. Duplicate names never
 * get here, since the JSON reader rejects them. A null field counts as not
 * given. A field that the caller may not set is a problem too, so that it is
 * never ignored silently.
 *
 * Text is data: letters of every script are allowed, also right-to-left ones.
 * Invisible characters that could mislead are not: controls except line ends
 * and tabs in long texts, bidirectional marks, U+200B and other invisible
 * characters; joiners stay, because some scripts need them.
 *
 * Pure. Threads: any; no state. */

#include "base/json.h"
#include "model/agent.h"

/* The spelling of fields: snake_case on the wire; camelCase in the
 * configuration, where the name is `id`. */
enum card_dialect { CARD_WIRE, CARD_CONFIG };

enum card_right {
    CARD_MAY_RUN = 1 << 0,    /* restart.command, and a "process:" or
                               * "model:" url */
    CARD_MAY_SHOW = 1 << 1,   /* visibility other than private */
    CARD_MAY_ASSIGN = 1 << 2, /* creator_id, org and kind */
    CARD_MAY_ALL = (1 << 3) - 1,
};

/* The fields that a caller may set: all for admins, visibility with the scope
 * agents. */
unsigned card_rights_of(const struct caller *c);

struct card_problem {
    struct str pointer; /* "/skills/0/name"; empty: the whole card */
    struct str message; /* "must be …": completes the field's name */
    size_t at;          /* offset in the parsed text */
    bool is_forbidden;  /* valid, but not for this caller */
};

enum { CARD_PROBLEMS_MAX = 64 };

struct card_problems {
    struct card_problem list[CARD_PROBLEMS_MAX];
    size_t n;           /* in the list */
    size_t n_all;       /* including those that did not fit */
    size_t n_forbidden; /* of all */
};

/* Further inputs of the reader. */
struct card_opts {
    enum card_dialect dialect;
    unsigned rights;
    bool is_part;    /* it will be merged with others: members that a group
                      * requires may be missing */
    struct str name; /* from the request path: the card may omit the name but
                      * not differ (including case); empty: it is in the card */
    /* The agent that already has that name (ignoring case), or NULL; the name
     * is then written as it is there. Fields that the caller may not set
     * (restart.command, …) may repeat its values. creator_id, org and kind that
     * repeat its values are ignored, since that requests nothing. created_ms,
     * updated_ms, revision, state, embedded, paused and grants are the server's
     * and always ignored. */
    const struct agent *before;
    struct str currency; /* required currency of prices: the ledger's; empty:
                          * unknown here, and any will do */
};

/* Fill *out; everything is copied into the arena. A card without url gets
 * "ws-agent://NAME". creator, org and kind are filled in if they are given and
 * allowed, and otherwise left empty. ERR_BAD_REQUEST: problems has at least
 * one; ERR_NOT_ALLOWED: all of them are is_forbidden; ERR_NOMEM. *out is then
 * undefined. */
MUST_USE enum err card_read(struct arena *a, const struct json *card,
                            const struct card_opts *opts, struct agent *out,
                            struct card_problems *problems);

/* All problems as one sentence: the first one, and how many more there are. */
void card_problems_say(const struct card_problems *p, struct why *why);

/* Describes one field of a card, for the manual. */
struct card_about {
    struct str path;    /* "skills[].pricing.amountMicros" */
    struct str allowed; /* completes "must be" */
    const char *what;   /* a sentence; groups and objects have one too */
    bool is_required;   /* within its object */
};
void card_each(enum card_dialect d,
               void (*each)(void *ctx, const struct card_about *f), void *ctx);

/* Write a card as an object. STORED is the complete card without the server's
 * members, in one canonical form: two cards are equal exactly if these bytes
 * are. ALL is the view of its creator and admins: also the server's members
 * `revision`, `created_ms`, `updated_ms`, `creator_id`, `org` and `kind`, while
 * credentials appear as CARD_IS_SET. OTHERS omits system_prompt, wake, restart,
 * credentials in authentication, and the query of url. SETTING is the form in
 * the configuration, complete, in CARD_CONFIG. To add members (state) the
 * caller opens the object and calls card_write_members. */
#define CARD_IS_SET "…set…"
enum card_view { CARD_STORED, CARD_ALL, CARD_OTHERS, CARD_SETTING };
void card_write(struct json_out *o, const struct agent *a, enum card_view v);
void card_write_members(struct json_out *o, const struct agent *a,
                        enum card_view v);

/* A url as others see it: without its query, which may contain a key. */
void card_put_url(struct json_out *o, struct str url);

/* The members of one skill as in a card, into an open object. */
void card_write_skill_members(struct json_out *o, const struct skill *s);

/* Read the output of CARD_STORED; everything is copied into the arena.
 * ERR_SYNTAX if it is something else; ERR_NOMEM. */
MUST_USE enum err card_read_stored(struct arena *a, struct str text,
                                   struct agent *out);

/* Apply a merge patch (RFC 7396): `patch` over `card` (NULL: nothing); lists
 * are replaced whole. Also used for defaults: card over defaults. All nodes are
 * new, the strings are shared. NULL: the arena is full. */
MUST_USE struct json *card_merge(struct arena *a, const struct json *card,
                                 const struct json *patch);

/* The names of the fields that differ, as a JSON list: ["url","skills"]. */
void card_diff(struct json_out *o, const struct agent *a,
               const struct agent *b);

/* The texts that are embedded as vectors. */
void card_search_text(struct buf *out, const struct agent *a);
void card_routing_text(struct buf *out, const struct agent *a);
void card_skill_text(struct buf *out, const struct skill *s);

#endif
