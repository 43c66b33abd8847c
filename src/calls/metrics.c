/* Figures for Prometheus: the rooms keep them, here they are written down. One
 * function per room; names and labels are a promise (docs/protocol.md). */
#include "calls/internal.h"

#include <stdio.h>

static void write_refused(struct buf *out, const struct net_stats *s)
{
    static const char *const limits[N_NET_ROOMS] = {
        [NET_NO_CONNECTION] = "limit=\"connections\"",
        [NET_NO_ADDRESS] = "limit=\"address\"",
        [NET_NO_BUFFERS] = "limit=\"buffers\""};

    metric_family(out, "signalbox_http_turned_away_total", "counter",
                  "Connections turned away, by the limit.");
    for (int i = NET_NO_CONNECTION; i < N_NET_ROOMS; i++)
        metric_int(out, "signalbox_http_turned_away_total", limits[i],
                   s->refused_by_total[i]);
}

static void write_http(struct buf *out, const struct net_stats *s)
{
    metric_gauge(out, "signalbox_http_connections", "Open connections.",
                 s->connections);
    metric_counter(out, "signalbox_http_connections_total",
                   "Connections taken.", s->connections_total);
    metric_counter(out, "signalbox_http_connections_refused_total",
                   "Connections turned away at a limit.", s->refused_total);
    metric_counter(out, "signalbox_http_connections_evicted_total",
                   "Silent or idle connections closed to make room for others.",
                   s->evicted_total);
    write_refused(out, s);
    metric_counter(out, "signalbox_http_requests_total",
                   "Requests read whole and handed over.", s->requests_total);
    metric_family(out, "signalbox_http_replies_total", "counter",
                  "Replies by class of status.");
    for (int digit = 1; digit <= 5; digit++) {
        char label[] = "status=\"?xx\"";

        label[8] = (char)('0' + digit);
        metric_int(out, "signalbox_http_replies_total", label,
                   s->replies_total[digit]);
    }
    metric_counter(out, "signalbox_http_bad_requests_total",
                   "Requests that broke the protocol or a limit.",
                   s->bad_requests_total);
    metric_counter(out, "signalbox_http_overloaded_total",
                   "Requests refused because all buffers were full.",
                   s->overloaded_total);
    metric_counter(out, "signalbox_http_timeouts_total",
                   "Connections cut because a phase took too long.",
                   s->timeouts_total);
    metric_counter(out, "signalbox_http_idle_closed_total",
                   "Connections closed because no request came.",
                   s->idle_closed_total);
    metric_counter(out, "signalbox_http_received_bytes_total",
                   "Bytes read from clients.", s->bytes_in_total);
    metric_counter(out, "signalbox_http_sent_bytes_total",
                   "Bytes written to clients.", s->bytes_out_total);
    metric_counter(out, "signalbox_tls_handshakes_total",
                   "TLS handshakes that were finished.",
                   s->tls_handshakes_total);
    metric_counter(out, "signalbox_tls_handshakes_failed_total",
                   "TLS handshakes that were not.", s->tls_failed_total);
    metric_counter(out, "signalbox_tls_handshakes_cut_total",
                   "TLS handshakes cut as the oldest of too many.",
                   s->tls_cut_total);
    if (s->tls_cert_ends_s)
        metric_gauge(out, "signalbox_tls_certificate_expires_timestamp_seconds",
                     "When the first of the certificates in use ends.",
                     s->tls_cert_ends_s);
    metric_gauge(out, "signalbox_http_unsent_bytes",
                 "Bytes waiting for clients to take them.", s->unsent_bytes);
    metric_gauge(out, "signalbox_http_buffered_bytes",
                 "Memory held by the buffers of all connections.",
                 s->buffered_bytes);
}

