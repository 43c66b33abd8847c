#ifndef SERVER_CONFIG_CONFIG_H
#define SERVER_CONFIG_CONFIG_H

/* config: all settings, from the file, the environment and the command line. A
 * later source overrides an earlier one.
 *
 *     signalbox.jsonc          JSON with comments and trailing commas
 *     SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=5000
 *     --set http.idleTimeoutMs=5000
 *
 * The table in table.c has a row per setting: path, type, default, limits,
 * whether a reload applies it, and a description; docs/config.md is generated
 * from it. An unknown setting is an error that names the nearest known one. No
 * other module reads the configuration or the environment.
 *
 * Threads: any; the module keeps no state, except for config_hide_env. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "model/agent.h"
#include "model/decision.h"
#include "model/source.h"
#include "model/transports.h"

/* A setting that is a list of strings. */
struct config_strs {
    const struct str *list;
    size_t n;
};

/* A setting that is a list of addresses and networks. */
struct config_ranges {
    const struct guard_range *list;
    size_t n;
};

enum { CONFIG_MORE_CERTS_MAX = 32 };

/* embed.kind. */
enum config_embed {
    CONFIG_EMBED_BUILTIN,
    CONFIG_EMBED_TABLE,
    CONFIG_EMBED_TRANSFORMER,
    CONFIG_EMBED_MINILM,
    CONFIG_EMBED_HTTP,
};

/* A certificate and its key, as files. */
struct config_cert {
    struct str cert_file, key_file;
};

/* search.order. */
enum config_order { CONFIG_ORDER_SPREAD, CONFIG_ORDER_PLAIN };

/* search.fusion. */
enum config_fusion { CONFIG_FUSION_WEIGHTED, CONFIG_FUSION_RRF };

/* Value of `rules`: search for the file. */
#define CONFIG_RULES_AUTO "auto"

/* deliver.onOffline. */
enum config_offline { CONFIG_OFFLINE_REFUSE, CONFIG_OFFLINE_HOLD };

/* delegation.onDisconnect. */
enum config_disconnect { CONFIG_DISCONNECT_KEEP, CONFIG_DISCONNECT_CANCEL };

/* routing.unsure and routing.preset. */
enum config_unsure {
    CONFIG_UNSURE_AUTO,
    CONFIG_UNSURE_DEFAULT,
    CONFIG_UNSURE_BEST,
    CONFIG_UNSURE_ASK,
    CONFIG_UNSURE_REFUSE,
};
enum config_preset { CONFIG_PRESET_NONE, CONFIG_PRESET_SEED };

/* routing.trust. */
enum config_trust { CONFIG_TRUST_RATED, CONFIG_TRUST_ALL };

/* routing.intentClassifier.when and .overrides. */
enum config_when { CONFIG_WHEN_ALWAYS, CONFIG_WHEN_AMBIGUOUS };
enum config_overrides { CONFIG_OVERRIDES_DEFAULT, CONFIG_OVERRIDES_BINDINGS };

struct config_pos;

/* Immutable once loaded: a reload makes a new one. Strings are in its arena and
 * end in NUL. */
struct config {
    struct arena arena;
    const struct config_pos *positions; /* where each setting was written */
    struct str path;                    /* of the file, which may be missing */
    bool has_file;                      /* it exists */
    struct strs usual_env; /* "NAME=value": the server's PATH, HOME, LANG, …
                            * for programs without variables of their own */

    struct strs closed; /* paths that no program may open; the first is data */

    struct str listen;     /* "127.0.0.1:8787"; empty: with TLS only */
    struct str data;       /* the data folder */
    bool allow_plaintext;  /* allow to listen beyond loopback without TLS */
    int64_t stop_grace_ms; /* for open requests when the server stops */
    struct str node;       /* the name of this server */
    struct str rules;      /* path of the rules file, or CONFIG_RULES_AUTO;
                            * empty: none */

    struct {
        struct str listen; /* empty: TLS is off */
        struct str cert_file, key_file;
        struct {
            const struct config_cert *list;
            size_t n;
        } more; /* for further names */
    } tls;

