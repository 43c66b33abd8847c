/* Texts, what is made of them, what gets a row, and what the teacher said. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/fault.h"
#include "train/train_stage.h"

struct folder {
    char path[64];
};

static struct folder folder_new(void)
{
    struct folder f = {"/tmp/train-XXXXXX"};

    CHECK(mkdtemp(f.path) != NULL);
    return f;
}

static void folder_remove(const struct folder *f)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf '%s'", f->path);
    CHECK(system(command) == 0);
}

static void put(const struct folder *f, const char *name, const char *text)
{
    char path[128];
    gzFile gz;

    snprintf(path, sizeof(path), "%s/%s", f->path, name);
    gz = gzopen(path, "wb");
    CHECK(gz && gzwrite(gz, text, (unsigned)strlen(text)) == (int)strlen(text));
    CHECK(gzclose(gz) == Z_OK);
}

static const char pairs[] =
    "[\"a\",\"Book a Flight!\",\"flights,\\u00a0booked\"]\n"
    "[\"b\",\"book a flight !\",\"caf\\u00e9\"]\n";
static const char texts[] = "[\"c\",\"cafe\"]\n[\"c\",\" \"]\n[\"c\",\"x\"]\n";

static enum err read_as(const struct folder *f, struct corpus *c, bool any,
                        struct why *why)
{
    char hash[HASH_CHARS + 1];
    struct recipe r = toy_recipe();
    struct grammar g;
    struct lexicon l;
    enum err e;

    corpus_init(c, &r);
    lexicon_init(&l);
    e = grammar_read(&g, SOURCE_ROOT "/train/utterances.txt", why);
    if (!e)
        e = texts_read(c, &l, &g, &r, f->path, any, hash, why);
    lexicon_fini(&l);
    grammar_fini(&g);
    return e;
}

static enum err read_from(const struct folder *f, struct corpus *c,
                          struct why *why)
{
    return read_as(f, c, true, why);
}

TEST(texts_that_differ_in_nothing_are_one)
{
    struct folder f = folder_new();
    struct corpus c;

    put(&f, "pairs.jsonl.gz", pairs);
    put(&f, "texts.jsonl.gz", texts);
    CHECK(read_from(&f, &c, NULL) == OK);
    CHECK_INT(c.n_offered, 7);
    CHECK_INT(c.n_texts, 4);
    CHECK_STR(c.texts[0].s, "book a flight !");
    CHECK_STR(c.texts[1].s, "cafe");
    CHECK_STR(c.texts[2].s, "flights , booked");
    CHECK_STR(c.texts[3].s, "x");
    CHECK_INT(c.n_pairs, 2);
    CHECK(c.pairs[0].a == 0 && c.pairs[0].b == 1);
    CHECK(c.pairs[1].a == 0 && c.pairs[1].b == 2);
    CHECK_INT(c.n_sources, 3);
    corpus_fini(&c);
    folder_remove(&f);
}

static void check_refused(const char *pairs_text, const char *texts_text,
                          const char *words)
{
    struct folder f = folder_new();
    struct why why = {""};
    struct corpus c;

    put(&f, "pairs.jsonl.gz", pairs_text);
    put(&f, "texts.jsonl.gz", texts_text);
    CHECK(read_from(&f, &c, &why) != OK);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
    corpus_fini(&c);
    folder_remove(&f);
}

TEST(a_line_that_is_none_is_named)
{
    check_refused("[\"a\",\"b\",\"c\"]\n[\"a\",\"b\"]\n", texts,
                  "pairs.jsonl.gz, line 2: not [source, text, text]");
    check_refused(pairs, "[\"a\",7]\n", "texts.jsonl.gz, line 1");
    check_refused("{\n", texts, "line 1");
    check_refused("[\"a\",\"b\",\"c\"]\n\n", texts, "line 2");
}

TEST(other_texts_are_refused_unless_wanted)
{
    struct folder f = folder_new();
    struct why why = {""};
    struct corpus c;

    put(&f, "pairs.jsonl.gz", pairs);
    put(&f, "texts.jsonl.gz", texts);
    CHECK(read_as(&f, &c, false, &why) == ERR_BAD_REQUEST);
    CHECK(strstr(why.text, "not the one that the table was made of"));
    CHECK(strstr(why.text, "--any-texts"));
    CHECK_INT(c.n_texts, 0);
    corpus_fini(&c);
    folder_remove(&f);
}

TEST(a_file_that_is_missing_or_cut_is_an_error)
{
    struct folder f = folder_new();
    char path[128];
    struct why why = {""};
    struct corpus c;

    put(&f, "pairs.jsonl.gz", pairs);
    CHECK(read_from(&f, &c, &why) == ERR_IO);
    CHECK(strstr(why.text, "texts.jsonl.gz"));
    corpus_fini(&c);
    snprintf(path, sizeof(path), "%s/pairs.jsonl.gz", f.path);
    CHECK(truncate(path, 60) == 0);
    CHECK(read_from(&f, &c, &why) == ERR_SYNTAX);
    CHECK(strstr(why.text, "gzip"));
    corpus_fini(&c);
    folder_remove(&f);
}

static void check_fault(const struct folder *f, const char *where)
{
    long nth = 0;

    for (;;) {
        struct corpus c;
        struct why why = {""};
        enum err e;

        fault_arm_at(where, ++nth);
        e = read_from(f, &c, &why);
        corpus_fini(&c);
        if (!fault_fired())
            break;
        CHECK(e != OK && why.text[0]);
    }
    CHECK(nth > 2); /* both files were met */
}

