/* The metrics for Prometheus: a row each, and the figures of the modules that
 * the rows point into. Names and labels are public (docs/protocol.md). */
#include "api/hub/hub.h"
#include "api/internal.h"
#include "base/mem.h"
#include "gate/notifiers.h"

#include <stdlib.h>

/* Where a row's values come from. Those of FROM_FIGURES are always there. */
enum {
    FROM_FIGURES,
    FROM_BUILD,
    FROM_CERTIFICATES,
    FROM_AGENTS,
    FROM_AGENT_STATES,
    FROM_TRACES,
    FROM_AUDIT,
    FROM_CHANNELS,
    FROM_LEARNING,
    FROM_HUB,
    FROM_FETCH,
    FROM_EMBEDS,
    N_SOURCES
};

/* All figures of one scrape. */
struct figures_taken {
    int64_t one; /* constant 1 */
    struct net_stats net;
    struct store_stats store;
    struct walk_stats walk;
    struct feed_stats feed;
    struct access_stats access;
    struct registry_stats registry;
    struct router_stats routing;
    struct delegation_stats delegation;
    struct traces_stats traces;
    struct gatekeeper_stats gate;
    struct learning_stats learning;
    struct hub_stats hub;
    struct fetch_stats fetch;
    int64_t limited[N_THROTTLES], open[N_REQUEST_KINDS];
    int64_t shut_out, reloads, reloads_failed;
    int64_t agents[VISIBILITY_PUBLIC]; /* the public ones first */
    int64_t holds_ended;
    int64_t lost, audit_ended_s;

    struct metric_source sources[N_SOURCES];
    struct metric_series self, build;
    struct agent_queue_row rows[DELIVER_SHOWN_MAX + 1]; /* with all others */
    struct metric_series agent[DELIVER_SHOWN_MAX + 1], state[DELIVER_SHOWN_MAX];
    struct channel_stats channels[2 * CHANNELS_MAX];
    struct metric_series channel[2 * CHANNELS_MAX];
    struct embed_figures {
        struct embed_stats stats;
        struct embed_stamp stamp;
    } * embeds;
    struct metric_series *embed;
};

/* Words of labels. An empty one has no sample. */

static struct str layer_word(int i)
{
    return layer_name((enum layer)i);
}

static struct str tier_word(int i)
{
    return tier_name((enum tier)i);
}

static struct str visibility_word(int i)
{
    return visibility_name((enum visibility)(VISIBILITY_PUBLIC - i));
}

static struct str review_word(int i)
{
    return review_name((enum review_state)i);
}

static struct str gate_answer_word(int i)
{
    return gate_answer_name((enum gate_answer)i);
}

static struct str unfinished_word(int i)
{
    return task_is_over((enum task_status)i)
               ? STR("")
               : task_status_name((enum task_status)i);
}

static struct str finished_word(int i)
{
    return task_is_over((enum task_status)i)
               ? task_status_name((enum task_status)i)
               : STR("");
}

#define AT(field) METRIC_AT(struct figures_taken, field)
#define BY(name, field, ...) \
    METRIC_BY(name, struct figures_taken, field, __VA_ARGS__)
#define BY_WORD(name, field, function) \
    AT(field), .label = (name), .word = (function)
#define AGENT(field) \
    METRIC_AT(struct agent_queue_stats, field), .source = FROM_AGENTS
#define AGENT_BY(name, field, ...)                                 \
    METRIC_BY(name, struct agent_queue_stats, field, __VA_ARGS__), \
        .source = FROM_AGENTS
#define CHANNEL(field) \
    METRIC_AT(struct channel_stats, field), .source = FROM_CHANNELS
#define EMBED(field) METRIC_AT(struct embed_stats, field), .source = FROM_EMBEDS

