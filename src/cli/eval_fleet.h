#ifndef CLI_EVAL_FLEET_H
#define CLI_EVAL_FLEET_H

/* eval_fleet: the agents of a set in a registry of their own, as a server with
 * them in its configuration would have them, and decisions as it would make
 * them: registry_near, learn and choose_agent, nothing of it written twice.
 *
 * Whoever asks is a user of one org; the agents are the configuration's. Others
 * can bring cards, as users of another org: those are strangers here.
 *
 * The store is real and lies in a folder that is gone afterwards. Owns all of
 * it. Borrows model, set and configuration. Threads: the main one. */

#include "choose/choose.h"
#include "cli/cli.h"
#include "cli/eval_data.h"
#include "cli/eval_model.h"
#include "cli/eval_run.h"
#include "learn/learn.h"
#include "route/route.h"

struct eval_fleet;

/* Numbers of those who are not in the set. */
#define EVAL_STRANGER (UINT32_MAX - 1)
#define EVAL_DEFAULT  (UINT32_MAX - 2)

struct eval_fleet_opts {
    struct cli *cli;
    struct eval_model *model; /* open */
    const struct eval_set *set;
    const struct config *config;
    /* For each agent, examples that its card has besides; NULL: none. */
    const struct strs *examples;
    enum eval_relation relation;
    struct str default_agent; /* empty: what the configuration says; one that
                               * is not in the set gets what nobody else does */
};

/* Opened, and every agent has its vectors. Errors have words; *out is then
 * NULL. */
MUST_USE enum err eval_fleet_open(struct eval_fleet **out,
                                  const struct eval_fleet_opts *opts,
                                  struct why *why);
void eval_fleet_close(struct eval_fleet *f); /* NULL is fine */

/* Every card has its level. False: the provider gave the reference texts no
 * vectors, and `auto` has nothing to go by. */
bool eval_fleet_has_levels(const struct eval_fleet *f);

/* What it decides by; may be changed between decisions. */
struct choose_settings *eval_fleet_settings(struct eval_fleet *f);

/* A card of a stranger's, new or in the place of the one it had. */
struct eval_card {
    size_t owner; /* which stranger: each is of an org of its own */
    struct str name, description;
    struct strs keywords;
    struct strs skills;   /* the description of each */
    struct strs examples; /* of one skill besides */
};
MUST_USE enum err eval_fleet_bring(struct eval_fleet *f,
                                   const struct eval_card *card,
                                   struct why *why);
MUST_USE enum err eval_fleet_remove(struct eval_fleet *f, size_t owner,
                                    struct str name, struct why *why);

/* With EVAL_RATED, this agent of the set is not rated; EVAL_NOBODY: all are. */
void eval_fleet_distrust(struct eval_fleet *f, uint32_t agent);

/* A stranger praises another stranger's agent for this text. ERR_NOMEM. */
MUST_USE enum err eval_fleet_praise(struct eval_fleet *f, struct str agent,
                                    size_t by, struct str text,
                                    struct str vector, int64_t now_ms);

/* Learning begins anew. ERR_NOMEM. */
MUST_USE enum err eval_fleet_forget(struct eval_fleet *f);
struct learn *eval_fleet_learn(struct eval_fleet *f);

/* The decision on a text. */
struct eval_choice {
    enum layer layer; /* LAYER_NONE: no agent gets it */
    enum band band;   /* never BAND_NOT_ASKED */
    bool is_unsure;
    enum tier tier;  /* that decided */
    bool wants_full; /* nothing is decided: the full vector is needed */
    uint32_t agent;  /* EVAL_DEFAULT, EVAL_STRANGER, a number of the set;
                      * EVAL_NOBODY */
    struct {
        uint32_t agent;
        struct signals signals;
        double score;
    } best[DECISION_CANDIDATES_MAX]; /* best first; nobody for whom nothing
                                      * speaks */
    size_t n;
};

/* The part of a message that is compared, as route has it (route.h): its texts
 * are in the arena or borrowed from the message. ERR_NOMEM. */
MUST_USE enum err eval_fleet_read(struct eval_fleet *f, struct arena *a,
                                  struct str text, struct reading *out);

/* vector: packed, of the reading; empty: there is none. Of a model of two tiers
 * it is the full one, which counts where the table is not clear, as in a
 * server; NULL in place of its bytes: it was not made yet, and out->wants_full
 * may ask for it. ERR_NOMEM. */
MUST_USE enum err eval_fleet_decide(struct eval_fleet *f, struct str text,
                                    struct str vector, int64_t now_ms,
                                    struct eval_choice *out);

/* What came of it: `right` is one of the set, EVAL_NOBODY where nobody is. Who
 * was picked is judged, and nobody else; was it the wrong one, an override
 * names the right one. Whether that was one. */
MUST_USE enum err eval_fleet_teach(struct eval_fleet *f, struct str text,
                                   struct str vector, int64_t now_ms,
                                   const struct eval_choice *c, bool is_right,
                                   uint32_t right, bool *is_correction);

#endif
