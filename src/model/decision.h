#ifndef MODEL_DECISION_H
#define MODEL_DECISION_H

/* decision: the answer to the first question of the walk, who, with all that
 * was looked at on the way to it, and later with what came of it. Enough is
 * kept to decide again, with the same answer to the last bit or, by another
 * configuration, with another. Strings belong to whoever made the struct. */

#include "base/id.h"
#include "base/str.h"
#include "model/level.h"

/* In the order they are asked. The numbers are kept in the store. */
enum layer {
    LAYER_EXPLICIT = 1,
    LAYER_PREFIX = 2,
    LAYER_STICKY = 3,
    LAYER_BINDING = 4,
    LAYER_INTENT = 5,
    LAYER_SEMANTIC = 6,
    LAYER_DEFAULT = 7,
    LAYER_NONE = 8, /* no layer chose an agent: the message was refused, and
                     * this decision says why */
};

enum { N_LAYERS = 9 };

/* Hash of a message's text without its case, accents, white space and marks of
 * sentences: two texts that it makes equal are the same text to a person. Never
 * zero. */
uint64_t decision_text_hash(struct str text);

struct str layer_name(enum layer l);  /* "semantic" */
enum layer layer_of(struct str name); /* zero: none of that name */

/* The router decided, by what the message says. A person who names an agent, a
 * rule or a conversation that has its agent leaves nothing to decide. */
bool layer_is_routed(enum layer l);

/* How far the semantic layer trusts its best candidate. The numbers are kept
 * in the store. */
enum band {
    BAND_NOT_ASKED = 0,    /* the semantic layer was not reached */
    BAND_CONFIDENT = 1,    /* at or above the candidate's floor */
    BAND_UNSURE = 2,       /* between the two cutoffs: routing.unsure decides */
    BAND_OUT_OF_SCOPE = 3, /* below both: no agent of this fleet is meant */
};

struct str band_name(enum band b); /* "unsure"; empty: it was not asked */

/* The policy for an unsure choice: routing.unsure. */
enum unsure_policy {
    UNSURE_AUTO,    /* `default` where a default agent is set, else `best` */
    UNSURE_DEFAULT, /* the default agent gets the message */
    UNSURE_BEST,    /* the best trusted candidate gets it, marked as unsure */
    UNSURE_ASK, /* it is refused with the best three, for the user to choose */
    UNSURE_REFUSE, /* it is refused */
};

struct str unsure_policy_name(enum unsure_policy p); /* "best" */

/* Which of a model's two tiers the candidates were compared by. The numbers are
 * kept in the store. */
enum tier {
    TIER_NONE = 0,  /* no vector was compared, or the model has no tiers */
    TIER_TABLE = 1, /* by a quick vector */
    TIER_TRANSFORMER = 2, /* by a full vector, in which both count */
    N_TIERS,
};

struct str tier_name(enum tier t); /* "table"; empty: TIER_NONE */
enum tier tier_of(struct str name);

enum {
    DECISION_CANDIDATES_MAX = 32, /* that are kept */
    DECISION_TEXT_MAX = 1024,     /* bytes of the message that are kept */
    DECISION_REASON_MAX = 400,
};

/* What speaks for an agent, each 0..1 where nothing else is said. */
struct signals {
    float semantic; /* what counts: made of the next four */
    float cosine;   /* how near the text is to what the agent says of itself;
                     * below zero: one of them has no vector */
    float text;     /* how much of its words it has */
    float learned;  /* how near it is to what the agent was right for before,
                     * less what it was wrong for: any number */
    float discount; /* what is taken off: it is somebody else's, and like
                     * everything, or one of many */
    float performance, keyword, recency;
};

struct candidate {
    struct str agent;
    struct str skill;   /* id of the nearest one; empty: the agent has none */
    struct str keyword; /* of its routing keywords, the one that occurs */
    struct signals signals;
    struct card_level level;
    float floor;     /* `semantic` from which on it is confident; computed */
    float low;       /* below this it is out of scope; computed */
    float lead;      /* over the best of the others, by `semantic`; computed */
    bool is_trusted; /* the requester's own, their org's, the platform's, or
                      * rated well in their org */
    bool is_taught;  /* a correction says that this very text is for it */
    bool is_unpaid;  /* it is an outsider's and costs more than the sender has
                      * agreed to: it is not chosen */
    int64_t price_micros; /* -1: not known, in older records */
    bool is_half;         /* its keyword counts half: it is an outsider's, whom
                           * nobody of the requester's org has rated well */
    double score;
};

struct signal_weights {
    double semantic, performance, keyword, recency;
};

/* What the classifier said, or why it said nothing. */
struct intent_answer {
    bool is_asked;
    bool is_good; /* it named an agent; else `why` says why it did not count */
    struct str agent;
    double confidence;
    struct str reasoning;
    struct str why;
    int64_t took_ms;
};

/* What else of the settings had a say. */
struct decision_rules {
    uint32_t layers_off; /* a bit for each layer, 1 << LAYER_… */
    struct str default_agent;
    bool is_auto;       /* routing.threshold is "auto": floors decide */
    double threshold;   /* of semantic scores, where it is a number */
    bool is_centred;    /* `semantic` counts from the card's median */
    double alpha;       /* of floors: about the out-of-scope texts that pass */
    int64_t n;          /* candidates that the floors were made for */
    bool is_small_talk; /* the message is, so that floors are higher */
    enum unsure_policy unsure;
    bool is_seed;    /* routing.preset is "seed" */
    bool trusts_all; /* routing.trust is "all" */
    double text_blend, close_margin, explore;
    double second_margin; /* embed.secondMargin: units of the card above the
                           * cutoff, from which on the table decides alone */
    double chance;        /* that exploring was decided by */
    bool has_intent, intent_is_ambiguous, intent_is_over_bindings;
    double intent_threshold;
};