TEST(reading_survives_every_fault)
{
    struct folder f = folder_new();

    put(&f, "pairs.jsonl.gz", pairs);
    put(&f, "texts.jsonl.gz", texts);
    check_fault(&f, "train.open");
    check_fault(&f, "train.read");
    check_fault(&f, "train.unpack");
    folder_remove(&f);
}

/* ---- what is made ---- */

/* Each text has a word of its own four times, and pairs are of neighbours. */
static void numbered_texts(struct corpus *c, const struct recipe *r, int n)
{
    uint32_t last = NO_TEXT;
    uint8_t source;

    corpus_init(c, r);
    source = corpus_source(c, STR("tldr"));
    for (int i = 0; i < n; i++) {
        char text[64];
        uint32_t number;

        snprintf(text, sizeof(text), "word%d word%d word%d word%d.", i, i, i,
                 i);
        number = corpus_add(c, source, str_of(text));
        corpus_pair(c, last, number, source);
        last = number;
    }
    corpus_settle(c, r);
}

static void check_not_in_made(const struct corpus *c, struct str word)
{
    for (size_t j = c->n_read; j < c->n_texts; j++) {
        struct str made = c->texts[j].s;

        while (made.n)
            CHECK(!str_eq(str_cut(&made, ' '), word));
    }
}

TEST(nothing_is_made_of_what_is_held_out)
{
    struct recipe r = toy_recipe();
    struct toy_speech speech;
    struct corpus c;
    size_t n_held = 0;

    r.cards = r.requests = r.joins = 1000;
    r.crops = 1;
    numbered_texts(&c, &r, 300);
    toy_speech_init(&speech, &c);
    augment(&c, &r, &speech.grammar, &speech.lexicon);
    CHECK_INT(c.n_read, 300);
    for (size_t i = 0; i < N_GROUPS; i++)
        CHECK(i == GROUP_UTTERANCES || c.n_of_group[i] > 200);
    for (size_t i = 0; i < c.n_read; i++) {
        struct str rest = c.texts[i].s, word = str_cut(&rest, ' ');

        if (c.texts[i].is_held)
            check_not_in_made(&c, word);
        n_held += c.texts[i].is_held;
    }
    CHECK(n_held > 3);
    toy_speech_fini(&speech);
    corpus_fini(&c);
}

