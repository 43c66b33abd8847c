#ifndef CHOOSE_LAYERS_INTERNAL_H
#define CHOOSE_LAYERS_INTERNAL_H

/* The layers, one file each: choose_LAYER in LAYER.c. A layer answers (OK, with
 * the agent and the reason in m->choice), needs an input (OK and
 * m->choice.needs), has no answer (ERR_NO_ROUTE: the next layer is asked), or
 * rejects the message. */

#include "choose/layers/choose.h"
#include "model/near.h"

typedef enum err choose_layer(const struct choose_view *v, struct msg *m);

choose_layer choose_explicit, choose_prefix, choose_sticky, choose_by_binding,
    choose_intent, choose_semantic_best, choose_default;

/* Score m->known.candidates and write the best to m->choice, best first. Runs
 * once for each call of choose_agent. ERR_NOMEM. (rank.c) */
MUST_USE enum err choose_rank(const struct choose_view *v, struct msg *m);

/* The candidate of that name that the classifier was asked about; else NULL. */
const struct candidate *choose_asked(const struct msg *m, struct str name);

/* Choose a: write its name and the reason to m->choice. ERR_NOMEM. */
MUST_USE enum err choose_take(struct msg *m, const struct agent *a,
                              const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a choice by the sender. If the conversation has another agent,
 * which still exists, this is a switch, so the conversation must be known
 * first; but not if sticky is off, since then a conversation has no agent. */
MUST_USE enum err choose_named(const struct choose_view *v, struct msg *m,
                               const struct agent *a, const char *reason, ...)
    __attribute__((format(printf, 4, 5)));

/* Stop: this input must be fetched first. */
enum err choose_needs(struct msg *m, enum choose_need need);

/* The agent of that name, if the requester sees it; else NULL. */
const struct agent *choose_seen(const struct choose_view *v, struct str name);

/* The same for a name from the settings: NULL also if a stranger has taken that
 * name. */
const struct agent *choose_meant(const struct choose_view *v, struct str name);

/* Whether a is the sender itself. A sender that names itself gets its own
 * message (explicit, prefix, and later sticky). The other layers skip it:
 * bindings and the default are for messages of others, and it is not among the
 * candidates. */
bool choose_is_self(const struct choose_view *v, const struct agent *a);

/* Whether a ranks before b. (rank.c) */
bool choose_is_better(const struct candidate *a, const struct candidate *b);

/* Whether the requester has no reason to trust the candidate: it is not one of
 * theirs, the platform's or rated well, and no correction names it for this
 * text. */
bool choose_is_stranger(const struct candidate *c);

/* The rules that determine the cutoffs of m's candidates. */
struct decision_rules choose_cutoff_rules(const struct choose_settings *s,
                                          const struct msg *m);

/* The index of the candidate that the semantic layer would choose, and its
 * band. */
enum band choose_judge(const struct msg *m, const struct decision_rules *r,
                       size_t *at);

/* Whether a full vector could still change the choice among the ranked
 * candidates; and whether to fetch it: it could, and the choice by the table is
 * not clear. (tier.c) */
bool choose_may_ask_full(const struct choose_view *v, const struct msg *m);
bool choose_wants_full(const struct choose_view *v, const struct msg *m);

/* The policy for an unsure choice that applies to this requester. */
enum unsure_policy choose_unsure(const struct choose_view *v);

/* Whether layer a is asked after b; LAYER_NONE comes after all. (choose.c) */
bool choose_comes_after(enum layer a, enum layer b);

/* Reject the message with e: the decision's layer is `none`, and its reason is
 * m->why. Returns e, or ERR_NOMEM. (choose.c) */
MUST_USE enum err choose_refused(struct msg *m, enum err e);

/* No layer answered: ERR_NO_ROUTE, or ERR_CEILING if the agent that fits costs
 * more than the sender has agreed to. m->why says what the sender can do.
 * (default.c) */
enum err choose_no_route(const struct choose_view *v, struct msg *m);

/* No agent has this name: write the nearest names to m->choice and m->why. */
MUST_USE enum err choose_not_found(const struct choose_view *v, struct msg *m,
                                   struct str name);

#endif
