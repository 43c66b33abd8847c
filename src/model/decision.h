#ifndef MODEL_DECISION_H
#define MODEL_DECISION_H

/* decision: the result of choosing an agent, with all its inputs and later its
 * outcome. It keeps enough to decide again, with the same result to the last
 * bit or, with another configuration, a different one. The creator of the
 * struct owns the strings. */

#include "base/id.h"
#include "base/str.h"
#include "model/level.h"

/* The layers: name in code, number, name, meaning. The store keeps the numbers,
 * so a new layer gets the next one, and its row stands before NONE; the order
 * in which layers are asked is that of choose/layers/choose.c. NONE: no layer
 * chose an agent, the message was rejected, and the decision says why. */
#define LAYERS(ROW)                                             \
    ROW(EXPLICIT, 1, "explicit", "the message names the agent") \
    LAYERS_AFTER_EXPLICIT(ROW)                                  \
    ROW(NONE, 8, "none", "the message was refused")
#define LAYERS_AFTER_EXPLICIT(ROW)                                    \
    ROW(PREFIX, 2, "prefix", "the text begins with the agent's name") \
    ROW(STICKY, 3, "sticky", "the conversation is with this agent")   \
    ROW(BINDING, 4, "binding", "the agent is bound to this channel")  \
    ROW(INTENT, 5, "intent", "a language model chose the agent")      \
    ROW(SEMANTIC, 6, "semantic", "the agent has the best score")      \
    ROW(DEFAULT, 7, "default", "no other agent was chosen")

#define LAYER_NUMBER(id, number, name, words) LAYER_##id = (number),
#define LAYER_COUNT(id, number, name, words)  +1
#define LAYER_TEXT(id, number, name, words)   name,

enum layer { LAYERS(LAYER_NUMBER) };
enum { N_LAYERS = 1 LAYERS(LAYER_COUNT) }; /* 0 is no layer */

/* A hash of a message's text without case, accents, white space and
 * punctuation: texts with equal hashes are the same text to a person. Never
 * zero. */
uint64_t decision_text_hash(struct str text);

struct str layer_name(enum layer l);  /* "semantic" */
enum layer layer_of(struct str name); /* zero: unknown name */

/* Whether the router decided from the content of the message. A named agent, a
 * rule or a conversation with an agent leaves nothing to decide. */
bool layer_is_routed(enum layer l);

/* How far the semantic layer trusts its best candidate. The store keeps the
 * numbers. */
enum band {
    BAND_NOT_ASKED = 0,    /* the semantic layer was not reached */
    BAND_CONFIDENT = 1,    /* at or above the candidate's floor */
    BAND_UNSURE = 2,       /* between the two cutoffs: routing.unsure decides */
    BAND_OUT_OF_SCOPE = 3, /* below both: no agent of this fleet is meant */
};

struct str band_name(enum band b); /* "unsure"; empty: not asked */

/* The policy for an unsure choice: routing.unsure. */
enum unsure_policy {
    UNSURE_AUTO, /* `default` if there is a default agent, otherwise `best` */
    UNSURE_DEFAULT, /* the default agent gets the message */
    UNSURE_BEST,    /* the best trusted candidate gets it, marked as unsure */
    UNSURE_ASK,     /* rejected with the best three, for the user to choose */
    UNSURE_REFUSE,  /* rejected */
};

struct str unsure_policy_name(enum unsure_policy p); /* "best" */

/* The tier of the model by which the candidates were compared. The store keeps
 * the numbers. */
enum tier {
    TIER_NONE = 0,  /* no vectors were compared, or the model has no tiers */
    TIER_TABLE = 1, /* by a quick vector */
    TIER_TRANSFORMER = 2, /* by a full vector, which contains both */
    N_TIERS,
};

struct str tier_name(enum tier t); /* "table"; empty: TIER_NONE */
enum tier tier_of(struct str name);

enum {
    DECISION_CANDIDATES_MAX = 32, /* candidates that are stored */
    DECISION_TEXT_MAX = 1024,     /* bytes of the message that are stored */
    DECISION_REASON_MAX = 400,
};