TEST(about_as_many_are_made_as_are_wanted)
{
    struct recipe r = toy_recipe();
    struct toy_speech speech;
    struct corpus c;

    r.cards = 100;
    r.requests = 200;
    r.joins = 50;
    r.crops = 0;
    r.held_permille = 0;
    numbered_texts(&c, &r, 1000);
    toy_speech_init(&speech, &c);
    augment(&c, &r, &speech.grammar, &speech.lexicon);
    CHECK(c.n_of_group[GROUP_CARDS] > 60 && c.n_of_group[GROUP_CARDS] < 140);
    CHECK(c.n_of_group[GROUP_REQUESTS] > 150 &&
          c.n_of_group[GROUP_REQUESTS] < 250);
    CHECK_INT(c.n_of_group[GROUP_JOINS], 50);
    CHECK_INT(c.n_of_group[GROUP_CROPS], 0);
    toy_speech_fini(&speech);
    corpus_fini(&c);
}

TEST(windows_have_as_many_words_as_they_may)
{
    struct recipe r = toy_recipe();
    struct toy_speech speech;
    struct corpus c;

    r.crops = 64;
    r.cards = r.requests = r.joins = r.utterances = r.held_permille = 0;
    r.crop_min_words = 2;
    r.crop_max_words = 3;
    corpus_init(&c, &r);
    (void)corpus_add(&c, corpus_source(&c, STR("a")), STR("a b c d e f"));
    (void)corpus_add(&c, 0, STR("two words")); /* too short for a window */
    corpus_settle(&c, &r);
    toy_speech_init(&speech, &c);
    augment(&c, &r, &speech.grammar, &speech.lexicon);
    CHECK_INT(c.n_texts, 2 + 5 + 4); /* every window of two and of three */
    toy_speech_fini(&speech);
    corpus_fini(&c);
}

TEST(cards_requests_and_joins_read_as_they_should)
{
    struct recipe r = toy_recipe();
    struct toy_speech speech;
    struct corpus c;

    r.cards = r.requests = r.joins = 1;
    r.utterances = r.crops = r.held_permille = 0;
    corpus_init(&c, &r);
    corpus_pair(&c, corpus_add(&c, 0, STR("Get Alarms.")),
                corpus_add(&c, 0,
                           STR("Get the alarms that are set for today "
                               "in this very long description.")),
                0);
    corpus_settle(&c, &r);
    toy_speech_init(&speech, &c);
    speech.grammar.lists[GRAMMAR_REQUESTS].n = 1;
    speech.grammar.lists[GRAMMAR_REQUESTS].all[0] = STR("hey, {} now");
    augment(&c, &r, &speech.grammar, &speech.lexicon);
    CHECK_INT(c.n_texts, 2 + 3);
    CHECK_STR(c.texts[2].s, "get alarms : get the alarms that are set for "
                            "today in this very long description .");
    CHECK_STR(c.texts[3].s, "hey , get alarms now");
    CHECK(strstr(c.texts[4].s.p, " . get "));
    toy_speech_fini(&speech);
    corpus_fini(&c);
}

TEST(a_text_is_cut_at_its_words)
{
    struct recipe r = toy_recipe();
    struct corpus c;

    r.text_words = 3;
    corpus_init(&c, &r);
    (void)corpus_add(&c, 0, STR("one two, three four"));
    CHECK_STR(c.texts[0].s, "one two ,");
    corpus_fini(&c);
}

/* ---- how people ask ---- */

static void check_grammar(const char *text, const char *words)
{
    struct folder f = folder_new();
    struct grammar g;
    struct why why = {""};
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/g", f.path);
    file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(grammar_read(&g, path, &why) == ERR_SYNTAX);
    if (!strstr(why.text, words))
        T_FAIL("\"%s\" does not say \"%s\"", why.text, words);
    grammar_fini(&g);
    folder_remove(&f);
}

