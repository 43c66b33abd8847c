#ifndef CLI_PLATFORM_H
#define CLI_PLATFORM_H

/* platform: the chat platforms with menus of commands: the calls that set a
 * menu, and the meaning of the answers. A new platform is a new row of the
 * table. Pure. Threads: any. */

#include "base/buf.h"
#include "base/json.h"
#include "net/client/fetch.h"

enum {
    PLATFORM_TOKEN_MAX = 256,
    PLATFORM_URL_MAX = 2048,
    PLATFORM_WORDS_MAX = 300, /* of a platform's message */
};

/* The options of one push. Empty: not given. */
struct platform_order {
    struct str api; /* without a slash at the end */
    struct str token;
    bool is_clear;                    /* remove all commands */
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
    const char *api;      /* the URL of the API */
    const char *variable; /* environment variable with the bot's token */
    const char *token_is; /* the format of a token, in words */
    const char *options;  /* options of this platform only: "app guild" */
    bool is_array;        /* the menu is an array; else it is `commands` */
    bool (*is_token)(struct str token);

    /* ERR_USAGE: the options contradict each other; why has the reason. */
    enum err (*check)(const struct platform_order *o, struct why *why);

    /* The call that finds the bot's application. NULL: not needed. */
    void (*whoami)(const struct platform_order *o, struct platform_call *out);

    /* The call that sets the commands, and its body from the server's list;
     * NULL (is_clear): no commands. */
    void (*call)(const struct platform_order *o, struct platform_call *out);
    void (*body)(const struct platform_order *o, const struct json *commands,
                 struct buf *out);

    /* The number of commands in a successful answer; -1: not known. */
    int64_t (*count)(const struct json *answer);

    /* The time until the next request is allowed, from the answer's body. */
    int64_t (*wait_ms)(const struct json *answer);
    /* The platform's error message; empty: none. */
    struct str (*complaint)(const struct json *answer);
};

/* NULL: unknown name. */
const struct platform *platform_find(struct str name);

/* The error for an answer with a status other than 200. *why never contains the
 * token, even if the platform's message does. */
enum err platform_judge(const struct platform *p,
                        const struct platform_order *o, int status,
                        const struct json *answer, struct why *why);

#endif
