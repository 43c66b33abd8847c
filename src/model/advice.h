#ifndef MODEL_ADVICE_H
#define MODEL_ADVICE_H

/* advice: warnings about cards that are valid but will not work.
 *
 *   thin_card       no skills, and a description of a few words: too little
 *                   to route by
 *   close_card      another card says nearly the same
 *   unknown_model   model:NAME, and no such model is configured
 *   closed_address  a loopback or private address that outgoing.allow does not
 *                   list
 *
 * The API, the hub, and signalbox check, lint and doctor all use it. The caller
 * chooses the cards to compare with, so that a warning never names an agent
 * that its reader may not see. Pure. Threads: any. */

#include "base/guard.h"
#include "base/json.h"
#include "model/transports.h"

enum {
    ADVICE_WORDS = 12, /* without skills, a description of fewer words is
                        * thin, */
    ADVICE_BYTES = 80, /* unless it has this many bytes */
    ADVICE_MAX = 5,    /* warnings about one card */
    ADVICE_TEXT_MAX = 400,
};

/* Cosines of routing profiles from which two cards are too close. The second is
 * for providers whose cosines are all near one. */
#define ADVICE_CLOSE      0.9
#define ADVICE_CLOSE_HTTP 0.98

struct advice_warning {
    const char *code;
    const char *field; /* of the card: "description", "url", "wake.url" */
    char message[ADVICE_TEXT_MAX]; /* the problem and its remedy */
};

struct advice {
    struct advice_warning list[ADVICE_MAX];
    size_t n;
};

/* The facts that the card is checked against. */
struct advice_against {
    const struct model_def *models;
    size_t n_models;
    struct guard guard; /* outgoing.allow */

    /* The closest agent that the reader may see; empty if none is close.
     * likeness is the cosine, or zero if the descriptions are equal. */
    struct str close;
    double likeness;
};

void advice_of(const struct agent *a, const struct advice_against *against,
               struct advice *out);

/* Only the check that needs no other facts: whether the card is thin. */
void advice_of_card(const struct agent *a, struct advice *out);

/* Whether two descriptions are equal except for spaces at their ends; empty
 * ones are not. */
bool advice_is_same_description(const struct agent *a, const struct agent *b);

/* [{"code", "field", "message"}, …] */
void advice_write(struct json_out *o, const struct advice *a);

#endif
