/* The shapes are beside their writers in this module; a flow test compares
 * them with real answers, both ways. The notation is short because a hundred
 * shapes in the words of JSON Schema would be a thousand lines that few
 * would read. It is our own text, so a mistake in it is found by assert. */
#include "speak/shapes.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

static const struct shape {
    const char *name;
    const char *type;
    const struct fields *fields; /* instead of a type: that of a body */
} shapes[] = {
    {"Error",
     .type = "{error: {code: string; message: string; details: {...}}}"},
    {"Problem", .type = "{code: string; message: string}"},
    {"Health", .type = "{status: string; version: string; uptime_ms: int}"},
    {"Ready", .type = "{ready: bool; reason?: string}"},
    {"Scope", .type = "\"send\"|\"read\"|\"agents\"|\"escalations\"|\"ledger\"|"
                      "\"admin\"|\"creator\"|\"metrics\""},
    {"Priority", .type = "\"URGENT\"|\"HIGH\"|\"NORMAL\"|\"LOW\""},
    {"Status",
     .type = "\"accepted\"|\"held\"|\"escalated\"|\"dropped\"|\"queued\"|"
             "\"dispatched\"|\"working\"|\"input_required\"|\"completed\"|"
             "\"failed\"|\"cancelled\"|\"expired\""},
    {"AgentState",
     .type = "\"ACTIVE\"|\"IDLE\"|\"BUSY\"|\"SLOW\"|\"ERROR\"|\"DEAD\""},
    {"BudgetWarning",
     .type = "{kind: string; name: string; period: string; limit_micros: "
             "int; resets_ms: int}"},
    {"Cost", .type =
                 "{task_micros: int; tree_micros: int; conversation_micros: "
                 "int}"},
    {"Answer", .type =
                   "{message_id: string; task_id: string; conversation_id: "
                   "string; status: Status; agent: string; text: string|null; "
                   "metadata: {...}; turn: int; price_micros?: int; error: "
                   "Problem|null; decision: BriefDecision|null; cost?: Cost; "
                   "budget_warnings?: [BudgetWarning]}"},
    {"Result", .type = "{status: Status; text: string; metadata: {...}; error: "
                       "Problem|null}"},
    {"Task",
     .type = "{id: string; message_id: string; conversation_id: string; "
             "requester: string; root_user: string; agent: string; skill: "
             "string|null; priority: Priority; status: Status; turn: int; "
             "attempt: int; text: string; metadata: {...}; source: {...}; "
             "created_ms: int; updated_ms: int; deadline_ms: int; "
             "finished_ms: int|null; parent_task_id: string|null; depth: "
             "int; price_micros?: int; by_agent: string|null; root_task_id: "
             "string|null; chain: [any]; result: Result|null}"},
    {"Turn", .type = "{turn: int; message_id: string; text: string; metadata: "
                     "{...}; status: Status; began_ms: int; finished_ms: int; "
                     "price_micros?: int; result: Result}"},
    {"TaskWithTurns", .type = "{...Task; inputs: [Input]; turns: [Turn]}"},
    {"Input",
     .type = "{input_id: string; task_id: string; agent: string; kind: "
             "string; title: string|null; message?: string; options?: "
             "[string]; placeholder?: string; prefill?: string; at_ms: int; "
             "until_ms: int}"},
    {"InputOutcome",
     .type = "{input_id: string; task_id: string; agent: string; kind: "
             "string; outcome: string; by?: string}"},
    {"Times", .type =
                  "{created_ms: int; began_ms: int; started_ms: int|null; "
                  "finished_ms: int|null; waited_ms: int; worked_ms: int|null; "
                  "duration_ms: int}"},
    {"TreeSums",
     .type = "{root_user: string; is_whole: bool; tasks: int; open: int; "
             "price_micros: int; captured_micros: int}"},
    {"TreeNode",
     .type = "{task_id: string; parent_task_id: string|null; agent: string; "
             "by_agent: string|null; skill: string|null; status: Status; "
             "mode: string|null; depth: int; turn: int; attempt: int; text: "
             "string; ...Times; price_micros: int; captured_micros: int; "
             "branch: {tasks: int; price_micros: int; captured_micros: "
             "int}; error: Problem|null; children: [TreeNode]}"},
    {"Tree", .type =
                 "{task_id: string; root_task_id: string|null; ...TreeSums; "
                 "tree: TreeNode}"},
    {"TreeSummary",
     .type = "{root_task_id: string; ...TreeSums; agent: string; by_agent: "
             "string|null; status: Status; text: string; ...Times}"},
    {"Conversation",
     .type = "{id: string; agent: string; created_ms: int; used_ms: int}"},
    {"Delegated",
     .type = "{status: string; sessionKey?: string; task_id?: string; "
             "response?: string; error?: string; code?: string; details?: "
             "{...}; agentId?: string}"},
    {"Delegations", .type = "{results: [Delegated]}"},
    {"BriefCandidate",
     .type = "{agent: string; score: number; semantic: number; performance: "
             "number; keyword: number; recency: number; best_skill_id: "
             "string|null; floor: number|null; price_micros: int|null; "
             "unpaid?: bool}"},
    {"Candidate",
     .type = "{...BriefCandidate; cosine: number; text: number; learned: "
             "number; discount: number; matched_keyword: string|null; "
             "level_mid: number; level_high: number; trusted: bool; taught: "
             "bool; half_keyword: bool}"},
    {"DecisionHead",
     .type = "{id: string|null; layer: string; agent: string|null; skill: "
             "string|null; score: number|null; threshold: number; margin: "
             "number|null; explored?: bool; band: string|null; tier: "
             "string|null; unsure: bool; example: bool; reason: string; "
             "by_price?: bool; price_micros: int|null; ceiling_micros: "
             "int|null; gate?: string}"},
    {"BriefDecision", .type = "{...DecisionHead; considered: int; candidates: "
                              "[BriefCandidate]}"},
    {"ListedDecision",
     .type = "{...DecisionHead; gate_rule?: string|null; gate_reason?: "
             "string|null; at_ms: int; task_id: string|null; turn: "
             "int|null; conversation_id: string|null; requester: string; "
             "org: string|null; text: string; verdict: string; verdict_ms: "
             "int|null; overridden_to: string|null; overridden_by: "
             "string|null; overridden_ms: int|null; answer_chars: int|null; "
             "latency_ms: int|null; error_code: string|null; followed: "
             "bool}"},
    {"UnreadableDecision",
     .type = "{id: string; at_ms: int; unreadable: bool}"},
    {"Intent", .type =
                   "{good: bool; agent: string|null; confidence: number|null; "
                   "reasoning: string; why: string|null; took_ms: int}"},
    {"Weights", .type =
                    "{semantic: number; performance: number; keyword: number; "
                    "recency: number}"},
    {"ChoiceRules",
     .type = "{layers_off: [string]; default_agent: string|null; auto: "
             "bool; threshold: number; centred: bool; alpha: number; n: "
             "int; small_talk: bool; unsure: string; seed: bool; trust_all: "
             "bool; text_blend: number; close_margin: number; explore: "
             "number; second_margin: number; chance: number|null; intent: "
             "bool; intent_if_ambiguous: bool; intent_over_bindings: bool; "
             "intent_threshold: number}"},
    {"Versions",
     .type = "{config: string|null; registry: int|null; learning: int|null; "
             "model: string|null; model_hash: string|null}"},
    {"Decision",
     .type = "{...ListedDecision; by_agent: bool; decide_us: int|null; "
             "executor: string|null; source: {...}; stuck_to: string|null; "
             "intent: Intent|null; type: int; weights: Weights; rules: "
             "ChoiceRules; versions: Versions; tier_note: string|null; "
             "vector: string|null; considered: int; candidates: "
             "[Candidate]}"},
    {"Route", .type = "{...Decision; switches: bool; quote: string|null; "
                      "quote_until_ms: int|null; note: string|null}"},
    {"Verdict",
     .type = "{decision_id: string; agent: string|null; verdict: string; "
             "overridden_to: string|null; conversation_id: string|null; "
             "switched: bool; recorded: bool; note?: string; task_id?: "
             "string; sent?: bool}"},
    {"Pass", .type =
                 "{message_id: string; original_from: string; original_to: "
                 "string; routing_decision: string; target: string; reason: "
                 "string; timestamp: string|null; sla: string|null; logged: "
                 "bool; posted_to_channel: string|null; rule: string|null; "
                 "held_until: string|null; priority: Priority; waits_for: "
                 "[string]; repeats: string|null; task_id: string|null; "
                 "escalation_id: string|null; status: Status|null; type: "
                 "string; reference: string|null; stale: bool; warnings: "
                 "[string]}"},
    {"Trial", .type = "{...Pass; trace?: [{section: string; rule: string|null; "
                      "fired: bool; why: string}]}"},
    {"Hold", .type =
                 "{task_id: string|null; message_id: string|null; "
                 "routing_decision: string; from: string|null; agent: "
                 "string|null; type: string|null; reference: string|null; "
                 "priority: Priority; requester: string|null; rule: "
                 "string|null; reason: string|null; text: string|null; "
                 "waits_for: [string]; waits_words: [string]; since_ms: int; "
                 "sla_ms: int|null; due_ms: int|null; held_until_ms: int; "
                 "on_expiry: string|null}"},
    {"Escalation",
     .type = "{id: string; status: string; kind: string; task_id: string; "
             "turn: int; agent: string|null; requester: string|null; from: "
             "string|null; type: string|null; reference: string|null; "
             "priority: Priority; rule: string|null; reason: string|null; "
             "offer: string|null; at_ms: int|null; reminded: int; "
             "remind_ms: int|null; expires_ms: int|null; decided_ms: "
             "int|null; by: string|null; comment: string|null; "
             "redirected_to: string|null}"},
    {"EscalationWithTask",
     .type = "{...Escalation; envelope: {...}|null; task: Task|null}"},
    {"Figure", .type = "{value: int|null; target: int; is_met: bool|null}"},
    {"GateFigures",
     .type = "{routed_per_hour: {...Figure; came: int; average_24h: "
             "number}; decisions_24h: {*: int}; hold_ms: {...Figure; "
             "of_all: int; longest: int; holds: int}; escalations_per_day: "
             "Figure; lost: {...Figure; audited_ms: int}; released_24h: "
             "int; expired_24h: int; late_24h: int}"},
    {"Channel",
     .type = "{name: string; place: string; cursor: int; backlog: int; "
             "written: int; failures: int; missed: int; failing_ms: int; "
             "problem: string|null}"},
    {"Gate",
     .type = "{figures: GateFigures|null; now: {held: int; "
             "escalations_open: int}; rules: {count: int; state: string; "
             "file?: string|null; read_at_ms?: int; problem?: string|null}; "
             "channels?: [Channel]}"},
    {"GateEvent",
     .type = "{type: string|null; from: string|null; to: string|null; "
             "message_id: string|null; task_id: string|null; approved: "
             "bool|null; at_ms: int|null}"},
    {"GateEdge",
     .type = "{kind: string; rule: string|null; from: [string]; said: "
             "[string]; said_to: [string]; approved: bool|null; states: "
             "[string]; within_ms: int|null; words: string|null; sender: "
             "[string]; to: [string]; type: [string]; held_words: "
             "string|null; has_condition: bool; hold_ms: int|null; "
             "is_for_it: bool; state: string|null; is_blocking: bool; "
             "event: GateEvent|null}"},
    {"GateNode", .type =
                     "{agent: string|null; is_known: bool; state: string|null; "
                     "queue?: int; queue_max?: int; data_at_ms?: int|null}"},
    {"GateGraph",
     .type = "{edges: [GateEdge]; reference: string|null; task: {task_id: "
             "string; status: Status; from: string|null; to: string|null; "
             "type: string|null; priority: Priority}|null; is_whole: bool; "
             "nodes: [GateNode]; history: [GateEvent]}"},
    {"AuditLoss", .type = "{task_id: string|null; what: string|null}"},
    {"Audit",
     .type = "{is_running: bool; began_ms: int; ended_ms: int; problem: "
             "string|null; accepted: int; over: int; unfinished: int; held: "
             "int; escalated: int; lost: int|null; losses: [AuditLoss]; "
             "stray: int; strays: [AuditLoss]}"},
    {"Skill", .type = "{id: string; name: string; description?: string; tags?: "
                      "[string]; examples?: [string]; pricing?: {...}}"},
    {"CardRest",
     .type = "{version?: string; provider?: {...}; capabilities?: {...}; "
             "authentication?: {...}; metadata?: {...}; skills?: [Skill]; "
             "pricing?: {...}; routing?: {...}; wake?: {...}; restart?: "
             "{...}; backup?: string; limits?: {...}; delegation?: {...}}"},
    {"Card", .type =
                 "{name?: string; title?: string; description?: string; url?: "
                 "string; visibility?: string; ...CardRest}"},
    {"Warning", .type = "{code: string; field: string; message: string}"},
    {"AgentHead",
     .type = "{name: string; title: string|null; description?: string; "
             "url?: string|null; visibility: string; ...CardRest; "
             "creator_id?: string|null; org?: string|null; kind: string; "
             "revision: int; created_ms: int; updated_ms: int}"},
    {"Agent",
     .type = "{...AgentHead; state: AgentState; state_reason: string|null; "
             "embedded: bool; paused: bool; review?: {state: string; at_ms: "
             "int; reason: string|null; by: string|null; changed: [string]; "
             "card: {...}}; reports?: int; warnings?: [Warning]; changed?: "
             "bool}"},
    {"AgentBrief",
     .type = "{name: string; title: string|null; description: string|null; "
             "visibility: string; creator_id: string|null; org: "
             "string|null; kind: string; skills: int; revision: int; state: "
             "AgentState; state_reason: string|null; paused: bool; review?: "
             "string; reports?: int}"},
    {"AgentNow", .type = "{agent: string; state: AgentState; paused: bool}"},
    {"Report",
     .type = "{agent: string; user: string; reason: string; at_ms: int}"},
    {"Hour",
     .type = "{from_ms: int; step_ms: int; completed: [int]; failed: [int]; "
             "cancelled: [int]; latency_ms: [int|null]}"},
    {"Figures",
     .type = "{agent: string; state: AgentState; paused: bool; paused_ms: "
             "int|null; queued: int; in_flight: int; held: int; latency_ms: "
             "int|null; usual_ms: int|null; failed_ms: int|null; totals: "
             "{completed: int; failed: int; cancelled: int; retries: int}; "
             "paused_by?: string|null; last_error?: {code: string|null; "
             "message: string|null}|null; hour: Hour|null}"},
    {"Fleet", .type = "{agents?: int; paused?: int; states?: {*: int}; items: "
                      "[Figures]}"},
    {"HitSkill",
     .type = "{...Skill; score: number; semantic?: number; text?: number; "
             "words?: [string]|null}"},
    {"Hit", .type =
                "{name: string; description: string; skills: [HitSkill]; "
                "score: number; best_skill_id: string|null; title: "
                "string|null; url: string|null; visibility: string; "
                "creator_id: string|null; org: string|null; state: AgentState; "
                "version: string|null; semantic?: number; text?: number; "
                "words?: [string]|null}"},
    {"Hits", .type =
                 "{agents: [Hit]; total: int; mode: string; note?: string; "
                 "formula?: {fusion: string; semantic: number; text: number}; "
                 "words?: [string]}"},
    {"Grant", .type = "{id: string; agent: string; user: string|null; org: "
                      "string|null; expires_ms: int|null; created_ms: int; by: "
                      "string|null}"},
    {"Command",
     .type = "{command: string; agent: string; description: string; menu: "
             "string|null; left_out?: string}"},
    {"Menu", .type =
                 "{commands: [{command: string; description: string}]}|[{name: "
                 "string; type: int; description: string; options: [{...}]}]"},
    {"Row", .type = "{*: string|number|bool|null|[string]}"},
    {"Analytics",
     .type = "{since_ms: int; until_ms: int; decisions_read: int; "
             "is_complete: bool; threshold?: number; auto?: bool; alpha?: "
             "number; items?: [Row]; follow_up_ms?: int; summary?: [Row]; "
             "agents?: [Row]; types?: [Row]; gaps?: [Row]; signals?: [Row]; "
             "keywords?: [Row]; hours?: [Row]; days?: [Row]}"},
    {"Learning",
     .type = "{agents: int; types: int; agent_types: int; examples: int; "
             "applied: int; last_outcome: int; written_up_to: int; "
             "not_written: int; runs: int; judged: int; is_running: bool; "
             "is_rebuilding: bool}"},
    {"Balance",
     .type = "{user: string; balance_micros: int; reserved_micros: int; "
             "earned_micros: int; owed_micros: int; budgets: "
             "{spent_today_micros: int; left_today_micros: int|null; "
             "per_day_micros: int|null; per_conversation_micros: int|null; "
             "per_root_micros: int|null; items: [Budget]}}"},
    {"Line", .type =
                 "{seq: int; at_ms: int; amount_micros: int; account: string; "
                 "kind: string; task_id: string|null; turn: int|null; agent: "
                 "string|null; skill: string|null; by: string|null; note: "
                 "string|null; posting: string; state: string|null}"},
    {"Account",
     .type = "{account: string; balance_micros: int; updated_ms: int}"},
    {"Moved",
     .type = "{posting: string; kind: string; user: string|null; account: "
             "string; amount_micros: int; balance_micros: int; at_ms: int; "
             "by: string|null; note: string|null; task_id: string|null; "
             "turn: int|null; is_repeat: bool}"},
    {"Books",
     .type = "{is_right: bool; accounts: int; postings: int; entries: int; "
             "turns: int; reservations: int; reserved_micros: int; "
             "owed_micros: int; problems_total: int; problems: [string]}"},
    {"Budget", .type =
                   "{kind: string; name: string; period: string; limit_micros: "
                   "int; used_micros: int; left_micros: int; is_warned: bool; "
                   "resets_ms: int; by: string; updated_ms: int}"},
    {"Entry",
     .type = "{seq: int; at_ms: int; type: string; task_id: string|null; "
             "conversation_id: string|null; agent: string|null; requester: "
             "string|null; root_user: string|null; data: {...}}"},
    {"Feed", .type = "{items: [Entry]; next_after: int}"},
    {"User", .type = "{name: string; role: string; org: string|null; owner: "
                     "string|null; created_ms: int}"},
    {"Me", .type =
               "{user: string; role: string; org: string|null; owner: "
               "string|null; scopes: [Scope]; token_id: string; expires_ms: "
               "int|null}"},
    {"Token", .type = "{id: string; user: string; label: string|null; scopes: "
                      "[Scope]; created_ms: int; expires_ms: int|null}"},
    {"TokenMade", .type = "{...Token; token: string}"},
    {"Reloaded",
     .type = "{changed: [string]; version: string; read_at_ms: int; "
             "restart_needed: [any]; problems: [any]; problems_left_out: "
             "int}"},
    {"Executor", .fields = &speak_executor_fields},
    {"Delegate", .fields = &speak_delegate_fields},
};

