#ifndef BROKER_PEOPLE_H
#define BROKER_PEOPLE_H

/* What the files about escalations, answers that are due and agents that are
 * brought back share.
 *
 *     people.c   escalations: when one is made, and when it is over
 *     asked.c    one of them: its row, its place in memory
 *     remind.c   reminders, offers, expiry
 *     say.c      what people say to them, and what follows
 *     late.c     answers that are due
 *     outage.c   agents that are out: how each comes to be known, its row
 *     revive.c   what is done about them: restarts, and who stands in
 *     pause.c    agents that somebody has paused
 *
 * An escalation that is open is in memory; its row is the truth. It is decided
 * by one update that is good for open ones alone, in the tx of what follows
 * from it: so of two people one is first, whoever else there is. */

#include "broker/internal.h"

enum {
    PEOPLE_OPEN_MAX = 10 * 1000, /* beyond, what must be seen is refused */
    PEOPLE_WORDS_MAX = 16,       /* on their way for one escalation */
    PEOPLE_RETRY_MS = 10 * 1000, /* what could not be written is tried again */
    PEOPLE_PER_TURN = 64,
    DUE_MAX = 1000 * 1000, /* answers that are waited for */
    OUTAGES_MAX = 10 * 1000,
    RESTART_PAUSE_MAX_MS = 3600 * 1000,
};

#define PEOPLE_SELF STR("signalbox") /* who decides where nobody did */

/* Whom and what it is about. */
struct about {
    struct id task_id;
    int64_t turn;
    enum task_priority priority;
    struct str agent, requester, root_user, from, type, reference;
};

/* Its strings, copied to *at, which has room for about_bytes of them. */
size_t about_bytes(const struct about *a);
struct about about_pack(char **at, const struct about *a);

/* Something that somebody said, on its way. */
struct said {
    struct broker *broker;
    struct list_node node; /* among its escalation's */
    struct asked *asked;   /* NULL: it is not open any more */
    struct id id;          /* of the escalation */
    enum escalation_status status;
    bool is_expiry; /* nobody has answered */
    bool is_out;    /* somebody will say what became of it */
    bool is_own;    /* it has a tx of its own */
    bool is_late;   /* it is known that somebody was first */
    struct tx tx;
    struct query query;
    struct str agent, comment, by;
    void (*done)(void *ctx, enum err e, const struct why *why);
    void *ctx;
    char strings[];
};

/* An escalation that is open, or on its way to the disk. */
struct asked {
    struct broker *broker;
    struct list_node node; /* of all, the oldest first */
    struct id id;
    struct about about;
    enum escalation_kind kind;
    bool is_coming; /* not on the disk yet */
    bool is_moving; /* revive.c: it was asked about again */
    bool is_ending; /* it is decided in the tx that ends its task */
    bool is_noting; /* a reminder or an offer is on its way */
    enum escalation_kind becomes; /* in a tx under way; zero: as it is */
    int64_t at_ms, remind_ms, expires_ms; /* Unix time; zero: never */
    /* The same for whoever waits: a clock that is set moves no moment. */
    int64_t remind_mono_ms, expires_mono_ms;
    int64_t reminded;
    char offer[AGENT_NAME_MAX + 1];
    struct timer timer;
    struct list words; /* struct said; the first is in hand if is_in_hand */
    size_t n_words;
    bool is_in_hand, is_recorded;
    char strings[];
};

struct people {
    struct list open; /* struct asked */
    struct map by_id, by_task, late_by_task;
    size_t n_noting;
    bool is_stopped;
    bool is_ending; /* nobody is there to hear anything */
};

/* asked.c */
struct asked *asked_make(struct broker *b, const struct about *a);
enum err asked_enter(struct asked *x);
struct map *asked_map(const struct asked *x); /* by task, of its sort */
struct tx_op *asked_update(const struct asked *x, struct tx *tx);
const struct gate_people *people_rules_of(const struct broker *b);
struct asked *asked_by_id(const struct broker *b, struct str id);
/* What keeps the task from going; or that it is late. */
struct asked *asked_of(const struct broker *b, struct str task_id);
struct asked *asked_late(const struct broker *b, struct str task_id);
/* A new one, into the tx; NULL: tx->build_error says why. It is open once
 * asked_open says so, or else asked_undo follows. */
struct asked *asked_new(struct broker *b, const struct about *about,
                        enum escalation_kind kind, struct str rule,
                        struct str reason, struct tx *tx);
