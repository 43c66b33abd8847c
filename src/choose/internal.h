#ifndef CHOOSE_INTERNAL_H
#define CHOOSE_INTERNAL_H

/* The layers, one file each: choose_LAYER in LAYER.c. A layer answers (OK, and
 * m->choice says who and why), needs something (OK and m->choice.needs), has
 * nothing to say (ERR_NO_ROUTE, the next is asked), or refuses. */

#include "choose/choose.h"
#include "model/near.h"

typedef enum err choose_layer(const struct choose_view *v, struct msg *m);

choose_layer choose_explicit, choose_prefix, choose_sticky, choose_by_binding,
    choose_intent, choose_semantic_best, choose_default;

/* The scores of m->known.candidates, and the best of them into m->choice, best
 * first; once for each time that choosing is asked. ERR_NOMEM. (rank.c) */
MUST_USE enum err choose_rank(const struct choose_view *v, struct msg *m);

/* Whom the classifier was asked about, by name; NULL: not about them. */
const struct candidate *choose_asked(const struct msg *m, struct str name);

/* It is a: its name into m->choice, and the reason in words. ERR_NOMEM. */
MUST_USE enum err choose_take(struct msg *m, const struct agent *a,
                              const char *reason, ...)
    __attribute__((format(printf, 3, 4)));

/* Likewise, by the sender's own word: in a conversation that has another agent,
 * which is still there, this is a switch. So the conversation is needed first;
 * but not where conversations do not stick, since there they have nobody. */
MUST_USE enum err choose_named(const struct choose_view *v, struct msg *m,
                               const struct agent *a, const char *reason, ...)
    __attribute__((format(printf, 4, 5)));

/* Not now: this must be fetched first. */
enum err choose_needs(struct msg *m, enum choose_need need);

/* The agent of that name, if they see it; else NULL. */
const struct agent *choose_seen(const struct choose_view *v, struct str name);

/* The same of a name that the settings say: NULL too where a stranger holds
 * it. */
const struct agent *choose_meant(const struct choose_view *v, struct str name);

/* Whether it is the sender itself. Who names itself means it (explicit, prefix,
 * and sticky, where it did so before); whoever else would find it has nothing
 * to say then: a binding and a default are there for the messages of others,
 * and among the candidates it is not. */
bool choose_is_self(const struct choose_view *v, const struct agent *a);

/* Whether a goes before b. (rank.c) */
bool choose_is_better(const struct candidate *a, const struct candidate *b);

/* Whether the requester has no reason to trust it: neither is it one of theirs,
 * the platform's or rated well, nor did a correction name it for this text. */
bool choose_is_stranger(const struct candidate *c);

/* The rules that decide the cutoffs of m's candidates. */
struct decision_rules choose_cutoff_rules(const struct choose_settings *s,
                                          const struct msg *m);

/* The candidate that the semantic layer would take, and how far it is trusted.
 */
enum band choose_judge(const struct msg *m, const struct decision_rules *r,
                       size_t *at);

/* Whether a full vector could still change the choice among the ranked
 * candidates; and whether it is worth asking for: it could, and the table's
 * choice is not clear. (tier.c) */
bool choose_may_ask_full(const struct choose_view *v, const struct msg *m);
bool choose_wants_full(const struct choose_view *v, const struct msg *m);

/* The policy that applies to an unsure choice for this requester. */
enum unsure_policy choose_unsure(const struct choose_view *v);

/* The message is refused with e: the decision's layer is `none`, and its reason
 * is m->why. Returns e, or ERR_NOMEM. (choose.c) */
MUST_USE enum err choose_refused(struct msg *m, enum err e);

/* No layer answered: ERR_NO_ROUTE, or ERR_CEILING where the agent that fits
 * costs more than the sender has agreed to; in m->why what to do about it.
 * (default.c) */
enum err choose_no_route(const struct choose_view *v, struct msg *m);

/* Nobody goes by this name: the nearest, in m->choice and in words. */
MUST_USE enum err choose_nobody(const struct choose_view *v, struct msg *m,
                                struct str name);

#endif