const struct metric api_metrics[] = {
    {"signalbox_build_info", "Constant 1, with the version as a label.",
     AT(one), .source = FROM_BUILD},

    {"signalbox_http_connections", "Open connections.", AT(net.connections)},
    {"signalbox_http_connections_total", "Connections accepted.",
     AT(net.connections_total)},
    {"signalbox_http_connections_refused_total",
     "Connections rejected at a limit.", AT(net.refused_total)},
    {"signalbox_http_connections_evicted_total",
     "Silent or idle connections evicted for others.", AT(net.evicted_total)},
    {"signalbox_http_turned_away_total", "Connections rejected, by limit.",
     BY("limit", net.refused_by_total, [NET_NO_CONNECTION] = "connections",
        [NET_NO_ADDRESS] = "address", [NET_NO_BUFFERS] = "buffers")},
    {"signalbox_http_requests_total", "Complete requests.",
     AT(net.requests_total)},
    {"signalbox_http_replies_total", "Replies, by class of status.",
     BY("status", net.replies_total, NULL, "1xx", "2xx", "3xx", "4xx", "5xx")},
    {"signalbox_http_bad_requests_total",
     "Requests that broke the protocol or a limit.",
     AT(net.bad_requests_total)},
    {"signalbox_http_overloaded_total",
     "Requests rejected because all buffers were full.",
     AT(net.overloaded_total)},
    {"signalbox_http_timeouts_total",
     "Connections cut because a phase took too long.", AT(net.timeouts_total)},
    {"signalbox_http_idle_closed_total",
     "Connections closed because no request came.", AT(net.idle_closed_total)},
    {"signalbox_http_received_bytes_total", "Bytes read from clients.",
     AT(net.bytes_in_total)},
    {"signalbox_http_sent_bytes_total", "Bytes written to clients.",
     AT(net.bytes_out_total)},
    {"signalbox_tls_handshakes_total", "Completed TLS handshakes.",
     AT(net.tls_handshakes_total)},
    {"signalbox_tls_handshakes_failed_total", "Failed TLS handshakes.",
     AT(net.tls_failed_total)},
    {"signalbox_tls_handshakes_cut_total",
     "TLS handshakes cut as the oldest of too many.", AT(net.tls_cut_total)},
    {"signalbox_tls_certificate_expires_timestamp_seconds",
     "When the first of the certificates in use expires.",
     AT(net.tls_cert_ends_s), .source = FROM_CERTIFICATES},
    {"signalbox_http_unsent_bytes", "Bytes that wait for clients to read them.",
     AT(net.unsent_bytes)},
    {"signalbox_http_buffered_bytes",
     "Memory held by the buffers of all connections.", AT(net.buffered_bytes)},
    {"signalbox_rate_limited_total", "Requests rejected by a rate limit.",
     BY("limit",
        limited, [THROTTLE_USER] = "user", [THROTTLE_ADDRESS] = "address",
        [THROTTLE_FAILURES] = "failures", [THROTTLE_HELD] = "held")},

    {"signalbox_ws_connections", "Open WebSockets, in and out.",
     AT(net.websockets)},
    {"signalbox_ws_connections_total", "WebSockets opened.",
     AT(net.websockets_total)},
    {"signalbox_ws_received_messages_total", "Messages received.",
     AT(net.ws_messages_in_total)},
    {"signalbox_ws_sent_messages_total", "Messages sent.",
     AT(net.ws_messages_out_total)},
    {"signalbox_ws_pings_total", "Pings sent to silent peers.",
     AT(net.ws_pings_total)},
    {"signalbox_ws_ended_total", "WebSockets closed, by cause.",
     BY("cause",
        net.ws_ends_total, [NET_WS_PEER] = "peer", [NET_WS_OWNER] = "server",
        [NET_WS_LOST] = "lost", [NET_WS_BAD] = "protocol",
        [NET_WS_LIMIT] = "limit", [NET_WS_SILENT] = "silent",
        [NET_WS_SLOW] = "slow", [NET_WS_OVERLOADED] = "overloaded")},
    {"signalbox_ws_dialling", "Outgoing WebSockets being opened.",
     AT(net.dialling)},
    {"signalbox_ws_dials_total", "Attempts to open an outgoing WebSocket.",
     AT(net.dials_total)},
    {"signalbox_ws_dials_failed_total",
     "Failed attempts to open an outgoing WebSocket.",
     AT(net.dials_failed_total)},

    {"signalbox_calls_open", "Requests that wait for something, and streams.",
     BY("kind",
        open, [REQUEST_ASKING] = "asking", [REQUEST_WAITING] = "waiting",
        [REQUEST_EVENTS] = "events", [REQUEST_FEED] = "feed")},
    {"signalbox_calls_shut_out_total",
     "Streams and waiting requests ended because their token was revoked or "
     "expired, or its role changed.",
     AT(shut_out)},

    {"signalbox_store_txs_total", "Changes, by result.",
     BY("result", store.txs_total, [TX_COMMITTED] = "committed",
        [TX_GUARD_FAILED] = "guard_failed", [TX_REFUSED] = "refused",
        [TX_FATAL] = "fatal")},
    {"signalbox_store_batches_total",
     "Transactions, each with a batch of changes.", AT(store.batches_total)},
    {"signalbox_store_rows_written_total", "Rows written.",
     AT(store.rows_written_total)},
    {"signalbox_store_queries_total", "Pages of rows read.",
     AT(store.queries_total)},
    {"signalbox_store_waiting", "Changes that are not on the disk yet.",
     AT(store.waiting)},
    {"signalbox_store_batch_seconds_total",
     "Time spent in transactions, including their sync.",
     AT(store.batch_us_total), .per = 1e6},
    {"signalbox_store_sync_seconds_total", "Time spent in commits.",
     AT(store.sync_us_total), .per = 1e6},
    {"signalbox_store_log_bytes",
     "Size of the log that is not in the database file yet.",
     AT(store.log_bytes)},
    {"signalbox_store_data_bytes", "Size of the database file.",
     AT(store.data_bytes)},
    {"signalbox_store_full", "1 while the disk has no space for changes.",
     AT(store.is_full)},

    {"signalbox_tasks", "Unfinished tasks, by status.",
     BY_WORD("status", walk.tasks.by_status, unfinished_word)},
    {"signalbox_tasks_accepted_total",
     "Tasks, and further turns of tasks, accepted.",
     AT(walk.tasks.accepted_total)},
    {"signalbox_tasks_repeated_total",
     "Messages answered by their idempotency key.",
     AT(walk.tasks.repeated_total)},
    {"signalbox_tasks_over_total", "Finished tasks, by status.",
     BY_WORD("status", walk.tasks.over_total, finished_word)},
    {"signalbox_tasks_late_total", "Results after the end, ignored.",
     AT(walk.tasks.late_total)},
    {"signalbox_tasks_unfinished_bytes", "Bytes of texts of unfinished tasks.",
     AT(walk.tasks.unfinished_bytes)},
    {"signalbox_tasks_listeners", "Listeners of tasks.",
     AT(walk.tasks.listeners)},
    {"signalbox_tasks_ring_bytes",
     "Bytes of task events kept for clients that reconnect.",
     AT(walk.tasks.ring_bytes)},
    {"signalbox_results_waiting",
     "Results, and other ends of tasks, that wait for disk space.",
     AT(walk.results_waiting)},

    {"signalbox_deliveries", "Tasks on their way to an agent, or with one.",
     AT(walk.deliver.on_the_way)},
    {"signalbox_deliveries_waiting", "Tasks that wait for their agent.",
     AT(walk.deliver.waiting)},
    {"signalbox_deliveries_started_total", "Tasks delivered to an agent.",
     AT(walk.deliver.started_total)},
    {"signalbox_deliveries_results_total", "Results of agents.",
     AT(walk.deliver.results_total)},
    {"signalbox_deliveries_cancelled_total", "Deliveries stopped on the way.",
     AT(walk.deliver.cancelled_total)},
    {"signalbox_deliveries_retried_total", "Failed attempts that were retried.",
     AT(walk.deliver.retries_total)},
    {"signalbox_deliveries_failed_total",
     "Tasks that failed because they could not be delivered.",
     AT(walk.deliver.failed_total)},
    {"signalbox_breakers_open",
     "Agents paused by their breaker after repeated failures.",
     AT(walk.deliver.breakers_open)},
    {"signalbox_gathered_bytes", "Bytes of chunks kept until their result.",
     AT(walk.deliver.gathered_bytes)},
    {"signalbox_lines", "Connections of agents that take tasks.",
     AT(walk.deliver.lines)},
    {"signalbox_lines_total", "Connections of agents since the start.",
     AT(walk.deliver.lines_total)},
    {"signalbox_lines_taken_over_total",
     "Connections of agents that a newer one took over.",
     AT(walk.deliver.taken_over_total)},
    {"signalbox_wakes_total", "Wake requests to agents.",
     AT(walk.deliver.wakes_total)},
    {"signalbox_wakes_failed_total",
     "Wake requests after which the agent did not connect in time.",
     AT(walk.deliver.wakes_failed_total)},
    {"signalbox_children", "Running programs of agents.",
     AT(walk.deliver.children)},

    {"signalbox_agent_state",
     "Constant 1, with the state of the agent as a label.", AT(one),
     .source = FROM_AGENT_STATES},
    {"signalbox_agent_waiting", "Tasks that wait for their agent.",
     AGENT(waiting)},
    {"signalbox_agent_in_flight", "Tasks that their agent has.",
     AGENT(in_flight)},
    {"signalbox_agent_completed_total", "Tasks completed.",
     AGENT(completed_total)},
    {"signalbox_agent_failed_total",
     "Tasks that failed, by their agent or because it was not reached.",
     AGENT(failed_total)},
    {"signalbox_agent_cancelled_total",
     "Tasks that ended otherwise while their agent had them.",
     AGENT(cancelled_total)},
    {"signalbox_agent_retries_total", "Failed attempts that were retried.",
     AGENT(retries_total)},
    {"signalbox_agent_chunks_total", "Chunks of answers.", AGENT(chunks_total)},
#define OUTCOMES                                                    \
    [OUTCOME_COMPLETED] = "completed", [OUTCOME_FAILED] = "failed", \
    [OUTCOME_CANCELLED] = "cancelled", [OUTCOME_EXPIRED] = "expired"
    {"signalbox_agent_delegations_made_total",
     "Finished delegations that the agent requested, by outcome.",
     AGENT_BY("outcome", made_total, OUTCOMES)},
    {"signalbox_agent_delegations_received_total",
     "Finished delegations that the agent was given, by outcome.",
     AGENT_BY("outcome", received_total, OUTCOMES)},
#undef OUTCOMES
    {"signalbox_agent_latency_seconds",
     "Time from the start of an attempt to its completed answer.",
     AGENT(latency_total), .bounds = deliver_bucket_ms,
     .sum_at = offsetof(struct agent_queue_stats, latency_sum_ms), .per = 1e3},

    {"signalbox_delegations_open", "Open delegations.", AT(delegation.open)},
    {"signalbox_delegations_waiting",
     "Open delegations that wait for their turn (maxConcurrent).",
     AT(delegation.waiting)},
    {"signalbox_delegations_ready",
     "Finished delegations whose result is not acknowledged.",
     AT(delegation.ready)},
    {"signalbox_delegations_total", "Accepted delegations.",
     AT(delegation.delegated_total)},
    {"signalbox_delegations_refused_total", "Rejected delegations, by reason.",
     BY("reason",
        delegation.refused_by, [DELEGATION_NOT_ALLOWED] = "not_allowed",
        [DELEGATION_TOO_MANY] = "too_many",
        [DELEGATION_ID_IN_USE] = "id_in_use",
        [DELEGATION_OTHERWISE] = "other")},
    {"signalbox_delegations_had_total", "Acknowledged results of delegations.",
     AT(delegation.had_total)},
    {"signalbox_delegations_expired_total",
     "Results that expired without an acknowledgement.",
     AT(delegation.expired_total)},
    {"signalbox_delegations_ended_below_total",
     "Delegations ended with their parent.", AT(delegation.ended_below_total)},
    {"signalbox_traces_waiting",
     "Spans that are not sent to the collector yet.", AT(traces.waiting),
     .source = FROM_TRACES},
    {"signalbox_traces_sent_total", "Spans accepted by the collector.",
     AT(traces.sent_total), .source = FROM_TRACES},
    {"signalbox_traces_dropped_total", "Spans dropped because too many waited.",
     AT(traces.dropped_total), .source = FROM_TRACES},
    {"signalbox_traces_refused_total", "Spans rejected by the collector.",
     AT(traces.refused_total), .source = FROM_TRACES},
    {"signalbox_traces_failures_total",
     "Failed requests to the collector, which are retried.",
     AT(traces.failures_total), .source = FROM_TRACES},

    {"signalbox_gate_decisions_total", "Decisions of the gate, by kind.",
     BY_WORD("decision", gate.by_answer, gate_answer_word)},
    {"signalbox_gate_held", "Held messages.", AT(gate.held)},
    {"signalbox_gate_hold_seconds", "How long messages were held.",
     .at = 0}, /* its samples follow */
    {"signalbox_gate_hold_seconds_sum", NULL, AT(gate.hold_ms_total),
     .per = 1e3},
    {"signalbox_gate_hold_seconds_count", NULL, AT(holds_ended)},
    {"signalbox_gate_hold_seconds_max", "The longest hold since the start.",
     AT(gate.hold_ms_max), .per = 1e3},
    {"signalbox_gate_released_total", "Held messages that were released.",
     AT(gate.released_total)},
    {"signalbox_gate_expired_total", "Held messages that expired.",
     AT(gate.expired_total)},
    {"signalbox_gate_escalations_open", "Open escalations.",
     AT(gate.escalations_open)},
    {"signalbox_gate_escalations_total", "Escalations, by kind.",
     BY("kind", gate.escalations_total, NULL, "rule", "dead", "late",
        "expired")},
    {"signalbox_gate_late_total", "Answers after the deadline of a rule.",
     AT(gate.late_total)},
    {"signalbox_gate_lost",
     "Losses found by the last audit; -1 before the first.", AT(lost),
     .source = FROM_AUDIT},
    {"signalbox_gate_audit_timestamp_seconds", "When the last audit ended.",
     AT(audit_ended_s), .source = FROM_AUDIT},
    {"signalbox_channel_backlog",
     "Entries of the feed that the channel has not read.", CHANNEL(backlog)},
    {"signalbox_channel_written_total", "Entries written or posted.",
     CHANNEL(written_total)},
    {"signalbox_channel_failures_total",
     "Failed writes and posts, which are retried.", CHANNEL(failures_total)},
    {"signalbox_channel_missed_total",
     "Entries that retention removed before the channel read them.",
     CHANNEL(missed_total)},

    {"signalbox_feed_entries_total", "Entries of the feed since the start.",
     AT(feed.entries_total)},
    {"signalbox_feed_newest", "Seq of the newest entry.", AT(feed.newest)},
    {"signalbox_feed_readers", "Streams of the feed.", AT(feed.readers)},
    {"signalbox_feed_pages_total",
     "Pages of older entries read from the store.", AT(feed.pages_total)},

    {"signalbox_users", "Users.", AT(access.users)},
    {"signalbox_tokens", "Tokens that are not revoked.", AT(access.tokens)},
    {"signalbox_tokens_refused_total", "Requests without a valid token.",
     AT(access.refused_total)},

    {"signalbox_agents", "Agents, by visibility.",
     BY_WORD("visibility", agents, visibility_word)},
    {"signalbox_agents_in_review",
     "Agents with a new card that is not approved, by the state of its review.",
     BY_WORD("review", registry.by_review, review_word)},
    {"signalbox_agent_reports",
     "Reports of agents that no admin has dismissed.", AT(registry.reports)},
    {"signalbox_skills", "Skills of agents.", AT(registry.skills)},
    {"signalbox_grants", "Grants, including expired ones.",
     AT(registry.grants)},
    {"signalbox_agents_unembedded",
     "Agents without vectors of the current model: until then they are found "
     "by their words or its table.",
     AT(registry.unembedded)},
    {"signalbox_vectors_ready",
     "1 when all vectors of agents and reference texts are there.",
     AT(registry.is_ready)},
    {"signalbox_agent_changes_total", "Changes of agents and grants.",
     AT(registry.changes_total)},
    {"signalbox_agent_embed_failures_total",
     "Failures to make vectors for an agent, which are retried.",
     AT(registry.embed_failures_total)},
    {"signalbox_searches_total", "Searches for agents.",
     AT(registry.searches_total)},
    {"signalbox_searches_by_words_total",
     "Searches by words alone although more was requested.",
     AT(registry.searches_by_words_total)},
    {"signalbox_index_documents",
     "Documents in the index: skills, and agents themselves.",
     AT(registry.index.documents)},
    {"signalbox_index_vectors", "Documents with a vector.",
     AT(registry.index.vectors)},
    {"signalbox_index_bytes", "Memory of the index, in whole MiB.",
     AT(registry.index.bytes)},
    {"signalbox_index_vector_bytes",
     "Memory of the vectors in the index, in whole MiB.",
     AT(registry.index.vector_bytes)},
    {"signalbox_index_scanned_total", "Vectors that searches compared roughly.",
     AT(registry.index.scanned_total)},
    {"signalbox_index_refined_total", "Vectors that searches compared exactly.",
     AT(registry.index.refined_total)},

    {"signalbox_decisions_total",
     "Recorded decisions, by the layer that chose the agent; none: the message "
     "was rejected.",
     BY_WORD("layer", routing.by_layer, layer_word)},
    {"signalbox_decisions_by_tier_total",
     "Recorded decisions that compared agents with a model of two tiers, by "
     "the tier that decided.",
     BY_WORD("tier", routing.by_tier, tier_word)},
    {"signalbox_transformer_unheard_total",
     "Messages for which the transformer failed, so the table decided.",
     AT(routing.full_failed_total)},
    {"signalbox_no_route_total", "Messages without a matching agent.",
     AT(routing.no_route_total)},
    {"signalbox_refusals_unrecorded_total",
     "Messages without an agent and without a record: the user had too many in "
     "that hour, or the store was full.",
     AT(routing.refusals_unrecorded_total)},
    {"signalbox_switches_total",
     "Conversations that their user moved to another agent.",
     AT(routing.switches_total)},
    {"signalbox_intents_total", "Messages for the classifier.",
     AT(routing.intents_total)},
    {"signalbox_intents_failed_total",
     "Messages for the classifier without a usable answer.",
     AT(routing.intents_failed_total)},
    {"signalbox_routing_waiting",
     "Messages that wait for input of the routing.", AT(routing.waiting)},
    {"signalbox_decide_seconds", "Time to choose an agent, without waiting.",
     AT(routing.decide_total), .bounds = route_bucket_us,
     .sum_at = offsetof(struct figures_taken, routing.decide_sum_us),
     .per = 1e6},

    {"signalbox_learning_runs_total", "Runs of the learning job.",
     AT(learning.runs_total), .source = FROM_LEARNING},
    {"signalbox_learning_judged_total", "Decisions judged by the learning job.",
     AT(learning.judged_total), .source = FROM_LEARNING},
    {"signalbox_learning_outcomes_total",
     "Committed outcomes: verdicts, corrections, feedback and requests to "
     "forget.",
     AT(learning.outcomes_total), .source = FROM_LEARNING},
    {"signalbox_learning_not_written",
     "Outcomes whose effect is only in memory yet.", AT(learning.behind),
     .source = FROM_LEARNING},
    {"signalbox_learning_agents", "Agents with learned data.",
     AT(learning.learn.agents), .source = FROM_LEARNING},
    {"signalbox_learning_types", "Types of query.", AT(learning.learn.types),
     .source = FROM_LEARNING},
    {"signalbox_learning_examples", "Corrections that are kept as examples.",
     AT(learning.learn.examples), .source = FROM_LEARNING},

    {"signalbox_hub_connections", "Open connections to /hub.",
     AT(hub.connections), .source = FROM_HUB},
    {"signalbox_hub_agents",
     "Open connections to /hub that belong to an agent.", AT(hub.agents),
     .source = FROM_HUB},
    {"signalbox_hub_messages_total", "Messages received on /hub.",
     AT(hub.messages_total), .source = FROM_HUB},
    {"signalbox_hub_errors_total", "Answers on /hub that were errors.",
     AT(hub.errors_total), .source = FROM_HUB},
    {"signalbox_hub_pushed_total",
     "Notifications about tasks, sent to their users.", AT(hub.pushed_total),
     .source = FROM_HUB},
    {"signalbox_hub_rate_limited_total",
     "Times a connection was slowed down by a rate limit.",
     AT(hub.rate_limited_total), .source = FROM_HUB},
    {"signalbox_hub_foreign_total", "Answers without a request, ignored.",
     AT(hub.foreign_total), .source = FROM_HUB},

    {"signalbox_outgoing_requests", "Outgoing requests under way.",
     AT(fetch.open), .source = FROM_FETCH},
    {"signalbox_outgoing_lookups_left",
     "Name lookups of requests that are over.", AT(fetch.lingering),
     .source = FROM_FETCH},
    {"signalbox_outgoing_requests_total", "Outgoing requests started.",
     AT(fetch.started_total), .source = FROM_FETCH},
    {"signalbox_outgoing_requests_failed_total",
     "Outgoing requests without a complete answer.", AT(fetch.failed_total),
     .source = FROM_FETCH},
    {"signalbox_outgoing_addresses_refused_total",
     "Outgoing requests to a forbidden address.",
     AT(fetch.refused_by_guard_total), .source = FROM_FETCH},
    {"signalbox_outgoing_connections_total",
     "Connections opened for outgoing requests; other requests reuse one.",
     AT(fetch.connections_total), .source = FROM_FETCH},
    {"signalbox_outgoing_received_bytes_total",
     "Bytes of answers to outgoing requests.", AT(fetch.bytes_in_total),
     .source = FROM_FETCH},

    {"signalbox_embed_texts_total",
     "Texts made into vectors, without cache hits.", EMBED(texts_total)},
    {"signalbox_embed_quick_texts_total",
     "Texts made into quick vectors, by the table of a model of two tiers.",
     EMBED(quick_total)},
    {"signalbox_embed_texts_failed_total",
     "Texts without a vector after a failure.", EMBED(failed_total)},
    {"signalbox_embed_texts_waiting", "Texts that wait for their vectors.",
     EMBED(waiting)},
    {"signalbox_embed_cache_hits_total", "Cache hits for vectors of queries.",
     EMBED(cache_hits_total)},
    {"signalbox_embed_cache_misses_total",
     "Cache misses for vectors of queries.", EMBED(cache_misses_total)},
    {"signalbox_embed_cache_entries", "Vectors of queries in the cache.",
     EMBED(cache_entries)},
    {"signalbox_embed_requests_total", "Requests to the provider.",
     EMBED(requests_total)},
    {"signalbox_embed_provider_paused",
     "1 while the provider is paused because it failed.", EMBED(is_paused)},

    {"signalbox_config_reloads_total", "Configurations applied while running.",
     AT(reloads)},
    {"signalbox_config_reloads_failed_total",
     "Configurations rejected while running.", AT(reloads_failed)},
};
const size_t api_metrics_n = sizeof(api_metrics) / sizeof(api_metrics[0]);

