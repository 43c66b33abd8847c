#ifndef SBC_INTERNAL_H
#define SBC_INTERNAL_H

/* What the files of the client share. Nothing here is seen by who uses it:
 * these symbols, and those of base/ and net/ that are linked in, are made
 * local to the library (tools/one-object.sh).
 *
 *     sbc.c    life, turns, which callback hears what
 *     link.c   the connection: reach, handshake, frames, heartbeat, back-off
 *     pipe.c   bytes to and from a socket, with TLS or without
 *     task.c   tasks that came, and what is said of them
 *     told.c   their results, until they are answered
 *     ask.c    what we ask of the hub: calls, messages
 *     hire.c   delegations: what others are to do for us
 *     had.c    results of those: whose they are, and that they were had
 *     fetch.c  a plain request over HTTP
 *
 * Everything is read by sbc_pump, which keeps what it has read in lists;
 * callbacks are called from those lists by sbc_turn alone. So whatever a
 * callback does, waiting included, it never finds the ground gone. */

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/str.h"
#include "base/url.h"
#include "client/c/signalbox_client.h"
#include "net/server/ws.h"

enum {
    SBC_OUT_MARK = 256 * 1024, /* who streams waits while more is unsent */
    SBC_OUT_MAX = SBC_MESSAGE_MAX + SBC_OUT_MARK,
    SBC_INBOX_MARK = 1024 * 1024, /* news not told yet; then nothing is read */
    SBC_REACH_MS = 10000,         /* to connect, and to shake hands */
    SBC_PAUSE_MS = 250,           /* before the second try, roughly */
    SBC_PAUSE_MAX_MS = 30000,
    SBC_SAY_AGAIN_MS = 1000, /* after a result that the hub could not keep */
    SBC_UNANSWERED_MAX = 3,  /* times that a result is said without an answer */
    SBC_WHY_BYTES = 512,
    SBC_CODE_BYTES = 64,
    SBC_ANSWER_HEAD_MAX = 16 * 1024,
    SBC_HEARTBEAT_MS = 90000, /* unless the hub says otherwise */
    SBC_CLOSE_TAKEN_OVER = 4001,
    SBC_TREE_MAX = 4 * SBC_MESSAGE_MAX,    /* of a message, taken apart */
    SBC_KEY_BYTES = 16,                    /* of chance in a key */
    SBC_ID_BYTES = 2 * SBC_KEY_BYTES + 24, /* of a delegation's id */
    SBC_IDS = 256, /* remembered ids of results without a waiting caller */
    SBC_TOOL_MS = 60000, /* of delegate_to_agent, as the hub has it */
};

/* Bytes to and from a socket. */
struct sbc_pipe {
    int fd; /* -1: none */
    SSL *ssl;
    bool is_ready; /* the handshake of TLS is over, or there is none */
    struct buf in, out;
    struct buf cipher; /* with TLS: what is to be sent */
};

enum sbc_link_state {
    LINK_DOWN,       /* until `at_ms` */
    LINK_CONNECTING, /* to `addr` */
    LINK_SECURING,
    LINK_ASKED,
    LINK_OPEN,
    LINK_CLOSING, /* our close frame is out */
};

struct sbc_link {
    enum sbc_link_state state;
    struct sbc_pipe pipe;
    struct addrinfo *addrs, *addr;
    int64_t at_ms;   /* when the next step is due, or the time is over */
    int64_t seen_ms; /* the last byte that came */
    bool is_pinged;
    unsigned n_failures; /* in a row */
    bool is_watched;     /* epoll has it, for these events */
    uint32_t watched;
    struct ws_parse parse;
    char key[WS_KEY_BYTES + 1];
    uint8_t masks[256];
    size_t masks_at;
};

/* Where a task is: the list is its state. */
enum sbc_place {
    SBC_WAITS, /* for the handler */
    SBC_HELD,  /* by the handler, or kept */
    SBC_TOLD,  /* its result waits to be answered */
    SBC_N_PLACES,
};

struct sbc_job {
    struct sbc_task task; /* what the handler sees; first */
    struct sbc *s;
    struct list_node node;
    enum sbc_place place;
    bool is_cancelled, is_kept, is_running;
    bool is_ended;       /* told done or failed, while it runs */
    bool has_gap;        /* not all chunks have reached this attempt */
    bool is_replaced;    /* its result was not taken: that it failed is said */
    const char *refused; /* why what the handler ended it with was no end */
    struct buf said;     /* the chunks so far */
    size_t said_at;      /* up to here in chunks; the rest is no whole letter */
    struct buf result;   /* params of task.result, once there is one */
    int64_t result_id;   /* of the call; zero: it is to be said (again) */
    int64_t say_at_ms, answer_until_ms;
    int n_unanswered;
    char *strings;
};

/* A call that waits for its answer, on the stack of who waits. */
struct sbc_wait {
    struct list_node node;
    int64_t id;
    bool is_answered, is_lost;
    bool is_telling; /* callbacks are called meanwhile */
    int64_t wait_ms;
    enum sbc_err err;
    char *answer; /* owned */
};