void asked_open(struct asked *x);
void asked_undo(struct asked *x);
/* It is decided, in the tx: by whom, how. */
void asked_decide(const struct asked *x, enum escalation_status status,
                  struct str by, struct str comment, struct str to,
                  struct tx *tx);
/* It is still to be seen, and why is another matter: in the tx. */
void asked_rewrite(struct asked *x, enum escalation_kind kind, struct str rule,
                   struct str reason, struct tx *tx);
/* It is not open any more. What is on its way for it hears who was first, but
 * for `own`, which was it. */
void asked_close(struct asked *x, struct said *own);

/* remind.c */
/* Its row says another backup. */
void asked_offer(struct asked *x, struct str backup);
/* From its moments on: it is open. */
void asked_start(struct asked *x);
/* Its task, or that turn of it, is over: nobody need be asked. */
void asked_forsake(struct asked *x);
void asked_on_timer(struct timer *t);

/* say.c */
void said_next(struct asked *x);
/* Somebody else was first: it hears who. */
void said_too_late(struct said *w);
void said_finish(struct said *w, enum err e, const struct why *why);
struct said *said_in_hand(const struct asked *x);
/* The tx that carried it out was not committed. */
void said_failed(struct asked *x);
/* Say it for ourselves. False: no memory. */
MUST_USE bool say_self(struct asked *x, enum escalation_status status,
                       struct str agent, struct str comment, bool is_expiry);

/* A feed entry about somebody's task. `write` adds members to the data. */
struct note_data {
    struct buf buf;
    struct json_out out;
    bool is_for_seers; /* as feed_entry's */
};
void note_open(struct note_data *n);
void note_about(struct note_data *n, const struct asked *x);
void note_str(struct note_data *n, const char *key, struct str s);
void note_int(struct note_data *n, const char *key, int64_t v);
void note_close(struct note_data *n, struct broker *b, struct str type,
                const struct about *about, struct tx *tx);

/* late.c: how late an answer would be now; zero: it is not. */
int64_t late_ms(const struct broker *b, struct str task_id);
struct timer *late_timer(const struct broker *b,
                         struct str task_id); /* for
                                               * tests */

/* outage.c: one of kind dead is open. */
void revive_asked(struct asked *x);

/* outage.c, revive.c: an agent that is out. */
struct outage {
    struct broker *broker;
    int64_t since_ms;     /* Unix time; zero: it is not out */
    int64_t next_mono_ms; /* not restarted before */
    int64_t calm_mono_ms; /* attempts are remembered until then */
    int64_t attempts;     /* that were made */
    bool is_gate;         /* others are held up by it */
    bool is_told;         /* in the feed, with the task told_by */
    struct id told_by;
    enum agent_state paused_by; /* the state that holds the others up */
    bool is_restarting;         /* it will be heard what became of it */
    bool has_given_up;
    struct timer timer;
    char name[AGENT_NAME_MAX + 1]; /* lower case */
    char shown[AGENT_NAME_MAX + 1];
};

struct revive {
    struct map outages; /* struct outage */
    bool is_stopped;
};

struct outage *outage_of(const struct broker *b, struct str agent);
struct gate_agent outage_agent(const struct outage *o); /* as it is now */
void outage_arm(struct outage *o, int64_t delay_ms);
void outage_free(struct outage *o);
/* A step in the feed, and how far it is in its row. `type` NULL: the row alone.
 * `more` is a word on what comes next. */
void outage_write(struct outage *o, bool is_over, const char *type,
                  const char *because, const char *key, struct str more);
/* Do what is to be done now; it may be gone after. */
void outage_look(struct outage *o);
/* Who may be given what was meant for an agent, by the rules, else by its
 * card; empty: nobody. And whether this one may: who asked sees it, has not
 * sent it, and is not above it. */
struct str revive_backup(const struct broker *b, struct str agent,
                         bool *is_auto);
bool revive_may_have(const struct asked *x, struct str backup);

/* pause.c */
MUST_USE enum err pauses_load(struct broker *b);

/* Tables: agents that are out, and those that are paused. */
extern const struct table outage_table, pause_table;
enum outage_column {
    OUTAGE_AGENT, /* lower case */
    OUTAGE_SHOWN,
    OUTAGE_SINCE_MS,
    OUTAGE_ATTEMPTS,
    OUTAGE_NEXT_MS,
    OUTAGE_HAS_GIVEN_UP,
    OUTAGE_IS_GATE,
    N_OUTAGE_COLUMNS,
};
enum pause_column {
    PAUSE_AGENT, /* lower case */
    PAUSE_BY,
    PAUSE_AT_MS,
    N_PAUSE_COLUMNS,
};

#endif
