#ifndef LAB_EVAL_FLEET_OWN_H
#define LAB_EVAL_FLEET_OWN_H

/* Shared by the two files of eval_fleet: eval_fleet.c opens it, eval_decide.c
 * decides. */

#include "lab/eval_fleet.h"

#include "lab/eval_score.h"
#include "registry/registry.h"

/* Before a reserved name. */
#define PREFIX "set."

struct eval_fleet {
    struct eval_fleet_opts opts;
    char folder[512];
    bool has_folder, is_held;
    struct store_folder held;
    struct store *store;
    struct registry *registry;
    struct str reference[EMBED_REFERENCE_MAX]; /* its reference texts */
    struct learn *learn;
    struct speller *speller;
    struct choose_shares *shares;
    struct choose_settings settings;
    struct rand_seeded chance;
    struct id_maker ids;
    struct arena arena;
    struct agent *cards;
    struct candidate *candidates;
    size_t candidates_cap;
    struct caller asker;
    struct embed_stamp stamp;
    struct timer look; /* checks whether the vectors are ready */
    int64_t seq;       /* of the last outcome */
    uint32_t unrated;  /* with EVAL_RATED */
};

#endif
