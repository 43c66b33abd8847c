/* Every mistake in a file is reported with its position and a hint, all of them
 * at once, and the file is rejected. */
#include "test/lib/rules_stage.h"

static struct gate_problems problems;

static enum err read_bad(const char *text)
{
    struct gate_rules *r;
    enum err e = gate_rules_read(quoted(text), &r, &problems);

    if (r || !e || !problems.n)
        T_FAIL("taken: %s", text);
    CHECK_INT(strlen(problems.text), problems.n_bytes);
    return e;
}

#define A "{'agents': {'Jay': {}, 'Zoe': {}},\n"

/* One mistake each, and the whole report. */
static const struct {
    const char *text, *says;
} cases[] = {
    /* not JSON */
    {"", "1:1: "},
    {"{'sla': [}", "1:10: "},
    {"{'sla': [], 'sla': []}", "1:13: "},
    {"[]", "1:1: a rules file must be an object {…}, not a list\n"},
    {"7", "1:1: a rules file must be an object {…}, not 7\n"},
    /* sections */
    {"{\n 'saftey_gates': []}",
     "2:2: unknown section \"saftey_gates\"; did you mean "
     "\"safety_gates\"?\n"},
    {"{'hocuspocus': 1}", "1:2: unknown section \"hocuspocus\"; "
                          "docs/rules.md lists the sections\n"},
    {"{'sla': {}}", "1:9: \"sla\" must be a list [ … ] of rules\n"},
    {"{'sla': ['x']}", "1:10: an SLA must be an object {…}, not \"x\"\n"},
    /* names of rules */
    {"{'sla': [{'within': 1}]}", "1:10: an SLA needs \"rule\": give it a "
                                 "unique name, which decisions report\n"},
    {"{'sla': [{'rule': '', 'within': 1}]}",
     "1:19: \"rule\" must be a text of 1 to 100 bytes without control "
     "characters, not \"\"\n"},
    {"{'sla': [{'rule': 3, 'within': 1}]}", "1:19: \"rule\" must be a text"},
    {"{'capacity': [{'rule': 'x', 'queue': 1}],\n"
     "     'sla': [{'rule': 'x', 'within': 1}]}",
     "2:23: rule \"x\": the name is already used in line 1; names must be "
     "unique\n"},
    /* fields */
    {"{'sla': [{'rule': 'x', 'witin': '1m', 'within': '1m'}]}",
     "1:24: rule \"x\": unknown field \"witin\" in an SLA; did you mean "
     "\"within\"?\n"},
    {"{'sla': [{'rule': 'x', 'zzzzzzz': '1m', 'within': '1m'}]}",
     "1:24: rule \"x\": unknown field \"zzzzzzz\" in an SLA; it has rule, "
     "match, "
     "when, within\n"},
    {"{'sla': [{'rule': 'x'}]}", "1:10: rule \"x\": an SLA needs \"within\": "
                                 "when the answer is due, like \"15m\"\n"},
    /* durations */
    {"{'sla': [{'rule': 'x', 'within': '15 minutes'}]}",
     "1:34: rule \"x\": \"within\" must be a duration like \"30s\", \"15m\", "
     "\"2h\", \"90d\" or \"1w\", or whole milliseconds, not \"15 minutes\"\n"},
    {"{'sla': [{'rule': 'x', 'within': '1.5h'}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': '-1h'}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': ''}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': '15'}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': '15M'}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': -1}]}", "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': 1.5}]}", "milliseconds, not 1.5\n"},
    {"{'sla': [{'rule': 'x', 'within': null}]}", "milliseconds, not null\n"},
    {"{'sla': [{'rule': 'x', 'within': '9999999999999999999d'}]}",
     "must be a duration"},
    {"{'sla': [{'rule': 'x', 'within': 0}]}",
     "1:34: rule \"x\": \"within\" must be longer than zero\n"},
    {"{'sla': [{'rule': 'x', 'within': '367d'}]}",
     "1:34: rule \"x\": \"within\" must be \"366d\" at most, not \"367d\"\n"},
    {"{'sla': [{'rule': 'x', 'within': '999999999999w'}]}", "\"366d\" at most"},
    /* match */
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'to': 'Zo'}}]}",
     "2:52: rule \"x\": \"Zo\" is not declared under \"agents\"; did you mean "
     "\"Zoe\"?\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'from': ['Jay', "
       "'Leroy']}}]}",
     "2:62: rule \"x\": \"Leroy\" is not declared under \"agents\"; write "
     "\"agents\": {\"Leroy\": {}} if it is meant\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'to': 5}}]}",
     "2:52: rule \"x\": \"to\" must be the name of an agent, not 5\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'to': []}}]}",
     "2:52: rule \"x\": \"to\" is an empty list, which matches nothing; leave "
     "it out to match everything\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'tpye': 'A'}}]}",
     "2:46: rule \"x\": unknown field \"tpye\" in match; did you mean "
     "\"type\"?\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'type': {}}}]}",
     "2:54: rule \"x\": \"type\" must be a text"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': 'Jay'}]}",
     "2:45: rule \"x\": match must be an object {…}, not \"Jay\"\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'priority': 'URGNT'}}]}",
     "2:58: rule \"x\": \"URGNT\" is not one of URGENT, HIGH, NORMAL, LOW; did "
     "you mean \"URGENT\"?\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'priority': "
       "['urgent']}}]}",
     "\"urgent\" is not one of URGENT, HIGH, NORMAL, LOW; did you mean "
     "\"URGENT\"?\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'priority': []}}]}",
     "\"priority\" is an empty list; leave it out instead\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'match': {'priority': 1}}]}",
     "2:58: rule \"x\": 1 is not one of URGENT, HIGH, NORMAL, LOW\n"},
    /* when */
    {"{'sla': [{'rule': 'x', 'within': 1,\n 'when': {'==': [1, {'grater': [1, "
     "2]}]}}]}",
     "grater"},
    {"{'sla': [{'rule': 'x', 'within': 1, 'when': true}]}",
     "1:45: rule \"x\": \"when\" must be a condition in JsonLogic"},
    {"{'sla': [{'rule': 'x', 'within': 1, 'when': {'var': 'mesage.type'}}]}",
     "1:45: rule \"x\": the condition reads \"mesage\", which does not exist; "
     "did you mean \"message\"?\n"},
    {"{'sla': [{'rule': 'x', 'within': 1, 'when': {'var': "
     "'message.confidence'}}]}",
     "1:45: rule \"x\": the condition reads \"message.confidence\", which does "
     "not exist; there are message_id, from"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'when': {'var': "
       "'agents.Jey.state'}}]}",
     "2:44: rule \"x\": \"Jey\" is not declared under \"agents\"; did you mean "
     "\"Jay\"?\n"},
    {A "'sla': [{'rule': 'x', 'within': 1, 'when': {'var': "
       "'agents.jay.state'}}]}",
     "reads \"agents.jay\", which is written \"agents.Jay\""},
    {A "'sla': [{'rule': 'x', 'within': 1, 'when': {'var': "
       "'agents.Jay.sate'}}]}",
     "did you mean \"agents.NAME.state\"?"},
    {"{'sla': [{'rule': 'x', 'within': 1, 'when': {'var': 'target.queu'}}]}",
     "reads \"target.queu\", which does not exist; did you mean "
     "\"target.queue\"?\n"},
    /* priorities */
    {"{'priorities': [{'rule': 'x', 'match': {'type': 'L'}, 'priority': "
     "'TOP'}]}",
     "\"TOP\" is not one of URGENT, HIGH, NORMAL, LOW"},
    {"{'priorities': [{'rule': 'x', 'priority': 'URGENT'}]}",
     "1:17: rule \"x\": it would raise every message; say which by \"match\""},
    {"{'priorities': [{'rule': 'x', 'match': {}, 'priority': 'URGENT'}]}",
     "it would raise every message"},
    /* duplicates, superseding, escalations */
    {"{'duplicates': [{'rule': 'x', 'within': '1m', 'same': []}]}",
     "1:55: rule \"x\": \"same\" must be a list of 1 to 16 fields"},
    {"{'duplicates': [{'rule': 'x', 'within': '1m', 'same': 'from'}]}",
     "\"same\" must be a list"},
    {"{'duplicates': [{'rule': 'x', 'within': '1m', 'same': ['form']}]}",
     "1:56: rule \"x\": \"form\" is not one of from, to, type, reference, "
     "payload, "
     "payload.FIELD; did you mean \"from\"?\n"},
    {"{'duplicates': [{'rule': 'x', 'within': '1m', 'same': ['payload.']}]}",
     "has an empty name in it; write it like \"payload.end_client\"\n"},
    {"{'duplicates': [{'rule': 'x', 'within': '1m', 'same': "
     "['payload.a..b']}]}",
     "has an empty name in it"},
    {"{'duplicates': [{'rule': 'x'}]}",
     "a rule of duplicates needs \"within\""},
    {"{'superseding': [{'rule': 'x', 'within': '1m'}]}",
     "superseding drops messages, so it must say which"},
    {"{'escalations': [{'rule': 'x'}]}",
     "it would escalate every message; say which by \"match\", \"when\" or "
     "\"same\"\n"},
    {"{'escalations': [{'rule': 'x', 'match': {}}]}",
     "it would escalate every message"},
    {"{'escalations': [{'rule': 'x', 'same': ['from']}]}",
     "with \"same\" it needs \"within\""},
    {"{'escalations': [{'rule': 'x', 'match': {'type': 'A'}, 'within': "
     "'1d'}]}",
     "\"within\" has no effect without \"same\""},
    /* safety gates */
    {A "'safety_gates': [{'rule': 'x', 'agent': 'Zoe'}]}",
     "it would pause every message; say which by \"match\""},
    {A "'safety_gates': [{'rule': 'x', 'match': {'type': 'S'}}]}",
     "a safety gate needs \"agent\""},
    {A "'safety_gates': [{'rule': 'x', 'agent': 'Zoe', 'match': {'type': 'S'}, "
       "'states': ['DAED']}]}",
     "\"DAED\" is not one of ACTIVE, IDLE, BUSY, SLOW, ERROR, DEAD; did you "
     "mean "
     "\"DEAD\"?\n"},
    {A "'safety_gates': [{'rule': 'x', 'agent': 'Zoe', 'match': {'type': 'S'}, "
       "'on_expiry': 'drop'}]}",
     "\"drop\" is not one of expire, escalate, route\n"},
    {A "'safety_gates': [{'rule': 'x', 'agent': 'Zoe', 'match': {'type': 'S'}, "
       "'hold_for': 'long'}]}",
     "\"hold_for\" must be a duration"},
    /* dependencies */
    {A "'dependencies': [{'rule': 'x', 'after': {'type': 'B'}}]}",
     "it would hold every message"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}}]}",
     "a dependency needs \"after\": what must have happened before"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': []}]}",
     "\"after\" must name 1 to 10 kinds of what must have happened"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "[{'type': ['1','2','3','4','5','6','7','8','9','a','b']}]}]}",
     "\"after\" must name 1 to 10 kinds"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "['B']}]}",
     "a prerequisite must be an object {…}, not \"B\"\n"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': {}}]}",
     "a prerequisite needs \"type\""},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "{'type': 'B', 'aproved': true}}]}",
     "unknown field \"aproved\" in a prerequisite; did you mean "
     "\"approved\"?\n"},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "{'type': 'B', 'approved': 'yes'}}]}",
     "\"approved\" must be true or false, not \"yes\""},
    {"{'dependencies': [{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "{'type': 'B', 'from': 'Zed'}}]}",
     "\"Zed\" is not declared under \"agents\""},
    {"{'dependencies': [\n{'rule': 'x', 'match': {'type': 'A'}, 'after': "
     "{'type': 'A'}}]}",
     "2:1: it waits for messages that it holds up itself (x -> x); use "
     "\"from\" or \"to\" to say which ones it waits for\n"},
    {"{'dependencies': [\n{'rule': 'A', 'match': {'type': 'a'}, 'after': "
     "{'type': 'b'}},\n{'rule': 'B', 'match': {'type': 'b'}, 'after': "
     "{'type': ['c', 'a']}}]}",
     "2:1: dependencies wait for each other: A -> B -> A; remove one of "
     "them\n"},
    {"{'dependencies': [{'rule': 'S', 'match': {'type': 's'}, 'after': "
     "{'type': 'a'}},\n{'rule': 'A', 'match': {'type': 'a'}, 'after': "
     "{'type': 'b'}},{'rule': 'B', 'match': {'type': 'b'}, 'after': "
     "{'type': 'c'}},{'rule': 'C', 'match': {'type': 'c'}, 'after': "
     "[{'type': 'd'}, {'type': 'a'}]}]}",
     "2:1: dependencies wait for each other: A -> B -> C -> A; remove"},
    {A "'dependencies': [{'rule': 'x', 'match': {'to': 'Zoe'}, 'after': "
       "{'type': 'RESULT', 'from': 'Zoe'}}]}",
     "it waits for messages that it holds up itself (x -> x)"},
    /* freshness, capacity */
    {"{'freshness': [{'rule': 'x'}]}", "needs \"within\": how old its data"},
    {"{'freshness': [{'rule': 'x', 'within': 1, 'agent': 'Zoe'}]}",
     "\"Zoe\" is not declared"},
    {"{'capacity': [{'rule': 'x'}]}", "a rule of capacity needs \"queue\""},
    {"{'capacity': [{'rule': 'x', 'queue': 0}]}",
     "1:38: rule \"x\": \"queue\" must be a whole number from 1 to 1000000, "
     "not "
     "0\n"},
    {"{'capacity': [{'rule': 'x', 'queue': 2.5}]}", "not 2.5\n"},
    {"{'capacity': [{'rule': 'x', 'queue': 5, 'batch': 3}]}",
     "batch must be an object {…}, not 3\n"},
    {"{'capacity': [{'rule': 'x', 'queue': 5, 'batch': {'most': 1}}]}",
     "\"most\" must be a whole number from 2 to 100, not 1\n"},
    {"{'capacity': [{'rule': 'x', 'queue': 5, 'batch': {}}]}",
     "batch needs \"most\": how many are let go as one\n"},
    /* agents */
    {"{'agents': ['Jay']}", "1:12: agents must be an object {…}, not a list\n"},
    {"{'agents': {'J y': {}}}", "1:13: \"J y\" is not a valid agent name"},
    {"{'agents': {'Jay': {}, 'jay': {}}}",
     "1:24: \"jay\" is declared twice; case does not matter in names\n"},
    {"{'agents': {'Jay': 1}}", "an agent must be an object {…}, not 1\n"},
    {"{'agents': {'Jay': {'backup': 'Jay'}}}",
     "\"Jay\" cannot stand in for itself"},
    {"{'agents': {'Jay': {'backup': 'Zoe'}}}",
     "\"Zoe\" is not declared under \"agents\""},
    {"{'agents': {'Jay': {'takeover': 'auto'}}}",
     "\"takeover\" has no effect without \"backup\""},
    {A "'agents ': {}}", "2:1: unknown section \"agents \"; did you mean "
                         "\"agents\"?\n"},
    {"{'agents': {'Jay': {}, 'Z': {'backup': 'Jay', 'takeover': 'yes'}}}",
     "\"yes\" is not one of offer, auto\n"},
    {"{'agents': {'Jay': {'restart': {'atempts': 1}}}}",
     "unknown field \"atempts\" in restart; did you mean \"attempts\"?\n"},
    {"{'agents': {'Jay': {'restart': {'attempts': 101}}}}",
     "whole number from 0 to 100, not 101\n"},
    {"{'agents': {'Jay': {'restart': {'pause': '0s'}}}}",
     "\"pause\" must be longer than zero\n"},
    /* channels */
    {"{'channels': {'#alerts': {'file': 'x/signalbox.db'}}}",
     "1:35: \"x/signalbox.db\" is a file of the server's own store; take "
     "another name"},
    {"{'channels': {'#alerts': {'file': {'path': 'signalbox.db-wal'}}}}",
     "is a file of the server's own store"},
    {"{'channels': {'#alerts': {'file': 'a.jsonl'}, '#agent-feed': {'file': "
     "{'path': './a.jsonl'}}}}",
     "1:47: \"#agent-feed\" would write to the file of \"#alerts\"; use "
     "another file"},
    {"{'channels': {'alerts': {'takes': ['alerts']}}}",
     "1:15: \"alerts\" is not a valid channel name: it begins with \"#\""},
    {"{'channels': {'#ops': {}}}",
     "1:23: \"#ops\" takes nothing; write \"takes\": [\"decisions\"]"},
    {"{'channels': {'#ops': {'takes': ['alert']}}}",
     "\"alert\" is not one of decisions, alerts; did you mean \"alerts\"?\n"},
    {"{'channels': {'#alerts': {'webhook': {'url': 'ftp://x'}}}}",
     "url must begin with https:// or http://"},
    {"{'channels': {'#alerts': {'webhook': {'url': 'https://'}}}}", "url: "},
    {"{'channels': {'#alerts': {'webhook': {'form': 'slack'}}}}",
     "webhook needs \"url\": where posts go\n"},
    {"{'channels': {'#alerts': {'webhook': {'url': 'https://x/', 'form': "
     "'teams'}}}}",
     "\"teams\" is not one of json, slack, discord\n"},
    {"{'channels': {'#alerts': {'file': {'keep': 1}}}}",
     "file needs \"path\": where the lines go"},
    {"{'channels': {'#alerts': {'file': {'path': 'x', 'rotate_bytes': 1}}}}",
     "\"rotate_bytes\" must be a whole number from 4096"},
    /* the rest */
    {"{'holds': []}", "holds must be an object {…}, not a list\n"},
    {"{'holds': {'msot': 1}}",
     "unknown field \"msot\" in holds; did you mean \"most\"?\n"},
    {"{'holds': {'expire_after': 'never'}}", "\"expire_after\" must be a dur"},
    {"{'people': {'on_expiry': 'aprove'}}",
     "\"aprove\" is not one of reject, approve, redirect; did you mean "
     "\"approve\"?\n"},
    {"{'people': {'reminders': 1001}}", "from 0 to 1000, not 1001\n"},
    {"{'timestamps': {'future': 0}}", "must be longer than zero\n"},
    {"{'targets': {'lost': -1}}", "from 0 to 1000000000, not -1\n"},
};

