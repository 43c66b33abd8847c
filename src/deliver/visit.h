#ifndef DELIVER_VISIT_H
#define DELIVER_VISIT_H

/* visit: a delivery that is one HTTP request: what http.c and model.c have in
 * common. It is sent, its answer is gathered or taken apart into events, it is
 * waited for only so long, and whatever breaks becomes a delivery_failure with
 * words. What the answer means is for the road.
 *
 *     visit_send -> head -> events … -> on_event
 *                      \ body      -> on_whole, on_end or on_status
 *
 * There are two waits: until the head, as long as the whole may take; from then
 * on no longer than the silence that is allowed, since who has begun to speak
 * and stopped has most likely died. */

#include "base/sse.h"
#include "deliver/internal.h"

enum {
    /* An answer in one piece, and one event of a stream: as large as a result
     * may be with every byte of its text escaped. */
    VISIT_ANSWER_MAX = 6 * MSG_TEXT_MAX + 1024 * 1024,
    VISIT_STREAM_MAX = 64 * 1024 * 1024, /* all of a stream */
    VISIT_COMPLAINT_MAX = 64 * 1024,   /* kept of an answer that is an error */
    VISIT_WORDS_BYTES = 240,           /* of an agent's own words */
    VISIT_BODY_MAX = 64 * 1024 * 1024, /* of a request */
    VISIT_SPARE_MS = 1000, /* behind the task's deadline, which goes first */
    VISIT_LONGEST_MS = 24 * 3600 * 1000, /* for a task without one */
};

struct visit;

struct visit_ops {
    /* One server-sent event of a good answer. False: the delivery is over. */
    bool (*on_event)(struct visit *a, const struct sse_event *e);
    /* Of those one or the other, once, unless the delivery was over before:
     * the stream has ended; the answer is whole, in a->body; the answer has a
     * status that is no good, and its first bytes are in a->body. */
    void (*on_end)(struct visit *a);
    void (*on_whole)(struct visit *a);
    void (*on_status)(struct visit *a);
    /* It broke. NULL: the delivery fails. */
    void (*on_broken)(struct visit *a, const struct delivery_failure *f);
};

struct visit {
    struct delivery delivery;
    struct deliver *d;
    const struct visit_ops *ops;
    const char *who; /* "the agent", to begin a sentence with */
    char agent[AGENT_NAME_MAX + 1];
    bool is_operators;  /* the address: what lies there is for the log alone */
    int64_t silence_ms; /* zero: as long as the whole may take */
    int64_t until_ms;   /* loop's monotonic time */

    uint64_t id; /* fetch's; zero: nothing is being asked */
    bool has_head, is_stream;
    int status;
    int64_t retry_ms; /* that the answer asks for */
    char type[64];    /* of its content, as it says; cut */
    int64_t heard_ms; /* when its last byte came */
    struct timer patience;
    struct buf body;
    struct sse sse;
    size_t n_kept;    /* what the road keeps beside it; counted with it */
    size_t n_counted; /* of d->asked_bytes */

    struct loop_job late; /* a failure that was found in the beginning */
    struct delivery_failure failure;
    struct why failure_words;
};

/* Everything else of *a is zero. whole_ms: how long all of it may take.
 * ERR_NOMEM. */
MUST_USE enum err visit_init(struct visit *a, struct deliver *d,
                             const struct visit_ops *ops,
                             const struct agent *agent, int64_t whole_ms);
void visit_stop(struct visit *a); /* for road_row.stop */
void visit_fini(struct visit *a); /* for road_row.free */

/* Send it; time-outs and limits of rq are filled in here. Asked again after an
 * answer, that one is forgotten. ERR_SYNTAX, ERR_BUSY, ERR_NOMEM,
 * ERR_STOPPING, with words. */
MUST_USE enum err visit_send(struct visit *a, struct fetch_request *rq,
                             struct why *why);

/* For a visit that is asked again and again. Nothing more is heard of the
 * answer that there is, and nobody waits for one: only the task's own time
 * counts. And: the next request has so long, or what is left of that. */
void visit_rest(struct visit *a);
void visit_again(struct visit *a, int64_t whole_ms);

/* How long a task has from now, and a little more. */
int64_t visit_whole_ms(struct deliver *d, const struct task *t);

/* The attempt failed, in the words of a format. */
void visit_failed(struct visit *a, struct delivery_failure f, const char *fmt,
                  ...) PRINTF_LIKE(3, 4);

/* The same from inside `start`: the owner hears of it at the end of the
 * turn. For what visit_send said, too. */
void visit_fail_later(struct visit *a, struct delivery_failure f,
                      const char *fmt, ...) PRINTF_LIKE(3, 4);
void visit_not_sent(struct visit *a, enum err e, const struct why *why);

/* Which failure a fetch that came to nothing is. */
struct delivery_failure visit_failure_of(enum err e);

/* Authentication, from a card; proof.c. */
struct proof {
    struct fetch_header header; /* an empty name: none is needed */
    struct str secrets[2];      /* what must not be repeated */
};

/* ERR_UNREACHABLE with words, without the secret: the card asks for what
 * cannot be sent. ERR_NOMEM. Strings are in the arena. */
MUST_USE enum err proof_of(struct arena *arena, const struct agent *a,
                           struct proof *out, struct why *why);

/* What is said over HTTP: one document that is a result or, as an event, a
 * chunk of it. It may name its task and turn, and then they must be the ones
 * that it was asked for. ERR_BAD_REQUEST, ERR_LIMIT, ERR_NOMEM with words. The
 * text must outlive what is read. */
MUST_USE enum err answer_read(struct arena *arena, struct str text,
                              const struct delivery_id *id, bool is_chunk,
                              struct wire_word *out, struct why *why);

#endif
