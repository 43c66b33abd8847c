/* The demo's agents. The replies are invented and say so: messages are only
 * searched for a few words. */
#include "lab/demo_cast.h"

const struct str demo_disclaimer =
    STR("\n\n(The demo's canned reply: no model has read your message.)");

const struct demo_actor demo_cast[DEMO_ACTORS] = {
    {
        .name = "engineer",
        .does = "builds, debugs and reviews software",
        .title = "Engineer",
        .description = "Builds, debugs, refactors and deploys software, and "
                       "reviews what others have built.",
        .prompt = "You are the Engineer: a careful software engineer. Answer "
                  "with working code or with the next concrete step, and say "
                  "what you assumed. Be brief.",
        .keywords = {"code", "debug", "refactor", "deploy"},
        .skills =
            {{"build",
              "Build features",
              "Writes code from a description: models, migrations, parsers, "
              "endpoints, tests.",
              {"code", "software"},
              {"build me a Laravel model with a factory and migration",
               "write a parser for this log format"}},
             {"debug",
              "Debug",
              "Finds out why a program crashes, hangs, is slow or gives wrong "
              "results, and mends it.",
              {"bugs", "performance"},
              {"why is my query slow", "this test fails only on Mondays"}},
             {"review",
              "Review code",
              "Reads a change and says what is wrong, risky or could be "
              "simpler.",
              {"code", "quality"},
              {"look over this pull request", "is this safe with threads"}}},
        .replies =
            {{{"slow", "query", "performance", "fast", "sql", "latency"},
              "Slow is measurable, so let us measure before changing "
              "anything.\n\n1. Run the query with EXPLAIN (ANALYZE, BUFFERS) "
              "and look for a sequential scan over a large table.\n2. If the "
              "filter is on a column without an index, add one: CREATE INDEX "
              "CONCURRENTLY orders_by_user ON orders (user_id);\n3. Measure "
              "again with real data. An index that the planner does not choose "
              "only makes writes slower.\n\nIf it is slow only now and then, "
              "look for locks rather than plans: pg_stat_activity shows who "
              "blocks queries."},
             {{"crash", "bug", "debug", "error", "fails", "broken", "segfault",
               "test"},
              "Let us find the smallest thing that still goes wrong.\n\n"
              "1. Run it under a debugger or a sanitizer: the first invalid "
              "access is the cause, the crash is only the symptom.\n"
              "2. Bisect: git bisect run ./failing-test finds the change that "
              "brought it in, usually in less than ten steps.\n"
              "3. Write the test first, see it fail, then mend the code. A bug "
              "without a test comes back."},
             {{"build", "write", "code", "function", "model", "api", "parser",
               "script"},
              "Here is a first version, small enough to read in one go:\n\n"
              "    def parse_line(line):\n"
              "        level, _, rest = line.partition(\" \")\n"
              "        at, _, message = rest.partition(\" \")\n"
              "        return {\"level\": level, \"at\": at, \"message\": "
              "message}\n\n"
              "It assumes one entry a line and no quoting. With a few real "
              "lines I would turn those assumptions into tests, and then "
              "handle what breaks."},
             {.text = "I would begin with three questions: what should be true "
                      "afterwards that is not true now, how would we notice "
                      "that it is, and what may not change on the way?\n\n"
                      "With the answers I can propose the smallest change that "
                      "gets there, as a diff with a test beside it."}},
        .ask = "why is my query slow?",
    },
    {
        .name = "researcher",
        .does = "finds out, compares and sums up",
        .title = "Researcher",
        .description = "Finds out what is known about a question, compares "
                       "sources and sums up what they say.",
        .prompt = "You are the Researcher. Say what is known, how well it is "
                  "known, and what would change your mind. Never make up a "
                  "source. Be brief.",
        .keywords = {"research", "compare", "sources", "trends"},
        .skills =
            {{"investigate",
              "Investigate a question",
              "Looks into a topic and reports what is known and how well.",
              {"research", "facts"},
              {"research AI trends in healthcare",
               "what do we know about intermittent fasting"}},
             {"compare",
              "Compare options",
              "Puts products, methods or claims side by side.",
              {"comparison", "decision"},
              {"compare Postgres and SQLite for a small shop",
               "which of these three papers is the strongest"}},
             {"summarise",
              "Sum up",
              "Makes a page of a long document, with what matters first.",
              {"summary"},
              {"sum up this report in ten lines"}}},
        .replies =
            {{{"compare", "versus", "vs", "better", "which", "choose"},
              "Side by side, on what usually decides it:\n\n"
              "  effort to begin    the simpler one wins, by weeks\n"
              "  effort to keep up  about even after a year\n"
              "  what it cannot do  the real question; list yours first\n"
              "  the way back       how hard is it to change your mind?\n\n"
              "My advice: write down the two things that would make you regret "
              "each choice. The shorter list wins."},
             {{"trend", "trends", "news", "future", "healthcare", "market"},
              "Three currents turn up in most of what has been written about "
              "it:\n\n"
              "1. What was a pilot becomes part of the daily work, and the "
              "questions shift from \"can it\" to \"who answers for it\".\n"
              "2. Costs fall more quickly than quality rises, so volume grows "
              "first.\n"
              "3. Rules arrive late and then all at once.\n\n"
              "The evidence for the second is strong, for the first mixed, and "
              "for the third mostly anecdotes."},
             {{"sum", "summary", "summarise", "summarize", "report", "paper"},
              "In five lines:\n\n- The question is whether the new way is "
              "better than the old one, and for which users.\n- The method is "
              "sound, the sample small.\n- The effect is there, about half of "
              "what the title says.\n- It was not looked at over more than "
              "three months.\n- The data are open; they should be repeated."},
             {.text = "I would split this into what can be looked up and what "
                      "has to be judged.\n\n"
                      "For the first I would want two independent sources for "
                      "every figure; for the second, the best argument on "
                      "either side before any conclusion. Which of the two "
                      "matters more to you?"}},
        .ask = "compare Postgres and SQLite for a small shop",
    },
    {
        .name = "content-writer",
        .does = "drafts and edits articles and posts",
        .title = "Content Writer",
        .description = "Drafts and edits articles, blog posts, newsletters and "
                       "product texts in plain, lively English.",
        .prompt = "You are the Content Writer. Write plain, lively English "
                  "with concrete words and short sentences. Offer one version, "
                  "not three. Be brief.",
        .keywords = {"draft", "article", "blog post", "proofread"},
        .skills = {{"draft",
                    "Draft a text",
                    "Writes a first version of an article, a blog post or a "
                    "newsletter.",
                    {"writing", "blog"},
                    {"draft a blog post about our new office",
                     "a newsletter for the spring sale"}},
                   {"edit",
                    "Edit and proofread",
                    "Corrects a text and makes it shorter and clearer.",
                    {"editing", "language"},
                    {"proofread this paragraph", "make this half as long"}},
                   {"headline",
                    "Find a headline",
                    "Finds titles and subject lines that say what follows.",
                    {"titles"},
                    {"a title for an article about sleep"}}},
        .replies =
            {{{"blog", "post", "article", "newsletter", "draft"},
              "Here is a beginning:\n\n    The day the door stood open\n\n    "
              "On Monday we moved. By Tuesday everyone had found the good "
              "coffee, by Wednesday the first plant had died, and by Thursday "
              "no one could remember the old place.\n\nFrom there: what "
              "changed for the people who come to see us, one picture, and an "
              "invitation. Four hundred words are enough."},
             {{"proofread", "edit", "shorter", "correct", "grammar"},
              "What I would change, in this order:\n\n1. Cut the first "
              "sentence. Nearly always, the second one is the beginning.\n2. "
              "Turn passives round: a person did it; say who.\n3. Take out "
              "every \"very\", and see that nothing is missing.\n4. Read it "
              "aloud. Where you stumble, a reader stops."},
             {{"title", "headline", "slogan", "name", "subject"},
              "One that says what follows and promises no more than that:\n\n"
              "    Sleep less badly: what a month of notes has taught me\n\n"
              "It has a person in it, a span of time and a modest claim; those "
              "three do most of the work."},
             {.text = "Before I write: who reads it, what should they do "
                      "afterwards, and what do they believe now?\n\n"
                      "With that in one line each I can give you a draft that "
                      "begins with their question and not with our answer."}},
        .ask = "draft a blog post about our new office",
        .delegations = {.agent = "researcher",
                        .says =
                            "Facts first: the researcher knows more about that "
                            "than I do.\n\n",
                        .ask =
                            "draft a blog post about office trends, with facts",
                        .words = {"fact", "facts", "source", "sources"}},
    },
    {
        .name = "automation-operator",
        .does = "reminds, schedules and connects",
        .title = "Automation Operator",
        .description = "Sets reminders, schedules jobs and connects services, "
                       "so that things happen by themselves.",
        .prompt = "You are the Automation Operator. Say exactly what would "
                  "happen, when, and how to undo it. You cannot really do "
                  "anything yet: describe what you would set up. Be brief.",
        .keywords = {"remind", "schedule", "automate", "every day"},
        .skills = {{"remind",
                    "Set reminders",
                    "Reminds people of things at a time or a place.",
                    {"reminders", "calendar"},
                    {"set a reminder for tomorrow",
                     "remind me to call the bank at nine"}},
                   {"schedule",
                    "Schedule jobs",
                    "Runs something again and again, at set times.",
                    {"jobs", "cron"},
                    {"back up the photos every night",
                     "send the figures every Monday"}},
                   {"connect",
                    "Connect services",
                    "Does one thing when another happens.",
                    {"workflow", "integration"},
                    {"when an invoice comes in, put it into the sheet"}}},
        .replies =
            {{{"remind", "reminder", "tomorrow", "appointment", "call"},
              "This is what I would set up:\n\n"
              "  what   one reminder, with your words in it\n"
              "  when   tomorrow at 09:00, your time\n"
              "  where  here, and on your phone if it is connected\n"
              "  undo   \"cancel the reminder\" until then\n\n"
              "In the demo nothing is really set: you will have to remember it "
              "yourself."},
             {{"every", "schedule", "nightly", "daily", "weekly", "backup",
               "cron"},
              "As a job it would be this:\n\n"
              "    15 3 * * *   backup-photos --to nas --keep 14\n\n"
              "It runs at a quarter past three, when everyone is asleep, keeps "
              "two "
              "weeks, and reports only when something went wrong, or when it "
              "has not run for two days: a silent job that never ran is the "
              "worst kind."},
             {{"when", "connect", "invoice", "sheet", "automate", "workflow"},
              "A small chain of three links:\n\n"
              "  1. a mail with \"invoice\" and a PDF comes in\n"
              "  2. amount, date and sender are read from it\n"
              "  3. a row is added to the sheet, with a link to the mail\n\n"
              "Whatever cannot be read goes to a person and not into the "
              "sheet. It would be tried for a week beside the old way."},
             {.text = "Tell me what should happen, how often or after what, "
                      "and who should hear of it when it does not work.\n\n"
                      "Then I describe it step by step, with the way to undo "
                      "it, before anything is switched on."}},
        .ask = "remind me to water the plants every Friday",
    },
};

