#ifndef LAB_DEMO_CAST_H
#define LAB_DEMO_CAST_H

/* demo_cast: the four agents of `signalbox demo`: their cards, and their canned
 * replies. Pure. Threads: any. */

#include "base/json.h"

enum { DEMO_SKILLS_MAX = 3, DEMO_WORDS_MAX = 8, DEMO_REPLIES_MAX = 4 };

struct demo_skill {
    const char *id, *name, *description;
    const char *tags[DEMO_WORDS_MAX], *examples[DEMO_WORDS_MAX];
};

/* The reply to a message with one of the words. The last reply of an agent has
 * no words and fits any message. */
struct demo_reply {
    const char *words[DEMO_WORDS_MAX];
    const char *text;
};

struct demo_actor {
    const char *name, *title, *description, *prompt;
    const char *does; /* a short description */
    const char *keywords[DEMO_WORDS_MAX];
    struct demo_skill skills[DEMO_SKILLS_MAX];
    struct demo_reply replies[DEMO_REPLIES_MAX];
    const char *ask; /* an example message */

    /* The agent that it delegates to if the message has one of the words, the
     * text before that, and an example message. agent NULL: it does not
     * delegate. */
    struct {
        const char *agent, *says, *ask;
        const char *words[DEMO_WORDS_MAX];
    } delegations;
};

enum { DEMO_ACTORS = 4 };
extern const struct demo_actor demo_cast[DEMO_ACTORS];

/* NULL: there is no agent of that name. */
const struct demo_actor *demo_find(struct str name);

/* Write the members of its card, as in agents.list, into the open object,
 * except how it is reached. */
void demo_put_card(struct json_out *o, const struct demo_actor *a);

/* The reply with the most words in the message, in any case; of equal ones the
 * first. */
struct str demo_reply_to(const struct demo_actor *a, struct str message);

/* Whether it delegates before it answers. */
bool demo_wants_help(const struct demo_actor *a, struct str message);

/* The line at the end of each reply. */
extern const struct str demo_disclaimer;

/* The next piece of a reply, as a typing person would send it: a word or two
 * with the punctuation after them. Removes it from *rest. *pause_ms: the pause
 * before the next. */
struct str demo_piece(struct str *rest, int *pause_ms);

#endif
