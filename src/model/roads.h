#ifndef MODEL_ROADS_H
#define MODEL_ROADS_H

/* roads: what the operator says of programs and models that agents are made
 * of: "process:NAME" and "model:NAME" lead to one of these. They come from the
 * configuration, never from a card. Borrowed strings; whoever made the struct
 * owns them. */

#include "model/agent.h"

enum {
    PROCESS_POOL_MAX = 256, /* children of one definition */
    PROCESS_ENV_MAX = 128,
    PROCESS_PATHS_MAX = 64, /* of each list, read and write */
    ROADS_MAX = 1024,       /* definitions of each kind */
};

/* How a program speaks. */
enum process_dialect {
    DIALECT_SIGNALBOX, /* the hub's methods, one message a line */
    DIALECT_PI,        /* pi-coding-agent --mode rpc */
};

/* What a cancel does to the process. */
enum process_cancel {
    CANCEL_STOPS, /* it is asked, and after a grace it and all that it started
                   * are killed */
    CANCEL_ASKS,  /* it is asked, and goes on if it says in that time that it
                   * has stopped; else as above */
};

struct process_def {
    struct str name; /* whatever the case; of an agent's own block: its name */
    struct strs command;
    enum process_dialect dialect;
    struct str workspace;    /* a folder; empty: our own */
    struct strs env_allowed; /* names that it gets from our environment, beside
                              * the usual ones (PATH, HOME, LANG, …) */
    struct strs env;         /* "NAME=value" beside them */
    struct strs whole_env;   /* "NAME=value": all it gets, made of those; only
                              * whoever reads the configuration may look at our
                              * environment */
    struct str model;        /* pi: "PROVIDER/MODEL"; empty: its own */
    bool tools;              /* pi: it is offered those of the server */
    int64_t min, max;        /* children; at most max, min kept ready */
    int64_t idle_ms;         /* before one beyond min is let go */
    int64_t start_ms;        /* from its start to its first word */
    int64_t stop_grace_ms;
    enum process_cancel cancel;
    int64_t max_line_bytes;
    int64_t memory_bytes, cpu_s, files, processes; /* zero: no limit */
    bool sandbox;            /* closed to it is what is not listed */
    struct strs read, write; /* paths, beside the workspace */
    struct str user;         /* to run as; empty: ours */
};

/* What an endpoint of models speaks. */
enum model_kind {
    MODEL_OPENAI,    /* …/chat/completions */
    MODEL_ANTHROPIC, /* …/messages */
    MODEL_KINDS,
};

struct model_def {
    struct str name;
    enum model_kind kind;
    struct str base_url;      /* ".../v1"; the path of its kind is added */
    struct str model;         /* as the endpoint calls it; empty: what stands
                               * behind the first '/' of model:NAME/… */
    struct str key_variable;  /* where the key is from; empty: none is sent */
    struct str key;           /* empty: none. A secret */
    struct str system_prompt; /* where the agent has none */
    int64_t max_tokens;       /* zero: not said */
    double temperature;       /* below zero: not said */
    int64_t history_messages; /* of the conversation, at most */
    int64_t history_bytes;    /* of their texts together */
    int64_t timeout_ms;       /* of one answer */
    int64_t silence_ms;       /* without a byte of it */
    bool tools; /* agents of it may use them, where they may delegate */
};

/* The definition of that name, whatever the case; NULL: there is none. */
const struct process_def *process_def_find(const struct process_def *list,
                                           size_t n, struct str name);

/* How to install what speaks it; empty: that is the operator's own. */
struct str process_install(enum process_dialect d);

/* The definition that "model:ID" names: ID as it is, else what is before its
 * first slash; *model is then what the endpoint calls the model, empty where
 * that is not known. NULL: there is none. */
const struct model_def *model_def_find(const struct model_def *list, size_t n,
                                       struct str id, struct str *model);

#endif