TEST(each_mistake_is_told_with_its_place)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        enum err e = read_bad(cases[i].text);
        unsigned line, col;

        if (!strstr(problems.text, cases[i].says))
            T_FAIL("%s\n says %s not %s", cases[i].text, problems.text,
                   cases[i].says);
        if (problems.n != 1)
            T_FAIL("%s\n says too much: %s", cases[i].text, problems.text);
        CHECK(sscanf(problems.text, "%u:%u: ", &line, &col) == 2);
        CHECK(e == ERR_BAD_CONFIG || (i < 3 && e == ERR_SYNTAX));
    }
}

TEST(what_looks_like_a_mistake_and_is_none)
{
    static const char *const good[] = {
        /* the same kind, allowed after another agent sent it */
        A "'dependencies': [{'rule': 'x', 'match': {'type': 'A', 'to': 'Zoe'},"
          "'after': {'type': 'A', 'to': 'Jay'}}]}",
        A "'dependencies': [{'rule': 'x', 'match': {'type': 'A', 'from': 'Zoe'}"
          ", 'after': {'type': 'A', 'from': 'Jay'}}]}",
        /* an audit after any other answer */
        A "'dependencies': [{'rule': 'x', 'match': {'type': 'A', 'to': 'Zoe'},"
          "'after': {'type': 'RESULT', 'from': 'Zoe'}}]}",
        /* two paths to one kind */
        "{'dependencies': [{'rule': 'a', 'match': {'type': 'A'}, 'after': "
        "[{'type': 'B'}, {'type': 'C'}]}, {'rule': 'b', 'match': {'type': 'B'},"
        "'after': {'type': 'D'}}, {'rule': 'c', 'match': {'type': 'C'},"
        "'after': {'type': 'D'}}]}",
        "{'people': {'remind': 0, 'expire_after': 0}}",
        "{'agents': {'a': {'restart': {'attempts': 0}}}}",
        "{'sla': [{'rule': 'x', 'within': 1, 'when': {'in': [1, [1]]}}]}",
        "{'sla': [{'rule': 'x', 'within': 1, 'when': {'var': ''}}]}",
    };

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
        gate_rules_free(rules_of(good[i]));
}