/* A message that was sent, or a delegation. */
struct sbc_sent {
    struct list_node node;
    int64_t id;             /* of the call; zero: it is to be said (again) */
    struct buf params;      /* of message.send, or agent.send_task */
    char *task_id;          /* once it is accepted */
    char *agent;            /* likewise: who it went to */
    char *session;          /* of a delegation in its task's own */
    char key[SBC_ID_BYTES]; /* of a delegation: its own id; else empty */
    int64_t until_ms;       /* likewise: zero is for ever */
    int64_t say_at_ms;      /* not before */
    bool is_over;           /* the last news of it is in the inbox */
    bool has_parts;         /* of the answer, told or in the inbox */
    bool has_gap;           /* and no more are to be told */
    sbc_hears *hears;
    void *ctx;
};

/* A few ids that are remembered; the oldest goes. */
struct sbc_ids {
    char *at[SBC_IDS];
    size_t next;
};

/* That a result was had, until the hub knows. */
struct sbc_had {
    struct list_node node;
    int64_t id; /* of the call; zero: it is to be said (again) */
    char *name; /* of the delegation */
    char *params;
};

/* News to be told. */
struct sbc_item {
    struct list_node node;
    struct sbc_sent *sent; /* NULL: of a delegation that is not in the book */
    enum sbc_news_kind kind;
    size_t n;
    char json[];
};

struct sbc {
    struct url url; /* its slices lie in `strings` */
    char *strings;
    struct str target, token;
    char *host;
    char port[8];
    SSL_CTX *tls;
    int poll_fd, wake_fd;
    atomic_bool is_stopped;
    enum sbc_err fatal; /* trying again would not help */
    char why[SBC_WHY_BYTES];
    char code[SBC_CODE_BYTES];
    sbc_logger *log;
    void *log_ctx;

    struct sbc_link link;
    int64_t heartbeat_ms;
    int64_t next_id;

    char *card;
    sbc_handler *on_task;
    void *task_ctx;
    int64_t register_id;
    bool is_registered;
    bool is_in_handler;
    struct sbc_job *admin_config; /* its handler runs; NULL: none does */
    struct list jobs[SBC_N_PLACES];
    size_t n_jobs, kept_bytes;

    struct list waits;
    struct list sent, inbox;
    size_t n_sent, inbox_bytes;

    char own[2 * SBC_KEY_BYTES + 2]; /* ids that begin so are of here; made
                                      * with the first */
    int64_t last_key;
    struct list had;
    struct sbc_ids late, taken, warned; /* beyond their time; given to `takes`;
                                         * or to none */
    sbc_takes *takes;
    void *takes_ctx;
    struct buf scratch; /* the message being written */
};

/* sbc.c */
int64_t sbc_now_ms(void);
void sbc_set_code(struct sbc *s, const char *code);
enum sbc_err sbc_err_of(struct sbc *s, enum sbc_err e, const char *fmt, ...)
    PRINTF_LIKE(3, 4);
void sbc_say_log(struct sbc *s, const char *fmt, ...) PRINTF_LIKE(2, 3);
char *sbc_dup(struct str s); /* with a NUL; NULL: no memory */

/* One step: connect, say, write, wait up to so long, read. Never calls back.
 * SBC_STOPPED, or what is fatal. */
enum sbc_err sbc_pump(struct sbc *s, int timeout_ms);
/* Whether requests may be said: the connection is there, and we are on it who
 * we want to be. */
bool sbc_is_ready(const struct sbc *s);
void sbc_on_open(struct sbc *s);
void sbc_on_lost(struct sbc *s);
/* One message of the hub. False: it makes no sense, or memory is gone. */
bool sbc_on_message(struct sbc *s, struct str text);

/* A call of ours into out: {"jsonrpc":"2.0","id":…,"method":…,"params":…};
 * id zero: a notification. `params` is JSON. False: no memory, or no link. */
bool sbc_say(struct sbc *s, int64_t id, const char *method, struct str params);
bool sbc_answer(struct sbc *s, struct str id, struct str result);
bool sbc_refuse(struct sbc *s, struct str id, struct str error);

/* Whether an error passes by itself; after any other one it would be refused
 * again. */
bool sbc_is_passing(const char *code);

/* link.c */
void sbc_link_init(struct sbc *s);
void sbc_link_fini(struct sbc *s);
/* Do what is due; how long until something is again. */
int sbc_link_tick(struct sbc *s, int64_t now_ms);
/* The socket is ready for those events of epoll. */
void sbc_link_ready(struct sbc *s, uint32_t events);
/* Watch what is to be watched, and write what is to be written. */
void sbc_link_flush(struct sbc *s);
void sbc_link_lose(struct sbc *s, const char *why);
void sbc_link_bye(struct sbc *s);
bool sbc_link_send(struct sbc *s, struct str message);
/* The pause before the next try, after n in a row have failed. */
int sbc_pause_ms(unsigned n_failures, uint32_t chance);

