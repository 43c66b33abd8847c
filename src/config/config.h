#ifndef CONFIG_H
#define CONFIG_H

/* config: everything a user can set, from the file, the environment and the
 * command line, in that order: the later wins.
 *
 *     signalbox.jsonc          JSON with comments and trailing commas
 *     SIGNALBOX_HTTP__IDLE_TIMEOUT_MS=5000
 *     --set http.idleTimeoutMs=5000
 *
 * One table in table.c has a row per setting: path, type, default,
 * limits, whether a reload takes it, and a sentence; docs/config.md is made
 * from it. A setting that is not there is an error that names the nearest one
 * that is. Nothing but config.c reads the configuration or the environment.
 * Threads: any; nothing here keeps state. */

#include "base/arena.h"
#include "base/buf.h"
#include "base/guard.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "model/agent.h"
#include "model/decision.h"
#include "model/roads.h"
#include "model/source.h"

/* A setting that is a list of strings. */
struct config_strs {
    const struct str *list;
    size_t n;
};

/* One that is a list of addresses and networks. */
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

/* `rules`: the file is looked for. */
#define CONFIG_RULES_AUTO "auto"

/* deliver.onOffline. */
enum config_offline { CONFIG_OFFLINE_REFUSE, CONFIG_OFFLINE_HOLD };

/* Likewise: what becomes of a delegation whose agent goes. */
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

struct config_spot;

/* Never changed after it was loaded: a reload makes a new one. Strings lie in
 * its arena and end in NUL. */
struct config {
    struct arena arena;
    const struct config_spot *spots; /* where each setting was written */
    struct str path; /* the file it came from, or would if it were there */
    bool has_file;   /* it was there */
    struct strs usual_env; /* "NAME=value": PATH, HOME, LANG, … as they are
                            * here: for programs with nothing of their own */

    struct strs closed; /* paths that no program opens; the first is data */

    struct str listen;     /* "127.0.0.1:8787"; empty: with TLS only */
    struct str data;       /* the data folder */
    bool allow_plaintext;  /* listen beyond loopback without TLS */
    int64_t stop_grace_ms; /* open requests may take that long at the end */
    struct str node;       /* the name of this server among others */
    struct str rules;      /* the file of the gate's rules, or
                            * CONFIG_RULES_AUTO; empty: none */

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
        struct str listen; /* its own address, without a token; empty: none */
    } metrics;

    struct {
        bool enabled;      /* the dashboard at / */
        struct str folder; /* its files, for who works on them; empty: those
                            * in the binary */
    } web;

    struct {
        int64_t max_frame_bytes;
        int64_t max_message_bytes;
        int64_t timeout_ms;
        int64_t close_timeout_ms;
    } ws;

    struct {
        struct config_ranges allow; /* what base/guard.h lets through */
        struct str proxy;           /* "http://proxy:3128"; empty: none */
        struct str ca_file;         /* empty: those of the system alone */
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
        struct str model_file; /* empty: the usual one in the data folder */
        int64_t cache_entries;
        int64_t max_waiting;
        int64_t max_waiting_bytes;
        int64_t timeout_ms;
        struct {
            struct str url;
            struct str model;
            struct str key_variable;
            struct str key; /* what that variable holds: no setting, and
                             * shown nowhere; NULL: it is not set */
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
        int64_t failures_per_minute; /* tokens that are not good */
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
        int64_t in_flight, queue; /* of an agent whose card does not say */
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
        const struct process_def *list; /* those of agents' own too, each by
                                         * the agent's name; names are unique
                                         * whatever their case */
        size_t n;
    } processes;

    struct {
        const struct model_def *list; /* unique names, likewise */
        size_t n;
    } models;

    struct {
        int64_t timeout_ms;
        int64_t max_depth, max_concurrent; /* where no card says less */
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
        struct str headers; /* what that variable holds: as a key */
        struct str service;
        int64_t max_waiting, batch, delay_ms, timeout_ms;
    } traces;

    struct {
        const struct agent *list; /* whole cards, with agents.defaults in
                                   * them; names are unique whatever their
                                   * case */
        size_t n;
    } agents;
    struct str default_agent; /* agents.default: a name in the list, or of
                               * somebody who registered; empty: none */

    struct {
        struct str key_file; /* a path, CONFIG_RULES_AUTO or empty */
        struct str key_variable, key;
        struct str credential_file, home_file; /* where "auto" looks; empty:
                                                * there is no such place */
        bool ignores_wrong_key;
    } secrets;
    struct str agents_owner;  /* agents.owner: who may register names that rules
                               * and settings mention; empty: admins alone */
    struct bindings bindings; /* in the order of the file; agents that are in
                               * no list are refused */

    struct {
        bool
            layer_is_off[N_LAYERS]; /* routing.layers lists those that are on */
        struct signal_weights weights;            /* routing.weights.* */
        double threshold, text_blend;             /* below zero: "auto" */
        bool threshold_is_set, text_blend_is_set; /* else they are defaults,
                                                   * which a preset replaces */
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
        int64_t max_agents_per_user;     /* zero: no limit */
        int64_t max_card_bytes_per_user; /* zero: no limit */
        int64_t max_skills_per_user, max_index_bytes_per_user; /* likewise */
        int64_t max_agents_per_org, max_skills_per_org, max_card_bytes_per_org,
            max_index_bytes_per_org;
    } registry;

    struct {
        double semantic_weight, text_weight; /* 0 to 1, not both 0 */
        int64_t fusion;                      /* enum config_fusion */
        int64_t order;                       /* enum config_order */
    } search;

    /* How many settings each source gave, overruled ones included. */
    unsigned n_from_file, n_from_env, n_from_flags;
};

