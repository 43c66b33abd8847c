#ifndef CLI_SENDING_H
#define CLI_SENDING_H

/* sending: what the files of `signalbox send` share: asking (send.c), and what
 * is shown of the answer (send_show.c). Threads: the main one. */

#include "base/clock.h"
#include "base/id.h"
#include "cli/client.h"
#include "model/agent.h"

enum { SENDING_VOICES = 16, SENDING_OFFERED = 3 };

/* Another agent than the one that answers. */
struct voice {
    char name[AGENT_NAME_MAX + 1];
    bool is_cut;        /* somebody took its line away */
    struct buf pending; /* and this it said since */
};

struct sending {
    struct cli *c;
    struct client *cl;
    struct clock clock;
    struct buf text;
    struct str to, conversation, task, key, quote;
    int64_t max_cost; /* micro-units; below zero: not said */
    struct id made_key;
    bool is_envelope; /* and `text` is one, as JSON */
    int64_t wait_ms, timeout_ms;
    char notice[96];

    /* Agents that the sender may choose from instead. */
    char offered[SENDING_OFFERED][AGENT_NAME_MAX + 1];
    int n_offered;
    char decision_id[ID_BYTES]; /* the decision that a choice corrects */

    struct buf body; /* of the request */
    unsigned n_tries;
    bool was_sent; /* the server may know of it */

    /* Of a stream. */
    bool streams;
    struct arena arena;
    struct buf shown;      /* of the answer */
    bool is_within;        /* a line */
    struct voice *speaker; /* whose line it is; NULL: the answer's */
    struct voice voices[SENDING_VOICES];
    int n_voices;
    bool has_gap;     /* and so it cannot be gone on with */
    bool was_given;   /* to the agent, this turn */
    unsigned n_given; /* how often that was seen */
    char task_id[ID_BYTES];
    int64_t tree_micros, conversation_micros; /* that it has cost */
    bool is_over;
    enum exit_status status;
};

/* The last word, shown; what the command ends with. */
enum exit_status sending_finish(struct sending *s, const struct json *answer);

/* One event of the stream; false: no more of them. */
bool sending_event(void *ctx, const struct sse_event *e);

/* send_voices.c: words of the answer, and those of other agents, each on lines
 * of their own. */
void sending_own(struct sending *s, struct str text);
void sending_others(struct sending *s, struct str agent, struct str text);
void sending_end_line(struct sending *s);
/* What others have said and nobody has seen yet. */
void sending_let_all(struct sending *s);
void sending_voices_fini(struct sending *s);

/* send_offer.c: keep the best candidates of a decision, less one agent, for a
 * question to the sender; none where there is no one to ask. decision_id is
 * empty where the server has not recorded the decision. */
void sending_offer(struct sending *s, struct str decision_id,
                   const struct json *candidates, struct str except);
/* Ask which of them gets the message. False: none, or nothing was offered;
 * else s->to is that agent. */
MUST_USE bool sending_choose(struct sending *s);
/* Name the command that teaches the router what was chosen: to send a message
 * somewhere teaches nothing. */
void sending_say_how_to_teach(struct sending *s);

/* send_envelope.c: an envelope instead of a message. What is wrong with the
 * options beside it; NULL: nothing. */
const char *sending_envelope_usage(const struct sending *s);

/* The file, into s->text, with an id so that a second try counts once. False:
 * told, and *status is what to end with. */
MUST_USE bool sending_envelope_read(struct sending *s,
                                    enum exit_status *status);

/* What was decided of it, shown. */
enum exit_status sending_passed(struct sending *s, const struct json *answer);

#endif
