#ifndef CHOOSE_LAYERS_CHOOSE_H
#define CHOOSE_LAYERS_CHOOSE_H

/* choose: decides which agent gets a message; the gate and the task follow.
 *
 * Layers are asked in the order of one of two tables (choose.c); the first that
 * answers decides:
 *
 *   explicit   the message names its executor
 *   prefix     the text begins with "/agent"
 *   sticky     the conversation already has an agent
 *   binding    by the message's origin
 *   intent     a language model's answer, if one is configured
 *   semantic   four signals of every agent, and the best score
 *   default    agents.default
 *
 * A layer that needs an input which is not at hand (the conversation's agent,
 * the signals, a full vector, the classifier's answer) says so. The caller
 * fetches it, or its failure, into m->known and calls again. So nothing waits
 * here, and the same inputs give the same choice, also from the record of a
 * decision.
 *
 * Pure: it describes the table of decisions, and the store writes it. Threads:
 * any, but a struct choose_shares belongs to one. */

#include "base/buf.h"
#include "model/decision.h"
#include "model/msg.h"
#include "model/source.h"
#include "model/table.h"
#include "model/transports.h"

enum choose_when { INTENT_ALWAYS, INTENT_AMBIGUOUS };
enum choose_overrides { INTENT_OVER_DEFAULT, INTENT_OVER_BINDINGS };

/* From the configuration. Borrowed for the call. */
struct choose_settings {
    bool is_off[N_LAYERS];
    struct signal_weights weights;
    bool is_auto;     /* routing.threshold is "auto": cutoffs come from the
                       * cards' levels (cutoff.c) */
    bool is_centred;  /* with auto: `semantic` is relative to the card's median;
                       * for the models that we ship */
    double threshold; /* without auto: of semantic scores */
    double alpha;     /* with auto: at most this share of the out-of-scope texts
                       * becomes confident choices */
    enum unsure_policy unsure; /* routing.unsure */
    bool is_seed;        /* routing.preset "seed": no discounts, no trust */
    bool trusts_all;     /* routing.trust "all": there are no strangers */
    double text_blend;   /* routing.textBlend: share of text in `semantic` */
    int64_t recency_ms;  /* routing.recencyMs: until recency is zero */
    double explore;      /* routing.explore: how often a close runner-up gets
                          * an ambiguous query; 0: never */
    double close_margin; /* routing.closeMargin: a smaller distance is close */
    double
        second_margin; /* embed.secondMargin: a choice by the table alone must
                        * be this far above its cutoff, in units of the card;
                        * 0: the table decides whenever it is confident */
    struct bindings bindings;
    struct str default_agent; /* empty: none */
    struct {
        bool is_on;
        double threshold; /* it decides with more confidence than this */
        enum choose_when when;
        enum choose_overrides overrides;
    } intent;
};

/* Weights .60 .20 .15 .05, a floor for each agent, no bindings, no default. */
struct choose_settings choose_defaults(void);

struct choose_view {
    const struct choose_settings *settings;
    const struct agents *agents;
    const struct eyes *eyes;
    /* Whether an agent is the one that bindings and agents.default mean, and
     * not a stranger who has taken that name. NULL: always true. */
    bool (*is_meant)(void *ctx, const struct agent *a);
    void *ctx;
};

/* Fill m->choice. OK and m->choice.needs is NEEDS_NOTHING: chosen. OK and it
 * needs an input: fetch that into m->known and call again. Agents that the eyes
 * do not see do not exist here.
 *
 * ERR_AGENT_NOT_FOUND: the named agent does not exist, m->why offers the
 * nearest names; ERR_NO_ROUTE: no layer answered, m->why says what to do and
 * m->choice.candidates has the nearest agents; ERR_CEILING: the agent that fits
 * is an outsider's and costs more than the sender has agreed to
 * (m->choice.unpaid); ERR_BAD_REQUEST: a prefix without a text; ERR_NOMEM. */
MUST_USE enum err choose_agent(const struct choose_view *v, struct msg *m);