/* These are public. The number of different words in the index, or its exact
 * memory, would tell a user whether a word of their card was already in a card
 * that they may not see. So the number is left out, and memory is rounded to
 * whole MiB. */
static size_t whole_mib(size_t bytes)
{
    const size_t mib = 1024 * 1024;

    return (bytes + mib - 1) / mib * mib;
}

static void take_agents(struct figures_taken *f, struct deliver *d)
{
    struct agent_queue_stats others;
    size_t n = deliver_shown(d, f->rows, &others);

    f->rows[n].stats = others;
    f->rows[n].agent = STR("other");
    for (size_t i = 0; i <= n; i++)
        f->agent[i] = (struct metric_series){{{"agent", f->rows[i].agent}},
                                             &f->rows[i].stats};
    for (size_t i = 0; i < n; i++)
        f->state[i] = (struct metric_series){
            {{"agent", f->rows[i].agent},
             {"state", agent_state_name(f->rows[i].state)}},
            f};
    f->sources[FROM_AGENTS] = (struct metric_source){f->agent, n + 1};
    f->sources[FROM_AGENT_STATES] = (struct metric_source){f->state, n};
}

static void take_channels(struct figures_taken *f, struct channels *channels)
{
    size_t n = channels_stats(channels, f->channels, 2 * CHANNELS_MAX);

    for (size_t i = 0; i < n; i++)
        f->channel[i] = (struct metric_series){
            {{"channel", f->channels[i].name},
             {"place", f->channels[i].is_file ? STR("file") : STR("webhook")}},
            &f->channels[i]};
    f->sources[FROM_CHANNELS] = (struct metric_source){f->channel, n};
}

