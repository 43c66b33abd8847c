#ifndef LAB_EVAL_FLEET_H
#define LAB_EVAL_FLEET_H

/* eval_fleet: the agents of a set in a real registry, as in a server that has
 * them in its configuration, and decisions by the server's own code:
 * registry_near, learn and choose_agent.
 *
 * The requester is a user of one org; the agents are the configuration's. Users
 * of other orgs, here called strangers, can add cards.
 *
 * The store is real, in a folder that is removed at the end. Owns all of it.
 * Borrows model, set and configuration. Threads: the main one. */

#include "choose/layers/choose.h"
#include "choose/route.h"
#include "cli/cli.h"
#include "lab/eval_data.h"
#include "lab/eval_model.h"
#include "lab/eval_run.h"
#include "learn/fold/learn.h"

struct eval_fleet;

/* Numbers of agents outside of the set. */
#define EVAL_STRANGER (UINT32_MAX - 1)
#define EVAL_DEFAULT  (UINT32_MAX - 2)

struct eval_fleet_opts {
    struct cli *cli;
    struct eval_model *model; /* open */
    const struct eval_set *set;
    const struct config *config;
    /* For each agent, additional examples for its card; NULL: none. */
    const struct strs *examples;
    enum eval_relation relation;
    struct str default_agent; /* empty: the configured one. One outside of the
                               * set gets only messages for no other agent */
};

/* Open a fleet, including all vectors. Errors set why, and *out is NULL. */
MUST_USE enum err eval_fleet_open(struct eval_fleet **out,
                                  const struct eval_fleet_opts *opts,
                                  struct why *why);
void eval_fleet_close(struct eval_fleet *f); /* NULL is fine */

/* Whether every card has its level. False: the provider has no vectors for the
 * reference texts, so "auto" cannot work. */
bool eval_fleet_has_levels(const struct eval_fleet *f);

/* The settings; may be changed between decisions. */
struct choose_settings *eval_fleet_settings(struct eval_fleet *f);

/* A stranger's card, new or replacing the one with the same name. */
struct eval_card {
    size_t owner; /* the number of the stranger, each in its own org */
    struct str name, description;
    struct strs keywords;
    struct strs skills;   /* the description of each */
    struct strs examples; /* of one additional skill */
};
MUST_USE enum err eval_fleet_bring(struct eval_fleet *f,
                                   const struct eval_card *card,
                                   struct why *why);
MUST_USE enum err eval_fleet_remove(struct eval_fleet *f, size_t owner,
                                    struct str name, struct why *why);

/* With EVAL_RATED, leave this agent of the set unrated; EVAL_NOBODY: none. */
void eval_fleet_distrust(struct eval_fleet *f, uint32_t agent);

/* Record positive feedback of a stranger for another stranger's agent.
 * ERR_NOMEM.
 */
MUST_USE enum err eval_fleet_praise(struct eval_fleet *f, struct str agent,
                                    size_t by, struct str text,
                                    struct str vector, int64_t now_ms);

/* Forget everything learnt. */
void eval_fleet_forget(struct eval_fleet *f);
struct learn *eval_fleet_learn(struct eval_fleet *f);

/* The decision on a text. */
struct eval_choice {
    enum layer layer; /* LAYER_NONE: no agent gets it */
    enum band band;   /* never BAND_NOT_ASKED */
    bool is_unsure;
    enum tier tier;  /* that decided */
    bool wants_full; /* undecided: the full vector is needed */
    uint32_t agent;  /* EVAL_DEFAULT, EVAL_STRANGER, a number of the set;
                      * EVAL_NOBODY */
    struct {
        uint32_t agent;
        struct signals signals;
        double score;
    } best[DECISION_CANDIDATES_MAX]; /* best first; empty if no agent has a
                                      * signal */
    size_t n;
};

/* The part of a message that is compared, as in route.h. Its texts are in the
 * arena or borrowed from the message. ERR_NOMEM. */
MUST_USE enum err eval_fleet_read(struct eval_fleet *f, struct arena *a,
                                  struct str text, struct reading *out);

/* Decide on a text. vector: packed; empty: none. With a model of two tiers it
 * is the full vector, which is used if the table is unsure, as in a server. If
 * its pointer is NULL it has not been computed, and out->wants_full may request
 * it. ERR_NOMEM. */
MUST_USE enum err eval_fleet_decide(struct eval_fleet *f, struct str text,
                                    struct str vector, int64_t now_ms,
                                    struct eval_choice *out);

/* Learn from a decision: `right` is an agent of the set, or EVAL_NOBODY. Only
 * the chosen agent is judged. If it was wrong, an override names the right one;
 * then *is_correction is set. */
MUST_USE enum err eval_fleet_teach(struct eval_fleet *f, struct str text,
                                   struct str vector, int64_t now_ms,
                                   const struct eval_choice *c, bool is_right,
                                   uint32_t right, bool *is_correction);

#endif