const struct demo_actor *demo_find(struct str name)
{
    for (size_t i = 0; i < DEMO_ACTORS; i++)
        if (str_eq_nocase(str_of(demo_cast[i].name), name))
            return &demo_cast[i];
    return NULL;
}

/* Cards. */

static void demo_put_list(struct json_out *o, const char *key,
                          const char *const words[DEMO_WORDS_MAX])
{
    json_key(o, str_of(key));
    json_open(o, '[');
    for (size_t i = 0; i < DEMO_WORDS_MAX && words[i]; i++)
        json_put_str(o, str_of(words[i]));
    json_close(o, ']');
}

static void demo_put_skill(struct json_out *o, const struct demo_skill *s)
{
    json_open(o, '{');
    json_member_text(o, "id", str_of(s->id));
    json_member_text(o, "name", str_of(s->name));
    json_member_text(o, "description", str_of(s->description));
    demo_put_list(o, "tags", s->tags);
    demo_put_list(o, "examples", s->examples);
    json_close(o, '}');
}

void demo_put_card(struct json_out *o, const struct demo_actor *a)
{
    json_member_text(o, "id", str_of(a->name));
    json_member_text(o, "title", str_of(a->title));
    json_member_text(o, "description", str_of(a->description));
    json_key(o, STR("skills"));
    json_open(o, '[');
    for (size_t i = 0; i < DEMO_SKILLS_MAX; i++)
        demo_put_skill(o, &a->skills[i]);
    json_close(o, ']');
    json_key(o, STR("routing"));
    json_open(o, '{');
    json_member_text(o, "systemPrompt", str_of(a->prompt));
    demo_put_list(o, "keywords", a->keywords);
    json_close(o, '}');
}