/* The signals for an agent, each 0..1 unless noted. */
struct signals {
    float semantic; /* the effective one, computed from the next four */
    float cosine;   /* of the text and the agent's profile; below zero: one
                     * of them has no vector */
    float text;     /* share of the text's words that the profile has */
    float learned;  /* similarity to messages for which the agent was right,
                     * minus those for which it was wrong: any number */
    float discount; /* deducted from an outsider that resembles everything,
                     * or is one of many */
    float performance, keyword, recency;
};

struct candidate {
    struct str agent;
    struct str skill;   /* id of the nearest skill; empty: the agent has none */
    struct str keyword; /* the routing keyword that occurs in the text */
    struct signals signals;
    struct card_level level;
    float floor; /* `semantic` from which it is confident; computed */
    float low;   /* below this it is out of scope; computed */
    float lead;  /* over the best other candidate, by `semantic`; computed */
    bool is_trusted; /* owned by the requester, their org or the platform, or
                      * rated well in their org */
    bool is_taught;  /* a correction assigns exactly this text to it */
    bool is_unpaid;  /* an outsider that costs more than the sender has
                      * agreed to: not chosen */
    int64_t price_micros; /* -1: unknown, in older records */
    bool is_half;         /* its keyword counts half: an outsider that the
                           * requester's org has not rated well */
    double score;
};

struct signal_weights {
    double semantic, performance, keyword, recency;
};

/* The answer of the intent classifier, or why there is none. */
struct intent_answer {
    bool is_asked;
    bool is_good; /* it named an agent; otherwise `why` has the reason */
    struct str agent;
    double confidence;
    struct str reasoning;
    struct str why;
    int64_t took_ms;
};

/* Further settings that took part. */
struct decision_rules {
    uint32_t layers_off; /* a bit for each layer, 1 << LAYER_… */
    struct str default_agent;
    bool is_auto;       /* routing.threshold is "auto": floors decide */
    double threshold;   /* for semantic scores, if it is a number */
    bool is_centred;    /* `semantic` counts from the card's median */
    double alpha;       /* of the floors: roughly the share of out-of-scope
                         * texts that pass */
    int64_t n;          /* number of candidates that the floors were made for */
    bool is_small_talk; /* the message is small talk, so floors are higher */
    enum unsure_policy unsure;
    bool is_seed;    /* routing.preset is "seed" */
    bool trusts_all; /* routing.trust is "all" */
    double text_blend, close_margin, explore;
    double second_margin; /* embed.secondMargin, in units of the card: this
                           * far above the cutoff the table decides alone */
    double chance;        /* the random number that decided about exploring */
    bool has_intent, intent_is_ambiguous, intent_is_over_bindings;
    double intent_threshold;
};

/* The outcome. The store keeps the numbers. */
enum verdict {
    VERDICT_OPEN = 0, /* not known yet */
    VERDICT_POSITIVE = 1,
    VERDICT_NEGATIVE = 2,
    VERDICT_NEUTRAL = 3,
};

struct str verdict_name(enum verdict v); /* "positive" */

/* Hindsight about giving the message to another agent. */
enum hindsight {
    HINDSIGHT_BETTER,  /* a person said that this agent was right */
    HINDSIGHT_WORSE,   /* the chosen agent did well */
    HINDSIGHT_AS_BAD,  /* a person said that a third agent was right */
    HINDSIGHT_WAS_BAD, /* the chosen agent did not do well */
    HINDSIGHT_UNKNOWN,
    N_HINDSIGHTS,
};

const char *hindsight_word(enum hindsight h); /* "better" */

struct decision {
    int64_t seq;  /* assigned by the store */
    struct id id; /* dec_… */
    int64_t at_ms;
    struct id task_id;
    int64_t turn; /* of the task */
    struct str conversation_id, requester, org;
    bool is_by_agent; /* the requester is an agent, which does not get it
                       * back */