TEST(a_grammar_that_is_wrong_says_where)
{
    check_grammar("# words\n\nhello\n", "line 3: not a heading");
    check_grammar("[colours]\nred\n", "line 1: not a heading");
    check_grammar("[requests]\ncan you {n}\n", "line 2: a slot");
    check_grammar("[requests]\ncan you\n", "line 2: a slot");
    check_grammar("[utterances]\nis {a_n} {blue}\n", "line 2: a slot");
    check_grammar("[places]\n{p}\n", "line 2: a slot");
    check_grammar("[requests]\n{}\n", "nothing under [utterances]");
}

TEST(utterances_have_all_their_slots_filled)
{
    struct recipe r = toy_recipe();
    struct toy_speech speech;
    struct corpus c;
    bool is_paid = false, is_compound = false;

    r.utterances = 2000;
    toy_texts(&c, &r);
    toy_speech_init(&speech, &c);
    CHECK_INT(speech.lexicon.n[LEXICON_COMPOUNDS], 1);
    CHECK_INT(speech.lexicon.n[LEXICON_DOINGS], 1);
    utterances_make(&c, &r, &speech.grammar, &speech.lexicon);
    CHECK(c.n_of_group[GROUP_UTTERANCES] > 1000);
    for (size_t i = c.n_read; i < c.n_texts; i++) {
        struct str s = c.texts[i].s;

        CHECK(!memchr(s.p, '{', s.n) && !memchr(s.p, '}', s.n));
        is_paid = is_paid || strstr(s.p, "pay the bill");
        is_compound = is_compound || strstr(s.p, "a credit card");
    }
    CHECK(is_paid && is_compound);
    toy_speech_fini(&speech);
    corpus_fini(&c);
}

TEST(words_are_what_their_meaning_says)
{
    struct recipe r = toy_recipe();
    struct grammar g;
    struct lexicon l;
    struct corpus c;

    corpus_init(&c, &r);
    for (int i = 0; i < 50; i++) {
        char text[64];

        snprintf(text, sizeof(text), "%d bank loan shiny rare%d", i, i);
        (void)corpus_add(&c, 0, str_of(text));
    }
    corpus_settle(&c, &r);
    CHECK(grammar_read(&g, SOURCE_ROOT "/train/utterances.txt", NULL) == OK);
    lexicon_init(&l);
    lexicon_offer(&l, &g, STR("wordnet"), STR("bank, Paris, rare1"),
                  STR("a place with money"));
    lexicon_offer(&l, &g, STR("wordnet"), STR("bank"), STR("having sides"));
    lexicon_offer(&l, &g, STR("wordnet"), STR("shiny"), STR("having a gloss"));
    lexicon_offer(&l, &g, STR("wordnet"), STR("bank loan"), STR("the loan"));
    lexicon_offer(&l, &g, STR("wordnet"), STR("settle"),
                  STR("pay what is due"));
    lexicon_offer(&l, &g, STR("openapi_op"), STR("Get Alarms"), STR("x"));
    lexicon_offer(&l, &g, STR("openapi_op"), STR("Alarms Get"), STR("x"));
    lexicon_offer(&l, &g, STR("debian"), STR("get alarms now"), STR("x"));
    lexicon_settle(&l, &c);
    CHECK_INT(l.n[LEXICON_NOUNS], 1);
    CHECK_STR(lexicon_pick(&l, LEXICON_NOUNS, UINT64_MAX), "bank");
    CHECK_INT(l.n[LEXICON_ADJECTIVES], 1);
    CHECK_STR(lexicon_pick(&l, LEXICON_ADJECTIVES, 0), "shiny");
    CHECK_STR(lexicon_pick(&l, LEXICON_COMPOUNDS, 0), "bank loan");
    CHECK_INT(l.n[LEXICON_DOINGS], 2);
    CHECK_STR(lexicon_pick(&l, LEXICON_DOINGS, 0), "get alarms");
    CHECK_STR(lexicon_pick(&l, LEXICON_DOINGS, UINT64_MAX), "pay what is due");
    lexicon_fini(&l);
    grammar_fini(&g);
    corpus_fini(&c);
}

