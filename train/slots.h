#ifndef TRAIN_SLOTS_H
#define TRAIN_SLOTS_H

/* slots: what may stand in the braces of an utterance. */

#include "base/str.h"

enum slot {
    SLOT_N,
    SLOT_N2,
    SLOT_A_N,
    SLOT_A_N2,
    SLOT_NS,
    SLOT_NS2,
    SLOT_NN,
    SLOT_A_NN,
    SLOT_ADJ,
    SLOT_A_ADJ,
    SLOT_VP,
    SLOT_P,
    SLOT_T,
    SLOT_M,
    SLOT_NUM,
    SLOT_LANG,
    SLOT_X,
    N_SLOTS
};

/* N_SLOTS: there is none of that name. */
enum slot slot_find(struct str name);

/* Cut a template up to behind its next slot: what stands before it, and its
 * name. False: there is none, and `before` is all the rest. */
bool slot_next(struct str *rest, struct str *before, struct str *slot);

#endif