enum { N_SHAPES = sizeof(shapes) / sizeof(*shapes) };

static const struct shape *shape_find(struct str name)
{
    size_t i = 0;

    while (i < N_SHAPES && !str_eq(str_of(shapes[i].name), name))
        i++;
    assert(i < N_SHAPES);
    return &shapes[i];
}

/* Reading a type. */

static char type_peek(struct str *t)
{
    while (t->n && t->p[0] == ' ')
        *t = str_sub(*t, 1, t->n);
    return t->n ? t->p[0] : '\0';
}

static bool type_take(struct str *t, const char *text)
{
    struct str s = str_of(text);

    (void)type_peek(t);
    if (!str_starts(*t, s))
        return false;
    *t = str_sub(*t, s.n, t->n);
    return true;
}

static struct str type_word(struct str *t)
{
    size_t n = 0;
    struct str word;

    (void)type_peek(t);
    while (n < t->n && (isalnum((unsigned char)t->p[n]) || t->p[n] == '_'))
        n++;
    word = str_head(*t, n);
    *t = str_sub(*t, n, t->n);
    return word;
}

/* The type up to the end of a member or an element, or to the next '|'. */
static struct str type_cut(struct str *t, bool is_one)
{
    size_t depth = 0, n = 0;
    struct str cut;