/* Replies. */

static bool demo_is_letter(char c)
{
    c = str_lower(c);
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Matches whole words: "vs" is not in "canvas". */
static bool text_has_word(struct str text, struct str word)
{
    for (size_t i = 0; i + word.n <= text.n; i++) {
        bool begins = i == 0 || !demo_is_letter(text.p[i - 1]);
        bool ends = i + word.n == text.n || !demo_is_letter(text.p[i + word.n]);

        if (begins && ends && str_eq_nocase(str_sub(text, i, i + word.n), word))
            return true;
    }
    return false;
}

static size_t demo_count_words(struct str text,
                               const char *const words[DEMO_WORDS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < DEMO_WORDS_MAX && words[i]; i++)
        n += text_has_word(text, str_of(words[i]));
    return n;
}

bool demo_wants_help(const struct demo_actor *a, struct str message)
{
    return a->delegations.agent &&
           demo_count_words(message, a->delegations.words) > 0;
}

struct str demo_reply_to(const struct demo_actor *a, struct str message)
{
    const struct demo_reply *best = &a->replies[DEMO_REPLIES_MAX - 1];
    size_t most = 0;

    for (size_t i = 0; i + 1 < DEMO_REPLIES_MAX; i++) {
        const struct demo_reply *r = &a->replies[i];
        size_t n = demo_count_words(message, r->words);

        if (n > most) {
            most = n;
            best = r;
        }
    }
    return str_of(best->text);
}

struct str demo_piece(struct str *rest, int *pause_ms)
{
    enum { LONG_WORD = 6, WORD_MS = 35, SENTENCE_MS = 220, LINE_MS = 160 };
    struct str piece = *rest;
    size_t n = 0;

    /* Blanks, a word, and one more word if the first is short. */
    for (int words = 0; words < 2 && n < rest->n; words++) {
        size_t from;

        while (n < rest->n && (rest->p[n] == ' ' || rest->p[n] == '\n'))
            n++;
        from = n;
        while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\n')
            n++;
        if (n - from >= LONG_WORD || (n < rest->n && rest->p[n] == '\n'))
            break;
    }
    piece.n = n;
    *rest = str_sub(*rest, n, rest->n);
    *pause_ms = WORD_MS + (int)(n * 7 % 23);
    if (n && strchr(".?!:", piece.p[n - 1]))
        *pause_ms = SENTENCE_MS;
    else if (rest->n && rest->p[0] == '\n')
        *pause_ms = LINE_MS;
    return piece;
}