/* The same for a further turn of a task, which stays with the task's agent,
 * m->known.stuck_to. ERR_AGENT_NOT_FOUND, ERR_NOMEM. (turn.c) */
MUST_USE enum err choose_turn(const struct choose_view *v, struct msg *m);

/* The semantic score of a candidate from its signals. */
double choose_score(const struct signal_weights *w, const struct signals *s);

/* Fill in floor, low and lead of candidates, on the scale of `semantic`, by the
 * rules of their decision. (cutoff.c) */
void choose_cutoffs(const struct decision_rules *r, struct candidate *list,
                    size_t n);

/* Whether a message requests no work: "hi there", "ok thanks", "???". A longer
 * text never does. (small_talk.c) */
enum { CHOOSE_SMALL_TALK_MAX = 128 };
bool choose_is_small_talk(struct str text);

/* The band of a candidate that has its cutoffs. */
enum band choose_band(const struct decision_rules *r,
                      const struct candidate *c);

/* Whether a candidate is confident by a quick vector alone: above its cutoff by
 * rules.second_margin units of its card. (cutoff.c) */
bool choose_is_clear(const struct decision_rules *r, const struct candidate *c);

/* The settings for a text without a vector: the text score then replaces all of
 * `semantic`, and it shares the sum of both weights equally with keywords. A
 * weight of zero stays zero; the preset "seed" changes nothing. */
struct choose_settings choose_by_words(const struct choose_settings *s);

/* `semantic` from cosine, text, learned and discount. The only place that
 * blends them (semantic.c). */
float choose_semantic(const struct choose_settings *settings,
                      const struct signals *s, const struct card_level *level);

/* The signal of a keyword that occurs. */
float choose_keyword(bool is_half);

/* The discount on `semantic` for a stranger, from the excess of its cosine and
 * text, and other reasons. */
float choose_discount(const struct choose_settings *settings, float cosine_over,
                      float text_over, float other);

/* Shares of strangers (choose_share.c).
 *
 * Strangers are agents that the requester has no reason to trust. If an org has
 * other candidates, all strangers together get first place in at most about
 * CHOOSE_SHARE of its messages, whatever their cards say. Members of the org
 * rate those that did well, and these are no longer strangers.
 *
 * Counts cover the last few thousand messages of each org and are lost when the
 * server stops. Owns: its table, of a fixed size. */
struct choose_shares;

#define CHOOSE_SHARE 0.03

/* Orgs; above, the least recently used of a set is evicted. */
enum { CHOOSE_SHARES_MAX = 4096 };

MUST_USE struct choose_shares *choose_shares_new(const uint64_t seed[2]);
void choose_shares_free(struct choose_shares *s); /* NULL is fine */

/* Whether strangers have used up their share; for m->known.is_share_spent. */
bool choose_share_is_spent(const struct choose_shares *s, struct str org);

/* Count a decided message by its first place. */
void choose_share_count(struct choose_shares *s, struct str org,
                        const struct msg *m);

/* The index of the binding that fits best; -1: none fits. */
int64_t choose_binding(const struct bindings *b, const struct source *s);

/* Read the origin of a message from its JSON object; unknown members are
 * ignored. ERR_BAD_REQUEST with a message: a field of another type or too
 * long. */
MUST_USE enum err choose_source_read(struct arena *a, struct str json,
                                     struct source *out, struct why *why);

/* The command of an agent in a text and in menus: its name in lower case, with
 * '_' for all but letters, digits and '_'. Menus cut it to its first
 * COMMAND_MAX bytes, which then stand for it too. */
enum { COMMAND_MAX = 32 };
struct str choose_command(struct str agent, char out[AGENT_NAME_MAX + 1]);

/* The text without the command that it begins with, if any. */
struct str choose_behind_prefix(struct str text);

/* The visible agent that "/word" stands for; NULL: none. */
const struct agent *choose_by_command(const struct agents *agents,
                                      const struct eyes *eyes, struct str word);

