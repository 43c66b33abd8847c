#ifndef CLI_PLATFORM_H
#define CLI_PLATFORM_H

/* platform: the chat platforms that have menus of commands, how theirs are
 * set, and what their answers mean. One table; a further platform is a further
 * row. Pure. Threads: any. */

#include "base/buf.h"
#include "base/json.h"
#include "fetch/fetch.h"

enum {
    PLATFORM_TOKEN_MAX = 256,
    PLATFORM_URL_MAX = 2048,
    PLATFORM_WORDS_MAX = 300, /* of a platform's own, that are shown */
};

/* What is to be done there. Empty: not given. */
struct platform_order {
    struct str api; /* without a slash at the end */
    struct str token;
    bool is_clear;                    /* take all commands away */
    struct str scope, chat, language; /* of Telegram */
    struct str app, guild;            /* of Discord */
};

struct platform_call {
    struct str method; /* constant */
    char url[PLATFORM_URL_MAX + 1];
    struct fetch_header headers[3];
    size_t n_headers;
    char authorization[PLATFORM_TOKEN_MAX + 8]; /* a header points here */
};

struct platform {
    const char *name, *title;
    const char *api;      /* where it is */
    const char *variable; /* of the environment, that has the bot's token */
    const char *token_is; /* what one looks like, in words */
    const char *options;  /* that are its own: "app guild" */
    bool is_array;        /* its menu is; else an object with `commands` */
    bool (*is_token)(struct str token);

    /* Whether the order makes sense; else ERR_USAGE with words. */
    enum err (*check)(const struct platform_order *o, struct why *why);

    /* Ask first which application the bot is. NULL: that need not be known. */
    void (*whoami)(const struct platform_order *o, struct platform_call *out);

    /* The call that sets the commands, and its body from what the server
     * says they are: of NULL (is_clear), none. */
    void (*call)(const struct platform_order *o, struct platform_call *out);
    void (*body)(const struct platform_order *o, const struct json *commands,
                 struct buf *out);

    /* How many commands it has now, by an answer that is good; -1: it does
     * not say, or the answer is none. */
    int64_t (*count)(const struct json *answer);

    /* How long it wants to be left alone, by the answer's body. */
    int64_t (*wait_ms)(const struct json *answer);
    /* What is wrong, in its words; empty: it does not say. */
    struct str (*complaint)(const struct json *answer);
};

/* NULL: none of that name. */
const struct platform *platform_find(struct str name);

/* "telegram or discord" */
struct str platform_names(void);

/* Words for an answer with another status than 200, and the error it is. The
 * token is not in them, whatever the platform says. */
enum err platform_judge(const struct platform *p,
                        const struct platform_order *o, int status,
                        const struct json *answer, struct why *why);

#endif