    /* The request. */
    struct str text;     /* its first DECISION_TEXT_MAX bytes */
    uint64_t text_hash;  /* decision_text_hash of the whole text without its
                          * prefix; zero: unknown, in older records */
    struct str executor; /* named by the message; may be empty */
    struct str source;   /* JSON, unchanged; may be empty */
    struct str stuck_to; /* the agent of the conversation; may be empty */

    /* The result. */
    enum layer layer;
    struct str agent, reason;
    struct str skill; /* the given one, otherwise the chosen candidate's */
    double score;     /* semantic: of the agent; intent: the confidence */
    double margin;    /* to the second */
    double threshold; /* the effective one: with "auto", the chosen one's
                       * floor */
    bool is_explored; /* a runner-up got it, to explore */
    enum band band;
    bool is_by_example; /* without corrections another agent, or none, would
                         * have been chosen */
    bool is_unsure;     /* delivered anyway: routing.unsure is "best" */
    bool is_by_price;   /* a better agent costs more than the sender has
                         * agreed to */
    int64_t decide_us;  /* duration of choosing without waits; -1: unknown */

    /* The inputs. */
    struct signal_weights weights;
    struct decision_rules rules;
    const struct candidate *candidates; /* the best, best first */
    size_t n_candidates;
    int64_t n_considered; /* how many candidates there were; agents that
                           * cannot be sent anything are counted only below
                           * the rank that was checked */
    struct intent_answer intent;
    struct str vector;            /* of the text, packed; may be empty */
    struct str model, model_hash; /* that made it */
    enum tier tier;               /* the deciding one */
    struct str tier_note;      /* why the transformer was not used although the
                                * table was unsure; otherwise empty */
    struct str config_version; /* hash of the settings for choosing */
    int64_t registry_version, learn_version; /* -1: not visible to the reader */
    int64_t type;                            /* of the query; zero: none */

    /* The cost of the message itself, and the limit for it and all its
     * delegations together. Below zero: unknown, in an older record or without
     * an agent. */
    int64_t price_micros, ceiling_micros;

    /* The gate's answer then, an enum gate_answer; zero: it was not asked. */
    int gate;
    struct str gate_rule;   /* empty: no rule applied */
    struct str gate_reason; /* empty: nothing held it */

    /* The outcome. */
    enum verdict verdict;
    int64_t verdict_ms;       /* the time of the verdict; zero: none */
    struct str overridden_to; /* the right agent; empty: not overridden */
    struct str overridden_by; /* the person who overrode it */
    int64_t overridden_ms;
    int64_t answer_chars; /* -1: unknown */
    int64_t latency_ms;   /* from acceptance to the end; -1: unknown */
    struct str error_code;
    bool is_followed; /* there was a follow-up in time */
};

/* `to` is empty if no agent would get it. */
enum hindsight hindsight_of(const struct decision *was, struct str to);

/* The result of a decision for a range of thresholds of semantic scores: above
 * the threshold of the step before, up to this one. */
struct decision_step {
    double upto;      /* infinite: all remaining thresholds */
    bool is_known;    /* otherwise it depends on facts that were not checked
                       * then */
    struct str agent; /* empty: no agent would get it */
    enum layer layer;
};

enum { DECISION_STEPS_MAX = DECISION_CANDIDATES_MAX + 1 };

/* The result of a decision with other settings. */
struct decision_other {
    bool is_known; /* otherwise it depends on facts that are not in the
                    * record */
    enum band band;
    struct str agent; /* empty: no agent would get it */
};

/* The four parts of a score. */
enum signal {
    SIGNAL_SEMANTIC,
    SIGNAL_PERFORMANCE,
    SIGNAL_KEYWORD,
    SIGNAL_RECENCY,
    N_SIGNALS,
};

struct str signal_name(enum signal s); /* "semantic" */

/* The values of alpha with which decisions made by "auto" are evaluated. */
enum { ALPHAS = 12 };
extern const double decision_alphas[ALPHAS];

#endif
