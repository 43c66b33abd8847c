#ifndef CHOOSE_CHOOSE_H
#define CHOOSE_CHOOSE_H

/* choose: from speak, to task. The first question of the walk: who?
 *
 * Seven layers, one file each, are asked in the order of one table; the first
 * that answers decides:
 *
 *   explicit   the message names its executor
 *   prefix     the text begins with "/agent"
 *   sticky     the conversation has an agent already
 *   binding    where the message came from
 *   intent     a language model's word, where one is asked
 *   semantic   four signals of every agent, and the best score
 *   default    agents.default
 *
 * A layer that needs something which is not at hand (the conversation's
 * agent, the signals, the classifier's answer) says so; whoever asked fetches
 * it, or its failure, into m->known and asks again. So nothing waits here, and
 * the same inputs give the same choice, also from the record of a decision.
 *
 * Pure. Owns: its table of records in the store. Threads: any. */

#include "base/buf.h"
#include "model/decision.h"
#include "model/msg.h"
#include "model/roads.h"
#include "model/source.h"
#include "model/table.h"

enum choose_when { INTENT_ALWAYS, INTENT_AMBIGUOUS };
enum choose_overrides { INTENT_OVER_DEFAULT, INTENT_OVER_BINDINGS };

/* What the configuration says. Borrowed for the call. */
struct choose_settings {
    bool is_off[N_LAYERS];
    struct signal_weights weights;
    bool is_auto;     /* routing.threshold is "auto": cutoffs come from the
                       * cards' levels (cutoff.c) */
    bool is_centred;  /* `semantic` counts from the card's median: of auto, for
                       * the models that we ship */
    double threshold; /* else: of semantic scores */
    double alpha;     /* of auto: how many of the texts that are out of
                       * scope become confident choices, at most */
    enum unsure_policy unsure; /* routing.unsure */
    bool is_seed;         /* routing.preset "seed": no discounts, no trust */
    bool trusts_all;      /* routing.trust "all": nobody is a stranger */
    double text_blend;    /* routing.textBlend: of text in `semantic` */
    int64_t recency_ms;   /* routing.recencyMs: until recency is zero */
    double explore;       /* routing.explore: how often a close runner-up gets
                           * an ambiguous query; 0: never */
    double close_margin;  /* routing.closeMargin: nearer than this is close */
    double second_margin; /* embed.secondMargin: how far above its cutoff a
                           * choice by the table alone is, in units of the card;
                           * 0: the table decides whenever it is confident */
    struct bindings bindings;
    struct str default_agent; /* empty: none */
    struct {
        bool is_on;
        double threshold; /* of its confidence: above it, it decides */
        enum choose_when when;
        enum choose_overrides overrides;
    } intent;
};

/* As DESIGN has it: .60 .20 .15 .05, threshold .30, no bindings, no default. */
struct choose_settings choose_defaults(void);

struct choose_view {
    const struct choose_settings *settings;
    const struct agents *agents;
    const struct eyes *eyes;
    /* Whether an agent is the one that bindings and agents.default mean, and
     * not a stranger who holds that name. NULL: everyone is. */
    bool (*is_meant)(void *ctx, const struct agent *a);
    void *ctx;
};

/* Fill m->choice. OK and m->choice.needs is NEEDS_NOTHING: chosen. OK and it
 * needs something: fetch that into m->known and ask again. Whom the eyes do
 * not see is not there.
 *
 * ERR_AGENT_NOT_FOUND: the one named is not there, m->why offers the nearest
 * names; ERR_NO_ROUTE: no layer answered, m->why says what to do and
 * m->choice.candidates who came nearest; ERR_CEILING: the agent that fits is an
 * outsider's and costs more than the sender has agreed to (m->choice.unpaid);
 * ERR_BAD_REQUEST: a prefix without a text; ERR_NOMEM. */
MUST_USE enum err choose_agent(const struct choose_view *v, struct msg *m);

/* The same for a further turn of a task, whose agent is m->known.stuck_to: it
 * stays with it. ERR_AGENT_NOT_FOUND, ERR_NOMEM. (turn.c) */
MUST_USE enum err choose_turn(const struct choose_view *v, struct msg *m);

/* The semantic score of a candidate from its signals. */
double choose_score(const struct signal_weights *w, const struct signals *s);

/* The cutoffs of candidates on the scale of `semantic`, by the rules of their
 * decision: fills in floor, low and lead. (cutoff.c) */
void choose_cutoffs(const struct decision_rules *r, struct candidate *list,
                    size_t n);

/* Whether a message asks for no work: "hi there", "ok thanks", "???". A text of
 * more bytes never is. (small_talk.c) */
enum { CHOOSE_SMALL_TALK_MAX = 128 };
bool choose_is_small_talk(struct str text);