TEST(all_that_is_wrong_is_told_at_once)
{
    CHECK(read_bad(A "'sla': [{'rule': 'x', 'witin': 1},\n {'rule': 'x',"
                     " 'within': '1y', 'match': {'to': 'Joy'}}],\n"
                     "'holds': {'most': 0}}") == ERR_BAD_CONFIG);
    CHECK_STR(
        str_of(problems.text),
        "4:19: \"most\" must be a whole number from 1 to 1000000, not 0\n"
        "2:23: rule \"x\": unknown field \"witin\" in an SLA; did you mean "
        "\"within\"?\n"
        "2:9: rule \"x\": an SLA needs \"within\": when the answer is "
        "due, like \"15m\"\n"
        "3:11: rule \"x\": the name is already used in line 2; names must be "
        "unique\n"
        "3:26: rule \"x\": \"within\" must be a duration like \"30s\", "
        "\"15m\", \"2h\", \"90d\" or \"1w\", or whole milliseconds, not "
        "\"1y\"\n"
        "3:48: rule \"x\": \"Joy\" is not declared under \"agents\"; did "
        "you mean \"Jay\"?\n");
}

static void add_rules(struct buf *b, unsigned n, const char *field)
{
    buf_clear(b);
    buf_addf(b, "{\"sla\":[");
    for (unsigned i = 0; i < n; i++)
        buf_addf(b, "%s{\"rule\":\"%u\",\"%s\":1}", i ? "," : "", i, field);
    buf_addf(b, "]}");
}

