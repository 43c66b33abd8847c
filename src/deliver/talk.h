#ifndef DELIVER_TALK_H
#define DELIVER_TALK_H

/* talk: what model.c asks of a model's endpoint, and talk.c hears from it. */

#include "chat/chat.h"
#include "deliver/visit.h"

enum {
    TALK_ROUNDS_MAX = 16, /* of tools; then it is to answer without */
    TALK_ROUNDS_BYTES = 8 * 1024 * 1024,   /* of them; likewise */
    TALK_RESULTS_BYTES = 4 * 1024 * 1024,  /* of the results of one */
    TALK_REQUEST_BYTES = 48 * 1024 * 1024, /* of all that is told again */
};

/* One call of a tool that is being done. */
struct tool_run {
    struct talk *talk;
    void *handle;
    bool is_running;
    struct buf result;
};

/* The rounds of one answer: the model calls tools, they are used, it is told
 * what came of it and asked again. */
struct rounds {
    size_t n;        /* that are over, or going on */
    size_t n_calls;  /* of all of them */
    bool is_between; /* nothing is asked: tools are being used */
    size_t n_running;
    struct chat_calls calls; /* of this one */
    struct tool_run runs[CHAT_CALLS_MAX];
    struct buf said;         /* of those before: chat_request's rounds */
    bool has_said;           /* words, in this one */
    size_t said_at;          /* where they begin among the chunks */
    int64_t used[CHAT_USED]; /* by those before; -1: not said */
    struct loop_job next;    /* it is asked again */
};

/* One conversation's next answer. */
struct talk {
    struct visit visit;
    struct arena arena; /* of everything that is asked */
    struct chat_request rq;
    struct chat_reach reach;
    struct str key, name;
    int64_t timeout_ms;
    bool is_habit;    /* it was asked as the endpoint is known to want it */
    bool lacks_tools; /* the endpoint knows none */
    bool is_starting; /* whoever calls is still in start */
    bool asks_history;
    void *history_handle;
    enum err sent; /* what became of sending, while starting */
    struct why why;

    /* What was said. */
    bool has_begun; /* an answer, if only an empty piece of one */
    bool is_ended;  /* it has said why it ended */
    bool has_said;  /* something, whatever it was */
    char finish[CHAT_FINISH_MAX + 1];
    char model[CHAT_NAME_MAX + 1];
    struct buf usage;
    int64_t used[CHAT_USED];
    struct rounds rounds;
};

static inline struct talk *talk_of(struct visit *a)
{
    return LIST_OF(a, struct talk, visit);
}

/* Ask it, with everything that was said; model.c. With words where it was not
 * sent. */
MUST_USE enum err talk_send(struct talk *k, struct why *why);

/* Something was said: whether there is more to come. */
MUST_USE bool talk_say(struct talk *k, struct str text);

/* round.c. */
void rounds_init(struct talk *k);
void rounds_stop(struct talk *k); /* for road_row.stop */
void rounds_fini(struct talk *k); /* for road_row.free */

/* Whether the answer, which has ended, calls tools that are to be used; then
 * they are. */
MUST_USE bool round_begin(struct talk *k);

/* Of struct visit_ops. */
bool talk_event(struct visit *a, const struct sse_event *e);
void talk_end(struct visit *a);
void talk_whole(struct visit *a);
void talk_broken(struct visit *a, const struct delivery_failure *f);

/* It has answered: what had to be left out is left out the next time. */
void talk_went_well(const struct talk *k);

/* Whether an error may be gone the next time; by its status, zero: unknown. */
bool talk_may_try_again(int64_t status);

/* What an endpoint says is wrong. Nothing of it where it is about the key. */
void talk_words(const struct talk *k, struct str body, int64_t status,
                char out[VISIT_WORDS_BYTES]);

#endif