    for (; n < t->n; n++) {
        char ch = t->p[n];

        if (depth == 0 &&
            (ch == ';' || ch == ']' || ch == '}' || (is_one && ch == '|')))
            break;
        depth += ch == '{' || ch == '[';
        depth -= ch == '}' || ch == ']';
    }
    cut = str_head(*t, n);
    *t = str_sub(*t, n, t->n);
    return cut;
}

static void put_union(struct json_out *o, struct str type);

/* The members after a '{': as "properties", or the names of those that are
 * "required". */
static void put_members(struct json_out *o, struct str members, bool required)
{
    while (type_peek(&members) && type_peek(&members) != '}') {
        bool is_more = type_take(&members, "...");
        struct str name = type_word(&members), type;
        bool is_optional = type_take(&members, "?");

        (void)type_take(&members, ":");
        type = type_cut(&members, false);
        (void)type_take(&members, ";");
        if (is_more)
            put_members(o, str_sub(str_of(shape_find(name)->type), 1, SIZE_MAX),
                        required);
        else if (!required) {
            json_key(o, name);
            put_union(o, type);
        } else if (!is_optional) {
            json_put_str(o, name);
        }
    }
}

/* The type after its '{'. */
static void put_object(struct json_out *o, struct str type)
{
    struct str rest = type;

    json_member_text(o, "type", STR("object"));
    if (type_take(&rest, "...}"))
        return;
    if (type_take(&rest, "*:")) {
        json_key(o, STR("additionalProperties"));
        put_union(o, type_cut(&rest, false));
        return;
    }
    json_key(o, STR("properties"));
    json_open(o, '{');
    put_members(o, type, false);
    json_close(o, '}');
    json_key(o, STR("required"));
    json_open(o, '[');
    put_members(o, type, true);
    json_close(o, ']');
}