static void write_ws(struct buf *out, const struct net_stats *s)
{
    static const char *const causes[N_NET_WS_CAUSES] = {
        [NET_WS_PEER] = "cause=\"peer\"",
        [NET_WS_OWNER] = "cause=\"server\"",
        [NET_WS_LOST] = "cause=\"lost\"",
        [NET_WS_BAD] = "cause=\"protocol\"",
        [NET_WS_LIMIT] = "cause=\"limit\"",
        [NET_WS_SILENT] = "cause=\"silent\"",
        [NET_WS_SLOW] = "cause=\"slow\"",
        [NET_WS_OVERLOADED] = "cause=\"overloaded\"",
    };

    metric_gauge(out, "signalbox_ws_connections",
                 "Open WebSockets, in and out.", s->websockets);
    metric_counter(out, "signalbox_ws_connections_total",
                   "WebSockets that were opened.", s->websockets_total);
    metric_counter(out, "signalbox_ws_received_messages_total",
                   "Messages that came.", s->ws_messages_in_total);
    metric_counter(out, "signalbox_ws_sent_messages_total",
                   "Messages that were sent.", s->ws_messages_out_total);
    metric_counter(out, "signalbox_ws_pings_total",
                   "Pings sent to who was silent.", s->ws_pings_total);
    metric_family(out, "signalbox_ws_ended_total", "counter",
                  "WebSockets that ended, by who or what ended them.");
    for (int i = 0; i < N_NET_WS_CAUSES; i++)
        metric_int(out, "signalbox_ws_ended_total", causes[i],
                   s->ws_ends_total[i]);
    metric_gauge(out, "signalbox_ws_dialling",
                 "WebSockets on their way to somebody else.", s->dialling);
    metric_counter(out, "signalbox_ws_dials_total",
                   "Attempts to open one to somebody else.", s->dials_total);
    metric_counter(out, "signalbox_ws_dials_failed_total",
                   "Of those, the ones that came to nothing.",
                   s->dials_failed_total);
}

/* Microseconds as Prometheus wants them. */
static void write_seconds(struct buf *out, const char *name, const char *help,
                          int64_t us)
{
    metric_family(out, name, "counter", help);
    metric_real(out, name, NULL, (double)us / 1e6);
}

static void write_store(struct buf *out, const struct store_stats *s)
{
    static const char *const results[] = {
        "result=\"committed\"", "result=\"guard_failed\"", "result=\"refused\"",
        "result=\"fatal\""};

    metric_family(out, "signalbox_store_txs_total", "counter",
                  "Changes by what became of them.");
    for (int i = 0; i < 4; i++)
        metric_int(out, "signalbox_store_txs_total", results[i],
                   s->txs_total[i]);
    metric_counter(out, "signalbox_store_batches_total",
                   "Transactions, each with the changes that had gathered.",
                   s->batches_total);
    metric_counter(out, "signalbox_store_rows_written_total", "Rows written.",
                   s->rows_written_total);
    metric_counter(out, "signalbox_store_queries_total", "Pages of rows read.",
                   s->queries_total);
    metric_gauge(out, "signalbox_store_waiting",
                 "Changes that are not on the disk yet.", s->waiting);
    write_seconds(out, "signalbox_store_batch_seconds_total",
                  "Time spent in transactions, their sync included.",
                  s->batch_us_total);
    write_seconds(out, "signalbox_store_sync_seconds_total",
                  "Of that, the time spent in the commit.", s->sync_us_total);
    metric_gauge(out, "signalbox_store_log_bytes",
                 "What is not folded into the database yet.", s->log_bytes);
    metric_gauge(out, "signalbox_store_data_bytes", "The database file.",
                 s->data_bytes);
    metric_gauge(out, "signalbox_store_full",
                 "1 while the disk has no space for changes.", s->is_full);
}

static void status_label(char *to, size_t size, unsigned status)
{
    struct str name = task_status_name((enum task_status)status);

    snprintf(to, size, "status=\"%.*s\"", STR_ARG(name));
}