TEST(of_many_mistakes_twenty_are_told)
{
    struct gate_rules *r;
    struct buf b;
    size_t n = 0;

    buf_init(&b, 1 << 24);
    add_rules(&b, 5000, "wrong");
    CHECK(gate_rules_read(buf_str(&b), &r, &problems) == ERR_BAD_CONFIG);
    CHECK_INT(problems.n, 10000);
    for (size_t i = 0; i < problems.n_bytes; i++)
        n += problems.text[i] == '\n';
    CHECK_INT(n, GATE_PROBLEMS_MAX + 1);
    CHECK(strstr(problems.text, "\nand 9980 more\n"));
    buf_fini(&b);
}

/* Twenty of the longest names still fit. */
TEST(long_names_are_told_short)
{
    char name[400];
    struct gate_rules *r;
    struct buf b;

    memset(name, '"', sizeof(name));
    buf_init(&b, 1 << 20);
    buf_addf(&b, "{");
    for (unsigned i = 0; i < 30; i++) {
        buf_addf(&b, "%s\"%u", i ? "," : "", i);
        for (unsigned k = 0; k < 200; k++)
            buf_addf(&b, "\\u202e");
        buf_addf(&b, "\":1");
    }
    buf_addf(&b, "}");
    CHECK(gate_rules_read(buf_str(&b), &r, &problems) == ERR_BAD_CONFIG);
    CHECK(strstr(problems.text, "and 10 more\n"));
    CHECK(problems.n_bytes < sizeof(problems.text));
    buf_fini(&b);
}