static const struct {
    struct str word, type;
} plain_types[] = {
    {STR("string"), STR("string")}, {STR("int"), STR("integer")},
    {STR("number"), STR("number")}, {STR("bool"), STR("boolean")},
    {STR("null"), STR("null")},
};

/* "int" is "integer"; empty for a type that is not plain. */
static struct str plain_type(struct str word)
{
    for (size_t i = 0; i < sizeof(plain_types) / sizeof(*plain_types); i++)
        if (str_eq(plain_types[i].word, str_trim(word)))
            return plain_types[i].type;
    return STR("");
}

static void put_one(struct json_out *o, struct str type)
{
    struct str plain = plain_type(type), name;
    char ref[96];

    json_open(o, '{');
    if (plain.n) {
        json_member_text(o, "type", plain);
    } else if (type_take(&type, "[")) {
        json_member_text(o, "type", STR("array"));
        json_key(o, STR("items"));
        put_union(o, type_cut(&type, false));
    } else if (type_take(&type, "{")) {
        put_object(o, type);
    } else if (type_take(&type, "\"")) {
        json_member_text(o, "const", str_cut(&type, '"'));
    } else {
        name = type_word(&type);
        if (!str_eq(name, STR("any"))) {
            snprintf(ref, sizeof(ref), "#/components/schemas/%s",
                     shape_find(name)->name);
            json_member_text(o, "$ref", str_of(ref));
        }
    }
    json_close(o, '}');
}

