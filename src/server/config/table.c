/* The table of settings.
 *
 * Everything that depends on the set of settings comes from its rows: reading,
 * defaults, errors, restarts, the reference. A default is written as JSON and
 * read like any other value, so it cannot break the limits of its row, and is
 * shown as a user would write it. The rows of a section are together, in the
 * order of the reference. Those of bindings, routing and learning are in
 * choosing_rows.inc, which is included here because all are in one array.
 *
 * Rejected: code generated from a schema file. The table is as short, and the
 * compiler checks it. */
#include "server/config/internal.h"

#include "model/decision.h"
#include "model/delegation.h"

static const char *const level_names[] = {"debug", "info", "warn", "error",
                                          NULL};
static const char *const format_names[] = {"auto", "text", "json", NULL};
static const char *const embed_names[] = {"builtin", "table", "transformer",
                                          "minilm",  "http",  NULL};
static const char *const fusion_names[] = {"weighted", "rrf", NULL};
static const char *const order_names[] = {"spread", "plain", NULL};
static const char *const offline_names[] = {"refuse", "hold", NULL};
static const char *const disconnect_names[] = {"keep", "cancel", NULL};
static const char *const when_names[] = {"always", "ambiguous", NULL};
static const char *const overrides_names[] = {"default", "bindings", NULL};
static const char *const unsure_names[] = {"auto", "default", "best",
                                           "ask",  "refuse",  NULL};
static const char *const preset_names[] = {"none", "seed", NULL};
static const char *const trust_names[] = {"rated", "all", NULL};

#define BUDGET_MAX INT64_C(1000000000000000000) /* LEDGER_AMOUNT_MAX */

enum {
    MILLION = 1000 * 1000,
    KIB = 1024,
    MIB = 1024 * 1024,
    SECOND_MS = 1000,
    HOUR_MS = 3600 * SECOND_MS,
    DAY_MS = 24 * HOUR_MS,
    /* Short enough for a test, too long to be reached by accident. */
    SHORTEST_MS = 10,
};

/* The elements of lists. */

#define AT(field) .offset = offsetof(struct config_cert, field)

#define LAYER_PRESET(id, number, name, words) ", \"" name "\""

static const struct setting cert_rows[] = {
    {"certFile", AT(cert_file), .type = &type_file,
     .what = "The certificate, like `tls.certFile`. A client that requests "
             "one of its names gets it."},
    {"keyFile", AT(key_file), .type = &type_file, .what = "Its private key."},
};

#undef AT

static const struct setting_table cert_table = {
    cert_rows, sizeof(cert_rows) / sizeof(cert_rows[0])};

static const struct setting_elements cert_elements = {
    .table = &cert_table,
    .bytes = sizeof(struct config_cert),
    .max = CONFIG_MORE_CERTS_MAX,
};

static const struct setting host_row = {"", .type = &type_host};
static const struct setting origin_row = {"", .type = &type_origin};
static const struct setting_table host_table = {&host_row, 1};
static const struct setting_table origin_table = {&origin_row, 1};
static const struct setting network_row = {"", .type = &type_range,
                                           .is_portless = true,
                                           .explain = setting_explain_range};
static const struct setting_table network_table = {&network_row, 1};

static const struct setting_elements network_elements = {
    .table = &network_table,
    .bytes = sizeof(struct guard_range),
    .max = 64, /* compared for every request */
    .is_plain = true,
};

static const struct setting_elements host_elements = {
    .table = &host_table,
    .bytes = sizeof(struct str),
    .max = 100,
    .is_plain = true,
};
static const struct setting_elements origin_elements = {
    .table = &origin_table,
    .bytes = sizeof(struct str),
    .max = 100,
    .is_plain = true,
};

static const struct setting range_row = {"", .type = &type_range,
                                         .explain = setting_explain_range};
static const struct setting_table range_table = {&range_row, 1};

static const struct setting_elements range_elements = {
    .table = &range_table,
    .bytes = sizeof(struct guard_range),
    .max = 100, /* compared for every connection */
    .is_plain = true,
};

/* setting_list_get reads all of these fields as a struct setting_list. */
#define IS_LIST(field)                                                     \
    (sizeof(((struct config *)0)->field) == sizeof(struct setting_list) && \
     offsetof(struct config, field.n) - offsetof(struct config, field) ==  \
         offsetof(struct setting_list, n))
_Static_assert(IS_LIST(agents), "the field of a list");
_Static_assert(IS_LIST(bindings), "the field of a list");
_Static_assert(IS_LIST(processes), "the field of a list");
_Static_assert(IS_LIST(models), "the field of a list");
_Static_assert(IS_LIST(tls.more), "the field of a list");
_Static_assert(IS_LIST(http.allowed_hosts), "the field of a list");
_Static_assert(IS_LIST(http.allowed_origins), "the field of a list");
_Static_assert(IS_LIST(outgoing.allow), "the field of a list");
_Static_assert(IS_LIST(rate.exempt), "the field of a list");

#define AT(field) .offset = offsetof(struct config, field)