/* The commands of all visible agents in the order of their names, each cut to
 * COMMAND_MAX bytes. Empty if that stands for another agent, which is
 * `instead`. In the arena, at most CHOOSE_MENU_BYTES for each agent. ERR_NOMEM.
 * (menu.c) */
struct choose_menu_item {
    const struct agent *agent;
    struct str command;
    const struct agent *instead;
};
enum { CHOOSE_MENU_BYTES = 256 };
MUST_USE enum err choose_menu(struct arena *a, const struct agents *agents,
                              const struct eyes *eyes,
                              struct choose_menu_item **out, size_t *n);

/* The classifier: its request and its answer. */

/* Write the body of a POST to an endpoint of that kind, about the candidates in
 * m->choice, so straight after choose_agent needed NEEDS_INTENT. The user's
 * text and the agents' descriptions are data in it, never instructions. out has
 * room for INTENT_BODY_MAX. ERR_NOMEM. (intent_ask.c) */
enum {
    INTENT_BODY_MAX = 256 * 1024,
    INTENT_TEXT_MAX = 4096, /* bytes of the text in the request */
    INTENT_REASON_MAX = 256
};
MUST_USE enum err choose_intent_ask(const struct choose_view *v,
                                    const struct msg *m, enum model_kind kind,
                                    struct str model, struct buf *out);

/* Read the answer's body into *out, strings into the arena, before the next
 * call of choose_agent. An unusable answer (malformed, or an agent that is not
 * a candidate) is not an error: out->is_good is false and out->why explains it.
 * The caller fills in took_ms. ERR_NOMEM. (intent_read.c) */
MUST_USE enum err choose_intent_read(const struct choose_view *v, struct msg *m,
                                     enum model_kind kind, struct str body,
                                     struct intent_answer *out);

/* There is no answer, for the reason `why`, which is copied to the arena. */
MUST_USE enum err choose_intent_failed(struct msg *m, const char *why,
                                       struct intent_answer *out);

/* The record (choose_record.c). */

extern const struct schema choose_schema;
extern const struct table decision_table;

#define DECISION_COLUMNS(C)                                                  \
    C(DECISION_SEQ, "seq", 1, READ(seq))                                     \
    C(DECISION_ID, "id", 1, BOTH(id))                                        \
    C(DECISION_AT_MS, "at_ms", 1, BOTH(at_ms))                               \
    C(DECISION_TASK_ID, "task_id", 1, BOTH(task_id), OR_NULL)                \
    C(DECISION_TURN, "turn", 1, BOTH(turn))                                  \
    C(DECISION_CONVERSATION_ID, "conversation_id", 1, BOTH(conversation_id)) \
    C(DECISION_REQUESTER, "requester", 1, BOTH(requester))                   \
    C(DECISION_ORG, "org", 1, BOTH(org), OR_NULL)                            \
    C(DECISION_LAYER, "layer", 1, BOTH(layer))                               \
    C(DECISION_AGENT, "agent", 1, BOTH(agent))                               \
    C(DECISION_SKILL, "skill", 1, BOTH(skill), OR_NULL)                      \
    C(DECISION_REASON, "reason", 1, BOTH(reason))                            \
    /* in 1e-9, for lists; the exact one is in BODY */                       \
    C(DECISION_SCORE, "score", 1, COLUMN_INT)                                \
    C(DECISION_MARGIN, "margin", 1, COLUMN_INT) /* likewise */               \
    C(DECISION_TEXT, "text", 1, BOTH(text))                                  \
    C(DECISION_TYPE, "type", 1, BOTH(type))                                  \
    /* all other inputs and results */                                       \
    C(DECISION_BODY, "body", 1, COLUMN_BLOB)                                 \
    C(DECISION_VERDICT, "verdict", 1, READ(verdict)) /* NULL: open */        \
    C(DECISION_VERDICT_MS, "verdict_ms", 1, READ(verdict_ms))                \
    C(DECISION_OVERRIDDEN_TO, "overridden_to", 1, READ(overridden_to))       \
    C(DECISION_OVERRIDDEN_BY, "overridden_by", 1, READ(overridden_by))       \
    C(DECISION_OVERRIDDEN_MS, "overridden_ms", 1, READ(overridden_ms))       \
    C(DECISION_ANSWER_CHARS, "answer_chars", 1, READ(answer_chars))          \
    C(DECISION_LATENCY_MS, "latency_ms", 1, READ(latency_ms))                \
    C(DECISION_ERROR_CODE, "error_code", 1, READ(error_code))                \
    C(DECISION_FOLLOWED, "followed", 1, READ(is_followed))                   \
    /* NULL: the gate was not asked */                                       \
    C(DECISION_GATE, "gate", 2, BOTH(gate), OR_NULL)                         \
    C(DECISION_GATE_RULE, "gate_rule", 2, BOTH(gate_rule), OR_NULL)          \
    C(DECISION_GATE_REASON, "gate_reason", 2, BOTH(gate_reason), OR_NULL)