/* What came of it. The numbers are kept in the store. */
enum verdict {
    VERDICT_OPEN = 0, /* not known yet */
    VERDICT_POSITIVE = 1,
    VERDICT_NEGATIVE = 2,
    VERDICT_NEUTRAL = 3,
};

struct str verdict_name(enum verdict v); /* "positive" */

/* What hindsight says of another agent getting it. */
enum hindsight {
    HINDSIGHT_BETTER,  /* somebody said that this agent was right */
    HINDSIGHT_WORSE,   /* what it was given to did well */
    HINDSIGHT_AS_BAD,  /* somebody said that a third was right */
    HINDSIGHT_WAS_BAD, /* what it was given to did not do well */
    HINDSIGHT_UNKNOWN,
    N_HINDSIGHTS,
};

const char *hindsight_word(enum hindsight h); /* "better" */

struct decision {
    int64_t seq;  /* given by the store */
    struct id id; /* dec_… */
    int64_t at_ms;
    struct id task_id;
    int64_t turn; /* of the task */
    struct str conversation_id, requester, org;
    bool is_by_agent; /* the requester is one, and does not get it back */

    /* What was asked. */
    struct str text;     /* its first DECISION_TEXT_MAX bytes */
    uint64_t text_hash;  /* decision_text_hash of all of it, without its
                          * prefix; zero: not known, in older records */
    struct str executor; /* that the message named; empty: none */
    struct str source;   /* JSON, as it stands; empty: none */
    struct str stuck_to; /* the agent that the conversation had; empty: none */

    /* The answer. */
    enum layer layer;
    struct str agent, reason;
    struct str skill; /* that was given, else the chosen candidate's */
    double score;     /* semantic: of the agent; intent: its confidence */
    double margin;    /* to the second */
    double threshold; /* that counted: of auto, the chosen one's floor */
    bool is_explored; /* a runner-up was given it, to see */
    enum band band;
    bool is_by_example; /* without corrections another agent, or none, would
                         * have been chosen */
    bool is_unsure;     /* delivered all the same: routing.unsure is "best" */
    bool is_by_price;   /* an agent that fits better costs more than the sender
                         * has agreed to */
    int64_t decide_us;  /* how long choosing took, waiting not counted; -1: not
                         * known */

    /* What it was made from. */
    struct signal_weights weights;
    struct decision_rules rules;
    const struct candidate *candidates; /* the best, best first */
    size_t n_candidates;
    int64_t n_considered; /* of how many those are the best; whoever cannot be
                           * sent anything is counted only further down, where
                           * nobody asked */
    struct intent_answer intent;
    struct str vector; /* of the text, packed; empty: there was none */
    struct str model, model_hash; /* that made it */
    enum tier tier;               /* that decided */
    struct str tier_note; /* why the transformer was not heard, where the table
                           * was not sure; else empty */
    struct str config_version; /* a hash of what choosing is told */
    int64_t registry_version, learn_version; /* -1: not for who reads it */
    int64_t type;                            /* of query; zero: none */

    /* What the message costs itself, and what it and all that is delegated
     * because of it may cost together; below zero: not known, of an older
     * record and of a message that no agent got. */
    int64_t price_micros, ceiling_micros;

    /* Whether it might go then, an enum gate_answer; zero: nobody asked. */
    int gate;
    struct str gate_rule;   /* empty: none had a say */
    struct str gate_reason; /* empty: nothing stood in its way */

    /* What came of it. */
    enum verdict verdict;
    int64_t verdict_ms;       /* when that was said; zero: it was not */
    struct str overridden_to; /* the agent that was right; empty: it was not
                               * overridden */
    struct str overridden_by; /* who said so */
    int64_t overridden_ms;
    int64_t answer_chars; /* -1: not known */
    int64_t latency_ms;   /* from acceptance to the end; -1: not known */
    struct str error_code;
    bool is_followed; /* there was a follow-up in time */
};

/* `to` is empty where nobody would get it. */
enum hindsight hindsight_of(const struct decision *was, struct str to);

/* What would become of a decision by some thresholds of semantic scores: by
 * those above that of the step before, up to this one. */
struct decision_step {
    double upto;      /* infinite: by all that are left */
    bool is_known;    /* else it hangs on what nobody looked at then */
    struct str agent; /* empty: nobody would get it */
    enum layer layer;
};

enum { DECISION_STEPS_MAX = DECISION_CANDIDATES_MAX + 1 };

/* The outcome of a decision by other settings. */
struct decision_other {
    bool is_known; /* else it hangs on what the record does not have */
    enum band band;
    struct str agent; /* empty: no agent would get it */
};

/* The four that a score is made of. */
enum signal {
    SIGNAL_SEMANTIC,
    SIGNAL_PERFORMANCE,
    SIGNAL_KEYWORD,
    SIGNAL_RECENCY,
    N_SIGNALS,
};

struct str signal_name(enum signal s); /* "semantic" */

/* The values of alpha that decisions made by "auto" are tried with. */
enum { ALPHAS = 12 };
extern const double decision_alphas[ALPHAS];

#endif