static void write_tasks(struct buf *out, const struct tasks_stats *s)
{
    char label[48];

    metric_family(out, "signalbox_tasks", "gauge",
                  "Tasks that are not over, by status.");
    for (unsigned i = 1; i < N_TASK_STATUS; i++) {
        if (task_is_over((enum task_status)i))
            continue;
        status_label(label, sizeof(label), i);
        metric_int(out, "signalbox_tasks", label, s->by_status[i]);
    }
    metric_counter(out, "signalbox_tasks_accepted_total",
                   "Tasks, and further turns of tasks, accepted.",
                   s->accepted_total);
    metric_counter(out, "signalbox_tasks_repeated_total",
                   "Messages answered by their idempotency key.",
                   s->repeated_total);
    metric_family(out, "signalbox_tasks_over_total", "counter",
                  "Tasks that came to an end, by status.");
    for (unsigned i = 1; i < N_TASK_STATUS; i++) {
        if (!task_is_over((enum task_status)i))
            continue;
        status_label(label, sizeof(label), i);
        metric_int(out, "signalbox_tasks_over_total", label, s->over_total[i]);
    }
    metric_counter(out, "signalbox_tasks_late_total",
                   "Results that came after the end, and were ignored.",
                   s->late_total);
    metric_gauge(out, "signalbox_tasks_unfinished_bytes",
                 "Texts of tasks that are not over.", s->unfinished_bytes);
    metric_gauge(out, "signalbox_tasks_listeners",
                 "Who waits for tasks, or watches them.", s->listeners);
    metric_gauge(out, "signalbox_tasks_ring_bytes",
                 "Events of tasks kept for who comes back.", s->ring_bytes);
}

static void write_walk(struct buf *out, const struct walk_stats *s)
{
    write_tasks(out, &s->tasks);
    metric_gauge(out, "signalbox_results_waiting",
                 "Results, and other ends of tasks, that wait for space.",
                 s->results_waiting);
    metrics_deliver(out, &s->deliver);
}

static void write_feed(struct buf *out, const struct feed_stats *s)
{
    metric_counter(out, "signalbox_feed_entries_total",
                   "Entries of the feed since the start.", s->entries_total);
    metric_gauge(out, "signalbox_feed_newest", "Seq of the newest entry.",
                 s->newest);
    metric_gauge(out, "signalbox_feed_readers", "Who reads along.", s->readers);
    metric_counter(out, "signalbox_feed_pages_total",
                   "Pages of older entries read from the store.",
                   s->pages_total);
}

static void write_access(struct buf *out, const struct access_stats *s)
{
    metric_gauge(out, "signalbox_users", "Users there are.", s->users);
    metric_gauge(out, "signalbox_tokens", "Tokens that are not revoked.",
                 s->tokens);
    metric_counter(out, "signalbox_tokens_refused_total",
                   "Requests without a good token.", s->refused_total);
}

static void write_limits(struct buf *out, const struct throttle *t)
{
    static const char *const limits[N_THROTTLES] = {
        [THROTTLE_USER] = "limit=\"user\"",
        [THROTTLE_ADDRESS] = "limit=\"address\"",
        [THROTTLE_FAILURES] = "limit=\"failures\"",
        [THROTTLE_HELD] = "limit=\"held\""};

    metric_family(out, "signalbox_rate_limited_total", "counter",
                  "Requests refused because there were too many of them.");
    for (int by = THROTTLE_USER; by < N_THROTTLES; by++)
        metric_int(out, "signalbox_rate_limited_total", limits[by],
                   throttle_total(t, (enum throttle_by)by));
}

static void write_open(struct buf *out, const struct calls *c)
{
    static const char *const kinds[N_OPEN_KINDS] = {
        [OPEN_ASKING] = "kind=\"asking\"",
        [OPEN_WAITING] = "kind=\"waiting\"",
        [OPEN_EVENTS] = "kind=\"events\"",
        [OPEN_FEED] = "kind=\"feed\""};

    metric_family(out, "signalbox_calls_open", "gauge",
                  "Requests that wait for something, and streams.");
    for (int i = 0; i < N_OPEN_KINDS; i++)
        metric_int(out, "signalbox_calls_open", kinds[i], c->n_by_kind[i]);
    metric_counter(out, "signalbox_calls_shut_out_total",
                   "Streams and waiting requests ended because their token was "
                   "good no more, or allowed something else.",
                   c->revoked_total);
}