enum decision_column { DECISION_COLUMNS(COLUMN_NUMBER) N_DECISION_COLUMNS };

/* m->choice as a decision; borrowed from m. m->choice.id must be set; m->task
 * may be empty (POST /api/route). The sender may read the decision, so it does
 * not name a default agent that the eyes do not see. (choose_decision.c) */
void choose_decision(const struct choose_view *v, const struct msg *m,
                     struct decision *out);

/* Append one row to a tx, after task_create, so that the ids are known. */
void choose_record(struct tx *tx, const struct decision *d);

/* Read a decision from a row. Strings are the row's, candidates are in the
 * arena, the vector in either. ERR_SYNTAX: the body is not valid; ERR_NOMEM. */
MUST_USE enum err decision_from_row(struct arena *a, const struct row *r,
                                    struct decision *out);

/* Decide again from a record alone, by its own settings (settings NULL) or by
 * others. Sets agent, skill, layer, score, margin, threshold and reason of
 * *out, with strings in the arena; the rest is copied from d. `agents` are the
 * present ones, or NULL: those that the record and the other settings name.
 * ERR_NO_ROUTE: no agent would get it, and *out is that rejection, of the layer
 * `none`; ERR_NOT_FOUND: the settings need an input that the record does not
 * have, the signals or the classifier's answer; ERR_NOMEM. (again.c) */
MUST_USE enum err choose_again(const struct choose_settings *settings,
                               const struct agents *agents,
                               const struct decision *d, struct arena *a,
                               struct decision *out);

/* The same by its own settings, after a change to them. */
typedef void choose_change(void *ctx, struct choose_settings *own);
MUST_USE enum err choose_again_but(choose_change *change, void *ctx,
                                   const struct decision *d, struct arena *a,
                                   struct decision *out);

/* The decision of each threshold, with the record's other settings: steps from
 * the lowest, the last of them infinite. Strings are d's or in the arena.
 * ERR_NOMEM. (sweep.c) */
MUST_USE enum err choose_sweep(const struct decision *d, struct arena *a,
                               struct decision_step out[DECISION_STEPS_MAX],
                               size_t *n);

/* Decide a record again without each signal, with its other settings. Only
 * decisions of the semantic layer can change. Strings are d's or in the arena.
 * ERR_NOMEM. (other.c) */
MUST_USE enum err choose_without(const struct decision *d, struct arena *a,
                                 struct decision_other out[N_SIGNALS]);

/* Whether alpha mattered for a record: the semantic layer was asked, with
 * "auto"; and the decision for each of decision_alphas. ERR_NOMEM. */
bool choose_has_alpha(const struct decision *d);
MUST_USE enum err choose_alphas(const struct decision *d, struct arena *a,
                                struct decision_other out[ALPHAS]);

/* A hash of the settings as 16 hex digits: settings that decide alike have the
 * same. (choose_version.c) */
void choose_version(const struct choose_settings *s, char out[17]);

#endif
