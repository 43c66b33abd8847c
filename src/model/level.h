#ifndef MODEL_LEVEL_H
#define MODEL_LEVEL_H

/* level: the distribution of a card's cosines with the reference texts, which
 * are messages of all kinds: how high the card scores for messages that are not
 * meant for it. Both are below zero while unknown. */
struct card_level {
    float mid;  /* the median */
    float high; /* the 95th percentile */
};

#endif