/* ---- rows ---- */

TEST(a_vocabulary_stays_within_its_bytes)
{
    struct recipe r = toy_recipe();
    struct vocabulary all, some;
    struct corpus c;
    struct toy toy;
    size_t bytes;

    toy_init(&toy);
    toy_texts(&c, &r);
    CHECK(vocabulary_make(&all, &c, &toy.vocab, &r, NULL) == OK);
    CHECK_INT(all.n_pieces, toy.vocab.n - 2); /* without the marks */
    CHECK(vocab_find(&all.table.words, STR(""), STR("kubernetes")) !=
          VOCAB_NONE);
    CHECK(vocab_find(&all.table.words, STR(""), STR("[PAD]")) == VOCAB_NONE);
    CHECK(all.n_phrases > 10);
    bytes = (all.n_words + all.n_phrases) * TABLE_DIMS;
    r.max_bytes = (int64_t)bytes;
    CHECK(vocabulary_make(&some, &c, &toy.vocab, &r, NULL) == OK);
    CHECK(some.n_phrases < all.n_phrases && some.n_phrases > 0);
    CHECK(memcmp(some.phrases, all.phrases,
                 some.n_phrases * sizeof(some.phrases[0])) == 0);
    vocabulary_fini(&all);
    vocabulary_fini(&some);
    corpus_fini(&c);
    toy_fini(&toy);
}

/* ---- the teacher ---- */

enum { N_TEXTS = 50 };

struct school {
    struct toy toy;
    struct folder folder;
    struct crew *crew;
    char bytes[N_TEXTS][16];
    struct str texts[N_TEXTS];
    int16_t first[N_TEXTS * TEACHER_DIMS], out[N_TEXTS * TEACHER_DIMS];
};

static enum err ask(struct school *s, size_t n)
{
    s->toy.n_asked = 0;
    memset(s->out, 0, sizeof(s->out));
    return teacher_embed(&s->toy.teacher, s->crew, s->folder.path, s->texts, n,
                         s->out, true, NULL);
}

static struct school *school_new(void)
{
    struct school *s = train_alloc(1, sizeof(*s));

    toy_init(&s->toy);
    s->folder = folder_new();
    s->crew = crew_new(2);
    for (size_t i = 0; i < N_TEXTS; i++) {
        snprintf(s->bytes[i], sizeof(s->bytes[i]), "text %zu", i);
        s->texts[i] = str_of(s->bytes[i]);
    }
    CHECK(ask(s, N_TEXTS) == OK);
    memcpy(s->first, s->out, sizeof(s->out));
    return s;
}

static void school_free(struct school *s)
{
    folder_remove(&s->folder);
    crew_free(s->crew);
    toy_fini(&s->toy);
    free(s);
}

/* Every time one text is asked to know which teacher it is. */
TEST(the_teacher_is_asked_once)
{
    struct school *s = school_new();

    CHECK_INT(s->toy.n_asked, N_TEXTS + 1);
    CHECK(ask(s, N_TEXTS) == OK);
    CHECK_INT(s->toy.n_asked, 1);
    CHECK(memcmp(s->first, s->out, sizeof(s->out)) == 0);
    snprintf(s->toy.teacher.hash, sizeof(s->toy.teacher.hash), "%064d", 8);
    CHECK(ask(s, N_TEXTS) == OK);
    CHECK_INT(s->toy.n_asked, N_TEXTS + 1); /* another teacher */
    school_free(s);
}