static void write_outgoing(struct buf *out, const struct fetch_stats *s)
{
    metric_gauge(out, "signalbox_outgoing_requests",
                 "Requests to others that are under way.", s->open);
    metric_gauge(out, "signalbox_outgoing_lookups_left",
                 "Requests that are over, whose names are still looked up.",
                 s->lingering);
    metric_counter(out, "signalbox_outgoing_requests_total",
                   "Requests to others that were begun.", s->started_total);
    metric_counter(out, "signalbox_outgoing_requests_failed_total",
                   "Of those, the ones that got no whole answer.",
                   s->failed_total);
    metric_counter(out, "signalbox_outgoing_addresses_refused_total",
                   "Of those, the ones to an address that may not be "
                   "connected to.",
                   s->refused_by_guard_total);
    metric_counter(out, "signalbox_outgoing_connections_total",
                   "Connections made; the other requests used kept ones.",
                   s->connections_total);
    metric_counter(out, "signalbox_outgoing_received_bytes_total",
                   "Bytes of answers.", s->bytes_in_total);
}

/* Anybody may read these. How many different words there are, or the memory to
 * the byte, would tell them whether a word that they put into a card of their
 * own was there already, in a card that they may not see: so the one is not
 * said, and the other in whole MiB. */
static int64_t whole_mib(size_t bytes)
{
    const size_t mib = 1024 * 1024;

    return (int64_t)((bytes + mib - 1) / mib * mib);
}

static void write_index(struct buf *out, const struct index_stats *s)
{
    metric_gauge(out, "signalbox_index_documents",
                 "What is searched in: skills, and agents themselves.",
                 (int64_t)s->documents);
    metric_gauge(out, "signalbox_index_vectors",
                 "Documents that are found by meaning too.",
                 (int64_t)s->vectors);
    metric_gauge(out, "signalbox_index_bytes",
                 "Memory of the index, in whole MiB.", whole_mib(s->bytes));
    metric_gauge(out, "signalbox_index_vector_bytes", "Of that, the vectors'.",
                 whole_mib(s->vector_bytes));
    metric_counter(out, "signalbox_index_scanned_total",
                   "Vectors that searches guessed at.", s->scanned_total);
    metric_counter(out, "signalbox_index_refined_total",
                   "Of those, the ones computed finely.", s->refined_total);
}

static void write_decide_times(struct buf *out, const struct router_stats *s)
{
    char label[32] = "le=\"+Inf\"";
    int64_t n = 0;

    metric_family(out, "signalbox_decide_seconds", "histogram",
                  "How long choosing an agent took, waiting not counted.");
    for (int b = 0; b < ROUTE_BUCKETS; b++) {
        if (b < ROUTE_BUCKETS - 1)
            snprintf(label, sizeof(label), "le=\"%g\"",
                     (double)route_bucket_us[b] / 1e6);
        else
            snprintf(label, sizeof(label), "le=\"+Inf\"");
        n += s->decide_total[b];
        metric_int(out, "signalbox_decide_seconds_bucket", label, n);
    }
    metric_real(out, "signalbox_decide_seconds_sum", NULL,
                (double)s->decide_sum_us / 1e6);
    metric_int(out, "signalbox_decide_seconds_count", NULL, n);
}