TEST(ten_thousand_rules_are_taken_and_one_more_is_not)
{
    struct gate_rules *r;
    struct buf b;

    buf_init(&b, 1 << 24);
    add_rules(&b, GATE_RULES_MAX, "within");
    CHECK(gate_rules_read(buf_str(&b), &r, &problems) == OK);
    CHECK_INT(gate_rules_count(r), GATE_RULES_MAX);
    gate_rules_free(r);
    add_rules(&b, GATE_RULES_MAX + 1, "within");
    CHECK(gate_rules_read(buf_str(&b), &r, &problems) == ERR_BAD_CONFIG);
    CHECK_STR(str_of(problems.text),
              "1:1: 10001 rules are more than the limit of 10000\n");
    buf_fini(&b);
}

TEST(eight_mebibytes_are_taken_and_one_byte_more_is_not)
{
    char *text = malloc(GATE_RULES_BYTES + 1);
    struct gate_rules *r;

    CHECK(text);
    memset(text, ' ', GATE_RULES_BYTES + 1);
    text[0] = '{', text[GATE_RULES_BYTES - 1] = '}';
    CHECK(gate_rules_read((struct str){text, GATE_RULES_BYTES}, &r,
                          &problems) == OK);
    gate_rules_free(r);
    CHECK(gate_rules_read((struct str){text, GATE_RULES_BYTES + 1}, &r,
                          &problems) == ERR_LIMIT);
    CHECK_STR(str_of(problems.text),
              "1:1: the file is larger than 8388608 bytes, the limit\n");
    free(text);
}