/* Where to look. Borrowed for the call. */
struct config_source {
    const char *path;       /* NULL: $SIGNALBOX_CONFIG, else signalbox.jsonc
                             * in the current folder if it is there */
    bool is_without_file;   /* unless path names one */
    char *const *environ;   /* "NAME=value", NULL at the end; may be NULL */
    const struct str *sets; /* "a.b=c" from the command line */
    size_t n_sets;
};

/* One line of the report, taken apart for --json. */
struct config_problem {
    bool is_warning;
    unsigned line, col; /* zero where the place is no file or no line */
    struct str where;   /* the file, the variable or the flag */
    struct str what;    /* without the place */
};

enum { CONFIG_PROBLEMS_MAX = 64 };

/* What was wrong, one line each, "FILE:LINE:COL: what and what to do". As many
 * as fit are given, so that one look finds all; a last line says how many did
 * not fit. The counts are of all. Must not be copied: problems point into
 * text. */
struct config_report {
    char text[4096];
    size_t text_bytes;
    size_t tail_bytes; /* of these, the line that says how many more */
    unsigned n_errors;
    unsigned n_warnings; /* in text too, marked as such */
    unsigned n_problems; /* those that fit */
    struct config_problem problems[CONFIG_PROBLEMS_MAX];
};

/* The configuration, or NULL with the report filled. Warnings alone do not
 * stand in the way. Returns owned: config_free. */
MUST_USE struct config *config_load(const struct config_source *src,
                                    struct config_report *report);
void config_free(struct config *c);

/* The same from text already in memory, read as if it were the file `name`;
 * src->path and $SIGNALBOX_CONFIG count for nothing. For tests and fuzzing. */
MUST_USE struct config *config_load_text(const char *name, struct str text,
                                         const struct config_source *src,
                                         struct config_report *report);

/* Another problem, of what only its user can find out: that a file which it
 * names is of no use. With the place where c has the setting from, which may be
 * part of a list: "tls.more[1].keyFile". */
void config_report_add(struct config_report *report, const struct config *c,
                       const char *setting, bool is_warning, const char *what);

/* The same of the whole, where it is not known which setting is to blame. */
void config_report_whole(struct config_report *report, const struct config *c,
                         const char *what);

/* As the members `problems` and `problems_left_out` of an object. */
void config_report_write(struct json_out *o,
                         const struct config_report *report);

/* Name the settings that differ and that only a restart can apply, separated
 * by ", "; empty when there are none. */
void config_restart_needed(const struct config *now, const struct config *then,
                           struct buf *names);

/* The reference in Markdown: docs/config.md is exactly this. */
void config_write_reference(struct buf *out);

/* The whole configuration as JSON, defaults included: itself a valid file. A
 * folder's name may be any bytes; those that are not UTF-8 become U+FFFD. */
void config_write_json(const struct config *c, struct buf *out);

/* A running configuration, for an admin's eyes and from afar: nothing in it is
 * a secret, only that there is one.
 *
 * Every setting, in the order of the reference, as a list. What needs a restart
 * has the value that it was built from, and `after_restart` where another one
 * waits. Lists of objects are only counted here. */
void config_write_settings(struct json_out *o, const struct config *built_from,
                           const struct config *now);

/* What those lists hold, shortened, as members of an object: agents, bindings,
 * processes, models. */
void config_write_lists(struct json_out *o, const struct config *c);

/* The names of the settings that differ, as a list; needs_restart: those of
 * them alone that only a restart takes over. */
void config_write_changed(struct json_out *o, const struct config *now,
                          const struct config *then, bool needs_restart);

/* One row of the table in words, for whoever shows it in another form. */
struct config_setting {
    const char *path;   /* "http.maxBodyBytes" */
    char allowed[192];  /* "a whole number from 1 to 5 (milliseconds)" */
    const char *preset; /* the default, as JSON */
    const char *what;   /* a sentence */
    const char *flag;   /* its own flag, "--listen"; NULL without one */
    char variable[64];  /* "SIGNALBOX_HTTP__MAX_BODY_BYTES" */
    bool needs_restart;
};

/* The i-th row; false past the end. */
bool config_setting(size_t i, struct config_setting *out);

/* The value of a variable in such a list; NULL when it is not there. For what
 * is no setting (NO_COLOR, LANG), so that nobody else need know environ. */
const char *config_env(char *const *env, const char *name);

/* Take the variables out of the memory that the kernel shows as
 * /proc/PID/environ. env has them from then on in memory of its own, for a
 * reload; what getenv finds are the few that libraries ask for. Once in a
 * process; without memory nothing changes. */
void config_hide_env(char **env);

#endif
