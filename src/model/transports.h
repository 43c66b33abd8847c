#ifndef MODEL_TRANSPORTS_H
#define MODEL_TRANSPORTS_H

/* transports: the operator's definitions of programs and models: "process:NAME"
 * and "model:NAME" refer to one of these. They come from the configuration,
 * never from a card. Borrowed strings; the creator of the struct owns them. */

#include "model/agent.h"

enum {
    PROCESS_POOL_MAX = 256, /* children of one definition */
    PROCESS_ENV_MAX = 128,
    PROCESS_PATHS_MAX = 64, /* of each list, read and write */
    TRANSPORTS_MAX = 1024,  /* definitions of each kind */
};

/* The protocol of a program. */
enum process_dialect {
    DIALECT_SIGNALBOX, /* the hub's methods, one message a line */
    DIALECT_PI,        /* pi-coding-agent --mode rpc */
};

/* The effect of a cancel on the process. */
enum process_cancel {
    CANCEL_STOPS, /* it is asked to stop, and after a grace period it is
                   * killed with all its children */
    CANCEL_ASKS,  /* it is asked, and keeps running if it confirms in time;
                   * otherwise as above */
};

struct process_def {
    struct str name; /* ignores case; for an agent's own block: its name */
    struct strs command;
    enum process_dialect dialect;
    struct str workspace;    /* a folder; empty: our own */
    struct strs env_allowed; /* names copied from our environment, besides
                              * the usual ones (PATH, HOME, LANG, …) */
    struct strs env;         /* "NAME=value", in addition */
    struct strs whole_env;   /* "NAME=value": the complete result; only the
                              * reader of the configuration may access our
                              * environment */
    struct str model;        /* pi: "PROVIDER/MODEL"; empty: its default */
    bool tools;              /* pi: it may use the server's tools */
    int64_t min, max;        /* children; min of them are kept ready */
    int64_t idle_ms;         /* before one beyond min is stopped */
    int64_t start_ms;        /* from its start to its first output */
    int64_t stop_grace_ms;
    enum process_cancel cancel;
    int64_t max_line_bytes;
    int64_t memory_bytes, cpu_s, files, processes; /* zero: no limit */
    bool sandbox;            /* access only to the listed paths */
    struct strs read, write; /* paths besides the workspace */
    struct str user;         /* to run as; empty: ours */
};

/* The protocol of a model endpoint. */
enum model_kind {
    MODEL_OPENAI,    /* …/chat/completions */
    MODEL_ANTHROPIC, /* …/messages */
    MODEL_KINDS,
};

struct model_def {
    struct str name;
    enum model_kind kind;
    struct str base_url;      /* ".../v1"; the path of its kind is appended */
    struct str model;         /* the endpoint's name for it; empty: the part
                               * after the first '/' of model:NAME/… */
    struct str key_variable;  /* variable that holds the key; empty: none is
                               * sent */
    struct str key;           /* empty: none. A secret */
    struct str system_prompt; /* if the agent has none */
    int64_t max_tokens;       /* zero: not set */
    double temperature;       /* below zero: not set */
    int64_t history_messages; /* of the conversation, at most */
    int64_t history_bytes;    /* of their texts together */
    int64_t timeout_ms;       /* of one answer */
    int64_t silence_ms;       /* longest pause between bytes */
    bool tools; /* its agents may use them, if they may delegate */
};

/* The definition with that name, ignoring case, or NULL. */
const struct process_def *process_def_find(const struct process_def *list,
                                           size_t n, struct str name);

/* How to install a program with that protocol; empty: it is the operator's
 * own. */
struct str process_install(enum process_dialect d);

/* The definition that "model:ID" names: the whole ID, or the part before its
 * first slash. *model becomes the endpoint's name for the model, empty if
 * unknown. NULL if there is no definition. */
const struct model_def *model_def_find(const struct model_def *list, size_t n,
                                       struct str id, struct str *model);

#endif
