#ifndef MODEL_CARD_H
#define MODEL_CARD_H

/* card: an agent as JSON, read and written in one place whoever brings it: the
 * API, the hub, the configuration, a file, the store.
 *
 * Reading is strict: a field that is not known (the nearest one is named), of
 * another type or beyond its limit is a problem. All problems of a card are
 * found at once, each with the place as a JSON pointer; a name that stands
 * twice in an object is none of them, since such a text is no JSON for us and
 * never becomes a tree. A field that is null counts as not given. What only
 * some may say is a problem of its own, so that nobody believes it was taken.
 *
 * Text is data: letters of every writing are welcome, also those from right to
 * left; what cannot be seen and could mislead is not (controls but for line
 * ends and tabs in long texts, marks that turn the direction of others, U+200B
 * and other nothings; joiners stay, some writing needs them).
 *
 * Pure. Threads: any; nothing here keeps state. */

#include "base/json.h"
#include "model/agent.h"

/* How fields are spelt: snake_case on the wire; in the configuration camelCase,
 * and the name is `id`. */
enum card_dialect { CARD_WIRE, CARD_CONFIG };

enum card_right {
    CARD_MAY_RUN = 1 << 0,    /* restart.command, and a url of "process:…"
                               * or "model:…" */
    CARD_MAY_SHOW = 1 << 1,   /* visibility other than private */
    CARD_MAY_ASSIGN = 1 << 2, /* creator_id, org and kind */
    CARD_MAY_ALL = (1 << 3) - 1,
};

/* What a caller may say: admins all of it, others visibility with the scope
 * agents. */
unsigned card_rights_of(const struct caller *c);

struct card_problem {
    struct str pointer; /* "/skills/0/name"; empty: the whole */
    struct str message; /* "must be …": to stand behind a field's name */
    size_t at;          /* where in the text that was parsed */
    bool is_forbidden;  /* not wrong in itself, but not for this caller */
};

enum { CARD_PROBLEMS_MAX = 64 };

struct card_problems {
    struct card_problem list[CARD_PROBLEMS_MAX];
    size_t n;           /* in the list */
    size_t n_all;       /* also those that did not fit */
    size_t n_forbidden; /* of all */
};

/* What the reader is told beside the card. */
struct card_opts {
    enum card_dialect dialect;
    unsigned rights;
    bool is_part;    /* others will be laid over or under it: what a group needs
                      * may stand there */
    struct str name; /* from the path of the request: the card may leave it
                      * out, but not say another (case included); empty: it is
                      * in the card */
    /* What is there already under that name, whatever the case, or NULL; the
     * name is then written as it is there. What the caller may not say
     * (restart.command, …) may be said as it is there. creator_id, org and kind
     * said as they are there are passed over: that is no wish. created_ms,
     * updated_ms, revision, state, embedded, paused and grants are what we say
     * of it and are always passed over. */
    const struct agent *before;
    struct str currency; /* what prices may be in: the ledger's; empty: it is
                          * not known here, and any will do */
};

/* Fill *out, everything copied into the arena. A card without url gets
 * "ws-agent://NAME". creator, org and kind are filled in where they were said
 * and may be; otherwise left empty.
 * ERR_BAD_REQUEST: problems say why, at least one; ERR_NOT_ALLOWED: all of
 * them are is_forbidden; ERR_NOMEM. *out is then of no use. */
MUST_USE enum err card_read(struct arena *a, const struct json *card,
                            const struct card_opts *opts, struct agent *out,
                            struct card_problems *problems);

/* One sentence for who takes only one: the first problem, and how many more
 * there are. */
void card_problems_say(const struct card_problems *p, struct why *why);

/* Every field of a card, one after another, for a manual. */
struct card_about {
    struct str path;    /* "skills[].pricing.amountMicros" */
    struct str allowed; /* to stand behind "must be" */
    const char *what;   /* a sentence; groups and objects have one too */
    bool is_required;   /* within what it stands in */
};
void card_each(enum card_dialect d,
               void (*each)(void *ctx, const struct card_about *f), void *ctx);

/* Write a card, as an object. STORED is the card alone, all of it, in one
 * canonical form: two cards say the same if these are the same bytes. ALL is
 * what its creator and admins see: that and what the server says of it, with
 * `revision`, `created_ms`, `updated_ms`, `creator_id`, `org`, `kind`;
 * credentials are only said to be set (CARD_IS_SET). OTHERS leaves out
 * system_prompt, wake, restart, credentials in authentication, and the query of
 * url. SETTING is how it stands in the configuration: all of it, in
 * CARD_CONFIG. The caller adds members (state) by card_write_members into an
 * object that is open. */
#define CARD_IS_SET "…set…"
enum card_view { CARD_STORED, CARD_ALL, CARD_OTHERS, CARD_SETTING };
void card_write(struct json_out *o, const struct agent *a, enum card_view v);
void card_write_members(struct json_out *o, const struct agent *a,
                        enum card_view v);

/* A url as others see it: without its query, which may have a key in it. */
void card_put_url(struct json_out *o, struct str url);

/* One skill, as it stands in a card; `members`: into an object that is open. */
void card_write_skill_members(struct json_out *o, const struct skill *s);

/* Read what CARD_STORED wrote; everything is copied into the arena. ERR_SYNTAX:
 * it is none; ERR_NOMEM. */
MUST_USE enum err card_read_stored(struct arena *a, struct str text,
                                   struct agent *out);

/* A card changed as RFC 7396 has it: `patch` over `card` (NULL: nothing), both
 * trees; lists are replaced whole. Also for defaults: card over defaults. All
 * of it is new but for the strings. NULL: no memory. */
MUST_USE struct json *card_merge(struct arena *a, const struct json *card,
                                 const struct json *patch);

/* The names of the fields that differ, as a JSON list: ["url","skills"]. */
void card_diff(struct json_out *o, const struct agent *a,
               const struct agent *b);

/* What is made into vectors. */
void card_search_text(struct buf *out, const struct agent *a);
void card_routing_text(struct buf *out, const struct agent *a);
void card_skill_text(struct buf *out, const struct skill *s);

#endif
