#ifndef CLI_EVAL_FLEET_OWN_H
#define CLI_EVAL_FLEET_OWN_H

/* What the two files of eval_fleet share: how it is made, and how it decides.
 */

#include "cli/eval_fleet.h"

#include "cli/eval_score.h"
#include "registry/registry.h"

/* Of a name that no agent can have. */
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
    struct candidate *room;
    size_t room_cap;
    struct caller asker;
    struct embed_stamp stamp;
    struct timer look; /* whether the vectors are there */
    int64_t seq;       /* of the last outcome */
    uint32_t unrated;  /* with EVAL_RATED */
};

#endif