static const struct setting rows[] = {
    {"listen", AT(listen), .type = &type_address,
     .preset = "\"127.0.0.1:8787\"", .flag = "--listen", .needs_restart = true,
     .what = "The address for connections without TLS. Port 0 picks a free "
             "one; `localhost` and `[::]` listen on both IPv6 and IPv4."},
    {"data", AT(data), .type = &type_folder, .preset = "\"signalbox-data\"",
     .flag = "--data", .needs_restart = true,
     .what = "The folder for all data of the server; created if it does not "
             "exist."},
    {"allowPlaintext", AT(allow_plaintext), .type = &type_bool,
     .preset = "false", .needs_restart = true,
     .what = "Allow `listen` to be an address beyond this machine, although "
             "tokens and messages are then sent unencrypted."},
    {"stopGraceMs", AT(stop_grace_ms), .type = &type_int, .preset = "10000",
     .min = 0, .max = 10 * 60 * SECOND_MS, .unit = "milliseconds",
     .what = "How long open requests may continue when the server is stopped."},
    {"node", AT(node), .type = &type_name, .preset = "\"main\"",
     .needs_restart = true,
     .what = "The name of this server, stored with the tasks it works on."},
    {"rules", AT(rules), .type = &type_rules, .preset = "\"auto\"",
     .what = "The file with the gate's rules: which messages may go now, "
             "which wait, and which a person must approve (docs/rules.md). "
             "`auto` is `routing_rules.json` beside this file, else in the "
             "data folder, if one exists at the start or at a reload; the "
             "log says which. The file is read again whenever it changes; an "
             "invalid file never replaces a valid one. Empty: none."},

    {"tls.listen", AT(tls.listen), .type = &type_address, .preset = "\"\"",
     .needs_restart = true,
     .what = "The address for connections with TLS; it may be beyond this "
             "machine. Needs `tls.certFile` and `tls.keyFile`."},
    {"tls.certFile", AT(tls.cert_file), .type = &type_file, .preset = "\"\"",
     .what = "The server's certificate in PEM, followed by its intermediate "
             "certificates. Checked every ten seconds, and loaded when it "
             "has changed."},
    {"tls.keyFile", AT(tls.key_file), .type = &type_file, .preset = "\"\"",
     .what = "Its private key in PEM, without a passphrase."},
    {"tls.more", AT(tls.more), .type = &type_list, .preset = "[]",
     .elements = &cert_elements,
     .what = "Certificates for further names. A client that requests a name "
             "in none of them gets the one in `tls.certFile`."},

    {"log.level", AT(log.level), .type = &type_enum, .preset = "\"info\"",
     .names = level_names, .what = "The lowest level that is logged."},
    {"log.format", AT(log.format), .type = &type_enum, .preset = "\"auto\"",
     .names = format_names,
     .what = "`text` for people or `json` for programs; `auto` is text on a "
             "terminal and JSON elsewhere."},

    {"http.maxConnections", AT(http.max_connections), .type = &type_int,
     .preset = "8192", .min = 1, .max = 1000000,
     .what = "Open connections; more are rejected."},
    {"http.maxConnectionsPerAddress", AT(http.max_connections_per_address),
     .type = &type_int, .preset = "1024", .min = 0, .max = 1000000,
     .what = "Open connections from one address, or one /64 of IPv6; more "
             "are rejected. 0: no limit. Addresses in `rate.exempt` are not "
             "counted."},
    {"http.maxRequestLineBytes", AT(http.max_request_line_bytes),
     .type = &type_int, .preset = "8192", .min = 64, .max = 64 * KIB,
     .unit = "bytes", .what = "The longest request line (method and path)."},
    {"http.maxHeaderBytes", AT(http.max_header_bytes), .type = &type_int,
     .preset = "16384", .min = 128, .max = MIB, .unit = "bytes",
     .what = "All header lines of a request together."},
    {"http.maxHeaders", AT(http.max_headers), .type = &type_int,
     .preset = "100", .min = 1, .max = 1000,
     .what = "Header lines in a request."},
    {"http.maxBodyBytes", AT(http.max_body_bytes), .type = &type_int,
     .preset = "2097152", .min = 1, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest request body."},
    {"http.maxUnsentBytes", AT(http.max_unsent_bytes), .type = &type_int,
     .preset = "1048576", .min = KIB, .max = 64 * MIB, .unit = "bytes",
     .what = "Unsent bytes per connection before a stream to a slow reader "
             "is paused."},
    {"http.maxBufferedBytes", AT(http.max_buffered_bytes), .type = &type_int,
     .preset = "268435456", .min = 64 * KIB, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "All connection buffers together. Above it, requests that have "
             "not fully arrived are rejected and slow readers wait; a "
             "quarter above it, new connections are rejected."},
    {"http.headerTimeoutMs", AT(http.header_timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "Time from the first byte of a request to the end of its "
             "headers."},
    {"http.bodyTimeoutMs", AT(http.body_timeout_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "Time from the end of the headers to the end of the body."},
    {"http.idleTimeoutMs", AT(http.idle_timeout_ms), .type = &type_int,
     .preset = "75000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a connection may stay open between requests."},
    {"http.replyTimeoutMs", AT(http.reply_timeout_ms), .type = &type_int,
     .preset = "120000", .min = SHORTEST_MS, .max = 24 * HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a request may wait for the start of its response."},
    {"http.writeTimeoutMs", AT(http.write_timeout_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a reader may accept no bytes of a response before the "
             "connection is closed."},
    {"http.heartbeatMs", AT(http.heartbeat_ms), .type = &type_int,
     .preset = "15000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long an event stream may be silent before a comment is "
             "sent to keep it open."},
    {"http.allowedHosts", AT(http.allowed_hosts), .type = &type_list,
     .preset = "[]", .elements = &host_elements,
     .what = "Host names of this server, in addition to localhost and IP "
             "addresses; a name with a port is accepted only with that port. "
             "Requests to other hosts are rejected, except for /healthz and "
             "/readyz."},
    {"http.allowedOrigins", AT(http.allowed_origins), .type = &type_list,
     .preset = "[]", .elements = &origin_elements,
     .what = "Origins whose web pages may call from a browser (CORS), in "
             "addition to the server's own."},

    {"metrics.public", AT(metrics.is_public), .type = &type_bool,
     .preset = "true",
     .what = "Serve `/metrics` without a token. If false, it needs a token "
             "with the scope `metrics` or `admin`, except on "
             "`metrics.listen`."},
    {"metrics.listen", AT(metrics.listen), .type = &type_address,
     .preset = "\"\"", .needs_restart = true,
     .what = "An extra address, without TLS, that serves only `/metrics`, "
             "`/healthz` and `/readyz`, without a token: anyone who can "
             "reach it can read them."},

    {"web.enabled", AT(web.enabled), .type = &type_bool, .preset = "true",
     .what = "Serve the dashboard to browsers that open `/`. It does not "
             "affect the API."},
    {"web.folder", AT(web.folder), .type = &type_file, .preset = "\"\"",
     .what = "For developers of the dashboard: a folder like `web/` of the "
             "source, whose files are read for each request. Empty: the "
             "files in the binary."},

    {"ws.maxFrameBytes", AT(ws.max_frame_bytes), .type = &type_int,
     .preset = "8388608", .min = 125, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest frame accepted from a WebSocket. The default fits "
             "a text of 1 MiB, whatever its escapes."},
    {"ws.maxMessageBytes", AT(ws.max_message_bytes), .type = &type_int,
     .preset = "8388608", .min = 125, .max = 64 * MIB, .unit = "bytes",
     .what = "The largest message, over all its frames. A larger frame or "
             "message closes the WebSocket with code 1009."},
    {"ws.timeoutMs", AT(ws.timeout_ms), .type = &type_int, .preset = "90000",
     .min = SHORTEST_MS, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long a WebSocket may receive nothing before it is closed. "
             "After a third of the time a ping is sent, and any answer keeps "
             "it open."},
    {"ws.closeTimeoutMs", AT(ws.close_timeout_ms), .type = &type_int,
     .preset = "5000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long to wait for the answer to a close."},

    {"rate.perUser", AT(rate.per_user), .type = &type_int, .preset = "1000",
     .min = 0, .max = 1000000, .unit = "requests a second",
     .what = "Requests from one user, with all tokens together. Over HTTP, "
             "more are rejected; on the hub, the server reads more slowly "
             "(task.chunk, task.result and ping do not count). 0: no limit."},
    {"rate.userBurst", AT(rate.user_burst), .type = &type_int, .preset = "5000",
     .min = 1, .max = 10 * 1000 * 1000,
     .what = "Requests that one user may send at once before `rate.perUser` "
             "applies."},
    {"rate.perAddress", AT(rate.per_address), .type = &type_int,
     .preset = "2000", .min = 0, .max = 1000000, .unit = "requests a second",
     .what = "Requests from one address, or one /64 of IPv6, of all users "
             "together; `/healthz` and `/readyz` do not count. 0: no limit."},
    {"rate.addressBurst", AT(rate.address_burst), .type = &type_int,
     .preset = "10000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "Requests that one address may send at once before "
             "`rate.perAddress` applies."},
    {"rate.failuresPerMinute", AT(rate.failures_per_minute), .type = &type_int,
     .preset = "60", .min = 0, .max = 1000000, .unit = "requests a minute",
     .what = "Requests with an invalid token from one address. Requests with "
             "a valid token are accepted regardless. 0: no limit."},
    {"rate.failureBurst", AT(rate.failure_burst), .type = &type_int,
     .preset = "100", .min = 1, .max = 10 * 1000 * 1000,
     .what = "Requests with an invalid token that may arrive at once before "
             "`rate.failuresPerMinute` applies."},
    {"rate.exempt", AT(rate.exempt), .type = &type_list,
     .preset = "[\"127.0.0.0/8\",\"[::1]\"]", .elements = &network_elements,
     .what = "Addresses without a limit per address, here and in "
             "`http.maxConnectionsPerAddress`: this machine, or a reverse "
             "proxy elsewhere. The limits per user still apply."},

    {"agents.list", AT(agents), .type = &type_cards, .preset = "[]",
     .what = "The agents that messages can be sent to."},
    {"agents.defaults", AT(agents), .type = &type_defaults, .preset = "{}",
     .what = "Defaults for every agent of the list. Objects are merged; a "
             "list or `null` in the agent replaces the default. `signalbox "
             "check --print` shows each agent with its defaults."},
    {"agents.default", AT(default_agent), .type = &type_name_or_none,
     .preset = "\"\"",
     .what = "The agent that gets messages for which no other agent is "
             "chosen; empty: such messages are rejected. `default` in "
             "`agents.list` does the same."},
    {"agents.owner", AT(agents_owner), .type = &type_text, .preset = "\"\"",
     .max = PRINCIPAL_NAME_MAX,
     .what = "The user who, besides admins, may register names that rules "
             "and settings mention: `agents.default`, a `backup` in "
             "`agents.list`, and agents of the rules that have no `owner` "
             "there. Empty: only admins."},

#include "server/config/choosing_rows.inc"

    {"processes", AT(processes), .type = &type_map, .preset = "{}",
     .elements = &process_elements,
     .what = "Programs that agents run as: `url` `process:NAME`, or "
             "`process` in `agents.list`, which may also contain a "
             "definition for that agent alone."},

    {"models", AT(models), .type = &type_map, .preset = "{}",
     .elements = &model_elements,
     .what = "Models behind OpenAI's `/v1/chat/completions` or Anthropic's "
             "`/v1/messages` that agents use: `url` `model:NAME`, or `model` "
             "in `agents.list`. `NAME/MODEL` selects that model of the "
             "endpoint NAME."},

    {"registry.maxAgents", AT(registry.max_agents), .type = &type_int,
     .preset = "100000", .min = 1, .max = 1000000,
     .what = "Agents, including those of the configuration; more are "
             "rejected."},
    {"registry.maxSkills", AT(registry.max_skills), .type = &type_int,
     .preset = "500000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "Skills of all agents together."},
    {"registry.maxAgentsPerUser", AT(registry.max_agents_per_user),
     .type = &type_int, .preset = "1000", .min = 0, .max = 1000000,
     .what = "Agents that one user may register, so that one user cannot use "
             "up the limit for all. 0: no limit per user."},
    {"registry.maxCardBytesPerUser", AT(registry.max_card_bytes_per_user),
     .type = &type_int, .preset = "8388608", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "Stored size of the cards of one user's agents together; in "
             "memory an agent takes many times that. Does not apply to "
             "admins. 0: no limit."},
    {"registry.maxSkillsPerUser", AT(registry.max_skills_per_user),
     .type = &type_int, .preset = "2000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "Skills of one user's agents together: every search and every "
             "choice compares all visible ones. Does not apply to admins. 0: "
             "no limit."},
    {"registry.maxIndexBytesPerUser", AT(registry.max_index_bytes_per_user),
     .type = &type_int, .preset = "33554432", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "Size of one user's agents in the index: a vector for each "
             "skill, and the words, where an agent's own words are repeated "
             "in each of its skills. 0: no limit."},
    {"registry.maxAgentsPerOrg", AT(registry.max_agents_per_org),
     .type = &type_int, .preset = "5000", .min = 0, .max = 1000000,
     .what = "Agents that the users of one org may register together. 0: no "
             "limit."},
    {"registry.maxSkillsPerOrg", AT(registry.max_skills_per_org),
     .type = &type_int, .preset = "10000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "Skills of one org's agents together. 0: no limit."},
    {"registry.maxCardBytesPerOrg", AT(registry.max_card_bytes_per_org),
     .type = &type_int, .preset = "41943040", .min = 0, .max = 64LL * KIB * MIB,
     .unit = "bytes",
     .what = "Stored size of the cards of one org's agents together. 0: no "
             "limit."},
    {"registry.maxIndexBytesPerOrg", AT(registry.max_index_bytes_per_org),
     .type = &type_int, .preset = "167772160", .min = 0,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "Size of one org's agents in the index. 0: no limit."},
    {"registry.skillsPerMinute", AT(registry.skills_per_minute),
     .type = &type_int, .preset = "3000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "Agents and skills that one user may register or change, with "
             "bursts of twice as many; an unchanged card counts a quarter. "
             "Does not apply to admins. 0: no limit."},
    {"registry.maxSearched", AT(registry.max_searched), .type = &type_int,
     .preset = "4096", .min = 0, .max = 10 * 1000 * 1000,
     .what = "Agents and skills published by users that are searched and "
             "chosen from. If there are more, each user has the same share, "
             "and agents beyond it are found only by name. Agents of the "
             "configuration and of admins, and those visible only to an org "
             "or their owner, do not count. 0: no limit."},

    {"registry.review", AT(registry.is_reviewed), .type = &type_bool,
     .preset = "false",
     .what = "Hold a card that a user makes public, or changes while it is "
             "public, until an admin approves it. The approved version stays "
             "in use meanwhile. Cards that are public already stay public."},

    {"seal.keyFile", AT(secrets.key_file), .type = &type_rules,
     .preset = "\"auto\"", .needs_restart = true,
     .what = "The file with the key that encrypts the credentials of cards "
             "in the database: 64 hexadecimal digits, outside the data "
             "folder. `auto` is `signalbox.key` of systemd's credentials, "
             "else `~/.config/signalbox/card.key`, which is created if it "
             "does not exist. Empty: they are not encrypted."},
    {"seal.keyVariable", AT(secrets.key_variable), .type = &type_variable,
     .explain = setting_explain_variable, .preset = "\"\"",
     .needs_restart = true,
     .what = "The name of the environment variable that holds the key, "
             "instead of a file."},
    {"seal.ignoreWrongKey", AT(secrets.ignores_wrong_key), .type = &type_bool,
     .preset = "false", .needs_restart = true,
     .what = "Start even if credentials were encrypted with another key. "
             "Their agents are called without them, and they are lost when "
             "the card is next changed."},

    {"search.semanticWeight", AT(search.semantic_weight), .type = &type_real,
     .preset = "0.7", .min = 0, .max = 1,
     .what = "The weight in a score of how close a skill's meaning is to the "
             "query."},
    {"search.textWeight", AT(search.text_weight), .type = &type_real,
     .preset = "0.3", .min = 0, .max = 1,
     .what = "The weight in a score of how many words a skill shares with "
             "the query. One of the two weights must be more than 0."},
    {"search.fusion", AT(search.fusion), .type = &type_enum,
     .preset = "\"weighted\"", .names = fusion_names,
     .what = "How the two parts become one score: `weighted` is their "
             "weighted sum; `rrf` combines the ranks in both rankings and "
             "ignores the weights."},
    {"search.order", AT(search.order), .type = &type_enum,
     .preset = "\"spread\"", .names = order_names,
     .what = "The order of the first ten results: `spread` moves the third "
             "and every further agent of one creator outside the requester's "
             "org behind those of other creators with at least 0.8 of its "
             "score; `plain` sorts by score alone. Admins get the plain "
             "order; a search may select either."},

    {"outgoing.allow", AT(outgoing.allow), .type = &type_list, .preset = "[]",
     .elements = &range_elements,
     .what = "Private addresses that agents may make the server connect to: "
             "this machine, private networks and the like, which are "
             "otherwise rejected. With a port, only that port."},
    {"outgoing.proxy", AT(outgoing.proxy), .type = &type_proxy,
     .explain = setting_explain_proxy, .preset = "\"\"",
     .what = "The HTTP proxy for outgoing requests; empty: none, whatever "
             "the environment says. Since the proxy makes the connections, "
             "it must reject private addresses itself."},
    {"outgoing.caFile", AT(outgoing.ca_file), .type = &type_file,
     .preset = "\"\"",
     .what = "Certificates (PEM) to trust in addition to the system's."},
    {"outgoing.maxOpen", AT(outgoing.max_open), .type = &type_int,
     .preset = "256", .min = 1, .max = 100000,
     .what = "Outgoing requests in progress; more are rejected. One host may "
             "have a quarter of them."},
    {"outgoing.maxPerHost", AT(outgoing.max_per_host), .type = &type_int,
     .preset = "16", .min = 1, .max = 10000,
     .what = "Connections to one host; more requests wait for one of them."},
    {"outgoing.maxKept", AT(outgoing.max_kept), .type = &type_int,
     .preset = "64", .min = 0, .max = 10000,
     .what = "Idle connections that are kept open for the next request."},
    {"outgoing.connectTimeoutMs", AT(outgoing.connect_timeout_ms),
     .type = &type_int, .preset = "5000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "Time to resolve and connect to a host, including TLS."},
    {"outgoing.maxHeaderBytes", AT(outgoing.max_header_bytes),
     .type = &type_int, .preset = "65536", .min = KIB, .max = MIB,
     .unit = "bytes", .what = "All header lines of a response together."},
    {"outgoing.maxBodyBytes", AT(outgoing.max_body_bytes), .type = &type_int,
     .preset = "8388608", .min = 1, .max = 1024 * MIB, .unit = "bytes",
     .what = "The largest response body."},

    {"embed.kind", AT(embed.kind), .type = &type_enum, .preset = "\"builtin\"",
     .names = embed_names, .needs_restart = true,
     .what = "The source of vectors: `builtin` uses both models in the "
             "binary, the table first and the transformer where the table is "
             "unsure; `table` and `transformer` are either of them alone; "
             "`minilm` is all-MiniLM-L6-v2 on a thread of its own "
             "(`signalbox model install minilm` downloads it); `http` is a "
             "provider with OpenAI's `/v1/embeddings`."},
    {"embed.secondMargin", AT(embed.second_margin), .type = &type_real,
     .preset = "3", .min = 0, .max = 10,
     .what = "With `builtin`: the transformer is skipped if the table's "
             "choice exceeds the threshold by at least this much, in units "
             "of the distance between the agent's median score and its 95th "
             "percentile for other agents' messages. 0: the transformer runs "
             "where the table is unsure; 10: it runs almost always."},
    {"embed.modelFile", AT(embed.model_file), .type = &type_file,
     .preset = "\"\"", .needs_restart = true,
     .what = "The file of the minilm model; empty: `models/minilm.sbm` in "
             "the data folder."},
    {"embed.cacheEntries", AT(embed.cache_entries), .type = &type_int,
     .preset = "4096", .min = 0, .max = 1000000,
     .what = "Cached vectors of queries, reused for the same org, or for the "
             "same user without one; up to 64 MiB. Applies to `minilm` and "
             "`http`; the models in the binary have no cache."},
    {"embed.maxWaiting", AT(embed.max_waiting), .type = &type_int,
     .preset = "4096", .min = 1, .max = 1000000,
     .what = "Texts that may wait for their vectors; a quarter is reserved "
             "for queries."},
    {"embed.maxWaitingBytes", AT(embed.max_waiting_bytes), .type = &type_int,
     .preset = "33554432", .min = MIB, .max = 1024 * MIB, .unit = "bytes",
     .what = "Memory of those texts and their vectors."},
    {"embed.timeoutMs", AT(embed.timeout_ms), .type = &type_int,
     .preset = "60000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a query may wait for its vector in all; a text to be "
             "indexed may wait ten times as long."},

    {"embed.http.url", AT(embed.http.url), .type = &type_endpoint,
     .explain = setting_explain_endpoint, .preset = "\"\"",
     .needs_restart = true,
     .what = "The provider's URL, including the path: "
             "`http://127.0.0.1:11434/v1/embeddings`. It may be on this "
             "machine or in a private network, regardless of "
             "`outgoing.allow`."},
    {"embed.http.model", AT(embed.http.model), .type = &type_text,
     .preset = "\"\"", .max = 127, .needs_restart = true,
     .what = "The model, by the provider's name for it."},
    {"embed.http.keyVariable", AT(embed.http.key_variable),
     .type = &type_variable, .explain = setting_explain_variable,
     .preset = "\"\"", .needs_restart = true,
     .what = "The name of the environment variable that holds the provider's "
             "key; empty: no key is sent."},
    {"embed.http.dimensions", AT(embed.http.dimensions), .type = &type_int,
     .preset = "0", .min = 0, .max = 8192, .needs_restart = true,
     .what = "The length of a vector, requested from the provider. 0: the "
             "model's own length, without a request for one."},
    {"embed.http.queryPrefix", AT(embed.http.query_prefix), .type = &type_text,
     .preset = "\"\"", .max = 1024, .needs_restart = true,
     .what = "A prefix for every query, for models that expect one: "
             "`\"query: \"`."},
    {"embed.http.documentPrefix", AT(embed.http.document_prefix),
     .type = &type_text, .preset = "\"\"", .max = 1024, .needs_restart = true,
     .what = "A prefix for every text to be indexed: `\"passage: \"`."},
    {"embed.http.batch", AT(embed.http.batch), .type = &type_int,
     .preset = "64", .min = 1, .max = 2048,
     .what = "Texts in one request; fewer if their vectors would have more "
             "than 16384 numbers together."},
    {"embed.http.maxRequests", AT(embed.http.max_requests), .type = &type_int,
     .preset = "4", .min = 1, .max = 64,
     .what = "Requests at the same time; if there may be several, one is "
             "reserved for queries."},
    {"embed.http.maxTextBytes", AT(embed.http.max_text_bytes),
     .type = &type_int, .preset = "8192", .min = 16, .max = 64 * KIB,
     .unit = "bytes", .needs_restart = true,
     .what = "Longer texts are cut off here."},
    {"embed.http.timeoutMs", AT(embed.http.timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "How long a response may take."},
    {"embed.http.breakerFailures", AT(embed.http.breaker_failures),
     .type = &type_int, .preset = "5", .min = 1, .max = 1000,
     .what = "Failures in a row after which requests to the provider are "
             "suspended."},
    {"embed.http.breakerPauseMs", AT(embed.http.breaker_pause_ms),
     .type = &type_int, .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long they are suspended; then one request tests the "
             "provider. A `Retry-After` of the provider is respected up to "
             "ten minutes."},

    {"tasks.maxUnfinished", AT(tasks.max_unfinished), .type = &type_int,
     .preset = "100000", .min = 1, .max = 10 * 1000 * 1000,
     .what = "Unfinished tasks; at the limit new messages are rejected. One "
             "in 50 is reserved for admins and for delegated tasks."},
    {"tasks.maxUnfinishedBytes", AT(tasks.max_unfinished_bytes),
     .type = &type_int, .preset = "268435456", .min = 64 * KIB,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "Memory of those tasks together; at the limit new messages are "
             "rejected."},
    {"tasks.maxUnfinishedPerUser", AT(tasks.max_unfinished_per_user),
     .type = &type_int, .preset = "50000", .min = 0, .max = 10 * 1000 * 1000,
     .what = "Unfinished tasks of one user, including delegated ones, and "
             "never more than twice (an org's: four times) as many as are "
             "still free, so that other users find room. Delegated tasks may "
             "reach double that; for admins only this limit applies. 0: no "
             "limit per user."},
    {"tasks.maxUnfinishedBytesPerUser", AT(tasks.max_unfinished_bytes_per_user),
     .type = &type_int, .preset = "134217728", .min = 0,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "Memory of one user's unfinished tasks; it shrinks in the same "
             "way. 0: no limit per user."},
    {"tasks.timeoutMs", AT(tasks.timeout_ms), .type = &type_int,
     .preset = "600000", .min = 1, .max = 24 * HOUR_MS, .unit = "milliseconds",
     .what = "How long a task may take unless its message sets a time; then "
             "it expires."},

    {"gate.maxAgeMs", AT(gate.max_age_ms), .type = &type_int, .preset = "0",
     .min = 0, .max = INT64_C(366) * 24 * HOUR_MS, .unit = "milliseconds",
     .what = "Reject an envelope whose timestamp is older, even if the rules "
             "allow it (`timestamps.age`). 0: any age is accepted, and the "
             "decision marks an old one as `stale`."},

    {"deliver.maxInFlight", AT(deliver.max_in_flight), .type = &type_int,
     .preset = "10000", .min = 1, .max = 1000 * 1000,
     .what = "Tasks in progress at all agents together; more wait, except "
             "delegated ones."},
    {"deliver.inFlight", AT(deliver.in_flight), .type = &type_int,
     .preset = "64", .min = 1, .max = AGENT_IN_FLIGHT_MAX,
     .what = "Tasks in progress at one agent whose card has no "
             "`limits.inFlight`."},
    {"deliver.queue", AT(deliver.queue), .type = &type_int, .preset = "10000",
     .min = 1, .max = AGENT_QUEUE_MAX,
     .what = "Unfinished tasks of one agent whose card has no "
             "`limits.queue`; more are rejected."},
    {"deliver.maxAttempts", AT(deliver.max_attempts), .type = &type_int,
     .preset = "8", .min = 1, .max = 1000,
     .what = "Delivery attempts that may fail before the task fails."},
    {"deliver.retryMs", AT(deliver.retry_ms), .type = &type_int,
     .preset = "500", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "The approximate pause before the second attempt; each further "
             "pause is twice as long."},
    {"deliver.retryMaxMs", AT(deliver.retry_max_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "The longest pause."},
    {"deliver.breakerFailures", AT(deliver.breaker_failures), .type = &type_int,
     .preset = "5", .min = 1, .max = 1000,
     .what = "Failures in a row after which deliveries to an agent are "
             "suspended."},
    {"deliver.breakerPauseMs", AT(deliver.breaker_pause_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long they are suspended; then one task tests the agent."},
    {"deliver.wakeMs", AT(deliver.wake_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = AGENT_WAKE_MAX_MS,
     .unit = "milliseconds",
     .what = "How long an agent may take to wake up if its card has no "
             "`wake.timeoutMs`."},
    {"deliver.onOffline", AT(deliver.on_offline), .type = &type_enum,
     .preset = "\"refuse\"", .names = offline_names,
     .what = "What happens to a message for an agent that is neither "
             "connected nor can be woken: `refuse` rejects it; `hold` keeps "
             "it until the agent connects or the task expires."},
    {"deliver.silenceMs", AT(deliver.silence_ms), .type = &type_int,
     .preset = "60000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long an agent that is reached over HTTP may pause within a "
             "response."},
    {"deliver.inputMs", AT(deliver.input_ms), .type = &type_int,
     .preset = "30000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds",
     .what = "How long a dialog of an agent's program waits while no client "
             "that follows the task or its root offers to answer "
             "(`Signalbox-Answers: input`); then it is cancelled."},
    {"deliver.maxGatheredBytes", AT(deliver.max_gathered_bytes),
     .type = &type_int, .preset = "268435456", .min = MIB,
     .max = 64LL * KIB * MIB, .unit = "bytes",
     .what = "Memory for the parts of streamed answers that are not complete "
             "yet, of all tasks together."},

    {"hub.maxOpen", AT(hub.max_open), .type = &type_int, .preset = "256",
     .min = 1, .max = 100000,
     .what = "Unanswered requests of one connection; more are rejected."},
    {"hub.maxListening", AT(hub.max_listening), .type = &type_int,
     .preset = "1024", .min = 1, .max = 1000 * 1000,
     .what = "Tasks that one connection may follow at once."},
    {"hub.messagesPerSecond", AT(hub.messages_per_second), .type = &type_int,
     .preset = "0", .min = 0, .max = 1000 * 1000,
     .what = "Messages a second from one connection, each of a batch "
             "counted; above it the server reads more slowly. 0: no limit."},

    {"delegation.timeoutMs", AT(delegation.timeout_ms), .type = &type_int,
     .preset = "180000", .min = SHORTEST_MS, .max = DAY_MS,
     .unit = "milliseconds",
     .what = "How long a delegated task may take if the request sets no "
             "time; never longer than the task it is part of."},
    {"delegation.maxDepth", AT(delegation.max_depth), .type = &type_int,
     .preset = "5", .min = 0, .max = DELEGATION_CHAIN_MAX,
     .what = "How many levels deep an agent whose card has no "
             "`delegation.maxDepth` may delegate. 1: its delegates may not "
             "delegate further; 0: no delegation."},
    {"delegation.maxConcurrent", AT(delegation.max_concurrent),
     .type = &type_int, .preset = "16", .min = 0, .max = AGENT_CONCURRENT_MAX,
     .what = "Delegations of one agent in progress at once, if its card has "
             "no `delegation.maxConcurrent`. Further ones wait. 0: it may "
             "not delegate."},
    {"delegation.maxWaiting", AT(delegation.max_waiting), .type = &type_int,
     .preset = "1000", .min = 0, .max = MILLION,
     .what = "Delegations of one agent beyond `maxConcurrent` that wait "
             "until others finish, in order of arrival; their time runs "
             "meanwhile. More are rejected. 0: none wait."},
    {"delegation.maxPerRoot", AT(delegation.max_per_root), .type = &type_int,
     .preset = "256", .min = 1, .max = MILLION,
     .what = "Tasks that agents may create because of one message, at all "
             "depths together."},
    {"delegation.maxOpen", AT(delegation.max_open), .type = &type_int,
     .preset = "100000", .min = 1, .max = MILLION,
     .what = "Delegations of all agents that are in progress or have a "
             "result that has not been fetched."},
    {"delegation.maxUnacked", AT(delegation.max_unacked), .type = &type_int,
     .preset = "1000", .min = 1, .max = MILLION,
     .what = "Results kept for one agent until it acknowledges them. Above "
             "it, the agent's delegations are rejected with a hint to send "
             "`delegation.ack`."},
    {"delegation.keepMs", AT(delegation.keep_ms), .type = &type_int,
     .preset = "86400000", .min = SECOND_MS, .max = 30LL * DAY_MS,
     .unit = "milliseconds",
     .what = "How long a result is kept for an agent that does not "
             "acknowledge it."},
    {"delegation.onDisconnect", AT(delegation.on_disconnect),
     .type = &type_enum, .preset = "\"keep\"", .names = disconnect_names,
     .what = "What happens to delegated work when the connection of the "
             "agent that delegated it ends, unless the request has "
             "`onDisconnect`: `keep` continues and keeps the result; "
             "`cancel` cancels it."},

    {"ledger.feePpm", AT(ledger.fee_ppm), .type = &type_int, .preset = "0",
     .min = 0, .max = MILLION, .unit = "millionths",
     .what = "The platform's share of each price that is earned, rounded "
             "down. The platform earns the whole price of an agent without a "
             "creator."},
    {"ledger.perDay", AT(ledger.per_day), .type = &type_int, .preset = "0",
     .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "How much one user may spend in a day (UTC), including "
             "reservations. 0: limited only by the balance."},
    {"ledger.perConversation", AT(ledger.per_conversation), .type = &type_int,
     .preset = "0", .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "How much the messages of one conversation may cost. Delegated "
             "tasks belong to other conversations; `ledger.perRoot` limits "
             "them. 0: no limit."},
    {"ledger.perRoot", AT(ledger.per_root), .type = &type_int, .preset = "0",
     .min = 0, .max = BUDGET_MAX, .unit = "micro-units",
     .what = "How much a message may cost together with all that agents "
             "delegate because of it, at any depth. 0: no limit."},
    {"ledger.delegationAllowance", AT(ledger.delegation_allowance),
     .type = &type_int, .preset = "100000", .min = 0, .max = BUDGET_MAX,
     .unit = "micro-units",
     .what = "How much agents may spend on delegations because of a message "
             "without `max_cost_micros`, at any depth, in addition to its "
             "price. 0: only free delegations."},
    {"ledger.currency", AT(ledger.currency), .type = &type_text,
     .preset = "\"USD\"", .min = 1, .max = AGENT_CURRENCY_MAX,
     .what = "The name of the unit of account. A card may give its price as "
             "an amount in this currency; any other is rejected. Existing "
             "amounts are not converted."},

    {"retention.days", AT(retention.days), .type = &type_int, .preset = "30",
     .min = 1, .max = 36500, .unit = "days",
     .what = "How long finished tasks and other old records are kept."},
    {"retention.rows", AT(retention.rows), .type = &type_int,
     .preset = "1000000", .min = 1, .max = 1000 * 1000 * 1000,
     .what = "How many finished tasks and how many events are kept; the "
             "oldest are deleted first."},

    {"traces.endpoint", AT(traces.endpoint), .type = &type_endpoint,
     .explain = setting_explain_endpoint, .preset = "\"\"",
     .what = "An OpenTelemetry collector that accepts OTLP over HTTP, "
             "including the path: `http://127.0.0.1:4318/v1/traces`. It gets "
             "a span for each step of a finished task, without any text of "
             "users or agents. It may be on this machine or in a private "
             "network, regardless of `outgoing.allow`. Empty: none."},
    {"traces.headersVariable", AT(traces.headers_variable),
     .type = &type_variable, .explain = setting_explain_variable,
     .preset = "\"\"",
     .what = "The name of the environment variable that holds headers for "
             "the collector, as `name=value,name=value`, such as "
             "`OTEL_EXPORTER_OTLP_HEADERS`; empty: no headers."},
    {"traces.service", AT(traces.service), .type = &type_text,
     .preset = "\"signalbox\"", .max = 127,
     .what = "The name of this server in the spans (`service.name`)."},
    {"traces.maxWaiting", AT(traces.max_waiting), .type = &type_int,
     .preset = "2048", .min = 1, .max = 100000,
     .what = "Spans that may wait for the collector; above it the oldest are "
             "dropped and counted."},
    {"traces.batch", AT(traces.batch), .type = &type_int, .preset = "512",
     .min = 1, .max = 10000, .what = "The most spans in one request."},
    {"traces.delayMs", AT(traces.delay_ms), .type = &type_int, .preset = "1000",
     .min = SHORTEST_MS, .max = HOUR_MS, .unit = "milliseconds",
     .what = "How long spans wait for more, to be sent together."},
    {"traces.timeoutMs", AT(traces.timeout_ms), .type = &type_int,
     .preset = "10000", .min = SHORTEST_MS, .max = HOUR_MS,
     .unit = "milliseconds", .what = "How long a response may take."},
};

const struct setting_table config_settings = {rows,
                                              sizeof(rows) / sizeof(rows[0])};
_Static_assert(sizeof(rows) / sizeof(rows[0]) <= SETTINGS_MAX,
               "struct load has a position for each row");