/* The band of a candidate whose cutoffs are there. */
enum band choose_band(const struct decision_rules *r,
                      const struct candidate *c);

/* Whether a candidate is confident by a quick vector alone: above its cutoff by
 * rules.second_margin units of its card. (cutoff.c) */
bool choose_is_clear(const struct decision_rules *r, const struct candidate *c);

/* The settings for a text that has no vector: words, which then are all of
 * `semantic`, and keywords share what the two had, and the others keep theirs.
 * A weight of zero stays zero; the preset "seed" changes nothing. */
struct choose_settings choose_by_words(const struct choose_settings *s);

/* Its `semantic` from cosine, text, learned and discount: the one place that
 * says how they are blended (semantic.c). */
float choose_semantic(const struct choose_settings *settings,
                      const struct signals *s, const struct card_level *level);

/* What a keyword that occurs is worth. */
float choose_keyword(bool is_half);

/* The discount on `semantic` for a stranger: how much of its cosine and
 * text is over, and what else. */
float choose_discount(const struct choose_settings *settings, float cosine_over,
                      float text_over, float other);

/* Shares of strangers (share.c).
 *
 * Strangers are agents that the requester has no reason to trust. Where there
 * are others, all strangers together get a bounded share of the first places of
 * an org, whatever their cards say: about CHOOSE_SHARE of its messages. The
 * org's members rate those that did well, which are strangers no longer.
 *
 * Counts are of the last few thousand messages of each org, and are forgotten
 * when the server ends. Owns: its table, of a fixed size. */
struct choose_shares;

#define CHOOSE_SHARE 0.03

enum {
    CHOOSE_SHARES_MAX = 4096
}; /* orgs; beyond, the one longest unheard of
    * its neighbours is forgotten */

/* NULL: memory is gone. */
MUST_USE struct choose_shares *choose_shares_new(const uint64_t seed[2]);
void choose_shares_free(struct choose_shares *s); /* NULL is fine */

/* Whether strangers have had theirs; for m->known.is_share_spent. */
bool choose_share_is_spent(const struct choose_shares *s, struct str org);

/* The message was decided: by its first place. */
void choose_share_count(struct choose_shares *s, struct str org,
                        const struct msg *m);

/* The place in the list of the binding that fits best; -1: none does. */
int64_t choose_binding(const struct bindings *b, const struct source *s);

/* Where a message came from, out of its JSON object; what is not known is left
 * alone. ERR_BAD_REQUEST with words: a field of another type or too long. */
MUST_USE enum err choose_source_read(struct arena *a, struct str json,
                                     struct source *out, struct why *why);

/* The prefix that stands for an agent in a text and in menus: its name in lower
 * case, what is not a letter, digit or '_' becomes '_'. Menus take no more than
 * the first COMMAND_MAX bytes of it, and these stand for it too. */
enum { COMMAND_MAX = 32 };
struct str choose_command(struct str agent, char out[AGENT_NAME_MAX + 1]);

/* The text without the command that it begins with; without one, as it is. */
struct str choose_behind_prefix(struct str text);

/* Who "/word" stands for among those that are seen; NULL: nobody. */
const struct agent *choose_by_command(const struct agents *agents,
                                      const struct eyes *eyes, struct str word);

/* The commands of all that are seen, in the order of their names, each the
 * first COMMAND_MAX bytes of its own; empty where that leads to another, which
 * is then named. In the arena, CHOOSE_MENU_BYTES for each agent at most.
 * ERR_NOMEM. (menu.c) */
struct choose_menu_item {
    const struct agent *agent;
    struct str command;
    const struct agent *instead;
};
enum { CHOOSE_MENU_BYTES = 256 };
MUST_USE enum err choose_menu(struct arena *a, const struct agents *agents,
                              const struct eyes *eyes,
                              struct choose_menu_item **out, size_t *n);

/* The classifier: what it is asked, and what it answered. */

/* The body of a POST to an endpoint of that kind about the candidates in
 * m->choice, which are those that the record keeps: so straight after
 * choose_agent has said NEEDS_INTENT. The user's text and the agents'
 * descriptions are data in it, never instructions. out has room for
 * INTENT_BODY_MAX. ERR_NOMEM. (intent_ask.c) */
enum {
    INTENT_BODY_MAX = 256 * 1024,
    INTENT_TEXT_MAX = 4096, /* bytes of the text that it hears */
    INTENT_REASON_MAX = 256
};
MUST_USE enum err choose_intent_ask(const struct choose_view *v,
                                    const struct msg *m, enum model_kind kind,
                                    struct str model, struct buf *out);