TEST(what_is_nested_too_deep_is_told)
{
    char text[400];
    size_t n = 0;

    n += (size_t)snprintf(text, sizeof(text), "{'sla':[{'when':");
    memset(text + n, '[', 100);
    text[n + 100] = '\0';
    CHECK(read_bad(text) == ERR_SYNTAX);
    CHECK(str_starts(str_of(problems.text), STR("1:78: ")));
}

/* All of them wait for each other: the report is bounded, and so is the time to
 * find the cycles. */
TEST(of_many_circles_twenty_are_told)
{
    struct gate_rules *r;
    struct buf b;

    buf_init(&b, 1 << 24);
    buf_addf(&b, "{\"dependencies\":[");
    for (unsigned i = 0; i < 3000; i++)
        buf_addf(&b,
                 "%s{\"rule\":\"r%u\",\"match\":{\"type\":\"t\"},"
                 "\"after\":{\"type\":\"t\"}}",
                 i ? "," : "", i);
    buf_addf(&b, "]}");
    CHECK(gate_rules_read(buf_str(&b), &r, &problems) == ERR_BAD_CONFIG);
    CHECK_INT(problems.n, GATE_PROBLEMS_MAX);
    buf_fini(&b);
}

/* The longest possible chain, and the same with its ends tied. */
TEST(a_long_chain_is_walked_without_a_deep_stack)
{
    enum { LINKS = 2000 };
    struct gate_rules *r;
    struct buf b;

    buf_init(&b, 1 << 24);
    for (unsigned round = 0; round < 2; round++) {
        buf_clear(&b);
        buf_addf(&b, "{\"dependencies\":[");
        for (unsigned i = 0; i < LINKS; i++)
            buf_addf(&b,
                     "%s{\"rule\":\"r%u\",\"match\":{\"type\":\"t%u\"},"
                     "\"after\":{\"type\":\"t%u\"}}",
                     i ? "," : "", i, i, i + 1 < LINKS || !round ? i + 1 : 0);
        buf_addf(&b, "]}");
        CHECK(gate_rules_read(buf_str(&b), &r, &problems) ==
              (round ? ERR_BAD_CONFIG : OK));
        gate_rules_free(r);
    }
    CHECK(strstr(problems.text, "r0 -> ... -> r1992 -> "));
    CHECK(strstr(problems.text, " -> r1999 -> r0;"));
    buf_fini(&b);
}
