/* The table of calls: the whole HTTP API at once, searched from top to bottom.
 * With a hundred rows that takes some hundred nanoseconds. Each row must have
 * an access rule: without one it is rejected for every caller. */
#include "api/calls.h"

#include <stdint.h>

#include "api/hub/internal.h"
#include "api/internal.h"
#include "base/wordfind.h"
#include "model/agent.h"
#include "model/caller.h"
#include "model/decision.h"
#include "model/envelope.h"

/* Arguments that several calls have. */

enum {
    ARG_BYTES = 8192,       /* of an argument without a limit of its own */
    WORD_BYTES = ARG_BYTES, /* a longer one is not one of the words either */
};

#define CURSOR_MUST  "a next_cursor of this list"
#define CURSOR_ABOUT "the `next_cursor` of the page before"
#define WORDS_MUST   "words to search for, up to 256 bytes"
#define STATES       "ACTIVE|IDLE|BUSY|SLOW|ERROR|DEAD"
#define STATUSES                                                 \
    "accepted|held|escalated|dropped|queued|dispatched|working|" \
    "input_required|completed|failed|cancelled|expired"

#define LAYER_WORD(id, number, name, words) name "|"

/* clang-format off */
#define ARGS(...) (const struct field[]){__VA_ARGS__, {.name = NULL}}
#define NAME(n, most, what) {n, FIELD_NAME, 0, most, .about = what}
#define INT(n, least, most, what) {n, FIELD_INT, least, most, .about = what}
#define WORD_MUST(n, words, how, what) \
    {n, FIELD_WORD, 0, WORD_BYTES, .of = words, .must = how, .about = what}
#define WORD(n, words, what) WORD_MUST(n, words, NULL, what)
#define YES_NO(n, what) WORD_MUST(n, "true|false|1|0", "true or false", what)
#define TIME(n, what) \
    {n, FIELD_INT, 0, INT64_MAX, .must = "Unix time in milliseconds", \
     .about = what}
#define SHARE(n, what) {n, FIELD_REAL, 0, 1, .about = what}
#define LIMIT \
    {"limit", FIELD_INT, 1, LIST_MAX, .unset = "50", \
     .about = "how many at most"}
#define CURSOR_INT(least) \
    {"cursor", FIELD_INT, least, INT64_MAX, .must = CURSOR_MUST, \
     .about = CURSOR_ABOUT}
#define CURSOR \
    {"cursor", FIELD_NAME, 0, ARG_BYTES, .must = CURSOR_MUST, \
     .about = CURSOR_ABOUT}
#define STATE \
    {"state", FIELD_WORD, 0, WORD_BYTES, .of = STATES, .any_case = true, \
     .about = "its state"}
/* clang-format on */
#define TAG          NAME("tag", ARG_BYTES, "with this tag")
#define ORG          NAME("org", ARG_BYTES, "of this org")
#define STATUS       WORD("status", STATUSES, "its status")
#define CONVERSATION NAME("conversation_id", ARG_BYTES, "of this conversation")
#define TASK_ID      NAME("task_id", ARG_BYTES, "of this task")
#define USER         NAME("user", ARG_BYTES, "of this user")
#define FORMAT \
    WORD_MUST("format", "json|csv", "json or csv", "the form of the answer")

#define ROW(method, path, name, who) \
    STR(method), STR(path), call_##name, #name, who

/* A page of a list. */
#define LIST(item) "{items: [" item "]; next_cursor: string|null}"