static void write_routing(struct buf *out, const struct router_stats *s)
{
    char label[32];

    metric_family(out, "signalbox_decisions_total", "counter",
                  "Decisions on record, by the layer that chose the agent; "
                  "none: the message was refused.");
    for (int i = LAYER_EXPLICIT; i < N_LAYERS; i++) {
        snprintf(label, sizeof(label), "layer=\"%.*s\"",
                 STR_ARG(layer_name((enum layer)i)));
        metric_int(out, "signalbox_decisions_total", label, s->by_layer[i]);
    }
    metric_family(out, "signalbox_decisions_by_tier_total", "counter",
                  "Decisions on record for which agents were compared by a "
                  "model of two tiers, by the tier that decided.");
    for (int i = TIER_NONE + 1; i < N_TIERS; i++) {
        snprintf(label, sizeof(label), "tier=\"%.*s\"",
                 STR_ARG(tier_name((enum tier)i)));
        metric_int(out, "signalbox_decisions_by_tier_total", label,
                   s->by_tier[i]);
    }
    metric_counter(out, "signalbox_transformer_unheard_total",
                   "Messages that the transformer was asked about in vain, so "
                   "that the table decided.",
                   s->full_failed_total);
    metric_counter(out, "signalbox_no_route_total",
                   "Messages that no agent was found for.", s->no_route_total);
    metric_counter(out, "signalbox_refusals_unrecorded_total",
                   "Messages that no agent got and that left no decision: the "
                   "user had too many in that hour, or the store was full.",
                   s->refusals_unrecorded_total);
    metric_counter(out, "signalbox_switches_total",
                   "Conversations that were given to another agent by who "
                   "speaks in them.",
                   s->switches_total);
    metric_counter(out, "signalbox_intents_total",
                   "Messages that the classifier was to be asked about.",
                   s->intents_total);
    metric_counter(out, "signalbox_intents_failed_total",
                   "Of those, the ones without an answer that counts.",
                   s->intents_failed_total);
    metric_gauge(out, "signalbox_routing_waiting",
                 "Messages that wait for what choosing needs.", s->waiting);
    write_decide_times(out, s);
}

static void write_registry(struct buf *out, const struct registry_stats *s)
{
    static const enum visibility all[] = {VISIBILITY_PUBLIC, VISIBILITY_SHARED,
                                          VISIBILITY_PRIVATE};
    char label[48];

    metric_family(out, "signalbox_agents", "gauge",
                  "Agents there are, by who may see them.");
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        snprintf(label, sizeof(label), "visibility=\"%.*s\"",
                 STR_ARG(visibility_name(all[i])));
        metric_int(out, "signalbox_agents", label, s->by_visibility[all[i]]);
    }
    metric_gauge(out, "signalbox_skills", "Skills that they have.", s->skills);
    metric_gauge(out, "signalbox_grants", "Grants, also expired ones.",
                 s->grants);
    metric_gauge(out, "signalbox_agents_unembedded",
                 "Agents that wait for vectors of the model in use: found by "
                 "their words or its table until then.",
                 s->unembedded);
    metric_gauge(out, "signalbox_vectors_ready",
                 "1: no vector of an agent or a reference text is awaited.",
                 s->is_ready);
    metric_counter(out, "signalbox_agent_changes_total",
                   "Changes of agents and grants.", s->changes_total);
    metric_counter(out, "signalbox_agent_embed_failures_total",
                   "Agents that got no vectors, to be tried again.",
                   s->embed_failures_total);
    metric_counter(out, "signalbox_searches_total", "Searches for agents.",
                   s->searches_total);
    metric_counter(out, "signalbox_searches_by_words_total",
                   "Of those, the ones by words alone though more was wanted.",
                   s->searches_by_words_total);
    write_index(out, &s->index);
}

/* A provider's name for a model may have anything in it. */
static void add_label(char *to, size_t size, const char *text)
{
    size_t n = strlen(to);

    for (; *text && n + 4 < size; text++) {
        if (strchr("\\\"\n", *text))
            to[n++] = '\\';
        to[n++] = *text == '\n' ? 'n' : *text;
    }
    to[n++] = '"';
    to[n] = '\0';
}

static void embed_label(char *to, size_t size, enum embed_kind kind,
                        const struct embed_stamp *stamp)
{
    snprintf(to, size, "kind=\"%s\",model=\"", embed_kind_name(kind));
    add_label(to, size, stamp->name);
}

