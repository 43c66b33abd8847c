#ifndef CLI_SENDING_H
#define CLI_SENDING_H

/* sending: shared by the files of `signalbox send`: the requests (send.c) and
 * the display of the answer (send_show.c). Threads: the main one. */

#include "base/clock.h"
#include "base/id.h"
#include "cli/client.h"
#include "model/agent.h"

enum { SENDING_VOICES = 16, SENDING_OFFERED = 3 };

/* An agent other than the one that answers. */
struct voice {
    char name[AGENT_NAME_MAX + 1];
    bool is_cut;        /* another agent interrupted its line */
    struct buf pending; /* its text since then */
};

struct sending {
    struct cli *c;
    struct client *cl;
    struct clock clock;
    struct buf text;
    struct str to, conversation, task, key, quote;
    int64_t max_cost; /* micro-units; below zero: not given */
    struct id made_key;
    bool is_envelope; /* `text` is an envelope, as JSON */
    int64_t wait_ms, timeout_ms;
    char notice[96];

    /* Agents that the sender may choose from instead. */
    char offered[SENDING_OFFERED][AGENT_NAME_MAX + 1];
    int n_offered;
    char decision_id[ID_BYTES]; /* the decision that a choice corrects */

    struct buf body; /* of the request */
    unsigned n_tries;
    bool was_sent; /* the server may have received it */

    /* The stream. */
    bool streams;
    struct arena arena;
    struct buf shown;      /* the part of the answer on the screen */
    bool is_within;        /* the current line has text */
    struct voice *speaker; /* owner of the line; NULL: the answer */
    struct voice voices[SENDING_VOICES];
    int n_voices;
    bool has_gap;     /* text is missing: wait for the result */
    bool was_given;   /* to the agent, in this turn */
    unsigned n_given; /* number of attempts */
    char task_id[ID_BYTES];
    int64_t tree_micros, conversation_micros; /* cost so far */
    bool is_over;
    enum exit_status status;
};

/* Show the final answer; returns the exit status. */
enum exit_status sending_finish(struct sending *s, const struct json *answer);

/* One event of the stream; false: stop. */
bool sending_event(void *ctx, const struct sse_event *e);

/* send_voices.c: text of the answer and of other agents, each on its own lines.
 */
void sending_own(struct sending *s, struct str text);
void sending_others(struct sending *s, struct str agent, struct str text);
void sending_end_line(struct sending *s);
/* Show all pending text. */
void sending_let_all(struct sending *s);
void sending_voices_fini(struct sending *s);

/* send_offer.c: keep the best candidates of a decision, without one agent, for
 * a question to the sender; without a terminal none. decision_id is empty if
 * the server has not recorded the decision. */
void sending_offer(struct sending *s, struct str decision_id,
                   const struct json *candidates, struct str except);
/* Ask which candidate gets the message. False: none; otherwise s->to is the
 * agent. */
MUST_USE bool sending_choose(struct sending *s);
/* Print the command that teaches the choice to the router: sending a message
 * alone teaches nothing. */
void sending_say_how_to_teach(struct sending *s);

/* send_envelope.c: an envelope instead of a message. Returns the error in the
 * options; NULL: none. */
const char *sending_envelope_usage(const struct sending *s);

/* Read the file into s->text and add an id, so that a repeated request counts
 * once. False: the error has been printed, and *status is set. */
MUST_USE bool sending_envelope_read(struct sending *s,
                                    enum exit_status *status);

/* Show the gate's decision. */
enum exit_status sending_passed(struct sending *s, const struct json *answer);

#endif