/* The answer's body into *out, strings into the arena, before choose_agent is
 * asked again. What cannot be used (nonsense, an agent that was not among those
 * asked about) is not an error: out->is_good is false and out->why says why.
 * took_ms is for the caller to fill in. ERR_NOMEM. (intent_read.c) */
MUST_USE enum err choose_intent_read(const struct choose_view *v, struct msg *m,
                                     enum model_kind kind, struct str body,
                                     struct intent_answer *out);

/* Nobody answered: *out says that, with these words in the arena. */
MUST_USE enum err choose_intent_failed(struct msg *m, const char *why,
                                       struct intent_answer *out);

/* The record (record.c). */

extern const struct schema choose_schema;
extern const struct table decision_table;

enum decision_column {
    DECISION_SEQ,
    DECISION_ID,
    DECISION_AT_MS,
    DECISION_TASK_ID,
    DECISION_TURN,
    DECISION_CONVERSATION_ID,
    DECISION_REQUESTER,
    DECISION_ORG,
    DECISION_LAYER,
    DECISION_AGENT,
    DECISION_SKILL,
    DECISION_REASON,
    DECISION_SCORE,  /* in 1e-9, for lists; the exact one is in BODY */
    DECISION_MARGIN, /* likewise */
    DECISION_TEXT,
    DECISION_TYPE,
    DECISION_BODY,    /* the rest of what was asked and what it was made from */
    DECISION_VERDICT, /* NULL: open */
    DECISION_VERDICT_MS,
    DECISION_OVERRIDDEN_TO,
    DECISION_OVERRIDDEN_BY,
    DECISION_OVERRIDDEN_MS,
    DECISION_ANSWER_CHARS,
    DECISION_LATENCY_MS,
    DECISION_ERROR_CODE,
    DECISION_FOLLOWED,
    DECISION_GATE, /* NULL: nobody asked it */
    DECISION_GATE_RULE,
    DECISION_GATE_REASON,
    N_DECISION_COLUMNS,
};

/* What m->choice says, as a decision; borrowed from m. m->choice.id must be
 * there; m->task may be empty (POST /api/route). Who sent it may
 * read it: a default agent that the eyes do not see is not named in it.
 * (decision.c) */
void choose_decision(const struct choose_view *v, const struct msg *m,
                     struct decision *out);

/* Into a tx: one row. After task_create, so that the ids are there. */
void choose_record(struct tx *tx, const struct decision *d);

/* A row as a decision; strings are the row's, candidates lie in the arena, and
 * the vector in either.
 * ERR_SYNTAX: the body is none of ours; ERR_NOMEM. */
MUST_USE enum err decision_from_row(struct arena *a, const struct row *r,
                                    struct decision *out);

/* Decide again from a record alone, by its own settings (settings NULL) or by
 * others: agent, skill, layer, score, margin, threshold and reason of *out,
 * strings in the arena; the rest is d's. `agents` are those there are now, or
 * NULL: those that the record names, and those that the other settings do.
 * ERR_NO_ROUTE: no agent would get it, and *out is that refusal, of the layer
 * `none`; ERR_NOT_FOUND: those settings ask for
 * something that nobody looked at then, the signals or the classifier's word;
 * ERR_NOMEM. (again.c) */
MUST_USE enum err choose_again(const struct choose_settings *settings,
                               const struct agents *agents,
                               const struct decision *d, struct arena *a,
                               struct decision *out);

/* The same by its own settings, with a change to them. */
typedef void choose_change(void *ctx, struct choose_settings *own);
MUST_USE enum err choose_again_but(choose_change *change, void *ctx,
                                   const struct decision *d, struct arena *a,
                                   struct decision *out);

/* What each threshold would have made of a record, else by its own settings:
 * steps from the lowest, the last of them infinite. Strings are d's or in the
 * arena. ERR_NOMEM. (sweep.c) */
MUST_USE enum err choose_sweep(const struct decision *d, struct arena *a,
                               struct decision_step out[DECISION_STEPS_MAX],
                               size_t *n);

/* Decide a record again without each signal, otherwise by its own settings.
 * Only decisions of the semantic layer can change. Strings are d's or in the
 * arena. ERR_NOMEM. (other.c) */
MUST_USE enum err choose_without(const struct decision *d, struct arena *a,
                                 struct decision_other out[N_SIGNALS]);

/* Whether alpha counted for a record: the semantic layer was asked, at
 * "auto"; and if so, what it comes to by each of decision_alphas. ERR_NOMEM. */
bool choose_has_alpha(const struct decision *d);
MUST_USE enum err choose_alphas(const struct decision *d, struct arena *a,
                                struct decision_other out[ALPHAS]);

/* What choosing is told, as 16 hex digits: two settings that decide alike have
 * the same. (version.c) */
void choose_version(const struct choose_settings *s, char out[17]);

#endif