    struct {
        int64_t level;  /* enum log_level */
        int64_t format; /* enum log_format */
    } log;

    struct {
        int64_t max_connections;
        int64_t max_connections_per_address; /* zero: no limit */
        int64_t max_request_line_bytes;
        int64_t max_header_bytes;
        int64_t max_headers;
        int64_t max_body_bytes;
        int64_t max_unsent_bytes;
        int64_t max_buffered_bytes;
        int64_t header_timeout_ms;
        int64_t body_timeout_ms;
        int64_t idle_timeout_ms;
        int64_t reply_timeout_ms;
        int64_t write_timeout_ms;
        int64_t heartbeat_ms;
        struct config_strs allowed_hosts;   /* "example.org", "x.org:8443" */
        struct config_strs allowed_origins; /* "https://example.org" */
    } http;

    struct {
        bool is_public;    /* /metrics without a token */
        struct str listen; /* an extra address, without a token; empty: none */
    } metrics;

    struct {
        bool enabled;      /* the dashboard at / */
        struct str folder; /* files to serve, for its developers; empty: those
                            * in the binary */
    } web;

    struct {
        int64_t max_frame_bytes;
        int64_t max_message_bytes;
        int64_t timeout_ms;
        int64_t close_timeout_ms;
    } ws;

    struct {
        struct config_ranges allow; /* allowed by base/guard.h */
        struct str proxy;           /* "http://proxy:3128"; empty: none */
        struct str ca_file;         /* empty: the system's only */
        int64_t max_open;
        int64_t max_per_host;
        int64_t max_kept;
        int64_t connect_timeout_ms;
        int64_t max_header_bytes;
        int64_t max_body_bytes;
    } outgoing;

    struct {
        int64_t kind; /* enum config_embed */
        double second_margin;
        struct str model_file; /* empty: the default one in the data folder */
        int64_t cache_entries;
        int64_t max_waiting;
        int64_t max_waiting_bytes;
        int64_t timeout_ms;
        struct {
            struct str url;
            struct str model;
            struct str key_variable;
            struct str key; /* the value of that variable, never shown; NULL:
                             * it is not set */
            int64_t dimensions;
            struct str query_prefix, document_prefix;
            int64_t batch;
            int64_t max_requests;
            int64_t max_text_bytes;
            int64_t timeout_ms;
            int64_t breaker_failures;
            int64_t breaker_pause_ms;
        } http;
    } embed;

    struct {
        int64_t per_user, per_address; /* requests a second; zero: no limit */
        int64_t user_burst, address_burst;
        int64_t failures_per_minute; /* requests with invalid tokens */
        int64_t failure_burst;
        struct config_ranges exempt; /* without ports */
    } rate;

    struct {
        int64_t max_unfinished;
        int64_t max_unfinished_bytes;
        int64_t max_unfinished_per_user; /* zero: no limit */
        int64_t max_unfinished_bytes_per_user;
        int64_t timeout_ms;
    } tasks;

    struct {
        int64_t max_in_flight;
        int64_t in_flight, queue; /* of an agent without limits in its card */
        int64_t max_attempts;
        int64_t retry_ms, retry_max_ms;
        int64_t breaker_failures, breaker_pause_ms;
        int64_t wake_ms;
        int64_t on_offline; /* enum config_offline */
        int64_t silence_ms;
        int64_t input_ms;
        int64_t max_gathered_bytes;
    } deliver;

    struct {
        int64_t max_age_ms; /* zero: any */
    } gate;

    struct {
        int64_t max_open;
        int64_t max_listening;
        int64_t messages_per_second; /* zero: no limit */
    } hub;

    struct {
        const struct process_def *list; /* an agent's own definition has the
                                         * agent's name; names are unique
                                         * without regard to case */
        size_t n;
    } processes;

    struct {
        const struct model_def *list; /* names are unique, likewise */
        size_t n;
    } models;