/* Plain types share one "type" and words one "enum", as generators of clients
 * expect. */
static void put_union(struct json_out *o, struct str type)
{
    struct str rest = type, one = type_cut(&rest, true);
    bool are_plain = true, are_words = true;

    if (!rest.n) {
        put_one(o, one);
        return;
    }
    for (rest = type; rest.n; (void)type_take(&rest, "|")) {
        one = type_cut(&rest, true);
        are_plain = are_plain && plain_type(one).n;
        are_words = are_words && type_take(&one, "\"");
    }
    json_open(o, '{');
    if (are_words)
        json_member_text(o, "type", STR("string"));
    json_key(o, are_plain   ? STR("type")
                : are_words ? STR("enum")
                            : STR("anyOf"));
    json_open(o, '[');
    for (rest = type; rest.n; (void)type_take(&rest, "|")) {
        one = type_cut(&rest, true);
        if (are_plain)
            json_put_str(o, plain_type(one));
        else if (are_words && type_take(&one, "\""))
            json_put_str(o, str_cut(&one, '"'));
        else
            put_one(o, one);
    }
    json_close(o, ']');
    json_close(o, '}');
}

void speak_put_type(struct json_out *o, const char *type)
{
    put_union(o, str_of(type));
}

/* Rows. */

static void put_words(struct json_out *o, struct str words)
{
    json_key(o, STR("enum"));
    json_open(o, '[');
    while (words.n)
        json_put_str(o, str_cut(&words, '|'));
    json_close(o, ']');
}