static void take_embeds(struct figures_taken *f, const struct api *api)
{
    size_t n = 0;

    f->embeds = mem_array(api->n_embeds, sizeof(*f->embeds));
    f->embed = mem_array(api->n_embeds, sizeof(*f->embed));
    for (size_t i = 0; i < api->n_embeds; i++) {
        struct embed_figures *e = &f->embeds[n];

        if (!api->embeds[i])
            continue;
        e->stats = embed_stats(api->embeds[i]);
        e->stamp = embed_stamp(api->embeds[i]);
        f->embed[n++] = (struct metric_series){
            {{"kind", str_of(embed_kind_name(e->stats.kind))},
             {"model", str_of(e->stamp.name)}},
            &e->stats};
    }
    f->sources[FROM_EMBEDS] = (struct metric_source){f->embed, n};
}

void call_metrics(struct call *c)
{
    struct api *api = c->api;
    struct figures_taken *f = mem_new(sizeof(*f));
    const struct metric_source self = {&f->self, 1};

    f->self.values = f;
    f->sources[FROM_FIGURES] = self;
    f->one = 1;
    f->build = (struct metric_series){{{"version", STR(SIGNALBOX_VERSION)}}, f};
    f->sources[FROM_BUILD] = (struct metric_source){&f->build, 1};
    f->net = net_stats(api->net);
    if (f->net.tls_cert_ends_s)
        f->sources[FROM_CERTIFICATES] = self;
    for (int by = 0; by < N_THROTTLES; by++)
        f->limited[by] = throttle_total(api->throttle, (enum throttle_by)by);
    memcpy(f->open, api->n_by_kind, sizeof(f->open));
    f->shut_out = api->revoked_total;
    f->store = store_stats(api->store);
    f->walk = walk_stats(api->walk);
    take_agents(f, walk_deliver(api->walk));
    f->delegation = delegation_stats(walk_delegations(api->walk));
    if (api->traces) {
        f->traces = traces_stats(api->traces);
        if (f->traces.is_on)
            f->sources[FROM_TRACES] = self;
    }
    f->gate = gatekeeper_stats(walk_gatekeeper(api->walk));
    f->holds_ended = f->gate.released_total + f->gate.expired_total;
    if (api->notifiers) {
        const struct audit_report *r = audit_report(api->notifiers->audit);

        f->lost = r->ended_ms && !r->err ? r->lost : -1; /* -1: unknown */
        f->audit_ended_s = r->ended_ms / 1000;
        f->sources[FROM_AUDIT] = self;
        take_channels(f, api->notifiers->channels);
    }
    f->feed = feed_stats(api->feed);
    f->access = access_stats(api->access);
    f->registry = registry_stats(api->registry);
    for (int v = VISIBILITY_PRIVATE; v <= VISIBILITY_PUBLIC; v++)
        f->agents[VISIBILITY_PUBLIC - v] = f->registry.by_visibility[v];
    f->registry.index.bytes = whole_mib(f->registry.index.bytes);
    f->registry.index.vector_bytes = whole_mib(f->registry.index.vector_bytes);
    f->routing = router_stats(walk_router(api->walk));
    if (api->learning) {
        f->learning = learning_stats(api->learning);
        f->sources[FROM_LEARNING] = self;
    }
    if (api->hub.stats) {
        f->hub = api->hub.stats(api->hub.ctx);
        f->sources[FROM_HUB] = self;
    }
    if (api->fetch) {
        f->fetch = fetch_stats(api->fetch);
        f->sources[FROM_FETCH] = self;
    }
    if (api->n_embeds)
        take_embeds(f, api);
    f->reloads = api->reloads_total;
    f->reloads_failed = api->reloads_failed_total;
    metrics_write(c->body, api_metrics, api_metrics_n, f->sources);
    metric_process(c->body, &api->files, loop_mono_ms(api->loop));
    free(f->embeds);
    free(f->embed);
    free(f);
    call_answer(c, 200, WATCH_METRICS_TYPE);
}