static const struct call_row table[] = {
    {ROW("GET", "/", front, PUBLIC), "text/plain",
     .about = "The dashboard for browsers, a list of the calls for programs"},
    {ROW("GET", "/assets/:folder/*", assets, PUBLIC), "*/*",
     .about = "Files of the dashboard"},
    {ROW("GET", "/openapi.json", openapi, PUBLIC), "any",
     .about = "The HTTP API as an OpenAPI 3.1 document"},
    {ROW("GET", "/healthz", healthz, PUBLIC | HEALTH), "Health",
     .about = "Whether the server is there"},
    {ROW("GET", "/readyz", readyz, PUBLIC | HEALTH), "200,503 Ready",
     .about = "Whether it accepts work"},
    {ROW("GET", "/metrics", metrics, PUBLIC | FIGURES), "text/plain",
     .about = "Metrics for Prometheus"},
    {ROW("GET", "/hub", hub, ANY_TOKEN), "101",
     .about = "The WebSocket of agents; its methods have scopes of their own"},

    {ROW("POST", "/api/messages", messages_post, SCOPE_SEND), "200,202 Answer",
     .about = "Send a message to an agent", .body = &speak_message_fields,
     .hub = "message.send", .extra = KEYED | EVENTS},
    {ROW("POST", "/api/envelopes", envelopes_post, SCOPE_SEND), "Pass",
     .about = "Send an envelope from one agent to another",
     .body = &speak_envelope_fields},
    {ROW("POST", "/api/delegate", delegate_post, SCOPE_SEND),
     "200,202 Delegated|Delegations", .about = "Delegate work to an agent",
     .body = &speak_delegate_fields, .or_body = &speak_orders_fields,
     .hub = "agent.delegate", .extra = KEYED | EVENTS},
    {ROW("GET", "/api/delegations/:key", delegations_get, SCOPE_READ),
     "Delegated", .about = "The state of a delegation",
     .hub = "delegation.get"},
    {ROW("POST", "/api/route", route_post, SCOPE_SEND), "Route",
     .about = "Which agent would get a message, and why",
     .body = &speak_message_fields},
    {ROW("POST", "/api/gate", gate_post, SCOPE_SEND), "Trial",
     .about = "Whether an envelope might go now, and why",
     .raw_body = "{envelope: {...}; trace?: bool}"},
    {ROW("GET", "/api/decisions", decisions_list, SCOPE_READ),
     LIST("ListedDecision|Decision|UnreadableDecision"),
     .about = "List decisions, newest first; those of others for admins",
     .args = ARGS(
         LIMIT, CURSOR_INT(1),
         WORD("layer", LAYERS(LAYER_WORD), "the layer that decided"),
         NAME("agent", AGENT_NAME_MAX, "the agent that got it"),
         WORD("verdict", "open|positive|negative|neutral", "what came of it"),
         YES_NO("overridden", "another agent was named by a person"),
         NAME("requester", PRINCIPAL_NAME_MAX, "whose message it was"),
         CONVERSATION, TASK_ID, TIME("since", "decided then or later"),
         TIME("until", "decided before then"),
         SHARE("min_score", "the least score"),
         SHARE("max_score", "the largest score"),
         {"type", FIELD_INT, 0, INT64_MAX,
          .must = "the number of a type of query, or 0",
          .about = "the type of query, as analytics counts them"},
         YES_NO("full", "with everything that was decided by"),
         {"q", FIELD_NAME, 0, ARG_BYTES, .must = WORDS_MUST,
          .about = "words in the text"})},
    {ROW("GET", "/api/decisions/:id", decisions_get, SCOPE_READ), "Decision",
     .about = "A decision: to its requester and admins"},
    {ROW("GET", "/api/tasks", tasks_list, SCOPE_READ), LIST("Task"),
     .about = "List tasks, newest first; those of others for admins",
     .args =
         ARGS(LIMIT, CURSOR_INT(1), STATUS,
              NAME("agent", ARG_BYTES, "the agent that has it"), CONVERSATION)},
    {ROW("GET", "/api/tasks/:id", tasks_get, SCOPE_READ), "TaskWithTurns",
     .about = "A task with its turns", .hub = "task.get"},
    {ROW("GET", "/api/tasks/:id/events", tasks_events, SCOPE_READ),
     "text/event-stream", .about = "The events of a task as a stream",
     .args = ARGS({"after", FIELD_NAME, 0, ARG_BYTES,
                   .about = "the id of the last event that was seen"}),
     .hub = "task.listen", .extra = ONLY_EVENTS},
    {ROW("GET", "/api/tasks/:id/tree", tasks_tree, SCOPE_READ), "Tree",
     .about = "A task with all that was delegated because of it, and its cost"},
    {ROW("GET", "/api/trees", trees_list, SCOPE_READ), LIST("TreeSummary"),
     .about = "List the trees of delegated tasks; those of others for admins",
     .args =
         ARGS(LIMIT, CURSOR, STATUS,
              {"agent", FIELD_NAME, 0, AGENT_NAME_MAX,
               .must = "the name of an agent", .about = "an agent in the tree"},
              NAME("user", ARG_BYTES, "whose message it was"),
              TIME("since", "begun then or later"))},
    {ROW("POST", "/api/tasks/:id/cancel", tasks_cancel, SCOPE_SEND),
     "TaskWithTurns",
     .about = "Cancel a task and all that was delegated because of it",
     .hub = "task.cancel", .extra = BARE},
    {ROW("POST", "/api/tasks/:id/input", tasks_input, SCOPE_SEND),
     "InputOutcome", .about = "Answer a question of the agent",
     .body = &speak_input_fields},
    {ROW("GET", "/api/conversations/:id", conversations_get, SCOPE_READ),
     "Conversation", .about = "The agent that a conversation has",
     .args = ARGS(NAME("owner", ARG_BYTES,
                       "whose it is; the caller's own if not given"))},
    {ROW("GET", "/api/agents", agents_list, SCOPE_READ),
     LIST("Agent|AgentBrief"),
     .about = "List the agents that the caller sees, by name",
     .args = ARGS(
         LIMIT, CURSOR, TAG, ORG, NAME("creator", ARG_BYTES, "of this user"),
         WORD("kind", "platform|managed|self-hosted", "how it is run"),
         WORD("visibility", "public|shared|private", "who sees it"), STATE,
         WORD("review", "waiting|rejected|hidden|reported", "its review"),
         NAME("q", 128, "part of the name, title or description"),
         WORD("brief", "true|false", "without the card"))},
    {ROW("POST", "/api/agents", agents_post, SCOPE_AGENTS), "200,201 Agent",
     .about = "Register an agent, or change it", .raw_body = "Card",
     .extra = MATCHED},
    /* Before :name: no agent can be called "search". */
    {ROW("GET", "/api/agents/search", search_get, SCOPE_READ), "Hits",
     .about = "Find agents by what they can do", .args = speak_search_args},
    {ROW("POST", "/api/agents/search", search_post, SCOPE_READ), "Hits",
     .about = "Find agents by what they can do", .body = &speak_search_fields,
     .hub = "agent.search"},
    {ROW("GET", "/api/agents/:name", agents_get, SCOPE_READ), "Agent",
     .about = "An agent with its card", .extra = MATCHED},
    {ROW("PUT", "/api/agents/:name", agents_put, SCOPE_AGENTS), "200,201 Agent",
     .about = "Register or replace an agent", .raw_body = "Card",
     .extra = MATCHED},
    {ROW("PATCH", "/api/agents/:name", agents_patch, SCOPE_AGENTS), "Agent",
     .about = "Change members of a card (a JSON merge patch)",
     .raw_body = "{...}", .extra = MATCHED},
    {ROW("DELETE", "/api/agents/:name", agents_delete, SCOPE_AGENTS), "204",
     .about = "Remove an agent", .extra = MATCHED | BARE},
    {ROW("GET", "/api/agents/:name/figures", agents_figures, SCOPE_READ),
     "Figures",
     .about = "How an agent does; errors, and who paused it, for its creator "
              "and admins"},
    {ROW("GET", "/api/fleet", fleet_get, SCOPE_READ), "Fleet",
     .about = "How several agents do, and how many there are of each state",
     .args = ARGS(
         NAME("names", FLEET_NAMES_MAX *(AGENT_NAME_MAX + 1),
              "up to 100 names, with commas between them"),
         WORD("counts", "true|false", "false: without the numbers per state"))},
    {ROW("POST", "/api/agents/:name/wake", agents_wake, SCOPE_AGENTS),
     "AgentNow", .about = "Start an agent's program, or call its wake address",
     .extra = BARE},
    {ROW("POST", "/api/agents/:name/restart", agents_restart, SCOPE_AGENTS),
     "AgentNow", .about = "Stop an agent's program and start it again",
     .extra = BARE},
    {ROW("POST", "/api/agents/:name/pause", agents_pause, SCOPE_AGENTS),
     "AgentNow", .about = "Let an agent get no more work", .extra = BARE},
    {ROW("POST", "/api/agents/:name/resume", agents_resume, SCOPE_AGENTS),
     "AgentNow", .about = "Let a paused agent get work again", .extra = BARE},
    {ROW("POST", "/api/agents/:name/approve", agents_approve, SCOPE_ADMIN),
     "Agent", .about = "Approve a card that was read",
     .body = &speak_approval_fields},
    {ROW("POST", "/api/agents/:name/reject", agents_reject, SCOPE_ADMIN),
     "Agent", .about = "Reject an agent", .body = &speak_objection_fields,
     .extra = BARE},
    {ROW("POST", "/api/agents/:name/hide", agents_hide, SCOPE_ADMIN), "Agent",
     .about = "Hide an agent from all but its creator and admins",
     .body = &speak_objection_fields, .extra = BARE},
    {ROW("POST", "/api/agents/:name/report", agents_report, SCOPE_SEND), "204",
     .about = "Tell the admins what is wrong with an agent",
     .body = &speak_report_fields},
    {ROW("GET", "/api/agents/:name/reports", agents_reports, SCOPE_ADMIN),
     LIST("Report"), .about = "What users reported about an agent"},
    {ROW("DELETE", "/api/agents/:name/reports", agents_dismiss, SCOPE_ADMIN),
     "204", .about = "Dismiss the reports", .extra = BARE},
    {ROW("GET", "/api/holds", holds_list, SCOPE_READ), LIST("Hold"),
     .about = "List what is held, and what it waits for",
     .args = ARGS(LIMIT, CURSOR_INT(0),
                  NAME("agent", ARG_BYTES, "the agent that it is for"),
                  NAME("rule", ARG_BYTES, "the rule that held it"),
                  NAME("reference", ARG_BYTES, "its subject"), TASK_ID)},
    {ROW("GET", "/api/escalations", escalations_list, SCOPE_READ),
     LIST("Escalation"),
     .about = "List what a person must decide or has decided",
     .args = ARGS(
         LIMIT, CURSOR_INT(1),
         WORD("status", "open|approved|rejected|redirected|expired|resolved",
              "its status"),
         WORD("kind", "rule|dead|late|expired", "why it was escalated"),
         NAME("agent", ARG_BYTES, "the agent that it is about"), TASK_ID)},
    {ROW("GET", "/api/escalations/:id", escalations_get, SCOPE_READ),
     "EscalationWithTask", .about = "An escalation"},
    {ROW("POST", "/api/escalations/:id/approve", escalations_approve,
         SCOPE_ESCALATIONS),
     "EscalationWithTask", .about = "Let the message go",
     .body = &speak_decided_fields, .extra = BARE},
    {ROW("POST", "/api/escalations/:id/reject", escalations_reject,
         SCOPE_ESCALATIONS),
     "EscalationWithTask", .about = "Fail the task",
     .body = &speak_decided_fields, .extra = BARE},
    {ROW("POST", "/api/escalations/:id/redirect", escalations_redirect,
         SCOPE_ESCALATIONS),
     "EscalationWithTask", .about = "Give it to another agent",
     .body = &speak_redirect_fields},
    {ROW("GET", "/api/grants", grants_list, SCOPE_READ), LIST("Grant"),
     .about = "List who may use which shared agent",
     .args = ARGS(LIMIT, CURSOR, NAME("agent", ARG_BYTES, "of this agent"))},
    {ROW("POST", "/api/grants", grants_post, SCOPE_AGENTS), "200,201 Grant",
     .about = "Let a user or an org use an agent", .body = &speak_grant_fields},
    {ROW("DELETE", "/api/grants/:id", grants_delete, SCOPE_AGENTS), "204",
     .about = "Revoke a grant", .extra = BARE},
    {ROW("GET", "/api/commands", commands_get, SCOPE_READ),
     "{items: [Command]; next_cursor: string|null}|Menu",
     .about = "The commands that address agents, or a menu of them for a chat "
              "platform",
     .args = ARGS(WORD_MUST("format", "telegram|discord|plain",
                            "\"telegram\", \"discord\" or \"plain\"; without "
                            "it the answer is a list",
                            "the menu of a platform, instead of the list"),
                  LIMIT, CURSOR, TAG, ORG),
     .extra = PLAIN},
    {ROW("GET", "/api/tools", tools_get, ANY_TOKEN), "any",
     .about = "The tools with which a model delegates to agents",
     .args = ARGS(WORD_MUST(
         "format", "openai|anthropic",
         "\"openai\" or \"anthropic\"; without it the answer has both",
         "only for this kind of model"))},
    {ROW("POST", "/api/decisions/:id/override", decisions_override, SCOPE_SEND),
     "Verdict", .about = "Name the agent that should have received a message",
     .body = &speak_override_fields},
    {ROW("POST", "/api/decisions/:id/feedback", decisions_feedback, SCOPE_SEND),
     "Verdict", .about = "Tell whether a decision was right",
     .body = &speak_feedback_fields},
    {ROW("GET", "/api/analytics/:what", analytics_get, SCOPE_READ), "Analytics",
     .about = "Figures of decisions: WHAT is `summary`, `agents`, `types`, "
              "`gaps`, `signals`, `keywords`, `hours`, `days`, `all`, "
              "`thresholds`, `alphas` or `changes`",
     .args =
         ARGS(TIME("since", "decided then or later"),
              TIME("until", "decided before then"),
              NAME("window", ARG_BYTES, "instead of since: 30m, 12h, 7d, 2w"),
              FORMAT,
              {"at", FIELD_REAL, 0, 1, .must = "a threshold, 0 to 1",
               .about = "the threshold that changes are counted for"}),
     .extra = CSV},
    {ROW("GET", "/api/learning", learning_get, SCOPE_ADMIN), "Learning",
     .about = "What was learnt, and from how much"},
    {ROW("GET", "/api/learning/export", learning_export, SCOPE_ADMIN),
     "application/x-ndjson", .about = "What was learnt, a line each"},
    {ROW("POST", "/api/learning/run", learning_run, SCOPE_ADMIN),
     "{judged: int}", .about = "Learn now from what has come", .extra = BARE},
    {ROW("POST", "/api/learning/reset", learning_reset, SCOPE_ADMIN), "204",
     .about = "Forget what was learnt", .body = &speak_reset_fields,
     .extra = BARE},
    {ROW("POST", "/api/learning/rebuild", learning_rebuild, SCOPE_ADMIN),
     "{outcomes: int}", .about = "Learn everything again from the decisions",
     .extra = BARE},
    {ROW("POST", "/api/learning/void", learning_void, SCOPE_ADMIN),
     "{voided: int; outcomes: int}",
     .about = "Take back the verdicts of a user", .body = &speak_void_fields,
     .extra = BARE},
    {ROW("GET", "/api/gate", gate_get, SCOPE_READ), "Gate",
     .about = "The state of the gate; figures, file, problem and channels for "
              "admins"},
    {ROW("GET", "/api/gate/graph", gate_graph, SCOPE_READ), "GateGraph",
     .about = "The rules as a graph, of agents that the caller sees, and what "
              "holds the caller's own message",
     .args = ARGS(
         NAME("task_id", ARG_BYTES, "judged for this task"),
         NAME("reference", ENVELOPE_REFERENCE_MAX, "judged for this subject"))},
    {ROW("GET", "/api/gate/audit", gate_audit_get, SCOPE_ADMIN), "Audit",
     .about = "The last finished audit"},
    {ROW("POST", "/api/gate/audit", gate_audit_post, SCOPE_ADMIN), "202 Audit",
     .about = "Begin an audit: every accepted task against its outcome",
     .extra = BARE},
    {ROW("GET", "/api/ledger/balance", ledger_balance, SCOPE_READ), "Balance",
     .about = "The balance of the caller; of others also `ledger`",
     .args = ARGS(USER)},
    {ROW("GET", "/api/ledger/statement", ledger_statement, SCOPE_READ),
     LIST("Line"),
     .about =
         "The entries of an account of the caller; of others also `ledger`",
     .args =
         ARGS(USER,
              NAME("account", ARG_BYTES,
                   "user or creator; with the scope `ledger` also platform, "
                   "reserved, outside, all, user:NAME or creator:NAME"),
              INT("after_ms", 0, INT64_MAX, "entered then or later"),
              INT("before_ms", 1, INT64_MAX, "entered before then"),
              {"limit", FIELD_INT, 1, STATEMENT_CSV_LINES,
               .must = "a whole number from 1 to 500, or to 5000 as CSV",
               .about = "how many at most: up to 500, 50 by default; as CSV up "
                        "to 5000, and as many by default"},
              INT("cursor", 1, INT64_MAX, CURSOR_ABOUT), FORMAT),
     .extra = CSV},
    {ROW("GET", "/api/ledger/accounts", ledger_accounts, SCOPE_LEDGER),
     LIST("Account"), .about = "List the accounts with their balances",
     .args = ARGS(LIMIT, CURSOR)},
    {ROW("POST", "/api/ledger/topup", ledger_topup, SCOPE_LEDGER),
     "200,201 Moved", .about = "Add money to the account of a user",
     .body = &speak_money_fields, .extra = KEYED},
    {ROW("POST", "/api/ledger/refund", ledger_refund, SCOPE_LEDGER),
     "200,201 Moved", .about = "Return the cost of a task, or an amount",
     .body = &speak_refund_fields, .extra = KEYED},
    {ROW("POST", "/api/ledger/payout", ledger_payout, SCOPE_LEDGER),
     "200,201 Moved", .about = "Pay out what a creator has earned",
     .body = &speak_money_fields, .extra = KEYED},
    {ROW("GET", "/api/ledger/check", ledger_check, SCOPE_LEDGER), "Books",
     .about = "Check the books"},
    {ROW("GET", "/api/budgets", budgets_list, SCOPE_READ), LIST("Budget"),
     .about = "List budgets: one's own and one's org's; with `ledger` all",
     .args = ARGS(LIMIT, CURSOR)},
    {ROW("PUT", "/api/budgets", budgets_put, SCOPE_SEND), "200,201 Budget",
     .about = "Set a budget of one's own; of others also `ledger`",
     .body = &speak_budget_fields},
    {ROW("DELETE", "/api/budgets", budgets_delete, SCOPE_SEND), "204",
     .about = "Remove a budget of one's own; of others also `ledger`",
     .args = ARGS(NAME("user", ARG_BYTES, "of this user"),
                  NAME("org", ARG_BYTES, "of this org"),
                  NAME("agent", ARG_BYTES, "of this agent"),
                  {"period", FIELD_NAME, 0, ARG_BYTES, .of = "day|month",
                   .about = "its period"},
                  {"kind", FIELD_NAME, 0, ARG_BYTES, .of = "user|self",
                   .about = "who set it"}),
     .extra = BARE},
    {ROW("GET", "/api/feed", feed, SCOPE_READ), "Feed",
     .about = "What happens: a page of it, or a stream",
     .args =
         ARGS({"after", FIELD_NAME, 0, ARG_BYTES,
               .about = "the seq of the last entry that was seen; 0 for all"},
              INT("last", 1, LIST_MAX, "the newest entries, instead"), LIMIT),
     .extra = EVENTS},

    {ROW("GET", "/api/config", config_get, SCOPE_ADMIN), "{...}",
     .about = "The configuration in force"},
    {ROW("POST", "/api/config/reload", config_reload, SCOPE_ADMIN), "Reloaded",
     .about = "Read the configuration again", .extra = BARE},
    {ROW("GET", "/api/me", me, ANY_TOKEN), "Me", .about = "Who the caller is"},
    {ROW("GET", "/api/tokens", tokens_list, ANY_TOKEN), LIST("Token"),
     .about = "List one's own tokens; those of others for `admin`",
     .args = ARGS(LIMIT, CURSOR, NAME("user", ARG_BYTES, "of this user"))},
    {ROW("POST", "/api/tokens", tokens_post, ANY_TOKEN), "201 TokenMade",
     .about = "Create a token of one's own; for others `admin`",
     .body = &speak_token_fields, .extra = BARE},
    {ROW("DELETE", "/api/tokens/:id", tokens_delete, ANY_TOKEN), "204",
     .about = "Revoke a token of one's own; of others `admin`",
     .args = ARGS(WORD_MUST("confirm", "last_admin_token", NULL,
                            "the last admin token may go")),
     .extra = BARE},
    {ROW("GET", "/api/users", users_list, SCOPE_ADMIN), LIST("User"),
     .about = "List the users", .args = ARGS(LIMIT, CURSOR)},
    {ROW("POST", "/api/users", users_post, SCOPE_ADMIN), "201 User",
     .about = "Create a user", .body = &speak_user_fields},
    {ROW("PATCH", "/api/users/:name", users_patch, SCOPE_ADMIN), "User",
     .about = "Change the role, org or owner of a user",
     .body = &speak_user_patch_fields},
    {ROW("DELETE", "/api/users/:name", users_delete, SCOPE_ADMIN), "204",
     .about = "Remove a user and all its tokens", .extra = BARE},
};