    struct {
        int64_t timeout_ms;
        int64_t max_depth, max_concurrent; /* without a limit in the card */
        int64_t max_waiting, max_per_root, max_open, max_unacked;
        int64_t keep_ms;
        int64_t on_disconnect; /* enum config_disconnect */
    } delegation;

    struct {
        int64_t days;
        int64_t rows;
    } retention;
    struct {
        int64_t fee_ppm;
        int64_t per_day, per_conversation, per_root; /* micro-units */
        int64_t delegation_allowance;                /* likewise */
        struct str currency; /* AGENT_CURRENCY_MAX bytes at most */
    } ledger;

    struct {
        struct str endpoint; /* empty: off */
        struct str headers_variable;
        struct str headers; /* the value of that variable, never shown */
        struct str service;
        int64_t max_waiting, batch, delay_ms, timeout_ms;
    } traces;

    struct {
        const struct agent *list; /* with agents.defaults merged in; names are
                                   * unique without regard to case */
        size_t n;
    } agents;
    struct str default_agent; /* agents.default: of the list, or an agent that
                               * registers; empty: none */

    struct {
        struct str key_file; /* a path, CONFIG_RULES_AUTO or empty */
        struct str key_variable, key;
        struct str credential_file, home_file; /* searched by "auto"; empty:
                                                * not available */
        bool ignores_wrong_key;
    } secrets;
    struct str agents_owner;  /* agents.owner: the user who may register names
                               * that rules and settings mention; empty: only
                               * admins may */
    struct bindings bindings; /* in the order of the file; all of their agents
                               * are in the list */

    struct {
        bool layer_is_off[N_LAYERS];   /* routing.layers lists the others */
        struct signal_weights weights; /* routing.weights.* */
        double threshold, text_blend;  /* below zero: "auto" */
        bool threshold_is_set, text_blend_is_set; /* else a preset replaces the
                                                   * default */
        double explore, close_margin;
        int64_t unsure, preset; /* enum config_unsure, config_preset */
        int64_t trust;          /* enum config_trust */
        int64_t recency_ms, vector_timeout_ms;
        struct {
            bool is_on;   /* routing.intentClassifier.enabled */
            int64_t kind; /* enum model_kind */
            struct str endpoint, model, key_variable, key;
            int64_t timeout_ms;
            double threshold;
            int64_t when, overrides; /* enum config_when, config_overrides */
        } intent;
    } routing;

    struct {
        int64_t every_ms, follow_up_ms;
        int64_t substantial_chars, short_chars;
        double rate, lean, type_likeness;
        int64_t max_types, examples_per_agent, max_examples;
    } learning;

    struct {
        int64_t max_agents;
        int64_t max_skills;
        bool is_reviewed;                /* users' public cards need review */
        int64_t max_agents_per_user;     /* zero: no limit */
        int64_t max_card_bytes_per_user; /* zero: no limit */
        int64_t max_skills_per_user, max_index_bytes_per_user; /* likewise */
        int64_t max_agents_per_org, max_skills_per_org, max_card_bytes_per_org,
            max_index_bytes_per_org;
        int64_t skills_per_minute, max_searched; /* zero: no limit */
    } registry;

    struct {
        double semantic_weight, text_weight; /* 0 to 1, not both 0 */
        int64_t fusion;                      /* enum config_fusion */
        int64_t order;                       /* enum config_order */
    } search;

    /* Settings from each source, including overridden ones. */
    unsigned n_from_file, n_from_env, n_from_flags;
};

/* The sources. Borrowed for the call. */
struct config_source {
    const char *path;       /* NULL: $SIGNALBOX_CONFIG, else signalbox.jsonc
                             * in the current folder if it exists */
    bool is_without_file;   /* read a file only if path names one */
    char *const *environ;   /* "NAME=value", NULL at the end; may be NULL */
    const struct str *sets; /* "a.b=c" from the command line */
    size_t n_sets;
};