/* pipe.c */
void sbc_pipe_init(struct sbc_pipe *p);
void sbc_pipe_fini(struct sbc_pipe *p);
bool sbc_pipe_secure(struct sbc_pipe *p, SSL_CTX *tls, const char *host,
                     bool is_address);
/* Read what there is into `in`, up to so much, and write from `out`. False: it
 * is over; the words say why. */
bool sbc_pipe_read(struct sbc_pipe *p, size_t most, const char **why);
bool sbc_pipe_write(struct sbc_pipe *p, const char **why);
bool sbc_pipe_wants_write(const struct sbc_pipe *p);

/* told.c */
/* What is no UTF-8 would end the connection, and that of the next try: such
 * bytes are U+FFFD. */
void sbc_put_text(struct json_out *o, struct str text);
void sbc_put_which(struct json_out *o, const struct sbc_job *j); /* delivery */
/* Starts the result over; sbc_put_error ends it. */
struct json_out sbc_result_open(struct sbc_job *j, struct str status);
void sbc_put_error(struct json_out *o, const char *code, const char *words);

/* refusal.c: an answer that is not 101. Whether all of it is there that is
 * waited for; and the words that our server gives, false where it is not
 * ours. */
bool sbc_refusal_is_whole(struct str bytes);
bool sbc_refusal_read(struct str bytes, char *words, size_t n);

/* task.c */
void sbc_job_free(struct sbc_job *j);
bool sbc_task_came(struct sbc *s, struct str id, const struct json *params);
void sbc_task_cancel(struct sbc *s, const struct json *params);
bool sbc_task_answered(struct sbc *s, int64_t id, const struct json *error);
void sbc_tasks_lost(struct sbc *s);
void sbc_tasks_say(struct sbc *s);
void sbc_tasks_run(struct sbc *s);
/* Whether a result is to be said again before long. */
bool sbc_tasks_say_again(const struct sbc *s);
bool sbc_tasks_are_told(const struct sbc *s);
void sbc_tasks_cancel_all(struct sbc *s);
/* The hub has closed because something was too large: of what is not answered,
 * the largest fails. False: there is none. */
bool sbc_tasks_give_up_largest(struct sbc *s);
void sbc_asks_give_up_largest(struct sbc *s);
void sbc_tasks_fini(struct sbc *s);

/* ask.c */
bool sbc_call_answered(struct sbc *s, int64_t id, const struct json *result,
                       const struct json *error);
bool sbc_send_answered(struct sbc *s, int64_t id, const struct json *result,
                       const struct json *error);
bool sbc_heard(struct sbc *s, enum sbc_news_kind kind,
               const struct json *params);
/* One more that is sent, in the book; NULL: no memory. */
struct sbc_sent *sbc_sent_new(struct sbc *s, sbc_hears *hears, void *ctx);
void sbc_sent_free(struct sbc *s, struct sbc_sent *m);
/* Put news into the inbox; they are told later. m NULL: without a message. */
bool sbc_note(struct sbc *s, struct sbc_sent *m, enum sbc_news_kind kind,
              const struct json *v);
bool sbc_note_failure(struct sbc *s, struct sbc_sent *m, struct str code,
                      struct str words);
bool sbc_on_accepted(struct sbc *s, struct sbc_sent *m,
                     const struct json *result);
bool sbc_fresh_key(char out[2 * SBC_KEY_BYTES + 1]);
void sbc_put_if(struct json_out *o, struct str key, const char *value);
/* As sbc_message has it: zero is not said. */
void sbc_put_cost(struct json_out *o, int64_t most);
/* sbc_call, with callbacks meanwhile if it is telling. */
char *sbc_call_within(struct sbc *s, const char *method, struct str params,
                      struct sbc_wait w);
void sbc_asks_lost(struct sbc *s);
void sbc_asks_say(struct sbc *s);
/* Tell what is in the inbox; whether there was anything. */
bool sbc_tell(struct sbc *s);
void sbc_asks_fini(struct sbc *s);

/* hire.c */
bool sbc_delegation_say(struct sbc *s, struct sbc_sent *m);
bool sbc_delegation_answered(struct sbc *s, struct str id,
                             const struct json *result,
                             const struct json *error);
/* Give up what is beyond its time; how long until the next is. */
int sbc_delegations_tick(struct sbc *s, int64_t now_ms);
/* delegation.result, and delegation.chunk. */
bool sbc_delegation_heard(struct sbc *s, enum sbc_news_kind kind,
                          const struct json *params);

/* had.c */
/* Who waited for it has it: the hub is to know. `result` is JSON, the params of
 * delegation.result. Without memory it is told again, and had again. */
void sbc_had(struct sbc *s, struct str result);
/* A result without a waiting caller. */
void sbc_tell_other(struct sbc *s, struct sbc_news *n);
void sbc_late(struct sbc *s, const char *key);
bool sbc_had_answered(struct sbc *s, int64_t id);
void sbc_had_lost(struct sbc *s);
void sbc_had_say(struct sbc *s);
void sbc_had_fini(struct sbc *s);

/* Keep the words and the code of an error that the hub answered with. */
enum sbc_err sbc_take_error(struct sbc *s, const struct json *error);

#endif