void speak_put_field(struct json_out *o, const struct field *f)
{
    static const struct str types[] = {
        [FIELD_NAME] = STR("string"), [FIELD_TEXT] = STR("string"),
        [FIELD_WORD] = STR("string"), [FIELD_INT] = STR("integer"),
        [FIELD_REAL] = STR("number"), [FIELD_BOOL] = STR("boolean"),
        [FIELD_OBJ] = STR("object"),  [FIELD_ARR] = STR("array"),
    };
    bool is_number = f->type == FIELD_INT || f->type == FIELD_REAL;

    if (f->of && (f->type == FIELD_OBJ || f->type == FIELD_ARR)) {
        speak_put_type(o, f->of);
        return;
    }
    json_open(o, '{');
    json_member_text(o, "type", types[f->type]);
    if (f->of)
        put_words(o, str_of(f->of));
    else if (is_number) {
        json_member_int(o, "minimum", f->min);
        if (f->max < INT64_MAX)
            json_member_int(o, "maximum", f->max);
    } else if (f->type == FIELD_NAME || f->type == FIELD_TEXT) {
        /* A limit in bytes is no larger in characters. */
        if (f->min)
            json_member_int(o, "minLength", f->min);
        json_member_int(o, "maxLength", f->max);
    }
    if (f->unset)
        json_member_raw(o, "default", str_of(f->unset));
    json_close(o, '}');
}

void speak_put_fields(struct json_out *o, const struct fields *f)
{
    json_open(o, '{');
    json_member_text(o, "type", STR("object"));
    json_member_bool(o, "additionalProperties", false);
    json_key(o, STR("properties"));
    json_open(o, '{');
    for (size_t i = 0; i < f->n; i++) {
        json_key(o, str_of(f->list[i].name));
        speak_put_field(o, &f->list[i]);
    }
    json_close(o, '}');
    json_key(o, STR("required"));
    json_open(o, '[');
    for (size_t i = 0; i < f->n; i++)
        if (f->list[i].missing)
            json_put_str(o, str_of(f->list[i].name));
    json_close(o, ']');
    json_close(o, '}');
}

void speak_put_shapes(struct json_out *o)
{
    for (size_t i = 0; i < N_SHAPES; i++) {
        json_key(o, str_of(shapes[i].name));
        if (shapes[i].fields)
            speak_put_fields(o, shapes[i].fields);
        else
            speak_put_type(o, shapes[i].type);
    }
}