/* The parts of one line of the report, for --json. */
struct config_problem {
    bool is_warning;
    unsigned line, col; /* zero: no line is known */
    struct str where;   /* the file, the variable or the flag */
    struct str what;    /* the message */
};

enum { CONFIG_PROBLEMS_MAX = 64 };

/* The problems, one line each: "FILE:LINE:COL: problem and remedy". A last line
 * says how many did not fit; the counts include those. Must not be copied,
 * since the problems point into text. */
struct config_report {
    char text[4096];
    size_t text_bytes;
    size_t tail_bytes; /* of the last line, if some did not fit */
    unsigned n_errors;
    unsigned n_warnings; /* marked as such in text */
    unsigned n_problems; /* that fit */
    struct config_problem problems[CONFIG_PROBLEMS_MAX];
};

/* Load the configuration. NULL: the report has errors; warnings do not prevent
 * loading. Returns owned: config_free. */
MUST_USE struct config *config_load(const struct config_source *src,
                                    struct config_report *report);
void config_free(struct config *c);

/* The same from text, read as if it were the file `name`; src->path and
 * $SIGNALBOX_CONFIG are ignored. For tests and fuzzing. */
MUST_USE struct config *config_load_text(const char *name, struct str text,
                                         const struct config_source *src,
                                         struct config_report *report);

/* Add a problem that only the user of a setting finds, such as a file that
 * cannot be used. It is reported at the position of the setting in c, which may
 * be part of a list: "tls.more[1].keyFile". */
void config_report_add(struct config_report *report, const struct config *c,
                       const char *setting, bool is_warning, const char *what);

/* The same without a setting, where the cause is not known. */
void config_report_whole(struct config_report *report, const struct config *c,
                         const char *what);

/* Write the members `problems` and `problems_left_out` into the open object. */
void config_report_write(struct json_out *o,
                         const struct config_report *report);

/* List the settings that differ and need a restart, separated by ", "; empty:
 * none. */
void config_restart_needed(const struct config *now, const struct config *then,
                           struct buf *names);

/* The reference in Markdown: exactly docs/config.md. */
void config_write_reference(struct buf *out);

/* The whole configuration as JSON, including defaults: itself a valid file. In
 * folder names, bytes that are not UTF-8 become U+FFFD. */
void config_write_json(const struct config *c, struct buf *out);

/* A running configuration for a remote admin. It contains no secret, only
 * whether there is one.
 *
 * A list of all settings, in the order of the reference. A setting that needs a
 * restart has the value that the server was started with, and `after_restart`
 * if another one is pending. Lists of objects are only counted. */
void config_write_settings(struct json_out *o, const struct config *built_from,
                           const struct config *now);

/* The content of those lists, shortened, as the members agents, bindings,
 * processes and models of the open object. */
void config_write_lists(struct json_out *o, const struct config *c);

/* The names of the settings that differ, as a list; needs_restart: only those
 * that need a restart. */
void config_write_changed(struct json_out *o, const struct config *now,
                          const struct config *then, bool needs_restart);

/* One row of the table, described. */
struct config_setting {
    const char *path;   /* "http.maxBodyBytes" */
    char allowed[192];  /* "a whole number from 1 to 5 (milliseconds)" */
    const char *preset; /* the default, as JSON */
    const char *what;   /* the description */
    const char *flag;   /* its own flag, "--listen"; NULL without one */
    char variable[64];  /* "SIGNALBOX_HTTP__MAX_BODY_BYTES" */
    bool needs_restart;
};

/* The i-th row; false past the end. */
bool config_setting(size_t i, struct config_setting *out);

/* The value of a variable in an environment; NULL: it is not set. For variables
 * that are not settings (NO_COLOR, LANG), so that no other module reads
 * environ.
 */
const char *config_env(char *const *env, const char *name);

/* Move the variables out of the memory that the kernel shows as
 * /proc/PID/environ. From then on env points to copies, for a reload, and
 * getenv finds only the few that libraries read. Works once in a process.
 * Without memory nothing changes. */
void config_hide_env(char **env);

#endif