enum { N_ROWS = sizeof(table) / sizeof(*table) };

/* The methods of /hub. */

/* clang-format off */
#define METHOD(name, take, scope) STR(name), method_##take, scope
#define TASK \
    {"task_id", FIELD_NAME, 1, MSG_CONVERSATION_MAX, .about = "which task"}
#define SESSION \
    {"sessionKey", FIELD_NAME, 1, ID_BYTES - 1, .about = "which delegation"}
/* clang-format on */

static const struct method_row methods[] = {
    {METHOD("task.chunk", chunk, 0), FOR_AGENTS | UNCOUNTED,
     .about = "A part of the text of a task's result"},
    {METHOD("task.result", result, 0), FOR_AGENTS | LATER | UNCOUNTED,
     .about = "The result of a task"},
    {METHOD("message.send", send, SCOPE_SEND), LATER | NEW_WORK,
     .about = "Send a message or an envelope, and listen to its task",
     .params = ARGS({"parent_task_id", FIELD_NAME, 1, ID_BYTES - 1,
                     .about = "the task that it is part of"}),
     .body = &speak_message_fields},
    {METHOD("agent.register", register, SCOPE_SEND), LATER | NEW_WORK,
     .about = "Make the connection an agent's"},
    {METHOD("agent.update", update, SCOPE_SEND), FOR_AGENTS | LATER | NEW_WORK,
     .about = "Change members of the agent's card"},
    {METHOD("agent.state", state, 0), FOR_AGENTS | FOR_CHILDREN,
     .about = "Tell how the agent is, and how fresh its data",
     .params = ARGS({"state", FIELD_NAME, 1, 16,
                     .about = "the state that the agent says it has"})},
    {METHOD("agent.search", search, SCOPE_READ), LATER | FOR_CHILDREN,
     .about = "Find agents by what they can do", .body = &speak_search_fields},
    {METHOD("agent.send_task", send_task, SCOPE_SEND),
     FOR_AGENTS | LATER | FOR_CHILDREN | NEW_WORK,
     .about = "Delegate work in two phases: accepted, and later its result",
     .body = &speak_send_fields},
    {METHOD("agent.delegate", delegate, SCOPE_SEND),
     FOR_AGENTS | LATER | FOR_CHILDREN | NEW_WORK,
     .about = "Delegate work to an agent, or to several",
     .body = &speak_delegate_fields},
    {METHOD("delegate_to_agent", delegate, SCOPE_SEND),
     FOR_AGENTS | LATER | FOR_CHILDREN | NEW_WORK,
     .about = "The same, by the name of the tool that models have for it",
     .body = &speak_delegate_fields},
    {METHOD("delegation.get", delegation_get, SCOPE_READ),
     FOR_AGENTS | LATER | FOR_CHILDREN, .about = "The state of a delegation",
     .params = ARGS(SESSION)},
    {METHOD("delegation.ack", delegation_ack, 0),
     FOR_AGENTS | LATER | FOR_CHILDREN | UNCOUNTED,
     .about = "A result has come: it is not sent again",
     .params =
         ARGS(SESSION,
              {"original_id", FIELD_NAME, 1, DELEGATION_ID_MAX,
               .about = "which request"},
              {"task_id", FIELD_NAME, 1, ID_BYTES - 1, .about = "which task"})},
    {METHOD("task.get", get, SCOPE_READ), LATER, .about = "A task",
     .params = ARGS(TASK)},
    {METHOD("task.cancel", cancel, SCOPE_SEND), LATER, .about = "Cancel a task",
     .params = ARGS(TASK)},
    {METHOD("task.listen", listen, SCOPE_READ), LATER,
     .about = "The events of a task from now on",
     .params = ARGS(TASK, {"after", FIELD_NAME, 1, SPEAK_PLACE_BYTES,
                           .about = "the id of the last event that was seen"})},
    {METHOD("ping", ping, 0), FOR_CHILDREN | UNCOUNTED,
     .about = "The server's time"},
};

enum { N_METHODS = sizeof(methods) / sizeof(*methods) };

const struct method_row *method_row(size_t i)
{
    return i < N_METHODS ? &methods[i] : NULL;
}

const struct call_row *call_row(size_t i)
{
    return i < N_ROWS ? &table[i] : NULL;
}

bool call_row_has_rest(const struct call_row *row)
{
    return row->path.p[row->path.n - 1] == '*';
}

void call_row_add_path(struct buf *out, const struct call_row *row,
                       bool is_braced)
{
    struct str path = row->path;

    while (path.n) {
        struct str part = str_cut(&path, '/');

        if (part.n && part.p[0] == ':') {
            part = str_sub(part, 1, part.n);
            for (size_t i = 0; !is_braced && i < part.n; i++)
                buf_add_char(out, (char)(part.p[i] & ~0x20));
            if (is_braced)
                buf_addf(out, "{%.*s}", STR_ARG(part));
        } else {
            buf_add_str(out, part);
        }
        if (path.n || !part.n)
            buf_add_char(out, '/');
    }
}