/* One family for all models after the other. */
static void write_embeds(struct buf *out, const struct calls *c)
{
    static const struct {
        const char *name, *type, *help;
        size_t offset;
    } families[] = {
#define ROW(name, type, field, help) \
    {"signalbox_embed_" name, type, help, offsetof(struct embed_stats, field)}
        ROW("texts_total", "counter", texts_total,
            "Texts made into vectors, without those of the cache."),
        ROW("quick_texts_total", "counter", quick_total,
            "Texts made into quick vectors, by the table of a model of two "
            "parts."),
        ROW("texts_failed_total", "counter", failed_total,
            "Texts that got no vector."),
        ROW("texts_waiting", "gauge", waiting,
            "Texts that wait for their vectors."),
        ROW("cache_hits_total", "counter", cache_hits_total,
            "Vectors of questions that were kept."),
        ROW("cache_misses_total", "counter", cache_misses_total,
            "Vectors of questions that were not."),
        ROW("cache_entries", "gauge", cache_entries,
            "Vectors of questions in the cache."),
        ROW("requests_total", "counter", requests_total,
            "Requests to the provider."),
        ROW("provider_paused", "gauge", is_paused,
            "1 while the provider is left alone because it failed."),
#undef ROW
    };

    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        metric_family(out, families[k].name, families[k].type,
                      families[k].help);
        for (size_t i = 0; i < c->n_embeds; i++) {
            struct embed_stats stats;
            struct embed_stamp stamp;
            char label[64 + 2 * EMBED_NAME_MAX];
            int64_t v;

            if (!c->embeds[i])
                continue;
            stats = embed_stats(c->embeds[i]);
            stamp = embed_stamp(c->embeds[i]);
            embed_label(label, sizeof(label), stats.kind, &stamp);
            memcpy(&v, (const char *)&stats + families[k].offset, sizeof(v));
            metric_int(out, families[k].name, label, v);
        }
    }
}

void call_metrics(struct call *c)
{
    struct calls *calls = c->calls;
    struct net_stats net = net_stats(calls->net);
    struct store_stats store = store_stats(calls->store);
    struct walk_stats walk = walk_stats(calls->walk);
    struct feed_stats feed = feed_stats(calls->feed);
    struct access_stats access = access_stats(calls->access);
    struct registry_stats registry = registry_stats(calls->registry);
    struct router_stats routing = router_stats(walk_router(calls->walk));
    struct hire_stats hire = hire_stats(walk_hires(calls->walk));

    metric_family(c->body, "signalbox_build_info", "gauge",
                  "Constant 1, with the version as a label.");
    metric_int(c->body, "signalbox_build_info",
               "version=\"" SIGNALBOX_VERSION "\"", 1);
    write_http(c->body, &net);
    write_limits(c->body, calls->throttle);
    write_ws(c->body, &net);
    write_open(c->body, calls);
    write_store(c->body, &store);
    write_walk(c->body, &walk);
    metrics_agents(c->body, walk_deliver(calls->walk));
    metrics_hire(c->body, &hire, calls->traces);
    metrics_gate(c->body, calls);
    write_feed(c->body, &feed);
    write_access(c->body, &access);
    write_registry(c->body, &registry);
    write_routing(c->body, &routing);
    if (calls->lessons) {
        struct lessons_stats learning = lessons_stats(calls->lessons);

        metrics_learning(c->body, &learning);
    }
    if (calls->hub.write_metrics)
        calls->hub.write_metrics(calls->hub.ctx, c->body);
    if (calls->fetch) {
        struct fetch_stats fetch = fetch_stats(calls->fetch);

        write_outgoing(c->body, &fetch);
    }
    if (calls->n_embeds)
        write_embeds(c->body, calls);
    metric_counter(c->body, "signalbox_config_reloads_total",
                   "Configurations taken over while running.",
                   calls->reloads_total);
    metric_counter(c->body, "signalbox_config_reloads_failed_total",
                   "Configurations turned down while running.",
                   calls->reloads_failed_total);
    metric_process(c->body, &calls->files, loop_mono_ms(calls->loop));
    call_answer(c, 200, WATCH_METRICS_TYPE);
}
