/* A message's decision, from its inputs and its choice. */
#include "choose/layers/internal.h"

/* The sender reads the record, so it has the default agent only if the sender
 * may know of it. Deciding again needs it only if it was chosen. */

static struct decision_rules decision_rules_of(const struct choose_view *v,
                                               const struct msg *m)
{
    const struct choose_settings *s = v->settings;
    bool is_seen = v->agents && choose_meant(v, s->default_agent);
    struct decision_rules r = {
        .default_agent = is_seen || m->choice.layer == LAYER_DEFAULT
                             ? s->default_agent
                             : STR(""),
        .is_auto = s->is_auto,
        .threshold = s->threshold,
        .is_centred = s->is_centred,
        .alpha = s->alpha,
        .n = m->known.n_seen,
        .is_small_talk = m->known.is_small_talk,
        .unsure = s->unsure,
        .is_seed = s->is_seed,
        .trusts_all = s->trusts_all,
        .text_blend = s->text_blend,
        .close_margin = s->close_margin,
        .explore = s->explore,
        .second_margin = m->known.tier ? s->second_margin : 0,
        .chance = m->known.chance,
        .has_intent = s->intent.is_on,
        .intent_is_ambiguous = s->intent.when == INTENT_AMBIGUOUS,
        .intent_is_over_bindings = s->intent.overrides == INTENT_OVER_BINDINGS,
        .intent_threshold = s->intent.threshold,
    };

    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++)
        r.layers_off |= (uint32_t)s->is_off[i] << i;
    return r;
}

void choose_decision(const struct choose_view *v, const struct msg *m,
                     struct decision *out)
{
    const struct choose_settings *s = v->settings;
    struct str source = m->call.source;

    *out = (struct decision){
        .id = m->choice.id,
        .at_ms = m->in.at_ms,
        .task_id = m->task.id,
        .turn = 1,
        .conversation_id = m->task.conversation_id,
        .requester = caller_name(&m->in.caller),
        .org = str_of(m->in.caller.org),
        .is_by_agent = m->in.caller.role == ROLE_AGENT,
        .text = str_head(m->call.text, DECISION_TEXT_MAX),
        .text_hash = decision_text_hash(m->choice.text.n ? m->choice.text
                                                         : m->call.text),
        .executor = m->call.executor,
        .source = str_eq(source, STR("{}")) ? STR("") : source,
        .stuck_to = m->known.stuck_to,
        .layer = m->choice.layer,
        .agent = m->choice.agent,
        .skill = m->call.skill.n ? m->call.skill : m->choice.skill,
        .reason = m->choice.reason,
        .score = m->choice.score,
        .margin = m->choice.margin,
        .threshold = m->choice.layer == LAYER_INTENT ? s->intent.threshold
                                                     : m->choice.threshold,
        .is_explored = m->choice.is_explored,
        .band = m->choice.band,
        .is_by_example = m->choice.is_by_example,
        .is_unsure = m->choice.is_unsure,
        .is_by_price = m->choice.unpaid != NULL,
        .decide_us = m->known.decide_us,
        .weights = s->weights,
        .rules = decision_rules_of(v, m),
        .candidates = m->choice.candidates,
        .n_candidates = m->choice.n_candidates,
        .n_considered = m->choice.n_considered,
        .intent = m->known.intent,
        .vector = m->known.vector,
        .model = m->known.model,
        .model_hash = m->known.model_hash,
        .tier = m->known.tier,
        .tier_note = str_of(m->known.no_full.text),
        .registry_version = m->known.registry_version,
        .learn_version = m->known.learn_version,
        .type = m->known.type,
        .price_micros =
            m->choice.layer == LAYER_NONE ? -1 : m->ledger.price_micros,
        .ceiling_micros =
            m->choice.layer == LAYER_NONE ? -1 : m->ledger.ceiling_micros,
        .gate = (int)m->gate.gate_result.answer,
        .gate_rule = m->gate.gate_result.rule,
        .gate_reason = m->gate.gate_result.cause == PASS_FREE
                           ? STR("")
                           : str_of(m->gate.gate_result.reason),
        .answer_chars = -1,
        .latency_ms = -1,
    };
}