static void open_kept(const struct school *s, int *fd)
{
    char command[128], path[256] = "";
    FILE *p;

    snprintf(command, sizeof(command), "ls %s/teacher-*", s->folder.path);
    p = popen(command, "r");
    CHECK(p && fgets(path, sizeof(path), p));
    pclose(p);
    path[strcspn(path, "\n")] = '\0';
    *fd = open(path, O_RDWR);
    CHECK(*fd >= 0);
}

TEST(what_was_kept_and_is_broken_is_asked_again)
{
    struct school *s = school_new();
    struct stat st;
    int fd;

    open_kept(s, &fd);
    CHECK(fstat(fd, &st) == 0);
    CHECK(ftruncate(fd, st.st_size - 100) == 0); /* the last is cut off */
    CHECK(pwrite(fd, "x", 1, 40) == 1);          /* the first is changed */
    CHECK(ask(s, N_TEXTS) == OK);
    CHECK_INT(s->toy.n_asked, 1 + 2);
    CHECK(memcmp(s->first, s->out, sizeof(s->out)) == 0);
    CHECK(ask(s, N_TEXTS) == OK);
    CHECK_INT(s->toy.n_asked, 1);
    close(fd);
    school_free(s);
}

TEST(what_is_kept_is_for_one_run_at_a_time)
{
    struct school *s = school_new();
    struct why why = {""};
    struct stat before, after;
    int fd;

    open_kept(s, &fd);
    CHECK(flock(fd, LOCK_EX | LOCK_NB) == 0); /* as another run has it */
    CHECK(fstat(fd, &before) == 0);
    CHECK(ftruncate(fd, before.st_size - 100) == 0); /* and is writing */
    CHECK(teacher_embed(&s->toy.teacher, s->crew, s->folder.path, s->texts,
                        N_TEXTS, s->out, true, &why) == ERR_BUSY);
    CHECK(strstr(why.text, "in use"));
    CHECK(fstat(fd, &after) == 0);
    CHECK_INT(after.st_size, before.st_size - 100); /* nothing was cut off */
    close(fd);
    CHECK(ask(s, N_TEXTS) == OK);
    school_free(s);
}

TEST(keeping_survives_every_fault)
{
    struct school *s = school_new();

    snprintf(s->toy.teacher.hash, sizeof(s->toy.teacher.hash), "%064d", 9);
    fault_arm_at("train.known", 1);
    CHECK(ask(s, N_TEXTS) == ERR_IO);
    fault_arm_at("train.remember", 1);
    CHECK(ask(s, N_TEXTS) == ERR_IO);
    fault_arm(0);
    CHECK(ask(s, N_TEXTS) == OK);
    CHECK(memcmp(s->first, s->out, sizeof(s->out)) == 0);
    school_free(s);
}

/* ---- the recipe ---- */

TEST(a_recipe_takes_what_it_can_mean)
{
    struct recipe r = recipe_builtin();
    struct why why = {""};

    CHECK(recipe_set(&r, STR("epochs=3"), &why) == OK && r.epochs == 3);
    CHECK(recipe_set(&r, STR("rate=0.5"), &why) == OK && r.rate == 0.5);
    CHECK(recipe_set(&r, STR("epochs=1.5"), &why) == ERR_USAGE);
    CHECK(strstr(why.text, "whole number"));
    CHECK(recipe_set(&r, STR("rate=fast"), &why) == ERR_USAGE);
    CHECK(recipe_set(&r, STR("rate="), &why) == ERR_USAGE);
    CHECK(recipe_set(&r, STR("rate=nan"), &why) == ERR_USAGE);
    CHECK(recipe_set(&r, STR("max_bytes=16000001"), &why) == ERR_USAGE);
    CHECK(recipe_set(&r, STR("speed=1"), &why) == ERR_USAGE);
    CHECK(strstr(why.text, "\"speed\""));
    CHECK(r.epochs == 3 && r.rate == 0.5);
}
