#ifndef CLI_DEMO_CAST_H
#define CLI_DEMO_CAST_H

/* demo_cast: the four agents of `signalbox demo`: what their cards say, and
 * what they answer where no model does. Pure. Threads: any. */

#include "base/json.h"

enum { DEMO_SKILLS_MAX = 3, DEMO_WORDS_MAX = 8, DEMO_REPLIES_MAX = 4 };

struct demo_skill {
    const char *id, *name, *description;
    const char *tags[DEMO_WORDS_MAX], *examples[DEMO_WORDS_MAX];
};

/* What is answered when one of the words is in the message; the last of an
 * agent's has none and fits anything. */
struct demo_reply {
    const char *words[DEMO_WORDS_MAX];
    const char *text;
};

struct demo_actor {
    const char *name, *title, *description, *prompt;
    const char *does; /* in a few words */
    const char *keywords[DEMO_WORDS_MAX];
    struct demo_skill skills[DEMO_SKILLS_MAX];
    struct demo_reply replies[DEMO_REPLIES_MAX];
    const char *ask; /* what to try it with */

    /* Whom it asks itself when one of the words is in the message, what it
     * says first, and what to try that with. whom is NULL: nobody. */
    struct {
        const char *whom, *says, *ask;
        const char *words[DEMO_WORDS_MAX];
    } hires;
};

enum { DEMO_ACTORS = 4 };
extern const struct demo_actor demo_cast[DEMO_ACTORS];

/* NULL: nobody of that name. */
const struct demo_actor *demo_find(struct str name);

/* The members of its card, as in agents.list, all but how it is reached, into
 * an object that is open. */
void demo_put_card(struct json_out *o, const struct demo_actor *a);

/* The reply to that message: the one most of whose words are in it, whatever
 * their case; of equals the first. */
struct str demo_reply_to(const struct demo_actor *a, struct str message);

/* Whether it asks the one that it hires before it answers. */
bool demo_wants_help(const struct demo_actor *a, struct str message);

/* The line at the end of each. */
extern const struct str demo_disclaimer;

/* The next piece of a reply, as somebody who types would send it: a word or
 * two with what stands behind them. Takes it off *rest. *pause_ms is how long
 * to wait before the next. */
struct str demo_piece(struct str *rest, int *pause_ms);

#endif
