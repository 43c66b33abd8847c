#ifndef DELIVER_TALK_H
#define DELIVER_TALK_H

/* talk: what model.c asks of a model's endpoint, and talk.c hears from it. */

#include "deliver/chat.h"
#include "deliver/visit.h"

/* One conversation's next answer. */
struct talk {
    struct visit visit;
    struct arena arena; /* of everything that is asked */
    struct chat_request rq;
    struct str url, key, name;
    bool is_habit;    /* it was asked as the endpoint is known to want it */
    bool is_starting; /* whoever calls is still in start */
    bool asks_history;
    void *history_handle;
    enum err sent; /* what became of sending, while starting */
    struct why why;

    /* What was said. */
    bool is_ended; /* it has said why it ended */
    bool has_said; /* something, whatever it was */
    char finish[CHAT_FINISH_MAX + 1];
    char model[CHAT_NAME_MAX + 1];
    struct buf usage;
};

static inline struct talk *talk_of(struct visit *a)
{
    return LIST_OF(a, struct talk, visit);
}

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
